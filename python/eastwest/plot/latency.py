"""Pictures of the latency of packets and the completion times of flows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from eastwest.plot.numbers import record
from eastwest.plot.style import (
    color,
    log_axis,
    log_time_axis,
    nothing,
    share_axis,
    share_curve,
    span_ticks,
)
from eastwest.results import Result
from eastwest.units import clean, span
from eastwest.views.latency import SIZE_BINS, by_size, classes, curve, finished, tail_s

_DASHES = ("-", "--", ":", "-.")
_NINES = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)


def percentiles(axes: Axes, results: Sequence[tuple[str, Result]]) -> str:
    """Draw packet latency against the share of packets that are at least as fast.

    The axis of shares stretches the tail: 90 %, 99 % and 99.9 % are at equal distances. There is a
    curve for each of the four classes with the most packets. Returns the title.
    """
    title, drawn = "", 0
    one = len(results) == 1
    for number, (label, result) in enumerate(results):
        for place, (name, histogram) in enumerate(classes(result)[:4]):
            share, seconds = curve(histogram)
            shown = clean(name, 30)
            said = " ".join(part for part in (label, shown) if part)
            record(axes, said, {"share_of_packets": share, "latency_s": seconds})
            axes.step(
                -np.log10(1 - share),
                seconds,
                where="post",
                # For one result, each class of packets has a colour. For several results, each
                # result has a colour and each class a dash pattern.
                color=color(place if one else number),
                linestyle="-" if one else _DASHES[place],
                label=said,
            )
            title = title or f"99 % of {shown} packets arrive within {span(tail_s(histogram))}"
            drawn += 1
    if not title:
        return nothing(axes, "No data packet was measured")
    log_time_axis(axes, "y")
    places = [-np.log10(1 - share) for share in _NINES]
    axes.set_xticks(places, [f"{100 * share:.10g} %" for share in _NINES])
    axes.set_xlim(0, max(places[3], min(axes.get_xlim()[1], places[-1])))
    axes.set(xlabel="share of data packets that are at least as fast", ylabel="end-to-end latency")
    if drawn > 1:
        axes.legend(loc="best")
    return title if one else "How long data packets take"


def completion(axes: Axes, results: Sequence[tuple[str, Result]]) -> str:
    """Draw the cumulative distribution of the completion times of flows; return the title."""
    title = ""
    for number, (label, result) in enumerate(results):
        took = finished(result)["fct_us"].to_numpy()
        if took.size:
            columns = ("fct_us", "share_of_flows")
            drawn = share_curve(axes, took, number, label, columns, 1e-6)
            half, most = np.quantile(drawn, [0.5, 0.99])
            title = title or f"Half of the flows take up to {span(half)}, 99 % up to {span(most)}"
    if not title:
        return nothing(axes, "No flow has finished")
    share_axis(axes, "flows complete")
    span_ticks(axes, "x")
    axes.set_xlabel("completion time")
    if len(results) > 1:
        axes.legend(loc="best")
    return title if len(results) == 1 else "How long flows take"


def slowdown_by_size(axes: Axes, results: Sequence[tuple[str, Result]]) -> str:
    """Draw median and 99th percentile of the slowdown of flows, by size; return the title.

    Slowdown is the completion time divided by the time that the flow takes alone on an idle path.
    """
    title = ""
    tables = [by_size(result) for _, result in results]
    present = {size for table in tables if table.height for size in table["size"]}
    names = [name for name in SIZE_BINS if name in present]
    for number, ((label, _), table) in enumerate(zip(results, tables, strict=True)):
        if table.height == 0:
            continue
        shift = (number - (len(results) - 1) / 2) * min(0.18, 0.7 / len(results))
        at = [names.index(size) + shift for size in table["size"].to_list()]
        middle, tail = table["slowdown_p50"].to_numpy(), table["slowdown_p99"].to_numpy()
        shade = color(number)
        drawn = table.select("size", "flows", "slowdown_p50", "slowdown_p99")
        record(axes, label, drawn.to_dict())
        axes.vlines(at, middle, tail, color=shade, linewidth=3, alpha=0.35)
        axes.plot(at, middle, "o", color=shade, markersize=5, label=f"{label} median")
        axes.plot(at, tail, "_", color=shade, markersize=11, label=f"{label} 99th percentile")
        worst = table.sort("slowdown_p99", descending=True).row(0, named=True)
        title = title or (
            f"Flows of {worst['size']} suffer most: p99 {worst['slowdown_p99']:.3g} × ideal"
        )
    if not title:
        return nothing(axes, "No flow has finished")
    axes.set_ylim(0.9, None)
    log_axis(axes, "y")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}×")
    axes.set(xlim=(-0.6, len(names) - 0.4), ylabel="completion time / ideal")
    axes.set_xticks(range(len(names)), names)
    axes.grid(visible=False, axis="x")
    axes.legend(loc="best")
    return title if len(results) == 1 else "How much congestion slows flows down"
