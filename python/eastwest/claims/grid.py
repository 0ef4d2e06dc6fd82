"""Grids: sweeps that several claims of a study share, in one file.

A claim names the file with ``grid = "../grid.toml"``, and tables of the file as its ``runs``. Each
table is a sweep as in ``[runs.NAME]``; keys of ``[all]`` are valid for each table that does not
have them itself. A claim that needs only some points of a table has ``[runs.NAME]`` with
``grid = "TABLE"``, ``only`` (values of axes), and further keys that replace those of the table.
``only`` reduces the axes of ``quick``, too.
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
    """Return a table of a grid file, with its axes reduced to the values that ``only`` names.

    ``asked`` is the table ``[runs.NAME]`` of a claim: it has ``only``, and keys that replace those
    of the grid file. Raises ``KeyError`` with a path in ``only`` if no axis has one of its values.
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
    """Return the axes of a sweep's table; entries that are not tables are ignored."""
    return [dict(axis) for axis in listed(sweep.get("axis")) if isinstance(axis, Mapping)]


def columns(axis: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the values of an axis by the path of the setting; empty if rows do not fit paths."""
    paths, rows = axis.get("path"), axis.get("values")
    if isinstance(paths, list) and isinstance(rows, list):
        fit = all(isinstance(row, list) and len(row) == len(paths) for row in rows)
        return {path: [row[n] for row in rows] for n, path in enumerate(paths) if fit}
    return {paths: rows} if isinstance(paths, str) and isinstance(rows, list) else {}


def narrowed(sweep: Mapping[str, Any], only: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``{"axis": …}``: the axes of a sweep, reduced to rows with the values of ``only``.

    Raises ``KeyError`` with a path in ``only`` if no axis has one of its values.
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
