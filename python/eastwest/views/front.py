"""The front of an optimisation: groups of finalists, and the intervals of their goals."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

_MOST_GOALS = 3
#: Groups of finalists, in the order of a legend.
GROUPS = (
    "misses a limit",
    "keeps the limits",
    "on the front",
    "candidate",
    "baseline",
    "recommended",
)


def pairs(summary: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return the index pairs of goals to draw against each other: pairs of the first three."""
    return list(combinations(range(min(len(summary["goals"]), _MOST_GOALS)), 2))


def group(point: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """Return the name of the group to which a finalist belongs."""
    chosen = summary["recommended"]
    if chosen is not None and point["point"] == chosen["point"]:
        return "recommended"
    if point["origin"] in {"baseline", "candidate"}:
        return str(point["origin"])
    if point["point"] in summary["front"]:
        return "on the front"
    kept = all(limit["kept"] for limit in point["limits"])
    return "keeps the limits" if kept else "misses a limit"


def interval(point: Mapping[str, Any], goal: int, factor: float = 1) -> tuple[float, float, float]:
    """Return mean and interval of a goal at a finalist; without an interval, the mean thrice."""
    value = point["goals"][goal]["value"]
    ends = (value[end] if value[end] is not None else value["mean"] for end in ("low", "high"))
    low, high = ends
    return value["mean"] * factor, low * factor, high * factor
