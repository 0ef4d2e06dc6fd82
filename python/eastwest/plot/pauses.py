"""Pictures of pauses: when which port was paused, and how pauses spread."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from eastwest.plot.style import BLUE, ORANGE, legend_above, nothing, style, time_axis
from eastwest.results import Result
from eastwest.units import clean, count, span

#: Ports and priorities that are drawn, those paused for longest.
_MOST_ROWS = 40
#: Pauses closer together than this share of the time axis are drawn as one.
_FINEST = 1 / 3000


def sound(result: Result) -> pl.DataFrame:
    """Rows of the table ``pauses`` with times that a run can have, and the name of their port."""
    times = [pl.col(c).is_between(0, 1e9) for c in ("began_s", "until_s")]
    rows = result.pauses.filter(*times, pl.col("began_s") <= pl.col("until_s"))
    names = result.links.select("link", pl.col("name").alias("port")).unique("link")
    unknown = pl.format("link {}", pl.col("link"))
    return rows.join(names, on="link", how="left").with_columns(pl.col("port").fill_null(unknown))


def places(pauses: pl.DataFrame) -> pl.DataFrame:
    """Each port and priority that was paused: pauses, time in pause, when first and for how long.

    Columns: ``link``, ``priority``, ``port``, ``pauses``, ``paused_s``, ``first_s``, ``longest_s``,
    in the order in which they were first paused.
    """
    long = pl.col("until_s") - pl.col("began_s")
    grouped = pauses.group_by("link", "priority").agg(
        port=pl.col("port").first(),
        pauses=pl.len(),
        paused_s=long.sum(),
        first_s=pl.col("began_s").min(),
        longest_s=long.max(),
    )
    return grouped.sort("first_s", "link", "priority")


def sentence(found: pl.DataFrame) -> str:
    """Say how much of what is paused, and where it began."""
    first = found.row(0, named=True)
    ports = found["link"].n_unique()
    pauses = int(found["pauses"].sum())
    return (
        f"{count(pauses)} {'pause' if pauses == 1 else 'pauses'} at {count(ports)} "
        f"{'port' if ports == 1 else 'ports'}, {span(float(found['paused_s'].sum()))} in all; the "
        f"first at {clean(first['port'], 40)} after {span(first['first_s'])}"
    )


def pauses(result: Result) -> Figure:
    """Draw when which port and priority was paused by PFC: how pauses spread.

    A row for each port and priority, from top to bottom in the order in which they were first
    paused; of more than 40 those that were paused for longest. Pauses that lie closer together than
    the picture can show are drawn as one. Needs ``measure.pauses``.
    """
    rows = sound(result)
    with style():
        if rows.height == 0:
            figure = Figure(figsize=(10.9, 3.2), layout="constrained")
            axes = figure.add_subplot()
            why = "No pause was logged: name ports in measure.pauses, with [fabric.pfc]"
            axes.set_title(nothing(axes, why))
            return figure
        found = places(rows)
        longest = found.sort("paused_s", descending=True, maintain_order=True).head(_MOST_ROWS)
        shown = longest.sort("first_s", "link", "priority").with_row_index("row")
        figure = Figure(figsize=(10.9, 1.3 + 0.19 * max(4, shown.height)), layout="constrained")
        axes = figure.add_subplot()
        end = max(float(np.max(rows["until_s"].to_numpy())), 1e-9)
        scale = time_axis(axes, end)
        for open_at_end, shade, label in (
            (False, BLUE, "paused"),
            (True, ORANGE, "still paused at the end"),
        ):
            some = rows.filter((pl.col("ended") == "not-yet") == open_at_end)
            _bars(axes, merged(some, end * _FINEST), shown, (scale, shade, label))
        axes.set_xlim(0, end * scale)
        axes.set_ylim(shown.height, 0)
        several = found["priority"].n_unique() > 1
        names = [
            clean(port, 40) + (f" ({priority})" if several else "")
            for port, priority in shown.select("port", "priority").iter_rows()
        ]
        axes.set_yticks(np.arange(shown.height) + 0.5, names)
        axes.grid(visible=False, axis="y")
        legend_above(axes)
        more = found.height - shown.height
        axes.set_title(sentence(found) + (f" ({count(more)} more not drawn)" if more else ""))
    return figure


def merged(rows: pl.DataFrame, gap: float) -> pl.DataFrame:
    """Pauses of a port and priority, those as one that less than ``gap`` seconds lie between."""
    key = ["link", "priority"]
    ordered = rows.sort([*key, "began_s"])
    before = pl.col("until_s").cum_max().shift(1).over(key)
    apart = (pl.col("began_s") - before > gap).fill_null(value=True)
    numbered = ordered.with_columns(piece=apart.cum_sum())
    return numbered.group_by([*key, "piece"], maintain_order=True).agg(
        pl.col("began_s").min(), pl.col("until_s").max()
    )


def _bars(axes: Axes, bars: pl.DataFrame, shown: pl.DataFrame, how: tuple[float, str, str]) -> None:
    scale, shade, label = how
    placed = bars.join(shown.select("link", "priority", "row"), on=["link", "priority"])
    shapes = []
    for row, began, until in placed.select("row", "began_s", "until_s").iter_rows():
        left, right, low, high = began * scale, until * scale, row + 0.15, row + 0.85
        shapes.append([(left, low), (right, low), (right, high), (left, high)])
    if shapes:
        # the edge keeps a bar visible that is narrower than a pixel
        axes.add_collection(
            PolyCollection(shapes, facecolors=shade, edgecolors=shade, linewidths=0.3, label=label)
        )
