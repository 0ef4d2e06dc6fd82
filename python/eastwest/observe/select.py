"""Selects the metrics that explain a target metric, from a table of time series.

The result is a list of metrics, best first, with relevance, redundancy, score and lag of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eastwest.errors import InputError
from eastwest.observe import mrmr, stability
from eastwest.observe.information import (
    Discretised,
    Estimator,
    Neighbours,
    default_bins,
    shared_classes,
)
from eastwest.observe.lags import best_lags, shifted
from eastwest.observe.metrics import Metrics, Numbers
from eastwest.observe.mrmr import Scheme
from eastwest.units import clean

#: Minimum number of rows for a selection of metrics.
FEWEST_ROWS = 20
MOST_REPLICATES = 10_000


class Method(StrEnum):
    """Method by which mutual information is estimated (see the module ``information``)."""

    DISCRETISED = "discretised"
    NEIGHBOURS = "neighbours"


@dataclass(frozen=True)
class Wanted:
    """Settings of a selection of metrics."""

    #: Maximum number of metrics to select.
    count: int = 10
    scheme: Scheme = Scheme.DIFFERENCE
    method: Method = Method.DISCRETISED
    #: Maximum number of classes into which a metric is cut; None: computed from the number of rows.
    bins: int | None = None
    #: Number k of nearest neighbours, for the method ``neighbours``.
    neighbours: int = 3
    #: Maximum number of rows by which a metric may lead the target.
    lags: int = 0
    #: Globs of metrics that are excluded.
    exclude: tuple[str, ...] = ()
    #: Largest share (0 to 1) of missing values in a candidate; metrics with a larger share are
    #: excluded.
    most_missing: float = 0.2
    #: Number of bootstrap replicates, which are selections on resampled rows; 0: no bootstrap.
    bootstrap: int = 0
    seed: int = 1

    def __post_init__(self) -> None:
        for name, value, least, most in (
            ("count", self.count, 1, 100_000),
            ("neighbours", self.neighbours, 1, 100),
            ("lags", self.lags, 0, 100_000),
            ("bootstrap", self.bootstrap, 0, MOST_REPLICATES),
            ("bins", 2 if self.bins is None else self.bins, 2, 100),
            ("most_missing", self.most_missing, 0, 1),
        ):
            if not least <= value <= most:
                raise InputError(f"{name}: must be from {least} to {most}, not {value}")


@dataclass(frozen=True)
class Chosen:
    """Selected metric, with relevance and redundancy in nats, score, and lag in rows."""

    metric: str
    relevance: float
    redundancy: float
    score: float
    #: Number of rows by which the metric leads the target.
    lag: int
    #: Share of the bootstrap replicates that select this metric, 0 to 1; None without a bootstrap.
    frequency: float | None


@dataclass(frozen=True)
class Merged:
    """Metric whose equal values leave classes empty.

    ``values`` is its number of distinct values, ``classes`` the smaller number of classes in use.
    """

    metric: str
    values: int
    classes: int


@dataclass(frozen=True)
class Selection:
    """Result: metrics selected for a target, best first, and metrics that were excluded."""

    target: str
    chosen: tuple[Chosen, ...]
    rows: int
    candidates: int
    #: Maximum number of classes into which a metric is cut.
    bins: int
    #: Names of the metrics that were excluded because they are constant.
    constant: tuple[str, ...]
    #: Names of the metrics that were excluded because too many of their values are missing.
    missing: tuple[str, ...]
    #: Number of candidates in which missing values were filled with the previous value.
    filled: int
    notes: tuple[str, ...]
    #: Agreement of the selections on bootstrap replicates: 1 if all are equal, about 0 if they
    #: agree no more than by chance; None without a bootstrap.
    stability: float | None
    #: Mutual information of every candidate with the target, in nats, by the candidate's name.
    relevance: dict[str, float]
    #: Metrics with fewer used classes than requested, because equal values leave classes empty.
    merged: tuple[Merged, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the selection as an object for JSON, without the list of all relevances."""
        chosen = [
            {
                "metric": each.metric,
                "relevance_nats": each.relevance,
                "redundancy_nats": each.redundancy,
                # JSON has no number for an infinite score.
                "score": each.score if np.isfinite(each.score) else None,
                "lag_rows": each.lag,
                "frequency": each.frequency,
            }
            for each in self.chosen
        ]
        return {
            "target": self.target,
            "rows": self.rows,
            "candidates": self.candidates,
            "bins": self.bins,
            "chosen": chosen,
            "stability": self.stability,
            "constant": list(self.constant),
            "missing": list(self.missing),
            "filled": self.filled,
            "merged": [asdict(each) for each in self.merged],
            "notes": list(self.notes),
        }


def select(
    metrics: Metrics,
    target: str,
    wanted: Wanted | None = None,
    *,
    progress: Callable[[str, float], None] = lambda *_: None,
) -> Selection:
    """Return the metrics that have much information about ``target`` and little in common.

    Rows without a value of the target are left out. A metric is excluded if it is constant or lacks
    more than ``most_missing`` of its values; smaller gaps are filled with the previous value, as in
    monitoring systems, or at the beginning with the first value. ``progress`` is called with the
    name of the current step and the share done. Raises ``InputError`` if no candidate is left.
    """
    wanted = wanted or Wanted()
    metrics.place(target)
    progress("lags", 0.0)
    block = block_of(metrics.without(wanted.exclude, target), target, wanted)
    refuse_nothing([block.told], wanted)
    relevance, picks = _selected(
        estimator_of(block, block.values, range(block.values.shape[1]), wanted),
        block.values.shape[1] - 1,
        wanted,
        lambda share: progress("selection", share),
    )
    often, stable = _bootstrap(block, wanted, lambda share: progress("bootstrap", share))
    found = selection(target, [block.told], relevance, picks, often, stable)
    return replace(found, notes=(*metrics.notes, *_uneven(metrics, wanted), *found.notes))


def _uneven(metrics: Metrics, wanted: Wanted) -> tuple[str, ...]:
    """Return remarks on rows with equal times, and on lags over uneven steps of time."""
    if metrics.times_s is None or len(metrics.times_s) < 2:
        return ()
    gaps = np.diff(metrics.times_s)
    notes = []
    if same := int((gaps == 0).sum()):
        notes.append(f"{same:,} rows have the same time as the row before: all rows are used")
    usual = float(np.median(gaps))
    uneven = int((np.abs(gaps - usual) > 0.5 * usual).sum())
    if wanted.lags and uneven:
        notes.append(
            f"{uneven:,} of {len(gaps):,} steps between rows differ from the usual "
            f"{usual:g} s: a lag is a number of rows, so its length in seconds "
            "varies there"
        )
    return tuple(notes)


@dataclass(frozen=True)
class Told:
    """Facts about a block of candidates: names, lags, and metrics that were excluded."""

    names: tuple[str, ...]
    #: Number of rows by which each candidate leads the target.
    lags: tuple[int, ...]
    #: Number of rows with a value of the target, without the rows that lags cost.
    rows: int
    #: Maximum number of classes into which a metric is cut.
    bins: int
    #: Names of the metrics that were excluded because they are constant.
    constant: tuple[str, ...]
    #: Names of the metrics that were excluded because too many of their values are missing.
    missing: tuple[str, ...]
    #: Number of candidates in which missing values were filled with the previous value.
    filled: int
    #: Names of the candidates whose values equal those of the target in all rows.
    same: tuple[str, ...]
    #: Candidates, or the target, whose equal values leave classes empty.
    merged: tuple[Merged, ...] = ()


@dataclass(frozen=True)
class Block:
    """Block of candidates, with gaps filled and shifted by their lags; last column: the target."""

    told: Told
    values: Numbers


def block_of(metrics: Metrics, target: str, wanted: Wanted) -> Block:
    """Return a block with all metrics but the target as candidates; there may be none.

    The preparation of a candidate does not depend on other candidates. Raises ``InputError`` if the
    target is constant, or if there are too few rows.
    """
    table = _prepared(metrics, target, wanted.most_missing)
    rows = len(table.target) - wanted.lags
    if rows < FEWEST_ROWS:
        raise InputError(
            f"{clean(target, 80)}: {rows} rows can be used (rows with a value of the "
            f"target, without the rows that lags cost), but at least {FEWEST_ROWS} are "
            "needed"
        )
    by_distance = wanted.method is Method.NEIGHBOURS
    if by_distance and rows <= wanted.neighbours:
        raise InputError(
            f"neighbours: {wanted.neighbours} nearest neighbours need more than "
            f"{wanted.neighbours} rows, but there are {rows}"
        )
    bins = wanted.bins or default_bins(rows)
    lags = best_lags(table.values, table.target, wanted.lags, bins)
    moved = [shifted(table.values, lags, wanted.lags)] if table.names else []
    same = [
        name
        for name, values in zip(table.names, table.values.T, strict=True)
        if np.array_equal(values, table.target)
    ]
    values = np.column_stack((*moved, table.target[wanted.lags :]))
    shared = _merged([*table.names, target], values, bins) if not by_distance else ()
    told = Told(
        table.names, tuple(lags.tolist()), rows, bins, table.constant, table.missing, table.filled,
        tuple(same), shared,
    )  # fmt: skip
    return Block(told, values)


def _merged(names: Sequence[str], values: Numbers, bins: int) -> tuple[Merged, ...]:
    """Return the metrics whose equal values leave classes empty.

    ``values`` has a column for each of ``names``; ``bins`` is the requested number of classes.
    """
    found = ((name, shared_classes(values[:, i], bins)) for i, name in enumerate(names))
    return tuple(Merged(name, *counts) for name, counts in found if counts is not None)


def refuse_nothing(blocks: Sequence[Told], wanted: Wanted) -> None:
    """Raise ``InputError`` if no block has a candidate."""
    if not any(block.names for block in blocks):
        constant = sum(len(block.constant) for block in blocks)
        missing = sum(len(block.missing) for block in blocks)
        raise InputError(
            f"no metric is left to select from: {constant} metrics are constant, {missing} "
            f"lack more than {wanted.most_missing:.0%} of their values"
        )


def selection(
    target: str,
    blocks: Sequence[Told],
    relevance: Sequence[float],
    picks: Sequence[mrmr.Pick],
    often: Sequence[float] | None,
    stable: float | None,
) -> Selection:
    """Return the selection, built from the results of all blocks.

    ``picks`` and ``relevance`` number the candidates consecutively through all blocks. ``often``
    has for each candidate the share of bootstrap replicates that select it; ``stable`` is the
    agreement of the replicates. Both are None without a bootstrap.
    """
    names = [name for block in blocks for name in block.names]
    lags = [lag for block in blocks for lag in block.lags]
    chosen = tuple(
        Chosen(
            names[pick.column],
            pick.relevance,
            pick.redundancy,
            pick.score,
            lags[pick.column],
            None if often is None else often[pick.column],
        )
        for pick in picks
    )
    return Selection(
        target=target,
        chosen=chosen,
        rows=blocks[0].rows,
        candidates=len(names),
        bins=blocks[0].bins,
        constant=tuple(name for block in blocks for name in block.constant),
        missing=tuple(name for block in blocks for name in block.missing),
        filled=sum(block.filled for block in blocks),
        notes=_notes([name for block in blocks for name in block.same], target),
        stability=stable,
        relevance=dict(zip(names, relevance, strict=True)),
        merged=tuple(dict.fromkeys(each for block in blocks for each in block.merged)),
    )


@dataclass(frozen=True)
class _Table:
    names: tuple[str, ...]
    values: Numbers
    target: Numbers
    constant: tuple[str, ...]
    missing: tuple[str, ...]
    filled: int


def _prepared(metrics: Metrics, target: str, most_missing: float) -> _Table:
    """Return the candidates and the target, in the rows in which the target has a value.

    Candidates that are constant, or lack more than the share ``most_missing`` of their values, are
    excluded. Gaps of the others are filled.
    """
    place = metrics.place(target)
    there = ~np.isnan(metrics.values[:, place])
    aim = metrics.values[there, place]
    if len(aim) == 0 or np.all(aim == aim[0]):
        state = "has no values" if len(aim) == 0 else "is constant"
        raise InputError(f"the target {clean(target, 80)} {state}: no metric can explain it")
    constant, missing, names, columns, filled = [], [], [], [], 0
    for column, name in enumerate(metrics.names):
        if column == place:
            continue
        values = metrics.values[there, column]
        gaps = np.isnan(values)
        if gaps.mean() > most_missing or gaps.all():
            missing.append(name)
            continue
        if gaps.any():
            values, filled = _carried(values, gaps), filled + 1
        if np.all(values == values[0]):
            constant.append(name)
            continue
        names.append(name)
        columns.append(values)
    table = np.column_stack(columns) if columns else np.empty((len(aim), 0))
    return _Table(tuple(names), table, aim, tuple(constant), tuple(missing), filled)


def _carried(values: Numbers, gaps: np.ndarray[Any, np.dtype[np.bool_]]) -> Numbers:
    """Return ``values`` with gaps filled by the previous value, at the start by the first value.

    ``gaps`` marks the missing values.
    """
    at = np.where(gaps, -1, np.arange(len(values)))
    at = np.maximum.accumulate(at)
    return values[np.where(at < 0, int(np.flatnonzero(~gaps)[0]), at)]


def estimator_of(
    block: Block, values: Numbers, columns: Sequence[int] | NDArray[np.int64], wanted: Wanted
) -> Estimator:
    """Return an estimator of the mutual information between columns of a block.

    ``values`` is an array (rows to use, all columns of the block); ``columns`` has the indices of
    the columns that the estimator needs.
    """
    some = values[:, columns]
    if wanted.method is Method.DISCRETISED:
        return Discretised(some, block.told.bins)
    # The target gets an empty name, which no metric has: names seed the noise of a column.
    names = [*block.told.names, ""]
    return Neighbours(some, wanted.neighbours, wanted.seed, [names[place] for place in columns])


def _selected(
    estimator: Estimator, candidates: int, wanted: Wanted, progress: Callable[[float], None]
) -> tuple[list[float], list[mrmr.Pick]]:
    """Return (relevance of each candidate in nats, selected candidates).

    The first ``candidates`` columns of the estimator are the candidates, the next one is the
    target.
    """
    count = min(wanted.count, candidates)
    relevance = []
    for column in range(candidates):
        relevance.append(estimator.between(column, candidates))
        progress((column + 1) / (2 * candidates))
    asked = 0

    def information(first: int, second: int) -> float:
        nonlocal asked
        asked += 1
        # The total is unknown in advance, so the shown progress slows down near the end
        if asked % 64 == 0:
            progress(1 - 0.5 / (1 + asked / (candidates * max(1, count) / 4)))
        return estimator.between(first, second)

    picks = mrmr.select(relevance, information, count, wanted.scheme)
    progress(1.0)
    return relevance, picks


def _bootstrap(
    block: Block, wanted: Wanted, progress: Callable[[float], None]
) -> tuple[list[float] | None, float | None]:
    """Return (share of the replicates that select each candidate, stability).

    Both are None without a bootstrap.
    """
    if wanted.bootstrap == 0:
        return None, None
    last = block.values.shape[1] - 1

    def selected(replicate: int) -> Sequence[int]:
        drawn = block.values[drawn_rows(len(block.values), wanted, replicate)]
        varied = varying(drawn)
        progress(replicate / wanted.bootstrap)
        if len(varied) < 2 or varied[-1] != last:
            return []  # a target that is constant on these rows allows no selection
        estimator = estimator_of(block, drawn, varied, wanted)
        _, picks = _selected(estimator, len(varied) - 1, wanted, lambda _: None)
        return [int(varied[pick.column]) for pick in picks]

    return stability.frequencies(last, wanted.bootstrap, selected)


def varying(values: Numbers) -> NDArray[np.int64]:
    """Return the indices of the columns of ``values`` that are not constant."""
    return np.flatnonzero(values.max(axis=0) > values.min(axis=0))


def drawn_rows(rows: int, wanted: Wanted, replicate: int) -> stability.Rows:
    """Return the indices of the rows of a bootstrap replicate.

    ``rows`` is the number of rows of the table; ``replicate`` is the number of the replicate, from
    0. For the method ``neighbours``, each row occurs at most once.
    """
    drawn = stability.resampled(rows, stability.default_block(rows), wanted.seed, replicate)
    # A repeated row would be its own nearest neighbour, at distance 0.
    return np.unique(drawn) if wanted.method is Method.NEIGHBOURS else drawn


def _notes(same: Sequence[str], target: str) -> tuple[str, ...]:
    """Return a remark for each candidate in ``same``, whose values equal those of the target."""
    return tuple(
        f"{clean(name, 80)} equals the target {clean(target, 80)} in all rows: exclude it, unless "
        "you search for copies"
        for name in same
    )
