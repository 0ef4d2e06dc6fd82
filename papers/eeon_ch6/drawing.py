"""Draws the pictures of chapters 5 and 6 of E-EON from the stored numbers of the study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from tables import kept_in

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
    percent_ticks,
)

CHAPTER5 = (
    kept_in(Path(__file__).resolve().parents[1] / "eeon_ch5", "chapter5") / "chapter5.parquet"
)

#: Metrics that are drawn relative to DropTail, as in the thesis.
RELATIVE = {
    "runtime": "runtime,\nof shallow DropTail",
    "throughput": "throughput,\nof shallow DropTail",
    "latency": "mean latency,\nof DropTail alike",
}
TRANSPORTS = {"TCP": BLUE, "TCP-ECN": ORANGE, "DCTCP": GREEN}
MODES = {"default": ORANGE, "ece-bit": BLUE, "ack+syn": GREEN}
BUFFERS = ("shallow", "deep")
KINDS = {
    "early_data": ("data", SKY),
    "early_ack": ("pure ACK", ORANGE),
    "early_ece_ack": ("ACK with ECE", AMBER),
    "early_syn": ("SYN, SYN-ACK", PURPLE),
    "early_fin": ("FIN", INK),
}
FAMILIES = {
    "drop-tail": ("DropTail", INK),
    "adaptive-red": ("RED from a delay", BLUE),
    "red": ("RED, fixed", SKY),
    "codel": ("CoDel", ORANGE),
}
#: Formats the ticks of logarithmic axes as plain numbers.
NUMBERS = FuncFormatter(lambda value, _: f"{value:g}")
TAILS = {"p50": ("o", "median"), "p99": ("s", "p99"), "p999": ("^", "p99.9")}
DISCIPLINES = {"adaptive-red": "RED", "red": "RED with fixed thresholds", "codel": "CoDel"}


def draw_bars(table: pl.DataFrame, queue: str, tcp: str) -> Figure:
    """Draw chapter 5's runtime, throughput and latency by setting, transport and buffer."""
    part = table.filter(pl.col("queue") == queue, pl.col("tcp") == tcp)
    name = f"{DISCIPLINES[queue]}, {tcp} TCP ({seeds_of(part)})"
    figure, grid = panels(2, 3, (3.5, 2.1), name)
    for line, buffer in zip(grid, BUFFERS, strict=True):
        for axes, (metric, label) in zip(line, RELATIVE.items(), strict=True):
            found = part.filter(pl.col("buffer") == buffer, pl.col("metric") == metric)
            settings = part["setting"].unique(maintain_order=True).to_list()
            for place, (transport, ink) in enumerate(TRANSPORTS.items()):
                bars = found.filter(pl.col("transport") == transport)
                at = [settings.index(each) + 0.27 * (place - 1) for each in bars["setting"]]
                axes.bar(at, bars["mean"].to_list(), 0.25, color=ink, label=transport,
                         yerr=error(bars), error_kw={"lw": 0.7, "ecolor": MUTED})  # fmt: skip
            reference(axes, table, tcp, buffer, metric)
            axes.set_xticks(range(len(settings)), [each.replace("/", "\n") for each in settings])
            axes.grid(visible=False, axis="x")
            axes.set_title(f"{buffer}: {label.partition(',')[0]}")
            axes.set_ylabel(label.partition("\n")[2])
    handles, labels = grid[0][0].get_legend_handles_labels()
    order = {label: handle for handle, label in zip(handles, labels, strict=True)}
    figure.legend(order.values(), order.keys(), loc="outside upper right", ncols=5)
    return figure


def reference(axes: Axes, table: pl.DataFrame, tcp: str, buffer: str, metric: str) -> None:
    """Draw lines for DropTail: at 1, and for deep DropTail if it is not the reference."""
    axes.axhline(1, color=INK, lw=0.8)
    if buffer == "deep" and metric != "latency":
        base = table.filter(
            pl.col("queue") == "drop-tail",
            pl.col("tcp") == tcp,
            pl.col("buffer") == "deep",
            pl.col("metric") == metric,
        )
        if base.height and base["n"][0]:
            axes.axhline(base["mean"][0], color=INK, lw=0.8, ls="--", label="deep DropTail")


def draw_lines(table: pl.DataFrame, queue: str, tcp: str) -> Figure:
    """Draw chapter 6's runtime, throughput and latency by setting, mode, transport and buffer."""
    part = table.filter(pl.col("queue") == queue, pl.col("tcp") == tcp, pl.col("reduces") == 159)
    name = f"{DISCIPLINES[queue]} with protection, {tcp} TCP ({seeds_of(part)})"
    figure, grid = panels(2, 3, (3.5, 2.2), name)
    settings = part["setting"].unique(maintain_order=True).to_list()
    for line, buffer in zip(grid, BUFFERS, strict=True):
        for axes, (metric, label) in zip(line, RELATIVE.items(), strict=True):
            found = part.filter(pl.col("buffer") == buffer, pl.col("metric") == metric)
            for mode, ink in MODES.items():
                for transport, dash in (("TCP-ECN", "-"), ("DCTCP", ":")):
                    each = found.filter(
                        pl.col("protection") == mode, pl.col("transport") == transport
                    )
                    at = [settings.index(setting) for setting in each["setting"]]
                    axes.errorbar(at, each["mean"].to_list(), yerr=error(each), fmt="o" + dash,
                                  color=ink, ms=3, lw=1.3, elinewidth=0.6,
                                  label=f"{mode}, {transport}")  # fmt: skip
            reference(axes, table, tcp, buffer, metric)
            axes.set_xticks(range(len(settings)), [each.replace("/", "\n") for each in settings])
            axes.tick_params("x", labelsize=7)
            axes.set_title(f"{buffer}: {label.partition(',')[0]}")
            axes.set_ylabel(label.partition("\n")[2])
    handles, labels = grid[1][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=7)
    return figure


def draw_acks(table: pl.DataFrame) -> Figure:
    """Draw the early drops of RED without protection by kind of packet, and the share of ACKs."""
    part = table.filter(
        pl.col("queue") == "adaptive-red",
        pl.col("protection") == "default",
        pl.col("transport") == "TCP-ECN",
        pl.col("reduces") == 159,
    )
    figure, grid = panels(
        1, 4, (3.1, 2.6), f"Early drops of RED in default mode, TCP-ECN ({seeds_of(part)})"
    )
    places = [(tcp, buffer) for tcp in ("plain", "linux") for buffer in BUFFERS]
    for axes, (tcp, buffer) in zip(grid[0], places, strict=True):
        found = part.filter(pl.col("tcp") == tcp, pl.col("buffer") == buffer)
        numbers = {(s, m): mean for s, m, mean in found.select("setting", "metric", "mean").rows()}
        settings = [
            setting
            for setting in found["setting"].unique(maintain_order=True)
            if numbers.get((setting, "early"))
        ]
        bottom = [0.0] * len(settings)
        for metric, (label, ink) in KINDS.items():
            share = [numbers[s, metric] / numbers[s, "early"] for s in settings]
            axes.bar(range(len(settings)), share, 0.7, bottom=bottom, color=ink, label=label)
            bottom = [low + each for low, each in zip(bottom, share, strict=True)]
        acks = [numbers[s, "acks_of_packets"] for s in settings]
        axes.plot(range(len(settings)), acks, "k_", ms=14, mew=2, label="their share of packets")
        axes.set_xticks(range(len(settings)), settings, rotation=45)
        axes.set_title(f"{tcp}, {buffer}")
        axes.set_ylim(0, 1.02)
        percent_ticks(axes, "y")
        axes.grid(visible=False, axis="x")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6)
    return figure


def draw_front(table: pl.DataFrame) -> Figure:
    """Draw runtime against tail latency of every configuration, and mark the Pareto front."""
    wide = configurations(table)
    figure, grid = panels(1, 2, (5.2, 3.8), "Runtime against tail latency of every configuration")
    grid[0][1].sharex(grid[0][0])
    grid[0][1].sharey(grid[0][0])
    for axes, tcp in zip(grid[0], ("plain", "linux"), strict=True):
        part = wide.filter(pl.col("tcp") == tcp)
        for queue, (label, ink) in FAMILIES.items():
            for buffer, mark in (("shallow", "o"), ("deep", "s")):
                found = part.filter(pl.col("queue") == queue, pl.col("buffer") == buffer)
                axes.scatter(found["runtime_s"], found["latency_p99_us"] / 1e3, s=16, marker=mark,
                             color=ink, alpha=0.75, lw=0, label=f"{label}, {buffer}")  # fmt: skip
        best = front(part)
        axes.step(best["runtime_s"], best["latency_p99_us"] / 1e3, where="post", color=MUTED, lw=1)
        axes.set_xlabel("runtime, s")
        axes.set_title(f"{tcp} TCP, {part.height} configurations")
    log_axis(grid[0][0], "y")
    grid[0][0].yaxis.set_major_formatter(NUMBERS)
    grid[0][0].set_ylabel("99th percentile of latency, ms")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def configurations(table: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each configuration of both chapters that has been run.

    The rows of ``table`` come first. Each row has runtime and latencies; a configuration of both
    chapters appears once.
    """
    labels = ["tcp", "queue", "setting", "protection", "transport", "buffer"]
    kept = [table, *(pl.read_parquet(path) for path in (CHAPTER5,) if path.is_file())]
    part = pl.concat(kept).filter(
        pl.col("metric").is_in(["runtime_s", "latency_p99_us", "latency_us"]),
        pl.col("n") > 0,
        pl.col("reduces") == 159,
        pl.col("queue") != "averaged-red",
    )
    return part.pivot(on="metric", index=labels, values="mean", aggregate_function="first")


def front(wide: pl.DataFrame) -> pl.DataFrame:
    """Return the configurations for which no other is better in both runtime and tail latency."""
    kept, least = [], float("inf")
    for row in wide.sort("runtime_s", "latency_p99_us").iter_rows(named=True):
        if row["latency_p99_us"] < least:
            least = row["latency_p99_us"]
            kept.append(row)
    return pl.DataFrame(kept, schema=wide.schema)


def draw_heat(table: pl.DataFrame, rows: str) -> Figure:
    """Draw a map of runtime and latency relative to DropTail for each choice, with the numbers."""
    figure, grid = panels(
        1,
        2,
        (5.6, 0.3 * table.filter(pl.col("n") > 0)[rows].n_unique() + 1.6),
        f"Against DropTail ({seeds_of(table)})",
    )
    for axes, (metric, title) in zip(
        grid[0],
        (("runtime", "runtime, of shallow DropTail"), ("latency", "latency, of DropTail alike")),
        strict=True,
    ):
        part = table.filter(pl.col("metric") == metric)
        # Only the choices that have been run.
        ys = part[rows].unique(maintain_order=True).to_list()
        xs = table["queue"].unique(maintain_order=True).to_list()
        cells = {(r[rows], r["queue"]): r["mean"] for r in part.iter_rows(named=True)}
        numbers = [[cells.get((y, x)) for x in xs] for y in ys]
        shown = [[float("nan") if cell is None else cell for cell in line] for line in numbers]
        axes.imshow(shown, cmap="PuOr_r", vmin=0.2, vmax=1.8, aspect="auto")
        for j, line in enumerate(numbers):
            for i, number in enumerate(line):
                text = "–" if number is None else f"{number:.2f}"
                dark = number is not None and abs(number - 1) > 0.65
                ink = "white" if dark else INK
                axes.text(i, j, text, ha="center", va="center", size=7, color=ink)
        axes.set_xticks(range(len(xs)), xs, rotation=50, ha="right")
        axes.set_yticks(range(len(ys)), [str(y) for y in ys])
        axes.set_title(title)
        axes.grid(visible=False)
    grid[0][1].set_yticklabels([])
    return figure


def draw_tails(table: pl.DataFrame, title: str) -> Figure:
    """Draw the median, 99th and 99.9th percentile latency of both classes, and the runtime."""
    names = list(dict.fromkeys(each.partition(";")[0] for each in table["queue"]))
    numbers = {
        (row["queue"].partition(";")[0], row["tcp"], row["metric"]): row["mean"]
        for row in table.filter(pl.col("n") > 0).iter_rows(named=True)
    }
    figure, grid = panels(1, 3, (3.6, 0.32 * len(names) + 1.0), f"{title} ({seeds_of(table)})")
    inks: Mapping[str, tuple[str, float]] = {"plain": (BLUE, -0.15), "linux": (ORANGE, 0.15)}
    for axes, kind in zip(grid[0], ("service", "terasort"), strict=False):
        for tcp, (ink, aside) in inks.items():
            for tail, (mark, label) in TAILS.items():
                at = [(numbers.get((name, tcp, f"{kind}_{tail}_us")), place + aside)
                      for place, name in enumerate(names)]  # fmt: skip
                found = [(value / 1e3, place) for value, place in at if value]
                axes.plot([x for x, _ in found], [y for _, y in found], mark, color=ink, ms=4.5,
                          label=f"{tcp}, {label}")  # fmt: skip
        axes.set_title(f"packets of {kind}, ms")
        log_axis(axes, "x")
        axes.xaxis.set_major_formatter(NUMBERS)
    for tcp, (ink, aside) in inks.items():
        runtime = [numbers.get((name, tcp, "runtime_s")) or 0.0 for name in names]
        grid[0][2].barh([p + aside for p in range(len(names))], runtime, 0.28, color=ink)
    grid[0][2].set_title("runtime, s")
    for axes in grid[0]:
        axes.set_yticks(range(len(names)), names if axes is grid[0][0] else [""] * len(names))
        axes.set_ylim(len(names) - 0.5, -0.5)
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6)
    return figure


Draw = Callable[[pl.DataFrame], Figure]


def _both(name: str, draw: Callable[..., Figure], queues: Sequence[str]) -> dict[str, Draw]:
    return {
        f"{name}_{queue.replace('-', '_')}_{tcp}": partial(draw, queue=queue, tcp=tcp)
        for queue in queues
        for tcp in ("plain", "linux")
    }


#: Pictures of each part of the study, by name.
PICTURES: Mapping[str, Mapping[str, Draw]] = {
    "chapter5": _both("chapter5", draw_bars, ("adaptive-red", "red", "codel")),
    "chapter6": {
        **_both("chapter6", draw_lines, ("adaptive-red", "codel")),
        "acks": draw_acks,
        "front": draw_front,
    },
    "sensitivity": {"sensitivity": partial(draw_heat, rows="choice")},
    "hosts": {"hosts": partial(draw_heat, rows="hosts")},
    "service": {"service": partial(draw_tails, title="With a request service")},
    "fast": {"fast": partial(draw_tails, title="10 Gbit/s hosts, 40 Gbit/s uplinks")},
    "fat_tree": {"fat_tree": partial(draw_tails, title="A fat tree of three tiers")},
}
