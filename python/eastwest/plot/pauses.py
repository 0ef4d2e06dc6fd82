"""Pictures of pauses: the paused ports over time, and how pauses spread."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from eastwest.plot.style import BLUE, nothing, style, time_axis
from eastwest.results import Result
from eastwest.units import clean, count, span

#: Most rows of ports and priorities that are drawn: those with the longest time in pause.
_MOST_ROWS = 40
#: Columns of the picture: about the number of pixels of a screen.
_COLUMNS = 1500

Floats = npt.NDArray[np.float64]


def sound(result: Result) -> pl.DataFrame:
    """Return the rows of the table ``pauses`` with valid times, and the name of their port."""
    times = [pl.col(c).is_between(0, 1e9) for c in ("began_s", "until_s")]
    rows = result.pauses.filter(*times, pl.col("began_s") <= pl.col("until_s"))
    names = result.links.select("link", pl.col("name").alias("port")).unique("link")
    unknown = pl.format("link {}", pl.col("link"))
    return rows.join(names, on="link", how="left").with_columns(pl.col("port").fill_null(unknown))


def places(pauses: pl.DataFrame) -> pl.DataFrame:
    """Return each port and priority that was paused, with number and duration of its pauses.

    Columns: ``link``, ``priority``, ``port``, ``pauses``, ``paused_s``, ``first_s``, ``longest_s``,
    in the order of the first pause.
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
    """Return the ``most`` rows of :func:`places` longest in pause, in order of first pauses."""
    kept = found.sort("paused_s", descending=True, maintain_order=True).head(most)
    return kept.sort("first_s", "link", "priority")


def shares(pauses: pl.DataFrame, rows: pl.DataFrame, edges: Floats) -> Floats:
    """Return the share of time in pause, (rows of :func:`places`, intervals between edges)."""
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
    """Return for each edge the sum of the times from all earlier ``times`` to the edge."""
    ordered = np.sort(times)
    number = np.searchsorted(ordered, edges)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])[number]
    return np.asarray(number * edges - sums)


def names(rows: pl.DataFrame, *, several: bool) -> list[str]:
    """Return the names of the rows of :func:`places`, with priorities where there are several."""
    return [
        clean(port, 40) + (f" ({priority})" if several else "")
        for port, priority in rows.select("port", "priority").iter_rows()
    ]


def sentence(found: pl.DataFrame) -> str:
    """Return a sentence on the paused ports, and on where pauses began."""
    first = found.row(0, named=True)
    ports = found["link"].n_unique()
    pauses = int(found["pauses"].sum())
    return (
        f"{count(pauses)} {'pause' if pauses == 1 else 'pauses'} at {count(ports)} "
        f"{'port' if ports == 1 else 'ports'}, {span(float(found['paused_s'].sum()))} in all; the "
        f"first at {clean(first['port'], 40)} after {span(first['first_s'])}"
    )


def pauses(result: Result) -> Figure:
    """Draw the pauses by PFC of each port and priority over time: how pauses spread.

    There is one row for each port and priority, from top to bottom in the order of their first
    pauses; of more than 40 those with the longest time in pause are drawn. Where pauses are shorter
    than the picture can show, the shade is the share of the time in pause. Needs
    ``measure.pauses``.
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
