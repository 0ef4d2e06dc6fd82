"""Conclusions on goals: whether a run meets them, and which points of a sweep meet them best.

A run has one value for each measure, which meets a limit or misses it. A point of a sweep has one
value for each seed: the confidence intervals of the mean and of the median decide whether the point
meets a limit, misses it, or is undecided (``judge.judge``), and the number of seeds beyond the
limit is counted.
Among the points that meet all limits, the best point is found by the rule of ``eastwest optimize``,
and the difference of each other point from the best point is judged seed by seed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eastwest.errors import nearest
from eastwest.goals import judge
from eastwest.goals.early import Stopped
from eastwest.goals.form import Goal, Goals, Limit
from eastwest.goals.judge import MET, MISSED, UNDECIDED, Metrics, Runs
from eastwest.stats import Interval, mean_interval
from eastwest.work_units import STATISTICS

#: Maximum number of points in the goals of a sweep's summary; the table ``points`` has all.
MOST_LISTED = 10_000


def of_run(goals: Goals, metrics: Metrics, stopped: Stopped | None = None) -> list[dict[str, Any]]:
    """Return one JSON object for each goal of a run: its value, its limit, and whether it is met.

    Keys are ``measure``, ``goal``, ``metric``, ``value``, ``limit``, ``met``, ``difference`` (value
    minus limit) and ``margin`` (share of the limit by which the value is on the allowed side).
    ``met`` is None for ``minimal`` and ``maximal``, which need other runs for a comparison. If the
    run does not have the measure, ``met`` and ``value`` are None. ``absent`` is then the reason, if
    it is known; otherwise ``nearest`` is the most similar measure of the run.

    A run that was stopped early (``stopped``) misses one limit: ``at_least`` is then the least
    value that the measure would have at the end, from which ``difference`` and ``margin`` are
    computed. All other goals are not measured.
    """
    found = []
    every: tuple[Goal | Limit, ...] = (*goals.limits, *goals.best)
    for goal in every:
        metric = _full(goal.metric, metrics)
        value = metrics.get(metric)
        entry: dict[str, Any] = {
            "measure": goal.metric,
            "goal": goal.text().removeprefix(f"{goal.metric} "),
            "metric": metric,
            "value": value,
            "limit": None,
            "met": None,
            "difference": None,
            "margin": None,
        }
        if stopped is not None:
            entry["absent"] = "the run was stopped early"
        elif value is None and (reason := _absent(metric, metrics)):
            entry["absent"] = reason
        elif value is None:
            entry["nearest"] = nearest(goal.metric, _short(metrics))
        if isinstance(goal, Limit):
            entry["limit"] = goal.bound
            if stopped is not None and stopped.misses(goal):
                del entry["absent"]
                entry |= {"at_least": stopped.at_least, "met": False}
                entry["difference"] = stopped.at_least - goal.bound
                entry["margin"] = margin_of(goal, Interval(1, stopped.at_least, None, None))
            elif value is not None:
                entry["met"] = judge.allows(goal, value)
                entry["difference"] = value - goal.bound
                entry["margin"] = margin_of(goal, Interval(1, value, None, None))
        found.append(entry)
    return found


def _absent(metric: str, metrics: Metrics) -> str:
    """Return why a run has no value of a metric; an empty text if the reason is not known."""
    stem, _, statistic = metric.rpartition(".")
    if statistic not in STATISTICS:
        return ""
    application = f"{stem.rpartition('.')[0]}."
    completed = metrics.get(f"{application}operations.completed")
    failed = metrics.get(f"{application}counters.failed", 0)
    begun = metrics.get(f"{application}operations.begun")
    if completed is not None and begun and completed <= failed:
        return "no operation was completed"
    counted = f"{stem}.count"
    return f"{counted} is 0" if metrics.get(counted) == 0 else ""


def _full(measure: str, there: Collection[str]) -> str:
    """Return the full name of a measure, with ``workloads.``, which users may leave out.

    ``there`` are the full names of all measures.
    """
    from eastwest.sweep import words  # noqa: PLC0415  the sweep imports this module

    return words.full(measure, there)


def _short(metrics: Collection[str]) -> list[str]:
    """Return the names of metrics as users write them: without ``workloads.``."""
    return [name.removeprefix("workloads.") for name in metrics]


def margin_of(limit: Limit, interval: Interval) -> float | None:
    """Return the distance of a mean from a limit as a share of the limit.

    The result is negative if the mean is beyond the limit, and None where the limit is 0, because a
    share of 0 is not defined.
    """
    if not limit.bound:
        return None
    side = 1.0 if limit.least else -1.0
    return side * (interval.value - limit.bound) / abs(limit.bound)


@dataclass(frozen=True)
class Cell:
    """Result of the comparison of one point of a sweep with one limit."""

    limit: Limit
    #: Mean of the measure over the seeds, with its confidence interval.
    value: Interval
    #: State of the limit at the point: ``met``, ``missed`` or ``undecided``.
    state: str
    #: Distance of the mean from the limit as a share of the limit; negative if the mean is beyond
    #: the limit; None if the limit is 0.
    margin: float | None
    #: Number of seeds whose own value is beyond the limit.
    beyond: int
    #: Number of runs that were stopped early. If there are any, ``value`` has no interval, and is
    #: the mean of the least values that the runs can have: the mean of complete runs is not less.
    stopped: int = 0


@dataclass(frozen=True)
class At:
    """Result of the comparison of one point of a sweep with all goals."""

    point: int
    #: Results for all limits; if runs were stopped early, for upper limits only.
    cells: tuple[Cell, ...]
    #: Means of the measures that should be minimal or maximal, in the order of the goals; empty if
    #: runs were stopped early.
    best: tuple[Interval, ...]
    #: ``met`` if all limits are met, ``missed`` if one is missed; otherwise ``undecided``.
    state: str

    @property
    def is_allowed(self) -> bool:
        """Whether the means are known and on the allowed sides of all limits."""
        return all(
            not cell.stopped and judge.allows(cell.limit, cell.value.value) for cell in self.cells
        )


@dataclass(frozen=True)
class Outcome:
    """Result of the comparison of all points of a sweep with its goals, and the best points."""

    goals: Goals
    #: Comparison of each point with the goals; points without a run that has all measures are left
    #: out.
    points: tuple[At, ...]
    #: Number of the best point that meets all limits; None if no goal is ``minimal`` or
    #: ``maximal``, or if no point meets the limits.
    best: int | None
    #: Number of the best point whose means meet all limits: the recommendation of ``eastwest
    #: optimize``. This point differs from ``best`` where an undecided point is better.
    on_average: int | None
    #: Numbers of other points that meet all limits and do not differ significantly from ``best``.
    alike: tuple[int, ...]
    #: Measures of goals that no run has, each with the most similar measure of the runs, or None;
    #: for a measure without values, it is their number, such as ``latency_us.count``.
    absent: Mapping[str, str | None]
    #: Numbers of the points that have runs, and none with all measures of the goals.
    unmeasured: tuple[int, ...] = ()

    def of(self, state: str) -> list[At]:
        """Return the comparisons of the points whose state is ``state``."""
        return [at for at in self.points if at.state == state]

    def cells(self, there: Collection[str]) -> dict[tuple[int, str], Cell]:
        """Return the result of each limit at each point, by (point, full name of the metric).

        ``there`` are the full names of all metrics of the runs, such as
        ``workloads.hadoop.runtime_s.mean``.
        """
        return {
            (at.point, _full(cell.limit.metric, there)): cell
            for at in self.points
            for cell in at.cells
        }

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as the JSON object ``goals`` of a sweep's summary."""
        return {
            "goal": self.goals.table(),
            "states": {state: len(self.of(state)) for state in (MET, MISSED, UNDECIDED)},
            "points": [
                {
                    "point": at.point,
                    "state": at.state,
                    "limits": [
                        {
                            "metric": cell.limit.metric,
                            "limit": cell.limit.bound,
                            "state": cell.state,
                            "value": judge.as_json(cell.value),
                            "beyond": cell.beyond,
                            "difference": cell.value.value - cell.limit.bound,
                            "margin": cell.margin,
                            **({"stopped": cell.stopped} if cell.stopped else {}),
                        }
                        for cell in at.cells
                    ],
                    "best": [judge.as_json(interval) for interval in at.best],
                }
                for number, at in enumerate(self.points)
                if number < MOST_LISTED or at.point in {self.best, self.on_average}
            ],
            "best": self.best,
            "on_average": self.on_average,
            "alike": list(self.alike[:MOST_LISTED]),
            "absent": dict(self.absent),
            "unmeasured": list(self.unmeasured[:MOST_LISTED]),
        }


def of_sweep(
    goals: Goals,
    runs: Mapping[int, Runs],
    baseline: int,
    confidence: float,
    there: Collection[str] = (),
    stopped: Mapping[int, Mapping[int, Stopped]] | None = None,
) -> Outcome:
    """Return the comparison of all points with the goals; ``runs`` has metrics by point and seed.

    A point of which no run has all measures is left out. ``baseline`` is the number of a point: if
    several measures should be minimal or maximal, their changes against this point are summed to
    one score. ``there`` are the names of all metrics, if ``runs`` has only the metrics of the
    goals. ``stopped`` has the runs that were stopped early, by point and seed; they have no metrics
    in ``runs``.
    """
    stopped = stopped or {}
    there = {*there} or {name for seeds in runs.values() for run in seeds.values() for name in run}
    absent = {
        measure: _number_of(measure, there) or nearest(measure, _short(there))
        for measure in goals.measures
        if _full(measure, there) not in there
    }
    if absent and there:
        return Outcome(goals, (), None, None, (), absent)
    own = {
        point: kept
        for point, seeds in runs.items()
        if (kept := _with_names(goals.measures, seeds, there)) or stopped.get(point)
    }
    points = tuple(
        _at(goals, point, seeds, confidence, stopped.get(point, {})) for point, seeds in own.items()
    )
    unmeasured = tuple(point for point, seeds in runs.items() if seeds and point not in own)
    if not goals.best:
        return Outcome(goals, points, None, None, (), {}, unmeasured)
    allowed = {at.point: own[at.point] for at in points if at.is_allowed}
    met = {at.point: own[at.point] for at in points if at.state == MET}
    base = own.get(baseline) or next((seeds for seeds in own.values() if seeds), {})
    best, on_average = (_best(goals.best, each, base) for each in (met, allowed))
    alike = tuple(
        point
        for point, seeds in met.items()
        if best is not None
        and point != best
        and not _is_apart(goals.best, seeds, met[best], base, confidence)
    )
    return Outcome(goals, points, best, on_average, alike, {}, unmeasured)


def _number_of(measure: str, there: Collection[str]) -> str | None:
    """Return the metric with the number of values of a statistic; None if no run has it."""
    stem, _, statistic = measure.rpartition(".")
    counted = f"{stem}.count"
    return counted if statistic in STATISTICS and _full(counted, there) in there else None


def _with_names(measures: list[str], seeds: Runs, there: set[str]) -> dict[int, dict[str, float]]:
    """Return by seed the values of ``measures`` of a point; runs that lack a measure are left out.

    The keys of the values are the names in ``measures``, without ``workloads.`` where a user has
    left it out. ``there`` are the full names of all metrics.
    """
    names = {measure: _full(measure, there) for measure in measures}
    return {
        seed: {measure: metrics[name] for measure, name in names.items()}
        for seed, metrics in seeds.items()
        if all(name in metrics for name in names.values())
    }


def _at(
    goals: Goals, point: int, seeds: Runs, confidence: float, stopped: Mapping[int, Stopped]
) -> At:
    cells = []
    for limit in judged_limits(goals.limits, stopped):
        each = [metrics[limit.metric] for metrics in seeds.values()]
        each += least_values(limit, stopped)
        value = judge.mean(each, len(stopped), confidence)
        judged = judge.judge(limit, value, each, confidence)
        margin = margin_of(limit, value)
        cells.append(Cell(limit, value, judged.state, margin, judged.beyond, len(stopped)))
    states = {cell.state for cell in cells}
    state = next((each for each in (MISSED, UNDECIDED) if each in states), MET)
    best = tuple(_mean(goal.metric, seeds, confidence) for goal in goals.best if not stopped)
    return At(point, tuple(cells), best, state)


def judged_limits(limits: Sequence[Limit], stopped: Mapping[int, Stopped]) -> list[Limit]:
    """Return the limits that a point is compared with.

    If runs were stopped early, these are the upper limits: a least value does not show on which
    side of a lower limit the value is.
    """
    return [limit for limit in limits if not (limit.least and stopped)]


def least_values(limit: Limit, stopped: Mapping[int, Stopped]) -> list[float]:
    """Return the least value of a limit's measure in each run that was stopped early.

    It is 0 in a run that was stopped because of another limit: no measure is negative that can stop
    a run.
    """
    return [run.at_least if run.measure == limit.metric else 0.0 for run in stopped.values()]


def _mean(measure: str, seeds: Runs, confidence: float) -> Interval:
    return mean_interval([metrics[measure] for metrics in seeds.values()], confidence)


def _best(goals: tuple[Goal, ...], among: Mapping[int, Runs], base: Runs) -> int | None:
    """Return the number of the point on the Pareto front with the least score; None without points.

    ``among`` has the runs of the points by number, ``base`` those of the baseline. ``eastwest
    optimize`` recommends a point by this rule.
    """
    if not among:
        return None
    standings = [judge.Standing(p, judge.values(goals, seeds), 0.0) for p, seeds in among.items()]
    if len(goals) == 1:
        return min(standings, key=lambda s: (s.values, s.number)).number
    front = judge.first_front(standings)
    return min(front, key=lambda s: (_score(goals, among[s.number], base), s.number)).number


def _score(goals: tuple[Goal, ...], ours: Runs, base: Runs) -> float:
    if not ours.keys() & base.keys():
        return 0.0
    return judge.mean_score(goals, ours, base)


def _is_apart(
    goals: tuple[Goal, ...], ours: Runs, best: Runs, base: Runs, confidence: float
) -> bool:
    """Whether the score of a point is significantly above the score of the best point.

    The whole confidence interval of the difference over common seeds must be above 0.
    """
    if len(ours.keys() & best.keys() & base.keys()) < 2:
        return False
    apart = judge.score_difference(goals, ours, best, base, confidence)
    return apart.low is not None and apart.low > 0
