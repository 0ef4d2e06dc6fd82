"""Notes on seeds: a single seed at all points, and seeds that do not change the runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest
from typer.testing import CliRunner

import eastwest as ew
from eastwest.cli import app
from eastwest.report import write_page, write_report
from eastwest.sweep import seeds
from eastwest.sweep.tables import SweepResult
from hand_made import SCENARIO, flow, folder

FIXED = """
schema = 1
name = "fixed"
[fabric]
kind = "star"
hosts = 4
host_rate = "1 Gbit/s"
processing_jitter = "0 s"
[[workload]]
name = "bulk"
kind = "stride"
stride = 1
count = 1
bytes = "20 KB"
start_window = "0 s"
"""
AXIS = {"path": "fabric.queue.limit", "values": ["5 packets", "50 packets"]}


def stub(runs: list[tuple[int, int]], points: list[tuple[int, str, float, float]]) -> Any:
    """Return a stand-in for a sweep.

    Its rows are (point, seed) and (point, metric, mean, standard deviation).
    """
    many = {point: sum(run[0] == point for run in runs) for point, _ in runs}
    return cast(
        SweepResult,
        SimpleNamespace(
            runs=pl.DataFrame(runs, schema=["point", "seed"], orient="row"),
            points=pl.DataFrame(
                [(*row, many[row[0]]) for row in points],
                schema={
                    "point": pl.Int64, "metric": pl.String, "mean": pl.Float64, "sd": pl.Float64,
                    "n": pl.Int64,
                },
                orient="row",
            ),
            summary={},
        ),
    )  # fmt: skip


FCT = "flows.fct_us.mean"


def test_one_seed_has_no_interval() -> None:
    [note] = seeds.of_sweep(stub([(0, 3), (1, 3)], []))
    assert note.startswith("each point has one run (seed 3): no value has an interval")
    [note] = seeds.of_sweep(stub([(0, 3), (1, 4)], []))
    assert "(one seed)" in note


def test_seeds_that_vary_the_runs_need_no_note() -> None:
    runs = [(0, 1), (0, 2)]
    assert seeds.of_sweep(stub(runs, [(0, FCT, 100.0, 1.0)])) == []
    assert seeds.of_sweep(stub([], [])) == []


def test_metrics_that_seeds_hardly_change_are_told() -> None:
    runs = [(point, seed) for point in (0, 1, 2) for seed in (1, 2)]
    points = [
        (0, FCT, 100.0, 0.0),
        (1, FCT, 100.0, 0.02),
        (1, "packets.dropped", 0.0, 0.0),
        (1, "flows.jain", 1.0, 0.5),
        (2, FCT, 100.0, 0.02),
        (2, "latency_us.p99", 10.0, 1.0),
    ]
    [note] = seeds.of_sweep(stub(runs, points))
    assert note.startswith(
        "seeds hardly change these results at 2 of 3 points (standard deviation below 0.1 % of the "
        "mean: FCT mean, latency p99): the intervals do not show the effect of another random load"
    )
    [note] = seeds.of_sweep(stub(runs, points[:1]))
    assert note.startswith("seeds do not change these results at 1 of 3 points (FCT mean): ")


@pytest.mark.slow
def test_a_sweep_without_chance_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EASTWEST_STORE", raising=False)
    Path("fixed.toml").write_text(FIXED)
    file = Path("both.toml")
    file.write_text(
        'scenario = "fixed.toml"\nseeds = 3\n[[axis]]\npath = "fabric.queue.limit"\n'
        'values = ["5 packets", "50 packets"]\n'
    )
    done = CliRunner().invoke(app, ["sweep", str(file), "--jobs", "0", "--out", "s"])
    words = "seeds do not change these results ("
    assert words in done.stdout.replace("\n", " ")
    assert words[1:] in write_report([Path("s")]).read_text()
    one = ew.sweep({"scenario": FIXED, "axis": [AXIS], "seeds": 1}, out="one", jobs=0)
    assert "Each point has one run (seed 1)" in write_report([one.path]).read_text()
    # With random jitter, seeds change the runs.
    varied = FIXED.replace('"0 s"', '"100 us"')
    other = ew.sweep({"scenario": varied, "axis": [AXIS], "seeds": 3}, out="other", jobs=0)
    assert seeds.of_sweep(other) == []


def test_a_comparison_of_one_run_each_says_so(tmp_path: Path) -> None:
    def made(name: str, seed: int, limit: str) -> ew.Result:
        scenario = f"seed = {seed}\n{SCENARIO}".replace(
            'min_rto = "200 ms"', f'min_rto = "{limit}"'
        )
        tables = {"flows": [flow()]}
        return folder(tmp_path / name, tables, {"digest": name, "seed": seed}, scenario)

    one, other = made("a", 1, "200 ms"), made("b", 1, "1 ms")
    words = "Each setting has one run (seed 1), so that differences can be chance"
    assert words in write_page([one, other]).read_text()
    again = made("c", 2, "1 ms")
    assert "differences can be chance" not in write_page([one, other, again]).read_text()
    assert seeds.of_results([{"a": "1"}, {"a": "2"}], ["same", "same"]) is None


def finalist(mean: float, low: float | None, high: float | None) -> dict[str, Any]:
    return {"goals": [{"value": {"mean": mean, "low": low, "high": high}}]}


def test_an_optimisation_judged_by_one_seed_says_so() -> None:
    stages = [{"seeds": [1]}, {"seeds": [4]}]
    [note] = seeds.of_optimisation({"stages": stages, "finalists": [finalist(1.0, None, None)]})
    assert note.startswith("the last stage has one run of each point (seed 4)")
    stages[-1] = {"seeds": [1, 2]}
    [note] = seeds.of_optimisation({"stages": stages, "finalists": [finalist(10.0, 9.999, 10.001)]})
    assert note.startswith("seeds hardly change the goals of the finalists")
    varied = {"stages": stages, "finalists": [finalist(10.0, 9.999, 10.001), finalist(1, 0, 2)]}
    assert seeds.of_optimisation(varied) == []
    assert seeds.of_optimisation({"stages": stages, "finalists": []}) == []
