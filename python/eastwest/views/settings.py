"""Settings of resolved scenarios by dotted key, and the settings in which scenarios differ."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from typing import Any

from eastwest.results import Result
from eastwest.sweep.values import text
from eastwest.units import clean
from eastwest.views.labels import shown

#: Text for a setting that a scenario does not have.
ABSENT = "–"


def tree(result: Result) -> dict[str, Any]:
    """Return the resolved scenario of a result as a mapping; empty if it cannot be read."""
    try:
        return tomllib.loads(result.scenario)
    except (OSError, ValueError):
        return {}


def settings(result: Result) -> dict[str, str]:
    """Return all settings of the resolved scenario as text, by key such as ``fabric.queue.limit``.

    The result is empty if the scenario cannot be read.
    """
    return dict(flat(tree(result), ""))


def values(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (dotted key, value) for each setting in the nested tables ``tree``.

    ``path`` is the key of ``tree`` itself, with which all keys begin. In the key, an item of a list
    of tables has its ``name``, if all items have different names, or else its number from 0.
    """
    if isinstance(tree, dict) and tree:
        for key, value in tree.items():
            yield from values(value, f"{path}.{key}" if path else str(key))
    elif isinstance(tree, list) and any(isinstance(item, dict) for item in tree):
        names = [str(item["name"]) for item in tree if isinstance(item, dict) and "name" in item]
        if len(set(names)) < len(tree):
            names = [str(place) for place in range(len(tree))]
        for name, value in zip(names, tree, strict=True):
            yield from values(value, f"{path}.{name}")
    else:
        yield path, tree


def flat(tree: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield (dotted key, value as text) for each setting in the nested tables ``tree``.

    ``path`` is the key of ``tree`` itself, with which all keys begin.
    """
    for place, value in values(tree, path):
        yield place, clean(text(value), 200)


def differences(results: Sequence[Result]) -> list[tuple[str, list[str]]]:
    """Return (dotted key, [value in each result]) for settings in which the scenarios differ.

    Values are texts; ``ABSENT`` stands for a setting that a scenario does not have.
    """
    everything = [settings(result) for result in results]
    paths = dict.fromkeys(path for each in everything for path in each)
    rows = [(path, [each.get(path, ABSENT) for each in everything]) for path in paths]
    return [(shown(path, 120), values) for path, values in rows if len(set(values)) > 1]
