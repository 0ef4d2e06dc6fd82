"""Grids: sweeps that several claims of a study share, in one file.

A claim names the file with ``grid = "../grid.toml"``, and the ``runs`` of its metrics name tables
of the file. Each table is a sweep as in ``[runs.NAME]``; the keys of ``[all]`` are valid for each
table that does not have them itself. A claim that needs only some points of a table has
``[runs.NAME]`` with ``grid = "TABLE"``, ``only`` (values of axes), and further keys, which replace
keys of the table. ``only`` also reduces the axes of ``quick``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eastwest.reader import flat, listed

#: Name of the table of a grid file whose keys are valid for all its other tables.
ALL = "all"


def tables(content: Mapping[str, Any], folder: Path) -> dict[str, dict[str, Any]]:
    """Return the tables of a grid file by name, each with the keys of ``[all]``.

    ``folder`` is the folder of the grid file; paths of scenarios are relative to it. Settings in
    ``set`` of a table override those in ``[all]``.
    """
    common = content.get(ALL, {})
    found = {}
    for name, own in content.items():
        if name == ALL or not isinstance(own, Mapping) or not isinstance(common, Mapping):
            continue
        settings = {**flat(common.get("set")), **flat(own.get("set"))}
        table = {**common, **own} | ({"set": settings} if settings else {})
        scenario = table.get("scenario")
        if isinstance(scenario, str) and (folder / scenario).is_file():
            table["scenario"] = str((folder / scenario).resolve())
        found[name] = table
    return found


def part(table: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table of a grid file, with the axes reduced to the values in ``only``.

    ``asked`` is the table ``[runs.NAME]`` of a claim: it has ``only``, and keys that replace keys
    of ``table``. Raises ``KeyError`` with the path if no axis has a value that ``only`` allows.
    """
    own = {key: value for key, value in asked.items() if key not in {"grid", "only"}}
    only = flat(asked.get("only"))
    found = {**table, **narrowed(table, only)}
    quick = table.get("quick")
    if isinstance(quick, Mapping):
        found["quick"] = {**quick, **(narrowed(quick, only) if "axis" in quick else {})}
    settings = {**flat(table.get("set")), **flat(own.get("set"))}
    return {**found, **own} | ({"set": settings} if settings else {})


def axes_of(sweep: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return copies of the tables ``axis`` of a sweep; entries that are not tables are ignored."""
    return [dict(axis) for axis in listed(sweep.get("axis")) if isinstance(axis, Mapping)]


def columns(axis: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the values of an axis, a list for each path; empty if the axis is not valid."""
    paths, rows = axis.get("path"), axis.get("values")
    if isinstance(paths, list) and isinstance(rows, list):
        fit = all(isinstance(row, list) and len(row) == len(paths) for row in rows)
        return {path: [row[n] for row in rows] for n, path in enumerate(paths) if fit}
    return {paths: rows} if isinstance(paths, str) and isinstance(rows, list) else {}


def narrowed(sweep: Mapping[str, Any], only: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``{"axis": axes}``: the axes of a sweep, with only the rows that ``only`` allows.

    ``only`` has the allowed value or values by path; if ``only`` is empty, the result is empty,
    too. Raises ``KeyError`` with the path if no axis has an allowed value.
    """
    if not only:
        return {}
    axes = axes_of(sweep)
    for path, wanted in only.items():
        texts = {*map(str, listed(wanted))}
        for axis in axes:
            values = columns(axis).get(path, [])
            rows = zip(axis.get("values", []), values, strict=False)
            kept = [row for row, value in rows if str(value) in texts]
            if kept:
                axis["values"] = kept
                break
        else:
            raise KeyError(path)
    return {"axis": axes}
