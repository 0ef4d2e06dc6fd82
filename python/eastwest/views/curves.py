"""Points of a sweep as curves: a metric over one setting, one curve per value of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from eastwest import units
from eastwest.errors import InputError, did_you_mean
from eastwest.sweep import words
from eastwest.sweep.tables import SweepResult
from eastwest.sweep.values import numbers, text
from eastwest.views import points
from eastwest.views.labels import shown
from eastwest.views.metrics import Metric, made
from eastwest.views.sweep import Estimate

#: Functions that format the numbers of an axis, by the suffix of the setting's column of numbers.
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


@dataclass(frozen=True)
class Curve:
    """Curve of a metric: indices into the values of the axis, and the estimate at each of them."""

    name: str
    #: Indices into the values of the axis, in the order of the points.
    places: list[int]
    estimates: list[Estimate]


@dataclass(frozen=True)
class Curves:
    """A metric along an axis, with one curve for each combination of other settings."""

    metric: Metric
    axis: Axis
    #: Name of the setting that distinguishes the curves; empty if several settings do.
    by: str
    curves: list[Curve]


def curves(
    sweep: SweepResult,
    measure: str | None = None,
    x: str | None = None,
    by: str | Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
) -> Curves:
    """Return a metric of a sweep along the setting ``x``, one curve for each value of ``by``.

    Without ``measure``, it is the first metric of the sweep's table; ``x`` is the setting with the
    most values by default, and ``by`` all others that vary. ``where`` selects points by settings.
    Settings are paths or their last parts, and ``case`` for the names of cases; ``x`` and ``by``
    may be the columns of their numbers, such as ``fabric.queue.threshold_packets``. Raises
    ``InputError`` for names that the sweep does not have, and where points would coincide.
    """
    name = measured(sweep, measure)
    columns = [path for path, _ in sweep.columns]
    rows = {point: _row(sweep, point) for point in sweep.points["point"].unique().sort().to_list()}
    for path, value in (where or {}).items():
        place = _column(columns, path)
        rows = {point: row for point, row in rows.items() if text(row[place]) == text(value)}
    if not rows:
        raise InputError(
            f"no point of the sweep has the settings that where names: {dict(where or {})}"
        )
    as_numbers = _number_columns(columns, rows.values())
    counts = [len({text(row[place]) for row in rows.values()}) for place in range(len(columns))]
    across = counts.index(max(counts)) if x is None else _column(columns, x, as_numbers)
    free = [
        place
        for place in range(len(columns))
        if place != across and not _determined(rows.values(), across, place)
    ]
    if by is None:
        others = free
    else:
        named_by = [by] if isinstance(by, str) else by
        others = [_column(columns, path, as_numbers) for path in named_by]
    if missing := [columns[place] for place in free if place not in others]:
        raise InputError(
            f"points with one value of {columns[across]} differ in {', '.join(missing)}: "
            "name these settings in by, or select a value of each with where"
        )
    metric = made(name)
    axis = _axis(columns[across], [row[across] for row in rows.values()])
    found: dict[str, Curve] = {}
    estimates = _estimates(sweep, name, metric.factor)
    for point, row in rows.items():
        values = [text(row[place]) for place in others]
        label = values[0] if len(values) == 1 else ""
        if len(values) > 1:
            named = zip((_last(columns[place]) for place in others), values, strict=True)
            label = ", ".join(f"{setting} {value}" for setting, value in named)
        curve = found.setdefault(label, Curve(shown(label), [], []))
        if point in estimates:
            curve.places.append(axis.names.index(shown(text(row[across]))))
            curve.estimates.append(estimates[point])
    title = shown(_last(columns[others[0]])) if len(others) == 1 else ""
    return Curves(metric, axis, title, [curve for curve in found.values() if curve.places])


def measured(sweep: SweepResult, measure: str | None) -> str:
    """Return the full name of a metric of a sweep, such as ``flows.fct_us.p99``.

    ``measure`` may be the last part of the name; None: the first metric of the sweep's table.
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


def _row(sweep: SweepResult, point: int) -> list[Any]:
    """Return the settings of a point in the order of columns: values, or names of cases."""
    settings, names = sweep.settings(point), sweep.names(point)
    return [settings[path] if axis is None else names[axis] for path, axis in sweep.columns]


def _number_columns(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, str]:
    """Return the path of a setting by its column of numbers, such as ``…limit_packets``.

    ``columns`` are the paths of the settings, ``rows`` their values at each point.
    """
    given = [*rows]
    read = ((path, numbers([row[place] for row in given])) for place, path in enumerate(columns))
    return {path + found[0]: path for path, found in read if found is not None}


def _column(columns: Sequence[str], path: str, as_numbers: Mapping[str, str] | None = None) -> int:
    """Return the index of a setting in ``columns``, named by its path or its last part.

    ``as_numbers`` has the path of a setting by the name of its column of numbers.
    """
    path = (as_numbers or {}).get(path, path)
    fitting = [p for p, c in enumerate(columns) if c == path]
    fitting = fitting or [p for p, c in enumerate(columns) if _last(c) == path]
    if len(fitting) != 1:
        several = "several settings" if fitting else "no setting"
        hint = "" if fitting else did_you_mean(path, [*columns, *map(_last, columns)])
        raise InputError(f"the sweep has {several} {path!r}; it varies {', '.join(columns)}{hint}")
    return fitting[0]


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _determined(rows: Iterable[Sequence[Any]], across: int, place: int) -> bool:
    """Whether points that are equal in the column ``across`` are also equal in ``place``.

    Both are indices of columns of settings; ``rows`` has the settings of each point.
    """
    seen: dict[str, str] = {}
    return all(seen.setdefault(text(r[across]), text(r[place])) == text(r[place]) for r in rows)


def _axis(path: str, given: Sequence[Any]) -> Axis:
    values = list({text(value): value for value in given}.values())
    names = [shown(text(value)) for value in values]
    read = numbers(values)
    if read is None:
        return Axis(shown(path), names, None, units.count)
    end, found = read
    return Axis(shown(path) + _IN_LABEL.get(end, ""), names, found, _WRITTEN[end])


def _estimates(sweep: SweepResult, name: str, factor: float) -> dict[int, Estimate]:
    """Return the estimates of a metric by point, in the unit in which it is shown."""
    rows = sweep.points.filter(pl.col("metric") == name).select("point", "mean", "low", "high")
    return {p: Estimate(mean, low, high).times(factor) for p, mean, low, high in rows.iter_rows()}
