"""Distances between the distributions of two traces; no type of distribution is assumed.

* Kolmogorov–Smirnov: the largest difference of the cumulative shares, ``D = sup |F − G|``; from 0
  to 1, independent of the unit.
* Wasserstein (order 1): ``W = ∫ |F − G| dx`` over ``x = log10(1 + value)``: the mean number of
  decades by which values must be moved to turn one distribution into the other.
* Energy (Székely and Rizzo 2013): ``E = 2·E|X − Y| − E|X − X'| − E|Y − Y'|``, over all dimensions
  jointly, so that it also detects a change of correlations. Every dimension is
  ``log10(1 + value)`` divided by its standard deviation in the first trace.

Jobs belong to *windows* of time (module `jobs`), and the jobs of the first trace are counted by
window. A resample of the trace is a weighted sum of these counts, so the distances of a thousand
resamples cost one matrix product (module `quality`).

A distribution is evaluated at most at 20,000 distinct values (fewer with more than 500 windows),
which are evenly spaced by rank. The energy distance uses at most 6,000 jobs of each trace, evenly
spaced through the trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from eastwest.errors import InputError
from eastwest.workload.jobs import BYTES, WORK, Floats, Jobs, Whole, evenly, spread

#: Maximum number of distinct values at which a distribution is evaluated.
MOST_VALUES = 20_000
#: Maximum number of counts (windows × values) in memory; with many windows, fewer values are used.
_MOST_CELLS = 10_000_000
#: Maximum number of windows of a trace.
MOST_WINDOWS = 5_000
#: Maximum number of jobs of each trace in the energy distance.
MOST_ENERGY_JOBS = 6_000
_CHUNK = 1_000


@dataclass(frozen=True)
class Cut:
    """Jobs of a trace, divided into windows of time of equal length."""

    jobs: Jobs
    window_s: float
    windows: int
    #: Number of the window of each job; jobs after the last whole window are left out.
    window: Whole
    #: Values of each quantity for the jobs in ``window``, by name; ``gap_s`` is the time in s since
    #: the previous submission, or since the start of the window for the first job of a window.
    values: Mapping[str, Floats]

    @classmethod
    def of(cls, jobs: Jobs, window_s: float) -> Cut:
        """Return the jobs of a trace, divided into whole windows of ``window_s`` seconds.

        Raises ``InputError`` if no whole window has jobs, or if there are too many windows.
        """
        windows = jobs.windows(window_s)
        if windows > MOST_WINDOWS:
            raise InputError(
                f"{jobs.where}the trace has {windows:,} windows of {window_s:g} s, "
                f"but at most {MOST_WINDOWS:,} are allowed: use longer windows"
            )
        window = jobs.window(window_s)
        inside = window < windows
        if not inside.any():
            raise InputError(
                f"{jobs.where}no whole window of {window_s:g} s has jobs: the last "
                f"job comes after {jobs.last_s:g} s; use shorter windows"
            )
        values = {name: column[inside] for name, column in jobs.known.items()}
        values["gap_s"] = jobs.gaps(window_s)[inside]
        return cls(jobs, window_s, windows, window[inside], values)

    @property
    def counts(self) -> Floats:
        """Number of jobs in each window."""
        return np.bincount(self.window, minlength=self.windows).astype(np.float64)


def common(first: Cut, second: Cut) -> tuple[str, ...]:
    """Return the names of the quantities that both traces have, bytes first, then ``gap_s``."""
    both = first.values.keys() & second.values.keys()
    return tuple(name for name in (*BYTES, "gap_s", *WORK) if name in both)


@dataclass(frozen=True)
class Marginal:
    """Cumulative distributions of one quantity in two traces, from which distances follow."""

    #: Values of the quantity at which jobs are counted, as ``log10(1 + value)``.
    at: Floats
    #: Array (windows, values): number of jobs of the first trace up to each value, by window.
    first: Floats
    #: Array (values): number of jobs of the second trace up to each value, over all windows.
    second: Floats

    @classmethod
    def of(cls, name: str, first: Cut, second: Cut) -> Marginal:
        """Return the distributions of the quantity ``name`` in the two traces."""
        one, other = first.values[name], second.values[name]
        known, known_other = ~np.isnan(one), ~np.isnan(other)
        one, window = one[known], first.window[known]
        support = np.unique(np.concatenate([one, other[known_other]]))
        most = min(MOST_VALUES, _MOST_CELLS // first.windows)
        support = support[evenly(support.size, most)]
        place = np.searchsorted(support, one)
        counts = np.bincount(
            window * support.size + place, minlength=first.windows * support.size
        ).reshape(first.windows, support.size)
        in_second = np.bincount(
            np.searchsorted(support, other[known_other]), minlength=support.size
        )
        return cls(
            spread(support),
            np.cumsum(counts, axis=1, dtype=np.float64),
            np.cumsum(in_second, dtype=np.float64),
        )

    def to_second(self) -> tuple[float, float]:
        """Return (Kolmogorov–Smirnov distance, Wasserstein distance) between the two traces."""
        ks, wasserstein = self._apart(_share(self.second[None, :]))
        return float(ks[0]), float(wasserstein[0])

    def to_resamples(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return two arrays (resamples): Kolmogorov–Smirnov and Wasserstein distances.

        The distances are between the first trace and each of its resamples. ``weights`` is an array
        (resamples, windows): how often each window is in each resample.
        """
        return self._apart(_share(weights @ self.first))

    def _apart(self, shares: Floats) -> tuple[Floats, Floats]:
        apart = np.abs(shares - _share(self.first.sum(axis=0)[None, :]))
        return apart.max(axis=1), apart[:, :-1] @ np.diff(self.at)


def _share(cumulative: Floats) -> Floats:
    """Return cumulative counts, an array (rows, values), divided by the last count of each row.

    A row without counts gives zeros.
    """
    return np.asarray(cumulative / np.maximum(cumulative[:, -1:], 1e-300))


@dataclass(frozen=True)
class Energy:
    """Distances between pairs of jobs of two traces, summed, from which energy distances follow."""

    #: Number of jobs of the first trace in each window.
    counts: Floats
    #: Array (windows, windows): sum of the distances between all jobs of two windows of the first
    #: trace.
    within: Floats
    #: (Mean distance between two jobs of the second trace, mean distance between a job of the first
    #: and a job of the second trace); zeros if a trace has no jobs with known values.
    second: tuple[float, float]

    @classmethod
    def of(cls, names: Sequence[str], first: Cut, second: Cut) -> Energy:
        """Return the sums of distances between jobs of the traces ``first`` and ``second``.

        ``names`` are the quantities that are the dimensions; jobs with an unknown value in one of
        them are left out.
        """
        one, window = _points(names, first)
        other, _ = _points(names, second)
        if not len(one) or not len(other):
            return cls(np.zeros(first.windows), np.zeros((first.windows,) * 2), (0.0, 0.0))
        scale = one.std(axis=0)
        scale[scale == 0] = 1.0
        one, other = one / scale, other / scale
        order = np.argsort(window, kind="stable")
        one, window = one[order], window[order]
        within = np.zeros((first.windows, first.windows))
        starts = np.searchsorted(window, np.arange(first.windows))
        filled = np.flatnonzero(np.bincount(window, minlength=first.windows))
        between = 0.0
        for start in range(0, len(one), _CHUNK):
            part = one[start : start + _CHUNK]
            columns = np.add.reduceat(cdist(part, one), starts[filled], axis=1)
            for row, line in zip(window[start : start + _CHUNK], columns, strict=True):
                within[row, filled] += line
            between += float(cdist(part, other).sum())
        second_sum = sum(
            float(cdist(other[start : start + _CHUNK], other).sum())
            for start in range(0, len(other), _CHUNK)
        )
        return cls(
            np.bincount(window, minlength=first.windows).astype(np.float64),
            within,
            (second_sum / len(other) ** 2, between / (len(one) * len(other))),
        )

    @property
    def _own(self) -> float:
        return float(self.within.sum() / max(1.0, self.counts.sum()) ** 2)

    def to_second(self) -> float:
        """Return the energy distance between the two traces."""
        own, (second, between) = self._own, self.second
        return max(0.0, 2 * between - own - second)

    def to_resamples(self, weights: Floats) -> Floats:
        """Return an array (resamples): energy distance between the first trace and each resample.

        ``weights`` is an array (resamples, windows): how often each window is in each resample.
        """
        jobs = np.maximum(weights @ self.counts, 1.0)
        total = max(1.0, float(self.counts.sum()))
        between = (weights @ self.within.sum(axis=1)) / (jobs * total)
        inside = np.einsum("bi,ij,bj->b", weights, self.within, weights, optimize=True) / jobs**2
        return np.asarray(np.maximum(2 * between - inside - self._own, 0.0))


def _points(names: Sequence[str], cut: Cut) -> tuple[Floats, Whole]:
    """Return (jobs as points, an array (jobs, dimensions); window of each of these jobs).

    The dimensions are ``log10(1 + value)`` of the quantities ``names``. Jobs with an unknown value
    are left out; at most ``MOST_ENERGY_JOBS`` jobs are returned.
    """
    whole = np.ones(cut.window.size, dtype=bool)
    for name in names:
        whole &= ~np.isnan(cut.values[name])
    place = np.flatnonzero(whole)
    place = place[evenly(place.size, MOST_ENERGY_JOBS)]
    columns = [spread(cut.values[name][place]) for name in names]
    return np.column_stack(columns) if columns else np.zeros((0, 0)), cut.window[place]
