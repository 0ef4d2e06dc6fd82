"""Draws the pictures of chapter 4 of E-EON from the stored numbers of the study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from eastwest.plot.panels import error, panels, seeds_of
from eastwest.plot.style import (
    AMBER,
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PURPLE,
    SKY,
    log_axis,
    nothing,
    percent_ticks,
)

POLICIES = {
    "nopa": INK,
    "12us10": SKY,
    "12us10+": BLUE,
    "120us100": AMBER,
    "120us100+": ORANGE,
    "1ms1000": GREEN,
    "10ms1000": PURPLE,
    "ideal": MUTED,
}
SCENARIOS = [(work, nodes) for work in ("batch", "small") for nodes in (24, 50, 80)]
CONFIGURATIONS = (("shallow", "64 KB"), ("deep", "64 KB"), ("deep", "1 MB"))
WINDOWS = {"64 KB": "-", "1 MB": ":"}
WORK = {"batch": BLUE, "small": ORANGE}
#: Upper end of the axis; higher bars are cut off there.
MOST = 2.2


def draw_policies(table: pl.DataFrame, tcp: str, metric: str, title: str) -> Figure:
    """Draw a number relative to standard EEE, by scenario, policy and configuration."""
    part = table.filter(
        pl.col("tcp") == tcp, pl.col("study") == "policies", pl.col("metric") == metric
    )
    which = "reading link" if tcp == "link" else f"{tcp} TCP"
    figure, grid = panels(1, 3, (5.4, 2.8), f"{title}, {which} ({seeds_of(part)})")
    for axes, (buffer, window) in zip(grid[0], CONFIGURATIONS, strict=True):
        found = part.filter(pl.col("buffer") == buffer, pl.col("window") == window)
        policies = [each for each in POLICIES if each in found["policy"]]
        for place, policy in enumerate(policies):
            each = found.filter(pl.col("policy") == policy)
            rows = list(zip(each["workload"], each["nodes"], strict=True))
            width = 0.85 / len(policies)
            at = [SCENARIOS.index(row) + width * (place - (len(policies) - 1) / 2) for row in rows]
            axes.bar(at, each["mean"].to_list(), width, color=POLICIES[policy], label=policy,
                     yerr=error(each), error_kw={"lw": 0.6, "ecolor": MUTED})  # fmt: skip
            cut(axes, at, each["mean"].to_list())
        if policies:
            axes.axhline(1, color=INK, lw=0.8)
        axes.set_xticks(range(6), [f"{work}\n{nodes}" for work, nodes in SCENARIOS])
        axes.grid(visible=False, axis="x")
        axes.set_title(f"{buffer} buffers, windows of {window}")
    grid[0][0].set_ylabel("of standard EEE")
    return legend(figure, grid)


def cut(axes: Axes, at: Sequence[float], heights: Sequence[float]) -> None:
    """End the axis at ``MOST`` if bars are higher, and write their height into them."""
    above = [(x, height) for x, height in zip(at, heights, strict=True) if height > MOST]
    for x, height in above:
        axes.text(x, MOST * 0.98, f"{height:.3g}", ha="center", va="top", rotation=90,
                  fontsize=5.5, color="white")  # fmt: skip
    if above:
        axes.set_ylim(0, MOST)


def draw_legacy(table: pl.DataFrame) -> Figure:
    """Draw the energy of standard EEE and ideal links, relative to always-on ones (figure 4.5)."""
    part = table.filter(
        pl.col("tcp") == "plain",
        pl.col("study") == "policies",
        pl.col("metric") == "energy_of_legacy",
        pl.col("policy").is_in(["nopa", "ideal"]),
        pl.col("buffer") == "shallow",
    )
    figure, grid = panels(
        1, 1, (5.2, 2.8), f"Energy of links that are always on ({seeds_of(part)})"
    )
    axes = grid[0][0]
    for place, (policy, ink) in enumerate((("nopa", BLUE), ("ideal", SKY))):
        each = part.filter(pl.col("policy") == policy)
        rows = list(zip(each["workload"], each["nodes"], strict=True))
        at = [SCENARIOS.index(row) + 0.4 * (place - 0.5) for row in rows]
        label = "standard" if policy == "nopa" else policy
        axes.bar(at, each["mean"].to_list(), 0.38, color=ink, yerr=error(each), label=label,
                 error_kw={"lw": 0.6})  # fmt: skip
    axes.axhspan(1 / 8, 1 / 5, color=AMBER, alpha=0.35, lw=0, zorder=0, label="published")
    axes.set_xticks(range(6), [f"{work}\n{nodes}" for work, nodes in SCENARIOS])
    axes.grid(visible=False, axis="x")
    percent_ticks(axes, "y")
    return legend(figure, grid)


def draw_delay(table: pl.DataFrame) -> Figure:
    """Draw the runtime against a fixed extra latency on each link (figure 4.2)."""
    part = table.filter(
        pl.col("tcp") == "plain",
        pl.col("study") == "delay",
        pl.col("metric") == "runtime_s_relative",
        pl.col("delay_us") > 0,
    )
    figure, grid = panels(1, 1, (5.2, 2.8), f"Extra latency on each link ({seeds_of(part)})")
    axes = grid[0][0]
    for work, ink in WORK.items():
        for window, dash in WINDOWS.items():
            each = part.filter(pl.col("workload") == work, pl.col("window") == window)
            lines(axes, each.sort("delay_us"), "delay_us", ink, f"{work}, {window}", dash)
    log_axis(axes, "x")
    log_axis(axes, "y")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.5g}"))
    axes.axhline(1, color=INK, lw=0.8)
    axes.set_xlabel("µs on each link")
    axes.set_ylabel("runtime, of none")
    return legend(figure, grid)


def draw_stall(table: pl.DataFrame) -> Figure:
    """Draw energy and runtime with stall timers, relative to standard EEE (figures 4.3 and 4.4)."""
    part = table.filter(pl.col("tcp") == "plain", pl.col("study") == "stall")
    figure, grid = panels(1, 2, (4.2, 2.6), f"Stall timers, of standard EEE ({seeds_of(part)})")
    timers = part["policy"].unique(maintain_order=True).to_list()
    for axes, metric in zip(grid[0], ("energy_j_relative", "runtime_s_relative"), strict=True):
        for work, ink in WORK.items():
            each = part.filter(pl.col("workload") == work, pl.col("metric") == metric)
            each = each.with_columns(
                pl.Series("at", [timers.index(name) for name in each["policy"]], dtype=pl.Int64)
            )
            lines(axes, each, "at", ink, work)
        axes.set_xticks(range(len(timers)), [name.removeprefix("stall ") for name in timers])
        axes.set_title(metric.partition("_")[0])
    return legend(figure, grid)


def draw_load(table: pl.DataFrame, tcp: str) -> Figure:
    """Draw runtime, energy between switches, and their product against load (figures 4.11-4.13)."""
    part = table.filter(pl.col("tcp") == tcp, pl.col("study") == "load")
    name = f"Load, shallow buffers, {tcp} TCP ({seeds_of(part)})"
    figure, grid = panels(1, 3, (3.8, 2.6), name)
    metrics = {
        "runtime_s_relative": "mean runtime of jobs",
        "fabric_energy_j_relative": "energy between switches",
        "fabric_edp_js_relative": "energy times delay",
    }
    for axes, (metric, title) in zip(grid[0], metrics.items(), strict=True):
        for policy in part["policy"].unique(maintain_order=True):
            each = part.filter(pl.col("policy") == policy, pl.col("metric") == metric)
            lines(axes, each.sort("load"), "load", POLICIES[policy], policy)
        axes.set_xlabel("load, % of all cores")
        axes.set_title(title)
    grid[0][0].set_ylabel("of standard EEE")
    return legend(figure, grid)


def lines(
    axes: Axes, each: pl.DataFrame, along: str, ink: str, label: str, dash: str = "-"
) -> None:
    """Draw the means of a column with their intervals as lines."""
    if each.is_empty():
        return
    axes.errorbar(each[along].to_list(), each["mean"].to_list(), yerr=error(each),
                  fmt="o" + dash, color=ink, ms=3, lw=1.3, elinewidth=0.6, label=label)  # fmt: skip


def legend(figure: Figure, grid: Sequence[Sequence[Axes]]) -> Figure:
    """Draw one legend for all panels; a panel without runs gets a remark."""
    found = {}
    for axes in (axes for row in grid for axes in row):
        if not axes.has_data():
            nothing(axes, "no runs yet")
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=8)
    return figure


def of_policies(tcp: str) -> dict[str, Callable[[pl.DataFrame], Figure]]:
    """Return functions that draw the pictures of all policies with one TCP, or of one reading."""
    return {
        f"{name}_{tcp}": partial(draw_policies, tcp=tcp, metric=metric, title=title)
        for name, metric, title in (
            ("energy", "energy_j_relative", "Energy"),
            ("runtime", "runtime_s_relative", "Runtime"),
            ("energy_10g", "fabric_energy_j_relative", "Energy between switches"),
            ("energy_1g", "host_energy_j_relative", "Energy of cables of hosts"),
        )
    }


PICTURES: Mapping[str, Callable[[pl.DataFrame], Figure]] = {
    **of_policies("plain"),
    **of_policies("linux"),
    "legacy": draw_legacy,
    "delay": draw_delay,
    "stall": draw_stall,
    **{f"load_{tcp}": partial(draw_load, tcp=tcp) for tcp in ("plain", "linux")},
}
#: Pictures of the best-supported reading, by name.
READING_PICTURES: Mapping[str, Callable[[pl.DataFrame], Figure]] = of_policies("link")
