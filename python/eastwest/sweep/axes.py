"""Reader of the axes in sweep and optimisation files. An axis has a list of values or a range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eastwest.reader import Table, listed
from eastwest.sweep.values import Bound, between, evenly, same_kind

KEYS = ("path", "values", "names", "from", "to", "count", "scale")
MOST_VALUES = 1_000_000

#: Range of an axis: lower and upper end, and whether the scale is logarithmic.
Span = tuple[Bound, Bound, bool]
#: Values of an axis: one row for each step, with one value for each path of the axis.
Rows = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Form:
    """An axis of a file: paths of settings, with values (``rows``) or a range (``span``)."""

    paths: tuple[str, ...]
    #: Values of the axis; empty where it has a range (``span``) without a number of values.
    rows: Rows = ()
    span: Span | None = None
    #: Names of the rows; empty if they have no names.
    names: tuple[str, ...] = ()


def form_of(entry: Table) -> Form:
    """Return the axis that a table of the file defines; problems are added to ``entry``.

    An axis whose values or range are wrong has neither rows nor a span.
    """
    paths = _paths(entry)
    if "values" in entry:
        rows = _listed(entry, paths)
        return Form(paths, rows, None, _names(entry, len(rows)) if rows else ())
    if "names" in entry:
        entry.wrong("names", None, "needs the key values, because each value gets one name")
    span = _span(entry, paths)
    if span is None or "count" not in entry:
        return Form(paths, (), span)
    low, high, log = span
    count = entry.integer("count", None, 2, MOST_VALUES)
    # Rounding can make whole numbers equal if count exceeds the numbers in the range.
    values = dict.fromkeys(between(low, high, evenly(count), log))
    return Form(paths, tuple((value,) for value in values))


def _paths(entry: Table) -> tuple[str, ...]:
    given = entry.get("path")
    named = listed(given)
    paths = [path for path in named if isinstance(path, str) and path.strip()]
    if not paths or len(paths) < len(named):
        entry.wrong(
            "path", given, 'must be the path of a setting, such as "tcp.min_rto", or a list of them'
        )
        return ()
    return tuple(".".join(step.strip() for step in path.split(".")) for path in paths)


def _listed(entry: Table, paths: tuple[str, ...]) -> Rows:
    values = entry.get("values")
    for key in ("from", "to", "count", "scale"):
        if key in entry:
            entry.wrong(key, None, "is not allowed with values: use either values, or from and to")
    if not isinstance(values, list) or not values or len(values) > MOST_VALUES:
        entry.wrong("values", None, f"must be a list of 1 to {MOST_VALUES:,} values")
        return ()
    if not paths:
        return ()
    rows: dict[str, tuple[Any, ...]] = {}
    for place, value in enumerate(values):
        row = value if len(paths) > 1 else [value]
        if not isinstance(row, list) or len(row) != len(paths):
            wanted = f"must be a list of {len(paths)} values, one for each path"
            entry.wrong(f"values.{place}", value, wanted)
            return ()
        if repr(row) in rows:
            entry.wrong(f"values.{place}", value, "is listed twice: all values must be different")
        rows[repr(row)] = tuple(row)
    return tuple(rows.values())


def _names(entry: Table, count: int) -> tuple[str, ...]:
    names = entry.texts("names", wanted="a different text for each of the values")
    if names and not len(names) == count == len({*names}):
        entry.wrong("names", None, "must be a different text for each of the values")
    return names


def _span(entry: Table, paths: tuple[str, ...]) -> Span | None:
    if len(paths) > 1:
        entry.wrong(
            "path", list(paths), "has several paths, which need the key values, not from and to"
        )
    log = entry.one_of("scale", ("linear", "log"), "linear") == "log"
    bounds = [bound for key in ("from", "to") if (bound := _bound(entry, key))]
    if len(bounds) < 2 or len(paths) != 1:
        return None
    low, high = bounds
    if not same_kind(low, high):
        entry.wrong("to", high.given, f"must be of the same kind as from: {low.given} ({low.kind})")
    elif low.number >= high.number:
        entry.wrong("to", high.given, f"must be more than from ({low.given})")
    elif log and low.number <= 0:
        entry.wrong("from", low.given, "must be more than 0 on a log scale")
    else:
        return low, high, log
    return None


def _bound(entry: Table, key: str) -> Bound | None:
    bound = Bound.read(entry.get(key))
    if key not in entry:
        entry.wrong(key, None, "is missing: an axis needs the key values, or the keys from and to")
    elif bound is None:
        entry.wrong(key, entry.get(key), 'must be a number, or a number with a unit such as "1 ms"')
    return bound
