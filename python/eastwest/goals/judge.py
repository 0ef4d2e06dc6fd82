"""Comparison of points: limits first, then Pareto dominance, then one recommended point.

Every point is compared with the baseline seed by seed (with the same seeds for all points), so that
effects of a seed on both points cancel. A point *misses* a limit if its mean over the seeds is
beyond the bound; the distance counts as a share of the bound. Of two points, the point that misses
limits by less is better. Among points that miss no limit, a point *dominates* another point if it
is at least as good in all goals and better in one (Deb's constrained domination: K. Deb, An
efficient constraint handling method for genetic algorithms, 2000; fronts and crowding as in
NSGA-II, Deb et al. 2002).

Of the points on the front that miss no limit, the recommended point has the least *score*: the
weighted sum of the logarithms of goal / baseline. So a goal counts by its relative change, not by
its unit; halving one goal weighs as much as doubling another goal of the same weight.

Whether a point meets a limit is decided by the confidence intervals of the mean and of the median
over the seeds (function :func:`judge`). One run with a retransmission timeout can widen the
interval of the mean so much that it contains every limit; the interval of the median, which lies
between order statistics, then still shows on which side most runs are.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eastwest.goals.form import Goal, Limit
from eastwest.stats import (
    CONFIDENCE,
    Interval,
    mean_interval,
    paired_interval,
    percentile_interval,
)

#: Metrics of one run, by name.
Metrics = Mapping[str, float]
#: Metrics of all runs of a point, by seed.
Runs = Mapping[int, Metrics]


@dataclass(frozen=True)
class Told:
    """Mean of one metric at a point, and its relative change against the baseline."""

    value: Interval
    #: Change of the mean against the baseline (0.1: 10 % more); None where the baseline is 0.
    change: Interval | None
    #: Value of each seed, from which ``value`` is computed.
    values: tuple[float, ...] = ()
    #: Change of each seed, from which ``change`` is computed.
    changes: tuple[float, ...] = ()


#: States of a limit at a point. The function ``judge`` has the rule; with one seed a limit is
#: undecided.
MET, MISSED, UNDECIDED = "met", "missed", "undecided"


@dataclass(frozen=True)
class Judged:
    """Result of the comparison of an estimate (mean with interval) with a limit."""

    #: ``MET``, ``MISSED`` or ``UNDECIDED``, by the intervals of the mean and of the median.
    state: str
    #: Distance of the estimate beyond the bound, as a share of the bound; the plain difference for
    #: a relative limit or a bound of 0. The distance is 0 or less where the estimate is allowed.
    missed: float
    #: Number of seeds whose own value is beyond the bound.
    beyond: int = 0


@dataclass(frozen=True)
class Kept:
    """Comparison of a point with a limit: whether the point meets the limit, and the distance."""

    told: Told
    #: Distance of the mean beyond the bound, as a share of the bound; the plain difference for a
    #: relative limit or a bound of 0. The distance is 0 or less if the mean is allowed.
    missed: float
    #: Whether the state of the limit at the point is ``MET``.
    surely: bool
    #: Number of seeds whose own value is beyond the bound.
    beyond: int


def told(metric: str, ours: Runs, base: Runs, confidence: float) -> Told:
    """Return a metric's mean and its change against the baseline, with intervals over seeds.

    ``ours`` are the runs of the point, ``base`` those of the baseline. The change is None where a
    value of the baseline is 0, unless all values of both points are 0. Raises ``KeyError`` where a
    run lacks the metric.
    """
    seeds = [seed for seed in ours if seed in base]
    values = [ours[seed][metric] for seed in seeds]
    against = [base[seed][metric] for seed in seeds]
    shares: list[float] = []
    if all(against):
        shares = [
            value / other - 1 if other > 0 else (value - other) / abs(other)
            for value, other in zip(values, against, strict=True)
        ]
    elif not any(values) and not any(against):
        shares = [0.0] * len(values)
    change = mean_interval(shares, confidence) if shares else None
    return Told(mean_interval(values, confidence), change, tuple(values), tuple(shares))


def kept(limit: Limit, ours: Runs, base: Runs, confidence: float) -> Kept:
    """Return whether a point meets a limit, and by how much the point misses the limit.

    ``ours`` are the runs of the point, ``base`` those of the baseline.
    """
    found = told(limit.metric, ours, base, confidence)
    interval, each = found.value, found.values
    if limit.relative:
        # With a baseline of 0 there is no relative change: a value above 0 counts as an infinite
        # increase.
        interval = found.change or Interval(found.value.n, math.inf, None, None)
        each = found.changes
    judged = judge(limit, interval, each, confidence)
    return Kept(found, judged.missed, judged.state == MET, judged.beyond)


def judge(
    limit: Limit, interval: Interval, each: Sequence[float] = (), confidence: float = CONFIDENCE
) -> Judged:
    """Return whether a point of a sweep meets a limit, misses it, or is undecided.

    ``interval`` is the mean over the seeds with its confidence interval, ``each`` the value of each
    seed; for a relative limit, both are changes against the baseline.

    - Missed: the mean is beyond the bound, and the whole interval of the mean or of the median is
      beyond the bound.
    - Met: the whole interval of the mean is on the allowed side, and the interval of the median is
      not completely beyond the bound.
    - Undecided: all other cases. A point can be undecided although all its seeds are on the allowed
      side, because the limit concerns the mean, and a further run could be far beyond the limit.
    """
    scale = 1.0 if limit.relative else abs(limit.bound) or 1.0
    missed = (limit.bound - interval.value if limit.least else interval.value - limit.bound) / scale
    is_allowed = allows(limit, interval.value)
    if not is_allowed:
        # A value that is equal to the bound misses a strict limit (< or >).
        missed = max(missed, sys.float_info.min)
    beyond = sum(not allows(limit, value) for value in each)
    mean = _side(limit, interval)
    median = _side(limit, percentile_interval(each, 0.5, confidence)) if len(each) > 1 else None
    state = UNDECIDED
    if not is_allowed and MISSED in {mean, median}:
        state = MISSED
    elif mean == MET and median != MISSED:
        state = MET
    return Judged(state, missed, beyond)


def mean(each: Sequence[float], stopped: int, confidence: float) -> Interval:
    """Return the mean of one value for each seed, with its confidence interval.

    If runs were stopped early (``stopped`` is their number), ``each`` has their least values, and
    the mean has no interval: the spread of least values near the limit is small, whatever the
    spread of the values of complete runs. So ``judge`` decides by the median alone. The median
    needs only the order of the values: a least value beyond the limit shows that the value is, too.
    """
    if stopped:
        return Interval(len(each), math.fsum(each) / len(each), None, None)
    return mean_interval(each, confidence)


def _side(limit: Limit, interval: Interval) -> str | None:
    """Return ``MET`` or ``MISSED`` if a whole interval is on one side of a limit; else None."""
    if interval.low is None or interval.high is None:
        return None
    allowed = {allows(limit, interval.low), allows(limit, interval.high)}
    if len(allowed) > 1:
        return None
    return MET if allowed.pop() else MISSED


def allows(limit: Limit, value: float) -> bool:
    """Whether a value is on the allowed side of a limit."""
    if limit.strict:
        return value > limit.bound if limit.least else value < limit.bound
    return value >= limit.bound if limit.least else value <= limit.bound


def values(goals: Sequence[Goal], ours: Runs) -> tuple[float, ...]:
    """Return a point's means by goal, negated where more is better, so that less is better.

    ``ours`` are the runs of the point, by seed.
    """
    return tuple(
        math.fsum(run[goal.metric] for run in ours.values()) / len(ours) * (-1 if goal.more else 1)
        for goal in goals
    )


def score(goals: Sequence[Goal], ours: Metrics, base: Metrics) -> float:
    """Return the weighted sum of log(goal / baseline) over the goals of a run; less is better.

    ``ours`` are the metrics of the run, ``base`` those of the baseline with the same seed.
    """
    total = 0.0
    for goal in goals:
        value, other = ours[goal.metric], base[goal.metric]
        if value > 0 and other > 0:
            gone = math.log(value / other)
        else:  # this ratio has no logarithm: use the difference as a share of the larger value
            gone = (value - other) / (max(abs(value), abs(other)) or 1.0)
        total += goal.weight * (-gone if goal.more else gone)
    return total


def mean_score(goals: Sequence[Goal], ours: Runs, base: Runs) -> float:
    """Return the mean over the seeds of a point's score; less is better.

    Only seeds that the point (``ours``) and the baseline (``base``) have in common count.
    """
    seeds = [seed for seed in ours if seed in base]
    return math.fsum(score(goals, ours[seed], base[seed]) for seed in seeds) / len(seeds)


def score_difference(
    goals: Sequence[Goal], ours: Runs, theirs: Runs, base: Runs, confidence: float
) -> Interval:
    """Return the mean of score(``ours``) − score(``theirs``) over seeds, with a paired interval."""
    seeds = [seed for seed in ours if seed in theirs and seed in base]
    return paired_interval(
        [score(goals, ours[seed], base[seed]) for seed in seeds],
        [score(goals, theirs[seed], base[seed]) for seed in seeds],
        confidence,
    )


@dataclass(frozen=True)
class Standing:
    """Values by which points are ordered: missed limits first, then the means of the goals."""

    number: int
    values: tuple[float, ...]
    #: Sum of the shares by which the point misses its limits.
    missed: float


def dominates(a: Standing, b: Standing) -> bool:
    """Whether ``a`` dominates ``b``: misses limits by less, or is better in the goals.

    If neither misses a limit, ``a`` is better if it is worse in no goal and better in one.
    """
    if a.missed > 0 or b.missed > 0:
        return a.missed < b.missed
    return a.values != b.values and all(x <= y for x, y in zip(a.values, b.values, strict=True))


def fronts(points: Sequence[Standing]) -> list[list[Standing]]:
    """Return the Pareto fronts: only points of earlier fronts dominate the points of a front."""
    left, found = list(points), []
    while left:
        front = first_front(left)
        numbers = {p.number for p in front}
        left = [p for p in left if p.number not in numbers]
        found.append(front)
    return found


def first_front(points: Sequence[Standing]) -> list[Standing]:
    """Return the points that no other dominates, in the given order."""
    front: list[Standing] = []
    # In this order only earlier points can dominate a point. If any point dominates it, then so
    # does a point on the front.
    for point in sorted(points, key=lambda p: (max(p.missed, 0.0), p.values)):
        if not any(dominates(other, point) for other in front):
            front.append(point)
    numbers = {point.number for point in front}
    return [point for point in points if point.number in numbers]


def order(points: Sequence[Standing]) -> list[Standing]:
    """Return points from the best to the worst: front by front, the least crowded points first."""
    ordered: list[Standing] = []
    for front in fronts(points):
        room = _crowding_distances(front)
        ordered += sorted(front, key=lambda p: (-room[p.number], p.number))
    return ordered


def _crowding_distances(front: Sequence[Standing]) -> dict[int, float]:
    """Return the crowding distances of the points of a front by their number (NSGA-II)."""
    room = {p.number: 0.0 for p in front}
    for place in range(len(front[0].values) if front else 0):
        line = sorted(front, key=lambda p: (p.values[place], p.number))
        width = line[-1].values[place] - line[0].values[place]
        room[line[0].number] = room[line[-1].number] = math.inf
        if width > 0:
            for before, here, after in zip(line, line[1:], line[2:], strict=False):
                room[here.number] += (after.values[place] - before.values[place]) / width
    return room


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Return Spearman's rank correlation; None below 4 pairs, or if ``a`` or ``b`` is constant."""
    if len(a) < 4 or len({*a}) < 2 or len({*b}) < 2:
        return None
    from scipy.stats import spearmanr  # noqa: PLC0415  slow to load

    return float(spearmanr(a, b).statistic)


def as_json(interval: Interval | None) -> dict[str, Any] | None:
    """Return an interval as an object with ``n``, ``mean``, ``low``, ``high``; None if unknown."""
    if interval is None:
        return None
    return {
        "n": interval.n, "mean": interval.value, "low": interval.low, "high": interval.high,
    }  # fmt: skip
