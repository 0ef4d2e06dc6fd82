"""Pictures of the links and queues of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from eastwest.plot.numbers import record
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
from eastwest.units import clean, percent, rate, span, tier_words
from eastwest.views.links import longest_queue, sent_title, upward

#: Maximum number of points of a line; of more points, neighbours are combined into one point.
_MOST_POINTS = 500


def throughput(axes: Axes, results: Sequence[tuple[str, Result]]) -> str:
    """Draw over time the total rate of the links of each upward tier; return the title."""
    traffic = results[0][1].traffic
    tiers = upward(traffic)
    times = np.sort(traffic["time_s"].unique().to_numpy())
    end = float(times[-1])
    interval = np.diff(times, prepend=0.0)
    scale = time_axis(axes, end)
    group = -(-times.size // _MOST_POINTS)
    starts = np.arange(0, times.size, group)
    seconds = np.add.reduceat(interval, starts)
    edges = np.append(0.0, times[np.append(starts[1:] - 1, times.size - 1)]) * scale
    found = []
    for number, tier in enumerate(tiers):
        rows = traffic.filter(pl.col("tier") == tier).group_by("time_s").agg(pl.col("bytes").sum())
        carried = np.zeros(times.size)
        carried[np.searchsorted(times, rows["time_s"].to_numpy())] = rows["bytes"].to_numpy()
        bits = np.add.reduceat(carried, starts) * 8 / np.where(seconds > 0, seconds, 1)
        axes.stairs(bits, edges, color=color(number), linewidth=1.2, label=tier_words(tier))
        bins = {"time_s": edges[:-1] / scale, "until_s": edges[1:] / scale}
        record(axes, tier_words(tier), {**bins, "rate_bps": bits})
        found.append((float(carried.sum() * 8 / end) if end > 0 else 0.0, float(bits.max())))
    axes.set(xlim=(0, end * scale), ylim=(0, None), ylabel="all links together")
    rate_ticks(axes)
    legend_above(axes)
    return sent_title(tiers[0], *found[0])


def utilisation(axes: Axes, results: Sequence[tuple[str, Result]]) -> str:
    """Draw the utilisation of each link over the run as a mark, in one row for each tier.

    Returns the title. A diamond is the mean of a tier.
    """
    links = results[0][1].links
    tiers = links["tier"].unique(maintain_order=True).to_list()
    look: dict[str, Any] = {
        "color": BLUE,
        "alpha": 0.5,
        "linewidth": 1.2,
        "rasterized": links.height > 1000,
    }
    for row, tier in enumerate(tiers):
        of_tier = links.filter(pl.col("tier") == tier)
        used = of_tier["utilisation"].to_numpy()
        record(axes, tier_words(tier), {"link": of_tier["name"], "utilisation": used})
        axes.vlines(used, row - 0.3, row + 0.3, **look)
        mean = float(used.mean())
        axes.plot([mean], [row], "D", color=INK, markersize=4)
        beside: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "center"}
        axes.annotate(f"mean {percent(mean)}", (1.02, row), **beside)
    axes.set_yticks(range(len(tiers)), [tier_words(tier) for tier in tiers])
    busiest = links.sort("utilisation", descending=True).row(0, named=True)
    highest = float(links["utilisation"].max() or 0.0)  # type: ignore[arg-type]
    right = min(1.0, max(0.01, 1.08 * highest))
    axes.set(xlim=(0, right), ylim=(len(tiers) - 0.4, -0.6))
    axes.set_xlabel("share of the link's rate used over the run")
    axes.grid(visible=False, axis="y")
    percent_ticks(axes, "x")
    return f"The busiest link, {clean(busiest['name'], 40)}, is used {percent(highest)} of the time"


def queues(axes: Axes, results: Sequence[tuple[str, Result]]) -> str:
    """Draw the longest sampled queue of each tier over time, in packets; return the title."""
    result = results[0][1]
    sampled = result.queues.join(result.links.select("link", "tier"), on="link", how="left")
    end = float(sampled["time_s"].max() or 0.0)  # type: ignore[arg-type]
    scale = time_axis(axes, end)
    width = max(end, 1e-9) / _MOST_POINTS
    place = (pl.col("time_s") / width).floor().alias("bin")
    for number, tier in enumerate(sampled["tier"].unique(maintain_order=True).sort().to_list()):
        of_tier = sampled.filter(pl.col("tier") == tier)
        longest = of_tier.group_by(place).agg(pl.col("packets").max()).sort("bin")
        at = (longest["bin"].to_numpy() + 0.5) * width * scale
        look: dict[str, Any] = {
            "color": color(number),
            "markersize": 4,
            "label": tier_words(str(tier)),
        }
        # Points, not a line: between two samples a queue may have been empty.
        axes.plot(at, longest["packets"].to_numpy(), ".", **look)
        drawn = {"time_s": at / scale, "queue_packets": longest["packets"]}
        record(axes, tier_words(str(tier)), drawn)
    axes.set(xlim=(0, end * scale), ylim=(0, None), ylabel="packets, longest queue")
    legend_above(axes)
    return f"{longest_queue(result.links)}; dots are samples"


def rounds(axes: Axes, results: Sequence[tuple[str, Result]]) -> str:
    """Draw the duration of each round of synchronized reads; return the title."""
    table = results[0][1].rounds
    if table.height == 0:
        return nothing(axes, "No round has finished")
    took = (table["finished_s"] - table["started_s"]).to_numpy()
    axes.bar(np.arange(took.size), took, color=GREEN, width=0.8)
    record(axes, "", {"round": np.arange(took.size), "duration_s": took})
    axes.set(xlabel="round", ylim=(0, None), ylabel="time until the last byte")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    span_ticks(axes, "y")
    axes.grid(visible=False, axis="x")
    seconds = float(took.sum())
    goodput = float(table["bytes"].sum()) * 8 / seconds if seconds > 0 else None
    return f"{took.size} rounds take {span(float(took.mean()))} on average: {rate(goodput)}"
