"""Figures of claims: simulated values with their intervals, and published values.

A claim file chooses a kind of figure: ``bars`` of bytes per round trip, simulated and published;
``intervals`` of metrics with their bands; ``goodput`` against the number of senders, with the lines
of models; and ``power`` of a link against load, with the line of a model. Figures with values that
other people have measured (beside.py) are ``windows``, congestion windows over time, and ``reads``,
goodput of synchronized reads. Figures of jobs (of_jobs.py) are ``distributions`` of job times at
two settings, and ``sequences``: the times of consecutive jobs.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eastwest.claims import beside, of_jobs
from eastwest.claims.spec import Figure as Wanted
from eastwest.claims.verdict import DIFFERS, Outcome, Part
from eastwest.plot import picture
from eastwest.plot.style import (
    AMBER,
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PURPLE,
    log_axis,
    nothing,
    rate_ticks,
    style,
)

_PANEL = (5.3, 3.1)


def draw(outcome: Outcome, endings: Sequence[str]) -> dict[str, bytes]:
    """Return the contents of a claim's figure files by ending (``.svg``), or an empty mapping."""
    figure = figure_of(outcome) if endings else None
    if figure is None:
        return {}
    files = {}
    with style():
        for ending in endings:
            files[ending] = picture.drawn(figure, ending)
    return files


def figure_of(outcome: Outcome) -> Figure | None:
    """Return the figure of a claim, or None where the claim has no figure."""
    wanted = outcome.claim.figure
    if wanted is None:
        return None
    shown = [part for part in outcome.parts if part.metric.name in wanted.metrics and part.measured]
    with style():
        figure = _KINDS[wanted.kind](wanted, shown)
        # About eleven bold letters of the title's font size are one inch wide.
        title = textwrap.fill(wanted.title, int(11 * figure.get_figwidth()))
        figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
    return figure


def _panels(
    shown: Sequence[Part], one: Callable[[Axes, Part], None], title: Callable[[Part], str]
) -> Figure:
    """Return a figure with one panel for each metric, two in a row.

    ``one`` draws a panel, ``title`` returns its title.
    """
    columns = min(2, max(1, len(shown)))
    rows = max(1, math.ceil(len(shown) / columns))
    figure = Figure(figsize=(_PANEL[0] * columns, _PANEL[1] * rows + 0.3), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).flatten()
    for axes, part in zip(grid, shown, strict=False):
        one(axes, part)
        axes.set_title(title(part))
    for axes in grid[len(shown) :]:
        axes.set_axis_off()
    if not shown:
        nothing(grid[0], "nothing was measured")
    return figure


def _legend(figure: Figure) -> Figure:
    """Add one legend for all panels, with the entries of the first panel; return the figure."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside upper right", ncols=len(labels))
    return figure


def _rows(part: Part) -> list[dict[str, Any]]:
    return list(part.measured.rows) if part.measured else []


def _bars(_: Wanted, shown: Sequence[Part]) -> Figure:
    return _legend(_panels(shown, _bar_panel, lambda part: part.metric.name))


def _bar_panel(axes: Axes, part: Part) -> None:
    rows = [row for row in _rows(part) if row["seed"] == _rows(part)[0]["seed"]]
    number = [row["round trip"] for row in rows]
    sent = [row["sent_bytes"] for row in rows]
    axes.bar(number, sent, color=BLUE, width=0.6, label="simulated")
    published = [row["published"] for row in rows]
    axes.plot(number, published, "_", color=ORANGE, markersize=22, mew=2, label="published")
    for x, y in zip(number, sent, strict=True):
        axes.annotate(f"{y:,}", (x, y), (0, 3), textcoords="offset points", ha="center", fontsize=7)
    axes.set_xticks(number)
    axes.set_xlabel("round trip")
    axes.set_ylabel("bytes")
    axes.set_ylim(0, max([*sent, *published, 1]) * 1.15)


def _goodput(_: Wanted, shown: Sequence[Part]) -> Figure:
    def title(part: Part) -> str:
        sign = "differs" if part.verdict == DIFFERS else part.verdict
        return f"{part.metric.name}: {sign}"

    with_rows = [part for part in shown if _rows(part)]
    return _legend(_panels(with_rows, _goodput_panel, title))


def _goodput_panel(axes: Axes, part: Part) -> None:
    rows = _rows(part)
    senders = [row["senders"] for row in rows]
    means = [row["goodput_bps"] for row in rows]
    low = [row["low"] if row["low"] is not None else row["goodput_bps"] for row in rows]
    high = [row["high"] if row["high"] is not None else row["goodput_bps"] for row in rows]
    around = [
        [max(0.0, mean - end) for mean, end in zip(means, low, strict=True)],
        [max(0.0, end - mean) for mean, end in zip(means, high, strict=True)],
    ]
    axes.errorbar(
        senders,
        means,
        yerr=around,
        fmt="o-",
        ms=3,
        lw=1.2,
        capsize=2,
        color=BLUE,
        label="simulated",
    )
    axes.plot(senders, [row["equation_1"] for row in rows], "--", color=GREEN, label="equation (1)")
    axes.plot(senders, [row["equation_2"] for row in rows], ":", color=ORANGE, label="equation (2)")
    fitted = [row.get("equation_4") for row in rows]
    if any(value is not None for value in fitted):
        known = [math.nan if value is None else value for value in fitted]
        axes.plot(senders, known, "-.", color=PURPLE, label="equation (4)")
    if part.metric.measure == "onset":
        ends = [end for end in (part.metric.low, part.metric.high) if end is not None]
        axes.axvspan(min(ends) - 0.25, max(ends) + 0.25, color=AMBER, alpha=0.2, lw=0)
    axes.set_xlabel("senders")
    axes.set_ylabel("goodput")
    # The range of the logarithmic axis is set by the means and not by their confidence intervals:
    # if runs differ by powers of ten, an interval reaches below 0.
    models = [row[name] for row in rows for name in ("equation_1", "equation_2")]
    axes.set_ylim(min([*means, *models]) / 2, max([*means, *models]) * 1.5)
    log_axis(axes, "y")
    rate_ticks(axes)


def _intervals(_: Wanted, shown: Sequence[Part]) -> Figure:
    """Return a figure of metrics with intervals and bands, with one panel for each unit."""
    units: dict[str, list[Part]] = {}
    for part in shown:
        units.setdefault(part.metric.unit, []).append(part)
    rows = [len(parts) for parts in units.values()] or [1]
    height = 0.7 * sum(rows) + 0.5 * len(rows) + 0.4
    figure = Figure(figsize=(2 * _PANEL[0], height), layout="constrained")
    grid = figure.subplots(len(rows), 1, squeeze=False, height_ratios=rows).flatten()
    if not shown:
        nothing(grid[0], "nothing was measured")
    for axes, (unit, parts) in zip(grid, units.items(), strict=False):
        _interval_panel(axes, unit, parts)
    return figure


def _interval_panel(axes: Axes, unit: str, parts: Sequence[Part]) -> None:
    bands = []
    for place, part in enumerate(reversed(parts)):
        value, low, high = part.numbers()
        bands.append((part.metric.low, part.metric.high))
        axes.plot([value or 0.0], [place], "o", color=BLUE)
        if low is not None and high is not None:
            axes.plot([low, high], [place, place], color=BLUE, lw=2)
        axes.annotate(
            part.text(), (value or 0.0, place), (0, 9), textcoords="offset points", ha="center",
            color=INK, fontsize=8,
        )  # fmt: skip
        ends = [end for end in bands[-1] if end is not None]
        axes.plot(ends, [place] * len(ends), alpha=0)  # extends the axis to these values
    axes.margins(x=0.15)
    left, right = axes.get_xlim()
    for place, (low, high) in enumerate(bands):
        if low is None and high is None:
            continue
        # A band without a lower or upper end extends to the edge of the figure.
        begin, end = left if low is None else low, right if high is None else high
        axes.barh(place, end - begin, 0.6, left=begin, color=AMBER, alpha=0.25)
    axes.set_xlim(left, right)
    axes.set_yticks(range(len(parts)), [part.metric.name for part in reversed(parts)])
    axes.set_ylim(-0.6, len(parts) - 0.3)
    axes.set_xlabel(unit, color=MUTED)


def _power(_: Wanted, shown: Sequence[Part]) -> Figure:
    figure = Figure(figsize=(_PANEL[0], _PANEL[1] + 0.3), layout="constrained")
    axes = figure.subplots()
    curves = [part for part in shown if any("model" in row for row in _rows(part))]
    if not curves:
        nothing(axes, "nothing was measured")
    for part, ink in zip(curves, (BLUE, ORANGE), strict=False):
        rows = sorted(_rows(part), key=lambda row: float(row["load"]))
        loads = [100 * row["load"] for row in rows]
        label = str(part.metric.arguments["policy"])
        axes.plot(loads, [100 * row["model"] for row in rows], "--", color=ink, label=label)
        axes.plot(loads, [100 * row["power"] for row in rows], "o", color=BLUE, ms=4)
    axes.set_xlabel("load, %")
    axes.set_ylabel("power, % (dots: simulated)")
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 103)
    return _legend(figure)


_KINDS: Mapping[str, Callable[[Wanted, Sequence[Part]], Figure]] = {
    "bars": _bars,
    "distributions": of_jobs.distributions,
    "goodput": _goodput,
    "intervals": _intervals,
    "power": _power,
    "reads": beside.reads,
    "sequences": of_jobs.sequences,
    "windows": beside.windows,
}
