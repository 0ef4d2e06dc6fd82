"""Selection of points of sweeps by their settings: keys such as ``at`` and ``against`` of a claim.

A selection has a wanted value, or a list of allowed values, for each path. The value of a setting
can be a table, for example on an axis over ``fabric.queue``. The wanted value is then also a table.
If a value of the axis equals this table, only this value matches; otherwise every table matches
that contains the wanted keys. A selection can also name a key of a table by its path, such as
``fabric.queue.kind``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from eastwest.errors import nearest
from eastwest.reader import flat, listed
from eastwest.sweep.spec import Axis
from eastwest.sweep.spec import Spec as Sweep
from eastwest.sweep.values import text, toml

#: A problem of a selection: (path, wanted value as text or None, message, nearest allowed name).
Unmet = tuple[str, str | None, str, str | None]

#: Number of values or paths that a message lists.
_MOST_LISTED = 12


def by_axis(at: Mapping[str, Any], paths: Collection[str]) -> dict[str, Any]:
    """Return a selection by path: nested tables become dotted paths, down to a path in ``paths``.

    TOML reads a path without quotes as nested tables, so ``fabric.hosts = 5`` has to be restored.
    """
    found: dict[str, Any] = {}
    for path, wanted in at.items():
        if isinstance(wanted, Mapping) and wanted and path not in paths:
            inner = {f"{path}.{key}": value for key, value in wanted.items()}
            found |= by_axis(inner, paths)
        else:
            found[path] = wanted
    return found


def names(paths: Iterable[str], axis: str) -> bool:
    """Whether one of ``paths`` is ``axis``, or is the path of a key in a table of this axis."""
    return any(path == axis or path.startswith(f"{axis}.") for path in paths)


def fits(
    decided: Mapping[str, Any], wanted: Mapping[str, Any], values: Mapping[str, Sequence[Any]]
) -> bool:
    """Whether a point has the settings ``wanted``.

    ``decided`` has all settings of the point by path; ``values`` has all values of each axis.
    """
    ours = flat(decided)
    return all(_fits(ours, path, each, values.get(path, ())) for path, each in wanted.items())


def _fits(ours: Mapping[str, Any], path: str, wanted: Any, values: Sequence[Any]) -> bool:
    if path in ours and _same(ours[path], wanted):
        return True
    return any(_fits_one(ours, path, each, values) for each in listed(wanted))


def _fits_one(ours: Mapping[str, Any], path: str, wanted: Any, values: Sequence[Any]) -> bool:
    if not isinstance(wanted, Mapping):
        return path in ours and _same(ours[path], wanted)
    within = {p.removeprefix(f"{path}."): v for p, v in ours.items() if p.startswith(f"{path}.")}
    keys = flat(wanted)
    if any(isinstance(value, Mapping) and _equal(flat(value), keys) for value in values):
        return _equal(within, keys)
    return all(_fits(within, key, value, ()) for key, value in keys.items())


def _equal(ours: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return ours.keys() == wanted.keys() and all(_same(ours[key], wanted[key]) for key in ours)


def _same(ours: Any, wanted: Any) -> bool:
    """Whether two values are equal, as numbers or as texts."""
    if type(ours) in {int, float} and type(wanted) in {int, float}:
        return bool(ours == wanted)
    return text(ours) == text(wanted)


def shown(at: Mapping[str, Any]) -> str:
    """Return a selection as text, such as ``fabric.queue = { "kind" = "red" }``."""
    return ", ".join(
        f"{path} = {toml(value) if isinstance(value, list | Mapping) else value}"
        for path, value in at.items()
    )


def unmet(at: Mapping[str, Any], sweeps: Sequence[Sweep], where: str) -> list[Unmet]:
    """Return the problems of the selection ``at``; empty if at least one point matches.

    Each value of a list must match at least one point of the sweeps. ``where`` is the name of the
    sweeps in messages, such as ``runs.main``.
    """
    problems = [found for path in at for found in _unmet(path, at[path], sweeps, where)]
    if not problems and at and not any(_met(at, sweep) for sweep in sweeps):
        problems.append(("", None, f"no point of {where} has {shown(at)} together", None))
    return problems


def _unmet(path: str, wanted: Any, sweeps: Sequence[Sweep], where: str) -> Iterator[Unmet]:
    """Yield the problems of one path of a selection: unknown, or values that no point has."""
    lacking = [
        each for each in listed(wanted) if not any(_met({path: each}, sweep) for sweep in sweeps)
    ]
    if not lacking:
        return
    known = {each: None for sweep in sweeps for each in _known(sweep)}
    if not any(each == path or each.startswith(f"{path}.") for each in known):
        near = nearest(path, known)
        there = f"is not a setting that {where} set or vary"
        yield path, None, there if near else f"{there}: {_listed(known)}", near
        return
    values = [*dict.fromkeys(v for sweep in sweeps for v in _values(path, sweep))]
    for each in lacking:
        message = f"no point of {where} has this value; the values are {_listed(values)}"
        yield path, text(each), message, nearest(text(each), values)


def _listed(entries: Collection[str]) -> str:
    more = len(entries) - _MOST_LISTED
    first = ", ".join([*entries][:_MOST_LISTED])
    return f"{first} and {more} more" if more > 0 else first


def _known(sweep: Sweep) -> Iterator[str]:
    """Yield the paths of a sweep's settings and axes, and of the keys of tables on axes."""
    yield from sweep.settings
    for axis in sweep.axes:
        for row in axis.values:
            for path, value in zip(axis.paths, row, strict=True):
                yield path
                yield from flat({path: value})


def _values(path: str, sweep: Sweep) -> Iterator[str]:
    """Yield the values that a setting or a key of a table has in a sweep, as texts."""
    for row in (row for axis in sweep.axes for row in _rows(axis)):
        within = {**flat(row), **row}
        if path in within:
            yield text(within[path])
    if path in sweep.settings:
        yield text(sweep.settings[path])


def _rows(axis: Axis) -> Iterator[dict[str, Any]]:
    for row in axis.values:
        yield dict(zip(axis.paths, row, strict=True))


def _met(at: Mapping[str, Any], sweep: Sweep) -> bool:
    """Whether the sweep has a point that matches ``at``; each axis is checked separately."""
    left = by_axis(at, {*sweep.paths, *sweep.settings})
    for path, wanted in left.items():
        tables = isinstance(wanted, list) and any(isinstance(each, Mapping) for each in wanted)
        if tables and path not in sweep.paths:  # a table may name keys of several axes
            return any(_met({**left, path: each}, sweep) for each in wanted)
    for axis in sweep.axes:
        own = {p: v for p, v in left.items() if any(names([p], each) for each in axis.paths)}
        left = {path: wanted for path, wanted in left.items() if path not in own}
        rows = [*_rows(axis)]
        values = {path: [row[path] for row in rows] for path in axis.paths}
        if own and not any(fits(row, own, values) for row in rows):
            return False
    return fits(sweep.settings, left, {})
