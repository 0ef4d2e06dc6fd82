"""Pictures of chapter 7 of E-EON, each from the kept numbers of the study."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import polars as pl
from matplotlib.figure import Figure

from eastwest.plot.panels import error, panels, seeds_of
from eastwest.plot.style import BLUE, GREEN, INK, ORANGE

QUEUES = {"DropTail": INK, "RED with ECN": ORANGE, "RED with ECN, ack+syn": GREEN}
BUFFERS = {"shallow": ":", "deep": "-"}
POLICIES = ("ideal", "eee", "12us10", "120us100", "500us500", "1ms1000")
METRICS = {
    "runtime_s_relative": "runtime, of always-on links",
    "latency_us_relative": "mean latency, of always-on links",
    "fabric_energy_j_relative": "energy between switches, of ideal",
}


def draw(table: pl.DataFrame, tcp: str, links: str) -> Figure:
    """Runtime, latency and energy by policy, a line for each queue and buffer."""
    part = table.filter(
        pl.col("tcp") == tcp, (pl.col("links") == links) | (pl.col("policy") == "ideal")
    )
    of = part.filter(pl.col("links") == links)
    where = "all links coalesce" if links == "all links" else "links between switches coalesce"
    figure, grid = panels(1, 3, (4.0, 2.8), f"{tcp} TCP, {where} ({seeds_of(of)})")
    for axes, (metric, title) in zip(grid[0], METRICS.items(), strict=True):
        for queue, ink in QUEUES.items():
            for buffer, dash in BUFFERS.items():
                each = part.filter(
                    pl.col("queue") == queue,
                    pl.col("buffer") == buffer,
                    pl.col("metric") == metric,
                    pl.col("policy").is_in(POLICIES),
                )
                at = [POLICIES.index(policy) for policy in each["policy"]]
                each = each.with_columns(pl.Series("at", at, dtype=pl.Int64)).sort("at")
                if each.height > 1:
                    axes.errorbar(each["at"].to_list(), each["mean"].to_list(), yerr=error(each),
                                  fmt="o" + dash, color=ink, ms=3, lw=1.3, elinewidth=0.6,
                                  label=f"{queue}, {buffer}")  # fmt: skip
        axes.axhline(1, color=BLUE, lw=0.8)
        axes.set_xticks(range(len(POLICIES)), POLICIES, rotation=30)
        axes.set_title(title)
    handles, labels = grid[0][0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=6)
    return figure


PICTURES: Mapping[str, Callable[[pl.DataFrame], Figure]] = {
    f"{name}_{tcp}": partial(draw, tcp=tcp, links=links)
    for tcp in ("plain", "linux")
    for name, links in (("switches", "between switches"), ("all_links", "all links"))
}
