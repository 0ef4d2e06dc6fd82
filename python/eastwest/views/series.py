"""Series of numbers: time bins, intervals in progress, cumulative shares, lanes for intervals."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eastwest import stats

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Bins:
    """Equal intervals of simulated time from 0 on."""

    #: Length of an interval in s.
    step: float
    #: Number of intervals.
    count: int

    @property
    def edges(self) -> Floats:
        """Borders of the intervals in s, one more than there are intervals."""
        return np.asarray(np.arange(self.count + 1) * self.step)

    def of(self, times: Floats) -> npt.NDArray[np.int64]:
        """Return for each time in s the number of its interval, from 0 to ``count`` − 1.

        A time at the border of two intervals belongs to the earlier interval, because a sample has
        the time of the end of its interval.
        """
        place = np.ceil(times / self.step - 1e-6) - 1
        return np.asarray(np.clip(np.nan_to_num(place), 0, self.count - 1), dtype=np.int64)

    def sums(self, times: Floats, values: Floats) -> Floats:
        """Return for each interval the sum of the values whose times (s) are in the interval."""
        sums = np.bincount(self.of(times), weights=values, minlength=self.count)
        return np.asarray(sums, dtype=np.float64)


def in_progress(starts: Floats, ends: Floats, edges: Floats) -> Floats:
    """Return an array (len(edges) − 1): mean number of activities in progress in each time bin.

    An activity lasts from a time in ``starts`` to the time in ``ends`` at the same index; ``edges``
    are the borders of the bins. All times are in s.
    """
    count = edges.size - 1
    widths = np.where(np.diff(edges) > 0, np.diff(edges), 1.0)
    # Number of activities in progress before each bin. It is a whole number, so bins without a
    # start or an end have no rounding error.
    running = np.zeros(count + 1, dtype=np.int64)
    part = np.zeros(count)
    for times, sign in ((starts, 1), (ends, -1)):
        inside = times[times < edges[-1]]
        place = np.maximum(np.searchsorted(edges, inside, side="right") - 1, 0)
        running += sign * np.bincount(place + 1, minlength=count + 1)
        rest = np.minimum(edges[place + 1] - inside, widths[place])
        part += sign * np.bincount(place, weights=rest / widths[place], minlength=count)
    return np.maximum(np.cumsum(running)[:-1] + part, 0.0)


def most_at_once(starts: Floats, ends: Floats) -> int:
    """Return the largest number of activities in progress at one time.

    An activity lasts from a time in ``starts`` to the time in ``ends`` at the same index.
    """
    times = np.concatenate([starts, ends])
    steps = np.repeat([1, -1], starts.size)
    # At equal times, ends come before starts: a slot with consecutive tasks holds one task at a
    # time.
    running = np.cumsum(steps[np.lexsort((steps, times))])
    return int(running.max(initial=0))


def covered(spans: list[tuple[float, float]]) -> float:
    """Return the length of the union of the intervals ``spans``, each (begin, end)."""
    total, until = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


def percentile(values: Floats, share: float) -> float | None:
    """Return the percentile ``share`` (0 to 1) of the finite values; None without finite values.

    The result is the least value ``v`` such that at least ``share`` of the values is ≤ ``v``.
    """
    ordered = np.sort(values[np.isfinite(values)])
    return stats.percentile_of_ordered(ordered, share) if ordered.size else None


def cumulative(values: Floats) -> tuple[Floats, Floats]:
    """Return two arrays: the finite values in ascending order, and the share (0 to 1) up to each.

    The last share is 1.
    """
    ordered = np.sort(values[np.isfinite(values)])
    return ordered, np.arange(1, ordered.size + 1) / max(1, ordered.size)


class Lanes:
    """Lanes for overlapping intervals of time: an interval gets the first lane that is free."""

    def __init__(self) -> None:
        #: Number of lanes with at least one interval so far.
        self.count = 0
        self._busy: list[tuple[float, int]] = []
        self._free: list[int] = []

    def place(self, begin: float, end: float) -> int:
        """Return the number of the lane (from 0) of an interval, and occupy it up to ``end``.

        Intervals must be placed in the order of their begin.
        """
        while self._busy and self._busy[0][0] <= begin:
            heapq.heappush(self._free, heapq.heappop(self._busy)[1])
        if self._free:
            lane = heapq.heappop(self._free)
        else:
            lane = self.count
            self.count += 1
        heapq.heappush(self._busy, (max(begin, end), lane))
        return lane
