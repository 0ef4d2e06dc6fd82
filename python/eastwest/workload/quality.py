"""Similarity of a trace to its source: distances, compared with those of resamples of the source.

The reference is a *block bootstrap* (Künsch 1989). A resample consists of windows of the source,
drawn with replacement, as many as the tested trace has. Correlations within a window remain. Each
resample has some distance to the whole source. The interval of a distance runs from 0 to the 95th
percentile of this distance over a thousand resamples. The distance of a trace is *inside* if it
does not exceed the upper end of the interval.

With many distances, some are outside by chance: even among resamples of the source, only a share
has all distances inside. The table shows this share for comparison.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from eastwest.errors import InputError
from eastwest.workload.distance import MOST_WINDOWS, Cut, Energy, Marginal, common
from eastwest.workload.jobs import WORDS, Floats, Jobs

#: Number of resamples of the source's windows that give the intervals of the distances.
REPLICATES = 1000
#: Share of the resamples whose distance lies in the interval of this distance.
CONFIDENCE = 0.95
#: Below this number of windows, resamples represent the variation of the source badly.
FEW_WINDOWS = 10
#: Default length of a window, in seconds.
WINDOW_S = 3600.0
#: Number of windows into which a trace shorter than a day is cut by default.
_CUTS = 24
_BATCH = 50


@dataclass(frozen=True)
class Row:
    """Distance between a trace and its source: one quantity, one measure, with the interval."""

    quantity: str
    measure: str
    value: float
    #: Median of the distances between resamples of the source and the source.
    typical: float
    #: 95th percentile of the distances between resamples of the source and the source.
    limit: float
    #: Whether ``value`` is at most ``limit``.
    inside: bool


@dataclass(frozen=True)
class Quality:
    """All distances between a trace and its source, with their intervals."""

    rows: tuple[Row, ...]
    window_s: float
    #: Number of windows of the source.
    windows: int
    #: Number of windows of the trace, which is also the number of windows in a resample.
    drawn: int
    #: Share of the resamples of the source whose distances are all inside the intervals.
    own_share: float
    seed: int

    @property
    def inside(self) -> bool:
        """Whether every distance of the trace is inside its interval."""
        return all(row.inside for row in self.rows)

    @property
    def outside(self) -> int:
        """Number of distances of the trace that are outside their intervals."""
        return sum(not row.inside for row in self.rows)


def window_for(jobs: Jobs) -> float:
    """Return the default length of a window in s for a trace with these jobs.

    The length is 1 h; or 1/24 of the trace if the trace is shorter than a day; or several whole
    hours if the trace is longer than 2,500 h, so that there are at most 2,500 windows.
    """
    hours = math.ceil(jobs.last_s / WINDOW_S / (MOST_WINDOWS / 2))
    return min(WINDOW_S * max(1, hours), max(jobs.last_s, 1e-6) / _CUTS)


class ReferenceInterval:
    """Source trace, divided into windows; ``measure`` compares other traces with the source."""

    def __init__(self, source: Jobs, window_s: float | None = None, seed: int = 1) -> None:
        self.window_s = window_for(source) if window_s is None else window_s
        self._source = Cut.of(source, self.window_s)
        self._seed = seed

    def measure(self, trace: Jobs) -> Quality:
        """Return the distances between ``trace`` and the source, with intervals from resamples.

        Raises ``InputError`` if the traces have no quantity in common.
        """
        cut = Cut.of(trace, self.window_s)
        names = common(self._source, cut)
        if not names:
            raise InputError("the two traces have no quantity in common that can be compared")
        weights = self._draw(cut.windows)
        rows, own = [], np.ones(REPLICATES, dtype=bool)
        for quantity, measure, value, found in self._distances(names, cut, weights):
            limit = float(np.quantile(found, CONFIDENCE, method="inverted_cdf"))
            typical = float(np.median(found))
            own &= found <= limit
            rows.append(Row(quantity, measure, value, typical, limit, value <= limit))
        return Quality(
            tuple(rows),
            self.window_s,
            self._source.windows,
            cut.windows,
            float(own.mean()),
            self._seed,
        )

    def _draw(self, windows: int) -> Floats:
        """Return an array (resamples, windows of the source): how often each window is drawn.

        A resample has ``windows`` windows; a resample without any job is drawn again.
        """
        random = np.random.default_rng([self._seed, 2])
        share = np.full(self._source.windows, 1 / self._source.windows)
        drawn = random.multinomial(windows, share, size=REPLICATES).astype(np.float64)
        busy = self._source.counts > 0
        for row in np.flatnonzero(~(drawn[:, busy].any(axis=1))):
            while not drawn[row, busy].any():
                drawn[row] = random.multinomial(windows, share)
        return drawn

    def _distances(
        self, names: tuple[str, ...], cut: Cut, weights: Floats
    ) -> Iterator[tuple[str, str, float, Floats]]:
        """Yield (quantity, measure, distance of the trace, distances of the source's resamples).

        All distances are to the source. ``names`` are the compared quantities, ``cut`` is the
        tested trace; ``weights`` is an array (resamples, windows): how often each window is in each
        resample.
        """
        for name in names:
            marginal = Marginal.of(name, self._source, cut)
            ks, wasserstein = marginal.to_second()
            parts = [
                marginal.to_resamples(weights[start : start + _BATCH])
                for start in range(0, len(weights), _BATCH)
            ]
            yield WORDS[name], "Kolmogorov–Smirnov", ks, np.concatenate([p[0] for p in parts])
            wide = np.concatenate([p[1] for p in parts])
            yield WORDS[name], "Wasserstein (log10)", wasserstein, wide
        energy = Energy.of(names, self._source, cut)
        yield "all jointly", "energy", energy.to_second(), energy.to_resamples(weights)


def compare(first: Jobs, second: Jobs, window_s: float | None = None, seed: int = 1) -> Quality:
    """Return the distances between a trace and its source, with intervals from resamples.

    ``first`` is the source, ``second`` the trace. ``window_s`` is the length of a window in s; None
    means the length of ``window_for``. ``seed`` is the seed of the resamples.
    """
    return ReferenceInterval(first, window_s, seed).measure(second)
