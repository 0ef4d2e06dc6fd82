"""Pictures of the parts of flows' completion times."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eastwest.plot.latency import SIZE_BINS
from eastwest.plot.style import color, legend_above, nothing, percent_ticks, style
from eastwest.results import Result
from eastwest.units import count, percent, span

#: Parts of the time of a flow, in the order in which they are stacked.
PARTS = ("injection", "queueing", "flight", "retransmission")
_WIDE = (10.9, 3.2)


def parts_by_size(result: Result) -> pl.DataFrame:
    """Return a table of the parts of flows' completion times, by size bin.

    Columns: ``size``, ``flows``, ``completion_us`` (median), for each part the mean over flows of
    its share of a flow's time (``injection_share`` …), and its 99th percentile in microseconds
    (``injection_us_p99`` …). Flows that took no time are left out. Without ``measure.flow_parts``
    there is no row.
    """
    flows = result.flow_parts.filter(pl.col("completion_us") > 0)
    rows = []
    low = -1
    for high, name in SIZE_BINS:
        inside = flows.filter(pl.col("bytes") > low)
        if high is not None:
            inside = inside.filter(pl.col("bytes") <= high)
            low = high
        if inside.height:
            whole = inside["completion_us"]
            row: dict[str, object] = {"size": name, "flows": inside.height}
            row["completion_us"] = whole.quantile(0.5, "higher")
            for part in PARTS:
                row[f"{part}_share"] = (inside[f"{part}_us"] / whole).mean()
                row[f"{part}_us_p99"] = inside[f"{part}_us"].quantile(0.99, "higher")
            rows.append(row)
    return pl.DataFrame(rows)


def largest_part(table: pl.DataFrame) -> str:
    """Return a sentence on the largest part, for the size with the most flows."""
    row = table.sort("flows", descending=True).row(0, named=True)
    part = max(PARTS, key=lambda each: float(row[f"{each}_share"]))
    return (
        f"Flows of {row['size']} spend {percent(row[f'{part}_share'])} of their time on {part}, "
        "on average"
    )


def flow_parts(result: Result) -> Figure:
    """Draw the mean parts of flows' completion times, by size: injection, queueing and others.

    Each bar has the mean over flows of each share, and above it the median of completion times.
    Needs ``measure.flow_parts``.
    """
    table = parts_by_size(result)
    with style():
        figure = Figure(figsize=_WIDE, layout="constrained")
        axes: Axes = figure.add_subplot()
        if table.height == 0:
            why = "No flow was split: name senders in measure.flow_parts"
            axes.set_title(nothing(axes, why))
            return figure
        at = np.arange(table.height)
        below = np.zeros(table.height)
        for number, part in enumerate(PARTS):
            share = table[f"{part}_share"].to_numpy().astype(float)
            axes.bar(at, share, 0.62, below, color=color(number), label=part)
            below = below + share
        for place, row in enumerate(table.iter_rows(named=True)):
            said = f"{count(row['flows'])} flows, median {span(row['completion_us'] / 1e6)}"
            axes.text(place, 1.02, said, ha="center", va="bottom")
        axes.set_ylim(0, 1.12)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
        percent_ticks(axes, "y")
        axes.set_xticks(at, table["size"].to_list())
        beside = max(0.1, (3 - table.height) / 2)
        axes.set_xlim(-0.5 - beside, table.height - 0.5 + beside)
        axes.set_ylabel("share of the time of a flow")
        axes.grid(visible=False, axis="x")
        legend_above(axes)
        axes.set_title(largest_part(table))
    return figure
