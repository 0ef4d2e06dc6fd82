"""Selects metrics for a target, from a table of them to a list with reasons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from eastwest.errors import InputError
from eastwest.observe import mrmr, stability
from eastwest.observe.information import Discretised, Estimator, Neighbours, default_bins
from eastwest.observe.lags import best_lags, shifted
from eastwest.observe.metrics import Metrics, Numbers
from eastwest.observe.mrmr import Scheme
from eastwest.units import clean

#: Fewest rows that a selection can be made of.
FEWEST_ROWS = 20
MOST_REPLICATES = 10_000


class Method(StrEnum):
    """How mutual information is estimated."""

    DISCRETISED = "discretised"
    NEIGHBOURS = "neighbours"


@dataclass(frozen=True)
class Wanted:
    """How to select."""

    count: int = 10
    scheme: Scheme = Scheme.DIFFERENCE
    method: Method = Method.DISCRETISED
    #: Classes of a discretised metric; nothing: by the number of rows.
    bins: int | None = None
    neighbours: int = 3
    #: Most rows by which a metric may lead the target.
    lags: int = 0
    #: Globs of metrics that are not looked at.
    exclude: tuple[str, ...] = ()
    #: Metrics with a greater share of missing values are left out.
    most_missing: float = 0.2
    #: Replicates of the bootstrap.
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
    """A selected metric; information in nats."""

    metric: str
    relevance: float
    redundancy: float
    score: float
    #: Rows by which it leads the target.
    lag: int
    #: Share of bootstrap selections that have it; nothing without a bootstrap.
    frequency: float | None


@dataclass(frozen=True)
class Selection:
    """Metrics selected for a target, best first, and what was not looked at."""

    target: str
    chosen: tuple[Chosen, ...]
    rows: int
    candidates: int
    #: Classes of discretised metrics.
    bins: int
    constant: tuple[str, ...]
    missing: tuple[str, ...]
    #: Metrics with gaps that were filled.
    filled: int
    notes: tuple[str, ...]
    #: Agreement of the bootstrap's selections, at most 1.
    stability: float | None
    #: Relevance of every candidate.
    relevance: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Everything, for JSON."""
        chosen = [
            {
                "metric": each.metric,
                "relevance_nats": each.relevance,
                "redundancy_nats": each.redundancy,
                # JSON has no infinity
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
            "notes": list(self.notes),
        }


def select(
    metrics: Metrics,
    target: str,
    wanted: Wanted | None = None,
    *,
    progress: Callable[[str, float], None] = lambda *_: None,
) -> Selection:
    """Select metrics that tell most of ``target`` and least of each other.

    Rows without a value of the target are left out. Metrics that are constant, or lack more than
    ``most_missing`` of their values, are not looked at; smaller gaps are filled with the value
    before, as monitoring does, at the beginning with the first one. ``progress`` hears what is done
    and which share of it. Raises ``InputError`` where nothing is left to select from.
    """
    wanted = wanted or Wanted()
    place = metrics.place(target)
    table = _prepared(metrics.without(wanted.exclude, target), target, wanted.most_missing)
    rows = len(table.target) - wanted.lags
    if rows < FEWEST_ROWS:
        raise InputError(
            f"{clean(metrics.names[place], 80)}: {rows} rows to select from (those with a value, "
            f"less the lags); {FEWEST_ROWS} are needed"
        )
    bins = wanted.bins or default_bins(rows)
    progress("lags", 0.0)
    lags = best_lags(table.values, table.target, wanted.lags, bins)
    values = np.column_stack(
        (shifted(table.values, lags, wanted.lags), table.target[wanted.lags :])
    )
    relevance, picks = _selected(values, wanted, bins, lambda share: progress("selection", share))
    often, stable = _bootstrap(values, wanted, bins, lambda share: progress("bootstrap", share))
    chosen = tuple(
        Chosen(
            table.names[pick.column],
            pick.relevance,
            pick.redundancy,
            pick.score,
            int(lags[pick.column]),
            None if often is None else often[pick.column],
        )
        for pick in picks
    )
    return Selection(
        target=target,
        chosen=chosen,
        rows=rows,
        candidates=len(table.names),
        bins=bins,
        constant=table.constant,
        missing=table.missing,
        filled=table.filled,
        notes=_notes(table, target),
        stability=stable,
        relevance=dict(zip(table.names, relevance, strict=True)),
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
    """Candidates without gaps, and the target."""
    place = metrics.place(target)
    there = ~np.isnan(metrics.values[:, place])
    aim = metrics.values[there, place]
    if len(aim) == 0 or np.all(aim == aim[0]):
        state = "has no values" if len(aim) == 0 else "is constant"
        raise InputError(f"the target {clean(target, 80)} {state}: nothing tells of it")
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
    if not columns:
        raise InputError(
            f"no metric is left to select: {len(constant)} are constant, {len(missing)} lack more "
            f"than {most_missing:.0%} of their values"
        )
    table = np.column_stack(columns)
    return _Table(tuple(names), table, aim, tuple(constant), tuple(missing), filled)


def _carried(values: Numbers, gaps: np.ndarray[Any, np.dtype[np.bool_]]) -> Numbers:
    """Fill gaps with the value before; at the beginning with the first one."""
    at = np.where(gaps, -1, np.arange(len(values)))
    at = np.maximum.accumulate(at)
    return values[np.where(at < 0, int(np.flatnonzero(~gaps)[0]), at)]


def _selected(
    values: Numbers, wanted: Wanted, bins: int, progress: Callable[[float], None]
) -> tuple[list[float], list[mrmr.Pick]]:
    """Relevance of all candidates, and those chosen; the last column is the target."""
    estimator: Estimator
    if wanted.method is Method.DISCRETISED:
        estimator = Discretised(values, bins)
    else:
        estimator = Neighbours(values, wanted.neighbours, wanted.seed)
    candidates = values.shape[1] - 1
    count = min(wanted.count, candidates)
    relevance = []
    for column in range(candidates):
        relevance.append(estimator.between(column, candidates))
        progress((column + 1) / (2 * candidates))
    asked = 0

    def information(first: int, second: int) -> float:
        nonlocal asked
        asked += 1
        if asked % 64 == 0:  # how many it will be is not known: near the end it slows down
            progress(1 - 0.5 / (1 + asked / (candidates * max(1, count) / 4)))
        return estimator.between(first, second)

    picks = mrmr.select(relevance, information, count, wanted.scheme)
    progress(1.0)
    return relevance, picks


def _bootstrap(
    values: Numbers, wanted: Wanted, bins: int, progress: Callable[[float], None]
) -> tuple[list[float] | None, float | None]:
    """How often each candidate is selected on resampled rows, and how stable that is."""
    if wanted.bootstrap == 0:
        return None, None
    block = stability.default_block(len(values))

    def selection(replicate: int) -> Sequence[int]:
        rows = stability.resampled(len(values), block, wanted.seed, replicate)
        if wanted.method is Method.NEIGHBOURS:
            rows = np.unique(rows)  # a row twice would be its own nearest neighbour
        drawn = values[rows]
        varied = np.flatnonzero(drawn.max(axis=0) > drawn.min(axis=0))
        progress(replicate / wanted.bootstrap)
        if len(varied) < 2 or varied[-1] != values.shape[1] - 1:
            return []  # a target that does not change on these rows selects nothing
        _, picks = _selected(drawn[:, varied], wanted, bins, lambda _: None)
        return [int(varied[pick.column]) for pick in picks]

    return stability.frequencies(values.shape[1] - 1, wanted.bootstrap, selection)


def _notes(table: _Table, target: str) -> tuple[str, ...]:
    """Say what makes a selection worth less than it looks."""
    same = [
        name
        for name, values in zip(table.names, table.values.T, strict=True)
        if np.array_equal(values, table.target)
    ]
    return tuple(
        f"{clean(name, 80)} is {clean(target, 80)} itself under another name: leave it out "
        "(exclude) unless that is what you look for"
        for name in same
    )
