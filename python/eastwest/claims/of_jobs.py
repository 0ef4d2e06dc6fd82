"""Figures of claims about the jobs of a run: distributions of job times, and consecutive jobs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eastwest.claims.spec import Figure as Wanted
from eastwest.claims.verdict import Part
from eastwest.plot.style import BLUE, ORANGE, log_time_axis, nothing

_PANEL = (5.3, 3.1)


def distributions(_: Wanted, shown: Sequence[Part]) -> Figure:
    """Return a figure of the distributions of job times at two settings, one panel by metric."""
    parts = [part for part in shown if _has(part, "share")]
    figure, grid = _grid(len(parts))
    for axes, part in zip(grid, parts, strict=False):
        rows = _rows(part)
        shares = [100 * row["share"] for row in rows]
        for key, argument, ink, line in (
            ("against_s", "against", ORANGE, "--"),
            ("at_s", "at", BLUE, "-"),
        ):
            label = _apart(part, argument)
            axes.plot([row[key] for row in rows], shares, line, color=ink, label=label)
        axes.set_title(part.metric.name)
        axes.set_xlabel("time of a job")
        axes.set_ylabel("jobs, %")
        axes.set_ylim(0, 100)
        log_time_axis(axes, "x")
        axes.legend(loc="lower right")
    return figure


def sequences(_: Wanted, shown: Sequence[Part]) -> Figure:
    """Return a figure of the times of consecutive jobs, with one panel for each sequence.

    Jobs that move at least ten times as many bytes as the median job have another colour.
    """
    found: dict[tuple[object, object], Part] = {}
    for part in shown:
        if _has(part, "number"):
            rows = _rows(part)
            found.setdefault((rows[0]["number"], rows[-1]["number"]), part)
    figure, grid = _grid(len(found))
    for axes, part in zip(grid, found.values(), strict=False):
        _sequence(axes, _rows(part))
    return figure


def _sequence(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    numbers = [row["number"] for row in rows]
    times = [row["runtime_s"] for row in rows]
    moved = sorted(row["bytes"] for row in rows)
    large = 10 * max(1, moved[len(moved) // 2])
    inks = [ORANGE if row["bytes"] >= large else BLUE for row in rows]
    axes.bar(numbers, times, color=inks, width=0.9)
    axes.set_title(f"jobs {numbers[0]:,} to {numbers[-1]:,}")
    axes.set_xlabel("job, by submission")
    axes.set_ylabel("time of a job")
    axes.set_ylim(1, 4 * max(times))  # room for the legend
    log_time_axis(axes, "y")
    for text, ink, height in (
        ("moves ten times the median or more", ORANGE, 0.97),
        ("moves less", BLUE, 0.89),
    ):
        axes.text(0.02, height, text, color=ink, transform=axes.transAxes, va="top", fontsize=8)


def _grid(count: int) -> tuple[Figure, list[Axes]]:
    columns = min(2, max(1, count))
    rows = -(-max(1, count) // columns)
    figure = Figure(figsize=(_PANEL[0] * columns, _PANEL[1] * rows + 0.3), layout="constrained")
    grid = list(figure.subplots(rows, columns, squeeze=False).flatten())
    for axes in itertools.islice(grid, count, None):
        axes.set_axis_off()
    if not count:
        nothing(grid[0], "nothing was measured")
    return figure, grid


def _rows(part: Part) -> list[dict[str, Any]]:
    return list(part.measured.rows) if part.measured else []


def _has(part: Part, key: str) -> bool:
    return any(key in row for row in _rows(part))


def _apart(part: Part, argument: str) -> str:
    """Return a label with the settings in ``argument`` of a metric, which is ``at`` or ``against``.

    Settings that are equal in both arguments are left out.
    """
    ours = part.metric.arguments[argument]
    other = part.metric.arguments["against" if argument == "at" else "at"]
    apart = {path: value for path, value in ours.items() if other.get(path) != value}
    return ", ".join(f"{path.rpartition('.')[2]} = {value}" for path, value in apart.items())
