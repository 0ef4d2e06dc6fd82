"""Numeric settings of a scenario, which the page can show as sliders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eastwest.studio import settings
from eastwest.studio.toml_text import Scan, Steps, scan
from eastwest.sweep.values import Bound, toml, unit_size

#: Maximum number of numbers in the answer.
_MOST = 1000


def numbers(resolved: dict[str, Any], text: str) -> list[dict[str, Any]]:
    """Return all numeric settings of a resolved scenario, those in its text first.

    Lists of tables are numbered in paths, such as ``workload.0.bytes``.
    """
    found = scan(text)
    kinds = dict(_leaves(resolved, ()))
    places = _places(kinds, found)
    rows = []
    for steps, value in kinds.items():
        head = steps[:2]
        is_item = len(steps) > 2 and isinstance(steps[1], int)
        if is_item and head not in places:
            continue  # a table that the text lacks has no path
        given = (*places[head], *steps[2:]) if is_item else steps
        row = _row(steps, given, value, kinds, found)
        if row is not None:
            rows.append(row)
    rows.sort(key=lambda row: not row["explicit"])
    return rows[:_MOST]


def _places(kinds: dict[Steps, Any], found: Scan) -> dict[Steps, Steps]:
    """Return steps to tables in lists of the text, by steps in the resolved scenario.

    The resolved lists may have more tables. Tables correspond if their names are equal, or if the
    numbers are and the text has no name.
    """
    named: dict[tuple[str | int, Any], Steps] = {}
    unnamed: set[Steps] = set()
    for steps in found.tables:
        if len(steps) == 2 and isinstance(steps[1], int):
            name = found.value_of((*steps, "name"))
            if name is None:
                unnamed.add(steps)
            else:
                named[steps[0], name] = steps
    places = {}
    for steps in {steps[:2] for steps in kinds if len(steps) > 2 and isinstance(steps[1], int)}:
        given = named.get((steps[0], kinds.get((*steps, "name"))))
        if given is not None or steps in unnamed:
            places[steps] = given or steps
    return places


def _leaves(tree: Any, steps: Steps) -> Iterator[tuple[Steps, Any]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _leaves(value, (*steps, key))
    elif isinstance(tree, list) and any(isinstance(item, dict) for item in tree):
        for place, item in enumerate(tree):
            yield from _leaves(item, (*steps, place))
    else:
        yield steps, tree


def _row(
    steps: Steps, given: Steps, value: Any, kinds: dict[Steps, Any], found: Scan
) -> dict[str, Any] | None:
    """Return the row of a setting; None if it is no number.

    ``given`` are the steps to the setting in the text, and ``steps`` those in the resolved
    scenario.
    """
    bound = None if isinstance(value, bool) else Bound.read(value)
    if bound is None or steps == ("schema",) or any("." in str(step) for step in steps):
        return None
    key = settings.find(steps, lambda table: kinds.get((*table, "kind")))
    if key is None or key["type"] in {"name", "choice", "file", "hosts", "places"}:
        return None
    factor = unit_size(bound)
    place = found.values.get(given)
    return {
        "path": ".".join(map(str, given)),
        "line": place.line if place else None,
        "type": key["type"],
        "value": toml(value),
        "number": float(bound.number / factor),
        "unit": bound.unit or None,
        "min": _limit(key.get("min"), bound),
        "max": _limit(key.get("max"), bound),
        "doc": key["doc"],
        "explicit": place is not None,
    }


def _limit(text: str | None, value: Bound) -> float | None:
    """Return a limit of a setting in the unit of its value; None where it has another unit."""
    if text is None:
        return None
    try:
        bound = Bound.read(float(text))
    except ValueError:
        bound = Bound.read(text)
    if bound is None:
        return None
    if not bound.unit and value.kind == "share":
        return float(bound.number) * 100  # shares are written as 0.4 or as 40 %
    if not bound.unit and value.kind in {"whole", "number", "size", "packets"}:
        return float(bound.number / unit_size(value))
    if bound.kind == value.kind:
        return float(bound.number / unit_size(value))
    # A size without a unit is a number of bytes.
    return float(bound.number) if not value.unit and bound.kind == "size" else None
