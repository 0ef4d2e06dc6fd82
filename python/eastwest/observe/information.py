"""Mutual information between metrics, in nats.

**Discretised.** A metric with at most b distinct values has a class for each of them. Any other
metric of n values is cut into b classes of equal frequency by average rank: values are ranked from
1, ties get the mean r of their ranks, and their class is ⌈r b / n⌉, so that equal values are always
in one class; with many ties some classes are empty. I(X; Y) is the plug-in estimate
Σ p(x, y) ln(p(x, y)/(p(x) p(y))); its bias is about +(b − 1)²/2n (Miller 1955), equal for all
metrics of b classes, and smaller for metrics of fewer classes.

**Nearest neighbours.** The first estimator of Kraskov, Stögbauer and Grassberger (*Estimating
mutual information*, Phys. Rev. E 69, 066138, 2004): with ε the distance to the k-th neighbour in
the plane (greater of both differences), and n_x, n_y points within less than ε along an axis,
I = ψ(n) + ψ(k) − ⟨ψ(n_x + 1) + ψ(n_y + 1)⟩, at least 0. As in scikit-learn's
``mutual_info_regression``, with which tests compare it, metrics are divided by their standard
deviation and get noise of 1e-10 against ties, seeded by the metric's name. Neighbours are found by
scipy's k-d tree. Points along an axis are counted by bisection: a k-d tree takes ten times as long.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from eastwest.observe.metrics import Numbers

#: Minimum mean number of rows per cell of a contingency table of two metrics (Cochran). It limits
#: the default number of classes.
_ROWS_PER_CELL = 5
#: Maximum number of classes into which a metric is cut.
MOST_BINS = 100
#: Standard deviation of the noise that separates equal values of a metric, relative to the mean
#: absolute value of the scaled metric (at least 1).
_NOISE = 1e-10


class Estimator(Protocol):
    """Estimator of the mutual information between the columns of a table."""

    def between(self, first: int, second: int) -> float:
        """Return the mutual information of the columns ``first`` and ``second``, in nats."""

    def column(self, number: int) -> Any:
        """Return column ``number`` for use in ``against``, also in another process."""

    def against(self, number: int, other: Any) -> float:
        """Return the mutual information of column ``number`` and the column ``other``, in nats.

        ``other`` comes from ``column``, of this table or of a table with equally many rows.
        """


def default_bins(rows: int) -> int:
    """Return the default number of classes of a metric, 2 to 10.

    The result is the largest number with which a contingency table of two metrics has on average at
    least ``_ROWS_PER_CELL`` rows per cell; ``rows`` is the number of rows of the metrics.
    """
    return max(2, min(10, math.isqrt(rows // _ROWS_PER_CELL)))


def average_ranks(values: Numbers) -> Numbers:
    """Return the rank of each value, from 1; equal values get the mean of their ranks."""
    groups = _groups(values)
    return groups.spread(groups.ranks)


def classes(values: Numbers, bins: int) -> NDArray[np.int64]:
    """Return the class of each value: a number from 0, below ``bins``.

    Equal values share a class. Up to ``bins`` distinct values have a class each, in ascending
    order; more distinct values are divided by rank into ``bins`` classes of about equal numbers of
    rows.
    """
    groups = _groups(values)
    return groups.spread(groups.classes(bins))


def shared_classes(values: Numbers, bins: int) -> tuple[int, int] | None:
    """Return (distinct values, classes in use) of a metric if equal values leave classes empty.

    The metric is cut into at most ``bins`` classes. Returns None if each distinct value has a class
    of its own, or if all ``bins`` classes are in use.
    """
    groups = _groups(values)
    used = len(np.unique(groups.classes(bins)))
    return (len(groups.ranks), used) if used < min(bins, len(groups.ranks)) else None


@dataclass(frozen=True)
class _Groups:
    """Distinct values of a metric in ascending order, and the rows that have them."""

    #: Row numbers in ascending order of their values.
    order: NDArray[np.int64]
    #: Number of rows with each distinct value.
    counts: NDArray[np.int64]
    #: Mean rank of each distinct value, from 1.
    ranks: Numbers

    def classes(self, bins: int) -> NDArray[np.int64]:
        """Return an array: the class of each distinct value, from 0 and below ``bins``.

        The distinct values are in ascending order. Up to ``bins`` distinct values have a class
        each; more distinct values are divided by rank into classes of about equal numbers of rows.
        """
        if len(self.ranks) <= bins:
            return np.arange(len(self.ranks))
        found = np.ceil(self.ranks * bins / len(self.order)).astype(np.int64) - 1
        return np.minimum(found, bins - 1)

    def spread(self, of_each: NDArray[Any]) -> NDArray[Any]:
        """Return an array with a value for each row, from an array with a value per distinct value.

        ``of_each`` is in ascending order of the distinct values.
        """
        found = np.empty(len(self.order), dtype=of_each.dtype)
        found[self.order] = np.repeat(of_each, self.counts)
        return found


def _groups(values: Numbers) -> _Groups:
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    ends = np.concatenate((starts[1:], [len(values)]))
    return _Groups(order, ends - starts, (starts + 1 + ends) / 2)


class Discretised:
    """Estimator of mutual information that cuts columns into classes of equal frequency."""

    def __init__(self, values: Numbers, bins: int) -> None:
        if not 2 <= bins <= MOST_BINS:
            raise ValueError(f"the number of classes must be from 2 to {MOST_BINS}, but is {bins}")
        self._bins = bins
        self._columns = [_column(values[:, i], bins) for i in range(values.shape[1])]

    def between(self, first: int, second: int) -> float:
        """Return the mutual information of the columns ``first`` and ``second``, in nats."""
        return self.against(first, self._columns[second])

    def column(self, number: int) -> Column:
        """Return column ``number`` for use in ``against``, also in another process."""
        return self._columns[number]

    def against(self, number: int, other: Column) -> float:
        """Return the mutual information of column ``number`` and the column ``other``, in nats."""
        own = self._columns[number]
        cells = np.bincount(
            own.classes.astype(np.intp) * self._bins + other.classes, minlength=self._bins**2
        )
        return max(0.0, own.entropy + other.entropy - _entropy(cells))


@dataclass(frozen=True)
class Column:
    """Column of a table: the class of each row, and the entropy of the classes in nats."""

    classes: NDArray[np.uint8]
    entropy: float


def _column(values: Numbers, bins: int) -> Column:
    found = classes(values, bins)
    return Column(found.astype(np.uint8), _entropy(np.bincount(found, minlength=bins)))


def _entropy(counts: NDArray[np.int64]) -> float:
    """Return the entropy in nats of a distribution; ``counts`` has the count of each value."""
    some = counts[counts > 0].astype(np.float64)
    total = some.sum()
    return float(np.log(total) - (some * np.log(some)).sum() / total)


class Neighbours:
    """Estimator of mutual information by distances to nearest neighbours (Kraskov et al. 2004).

    The noise that is added to a column depends only on ``seed`` and on the column's name, so that
    the result does not depend on the other columns of the table.
    """

    def __init__(
        self, values: Numbers, neighbours: int, seed: int, names: Sequence[str] | None = None
    ) -> None:
        rows, columns = values.shape
        if not 1 <= neighbours < rows:
            raise ValueError(
                f"the number of neighbours must be from 1 to {rows - 1}, but is {neighbours}"
            )
        names = [str(number) for number in range(columns)] if names is None else names
        self._columns = [
            _points(values[:, number], seed, name) for number, name in enumerate(names)
        ]
        self._neighbours = neighbours

    def between(self, first: int, second: int) -> float:
        """Return the mutual information of the columns ``first`` and ``second``, in nats."""
        return self.against(first, self._columns[second])

    def column(self, number: int) -> Points:
        """Return column ``number`` for use in ``against``, also in another process."""
        return self._columns[number]

    def against(self, number: int, other: Points) -> float:
        """Return the mutual information of column ``number`` and the column ``other``, in nats."""
        from scipy.spatial import cKDTree  # noqa: PLC0415  slow to load
        from scipy.special import digamma  # noqa: PLC0415

        k, own = self._neighbours, self._columns[number]
        plane = np.column_stack((own.values, other.values))
        distance, _ = cKDTree(plane).query(plane, k=[k + 1], p=np.inf)
        reach = np.asarray(distance, dtype=np.float64)[:, 0]
        n_x, n_y = own.within(reach), other.within(reach)
        mean = float(np.mean(digamma(n_x) + digamma(n_y)))
        return max(0.0, float(digamma(len(plane))) + float(digamma(k)) - mean)


@dataclass(frozen=True)
class Points:
    """Column divided by its standard deviation, with noise added: by row, and sorted by value."""

    values: Numbers
    ordered: Numbers

    def within(self, reach: Numbers) -> NDArray[np.int64]:
        """Return for each point the number of points of the column nearer than ``reach``.

        A point counts itself. ``reach`` has a distance for each point.
        """
        ordered = self.ordered
        # The k-th neighbour lies at exactly the distance ``reach`` along one axis. This neighbour
        # must not be counted, so ``reach`` is reduced by more than the rounding error.
        rounding = 4 * np.finfo(np.float64).eps * max(abs(ordered[0]), abs(ordered[-1]))
        inside = np.maximum(0.0, reach * (1 - 1e-9) - rounding)
        low = np.searchsorted(ordered, self.values - inside, side="left")
        high = np.searchsorted(ordered, self.values + inside, side="right")
        return np.asarray(high - low, dtype=np.int64)


def _points(values: Numbers, seed: int, name: str) -> Points:
    own = int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:8], "big")
    noise = np.random.default_rng([seed, own]).standard_normal(len(values))
    scaled = values / values.std()
    size = max(1.0, float(np.abs(scaled).mean()))
    found = scaled + _NOISE * size * noise
    return Points(found, np.sort(found))
