"""Draws the pictures of the study beyond its sources, each from the stored numbers of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from eastwest.models import incast as models
from eastwest.plot.style import (
    AMBER,
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PURPLE,
    SERIES,
    SKY,
    percent_ticks,
    rate_ticks,
)

KERNEL = Path(__file__).resolve().parents[1] / "kernel_tcp"

GOODPUT, TIMEOUTS = "rounds.goodput_bps", "tcp.timeouts"
CAUSES = {
    "full_window": ("whole window", BLUE),
    "lost_retransmission": ("lost retransmission", ORANGE),
    "few_duplicates": ("too few duplicates", GREEN),
    "tail": ("tail", PURPLE),
    "recovery": ("before its turn", AMBER),
    "ack": ("only the ACK", SKY),
    "spurious": ("nothing lost", "#b9bfc9"),
    "syn": ("SYN, SYN-ACK, request", INK),
}
CAUSE = "tcp.timeout_causes."
ROUNDS = 20
#: Least share on a logarithmic axis; smaller shares are drawn at this value.
LEAST = 1e-3
#: Transmission time of a full packet with all framing at 1 Gbit/s, in µs.
PACKET_US = 12.304

#: For each sweep, the names of its rows of settings, in the order of the sweep file.
NAMES: Mapping[str, Sequence[str]] = {
    "mechanisms": (
        "NewReno",
        "+ limited transmit",
        "+ SACK",
        "+ RACK",
        "+ tail loss probes",
        "+ PRR, F-RTO, undo",
        "CUBIC (Linux)",
        "CUBIC and ECN",
        "DCTCP",
        "BBR v1 (Linux)",
        "BBR v3",
    ),
    "rates": ("CUBIC (Linux)", "DCTCP"),
    "spurious": (
        "each packet acknowledged",
        "delayed ACKs",
        "each packet, F-RTO and undo",
        "Linux",
    ),
    "outcast": (
        "drop-tail, 25 packets",
        "drop-tail, 100 packets",
        "drop-tail, 1,000 packets",
        "RED, 100 packets",
        "CoDel",
        "DCTCP, 20 packets",
    ),
    "alpha": ("plain", "linux"),
}


def grid(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure with a grid of equal panels."""
    figure = Figure(figsize=(size[0] * columns, size[1] * rows + 0.4), layout="constrained")
    return figure, [list(row) for row in figure.subplots(rows, columns, squeeze=False)]


def heat(axes: Axes, table: pl.DataFrame, row: str, column: str, value: str, text: str) -> None:
    """Draw a heat map of shares from 0 to 1, with the numbers in it."""
    ys = table[row].unique(maintain_order=True).to_list()
    xs = table[column].unique(maintain_order=True).to_list()
    cells = {(r[row], r[column]): r[value] for r in table.iter_rows(named=True)}
    numbers = [[cells[y, x] for x in xs] for y in ys]
    axes.imshow(numbers, cmap="cividis", vmin=0, vmax=1, aspect="auto")
    for j, line in enumerate(numbers):
        for i, number in enumerate(line):
            ink = "white" if number < 0.55 else "black"
            axes.text(i, j, text.format(number * 100), ha="center", va="center", color=ink, size=7)
    axes.set_xticks(range(len(xs)), [str(x) for x in xs])
    axes.set_yticks(range(len(ys)), [str(y) for y in ys])
    axes.grid(visible=False)


def draw_map(table: pl.DataFrame) -> Figure:
    """Draw a map of goodput, as a share of the link rate, over all settings."""
    table = servers(table.filter(pl.col("metric") == GOODPUT)).with_columns(pl.col("mean") / 1e9)
    rtos = table["min_rto"].unique(maintain_order=True)
    sizes = table["block_bytes"].unique(maintain_order=True)
    figure, panels = grid(len(sizes), len(rtos), (3.5, 1.9))
    for line, size in zip(panels, sizes, strict=True):
        for axes, rto in zip(line, rtos, strict=True):
            part = table.filter(pl.col("block_bytes") == size, pl.col("min_rto") == rto)
            heat(axes, part, "limit", "servers", "mean", "{:.0f}")
            axes.set_title(f"{size} each, minimum timeout {rto}")
    for line in panels:
        line[0].set_ylabel("buffer")
    for axes in panels[-1]:
        axes.set_xlabel("servers")
    return titled(figure, "Goodput, % of the link")


def servers(table: pl.DataFrame) -> pl.DataFrame:
    """Return the table with the number of servers in place of the number of hosts."""
    return table.with_columns((pl.col("hosts") - 1).alias("servers")).drop("hosts")


def titled(figure: Figure, title: str) -> Figure:
    """Write a title at the left of a figure."""
    figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
    return figure


def draw_causes(table: pl.DataFrame) -> Figure:
    """Draw the timeouts per block, by cause."""
    table = servers(table)
    profiles = table["profile"].unique(maintain_order=True)
    rows = [(r, b) for r in ("200 ms", "1 ms") for b in ("16 KB", "256 KB")]
    figure, panels = grid(len(rows), len(profiles), (3.6, 2.0))
    for line, (rto, size) in zip(panels, rows, strict=True):
        for axes, name in zip(line, profiles, strict=True):
            part = table.filter(
                pl.col("min_rto") == rto, pl.col("block_bytes") == size, pl.col("profile") == name
            )
            stacked(axes, part, "servers")
            axes.set_title(f"{name}: {size}, {rto}")
        most = max(axes.get_ylim()[1] for axes in line)
        for axes in line:
            axes.set_ylim(0, most)
        line[0].set_ylabel("timeouts per block")
    for axes in panels[-1]:
        axes.set_xlabel("servers")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=4)
    return titled(figure, "Timeouts by cause")


def stacked(axes: Axes, part: pl.DataFrame, along: str) -> None:
    """Draw stacked bars of timeouts per block, by cause."""
    places = part[along].unique(maintain_order=True).to_list()
    numbers = {
        (row[along], row["metric"]): row["mean"] / ROUNDS for row in part.iter_rows(named=True)
    }
    bottom = [0.0] * len(places)
    for cause, (label, ink) in CAUSES.items():
        height = [numbers[place, CAUSE + cause] for place in places]
        if cause == "syn":
            further = ("syn_ack", "request")
            height = [
                h + sum(numbers[p, CAUSE + other] for other in further)
                for h, p in zip(height, places, strict=True)
            ]
        axes.bar(range(len(places)), height, 0.7, bottom=bottom, color=ink, label=label)
        bottom = [b + h for b, h in zip(bottom, height, strict=True)]
    axes.set_xticks(range(len(places)), [str(place) for place in places])
    axes.grid(visible=False, axis="x")


def draw_victims(table: pl.DataFrame) -> Figure:
    """Draw the share of blocks, and of single senders' parts of blocks, that meet a timeout."""
    table = servers(table).filter(pl.col("min_rto") == "200 ms")
    figure, panels = grid(1, 2, (4.4, 2.6))
    for axes, size in zip(panels[0], ("16 KB", "256 KB"), strict=True):
        for ink, name in zip(SERIES, ("classic", "plain", "linux"), strict=False):
            part = table.filter(pl.col("block_bytes") == size, pl.col("profile") == name)
            for metric, mark in (("blocks_hit", "o-"), ("parts_hit", "s--")):
                line = part.filter(pl.col("metric") == metric)
                what = "blocks" if metric == "blocks_hit" else "parts"
                around(axes, line, "servers", mark, ink, f"{name}: {what}")
        axes.set_title(f"{size} each, minimum timeout 200 ms")
        axes.set_xlabel("servers")
        axes.set_ylim(0, 1.03)
        percent_ticks(axes, "y")
    panels[0][0].set_ylabel("with at least one timeout")
    panels[0][1].legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return titled(figure, "Who times out")


def around(
    axes: Axes, line: pl.DataFrame, along: str, mark: str, ink: str, label: str, factor: float = 1.0
) -> None:
    """Draw means with their intervals."""
    mean = [m * factor for m in line["mean"]]
    low = [m - (m if v is None else v * factor) for m, v in zip(mean, line["low"], strict=True)]
    high = [(m if v is None else v * factor) - m for m, v in zip(mean, line["high"], strict=True)]
    error = [[max(0.0, v) for v in low], [max(0.0, v) for v in high]]
    axes.errorbar(
        line[along].to_list(), mean, yerr=error, fmt=mark, ms=3, lw=1.2, capsize=2, color=ink,
        label=label,
    )  # fmt: skip


def draw_mechanisms(table: pl.DataFrame) -> Figure:
    """Draw goodput and timeouts by mechanism and number of servers."""
    table = servers(table)
    figure, panels = grid(1, 2, (5.6, 3.2))
    goodput = table.filter(pl.col("metric") == GOODPUT).with_columns(pl.col("mean") / 1e9)
    heat(panels[0][0], goodput, "tcp", "servers", "mean", "{:.0f}")
    panels[0][0].set_title("goodput, % of the link")
    each = table.filter(pl.col("metric") == TIMEOUTS).with_columns(
        (pl.col("mean") / ROUNDS).alias("each")
    )
    shown = each.with_columns((1 - (pl.col("each") / 20).clip(0, 1)).alias("shade"))
    heat(panels[0][1], shown, "tcp", "servers", "shade", "")
    for place, row in enumerate(each.iter_rows(named=True)):
        columns = each["servers"].n_unique()
        ink = "white" if row["each"] > 9 else "black"
        panels[0][1].text(
            place % columns, place // columns, f"{row['each']:.1f}", ha="center", va="center",
            color=ink, size=7,
        )  # fmt: skip
    panels[0][1].set_title("timeouts per block")
    for axes in panels[0]:
        axes.set_xlabel("servers")
    return titled(figure, "256 KB each, 64 KiB of buffer, minimum timeout 200 ms")


def draw_rates(table: pl.DataFrame) -> Figure:
    """Draw goodput as a share of the link rate, by link rate."""
    table = servers(table.filter(pl.col("metric") == GOODPUT))
    figure, panels = grid(2, 2, (4.4, 2.3))
    for line, name in zip(panels, NAMES["rates"], strict=True):
        for axes, rto in zip(line, ("200 ms", "1 ms"), strict=True):
            part = table.filter(pl.col("tcp") == name, pl.col("min_rto") == rto)
            for ink, rate in zip(
                SERIES, part["host_rate"].unique(maintain_order=True), strict=False
            ):
                curve = part.filter(pl.col("host_rate") == rate)
                link = 1e9 * float(rate.split()[0])
                around(axes, curve, "servers", "o-", ink, rate, 1 / link)
            axes.set_title(f"{name}, minimum timeout {rto}")
            axes.set_ylim(0, 1.03)
            percent_ticks(axes, "y")
        line[0].set_ylabel("goodput of the link")
    for axes in panels[-1]:
        axes.set_xlabel("servers")
    panels[0][1].legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return titled(figure, "256 KB each, 256 KiB of buffer")


def draw_spurious(table: pl.DataFrame) -> Figure:
    """Draw necessary and spurious timeouts by buffer, with a minimum timeout of 1 ms."""
    table = table.filter(pl.col("min_rto") == "1 ms")
    names = NAMES["spurious"]
    figure, panels = grid(2, len(names), (3.1, 2.3))
    for line, kept in zip(panels, (True, False), strict=True):
        for axes, name in zip(line, names, strict=True):
            part = table.filter(pl.col("persistent") == kept, pl.col("tcp") == name)
            needless_bars(axes, part)
            axes.set_title(f"{name},\n{'kept' if kept else 'fresh'} connections", fontsize=8.5)
        line[0].set_ylabel("timeouts per block")
        most = max(axes.get_ylim()[1] for axes in line)
        for axes in line:
            axes.set_ylim(0.008, most)
    for axes in panels[-1]:
        axes.set_xlabel("buffer")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=3)
    return titled(figure, "Minimum timeout 1 ms, 32 servers, 256 KB each")


def needless_bars(axes: Axes, part: pl.DataFrame) -> None:
    """Draw bars: all timeouts, timeouts without a loss, and spurious ones found by the sender."""
    buffers = part["limit"].unique(maintain_order=True).to_list()
    for place, (metric, label, ink) in enumerate(
        (
            (TIMEOUTS, "all", BLUE),
            (f"{CAUSE}spurious", "nothing was lost", ORANGE),
            ("tcp.spurious_timeouts", "noticed by the sender", GREEN),
        )
    ):
        values = part.filter(pl.col("metric") == metric)["mean"].to_list()
        shown = [max(value / ROUNDS, 1e-3) for value in values]
        axes.bar(
            [i + 0.27 * (place - 1) for i in range(len(buffers))],
            shown,
            0.27,
            color=ink,
            label=label,
        )
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xticks(range(len(buffers)), [b.removesuffix("B").replace(" ", "") for b in buffers])
    axes.grid(visible=False, axis="x")


def draw_outcast(table: pl.DataFrame) -> Figure:
    """Draw a near sender's throughput over an equal share: every run, and the median."""
    names = NAMES["outcast"]
    figure, panels = grid(2, len(names), (2.2, 2.2))
    for line, rate in zip(panels, ("1 Gbit/s", "10 Gbit/s"), strict=True):
        for axes, name in zip(line, names, strict=True):
            part = table.filter(pl.col("uplink_rate") == rate, pl.col("tcp") == name)
            captured(axes, part, "senders", BLUE, "")
            axes.set_title(f"{name},\nuplink {rate}", fontsize=8.5)
        line[0].set_ylabel("near sender over equal share")
    for axes in panels[-1]:
        axes.set_xlabel("senders behind the uplink")
    return titled(figure, "A port with one sender against a port with many: runs, medians")


def captured(axes: Axes, part: pl.DataFrame, along: str, ink: str, label: str) -> None:
    """Draw the shares of single runs as dots, with their median."""
    places = part[along].unique(maintain_order=True).to_list()
    for place, value in enumerate(places):
        runs = part.filter(pl.col(along) == value)["near_over_fair"].clip(LEAST, None).to_list()
        spread = [place + 0.3 * (i / max(1, len(runs) - 1) - 0.5) for i in range(len(runs))]
        axes.plot(spread, runs, "o", ms=2.5, alpha=0.45, mew=0, color=ink)
    medians = part.group_by(along, maintain_order=True).agg(pl.col("near_over_fair").median())
    shown = medians["near_over_fair"].clip(LEAST, None).to_list()
    axes.plot(range(len(places)), shown, "-", color=ink, lw=1.3, label=label)
    axes.axhline(1, color=MUTED, lw=0.8)
    axes.set_yscale("log")
    axes.set_ylim(LEAST / 1.5, 25)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xticks(range(len(places)), [str(value) for value in places])


def draw_outcast_rtt(table: pl.DataFrame) -> Figure:
    """Draw a near sender's throughput over an equal share, by the delay of the uplink."""
    figure, panels = grid(2, 1, (7.0, 2.2))
    for line, queue in zip(panels, ("drop-tail", "codel"), strict=True):
        axes = line[0]
        part = table.filter(pl.col("queue") == queue)
        captured(axes, part, "uplink_delay", BLUE, "")
        delays = part["uplink_delay"].unique(maintain_order=True)
        phases = [2 * float(delay.split()[0]) % PACKET_US for delay in delays]
        labels = [f"{d}\n({p:.1f} µs)" for d, p in zip(delays, phases, strict=True)]
        axes.set_xticks(range(len(labels)), labels)
        axes.set_title(f"{queue}, {'100' if queue == 'drop-tail' else '1,000'} packets")
        axes.set_ylabel("near over equal share")
    panels[-1][0].set_xlabel("delay of each uplink cable (of both, modulo a packet's time)")
    return titled(figure, "One near sender, twelve far: runs and medians")


def draw_alpha(table: pl.DataFrame) -> Figure:
    """Draw α of equation (4), the mean number of timeouts per block, by block size."""
    figure, panels = grid(1, 1, (5.0, 2.8))
    axes = panels[0][0]
    sizes = table["block_bytes"].unique(maintain_order=True).to_list()
    for ink, name in zip(SERIES, NAMES["alpha"], strict=False):
        part = table.filter(pl.col("tcp") == name)
        part = part.with_columns(pl.Series("place", range(part.height)))
        around(axes, part, "place", "o-", ink, f"simulated, {name}")
    places = [sizes.index("512 KB"), sizes.index("1024 KB")]
    axes.plot(places, [0.8, 0.6], "_", ms=22, mew=2, color=INK, label="the source's fit")
    axes.set_xticks(range(len(sizes)), sizes)
    axes.set_xlabel("bytes of each server")
    axes.set_ylabel("share of a timeout, alpha")
    axes.set_ylim(0)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return titled(figure, "alpha of equation (4), 4 to 16 servers, 64 KB of buffer")


def draw_kernel(table: pl.DataFrame) -> Figure:
    """Draw goodput by the model, the simulation and the measurement in one picture."""
    measured = pl.read_csv(KERNEL / "measured" / "reads.csv")
    figure, panels = grid(2, 2, (4.4, 2.6))
    for line, name in zip(panels, ("modern", "classic"), strict=True):
        for axes, rto in zip(line, ("200 ms", "1 ms"), strict=True):
            case = pl.col("case") == f"{name}_{rto.replace(' ', '')}"
            # The kernel's timers fire every 4 ms, so a minimum timeout of 1 ms becomes 4 ms.
            rto_s = 0.2 if rto == "200 ms" else 0.004
            three_ways(axes, table.filter(case), measured.filter(case).sort("senders"), rto_s)
            axes.set_title(f"{name}, minimum timeout {rto}")
        line[0].set_ylabel("goodput")
    for axes in panels[-1]:
        axes.set_xlabel("servers")
    panels[0][1].legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return titled(figure, "Model, simulation and Linux 6.18: 100 Mbit/s, 43 packets of buffer")


def reads_of_kernel_tcp() -> pl.DataFrame:
    """Return the results of the simulated reads that papers/kernel_tcp stores."""
    kept = sorted((KERNEL / "results").glob("incast_*_*ms.csv"))
    tables = [pl.read_csv(path).rename({"goodput_bps": "mean"}) for path in kept]
    return pl.concat([table.select("case", "senders", "mean", "low", "high") for table in tables])


def three_ways(axes: Axes, simulated: pl.DataFrame, measured: pl.DataFrame, rto_s: float) -> None:
    """Draw a panel: goodput by equations (1), (2) and (4), simulated, and measured."""
    # Block size in bytes, round trip in s, and payload rate of the link in bit/s.
    block, rtt_s, link = 262_144, 1e-3, 1e8 * 1448 / 1500
    xs = simulated["senders"].to_list()
    before = [models.goodput_before(n, block, rtt_s, link) for n in xs]
    after = [models.goodput_after(n, block, rto_s, rtt_s, link) for n in xs]
    axes.plot(xs, before, "--", color=GREEN, label="equation (1)")
    axes.plot(xs, after, ":", color=ORANGE, label="equation (2)")

    def alpha(goodput: Sequence[float]) -> float:
        pairs = [(n, v) for n, v in zip(xs, goodput, strict=True) if n >= 4]
        found = [models.alpha_of(v, n, block, rto_s, rtt_s, link) for n, v in pairs]
        return sum(found) / len(found)

    fitted = alpha(simulated["mean"].to_list())
    ends = (alpha(simulated["high"].to_list()), alpha(simulated["low"].to_list()))
    fit = [models.goodput_partial(n, block, max(0.0, fitted), rto_s, rtt_s, link) for n in xs]
    axes.plot(xs, fit, "-.", color=PURPLE, label="equation (4), fitted to the simulation")
    linux = alpha([1e6 * v for v in measured["goodput_mbps"]])
    text = f"alpha {fitted:.2f} ({ends[0]:.2f} to {ends[1]:.2f}); Linux {linux:.2f}"
    axes.annotate(text, (0.97, 0.06), xycoords="axes fraction", ha="right", size=7.5)
    around(axes, simulated, "senders", "o-", BLUE, "simulated, 95 %")
    axes.errorbar(
        measured["senders"].to_list(),
        [1e6 * v for v in measured["goodput_mbps"]],
        yerr=[1e6 * v for v in measured["sd"]],
        fmt="D",
        ms=4,
        capsize=3,
        color=INK,
        label="Linux 6.18, standard deviation",
    )
    axes.set_xscale("log", base=2)
    axes.set_xticks(xs, [str(x) for x in xs])
    axes.set_ylim(0, 1.05e8)
    rate_ticks(axes)


#: Pictures of each sweep, by name.
PICTURES: Mapping[str, Mapping[str, Callable[[pl.DataFrame], Figure]]] = {
    "kernel": {"kernel": draw_kernel},
    "alpha": {"alpha": draw_alpha},
    "map": {"map": draw_map},
    "map_plain": {"map_plain": draw_map},
    "causes": {"causes": draw_causes, "victims": draw_victims},
    "mechanisms": {"mechanisms": draw_mechanisms},
    "rates": {"rates": draw_rates},
    "spurious": {"spurious": draw_spurious},
    "outcast": {"outcast": draw_outcast},
    "outcast_rtt": {"outcast_rtt": draw_outcast_rtt},
}
