"""Whether a trace could be a piece of another: its distances against those of the other's own days.

*Block bootstrap* (Künsch 1989): days of the source's own windows, drawn with replacement, as many
as the trace in question has, keep what goes together within a window. Each such day lies some
distance away from the whole source. The interval of a distance runs from 0 to what 95 % of a
thousand such days stay below; it has one side, as nothing can lie too near. A synthetic trace is
*inside* where its distance is no larger.

With many rows some miss by chance: of the source's own days too, only a share lies inside in every
row. That share is told beside the table, for the reader to judge by.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from eastwest.errors import InputError
from eastwest.workload.distance import MOST_WINDOWS, Cut, Energy, Marginal, common
from eastwest.workload.jobs import WORDS, Floats, Jobs

#: Days of the source's own windows.
REPLICATES = 1000
CONFIDENCE = 0.95
#: Fewer windows than this say little about how the source varies.
FEW_WINDOWS = 10
#: Length of a window where none is named, and the number of windows a shorter trace is cut into.
WINDOW_S = 3600.0
_CUTS = 24
_BATCH = 50


@dataclass(frozen=True)
class Row:
    """One distance."""

    quantity: str
    measure: str
    value: float
    #: Median, and what 95 % of the source's own days stay below.
    typical: float
    limit: float
    inside: bool


@dataclass(frozen=True)
class Quality:
    """All distances between a source and a trace."""

    rows: tuple[Row, ...]
    window_s: float
    #: Windows of the source, and windows in a day of the bootstrap.
    windows: int
    drawn: int
    #: Share of the source's own days that lie inside in every row.
    own_share: float
    seed: int

    @property
    def inside(self) -> bool:
        """Whether every distance lies inside."""
        return all(row.inside for row in self.rows)

    @property
    def outside(self) -> int:
        """The number of distances outside their limits."""
        return sum(not row.inside for row in self.rows)


def window_for(jobs: Jobs) -> float:
    """An hour; a twenty-fourth of a trace shorter than a day; for years, some hours."""
    hours = math.ceil(jobs.last_s / WINDOW_S / (MOST_WINDOWS / 2))
    return min(WINDOW_S * max(1, hours), max(jobs.last_s, 1e-6) / _CUTS)


class Yardstick:
    """A source cut into windows, to which several traces can be held."""

    def __init__(self, source: Jobs, window_s: float | None = None, seed: int = 1) -> None:
        self.window_s = window_for(source) if window_s is None else window_s
        self._source = Cut.of(source, self.window_s)
        self._seed = seed

    def measure(self, trace: Jobs) -> Quality:
        """Compare a trace with the source."""
        cut = Cut.of(trace, self.window_s)
        names = common(self._source, cut)
        if not names:
            raise InputError("the two traces know nothing in common")
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
        """How often each window stands in each of the source's own days; none is without jobs."""
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
        """Quantity, measure, the trace's distance, and those of the source's own days."""
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
    """Distances of a second trace to the first, against those of the first's own days."""
    return Yardstick(first, window_s, seed).measure(second)
