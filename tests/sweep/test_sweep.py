"""Sweeps that run: reused, added, skipped and repeated runs, and errors that stop a sweep."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from rich.console import Console
from typer.testing import CliRunner

import eastwest as ew
from eastwest import child, core, kept, results, store
from eastwest.cli import app
from eastwest.cli.sweep import _print_points
from eastwest.errors import FolderError, InputError
from eastwest.report import write_report
from eastwest.report.sweeps import sweep_page
from eastwest.stats import mean_interval, paired_interval
from eastwest.store import Store
from eastwest.sweep import SweepStoppedError, default_folder, driver, estimate, pool
from eastwest.sweep.metrics import metrics_in
from eastwest.sweep.seeds import of_sweep
from eastwest.sweep.spec import load as load_spec
from eastwest.sweep.tables import SweepResult
from eastwest.sweep.values import toml
from eastwest.units import percent
from eastwest.views.sweep import Points
from fake_core import FakeCore
from swept import Values, swept
from tiny import TINY

pytestmark = pytest.mark.slow

#: With few retries and a short queue, some connection gives up.
INCAST = """
schema = 1
[fabric]
kind = "star"
hosts = 12
host_rate = "1 Gbit/s"
[tcp]
min_rto = "1 ms"
[[workload]]
name = "incast"
kind = "incast"
receiver = "h0"
rounds = 2
block_bytes = "300 KB"
"""
LIMITS = {"path": "fabric.queue.limit", "values": ["5 packets", "50 packets"]}
BYTES = {"path": "workload.bulk.bytes", "values": ["10 KB", "20 KB"]}
SWEEP: dict[str, Any] = {"scenario": TINY, "axis": [LIMITS, BYTES], "seeds": 3}
TABLES = ("runs", "points", "comparisons")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to an empty working directory, with its own store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EASTWEST_STORE", raising=False)


def same(a: SweepResult, b: SweepResult) -> None:
    for name in TABLES:
        assert_frame_equal(getattr(a, name), getattr(b, name), check_exact=True)
        assert (a.path / f"{name}.parquet").read_bytes() == (
            b.path / f"{name}.parquet"
        ).read_bytes()


def test_a_point_stops_when_its_limits_are_decided() -> None:
    rule = {"until": "decided", "at_least": 4, "at_most": 40}
    goal = {"flows.fct_us.mean": "< 100 s"}
    sweep = {**SWEEP, "axis": [LIMITS], "seeds": rule, "goal": goal}
    found = ew.sweep(sweep, out="out", jobs=0)
    assert found.runs.height == 2 * 4
    assert found.summary["goals"]["states"] == {"met": 2, "missed": 0, "undecided": 0}
    values = found.runs["flows.fct_us.mean"].to_list()
    middle = sum(values) / len(values)
    close = ew.sweep(
        {**sweep, "goal": {"flows.fct_us.mean": f"< {middle}"}}, out="close", store="b", jobs=2
    )
    assert close.runs.height > 2 * 4
    counts = close.runs.group_by("point").len()["len"].to_list()
    assert set(counts) <= set(close.summary["adaptive"]["looks"])
    for at in close.summary["goals"]["points"]:
        n = close.runs.filter(pl.col("point") == at["point"]).height
        assert at["state"] != "undecided" or n == 40
    same(close, ew.sweep({**sweep, "goal": {"flows.fct_us.mean": f"< {middle}"}}, out="c", jobs=0))


def test_limits_are_decided_by_the_runs_that_have_all_measures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def metrics_of(found: ew.Result, warm_up_ps: int) -> dict[str, float]:
        metrics, seed = metrics_in(found.summary), int(found.summary["seed"])
        metrics["flows.fct_us.mean"] = 5.0 + seed % 7 if seed % 2 else 1.0
        if seed % 2 == 0:  # the mean of these seeds alone would meet its limit
            del metrics["flows.fct_us.max"]
        return metrics

    monkeypatch.setattr(driver, "metrics_of", metrics_of)
    rule = {"until": "decided", "at_least": 4, "at_most": 12}
    goal = {"flows.fct_us.mean": "< 8", "flows.fct_us.max": "< 100 s"}
    found = ew.sweep({"scenario": TINY, "seeds": rule, "goal": goal}, out="out", jobs=0)
    (at,) = found.summary["goals"]["points"]
    n = found.runs.height
    assert at["limits"][0]["value"]["n"] == n / 2
    assert n == 12 or at["state"] != "undecided"


def test_a_point_stops_when_it_clearly_differs_from_the_baseline() -> None:
    metric = "flows.fct_us.mean"
    rule = {"until": "apart", "metric": metric, "at_least": 4, "at_most": 20}
    # The last point has the settings of the baseline: it never differs.
    axis = {"path": "workload.bulk.bytes", "values": ["20 KB", "60 KB", "20000 B"]}
    sweep = {**SWEEP, "axis": [axis], "seeds": rule}
    found = ew.sweep(sweep, out="out", jobs=0)
    counts = dict(found.runs.group_by("point").len().rows())
    assert counts == {0: 20, 1: 4, 2: 20}
    row = found.comparisons.filter((pl.col("point") == 1) & (pl.col("metric") == metric))
    assert row["n"].item() == 4
    assert row["low"].item() > 0
    (said,) = Points(found).apart()
    assert said.endswith(
        "difference to bytes 20 KB: clear at bytes 60 KB; not clear at bytes 20000 B."
    )
    (note,) = of_sweep(found)
    level = percent(found.summary["adaptive"]["level"])
    assert f"each interval has {level} confidence; 3 points stopped with fewer than 30" in note
    html = sweep_page(found)
    assert f"{level} interval" in html
    assert "95 % interval" not in html
    runs = {p: found.runs.filter(pl.col("point") == p)[metric].to_list() for p in (0, 1)}
    expected = paired_interval(runs[1], runs[0][:4], found.summary["adaptive"]["level"])
    assert row["low"].item() == expected.low
    same(found, ew.sweep(sweep, out="other", store="b", jobs=3))
    same(found, ew.sweep(sweep, out="again", jobs=0))


def test_the_baseline_may_have_no_run() -> None:
    rule = {"until": "apart", "metric": "flows.fct_us.mean", "at_least": 2, "at_most": 4}
    axis = {"path": "tcp.max_retries", "values": [1, 15]}
    short = {"fabric.queue.limit": "1 packets"}
    sweep = {"scenario": INCAST, "set": short, "axis": [axis], "seeds": rule}
    found = ew.sweep(sweep, out="out", jobs=0)
    assert {failure["point"] for failure in found.failures} == {0}
    assert found.runs["point"].unique().to_list() == [1]


def test_a_rule_until_decided_needs_a_limit() -> None:
    rule = {"until": "decided"}
    for goal in ({}, {"flows.fct_us.mean": "minimal"}):
        with pytest.raises(InputError, match=r"seeds.until = \"decided\" needs a limit"):
            ew.sweep({**SWEEP, "seeds": rule, "goal": goal}, out="out", jobs=0)


def test_runs_of_one_process_are_those_of_processes_of_their_own() -> None:
    """No state of a run, such as an empty table that is kept, reaches a run with other settings."""
    hosts = {"path": "fabric.hosts", "values": [4, 7]}
    kinds = {"path": "workload.bulk.bytes", "values": ["10 KB", "300 KB"]}
    found = ew.sweep({**SWEEP, "axis": [hosts, kinds], "seeds": 2}, out="out", jobs=1)
    assert found.runs["digest"].n_unique() == 8
    code = "import sys, json, eastwest as ew; sets = json.loads(sys.argv[2]); "
    code += "run = ew.run(sys.argv[1], sets, int(sys.argv[3]), out=sys.argv[4]); "
    for row in found.runs.rows(named=True):
        settings = {path: row[path] for path in ("fabric.hosts", "workload.bulk.bytes")}
        out = f"alone-{row['point']}-{row['seed']}"
        arguments = [TINY, json.dumps(settings), str(row["seed"]), out]
        subprocess.run([sys.executable, "-c", code, *arguments], check=True)
        alone, ours = ew.load(out).summary, dict(found.run(row["point"], row["seed"]).summary)
        for key in ("wall_s", "cpu_s", "peak_rss_mb", "set"):
            alone.pop(key, None)
            ours.pop(key, None)
        assert ours == alone


def test_every_point_runs_with_the_same_seeds(simulated: list[int | None]) -> None:
    found = ew.sweep(SWEEP, out="out", jobs=0)
    assert sorted(s for s in simulated if s is not None) == [1] * 4 + [2] * 4 + [3] * 4
    assert found.runs.select("point", "seed").rows() == [
        (point, seed) for point in range(4) for seed in (1, 2, 3)
    ]
    assert found.axes == ["fabric.queue.limit", "workload.bulk.bytes"]
    first = found.runs.filter(pl.col("point") == 2).row(0, named=True)
    assert first["fabric.queue.limit"] == "50 packets" and first["workload.bulk.bytes"] == "10 KB"
    alone = ew.run(TINY, {"fabric.queue.limit": "50 packets", "workload.0.bytes": "10 KB"}, 1)
    assert first["digest"] == alone.digest
    assert first["flows.fct_us.p99"] == alone.summary["flows"]["fct_us"]["p99"]
    assert found.run(2, 1).digest == alone.digest
    assert not {"wall_s", "cpu_s", "peak_rss_mb"} & set(found.runs.columns)
    assert found.summary["complete"] and found.summary["runs"]["done"] == 12


def test_points_have_intervals_and_comparisons_are_paired() -> None:
    found = ew.sweep({**SWEEP, "baseline": {"fabric.queue.limit": "50 packets"}}, jobs=0)
    assert found.summary["baseline"] == 2
    metric = "flows.fct_us.mean"
    values = {
        point: found.runs.filter(pl.col("point") == point)[metric].to_list() for point in range(4)
    }
    for row in found.points.filter(pl.col("metric") == metric).iter_rows(named=True):
        mean = mean_interval(values[row["point"]])
        assert (row["n"], row["mean"], row["low"], row["high"]) == (
            3,
            mean.value,
            mean.low,
            mean.high,
        )
    compared = found.comparisons.filter(pl.col("metric") == metric)
    assert compared["point"].to_list() == [0, 1, 3]
    for row in compared.iter_rows(named=True):
        difference = paired_interval(values[row["point"]], values[2])
        assert (row["difference"], row["low"]) == (difference.value, difference.low)
    assert "Student t" in found.summary["methods"]["mean"]


#: Bulk transfers and a job, each alone and both together.
SHARED = {
    "scenario": TINY
    + """
[[workload]]
name = "hadoop"
kind = "mapreduce"
[[workload.job]]
kind = "shuffle"
shuffle = "1 MB"
""",
    "axis": [
        {
            "path": ["workload.hadoop.off", "workload.bulk.off"],
            "names": ["bulk alone", "job alone", "both"],
            "values": [[True, False], [False, True], [False, False]],
        },
        LIMITS,
    ],
    "seeds": 2,
    "show": ["jobs.makespan_s", "flows.by_purpose.flow.fct_us.mean", "jobs.makspan_s"],
}


def test_what_the_baseline_has_not_is_compared_with_the_first_point_that_has() -> None:
    found = ew.sweep(SHARED, jobs=0)
    assert [found.names(point) for point in range(6)] == [
        {0: name} for name in ("bulk alone", "job alone", "both") for _ in LIMITS["values"]
    ]
    assert found.columns == [("case", 0), ("fabric.queue.limit", None)]
    by_metric = {
        metric: found.comparisons.filter(pl.col("metric") == metric)
        for metric in ("jobs.makespan_s", "jobs.runtime_s.mean", "packets.sent")
    }
    bases = {metric: rows["baseline"].unique().to_list() for metric, rows in by_metric.items()}
    assert list(bases.values()) == [[2], [2], [0]]
    compared = by_metric["jobs.makespan_s"]
    assert compared["point"].to_list() == [3, 4, 5]
    runs = {point: found.runs.filter(pl.col("point") == point) for point in (2, 5)}
    ours, theirs = (runs[point]["jobs.makespan_s"].to_list() for point in (5, 2))
    difference = paired_interval(ours, theirs)
    last = compared.row(-1, named=True)
    assert (last["difference"], last["high"]) == (difference.value, difference.high)
    assert last["baseline_mean"] == sum(theirs) / 2


def test_named_cases_show_what_they_are_of_the_baseline() -> None:
    Path("shared.toml").write_text(
        "".join(f"{key} = {toml(value)}\n" for key, value in SHARED.items())
    )
    code, out, err = invoke("shared.toml", "--jobs", "0")
    assert code == 0, err
    lines = [line for line in out.splitlines() if "packets" in line or "case" in line]
    assert lines[0].split() == ["case", "limit", "n", "makespan", "flow", "FCT", "mean"]
    assert [line[1:11] for line in lines[1:]] == [
        name for name in ("bulk alone", "job alone ", "both      ") for _ in LIMITS["values"]
    ]
    # The first point that has a metric is the baseline; the others show their ratio to it.
    assert [line.count("×") for line in lines[1:]] == [0, 1, 0, 1, 2, 2]
    assert [line.count("–") for line in lines[1:]] == [1, 1, 1, 1, 0, 0]
    said = "no run has a metric 'jobs.makspan_s'; did you mean jobs.makespan_s?"
    assert said in " ".join(out.split())
    again = ["sweep", "shared.toml", "--jobs", "0", "--resume"]
    narrow = {"COLUMNS": "60", "TERM": "xterm"}
    terminal = CliRunner(env={**narrow, "FORCE_COLOR": "1"}).invoke(app, again).stdout
    assert "columns that do not fit: flow FCT mean; a wider terminal, a pipe" in " ".join(
        terminal.split()
    )
    piped = CliRunner(env={**narrow, "FORCE_COLOR": None}).invoke(app, again).stdout
    assert "columns that do not fit" not in piped, "a pipe has room for all"
    assert any("makespan" in line and "flow FCT mean" in line for line in piped.splitlines())
    page = write_report([Path("results/shared-sweep")]).read_text("utf-8")
    assert 'id="factors"' in page
    assert "Ratio of each case to its baseline" in page and "both, limit = 5 packets" in page


def test_processes_give_the_same_table_as_one() -> None:
    one = ew.sweep(SWEEP, out="one", store="a", jobs=0)
    two = ew.sweep(SWEEP, out="two", store="b", jobs=2)
    same(one, two)


def test_processes_are_started_once(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Counted(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Counted)
    # On a busy machine, a probe that takes too long would start the processes again.
    monkeypatch.setattr(estimate, "_PROBE_S", 600.0)
    ew.sweep({**SWEEP, "seeds": 6}, jobs=2)
    assert len(started) == 2
    assert all(process.returncode is not None for process in started)
    # For each run only its summary and scenario are written.
    names = {p.name for p in Path(".eastwest/store/runs").rglob("*") if p.is_file()}
    assert names == {"summary.json", "scenario.toml"}


def test_more_seeds_and_values_reuse_what_is_there(simulated: list[int | None]) -> None:
    ew.sweep(SWEEP, out="out", jobs=0)
    del simulated[:]
    more_seeds = ew.sweep(SWEEP, out="out", seeds=4, resume=True, jobs=0)
    assert simulated == [4] * 4
    assert more_seeds.summary["runs"]["reused"] == 12
    del simulated[:]
    wider = {**LIMITS, "values": ["500 packets", *LIMITS["values"]]}
    more_values = ew.sweep({**SWEEP, "axis": [wider, BYTES]}, out="out", resume=True, jobs=0)
    assert sorted(s for s in simulated if s) == [1, 1, 2, 2, 3, 3]
    same(more_values, ew.sweep({**SWEEP, "axis": [wider, BYTES]}, out="new", store="b", jobs=0))
    # Another sweep over the same settings shares the runs.
    del simulated[:]
    ew.sweep(TINY, {"workload.0.bytes": ["10 KB"]}, set={"fabric.queue.limit": "5 packets"},
             seeds=[3], out="other", jobs=0)  # fmt: skip
    assert simulated == []


def test_a_sweep_goes_on_where_it_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    real = core.run
    calls = []

    def run(*args: Any) -> core.CoreResult:
        calls.append(args[4])
        if len(calls) == 6:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(core, "run", run)
    with pytest.raises(KeyboardInterrupt):
        ew.sweep(SWEEP, out="out", jobs=0)
    there = SweepResult("out")
    assert not there.summary["complete"]
    assert there.runs.height == 5
    with pytest.raises(FolderError, match="5 of"):
        ew.sweep(SWEEP, out="out", jobs=0)
    resumed = ew.sweep(SWEEP, out="out", jobs=0, resume=True)
    assert len(calls) == 6 + 7
    same(resumed, ew.sweep(SWEEP, out="whole", store="b", jobs=0))


def test_a_failing_point_does_not_stop_the_others() -> None:
    axes: dict[str, list[Any]] = {
        "tcp.max_retries": [1, 15],
        "fabric.queue.limit": ["1 packets", "500 packets"],
    }
    found = ew.sweep(INCAST, axes, seeds=2, out="out", jobs=2)
    assert found.runs["point"].to_list() == [1, 1, 2, 2, 3, 3]
    assert [(f["point"], f["seed"]) for f in found.failures] == [(0, 1), (0, 2)]
    failure = found.failures[0]
    assert failure["settings"] == {"tcp.max_retries": "1", "fabric.queue.limit": "1 packets"}
    assert "given up after 2 timeouts" in failure["message"]
    assert found.summary["runs"] == {"planned": 8, "done": 6, "reused": 0, "failed": 2}


def test_failures_are_repeated_on_demand(fake: FakeCore) -> None:
    sweep = {"scenario": "x.toml", "seeds": 2, "axis": [{"path": "a", "values": [1, 2]}]}
    fake.raises = fake.RunError("flow 3 can no longer finish")
    first = ew.sweep(sweep, out="out", jobs=0)
    assert [entry["seed"] for entry in first.failures] == [1, 2, 1, 2]
    assert first.failures[0]["message"] == "flow 3 can no longer finish"
    assert first.runs.height == 0 and first.points.height == 0
    fake.raises = None
    calls = len(fake.calls)
    again = ew.sweep(sweep, out="out", jobs=0, resume=True)
    assert len(again.failures) == 4 and len(fake.calls) == calls
    retried = ew.sweep(sweep, out="out", jobs=0, resume=True, retry=True)
    assert retried.failures == [] and retried.runs.height == 4
    assert ew.sweep(sweep, out="out", jobs=0, resume=True).failures == []


def test_a_panic_of_the_core_is_one_failure(fake: FakeCore) -> None:
    class PanicError(BaseException):
        pass

    fake.raises = PanicError("packets are conserved")
    found = ew.sweep({"scenario": "x.toml", "seeds": 1}, jobs=0)
    assert found.failures[0]["message"] == "PanicError: packets are conserved"


def test_a_run_whose_process_dies_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    real = pool.Processes._feed

    def feed(self: pool.Processes) -> None:
        real(self)
        for worker in self._workers:
            if worker.task is not None and len(killed) < 2:
                killed.append(worker.task.seed)
                worker.child.kill()

    monkeypatch.setattr(pool.Processes, "_feed", feed)
    found = ew.sweep(SWEEP, out="out", jobs=1)
    assert len(killed) == 2 and found.failures == [] and found.runs.height == 12


def test_a_run_that_kills_every_process_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    real = pool.Processes._feed

    def feed(self: pool.Processes) -> None:
        real(self)
        for worker in self._workers:
            if worker.task is not None and worker.task.seed == 2:
                worker.child.kill()

    monkeypatch.setattr(pool.Processes, "_feed", feed)
    found = ew.sweep(TINY, {"workload.0.bytes": ["1 KB"]}, seeds=3, out="out", jobs=1)
    assert found.runs["seed"].to_list() == [1, 3]
    [failure] = found.failures
    assert "signal 9" in failure["message"] and failure["seed"] == 2


def test_processes_that_do_not_start_stop_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_MAIN", "raise SystemExit('no such library')")
    with pytest.raises(SweepStoppedError, match=r"exit code 1: no such library.*0 of 12 runs"):
        ew.sweep(SWEEP, out="out", jobs=2)
    assert Store().failure(store.plan(TINY).key(1)) is None


def test_an_adaptive_rule_stops_when_the_interval_is_narrow() -> None:
    rule = {"metric": "flows.fct_us.mean", "half_width": "1 %", "at_least": 3, "at_most": 40}
    found = ew.sweep({**SWEEP, "seeds": rule}, out="out", jobs=2)
    metric, level = "flows.fct_us.mean", found.summary["adaptive"]["level"]
    assert found.summary["adaptive"]["half_width"] == 0.01
    assert level == pytest.approx(1 - 0.05 / 3)
    assert found.summary["confidence"] == 0.95
    # The seeds that the points may use, in order.
    assert found.summary["seeds"] == list(range(1, 41))
    counts = []
    for point in range(4):
        values = found.runs.filter(pl.col("point") == point)["flows.fct_us.mean"].to_list()
        counts.append(len(values))
        assert 3 <= len(values) <= 40
        assert mean_interval(values, level).relative_half_width <= 0.01 or len(values) == 40
        if len(values) > 3:  # The interval was still too wide, so more seeds ran.
            assert mean_interval(values[:3], level).relative_half_width > 0.01
        # The printed intervals have the confidence that the rule needs.
        row = found.points.filter((pl.col("point") == point) & (pl.col("metric") == metric))
        assert row["low"].item() == mean_interval(values, level).low
        seeds = found.runs.filter(pl.col("point") == point)["seed"].to_list()
        assert seeds == list(range(1, len(values) + 1))
    assert max(counts) > 3
    same(found, ew.sweep({**SWEEP, "seeds": rule}, out="other", store="b", jobs=0))
    same(found, ew.sweep({**SWEEP, "seeds": rule}, out="again", jobs=0))


def test_an_adaptive_rule_needs_a_metric_that_there_is() -> None:
    rule = {"metric": "flows.fct_us.p9"}
    with pytest.raises(InputError, match=r"did you mean flows\.fct_us\.p99"):
        ew.sweep({**SWEEP, "seeds": rule}, out="out", jobs=0)
    assert not Path("out").exists()


def test_a_warm_up_is_taken_out() -> None:
    warm = {**SWEEP, "seeds": 1, "warm_up": "500 us"}
    found = ew.sweep(warm, out="out", jobs=0)
    assert found.summary["warm_up_s"] == 0.0005
    assert found.summary["warm_up_metrics"] == ["flows", "jobs", "rounds", "workloads", "while"]
    settings = {"fabric.queue.limit": "5 packets", "workload.bulk.bytes": "10 KB"}
    whole = ew.run(TINY, settings, seed=1)
    late = whole.flows.filter(pl.col("start_s") >= 0.0005)["fct_us"].sort()
    assert 0 < late.len() < whole.flows.height
    row = found.runs.row(0, named=True)
    assert row["flows.completed"] == late.len()
    assert row["flows.fct_us.mean"] == pytest.approx(late.sum() / late.len())
    assert row["flows.fct_us.max"] == late.max()
    assert row["packets.sent"] == whole.summary["packets"]["sent"]
    # This metric would also count flows that never ended, so runs with a warm-up do not have it.
    assert "flows.count" not in found.runs.columns
    # Stored tables serve for any warm-up, without another simulation.
    ew.sweep({**SWEEP, "seeds": 1, "keep": "tables"}, out="tables", store="b", jobs=0)
    from_tables = ew.sweep(warm, out="from-tables", store="b", jobs=0)
    assert from_tables.summary["runs"]["reused"] == 4
    same(found, from_tables)


def test_a_warm_up_of_nothing_changes_no_metric() -> None:
    plain = ew.sweep({**SWEEP, "seeds": 1}, out="plain", jobs=0).runs.row(0, named=True)
    first = ew.sweep({**SWEEP, "seeds": 1, "warm_up": "1 ps"}, out="warm", jobs=0)
    for name, value in first.runs.row(0, named=True).items():
        assert value == (pytest.approx(plain[name]) if isinstance(value, float) else plain[name])


def test_kept_tables_are_there() -> None:
    found = ew.sweep({**SWEEP, "seeds": 1, "keep": "tables"}, out="out", jobs=0)
    assert found.run(3, 1).flows.height == 4
    with pytest.raises(KeyError, match="seed 9"):
        found.run(3, 9)


def test_a_full_disk_stops_the_sweep_and_it_goes_on_later(monkeypatch: pytest.MonkeyPatch) -> None:
    real = results.fill_folder
    written: list[Path] = []

    def fill(folder: Path, *rest: Any, **named: Any) -> None:
        if len(written) == 5:
            (folder / "summary.json").write_text('{"cut')
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
        written.append(folder)
        real(folder, *rest, **named)

    monkeypatch.setattr(store, "fill_folder", fill)
    with pytest.raises(SweepStoppedError, match=r"No space left.*5 of"):
        ew.sweep(SWEEP, out="out", jobs=0)
    assert not Path("out").exists()
    assert list(Path(".eastwest/store/partial").iterdir()) == []
    monkeypatch.setattr(store, "fill_folder", real)
    found = ew.sweep(SWEEP, out="out", jobs=0)
    assert found.summary["runs"] == {"planned": 12, "done": 12, "reused": 5, "failed": 0}
    same(found, ew.sweep(SWEEP, out="whole", store="b", jobs=0))


def test_a_disk_that_fails_in_the_probe_leaves_no_task_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, calls = Store.run, []

    def run(self: Store, *args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        if len(calls) == 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO), "somewhere")
        return real(self, *args, **kwargs)

    monkeypatch.setattr(Store, "run", run)
    found = ew.sweep(SWEEP, out="out", jobs=0)
    assert found.runs.height == 12 and len(calls) == 13, "a failed probe, and each run once"


def test_a_full_disk_at_the_end_leaves_no_half_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    ew.sweep(SWEEP, out="out", jobs=0)
    before = {p.name: p.read_bytes() for p in Path("out").iterdir()}

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(kept, "sync_folder", full)
    with pytest.raises(OSError) as caught:
        ew.sweep(SWEEP, out="out", seeds=4, resume=True, jobs=0)
    assert str(caught.value.filename).endswith("out")
    assert {p.name: p.read_bytes() for p in Path("out").iterdir()} == before
    assert sorted(p.name for p in Path().iterdir()) == [".eastwest", "out"]


def test_folders_that_a_sweep_does_not_replace() -> None:
    ew.run(TINY, out="result")
    with pytest.raises(FolderError, match="not the folder of a sweep"):
        ew.sweep(SWEEP, out="result", jobs=0, resume=True)
    ew.sweep(SWEEP, out="out", jobs=0)
    other = {**SWEEP, "scenario": TINY.replace("hosts = 4", "hosts = 5")}
    with pytest.raises(FolderError, match="another scenario"):
        ew.sweep(other, out="out", jobs=0, resume=True)
    assert ew.sweep(other, out="out", jobs=0, force=True).runs.height == 12


def test_a_folder_of_another_version_is_readable_and_not_mixed() -> None:
    found = ew.sweep(SWEEP, out="out", jobs=0)
    path = found.path / "summary.json"
    old = {**found.summary, "version": "0.0.9"}
    path.write_text(json.dumps(old))
    assert SweepResult("out").runs.height == 12
    with pytest.raises(FolderError, match=r"0\.0\.9.*not mixed"):
        ew.sweep(SWEEP, out="out", jobs=0, resume=True)
    path.write_text(json.dumps({**old, "format": 99}))
    with pytest.raises(InputError, match="sweep format 99"):
        SweepResult("out")


def test_a_folder_that_has_lost_a_table_is_called_damaged() -> None:
    found = ew.sweep(SWEEP, out="out", jobs=0)
    (found.path / "points.parquet").unlink()
    with pytest.raises(InputError, match=r"out is damaged: points\.parquet is missing"):
        SweepResult("out").points  # noqa: B018


def test_the_folder_of_a_sweep_repeats_it_wherever_it_lies(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ew.sweep(file, jobs=0, store="store")
    assert found.path == Path("results/buffers-sweep")
    folder, store = found.path.resolve(), Path("store").resolve()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    again = ew.sweep(folder / "sweep.toml", jobs=0, store=store)
    assert again.path == Path("results/buffers-sweep") and again.summary["runs"]["reused"] == 4
    same(SweepResult(folder), again)


def test_settings_that_only_fail_together_fail_their_point(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fake.resolve

    def resolve(text: str, base: str, data: str, changed: Any, seed: Any) -> Any:
        if ("a", "2") in changed and ("b", "2") in changed:
            raise fake.ScenarioError(
                [{"path": "b", "value": "2", "message": "not with a = 2", "hint": None}]
            )
        return real(text, base, data, changed, seed)

    monkeypatch.setattr(fake, "resolve", resolve)
    axes = {"a": [1, 2], "b": [1, 2]}
    found = ew.sweep("x.toml", axes, seeds=2, jobs=0)
    assert found.runs.height == 6
    assert [(f["point"], f["message"]) for f in found.failures] == [
        (3, "b = 2: not with a = 2"),
        (3, "b = 2: not with a = 2"),
    ]


# The command


def invoke(*args: str) -> tuple[int, str, str]:
    done = CliRunner(env={"COLUMNS": "100", "TERM": "dumb"}).invoke(app, ["sweep", *args])
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def file() -> Path:
    path = Path("buffers.toml")
    Path("tiny.toml").write_text(TINY)
    path.write_text(
        'scenario = "tiny.toml"\nseeds = 2\n[[axis]]\npath = "fabric.queue.limit"\n'
        'values = ["5 packets", "50 packets"]\n'
    )
    return path


def test_the_command_shows_what_came_out(file: Path) -> None:
    code, out, err = invoke(str(file), "--jobs", "0")
    assert code == 0, err
    assert "5 packets" in out and "±" in out and "4 of 4 runs" in out
    assert "results/buffers-sweep" in out.replace("\n", "")
    again = ["sweep", str(file), "--jobs", "0", "--resume"]
    # The output is a terminal, then a pipe.
    for env in ({"FORCE_COLOR": "1"}, {"FORCE_COLOR": None}):
        narrow = CliRunner(env={"COLUMNS": "46", "TERM": "xterm", **env}).invoke(app, again).stdout
        assert "±" in narrow and "…" not in narrow, "what has no room is left out whole"
    assert "\nresults/buffers-sweep\n" in narrow, "lines of a pipe are not broken"
    assert "2 points, 4 runs, about" in err and "from a probe of 2 of its points" in err
    code, out, err = invoke(str(file), "--jobs", "0")
    assert code == 2 and "--resume" in err
    code, out, err = invoke(str(file), "--jobs", "0", "--resume", "--seeds", "3")
    assert code == 0 and "from 4 earlier runs of 2 of its points" in err


def test_a_folder_ends_with_sweep_once() -> None:
    def folder(name: str) -> str:
        return str(default_folder(load_spec({"scenario": "first", "axis": [LIMITS], "name": name})))

    assert folder("cmp") == folder("cmp-sweep") == "results/cmp-sweep"
    assert folder("sweep") == "results/sweep"
    assert folder("mysweep") == "results/mysweep-sweep"


def test_an_unknown_time_says_why() -> None:
    why = "the probe was stopped before a run ended"
    unknown = estimate.Estimate(40, 0, 2, None, None, None, why)
    assert unknown.sentence() == f"40 runs, time unknown: {why}"


def test_a_probe_of_which_no_run_ends_tells_nothing(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimate, "_PROBE_S", 0.0)
    code, out, err = invoke(str(file), "--jobs", "1", "--dry-run")
    assert code == 0, err
    why = "4 runs, time unknown: no process of the probe began a run within 0 s; this says nothing"
    assert why in " ".join(out.split())


def test_a_warm_up_says_what_it_excludes(file: Path) -> None:
    file.write_text(f'warm_up = "1 us"\n{file.read_text()}')
    code, out, err = invoke(str(file), "--jobs", "0")
    assert code == 0, err
    assert "metrics of flows, jobs, rounds and workloads exclude the first 1 us" in out.replace(
        "µ", "u"
    )


def test_a_point_has_its_settings_along_all_axes() -> None:
    queues = [{"kind": "drop-tail"}, {"limit": "20 packets"}]
    axes = [{"path": "fabric.queue", "values": queues}, BYTES]
    found = ew.sweep({**SWEEP, "axis": axes, "seeds": 1}, out="out", jobs=0)
    assert [found.settings(point) for point in range(4)] == [
        {"fabric.queue": queue, "workload.bulk.bytes": size}
        for queue in queues
        for size in BYTES["values"]
    ]


def test_a_sweep_that_needs_more_memory_than_there_is_says_so(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimate, "available_mb", lambda: 64.0)
    _, out, _ = invoke(str(file), "--jobs", "0", "--dry-run")
    assert "more than the 64 MB that are free" in out


def test_json_is_one_object(file: Path) -> None:
    code, out, _ = invoke(str(file), "--jobs", "0", "--json", "--out", "here")
    shown = json.loads(out)
    assert code == 0 and shown["folder"] == "here" and shown["failures"] == []
    assert shown["runs"] == {"planned": 4, "done": 4, "reused": 0, "failed": 0}


def test_a_dry_run_writes_no_folder(file: Path) -> None:
    code, out, _ = invoke(str(file), "--jobs", "0", "--dry-run", "--json")
    shown = json.loads(out)
    assert code == 0 and shown["runs"] == 4 and shown["memory_mb"] > 0 and shown["wall_s"] > 0
    assert not Path("results").exists()


def test_a_million_runs_are_asked_about_first(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "ASK_FROM_RUNS", 10)
    code, _, err = invoke(str(file), "--jobs", "0", "--seeds", "500000")
    assert code == 2
    assert "1 million runs, about" in err and "--yes" in err
    assert not Path("results").exists()
    # Only the points of the probe have run.
    assert len(Store().costs()) <= 3
    code, _, err = invoke(str(file), "--jobs", "0", "--seeds", "6", "--yes")
    assert code == 0, err
    with pytest.raises(InputError, match="yes=True"):
        ew.sweep(file, seeds=7, out="other", jobs=0)


def test_a_single_run_is_estimated_from_records(file: Path) -> None:
    run = ["run", "tiny.toml", "--seed", "9"]
    assert CliRunner().invoke(app, run).stderr == ""
    assert not Path(".eastwest").exists()
    invoke(str(file), "--jobs", "0")
    # The cost of a run on several threads is not recorded: a sweep's run has one thread.
    on_threads = CliRunner().invoke(app, [*run, "--threads", "2"])
    assert "4 earlier runs with other settings" in on_threads.stderr
    assert "4 earlier runs with other settings" in CliRunner().invoke(app, run).stderr
    again = CliRunner().invoke(app, run)
    assert again.exit_code == 0
    assert "(1 earlier run with these settings)" in again.stderr and "of memory" in again.stderr
    assert CliRunner().invoke(app, [*run, "--json"]).stderr == ""


def test_runs_of_another_fidelity_tell_no_time(file: Path) -> None:
    """A run of packets takes much longer than one of flows."""
    in_flow = '[set]\nfidelity = "flow"\n[[axis]]'
    file.write_text(file.read_text().replace("[[axis]]", in_flow))
    invoke(str(file), "--jobs", "0")
    said = CliRunner().invoke(app, ["run", "tiny.toml"]).stderr
    assert "time unknown: none of 4 earlier runs with other settings is known to have" in said
    said = CliRunner().invoke(app, ["run", "tiny.toml", "--set", "fidelity=flow"]).stderr
    assert "(4 earlier runs with other settings)" in said


def test_a_pipe_has_all_points(file: Path) -> None:
    values = ", ".join(f'"{n} packets"' for n in range(5, 22))
    file.write_text(file.read_text().replace('"5 packets", "50 packets"', values))
    run = ["sweep", str(file), "--jobs", "0", "--seeds", "1", "--resume"]
    piped = CliRunner(env={"FORCE_COLOR": None}).invoke(app, run).stdout
    assert "21 packets" in piped and "more point" not in piped
    shown = {"COLUMNS": "200", "TERM": "xterm", "FORCE_COLOR": "1"}
    terminal = CliRunner(env=shown).invoke(app, run).stdout
    assert "20 packets" in terminal and "21 packets" not in terminal
    assert "1 more point is not shown. To see all points, run `eastwest report " in terminal
    assert "run this command again with `--resume | cat`." in terminal


def test_failures_are_listed_at_the_end(fake: FakeCore) -> None:
    Path("s.toml").write_text('scenario = "x.toml"\nseeds = 7\n')
    fake.raises = fake.RunError("the \x1b[31mend")
    code, _, err = invoke("s.toml", "--jobs", "0")
    assert code == 2
    assert "7 runs failed; --resume --retry repeats them" in err
    assert "seed 1: the \N{REPLACEMENT CHARACTER}[31mend" in err and "and 2 more" in err


def test_what_is_wrong_is_told(file: Path) -> None:
    for args, message in (
        (("none.toml",), "no sweep file"),
        ((str(file), "--seeds", "x"), "expected a number of seeds"),
        ((str(file), "--set", "fabric.hsts=3"), "did you mean hosts?"),
        ((str(file), "--set", "fabric.queue.limit=3"), "is set twice"),
    ):
        code, _, err = invoke(*args, "--jobs", "0")
        assert code == 2 and message in err, err


def test_ctrl_c_says_how_to_go_on(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = core.run
    calls = []

    def run(*args: Any) -> core.CoreResult:
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(core, "run", run)
    code, _, err = invoke(str(file), "--jobs", "0")
    assert code == 130 and "3 of 4 runs are stored" in err and "--resume" in err
    code, _, err = invoke(str(file), "--jobs", "0", "--resume")
    assert code == 0


def test_metrics_that_a_terminal_has_no_space_for_are_named(fake: FakeCore) -> None:
    Path("plain.toml").write_text(
        'sweep = 1\nscenario = "x.toml"\nseeds = 2\n[[axis]]\npath = "a"\nvalues = [1, 2]\n'
    )
    narrow = {"COLUMNS": "45", "TERM": "xterm", "FORCE_COLOR": "1"}
    shown = CliRunner(env=narrow).invoke(app, ["sweep", "plain.toml", "--jobs", "0"]).stdout
    assert "columns that do not fit: " in shown
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in shown.splitlines()]
    assert max(map(len, lines[:8])) <= 45
    assert not [line for line in lines[3:6] if line.endswith("…")]


def test_a_point_without_a_result_is_not_one_more_point(tmp_path: Path) -> None:
    axes = [(["fabric.queue.limit"], [["5 packets"], ["20 packets"]])]
    values: dict[str, Values] = {"packets.dropped": [[1], [2]]}
    written = StringIO()
    _print_points(Console(file=written), swept(tmp_path / "s", axes, values, points=3))
    assert "1 point has no result" in written.getvalue()
    assert "more point" not in written.getvalue()
