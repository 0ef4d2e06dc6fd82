"""Confidence intervals of measurements of independent runs.

One run is one observation: packets and flows within a run depend on each other, runs with different
seeds do not. Every function has one number per run as input.

* mean: Student t, ``mean ± t(1 − α/2, n − 1) · s / √n`` (Law, Simulation Modeling and Analysis,
  5th ed., eq. 4.12). It assumes values that are about normal, such as means over many flows.
* difference of two settings run with the same seeds: Student t on the differences per seed (paired
  t; Law, section 10.2.1). Common random numbers make this interval narrow.
* percentile over runs: between two order statistics, chosen by the binomial distribution (David and
  Nagaraja, Order Statistics, 3rd ed., section 7.1). It needs no assumption on the distribution,
  covers at least the confidence level, and does not exist for few runs (median: fewer than 6 at
  95 %).

A percentile *within* a run, such as the p99 of its flows, is one number per run; the interval of
the mean over runs applies to this number. Summaries, tables and pages compute the percentile by
:func:`percentile_of_ordered`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

#: Confidence level: the share of intervals that cover the true value.
CONFIDENCE = 0.95

#: Names of the methods for confidence intervals, which summaries and reports of sweeps show.
METHODS = {
    "mean": "Student t over runs (one value per run)",
    "difference": "paired Student t over the seeds that both settings have",
    "median": "order statistics over runs (binomial, distribution-free, at least the confidence)",
}


@dataclass(frozen=True)
class Interval:
    """An estimate and its confidence interval.

    ``n`` is the number of values, one for each run. ``low`` and ``high`` are None where there are
    too few runs.
    """

    n: int
    value: float
    low: float | None
    high: float | None

    @property
    def relative_half_width(self) -> float:
        """Half the interval's width divided by the absolute estimate; infinite where unknown."""
        if self.low is None or self.high is None:
            return math.inf
        half = (self.high - self.low) / 2
        if half == 0:
            return 0.0
        return half / abs(self.value) if self.value else math.inf


class _Ordered(Protocol):
    """Values in ascending order: a list, an array or a column of a table."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int, /) -> Any: ...


def percentile_of_ordered(ordered: _Ordered, share: float) -> float:
    """Return the least value ``v`` such that at least ``share`` (0 to 1) of the values is ≤ ``v``.

    ``ordered`` is ascending and has at least one value. ``summary.json`` uses this definition of
    percentiles.
    """
    place = min(max(math.ceil(share * len(ordered)), 1), len(ordered)) - 1
    return float(ordered[place])


def standard_deviation(values: Sequence[float]) -> float | None:
    """Return the sample standard deviation (n − 1), or None for fewer than two values."""
    if len(values) < 2:
        return None
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))


@functools.cache
def t_quantile(probability: float, degrees: int) -> float:
    """Return the quantile ``probability`` of Student's t with ``degrees`` degrees of freedom."""
    from scipy.special import stdtrit  # noqa: PLC0415  slow to load

    return float(stdtrit(degrees, probability))


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Return the mean with its Student t interval. Raises ``ValueError`` without values."""
    _refuse(values, confidence)
    n = len(values)
    mean = math.fsum(values) / n
    spread = standard_deviation(values)
    if spread is None:
        return Interval(n, mean, None, None)
    half = t_quantile((1 + confidence) / 2, n - 1) * spread / math.sqrt(n)
    return Interval(n, mean, mean - half, mean + half)


def paired_interval(
    values: Sequence[float], baseline: Sequence[float], confidence: float = CONFIDENCE
) -> Interval:
    """Return the mean of ``values[i] - baseline[i]`` with its interval; index ``i`` is the seed."""
    differences = [a - b for a, b in zip(values, baseline, strict=True)]
    return mean_interval(differences, confidence)


def percentile(values: Sequence[float], q: float) -> float:
    """Return the least value ``v`` such that at least ``q`` (0 to 1) of the values is ≤ ``v``."""
    return percentile_of_ordered(sorted(values), q)


def percentile_interval(
    values: Sequence[float], q: float, confidence: float = CONFIDENCE
) -> Interval:
    """Return a percentile over runs (``q`` 0 to 1) with its interval between order statistics.

    The number of values below the true percentile is binomial (n, q). With α = 1 − ``confidence``,
    ``low`` is the largest order statistic that is above the true percentile with probability at
    most α/2, and ``high`` the smallest that is below the true percentile with probability at most
    α/2.
    """
    _refuse(values, confidence)
    if not 0 < q < 1:
        raise ValueError(f"q is {q}: must be above 0 and below 1 (0.5 is the median)")
    ordered = sorted(values)
    low, high = _order_statistics(len(values), q, confidence)
    return Interval(
        len(values),
        percentile(values, q),
        None if low is None else ordered[low - 1],
        None if high is None else ordered[high - 1],
    )


@functools.cache
def _order_statistics(n: int, q: float, confidence: float) -> tuple[int | None, int | None]:
    """Return (low, high): ranks, from 1, of the ends of a percentile's confidence interval.

    ``n`` is the number of values, ``q`` the percentile (0 to 1). An end is None where ``n`` is too
    small.
    """
    from scipy.special import bdtr  # noqa: PLC0415  slow to load

    tail = (1 - confidence) / 2
    # P(B < rank), B ~ binomial (n, q): probability that the value of this rank is above the
    # percentile.
    above = {rank: float(bdtr(rank - 1, n, q)) for rank in range(1, n + 1)}
    low = max((rank for rank, p in above.items() if p <= tail), default=None)
    high = min((rank for rank, p in above.items() if 1 - p <= tail), default=None)
    return low, high


def runs_needed(interval: Interval, relative_half_width: float, at_most: int) -> int:
    """Return the number of runs after which an interval should reach ``relative_half_width``.

    The number is extrapolated from the present width of the interval. It is at least one more than
    the number of runs so far, and at most twice that number, because the spread of a few runs is
    not reliable. It is never above ``at_most``.
    """
    n = interval.n
    ratio = interval.relative_half_width / relative_half_width
    wanted = 2 * n if not math.isfinite(ratio) else math.ceil(n * min(ratio, 2.0) ** 2)
    return min(at_most, max(n + 1, min(2 * n, wanted)))


def _refuse(values: Sequence[float], confidence: float) -> None:
    if not values:
        raise ValueError("an interval needs at least one value")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}: must be above 0 and below 1, such as 0.95")
