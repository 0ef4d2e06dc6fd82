"""Draws the pictures of chapter 7 of E-EON from the stored numbers of the study."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import polars as pl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from eastwest.plot.panels import error, panels, seeds_of
from eastwest.plot.style import BLUE, GREEN, INK, ORANGE

QUEUES = {"DropTail": INK, "RED with ECN": ORANGE, "RED with ECN, ack+syn": GREEN}
BUFFERS = {"shallow": ":", "deep": "-"}
POLICIES = ("ideal", "eee", "12us10", "120us100", "500us500", "1ms1000", "1ms100", "10ms100")
METRICS = {
    "runtime_s_relative": "runtime, of always-on links",
    "latency_us_relative": "mean latency, of always-on links",
    "fabric_energy_j_relative": "energy between switches, of ideal",
}


def draw(table: pl.DataFrame, tcp: str, links: str) -> Figure:
    """Draw runtime, latency and energy by policy, with a line for each queue and buffer."""
    part = table.filter(
        pl.col("tcp") == tcp, (pl.col("links") == links) | (pl.col("policy") == "ideal")
    )
    of = part.filter(pl.col("links") == links)
    where = "all links coalesce" if links == "all links" else "links between switches coalesce"
    shown = [policy for policy in POLICIES if policy in part["policy"]]
    figure, grid = panels(1, 3, (4.0, 2.8), f"{tcp} TCP, {where} ({seeds_of(of)})")
    for axes, (metric, title) in zip(grid[0], METRICS.items(), strict=True):
        for queue, ink in QUEUES.items():
            for buffer, dash in BUFFERS.items():
                each = part.filter(
                    pl.col("queue") == queue,
                    pl.col("buffer") == buffer,
                    pl.col("metric") == metric,
                    pl.col("policy").is_in(shown),
                )
                at = [shown.index(policy) for policy in each["policy"]]
                each = each.with_columns(pl.Series("at", at, dtype=pl.Int64)).sort("at")
                if each.height > 1:
                    axes.errorbar(each["at"].to_list(), each["mean"].to_list(), yerr=error(each),
                                  fmt="o" + dash, color=ink, ms=3, lw=1.3, elinewidth=0.6,
                                  label=f"{queue}, {buffer}")  # fmt: skip
        axes.axhline(1, color=BLUE, lw=0.8)
        axes.set_xticks(range(len(shown)), shown, rotation=30)
        axes.set_title(title)
    handles, labels = grid[0][0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=6)
    return figure


MARKS = {
    "legacy": "x", "eee": "s", "12us10": "v", "120us100": "^", "500us500": "<",
    "1ms1000": ">", "adaptive": "o",
}  # fmt: skip
SHADES = (INK, ORANGE, GREEN, BLUE)


def trade(table: pl.DataFrame, title: str, energy: str, tail: str, tail_name: str) -> Figure:
    """Draw runtime and tail latency against the energy above that of ideal links, by policy."""
    figure, grid = panels(1, 2, (4.6, 3.4), f"{title} ({seeds_of(table)})")
    for axes, metric, name in zip(
        grid[0], ("runtime_s", tail), ("runtime, s", tail_name), strict=True
    ):
        for queue, ink in zip(table["queue"].unique(maintain_order=True), SHADES, strict=False):
            of = table.filter(pl.col("queue") == queue)
            mean = {(row["policy"], row["metric"]): row["mean"] for row in of.iter_rows(named=True)}
            for policy, mark in MARKS.items():
                if (policy, energy) in mean and ("ideal", energy) in mean:
                    beyond = 100 * (mean[policy, energy] / mean["ideal", energy] - 1)
                    axes.plot(beyond, mean[policy, metric], mark, color=ink, ms=6,
                              fillstyle="full" if policy == "adaptive" else "none")  # fmt: skip
        for scale, axis in ((axes.set_xscale, axes.xaxis), (axes.set_yscale, axes.yaxis)):
            scale("log")
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(lambda value, _: f"{value:,g}")
            axis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("energy beyond ideal links, %")
        axes.set_title(name)
    queues = table["queue"].unique(maintain_order=True).to_list()
    lines = [Line2D([], [], color=ink, lw=4) for _, ink in zip(queues, SHADES, strict=False)]
    marks = [
        Line2D([], [], color=INK, marker=mark, ls="", fillstyle="none") for mark in MARKS.values()
    ]
    figure.legend(lines + marks, [*queues, *MARKS], loc="outside lower center", ncols=6)
    return figure


CHAPTER: Mapping[str, Callable[[pl.DataFrame], Figure]] = {
    f"{name}_{tcp}": partial(draw, tcp=tcp, links=links)
    for tcp in ("plain", "linux")
    for name, links in (("switches", "between switches"), ("all_links", "all links"))
}

PICTURES: Mapping[str, Mapping[str, Callable[[pl.DataFrame], Figure]]] = {
    "reading": {"reading": partial(draw, tcp="ns2", links="between switches")},
    "chapter7": CHAPTER,
    "policies": {
        "policies": partial(trade, title="Links between switches sleep, chapter 7's job",
                            energy="fabric_energy_j", tail="latency_p99_us",
                            tail_name="99th percentile of packets, us")
    },
    "service": {
        "service": partial(trade, title="All links sleep, a service beside chapter 6's job",
                           energy="energy_j", tail="service_p99_us",
                           tail_name="99th percentile of the service, us")
    },
    "fast": {
        "fast": partial(trade, title="10 and 40 Gbit/s, all links sleep",
                        energy="energy_j", tail="latency_p99_us",
                        tail_name="99th percentile of packets, us")
    },
}  # fmt: skip
