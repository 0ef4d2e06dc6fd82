"""Pictures of pauses: when which port was paused, and how pauses spread."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from eastwest.plot.style import BLUE, nothing, style, time_axis
from eastwest.results import Result
from eastwest.units import clean, count, span

#: Ports and priorities that are drawn, those paused for longest.
_MOST_ROWS = 40
#: Columns of the picture: about as many as a screen has pixels for them.
_COLUMNS = 1500

Floats = npt.NDArray[np.float64]


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


def longest(found: pl.DataFrame, most: int) -> pl.DataFrame:
    """Those of :func:`places` that were paused for longest, in the order of their first pauses."""
    kept = found.sort("paused_s", descending=True, maintain_order=True).head(most)
    return kept.sort("first_s", "link", "priority")


def shares(pauses: pl.DataFrame, rows: pl.DataFrame, edges: Floats) -> Floats:
    """Share of the time between each two edges in which each row of :func:`places` was paused."""
    parts = pauses.partition_by("link", "priority", as_dict=True)
    drawn = []
    for link, priority in rows.select("link", "priority").iter_rows():
        own = parts[link, priority]
        spans = _before(own["began_s"].to_numpy(), edges) - _before(
            own["until_s"].to_numpy(), edges
        )
        drawn.append(np.clip(np.diff(spans) / np.diff(edges), 0, 1))
    return np.array(drawn)


def _before(times: Floats, edges: Floats) -> Floats:
    """Time from each of ``times`` that lies before an edge to the edge, summed, by edge."""
    ordered = np.sort(times)
    number = np.searchsorted(ordered, edges)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])[number]
    return np.asarray(number * edges - sums)


def names(rows: pl.DataFrame, *, several: bool) -> list[str]:
    """Names of the rows of :func:`places`, with their priorities where there are several."""
    return [
        clean(port, 40) + (f" ({priority})" if several else "")
        for port, priority in rows.select("port", "priority").iter_rows()
    ]


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
    paused; of more than 40 those that were paused for longest. Where pauses are shorter than the
    picture can show, the shade is the share of the time in pause. Needs ``measure.pauses``.
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
        shown = longest(found, _MOST_ROWS)
        figure = Figure(figsize=(10.9, 1.3 + 0.19 * max(4, shown.height)), layout="constrained")
        axes = figure.add_subplot()
        end = max(float(np.max(rows["until_s"].to_numpy())), 1e-9)
        scale = time_axis(axes, end)
        image = axes.imshow(
            shares(rows, shown, np.linspace(0, end, _COLUMNS + 1)),
            aspect="auto",
            interpolation="nearest",
            cmap=LinearSegmentedColormap.from_list("paused", ["#ffffff00", BLUE]),
            vmin=0,
            vmax=1,
            extent=(0, end * scale, shown.height, 0),
        )
        several = found["priority"].n_unique() > 1
        axes.set_yticks(np.arange(shown.height) + 0.5, names(shown, several=several))
        axes.hlines(np.arange(1, shown.height), 0, end * scale, color="white", lw=1.5)
        axes.grid(visible=False)
        bar = figure.colorbar(image, ax=axes, pad=0.01, ticks=[0, 0.5, 1])
        bar.ax.set_yticklabels(["0 %", "50 %", "100 %"])
        bar.set_label("in pause")
        more = found.height - shown.height
        axes.set_title(sentence(found) + (f" ({count(more)} more not drawn)" if more else ""))
    return figure
