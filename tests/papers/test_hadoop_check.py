"""``make hadoop-check`` without a cluster: its plan, and its results from made-up measurements."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import hadoop_real
import hadoop_real_measures
import project_paths
from eastwest.calibrate import read
from hadoop_check import __main__ as check
from hadoop_check import compare, configuration, jars, network, wire
from hadoop_check.network import NODES, Shape

DATA = project_paths.DATA / "jhist"


def test_the_plan_names_every_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main(["--dry-run", "--rates", "50,20", "--copies", "3"]) == 0
    plan = capsys.readouterr().out
    assert plan.startswith("mvn ")
    for line in (
        "ip netns exec ewhc-sw ip link add p-w1 type veth peer name eth0 netns ewhc-w1",
        "ip netns exec ewhc-sw tc qdisc replace dev p-w4 root tbf rate 20mbit burst 6000 "
        "limit 1000000",
        "ip netns exec ewhc-m tc qdisc replace dev eth0 root tbf rate 50mbit burst 6000 "
        "limit 2000000",
    ):
        assert line in plan
    assert plan.count("mapreduce.reduce.shuffle.parallelcopies=3") == 2


def test_without_root_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert check.main([]) == 2
    assert "needs root" in capsys.readouterr().err


def test_everything_made_bears_the_prefix() -> None:
    made = [c for c in network.build_commands() if c[:3] == ["ip", "netns", "add"]]
    assert [c[3] for c in made] == ["ewhc-sw", *(f"ewhc-{node}" for node in NODES)]
    others = [c for c in network.build_commands() if c[:3] != ["ip", "netns", "add"]]
    assert all(c[:3] == ["ip", "netns", "exec"] and c[3].startswith("ewhc-") for c in others)


def test_configurations_are_xml_that_hadoop_reads(tmp_path: Path) -> None:
    conf = configuration.write("w1", tmp_path, Path("/jars"), Path("/java & more"))
    values = {}
    for path in sorted(conf.glob("*-site.xml")):
        for item in ET.parse(path).getroot():
            values[item.findtext("name")] = item.findtext("value")
    assert values["dfs.datanode.hostname"] == "w1"
    assert values["mapreduce.jobhistory.jhist.format"] == "json"
    assert values["yarn.app.mapreduce.am.env"] == "JAVA_HOME=/java & more"
    # Two maps fit on a node, or a reduce and the job's master.
    memory = int(values["yarn.nodemanager.resource.memory-mb"] or 0)
    assert memory // int(values["mapreduce.map.memory.mb"] or 0) == 2
    assert memory // int(values["mapreduce.reduce.memory.mb"] or 0) == 1
    assert ET.fromstring(jars.project()).tag.endswith("project")


def test_ports_and_wire_time() -> None:
    text = (
        "Inter-| Receive\n face |bytes\n  p-m: 9 0 0 0 0 0 0 0 1000 1 0 0 0 0 0 0\n"
        " p-w1: 7 0 0 0 0 0 0 0 11 1 0 0 0 0 0 0\n p-w4:7 0 0 0 0 0 0 0 22 1 0 0 0 0 0 0\n"
    )
    assert wire.bytes_to_workers(text) == {"p-w1": 11, "p-w4": 22}
    sent = [(float(t), {"p-w1": 1000 * min(max(t - 10, 0), 20)}) for t in range(60)]
    ports = wire.by_port(sent, 0.0)
    found = hadoop_real_measures.wire(ports, 5.0, 50.0)
    assert found is not None
    assert found.time_s == 19.0
    assert hadoop_real_measures.wire(ports, 100.0, 200.0) is None, "nothing was sampled"


def test_drops_are_told_by_port() -> None:
    shown = (
        "qdisc tbf 1: dev p-m root refcnt 2 rate 50Mbit\n"
        " Sent 9 bytes 1 pkt (dropped 617, overlimits 1 requeues 0)\n"
        "qdisc tbf 2: dev p-w1 root refcnt 2\n Sent 9 bytes 1 pkt (dropped 5, overlimits 0)\n"
        "qdisc noqueue 0: dev br0 root\n Sent 0 bytes 0 pkt (dropped 3, overlimits 0)\n"
    )
    assert check.drops_by_node(shown) == {"m": 617, "w1": 5, "w2": 0, "w3": 0, "w4": 0}


def test_a_measured_run_is_compared() -> None:
    run = compare.Measured(
        Shape(50),
        DATA / "r50-deep-1.jhist.gz",
        [],
        drops=2088,
        retransmits=2749,
        timeouts=3,
        maps=8,
    )
    history = read(run.history)
    start, end = history.submitted_at_s + 24.0, history.submitted_at_s + 43.0
    for t in range(400):
        at = history.submitted_at_s + t / 5
        sent = round(112.5e6 * min(max((at - start) / (end - start), 0), 1))
        run.samples.append((at, {f"p-w{worker}": sent for worker in range(1, 5)}))
    outcome = compare.outcome(run)
    assert outcome.job_s == pytest.approx(46.971)
    assert outcome.wire_s == pytest.approx(18.6, abs=0.3)
    table, _ = compare.report([run], 1, {})
    assert "| 50-reno-1 | 18." in table


def test_verdicts_of_the_study_are_what_its_numbers_say() -> None:
    one = hadoop_real.Outcome(10, 5, 0, 100, 0)
    off = hadoop_real.Outcome(12, 6, 0, 40, 0)
    found = [hadoop_real.Comparison("a", True, one, off, [one], [off])]
    values = {what: value for what, (value, _) in hadoop_real.verdicts(found).items()}
    assert list(values.values()) == pytest.approx([0.2, 0.2, 2.5])
