"""Measures of jobs: shifts of distributions, sooner ends, floors and tall jobs; their figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest

from eastwest.claims import of_jobs
from eastwest.claims.measures import SHARED, Data, MeasureError
from eastwest.claims.measures.of_study import module_of
from eastwest.claims.spec import Figure, Metric
from eastwest.claims.verdict import Part
from eastwest.results import Result
from project_paths import PAPERS

jobs = module_of(PAPERS / "incast_day")

SLOW: Mapping[str, Any] = {"tcp.min_rto": "200 ms"}
FAST: Mapping[str, Any] = {"tcp.min_rto": "1 ms"}


class Run:
    """Stand-in for a run's folder with the tables that measures of jobs read."""

    path = Path("a-run")

    def __init__(
        self, times: list[float], moved: list[int] | None = None, timeouts: tuple[int, ...] = ()
    ) -> None:
        count = len(times)
        hit = {
            "job": [*range(count), None],
            "timeouts": [*(i in timeouts for i in range(count)), 1],
        }
        self.flows = pl.DataFrame(hit, schema={"job": pl.UInt32, "timeouts": pl.UInt32})
        self.jobs = pl.DataFrame(
            {
                "job": list(range(count)),
                "submitted_s": [float(i) for i in range(count)],
                "runtime_s": [float(each) for each in times],
                "input_bytes": moved or [1] * count,
                "shuffle_bytes": [0] * count,
                "output_bytes": [0] * count,
                "failed": [""] * count,
            }
        ).reverse()


class Runs:
    """Runs by minimum timeout, one seed after the other."""

    def __init__(self, **runs: list[Run]) -> None:
        self.runs = runs

    def results(self, at: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], int, Run]]:
        key = {"200 ms": "slow", "1 ms": "fast"}[at["tcp.min_rto"]]
        return [(at, seed, run) for seed, run in enumerate(self.runs[key], 1)]


def data(**runs: list[Run]) -> Data:
    return cast(Data, Runs(**runs))


def test_a_shift_is_that_of_the_distributions_and_has_an_interval_over_seeds() -> None:
    both = data(
        slow=[Run([1, 2, 3]), Run([2, 3, 4])],
        fast=[Run([13, 11, 12]), Run([14, 12, 13])],
    )
    found = jobs.job_time_shift(both, FAST, SLOW)
    assert (found.value, found.seeds) == (10, 2)
    assert found.low == found.high == 10
    middle = found.rows[49]
    assert (middle["share"], middle["at_s"], middle["against_s"]) == (0.5, 12.5, 2.5)


class Tasks:
    """Stand-in for a run's folder with the tables that shuffle times are read from."""

    path = Path("a-run")

    def __init__(self, *rows: tuple[str, float, float]) -> None:
        names = ["kind", "input_done_s", "finished_s"]
        types = [pl.String, pl.Float64, pl.Float64]
        self.tasks = pl.DataFrame(rows, schema=list(zip(names, types, strict=True)), orient="row")


def test_the_shuffle_lasts_from_the_last_map_to_the_last_fetch() -> None:
    def shuffle_s(*rows: tuple[str, float, float]) -> float:
        return SHARED.values["shuffle-s"](cast(Result, Tasks(*rows)))

    maps = ("map", 1.0, 2.0), ("map", 2.0, 5.0)
    assert shuffle_s(*maps, ("reduce", 9.0, 20.0), ("reduce", 7.0, 30.0)) == 4.0
    assert shuffle_s(*maps, ("reduce", 4.0, 20.0)) == 0.0
    with pytest.raises(MeasureError, match="no maps or no reduces"):
        shuffle_s(*maps)


def test_only_jobs_that_differ_are_counted_as_sooner_or_later() -> None:
    both = data(
        slow=[Run([10, 10, 10, 10], [5, 50, 50, 50])],
        fast=[Run([1, 10.05, 5, 20], [5, 50, 50, 50])],
    )
    assert jobs.jobs_sooner(both, FAST, SLOW).value == pytest.approx(2 / 3)
    assert jobs.jobs_sooner(both, FAST, SLOW, least_bytes=10).value == pytest.approx(1 / 2)
    with pytest.raises(MeasureError, match="no job differs"):
        jobs.jobs_sooner(both, FAST, FAST)


def test_runs_of_different_seeds_can_be_held_against_each_other() -> None:
    both = data(slow=[Run([10, 10]), Run([20, 20])], fast=[Run([9, 9]), Run([19, 19])])
    assert jobs.jobs_sooner(both, FAST, SLOW).value == 1
    assert jobs.jobs_sooner(both, FAST, SLOW, apart=True).value == pytest.approx(1 / 2)
    one = data(slow=[Run([10])], fast=[Run([9])])
    with pytest.raises(MeasureError, match="fewer than two seeds"):
        jobs.jobs_sooner(one, FAST, SLOW, apart=True)


def test_only_jobs_that_end_later_by_seconds_count_as_later() -> None:
    both = data(slow=[Run([10, 10, 10, 10])], fast=[Run([10.9, 11.5, 9, 40])])
    assert jobs.jobs_later(both, FAST, SLOW).value == pytest.approx(1 / 2)
    assert jobs.jobs_later(both, FAST, SLOW, by_s=20).value == pytest.approx(1 / 4)


def test_sequences_with_a_few_tall_jobs_are_counted() -> None:
    quiet, few, many = [2.0] * 10, [2.0] * 9 + [50.0], [2.0] * 8 + [50.0] * 2
    runs = data(slow=[Run([*quiet, *few, *many, *few, *few[:9]])])
    assert jobs.sequences_with_tall_jobs(runs, SLOW, length=10).value == pytest.approx(2 / 4)
    assert jobs.sequences_with_tall_jobs(runs, SLOW, length=10, most=1).value == pytest.approx(
        3 / 4
    )
    with pytest.raises(MeasureError, match="49 jobs, not 100"):
        jobs.sequences_with_tall_jobs(runs, SLOW, length=100)


def test_a_sequence_has_a_floor_and_tall_jobs() -> None:
    times = [2.0] * 8 + [3.0, 50.0, 99.0]
    runs = data(slow=[Run(times, [10] * 9 + [1000, 7])])
    assert jobs.jobs_at_the_floor(runs, SLOW, 1, 10).value == pytest.approx(0.9)
    found = jobs.tall_jobs(runs, SLOW, 1, 10)
    assert found.value == pytest.approx(0.1)
    assert [row["number"] for row in found.rows] == list(range(1, 11))
    assert jobs.size_of_tall_jobs(runs, SLOW, 1, 10).value == pytest.approx(100)
    with pytest.raises(MeasureError, match="11 jobs, not 12"):
        jobs.tall_jobs(runs, SLOW, 1, 12)
    assert jobs.size_of_tall_jobs(runs, SLOW, 1, 9).value == 0


def test_what_jobs_save_is_told_apart_by_their_timeouts_and_sizes() -> None:
    both = data(
        slow=[Run([10, 20, 30, 40], [1, 5, 5, 9], timeouts=(1, 3))],
        fast=[Run([10, 19, 31, 37], [1, 5, 5, 9])],
    )
    assert jobs.job_seconds_saved(both, FAST, SLOW, timeouts=True).value == pytest.approx(2)
    assert jobs.job_seconds_saved(both, FAST, SLOW, timeouts=False).value == pytest.approx(-0.5)
    small = jobs.job_seconds_saved(both, FAST, SLOW, timeouts=True, most_bytes=9)
    assert small.value == pytest.approx(1)
    assert jobs.jobs_with_timeouts(both, SLOW).value == pytest.approx(0.5)
    assert jobs.jobs_with_timeouts(both, SLOW, least_bytes=6).value == 1
    with pytest.raises(MeasureError, match="no such job"):
        jobs.job_seconds_saved(both, FAST, SLOW, timeouts=True, least_bytes=10)
    with pytest.raises(MeasureError, match="no job moves between"):
        jobs.jobs_with_timeouts(both, SLOW, least_bytes=10)


def test_sizes_are_those_before_scaling() -> None:
    runs = data(slow=[Run([1, 1, 1, 1], [1, 2, 3, 40])])
    assert jobs.jobs_below(runs, SLOW, moved=30, scaled_by=0.1).value == pytest.approx(0.5)
    assert jobs.largest_job(runs, SLOW, scaled_by=0.1).value == pytest.approx(400)


def test_jobs_that_failed_have_no_time() -> None:
    run = Run([1, 2])
    run.jobs = run.jobs.with_columns(pl.lit("killed").alias("failed"))
    with pytest.raises(MeasureError, match="no finished jobs"):
        jobs.tall_jobs(data(slow=[run]), SLOW, 1, 1)


def part(measure: str, arguments: dict[str, Any], measured: Any) -> Part:
    metric = Metric(measure, ("day",), measure, arguments, "s", 1.0, 3, None, None)
    return Part(metric, measured)


def test_figures_say_what_is_apart_and_which_jobs_are_large() -> None:
    both = data(slow=[Run([1, 2, 3])], fast=[Run([2, 3, 4])])
    at, against = {**FAST, "fabric.hosts": 3}, {**SLOW, "fabric.hosts": 3}
    shift = part(
        "job-time-shift", {"at": at, "against": against}, jobs.job_time_shift(both, FAST, SLOW)
    )
    wanted = Figure("distributions", "Jobs", "", ("job-time-shift",))
    axes = of_jobs.distributions(wanted, [shift]).axes[0]
    assert [line.get_label() for line in axes.lines] == ["min_rto = 200 ms", "min_rto = 1 ms"]
    tall = part("tall-jobs", {"at": FAST}, jobs.tall_jobs(both, FAST, 1, 3))
    panels = of_jobs.sequences(wanted, [tall, tall, shift]).axes
    assert [each.get_title() for each in panels] == ["jobs 1 to 3"]
