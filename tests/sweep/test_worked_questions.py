"""Worked questions of the guide: the shipped sweeps, with fewer points, give the shown ranking."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import eastwest as ew
from eastwest import shipped, units
from eastwest.sweep import words
from eastwest.views import metrics

SERVICE_P99 = "workloads.service.exchange_us.p99"
GOODPUT = "rounds.goodput_bps"
#: Share of the link rate of client or storage server that TCP and RoCEv2 reach without losses.
MOST = 0.9


def read(name: str) -> dict[str, Any]:
    """Return the shipped sweep of this name."""
    return tomllib.loads((shipped.SWEEPS / f"{name}.toml").read_text(encoding="utf-8"))


def rows(found: ew.SweepResult, *wanted: str) -> list[dict[str, Any]]:
    """Return a row for each point: its number, its settings and the means of these metrics."""
    assert not found.failures
    means = found.runs.group_by("point", maintain_order=True).agg(pl.col(*wanted).mean())
    return [{**found.settings(row["point"]), **row} for row in means.iter_rows(named=True)]


def by_case(found: ew.SweepResult, *wanted: str) -> dict[str, dict[str, Any]]:
    """Return the rows by the name of their case."""
    return {next(iter(found.names(row["point"]).values())): row for row in rows(found, *wanted)}


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Any]:
    """Return the folders to which a sweep of a test writes its results and its runs."""
    return {"out": tmp_path / "out", "store": tmp_path / "store", "jobs": 1}


@pytest.mark.long
def test_dctcp_needs_a_smaller_buffer_for_incast_than_cubic(folders: dict[str, Any]) -> None:
    sweep = read("incast-buffer")
    sweep["axis"][1]["values"] = ["128 KB", "384 KB", "1 MB", "1.5 MB"]
    found = ew.sweep({**sweep, "seeds": 2}, **folders)
    goodput = {
        (row["tcp.congestion"], row["fabric.queue.limit"]): row[GOODPUT] / 10e9
        for row in rows(found, GOODPUT)
    }
    enough = {key for key, share in goodput.items() if share > MOST}
    dctcp = {("dctcp", limit) for limit in ("384 KB", "1 MB", "1.5 MB")}
    assert enough == {*dctcp, ("cubic", "1.5 MB")}
    assert goodput["cubic", "1 MB"] < goodput["cubic", "384 KB"] * 2 < 0.1, "last segments"


def test_one_initial_window_of_each_server_must_fit(tmp_path: Path) -> None:
    def timeouts(limit: str) -> int:
        settings = {"workload.reads.block_bytes": "14 KB", "fabric.queue.limit": limit}
        result = ew.run("incast-buffer", set=settings, out=tmp_path / limit)
        timed_out: int = result.summary["tcp"]["timeouts"]
        return timed_out

    assert timeouts("384 KB") > 0
    assert timeouts("480 KB") == 0


def test_a_shared_buffer_gives_one_port_half_of_itself(tmp_path: Path) -> None:
    def goodput(name: str, size: str, shared: bool) -> float:
        settings = {"tcp.congestion": "dctcp", "fabric.queue.limit": size}
        if shared:
            settings["fabric.shared_buffer.size"] = size
        summary = ew.run("incast-buffer", set=settings, out=tmp_path / name).summary
        bits_per_s: float = summary["rounds"]["goodput_bps"]
        return bits_per_s

    alone = goodput("alone", "384 KB", shared=False)
    assert goodput("shared", "768 KB", shared=True) == pytest.approx(alone, rel=0.02)


@pytest.mark.long
def test_coalescing_saves_energy_only_with_much_load(folders: dict[str, Any]) -> None:
    sweep = read("sleeping-service")
    sweep["axis"][0]["values"] = ["1 ms", "20 us"]
    found = ew.sweep({**sweep, "seeds": 1}, set={"duration": "25 ms"}, **folders)
    energy, p99 = "energy_j.of_always_on", SERVICE_P99
    idle: dict[str, dict[str, Any]] = {}
    busy: dict[str, dict[str, Any]] = {}
    for row in rows(found, energy, p99):
        gap = row["workload.service.mean_gap"]
        name = next(iter(found.names(row["point"]).values()))
        (idle if gap == "1 ms" else busy)[name] = row
    for load in (idle, busy):
        order = ["always on", "standard", "12 us or 10", "120 us or 100"]
        assert [load[name][p99] for name in order] == sorted(load[name][p99] for name in order)
        wakes = load["standard"][p99] - load["always on"][p99]
        assert wakes == pytest.approx(4 * 4.48 + 4 * 5.5, rel=0.1), "eight links wake"
    assert idle["standard"][energy] - idle["120 us or 100"][energy] < 0.03
    assert busy["standard"][energy] - busy["12 us or 10"][energy] > 0.1
    assert busy["120 us or 100"][energy] < busy["12 us or 10"][energy]
    assert busy["stall 50 us"][energy] > busy["standard"][energy] + 0.2


@pytest.mark.long
def test_the_largest_shuffle_gains_from_faster_uplinks(folders: dict[str, Any]) -> None:
    sweep = read("hadoop-uplinks")
    sweep["axis"][0]["values"] = ["10 Gbit/s", "40 Gbit/s"]
    part = {"workload.hadoop.trace_from": "430 min", "workload.hadoop.trace_to": "433 min"}
    found = ew.sweep({**sweep, "seeds": 1}, set=part, **folders)
    slow, fast = (found.run(point, 1).jobs for point in (0, 1))
    jobs = slow.join(fast.select("job", after="runtime_s"), on="job")
    jobs = jobs.with_columns(saved=1 - pl.col("after") / pl.col("runtime_s"))
    largest = jobs.sort("shuffle_bytes").row(-1, named=True)
    assert largest["shuffle_bytes"] > 500e9
    assert 0.25 < largest["saved"] < 0.4
    others = jobs.filter(pl.col("job") != largest["job"])
    assert others["saved"].median() == pytest.approx(0, abs=0.01)
    # Three quarters of the shuffle leave their rack, and each rack has one of four uplinks.
    by_uplink_bits = largest["shuffle_bytes"] * 8 * 3 / 4 / 4
    closed_form_s = by_uplink_bits / 10e9 - by_uplink_bits / 40e9
    assert largest["runtime_s"] - largest["after"] == pytest.approx(closed_form_s, rel=0.15)


@pytest.mark.long
def test_rocev2_needs_pfc_and_the_service_a_class_of_its_own(folders: dict[str, Any]) -> None:
    sweep = read("storage-pfc")
    small = {"workload.storage.rounds": 2}
    found = ew.sweep({**sweep, "seeds": 1}, set=small, **folders)
    drops, pauses = "packets.dropped", "dcb.pauses"
    case = by_case(found, GOODPUT, SERVICE_P99, drops, pauses)
    assert case["RoCE drop-tail"][GOODPUT] < 1e9
    assert case["RoCE PFC"][GOODPUT] > 15e9
    assert case["RoCE PFC"][GOODPUT] < MOST * case["TCP drop-tail"][GOODPUT]
    assert case["PFC only"][GOODPUT] == pytest.approx(case["TCP drop-tail"][GOODPUT], rel=0.05)
    for name, row in case.items():
        lossy = name.endswith("drop-tail")
        assert (row[drops] > 0) == lossy and (row[pauses] == 0) == lossy, name
        shares_class = name in {"RoCE one class", "PFC only, one"}
        assert (row[SERVICE_P99] > 1000) == shares_class, name
        assert shares_class or row[SERVICE_P99] < 25, name
    assert case["RoCE PFC"][pauses] < case["PFC only"][pauses] / 2


def test_ratios_of_energy_are_not_joules() -> None:
    for name in ("energy_j.of_always_on", "energy_j.with_switches.of_always_on"):
        assert words.shown(name)[2](0.115) == "11.5 %"
        assert metrics.made(name).write(0.115) == "11.5 %"
    assert words.shown("energy_j.of_ideal")[2](1.5) == "1.5"
    assert words.shown("energy_j.total")[1:] == ("energy total", units.joules)
