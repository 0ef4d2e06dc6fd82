"""The front of an optimisation: finalists by pairs of goals, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eastwest.plot import picture
from eastwest.plot.style import BLUE, GREEN, INK, MUTED, ORANGE, PURPLE, style

_MOST_GOALS = 3


def draw(summary: Mapping[str, Any], path: Path) -> None:
    """Draw the finalists of an optimisation's summary as SVG."""
    with style():
        picture.save(figure(summary), path)


def figure(summary: Mapping[str, Any]) -> Figure:
    """Return a figure with one panel for each pair of goals, of the first three goals."""
    goals = [goal["metric"] for goal in summary["goals"]][:_MOST_GOALS]
    pairs = list(combinations(range(len(goals)), 2))
    made = Figure(figsize=(5.4 * len(pairs), 3.9), layout="constrained")
    for axes, (across, up) in zip(
        made.subplots(1, len(pairs), squeeze=False)[0], pairs, strict=True
    ):
        _panel(axes, summary, across, up)
        axes.set_xlabel(goals[across])
        axes.set_ylabel(goals[up])
    made.axes[0].legend(loc="best")
    return made


def _panel(axes: Axes, summary: Mapping[str, Any], across: int, up: int) -> None:
    front = {*summary["front"]}
    chosen = summary["recommended"]["point"] if summary["recommended"] else -1
    looks = {
        "misses a limit": (MUTED, "x"),
        "keeps the limits": (BLUE, "o"),
        "on the front": (GREEN, "o"),
        "candidate": (PURPLE, "D"),
        "baseline": (INK, "s"),
        "recommended": (ORANGE, "*"),
    }
    groups: dict[str, list[Mapping[str, Any]]] = {name: [] for name in looks}
    for point in summary["finalists"]:
        groups[_group(point, front, chosen)].append(point)
    for name, points in groups.items():
        if points:
            colour, marker = looks[name]
            x, y = ([_value(p, goal) for p in points] for goal in (across, up))
            axes.errorbar(
                x, y,
                xerr=_bars(points, across), yerr=_bars(points, up),
                fmt=marker, color=colour, label=name, markersize=9 if marker == "*" else 5,
                elinewidth=0.7, zorder=3 if marker == "*" else 2,
            )  # fmt: skip
    if len(summary["goals"]) == 2:
        line = sorted(
            (_value(p, across), _value(p, up)) for p in summary["finalists"] if p["point"] in front
        )
        axes.plot([x for x, _ in line], [y for _, y in line], color=GREEN, linewidth=0.8, zorder=1)


def _group(point: Mapping[str, Any], front: set[int], chosen: int) -> str:
    if point["point"] == chosen:
        return "recommended"
    if point["origin"] in {"baseline", "candidate"}:
        return str(point["origin"])
    if point["point"] in front:
        return "on the front"
    kept = all(limit["kept"] for limit in point["limits"])
    return "keeps the limits" if kept else "misses a limit"


def _value(point: Mapping[str, Any], goal: int) -> float:
    return float(point["goals"][goal]["value"]["mean"])


def _bars(points: Sequence[Mapping[str, Any]], goal: int) -> list[list[float]]:
    below, above = [], []
    for point in points:
        value = point["goals"][goal]["value"]
        mean = value["mean"]
        below.append(max(0.0, mean - value["low"]) if value["low"] is not None else 0.0)
        above.append(max(0.0, value["high"] - mean) if value["high"] is not None else 0.0)
    return [below, above]
