"""Timelines keep to the format that Perfetto reads."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import eastwest as ew
from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.timeline import timeline, trace
from fake_core import FakeCore
from hand_made import TO_H3, drop, event, flow, folder
from trace_events import Row, check


def test_every_kind_of_row_has_its_place(tmp_path: Path) -> None:
    times = {"assigned_s": 1.0, "started_s": 2.0, "input_done_s": 2.5, "finished_s": 4.0}
    task = {"job": 0, "workload": "w", "kind": "map", "host": 2, "locality": "node", **times}
    tables: dict[str, Any] = {
        "jobs": [{"job": 0, "workload": "w", "name": "sort", "finished_s": 5.0}],
        "tasks": [{**task, "task": i} for i in range(3)],
        "flows": [flow(i, fct_us=1e6) for i in range(2)],
        "events": [drop(1.1, 0), event(1.3, "timeout")],
        "traffic": [{"time_s": 0.001 * i, "tier": "host-up"} for i in (1, 2)],
        "queues": [{"time_s": t, "link": TO_H3, "packets": 9} for t in (1.0, 1.001, 1.005)],
        "tcp_trace": [
            {"time_s": 1.0, "connection": 0, "dst": 3, "cwnd_bytes": 14_480},
            {"time_s": 1.1, "connection": 0, "dst": 3, "cwnd_bytes": 28_960},
        ],
    }
    made = trace(folder(tmp_path / "r", tables))
    real = check(made)
    number = {ph: sum(e["ph"] == ph for e in real) for ph in "XbeiC"}
    assert number == {"X": 12, "b": 3, "e": 3, "i": 2, "C": 7}
    slots = {e["args"]["name"] for e in made["traceEvents"] if e["name"] == "thread_name"}
    assert slots == {"map slot 1", "map slot 2", "map slot 3", "leaf0->h3", "TCP"}
    queue = [(e["ts"], e["args"]["packets"]) for e in real if e["name"].startswith("leaf0->h3 p")]
    # A sample without a row is an empty queue.
    assert queue == [(1e6, 9), (1.001e6, 9), (1.002e6, 0), (1.005e6, 9), (1.006e6, 0)]
    assert made["otherData"]["notes"] == ""


def test_overlapping_flows_of_two_hosts_have_a_lane_each(tmp_path: Path) -> None:
    rows = [flow(i, start_s=1.0 + 0.001 * i, fct_us=1500.0) for i in range(6)]
    real = check(trace(folder(tmp_path / "r", {"flows": rows})))
    assert {e["id"] for e in real} == {"flow-0-3-0", "flow-0-3-1"}


def test_a_large_result_is_thinned_and_says_so(tmp_path: Path) -> None:
    rows = [flow(i, start_s=1.0 + i / 100, fct_us=100.0 + i) for i in range(500)]
    tables: dict[str, Any] = {
        "flows": rows,
        "events": [drop(1.0 + i / 1000, i) for i in range(900)],
        "queues": [{"time_s": 1 + i / 1000, "link": i % 3, "packets": i} for i in range(900)],
        "traffic": [{"time_s": 0.001, "tier": "host-up"}],
    }
    result = folder(tmp_path / "r", tables, {"event_log": {"rows": 900, "left_out": 5}})
    made = trace(result, most=1000)
    real = check(made)
    assert 500 < len(real) <= 1000
    kept = [e["args"]["flow"] for e in real if e["ph"] == "b"]
    assert kept == list(range(350, 500))
    assert max(e["args"]["packets"] for e in real if e["ph"] == "C") == 899
    notes = made["otherData"]["notes"]
    assert "thinned: 150 of 500 flows, the longest" in notes
    assert "5 later events are not in the result" in notes
    assert made == trace(result, most=1000)


def test_thinned_queues_are_empty_only_where_they_were(tmp_path: Path) -> None:
    # a queue that is never empty for a second, and then again after half a second
    times = [*range(1000), *range(1500, 1600)]
    rows = [{"time_s": i / 1000, "link": TO_H3, "packets": 1 + i % 7} for i in times]
    tables: dict[str, Any] = {
        "queues": rows,
        "traffic": [{"time_s": 0.001, "tier": "host-up"}],
    }
    made = trace(folder(tmp_path / "r", tables), most=200)
    found = [(e["ts"], e["args"]["packets"]) for e in check(made)]
    assert "samples of queues, the largest" in made["otherData"]["notes"]
    assert len(found) < 200
    assert [at for at, packets in found if packets == 0] == [1e6, 1.6e6]


def nap(link: int, begin: float, **values: float) -> Row:
    """A nap of a millisecond."""
    times = {"asleep_s": begin + 0.0001, "wakes_s": begin + 0.0009, "awake_s": begin + 0.001}
    return {"link": link, "falls_asleep_s": begin, **times, **values}


def test_naps_are_slices_on_a_thread_per_port(tmp_path: Path) -> None:
    rows = [nap(TO_H3, 1.0), nap(0, 1.0005), nap(TO_H3, 1.002, wakes_s=1.003)]
    summary = {"lpi": {"rows": 3, "left_out": 7}}
    made = trace(folder(tmp_path / "r", {"lpi": rows}, summary))
    real = check(made)
    names = {e["tid"]: e["args"]["name"] for e in made["traceEvents"] if e["name"] == "thread_name"}
    found = [(names[e["tid"]], e["name"], e["ts"], e["dur"]) for e in real]
    assert found == [
        ("h0->leaf0", "falling asleep", 1_000_500.0, 100.0),
        ("h0->leaf0", "asleep", 1_000_600.0, 800.0),
        ("h0->leaf0", "waking", 1_001_400.0, 100.0),
        ("leaf0->h3", "falling asleep", 1_000_000.0, 100.0),
        ("leaf0->h3", "asleep", 1_000_100.0, 800.0),
        ("leaf0->h3", "waking", 1_000_900.0, 100.0),
        ("leaf0->h3", "falling asleep", 1_002_000.0, 100.0),
        ("leaf0->h3", "asleep", 1_002_100.0, 900.0),
    ]
    assert made["otherData"]["notes"] == ("7 later naps are not in the result (measure.lpi_rows)")
    with pytest.raises(InputError, match=r"a row of the table lpi, the times .* do not ascend"):
        trace(folder(tmp_path / "d", {"lpi": [nap(0, 1.0, asleep_s=0.5)]}))
    with pytest.raises(InputError, match="damaged"):
        trace(folder(tmp_path / "e", {"lpi": [nap(0, 1.0, awake_s=float("nan"))]}))


def pause(link: int, began_s: float, until_s: float, **values: Any) -> Row:
    """A pause of priority 3."""
    row = {"link": link, "priority": 3, "began_s": began_s, "until_s": until_s}
    return {**row, "ended": "released", **values}


def test_pauses_are_slices_on_a_thread_per_port_and_priority(tmp_path: Path) -> None:
    rows = [
        pause(TO_H3, 1.0, 1.001),
        pause(TO_H3, 1.001, 1.004, ended="ran-out"),
        pause(TO_H3, 1.0005, 1.002, priority=5),
        pause(0, 1.0, 2.0, ended="not-yet"),
    ]
    made = trace(folder(tmp_path / "r", {"pauses": rows}, {"pauses": {"left_out": 2}}))
    real = check(made)
    names = {e["tid"]: e["args"]["name"] for e in made["traceEvents"] if e["name"] == "thread_name"}
    found = [(names[e["tid"]], e["ts"], e["dur"], e["args"]["ended"]) for e in real]
    assert found == [
        ("h0->leaf0 priority 3", 1_000_000.0, 1_000_000.0, "not-yet"),
        ("leaf0->h3 priority 3", 1_000_000.0, 1_000.0, "released"),
        ("leaf0->h3 priority 3", 1_001_000.0, 3_000.0, "ran-out"),
        ("leaf0->h3 priority 5", 1_000_500.0, 1_500.0, "released"),
    ]
    notes = made["otherData"]["notes"]
    assert notes == "2 later pauses are not in the result (measure.pauses_rows)"
    with pytest.raises(InputError, match=r"a row of the table pauses, the times .* do not ascend"):
        trace(folder(tmp_path / "d", {"pauses": [pause(0, 2.0, 1.0)]}))
    many = [pause(0, 1.0 + i, 1.0 + i + 0.001 * i) for i in range(500)]
    thinned = trace(folder(tmp_path / "many", {"pauses": many}), most=300)
    assert "thinned: 30 of 500 pauses, the longest" in thinned["otherData"]["notes"]
    assert min(e["ts"] for e in check(thinned)) == 471_000_000.0


def test_throughput_is_a_counter_per_stream(tmp_path: Path) -> None:
    def sample(time_s: float, connection: int, size: int) -> Row:
        row = {"time_s": time_s, "connection": connection, "stream": -1, "workload": "w"}
        return {**row, "src": 0, "dst": 3, "bytes": size}

    rows = [sample(0.001, 7, 1000), sample(0.002, 7, 500), sample(0.005, 7, 125)]
    summary = {"flow_samples": {"interval_s": 0.001}}
    real = check(trace(folder(tmp_path / "r", {"flow_samples": rows}, summary)))
    assert {e["name"] for e in real} == {"h0->h3 (w, connection 7)"}
    found = [(e["ts"], e["args"]["bit/s"]) for e in real]
    # in the first, the second and the fifth millisecond
    assert found == [(0.0, 8e6), (1e3, 4e6), (2e3, 0), (4e3, 1e6), (5e3, 0)]
    many = [sample(0.001 * (i + 1), c, 1000) for c in range(4) for i in range(400)]
    made = trace(folder(tmp_path / "many", {"flow_samples": many}, summary), most=500)
    assert made["otherData"]["notes"] == "thinned: throughput as means over 128 ms"
    counters = check(made)
    assert len(counters) <= 50
    # three whole bins, and a fourth of which 16 of 128 ms have something
    assert [e["args"]["bit/s"] for e in counters[:5]] == [8_000_000] * 3 + [1_000_000, 0]
    with pytest.raises(InputError, match="damaged"):
        trace(folder(tmp_path / "d", {"flow_samples": rows}))


def test_many_naps_leave_the_longest(tmp_path: Path) -> None:
    rows = [nap(0, 1.0 + i / 100, awake_s=1.001 + i / 100 + i / 1e5) for i in range(500)]
    made = trace(folder(tmp_path / "r", {"lpi": rows}), most=300)
    assert "thinned: 10 of 500 naps, the longest" in made["otherData"]["notes"]
    assert min(e["ts"] for e in check(made)) == 5_900_000.0


def test_a_run_of_the_stand_in(fake: FakeCore) -> None:
    fake.job_name = "job\x1b\n<b>"
    result = ew.run("x.toml")
    real = check(trace(result))
    assert len(real) > 5000
    assert all(name.isprintable() for e in real if isinstance(name := e["name"], str))


def test_the_file_is_whole_and_the_same_every_time(tmp_path: Path) -> None:
    result = folder(tmp_path / "r", {"flows": [flow()]})
    plain = timeline(result)
    assert plain == result.path / "timeline.json"
    packed = timeline(result, tmp_path / "t.json.gz")
    assert json.loads(gzip.decompress(packed.read_bytes())) == json.loads(plain.read_text())
    before = packed.read_bytes()
    assert timeline(result, packed).read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r", "t.json.gz"]
    with pytest.raises(InputError, match="is a folder"):
        timeline(result, tmp_path)
    with pytest.raises(InputError, match="there is no folder"):
        timeline(result, tmp_path / "no" / "t.json")


def test_damaged_times_are_refused(tmp_path: Path) -> None:
    for number, bad in enumerate((float("inf"), 1e300)):
        result = folder(tmp_path / str(number), {"flows": [flow(finish_s=bad)]})
        with pytest.raises(InputError, match="damaged"):
            trace(result)
    task = {"kind": "map", "assigned_s": 2.0, "started_s": 1.0, "finished_s": 3.0}
    with pytest.raises(InputError, match="do not ascend"):
        trace(folder(tmp_path / "t", {"tasks": [task]}))
    with pytest.raises(InputError, match="100 or more"):
        trace(folder(tmp_path / "u"), most=3)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [flow(i) for i in range(200)]
    result = folder(tmp_path / "r", {"flows": rows})
    with pytest.raises(SystemExit) as left:
        app(["timeline", str(result.path), "-o", str(tmp_path / "t.json"), "--most", "100"])
    assert not left.value.code
    said = capsys.readouterr()
    assert said.out.strip() == str(tmp_path / "t.json")
    assert "thinned: 15 of 200 flows" in said.err
    check(json.loads((tmp_path / "t.json").read_text()))
