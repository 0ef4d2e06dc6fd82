"""Picture of the Pareto front of an optimisation: finalists by pairs of goals, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eastwest.plot import picture
from eastwest.plot.numbers import record
from eastwest.plot.sheet import sheet
from eastwest.plot.style import BLUE, GREEN, INK, MUTED, ORANGE, PURPLE, style
from eastwest.views.front import GROUPS, group, interval, pairs

#: Colour and marker of each group of finalists.
_LOOKS = dict(
    zip(
        GROUPS,
        ((MUTED, "x"), (BLUE, "o"), (GREEN, "o"), (PURPLE, "D"), (INK, "s"), (ORANGE, "*")),
        strict=True,
    )
)


def draw(summary: Mapping[str, Any], path: Path) -> None:
    """Draw the finalists in the summary of an optimisation, and write the picture to ``path``."""
    with style():
        picture.save(figure(summary), path)


def figure(summary: Mapping[str, Any]) -> Figure:
    """Return a figure with a panel for each pair of the first three goals of an optimisation.

    ``summary`` is the summary of the optimisation; a panel shows the finalists with intervals.
    """
    goals = [goal["metric"] for goal in summary["goals"]]
    drawn = pairs(summary)
    with sheet((5.4 * len(drawn), 3.9), columns=len(drawn)) as (made, _):
        for axes, (across, up) in zip(made.axes, drawn, strict=True):
            axes.set_label(f"{goals[across]}, {goals[up]}")
            _panel(axes, summary, across, up)
            axes.set(xlabel=goals[across], ylabel=goals[up])
        made.axes[0].legend(loc="best")
    return made


def _panel(axes: Axes, summary: Mapping[str, Any], across: int, up: int) -> None:
    for name, (colour, marker) in _LOOKS.items():
        points = [point for point in summary["finalists"] if group(point, summary) == name]
        if points:
            both = [[interval(point, goal) for point in points] for goal in (across, up)]
            drawn = {"point": [point["point"] for point in points]}
            for goal, values in zip((across, up), both, strict=True):
                metric = summary["goals"][goal]["metric"]
                ends = ("", ".low", ".high")
                drawn |= {metric + e: [v[i] for v in values] for i, e in enumerate(ends)}
            record(axes, name, drawn)
            x, y = ([mean for mean, _, _ in values] for values in both)
            x_error, y_error = (
                [[max(0.0, m - low) for m, low, _ in v], [max(0.0, high - m) for m, _, high in v]]
                for v in both
            )
            axes.errorbar(
                x, y, xerr=x_error, yerr=y_error,
                fmt=marker, color=colour, label=name, markersize=9 if marker == "*" else 5,
                elinewidth=0.7, zorder=3 if marker == "*" else 2,
            )  # fmt: skip
    if len(summary["goals"]) == 2:
        front = {*summary["front"]}
        best = [point for point in summary["finalists"] if point["point"] in front]
        line = sorted((interval(p, across)[0], interval(p, up)[0]) for p in best)
        axes.plot([x for x, _ in line], [y for _, y in line], color=GREEN, linewidth=0.8, zorder=1)
