"""Grids: runs that the claims of a study share, in one file.

A claim names the file with ``grid = "../grid.toml"`` and its tables as its ``runs``. Each table is
a sweep as in ``[runs.NAME]``; keys of ``[all]`` are valid for each table that does not have them
itself. A claim that needs a part of a table selects it: ``[runs.NAME]`` with ``grid = "TABLE"``,
``only`` (values of axes), and further keys that replace those of the table. Axes of ``quick`` are
reduced in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eastwest.sweep.spec import flat

#: Name of the table whose keys all others have.
ALL = "all"


def tables(content: Mapping[str, Any], folder: Path) -> dict[str, dict[str, Any]]:
    """Return the tables of a grid file by name, each with the keys of ``[all]``.

    Scenarios are found from the folder of the file; ``set`` of a table overrides that of all.
    """
    common = content.get(ALL, {})
    found = {}
    for name, own in content.items():
        if name == ALL or not isinstance(own, Mapping) or not isinstance(common, Mapping):
            continue
        settings = {**_settings(common), **_settings(own)}
        table = {**common, **own} | ({"set": settings} if settings else {})
        scenario = table.get("scenario")
        if isinstance(scenario, str) and (folder / scenario).is_file():
            table["scenario"] = str((folder / scenario).resolve())
        found[name] = table
    return found


def part(table: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table as a claim asks for it: with ``only``, some values of its axes.

    Raises ``KeyError`` with the path of an axis that does not exist, or that loses all its values.
    """
    own = {key: value for key, value in asked.items() if key not in {"grid", "only"}}
    only = asked.get("only", {})
    found = {**table, "axis": narrowed(table.get("axis", []), only)}
    quick = table.get("quick")
    if isinstance(quick, Mapping) and "axis" in quick:
        found["quick"] = {**quick, "axis": narrowed(quick["axis"], only)}
    settings = {**_settings(table), **_settings(own)}
    return {**found, **own} | ({"set": settings} if settings else {})


def narrowed(given: Sequence[Mapping[str, Any]], only: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return axes with only the rows that have the wanted values.

    Raises ``KeyError`` with the path of an axis that does not exist, or that loses all its values.
    """
    axes = [dict(axis) for axis in given]
    for path, wanted in only.items():
        texts = {str(each) for each in (wanted if isinstance(wanted, list) else [wanted])}
        for axis in axes:
            paths = axis["path"] if isinstance(axis["path"], list) else [axis["path"]]
            if path in paths:
                place = paths.index(path)
                axis["values"] = [
                    row
                    for row in axis["values"]
                    if str(row[place] if isinstance(axis["path"], list) else row) in texts
                ]
                if axis["values"]:
                    break
        else:
            raise KeyError(path)
    return axes


def _settings(table: Mapping[str, Any]) -> dict[str, Any]:
    given = table.get("set")
    return dict(flat(given)) if isinstance(given, Mapping) else {}
