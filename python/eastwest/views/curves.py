"""Curves of a sweep: a metric against one setting, with a curve for each value of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from eastwest import units
from eastwest.errors import InputError, did_you_mean
from eastwest.reader import flat
from eastwest.sweep import words
from eastwest.sweep.tables import SweepResult, table_keys
from eastwest.sweep.values import numbers, text
from eastwest.views import points
from eastwest.views.labels import shown
from eastwest.views.metrics import Metric, made
from eastwest.views.sweep import Estimate

#: Functions that format the numbers of an axis, by the end of the name of the column with these
#: numbers, such as ``_packets`` for ``limit_packets``.
_WRITTEN: dict[str, Callable[[float | None], str]] = {
    "_s": units.span,
    "_bps": units.rate,
    "_bytes": units.size,
    "_bytes_per_s": lambda value: f"{units.size(value)}/s",
    "_packets": units.count,
    "_percent": units.count,
    "": units.count,
}
#: Units that are written in the label of an axis because the formatted numbers lack them.
_IN_LABEL = {"_packets": " (packets)", "_percent": " (%)"}


@dataclass(frozen=True)
class Axis:
    """Horizontal axis of a picture: the values of a setting, as texts and as numbers."""

    label: str
    #: Values of the setting as text, in the order of the sweep.
    names: list[str]
    #: The values as numbers; None if some are not numbers, or if their units differ in kind.
    numbers: list[float] | None
    #: Function that formats a number of the axis as text with a unit.
    write: Callable[[float | None], str]
    #: Name of the values with their unit, such as ``fabric.queue.limit_packets``.
    column: str


@dataclass(frozen=True)
class Curve:
    """Curve of a metric: its name, and an estimate at some values of the axis."""

    name: str
    #: For each estimate, the index of its value in ``names`` of the axis.
    places: list[int]
    estimates: list[Estimate]


@dataclass(frozen=True)
class Curves:
    """A metric along an axis, with one curve for each combination of other settings."""

    metric: Metric
    axis: Axis
    #: Name of the setting that distinguishes the curves; empty for a single curve, or if several
    #: settings distinguish them.
    by: str
    curves: list[Curve]
    #: Number of points that lack the setting of the axis, and are in no curve.
    left_out: int = 0


def curves(
    sweep: SweepResult,
    measure: str | None = None,
    x: str | Sequence[str] | None = None,
    by: str | Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
) -> Curves:
    """Return a metric of a sweep along the setting ``x``, one curve for each value of ``by``.

    ``measure`` is the name of the metric (default: the first metric of the sweep's table), ``x`` is
    the setting on the horizontal axis (default: the setting with the most values). ``by`` are the
    settings that have a curve for each value (default: all others that vary). ``where`` has values
    of settings: only points with these values are used.

    A setting is named by its path, the last part of the path, the key of a table
    (``fabric.queue.kind``), or ``case`` for the names of cases. ``x`` and ``by`` may also be a
    column of numbers, such as ``fabric.queue.threshold_packets``. If ``x`` has several settings,
    each point is at the value of the first setting in ``x`` that the point has. Raises
    ``InputError`` for unknown names, and if a curve would have two points at one value of ``x``.
    """
    name = measured(sweep, measure)
    settings = _Settings(sweep)
    columns = settings.columns
    rows = {point: settings.row(point) for point in _points(sweep)}
    for path, value in (where or {}).items():
        place = settings.index(path)
        rows = {point: row for point, row in rows.items() if text(row[place]) == text(value)}
    if not rows:
        raise InputError(
            f"no point of the sweep has the values of settings given in where: {dict(where or {})}"
        )
    as_numbers = _number_columns(columns, rows.values())
    own = range(settings.own)
    if x is None:
        counts = [len({text(row[place]) for row in rows.values()}) for place in own]
        along = [counts.index(max(counts))]
    else:
        along = [settings.index(path, as_numbers) for path in ([x] if isinstance(x, str) else x)]
    across = {point: _first(row, along) for point, row in rows.items()}
    left_out = [point for point, value in across.items() if value is None]
    rows = {point: row for point, row in rows.items() if across[point] is not None}
    label = " or ".join(dict.fromkeys(columns[place] for place in along))
    if not rows:
        raise InputError(f"no point of the sweep has {label}")
    if by is None:
        others = settings.others(rows, across, along)
    else:
        named_by = [by] if isinstance(by, str) else by
        others = [settings.index(path, as_numbers) for path in named_by]
    groups = {p: (text(across[p]), *(text(row[o]) for o in others)) for p, row in rows.items()}
    if missing := [columns[place] for place in own if not _determined(rows, groups, place)]:
        raise InputError(
            f"points with the same value of {label} differ in {', '.join(missing)}: "
            "add these settings to by, or choose one value of each setting in where"
        )
    metric = made(name)
    texts = {point: settings.said(along, value) for point, value in across.items()}
    axis = _axis(label, {texts[point]: across[point] for point in rows})
    ticks = {said: place for place, said in enumerate(dict.fromkeys(texts[p] for p in rows))}
    found: dict[str, Curve] = {}
    estimates = _estimates(sweep, name, metric.factor)
    for point, row in rows.items():
        given = [(place, row[place]) for place in others if row[place] is not None]
        said = [settings.said([place], value) for place, value in given]
        of_curve = said[0] if len(others) == 1 and said else ""
        if len(others) > 1:
            pairs = zip(given, said, strict=True)
            of_curve = ", ".join(f"{_last(columns[place])} {each}" for (place, _), each in pairs)
        curve = found.setdefault(of_curve, Curve(shown(of_curve, 100), [], []))
        if point in estimates:
            curve.places.append(ticks[texts[point]])
            curve.estimates.append(estimates[point])
    title = shown(_last(columns[others[0]])) if len(others) == 1 else ""
    drawn = [curve for curve in found.values() if curve.places]
    return Curves(metric, axis, title, drawn, len(left_out))


class _Settings:
    """Settings of a sweep as columns: axes of the sweep, then keys of TOML tables on these axes."""

    def __init__(self, sweep: SweepResult) -> None:
        self._sweep = sweep
        self.columns = [path for path, _ in sweep.columns]
        #: Number of columns that together identify a point; the others are keys of tables.
        self.own = len(self.columns)
        #: Path of the setting whose values are tables, and the key, by column number.
        self._keys: dict[int, tuple[str, str]] = {}
        for axis in sweep.summary["axes"]:
            for path, values in zip(axis["paths"], zip(*axis["values"], strict=True), strict=True):
                for key in table_keys(values):
                    self._keys[len(self.columns)] = path, key
                    self.columns.append(f"{path}.{key}")

    def row(self, point: int) -> list[Any]:
        """Return the settings of a point in the order of columns; None for a key without value."""
        settings, names = self._sweep.settings(point), self._sweep.names(point)
        own = [
            settings[path] if axis is None else names[axis] for path, axis in self._sweep.columns
        ]
        tables = {path: flat(settings[path]) for path, _ in self._keys.values()}
        return own + [tables[path].get(key) for path, key in self._keys.values()]

    def index(self, path: str, as_numbers: Mapping[str, str] | None = None) -> int:
        """Return the column number of a setting; ``path`` is its path or the path's last part.

        ``as_numbers`` has the path of a setting by its name with a unit, such as
        ``…limit_packets``: ``path`` may then also be this name.
        """
        path = (as_numbers or {}).get(path, path)
        whole = [*enumerate(self.columns)]
        fitting = [p for p, c in whole if c == path]
        fitting = fitting or [p for p, c in whole[: self.own] if _last(c) == path]
        fitting = fitting or [p for p, c in whole if _last(c) == path]
        if len(fitting) != 1:
            several = "several settings" if fitting else "no setting"
            there = ", ".join(self.columns[: self.own])
            hint = "" if fitting else did_you_mean(path, [*self.columns, *map(_last, self.columns)])
            raise InputError(f"the sweep has {several} {path!r}; it varies {there}{hint}")
        return fitting[0]

    def said(self, columns: Sequence[int], value: Any) -> str:
        """Return a value of the setting in ``columns`` as text; a TOML table has a short text."""
        path = self.columns[columns[0]]
        return self._sweep.labels.get(path, {}).get(text(value), text(value))

    def others(
        self, rows: Mapping[int, Sequence[Any]], across: Mapping[int, Any], along: Sequence[int]
    ) -> list[int]:
        """Return the numbers of columns that distinguish points with equal values in ``across``.

        ``rows`` has the settings of each point, ``across`` its value on the horizontal axis, and
        ``along`` the columns of the horizontal axis. If one of these is a key of a table, the table
        differs at each value of the axis and would give curves of one point: the column ``kind`` of
        the table, or else all its other keys, are returned in its place, if they are sufficient.
        """
        groups = {point: (text(across[point]),) for point in rows}
        found: list[int] = []
        for place in range(self.own):
            if _determined(rows, groups, place):
                continue
            keys = [c for c, (path, _) in self._keys.items() if path == self.columns[place]]
            rest = [column for column in keys if column not in along]
            kind = [column for column in rest if self._keys[column][1] == "kind"]
            chosen = [place]
            for each in (kind, rest) if len(rest) < len(keys) else ():
                told = {p: (*groups[p], *(text(row[c]) for c in each)) for p, row in rows.items()}
                if _determined(rows, told, place):
                    chosen = each
                    break
            found += chosen
        return found


def measured(sweep: SweepResult, measure: str | None) -> str:
    """Return the full name of a metric of a sweep, such as ``flows.fct_us.p99``.

    ``measure`` is the name or its last part; None: the first metric of the sweep's table.
    """
    if measure is None:
        chosen, _ = points.metrics(sweep, 1)
        if not chosen:
            raise InputError(f"{sweep.path} has no metrics")
        return chosen[0][0]
    there = set(sweep.points["metric"].unique())
    name = words.full(measure, there)
    if name not in there:
        raise InputError(f"no run has a metric {measure!r}{did_you_mean(measure, there)}")
    return name


def _points(sweep: SweepResult) -> list[int]:
    """Return the numbers of the points of a sweep that have results."""
    return list(sweep.points["point"].unique().sort().to_list())


def _first(row: Sequence[Any], columns: Sequence[int]) -> Any:
    """Return the first value in ``columns`` of a row that is not None; None if all are None."""
    return next((row[place] for place in columns if row[place] is not None), None)


def _number_columns(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, str]:
    """Return the paths of settings with numeric values, by path with unit: ``…limit_packets``.

    ``columns`` are the paths of all settings, ``rows`` their values at each point.
    """
    given = [*rows]
    of_column = (
        [row[place] for row in given if row[place] is not None] for place in range(len(columns))
    )
    read = zip(columns, map(numbers, of_column), strict=True)
    return {path + found[0]: path for path, found in read if found is not None}


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _determined(
    rows: Mapping[int, Sequence[Any]], groups: Mapping[int, tuple[str, ...]], place: int
) -> bool:
    """Whether points of one group never differ in the column ``place`` of their ``rows``.

    ``groups`` has a key for each point; points with equal keys are a group.
    """
    seen: dict[tuple[str, ...], str] = {}
    return all(
        seen.setdefault(groups[p], text(r[place])) == text(r[place]) for p, r in rows.items()
    )


def _axis(label: str, given: Mapping[str, Any]) -> Axis:
    """Return the axis with this label; ``given`` has the values of the setting by their texts."""
    names = [shown(said, 100) for said in given]
    read = numbers([*given.values()])
    if read is None:
        return Axis(shown(label), names, None, units.count, shown(label))
    end, found = read
    written = shown(label)
    return Axis(written + _IN_LABEL.get(end, ""), names, found, _WRITTEN[end], written + end)


def _estimates(sweep: SweepResult, name: str, factor: float) -> dict[int, Estimate]:
    """Return the estimates of the metric ``name``, multiplied by ``factor``, by point number."""
    rows = sweep.points.filter(pl.col("metric") == name).select("point", "mean", "low", "high")
    return {p: Estimate(mean, low, high).times(factor) for p, mean, low, high in rows.iter_rows()}
