"""Fronts: the points of an optimisation or a sweep that no other point beats."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeVar

from eastwest.views.metrics import METRICS, Metric
from eastwest.views.sweep import Points

_MOST_GOALS = 3
#: Groups of the finalists of an optimisation, in the order of a legend.
GROUPS = (
    "misses a limit",
    "keeps the limits",
    "on the front",
    "candidate",
    "baseline",
    "recommended",
)


Key = TypeVar("Key", bound=Hashable)


def beats(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether ``one`` beats ``other``: no value is greater, and at least one is smaller."""
    both = list(zip(one, other, strict=True))
    return all(a <= b for a, b in both) and any(a < b for a, b in both)


def unbeaten(values: Mapping[Key, Sequence[float]]) -> list[Key]:
    """Return the keys whose values are beaten by no other values; smaller values are better."""
    return [key for key, own in values.items() if not any(beats(v, own) for v in values.values())]


@dataclass(frozen=True)
class Trade:
    """Two metrics of a sweep that are drawn against each other: ``across`` and ``up``.

    Lower values of ``up`` (vertical axis) are better.
    """

    across: Metric
    up: Metric
    #: Whether higher values of ``across`` are better, as for throughput; otherwise lower values are
    #: better.
    more: bool
    #: Means (``across``, ``up``) by number of the point, for points that have both metrics.
    means: dict[int, tuple[float, float]]

    @property
    def front(self) -> list[int]:
        """Numbers of the points that no other point beats in both means, by rising ``across``."""
        sign = -1 if self.more else 1
        best = unbeaten({p: (sign * x, y) for p, (x, y) in self.means.items()})
        return sorted(best, key=lambda p: self.means[p])


def trade(points: Points) -> Trade | None:
    """Return two metrics of a sweep to draw against each other: a tail, and a throughput or time.

    The tail is the first 99th or 99.9th percentile of a time that the sweep shows, or else the
    first 99th percentile in ``METRICS``. The other metric is the first throughput; without one, it
    is the first other time that the sweep shows. A metric counts only if it differs clearly between
    points. Returns None if one of the two metrics is missing, or fewer than two points have both.
    """
    tails = [m for m in points.wanted if _is_tail(m)]
    tails += [m for m in METRICS if m.path[-1] == "p99" and _is_tail(m)]
    up = next((m for m in tails if _differs(points, m)), None)
    rates = [m for m in (*points.wanted, *METRICS) if any(p.endswith("_bps") for p in m.path)]
    across = next((m for m in rates if _differs(points, m)), None)
    if across is None:
        # Two percentiles of one measure are not a trade.
        of = up and up.path[:-1]
        times = (m for m in points.wanted if m.path[:-1] != of and _is_time(m))
        across = next((m for m in times if _differs(points, m)), None)
    if up is None or across is None:
        return None
    x, y = points.of(across), points.of(up)
    means = {p: (x[p].mean, y[p].mean) for p in x if p in y}
    return Trade(across, up, across in rates, means) if len(means) > 1 else None


def _is_time(metric: Metric) -> bool:
    return any(part.endswith(("_us", "_s")) for part in metric.path)


def _is_tail(metric: Metric) -> bool:
    return metric.path[-1] in {"p99", "p999"} and _is_time(metric)


def _differs(points: Points, metric: Metric) -> bool:
    """Whether the confidence intervals of a metric's least and greatest mean do not overlap."""
    found = sorted(points.of(metric).values(), key=lambda each: each.mean)
    return len(found) > 1 and found[0].reach[1] < found[-1].reach[0]


def pairs(summary: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return the pairs of goals to draw against each other: all pairs of the first three goals.

    ``summary`` is the summary of an optimisation; a goal is given by its index in it.
    """
    return list(combinations(range(min(len(summary["goals"]), _MOST_GOALS)), 2))


def group(point: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """Return the group (one of ``GROUPS``) of a finalist of an optimisation.

    ``point`` is the finalist, ``summary`` the summary of the optimisation.
    """
    chosen = summary["recommended"]
    if chosen is not None and point["point"] == chosen["point"]:
        return "recommended"
    if point["origin"] in {"baseline", "candidate"}:
        return str(point["origin"])
    if point["point"] in summary["front"]:
        return "on the front"
    kept = all(limit["kept"] for limit in point["limits"])
    return "keeps the limits" if kept else "misses a limit"


def interval(point: Mapping[str, Any], goal: int, factor: float = 1) -> tuple[float, float, float]:
    """Return (mean, lower end, upper end) of a goal at a finalist, multiplied by ``factor``.

    ``point`` is the finalist, ``goal`` the index of the goal; the ends are those of the confidence
    interval. Without an interval, both are equal to the mean.
    """
    value = point["goals"][goal]["value"]
    ends = (value[end] if value[end] is not None else value["mean"] for end in ("low", "high"))
    low, high = ends
    return value["mean"] * factor, low * factor, high * factor
