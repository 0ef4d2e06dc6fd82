"""Pictures of links and queues."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from eastwest.plot.style import (
    BLUE,
    GREEN,
    INK,
    color,
    legend_above,
    nothing,
    percent_ticks,
    rate_ticks,
    span_ticks,
    time_axis,
)
from eastwest.results import Result
from eastwest.units import clean, percent, rate, size, span, tier_words

#: Most points of a line; more are averaged, because a page has no more pixels.
_MOST_POINTS = 500


def any_traffic(result: Result) -> bool:
    """Whether the bytes carried were recorded over time."""
    return result.traffic.height > 0


def any_links(result: Result) -> bool:
    """Whether the fabric has links."""
    return result.links.height > 0


def any_queues(result: Result) -> bool:
    """Whether queues were sampled and any of them ever had a packet."""
    return result.queues.height > 0


def any_rounds(result: Result) -> bool:
    """Whether there were synchronized reads."""
    return result.rounds.height > 0


def throughput(axes: Axes, results: Sequence[tuple[str, Result]]) -> str:
    """Draw the rate that each tier carries upwards over time."""
    traffic = results[0][1].traffic
    tiers = traffic["tier"].unique(maintain_order=True).to_list()
    upward = [tier for tier in tiers if tier.endswith("-up")] or tiers
    times = np.sort(traffic["time_s"].unique().to_numpy())
    end = float(times[-1])
    interval = np.diff(times, prepend=0.0)
    scale = time_axis(axes, end)
    group = -(-times.size // _MOST_POINTS)
    peaks: dict[str, tuple[float, float]] = {}
    for number, tier in enumerate(upward):
        rows = traffic.filter(pl.col("tier") == tier).group_by("time_s").agg(pl.col("bytes").sum())
        carried = np.zeros(times.size)
        carried[np.searchsorted(times, rows["time_s"].to_numpy())] = rows["bytes"].to_numpy()
        starts = np.arange(0, times.size, group)
        seconds = np.add.reduceat(interval, starts)
        bits = np.add.reduceat(carried, starts) * 8 / np.where(seconds > 0, seconds, 1)
        edges = np.append(0.0, times[np.append(starts[1:] - 1, times.size - 1)])
        axes.stairs(bits, edges * scale, color=color(number), linewidth=1.2, label=tier_words(tier))
        peaks[tier] = (float(carried.sum() * 8 / end) if end > 0 else 0.0, float(bits.max()))
    axes.set_xlim(0, end * scale)
    axes.set_ylim(0, None)
    rate_ticks(axes)
    axes.set_ylabel("all links together")
    legend_above(axes)
    mean, peak = peaks[upward[0]]
    source = "Hosts" if upward[0] == "host-up" else tier_words(upward[0]).capitalize()
    return f"{source} together send {rate(mean)} on average, {rate(peak)} at the peak"


def utilisation(axes: Axes, results: Sequence[tuple[str, Result]]) -> str:
    """Draw a mark for every link at its utilisation, tier by tier."""
    links = results[0][1].links
    tiers = links["tier"].unique(maintain_order=True).to_list()
    many = links.height > 1000
    for row, tier in enumerate(tiers):
        used = links.filter(pl.col("tier") == tier)["utilisation"].to_numpy()
        axes.vlines(
            used, row - 0.3, row + 0.3, color=BLUE, alpha=0.5, linewidth=1.2, rasterized=many
        )
        mean = float(used.mean())
        axes.plot([mean], [row], "D", color=INK, markersize=4)
        axes.annotate(
            f"mean {percent(mean)}", (1.02, row), xycoords=("axes fraction", "data"), va="center"
        )
    axes.set_yticks(range(len(tiers)), [tier_words(tier) for tier in tiers])
    axes.set_ylim(len(tiers) - 0.4, -0.6)
    highest = float(links["utilisation"].max() or 0.0)  # type: ignore[arg-type]
    axes.set_xlim(0, min(1.0, max(0.01, 1.08 * highest)))
    axes.grid(visible=False, axis="y")
    percent_ticks(axes, "x")
    axes.set_xlabel("share of the link's rate used over the run")
    busiest = links.sort("utilisation", descending=True).row(0, named=True)
    return f"The busiest link, {clean(busiest['name'], 40)}, is used {percent(highest)} of the time"


def queues(axes: Axes, results: Sequence[tuple[str, Result]]) -> str:
    """Draw the longest sampled queue of each tier over time."""
    result = results[0][1]
    tiers = result.links.select("link", "tier", "name")
    sampled = result.queues.join(tiers, on="link", how="left")
    end = float(sampled["time_s"].max() or 0.0)  # type: ignore[arg-type]
    scale = time_axis(axes, end)
    width = max(end, 1e-9) / _MOST_POINTS
    for number, tier in enumerate(sampled["tier"].unique(maintain_order=True).sort().to_list()):
        longest = (
            sampled.filter(pl.col("tier") == tier)
            .group_by((pl.col("time_s") / width).floor().alias("bin"))
            .agg(pl.col("packets").max())
            .sort("bin")
        )
        axes.plot(
            (longest["bin"].to_numpy() + 0.5) * width * scale,
            longest["packets"].to_numpy(),
            # Points, not a line: between two samples a queue may have been empty.
            ".",
            color=color(number),
            markersize=4,
            label=tier_words(str(tier)),
        )
    axes.set_ylim(0, None)
    axes.set_xlim(0, end * scale)
    axes.set_ylabel("packets, longest queue")
    legend_above(axes)
    fullest = result.links.sort("queue_max_us", descending=True).row(0, named=True)
    return (
        f"The longest queue, at {clean(fullest['name'], 40)}, reaches "
        f"{size(fullest['queue_max_bytes'])}: {span(fullest['queue_max_us'] / 1e6)} to drain; "
        "dots are samples"
    )


def rounds(axes: Axes, results: Sequence[tuple[str, Result]]) -> str:
    """Draw the duration of each round of synchronized reads."""
    table = results[0][1].rounds
    if table.height == 0:
        return nothing(axes, "No round has finished")
    took = (table["finished_s"] - table["started_s"]).to_numpy()
    axes.bar(np.arange(took.size), took, color=GREEN, width=0.8)
    axes.set_xlabel("round")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(0, None)
    span_ticks(axes, "y")
    axes.set_ylabel("time until the last byte")
    axes.grid(visible=False, axis="x")
    seconds = float(took.sum())
    goodput = float(table["bytes"].sum()) * 8 / seconds if seconds > 0 else None
    return f"{took.size} rounds take {span(float(took.mean()))} on average: {rate(goodput)}"
