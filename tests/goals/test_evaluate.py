"""Conclusions on goals: states by intervals, the best point, and points like the best one."""

from __future__ import annotations

import math

import pytest

from eastwest.goals import evaluate, form, judge
from eastwest.goals.form import Goal, Goals, Limit
from eastwest.goals.judge import Runs
from eastwest.stats import Interval, mean_interval


def goals(**table: str) -> Goals:
    found, problems = form.read({name.replace("__", "."): text for name, text in table.items()})
    assert problems == []
    return found


def seeds(*values: float, time_s: float = 1.0) -> Runs:
    """Return runs with these values of ``m``, and times that differ by 1 % between seeds."""
    return {
        seed: {"m": value, "t": time_s * (1 + seed / 100)} for seed, value in enumerate(values, 1)
    }


@pytest.mark.parametrize(
    ("interval", "state"),
    [
        ((8.0, 7.0, 9.0), judge.MET),
        ((8.0, 7.0, 10.0), judge.UNDECIDED),
        ((12.0, 10.0, 14.0), judge.MISSED),
        ((11.0, 9.0, 13.0), judge.UNDECIDED),
        ((8.0, None, None), judge.UNDECIDED),
    ],
)
def test_a_limit_is_met_or_missed_by_the_whole_interval_of_the_mean(
    interval: tuple[float, float | None, float | None], state: str
) -> None:
    value, low, high = interval
    found = judge.judge(Limit("m", False, 10.0, False, strict=True), Interval(5, value, low, high))
    assert found.state == state and found.missed == pytest.approx((value - 10) / 10)


@pytest.mark.parametrize(
    ("values", "state", "beyond"),
    [
        # All seeds are beyond 10, one of them far: the sign test (p = 2 · 2⁻⁶) decides.
        ((11, 11, 11, 11, 11, 500), judge.MISSED, 6),
        ((11, 11, 11, 11, 500), judge.UNDECIDED, 5),
        # 15 of 20 are beyond, which is the 95 % interval of the median (ranks 6 and 15).
        ((*[9.0] * 5, *[10.1] * 14, 900), judge.MISSED, 15),
        ((*[9.0] * 6, *[10.1] * 13, 900), judge.UNDECIDED, 14),
        # Most seeds are allowed, but one is so far beyond that the mean is uncertain.
        ((*[5.0] * 19, 900), judge.UNDECIDED, 1),
        # No seed is beyond the limit, but the intervals of the mean and of the median contain it.
        ((0.5, 0.5, 0.5, 9.9, 9.9, 9.9), judge.UNDECIDED, 0),
        ((0.5, 0.5, 9.9, 9.9, 9.9), judge.UNDECIDED, 0),
        # The interval of the mean is allowed, and the interval of the median is beyond.
        ((*[11.0] * 15, *[0.0] * 5), judge.UNDECIDED, 15),
    ],
)
def test_the_median_decides_where_few_seeds_are_far_from_the_others(
    values: tuple[float, ...], state: str, beyond: int
) -> None:
    for limit, each in (
        (Limit("m", False, 10.0, False, strict=True), values),
        (Limit("m", True, -10.0, False, strict=True), tuple(-value for value in values)),
    ):
        found = judge.judge(limit, mean_interval(each), each)
        assert (found.state, found.beyond) == (state, beyond)


def test_a_measure_without_values_is_not_measured() -> None:
    metrics = {"latency_us.count": 0.0, "flows.fct_us.p99": 3.0}
    (entry,) = evaluate.of_run(goals(latency_us__p99="< 1 ms"), metrics)
    assert (entry["met"], entry["value"]) == (None, None)
    assert entry["absent"] == "latency_us.count is 0" and "nearest" not in entry
    failed = {
        "applications.a.operations.begun": 9.0,
        "applications.a.operations.completed": 9.0,
        "applications.a.counters.failed": 9.0,
    }
    (entry,) = evaluate.of_run(goals(applications__a__operation_us__p99="< 1 ms"), failed)
    assert entry["absent"] == "no operation was completed"
    swept = evaluate.of_sweep(goals(latency_us__p99="< 1 ms"), {0: {1: metrics}}, 0, 0.95)
    assert swept.absent == {"latency_us.p99": "latency_us.count"}


def test_points_without_a_measure_are_not_compared() -> None:
    runs = {0: seeds(8.0, 8.1), 1: {1: {"t": 1.0}, 2: {"t": 1.1}}}
    swept = evaluate.of_sweep(goals(m="< 10"), runs, 0, 0.95)
    assert [at.point for at in swept.points] == [0] and swept.unmeasured == (1,)


def test_seeds_beyond_a_limit_are_counted_in_sweeps_and_optimisations() -> None:
    runs = seeds(8.0, 8.1, 10.5, 8.2)
    swept = evaluate.of_sweep(goals(m="< 10"), {0: runs}, 0, 0.95)
    assert swept.as_json()["points"][0]["limits"][0]["beyond"] == 1
    kept = judge.kept(Limit("m", False, 10.0, False), runs, runs, 0.95)
    assert kept.beyond == 1
    # A relative limit counts the changes of the seeds against the baseline.
    base = seeds(8.0, 8.0, 8.0, 8.0)
    assert judge.kept(Limit("m", False, 0.02, True), runs, base, 0.95).beyond == 2


def test_a_value_at_a_strict_limit_misses_it() -> None:
    at = Interval(3, 1.0, 1.0, 1.0)
    strict = judge.judge(Limit("tcp.timeouts", False, 1.0, False, strict=True), at)
    assert strict.state == judge.MISSED and strict.missed > 0
    loose = judge.judge(Limit("tcp.timeouts", False, 1.0, False), at)
    assert loose.state == judge.MET and loose.missed == 0
    none = judge.judge(Limit("m", False, 0.0, False), Interval(3, 2.0, 2.0, 2.0))
    assert none.missed == 2.0


def test_a_run_meets_or_misses_its_limits() -> None:
    wanted = goals(web__exchange_us__p99="< 1 ms", m="> 3", t="minimal", zero="<= 0", lost="< 1")
    metrics = {"workloads.web.exchange_us.p99": 820.0, "m": 2.0, "t": 7.0, "zero": 1.0, "loss": 1.0}
    found = {each["measure"]: each for each in evaluate.of_run(wanted, metrics)}
    web = found["web.exchange_us.p99"]
    assert web["metric"] == "workloads.web.exchange_us.p99" and web["goal"] == "< 1 ms"
    assert (web["met"], web["limit"], web["difference"]) == (True, 1000.0, -180.0)
    assert web["margin"] == pytest.approx(0.18)
    assert found["m"]["met"] is False and found["m"]["margin"] == pytest.approx(-1 / 3)
    assert (found["t"]["met"], found["t"]["value"], found["t"]["goal"]) == (None, 7.0, "minimal")
    assert found["zero"]["margin"] is None and found["zero"]["difference"] == 1.0
    assert found["lost"]["value"] is None and found["lost"]["nearest"] == "loss"


def test_points_of_a_sweep_are_met_missed_or_undecided() -> None:
    runs = {
        0: seeds(7.9, 8.0, 8.1, time_s=3.0),
        1: seeds(8.9, 9.0, 9.1, time_s=2.0),
        2: seeds(9.0, 9.9, 10.5, time_s=1.5),
        3: seeds(12.0, 12.1, 12.2, time_s=1.0),
    }
    found = evaluate.of_sweep(goals(m="< 10", t="minimal"), runs, 0, 0.95)
    assert [at.state for at in found.points] == ["met", "met", "undecided", "missed"]
    margins = [at.cells[0].margin for at in found.points]
    assert margins == pytest.approx([0.2, 0.1, 0.02, -0.21])
    assert found.best == 1 and found.alike == ()
    # The undecided point has the best mean.
    assert found.on_average == 2
    assert found.cells({"m", "t"})[3, "m"].state == "missed"
    told = found.as_json()
    assert told["goal"] == {"m": "< 10", "t": "minimal"} and told["best"] == 1
    assert told["points"][1]["limits"][0]["value"]["n"] == 3


def test_a_better_point_must_be_better_seed_by_seed() -> None:
    # Both points vary by 20 % between seeds, but in the same way, so the difference of 1 % is
    # certain.
    swing = [1.0, 1.2, 0.8, 1.1, 0.9]
    slow = {seed: {"t": value} for seed, value in enumerate(swing)}
    fast = {seed: {"t": 0.99 * value} for seed, value in enumerate(swing)}
    found = evaluate.of_sweep(goals(t="minimal"), {0: slow, 1: fast}, 0, 0.95)
    assert (found.best, found.alike) == (1, ())
    unlike = {seed: {"t": value} for seed, value in enumerate(reversed(swing))}
    found = evaluate.of_sweep(goals(t="minimal"), {0: slow, 1: fast, 2: unlike}, 0, 0.95)
    assert (found.best, found.alike) == (1, (2,))
    most = evaluate.of_sweep(goals(t="maximal"), {0: slow, 1: fast}, 0, 0.95)
    assert (most.best, most.alike) == (0, ())
    one_seed = evaluate.of_sweep(
        goals(t="minimal"), {0: {1: {"t": 1.0}}, 1: {1: {"t": 2.0}}}, 0, 0.9
    )
    assert (one_seed.best, one_seed.alike) == (0, (1,))


def test_several_extremes_are_weighed_by_shares_against_the_baseline() -> None:
    def point(a: float, b: float) -> Runs:
        return {seed: {"a": a, "b": b} for seed in (1, 2)}

    runs = {0: point(10, 1), 1: point(4, 2), 2: point(9, 1), 3: point(9, 3)}
    found = evaluate.of_sweep(goals(a="minimal", b="minimal"), runs, 0, 0.95)
    assert found.best == 1  # Relative to the baseline, 0.4 × 2 is less than 0.9 × 1.
    assert judge.mean_score((Goal("a", False), Goal("b", False)), runs[1], runs[0]) == (
        pytest.approx(math.log(0.8))
    )


def test_with_one_seed_nothing_is_certain() -> None:
    found = evaluate.of_sweep(
        goals(m="< 10", t="minimal"), {0: seeds(5.0), 1: seeds(20.0)}, 0, 0.95
    )
    assert [at.state for at in found.points] == ["undecided", "undecided"]
    assert found.best is None and found.on_average == 0


def test_measures_that_no_run_has_are_told() -> None:
    found = evaluate.of_sweep(goals(mm="< 10", t="minimal"), {0: seeds(5.0, 6.0)}, 0, 0.95)
    assert found.absent == {"mm": "m"} and found.points == () and found.best is None
    # A point without the measure is left out.
    runs = {0: seeds(5.0, 6.0), 1: {1: {"t": 1.0}}}
    part = evaluate.of_sweep(goals(m="< 10"), runs, 0, 0.95)
    assert [at.point for at in part.points] == [0]
