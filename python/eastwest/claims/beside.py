"""Figures of simulated values together with values that other people have measured or published.

The values of other people are CSV files of the study, named in ``[figure] beside``. Files for
figures of kind ``windows`` have the columns ``case``, ``run``, ``time_s`` and ``window``: the
congestion window in segments, one row for each change. Files for ``reads`` have the columns
``case``, ``senders``, ``goodput_mbps`` and ``sd`` (standard deviation of the goodput, in Mbit/s). A
panel shows only the rows of its own ``case``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from eastwest.claims.measures import Row
from eastwest.claims.spec import Figure as Wanted
from eastwest.claims.verdict import Part
from eastwest.errors import InputError
from eastwest.plot.style import BLUE, GREEN, MUTED, ORANGE, PURPLE, nothing

#: Colours of the values of other people, in the order of the files; simulated values are blue.
_OTHERS = (ORANGE, GREEN, PURPLE, MUTED)
_WINDOWS = {"case": pl.String, "run": pl.Int64, "time_s": pl.Float64, "window": pl.Float64}
_READS = {"case": pl.String, "senders": pl.Int64, "goodput_mbps": pl.Float64, "sd": pl.Float64}
#: Ends in s of the two time axes for congestion windows: beginning of a flow, and whole flow.
_BEGINNING_S, _WHOLE_S = 0.5, 10.0


def windows(wanted: Wanted, shown: Sequence[Part]) -> Figure:
    """Return a figure of congestion windows over time: two panels, side by side, for each metric.

    The left panel shows the first 0.5 s of the flow, the right panel the first 10 s.
    """
    parts = [part for part in shown if part.measured and part.measured.rows]
    rows = max(1, len(parts))
    figure = Figure(figsize=(10.6, 2.9 * rows + 0.4), layout="constrained")
    grid = figure.subplots(rows, 2, squeeze=False, width_ratios=(1, 2))
    if not parts:
        grid[0, 0].set_axis_off()
        nothing(grid[0, 1], "nothing was measured")
        return figure
    for (near, whole), part in zip(grid, parts, strict=True):
        for axes, until in ((near, _BEGINNING_S), (whole, _WHOLE_S)):
            _windows_panel(axes, wanted, part, until)
        near.set_title("the first half second")
        whole.set_title("all ten seconds")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels))
    return figure


def _windows_panel(axes: Axes, wanted: Wanted, part: Part, until_s: float) -> None:
    case = str(part.metric.arguments.get("case", ""))
    most = 1.0
    for (name, path), colour in zip(wanted.beside, _OTHERS, strict=False):
        table = _read(path, _WINDOWS).filter(pl.col("case") == case)
        for number, (_, run) in enumerate(table.group_by("run", maintain_order=True)):
            times, sizes = _until(run["time_s"].to_list(), run["window"].to_list(), until_s)
            label = name if number == 0 else None
            axes.step(times, sizes, where="post", color=colour, lw=2.0, alpha=0.4, label=label)
            most = max([most, *sizes])
    rows = part.measured.rows if part.measured else []
    told = [(float(str(row["time_s"])), float(str(row["window"]))) for row in rows]
    times, sizes = _until([time for time, _ in told], [size for _, size in told], until_s)
    axes.step(times, sizes, where="post", color=BLUE, lw=0.9, label="simulated")
    axes.set_xlim(0, until_s)
    axes.set_ylim(0, 1.08 * max([most, *sizes]))
    axes.set_xlabel("time (s)")
    axes.set_ylabel("window (segments)")


def _until(times: list[float], sizes: list[float], end: float) -> tuple[list[float], list[float]]:
    """Return (times, windows) of a curve that is cut at ``end``, in s.

    A curve that continues after ``end`` gets a last point at ``end``, with the last window before
    it. A curve that is wholly before or after ``end`` is not changed.
    """
    inside = sum(time < end for time in times)
    if not 0 < inside < len(times):
        return times, sizes
    return [*times[:inside], end], [*sizes[:inside], sizes[inside - 1]]


def reads(wanted: Wanted, shown: Sequence[Part]) -> Figure:
    """Return a figure of the goodput of synchronized reads against the number of senders.

    There is one panel for each case, such as a TCP variant.
    """
    rows = [row for part in shown if part.measured for row in part.measured.rows if "case" in row]
    cases = list(dict.fromkeys(str(row["case"]) for row in rows))
    columns = min(2, max(1, len(cases)))
    lines = max(1, math.ceil(len(cases) / columns))
    figure = Figure(figsize=(5.3 * columns, 3.0 * lines + 0.8), layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False).flatten()
    if not cases:
        nothing(grid[0], "nothing was measured")
        return figure
    for axes, case in zip(grid, cases, strict=False):
        _reads_panel(axes, wanted, [row for row in rows if row["case"] == case], case)
        if len(cases) > 1:
            axes.set_title(case.replace("_", ", "))
    for axes in grid[len(cases) :]:
        axes.set_axis_off()
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _reads_panel(axes: Axes, wanted: Wanted, rows: Sequence[Row], case: str) -> None:
    ticks: set[float] = set()
    for (name, path), colour in zip(wanted.beside, _OTHERS, strict=False):
        table = _read(path, _READS).filter(pl.col("case") == case).sort("senders")
        senders = table["senders"].to_list()
        ticks |= {*senders}
        axes.errorbar(
            senders, table["goodput_mbps"].to_list(), yerr=table["sd"].to_list(), fmt="s--", ms=4,
            lw=1, capsize=4, color=colour, label=name,
        )  # fmt: skip
    points = [[_mbps(row, key) for key in ("goodput_bps", "low", "high")] for row in rows]
    senders = [float(str(row["senders"])) for row in rows]
    ticks |= {*senders}
    means = [point[0] for point in points]
    around = [[max(0.0, m - low) for m, low, _ in points], [max(0.0, h - m) for m, _, h in points]]
    label = "simulated"
    axes.errorbar(
        senders, means, yerr=around, fmt="o-", ms=3, lw=1.4, capsize=2, color=BLUE, label=label
    )
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(sorted(ticks)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("senders")
    axes.set_ylabel("goodput (Mbit/s)")


def _mbps(row: Row, key: str) -> float:
    value = row["goodput_bps"] if row[key] is None else row[key]
    return float(str(value)) / 1e6


def _read(path: Path, columns: dict[str, type[pl.DataType]]) -> pl.DataFrame:
    """Return the table of a CSV file. Raises ``InputError`` where the file is not valid."""
    try:
        return pl.read_csv(path, columns=list(columns), schema_overrides=columns)
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from None
