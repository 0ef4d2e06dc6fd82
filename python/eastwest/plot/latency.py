"""Pictures of the latency of packets and the completion times of flows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from eastwest.plot.style import color, log_axis, log_time_axis, nothing, percent_ticks, span_ticks
from eastwest.results import Result
from eastwest.units import clean, span

#: Upper ends of the bins of flow sizes in bytes, and their names.
SIZE_BINS = (
    (10_000, "≤ 10 kB"),
    (100_000, "10–100 kB"),
    (1_000_000, "100 kB–1 MB"),
    (10_000_000, "1–10 MB"),
    (None, "> 10 MB"),
)
_DASHES = ("-", "--", ":", "-.")
_NINES = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)


def any_packets(result: Result) -> bool:
    """Whether any packet's latency was measured."""
    return int(result.latency["count"].sum()) > 0


def several_sizes(result: Result) -> bool:
    """Whether finished flows have more than one size bin."""
    return by_size(result).height > 1


def one_size(result: Result) -> bool:
    """Whether all finished flows are in one size bin."""
    return by_size(result).height == 1


def finished(result: Result) -> pl.DataFrame:
    """Return the rows of the flows that are complete."""
    return result.flows.filter(pl.col("fct_us").is_finite())


def quantile(histogram: pl.DataFrame, share: float) -> float | None:
    """Return the latency in µs that a share of the packets of a histogram does not exceed."""
    ordered = histogram.sort("upper_us")
    total = np.cumsum(ordered["count"].to_numpy().astype(np.float64))
    if total.size == 0 or total[-1] == 0:
        return None
    place = int(np.searchsorted(total, share * total[-1]))
    return float(ordered["upper_us"].to_numpy()[min(place, total.size - 1)])


def percentiles(axes: Axes, results: Sequence[tuple[str, Result]]) -> str:
    """Draw latency against the share of packets, with the tail stretched."""
    title, drawn = "", 0
    for number, (label, result) in enumerate(results):
        data = result.latency.filter(pl.col("kind") == "data")
        busiest = data.group_by("class").agg(pl.col("count").sum()).sort("count", descending=True)
        classes = busiest.filter(pl.col("count") > 0)["class"].to_list()[:4]
        for place, name in enumerate(classes):
            one = data.filter((pl.col("class") == name) & (pl.col("count") > 0)).sort("upper_us")
            seen = np.cumsum(one["count"].to_numpy().astype(np.float64))
            share = seen / seen[-1]
            # The share of the last bucket is 1, which is not on the axis: half a packet is
            # subtracted.
            rest = np.maximum(1 - share, 0.5 / seen[-1])
            words = " ".join(part for part in (label, clean(str(name), 30)) if part)
            axes.step(
                -np.log10(rest),
                one["upper_us"].to_numpy() / 1e6,
                where="post",
                # One result has one colour for each class; of several, each has a colour, and each
                # class a dash.
                color=color(place if len(results) == 1 else number),
                linestyle="-" if len(results) == 1 else _DASHES[place],
                label=words,
            )
            tail = quantile(one, 0.99)
            title = title or f"99 % of {clean(str(name), 30)} packets arrive within " + span(
                None if tail is None else tail / 1e6
            )
            drawn += 1
    if not title:
        return nothing(axes, "No data packet was measured")
    log_time_axis(axes, "y")
    places = [-np.log10(1 - share) for share in _NINES]
    axes.set_xticks(places, [f"{100 * share:.10g} %" for share in _NINES])
    axes.set_xlim(0, max(places[3], min(axes.get_xlim()[1], places[-1])))
    axes.set_xlabel("share of data packets that are at least as fast")
    axes.set_ylabel("end-to-end latency")
    if drawn > 1:
        axes.legend(loc="best")
    return title if len(results) == 1 else "How long data packets take"


def by_size(result: Result) -> pl.DataFrame:
    """Return flows by size bin: number, FCT in µs and slowdown, median and 99th percentile."""
    rows = []
    low = -1
    flows = finished(result)
    for high, name in SIZE_BINS:
        inside = flows.filter(pl.col("bytes") > low)
        if high is not None:
            inside = inside.filter(pl.col("bytes") <= high)
            low = high
        if inside.height:
            row: dict[str, object] = {"size": name, "flows": inside.height}
            for column in ("fct_us", "slowdown"):
                for share, suffix in ((0.5, "p50"), (0.99, "p99")):
                    row[f"{column}_{suffix}"] = inside[column].quantile(share, "higher")
            rows.append(row)
    return pl.DataFrame(rows)


def completion(axes: Axes, results: Sequence[tuple[str, Result]]) -> str:
    """Draw the share of flows that are complete within a time."""
    title = ""
    for number, (label, result) in enumerate(results):
        took = np.sort(finished(result)["fct_us"].to_numpy()) / 1e6
        if took.size == 0:
            continue
        axes.step(
            took,
            np.arange(1, took.size + 1) / took.size,
            where="post",
            color=color(number),
            label=label,
        )
        half, most = np.quantile(took, [0.5, 0.99])
        title = title or f"Half of the flows take up to {span(half)}, 99 % up to {span(most)}"
    if not title:
        return nothing(axes, "No flow has finished")
    axes.set_ylim(0, 1.02)
    percent_ticks(axes, "y")
    span_ticks(axes, "x")
    axes.set_ylabel("flows complete")
    axes.set_xlabel("completion time")
    if len(results) > 1:
        axes.legend(loc="best")
    return title if len(results) == 1 else "How long flows take"


def slowdown_by_size(axes: Axes, results: Sequence[tuple[str, Result]]) -> str:
    """Draw the slowdown of flows, against an empty fabric, by their size."""
    title = ""
    tables = [by_size(result) for _, result in results]
    present = {size for table in tables if table.height for size in table["size"]}
    names = [name for _, name in SIZE_BINS if name in present]
    for number, ((label, _), table) in enumerate(zip(results, tables, strict=True)):
        if table.height == 0:
            continue
        shift = (number - (len(results) - 1) / 2) * min(0.18, 0.7 / len(results))
        at = [names.index(size) + shift for size in table["size"].to_list()]
        middle, tail = table["slowdown_p50"].to_numpy(), table["slowdown_p99"].to_numpy()
        axes.vlines(at, middle, tail, color=color(number), linewidth=3, alpha=0.35)
        axes.plot(at, middle, "o", color=color(number), markersize=5, label=f"{label} median")
        axes.plot(
            at, tail, "_", color=color(number), markersize=11, label=f"{label} 99th percentile"
        )
        worst = table.sort("slowdown_p99", descending=True).row(0, named=True)
        title = title or (
            f"Flows of {worst['size']} suffer most: p99 {worst['slowdown_p99']:.3g} × ideal"
        )
    if not title:
        return nothing(axes, "No flow has finished")
    axes.set_ylim(0.9, None)
    log_axis(axes, "y")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}×")
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("completion time / ideal")
    axes.grid(visible=False, axis="x")
    axes.legend(loc="best")
    return title if len(results) == 1 else "How much congestion slows flows down"
