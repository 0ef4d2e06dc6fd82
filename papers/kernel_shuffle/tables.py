"""Writes the tables and the picture of README.md from measurements and stored results.

    python papers/kernel_shuffle/tables.py [PREDICTIONS EXPERIMENTS]

With the folders of the sweeps predictions.toml and experiments.toml, their tables in results/ are
made first. Each table is between two marks in the page; the text around the marks stays as it is.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eastwest.claims.tables import filled, rows
from eastwest.plot.picture import save
from eastwest.plot.style import BLUE, ORANGE, log_axis, style

HERE = Path(__file__).parent
#: Title of each setting in the tables → its name in the results.
SETTINGS = {
    "drop-tail 200": "droptail200",
    "drop-tail 2000": "droptail2000",
    "RED, default": "red_default",
    "RED, ece-bit": "red_ece_bit",
    "RED, ack+syn": "red_ack_syn",
}
_NUMBERS = {
    "makespan": "makespan_s",
    "pair_time": "mean_pair_s",
    "latency": "latency_ms_mean",
}
_KINDS = {
    "data, ECT": "data",
    "data, not ECT": "nonect_data",
    "ACKs": "ack",
    "ACKs with ECE": "ece_ack",
    "SYN and SYN-ACK": "syn",
    "FIN": "fin",
}
_DROPS = {"early_drops": "dropped early", "full_drops": "queue full"}
#: Kinds of packets whose numbers are added in a column of the tables.
_DATA, _ACKS, _SYNS = ("data", "retransmission"), ("ack", "ece_ack"), ("syn", "syn_ack")


def _drops_of(causes: tuple[str, ...], kinds: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"drops.{cause}.{kind}" for cause in causes for kind in kinds)


_KEPT = {
    "makespan_s": ("simulated_s",),
    "latency_us": ("latency_us.mean",),
    "timeouts": ("tcp.timeouts",),
    "marks": ("marks.data",),
    "aqm_data": _drops_of(("early", "sojourn"), _DATA),
    "aqm_acks": _drops_of(("early", "sojourn"), _ACKS),
    "aqm_syns": _drops_of(("early", "sojourn"), _SYNS),
    "full_data": _drops_of(("full",), _DATA),
    "full_acks": _drops_of(("full",), _ACKS),
}
Part = Mapping[str, Any]


def _measured() -> dict[tuple[str, str], dict[str, str]]:
    measured = rows(HERE / "measured" / "settings.csv")
    return {(row["setting"], row["number"]): row for row in measured}


def _parts(name: str) -> list[Part]:
    found = json.loads((HERE / "results" / f"{name}.json").read_text())
    return list(found["metrics"])


def _number(value: float | str) -> str:
    value = float(value)
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _told(row: Mapping[str, str]) -> str:
    return f"{_number(row['mean'])} ± {float(row['sd']):.2g}"


def _ours(part: Part) -> str:
    shown = _number(part["value"])
    shown = f"**{shown}**" if part["verdict"] == "differs" else shown
    return f"{shown} ({_number(part['low'])} to {_number(part['high'])})"


def _band(part: Part) -> str:
    return f"{_number(part['band']['low'])} to {_number(part['band']['high'])}"


def numbers() -> Iterator[str]:
    """Yield the table of makespan, time of a pair and latency for each setting."""
    known = _measured()
    yield (
        "| setting | makespan, s: Linux | simulated | pair, s: Linux | simulated | "
        "latency, ms: Linux | simulated |"
    )
    yield "|---|---|---|---|---|---|---|"
    parts = {name: {part["name"]: part for part in _parts(name)} for name in _NUMBERS}
    for title, setting in SETTINGS.items():
        cells = [title]
        for name, number in _NUMBERS.items():
            cells += [_told(known[setting, number]), _ours(parts[name][title])]
        yield f"| {' | '.join(cells)} |"


def drops() -> Iterator[str]:
    """Yield the table of dropped packets by setting, cause and kind."""
    known = _measured()
    yield "| setting | cause | kind | Linux | allowed | simulated (95 %) |"
    yield "|---|---|---|---|---|---|"
    for title, setting in SETTINGS.items():
        for name, cause in _DROPS.items():
            for part in _parts(name):
                of, _, kind = part["name"].partition(": ")
                if of == title:
                    row = known[setting, f"{name}_{_KINDS[kind]}"]
                    cells = (title, cause, kind, _told(row), _band(part), _ours(part))
                    yield f"| {' | '.join(cells)} |"


def shares() -> Iterator[str]:
    """Yield the table of ACKs' share among early drops of RED, and among all packets."""
    yield "| | allowed, % | simulated, % |"
    yield "|---|---|---|"
    for part in _parts("ack_share"):
        yield f"| {part['name']} | {_band(part)} | {_ours(part)} |"


def condense(sweep: Path, table: str) -> None:
    """Write the table of a sweep with the means over seeds of the used metrics."""
    points = pl.read_parquet(sweep / "points.parquet")
    wide = points.pivot(on="metric", index=["point", "name", "fabric.queue"], values="mean")
    kept = wide.sort("point").select(
        "name",
        pl.col("fabric.queue").alias("queue"),
        *(pl.sum_horizontal(parts).round(6).alias(name) for name, parts in _KEPT.items()),
    )
    kept.write_csv(HERE / "results" / f"{table}.csv")


def predictions() -> Iterator[str]:
    """Yield the table of settings that were not measured."""
    yield (
        "| setting | makespan, s | latency, ms | timeouts | marked | "
        "dropped by the discipline: data | ACKs | SYNs | data at a full queue |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for row in rows(HERE / "results" / "predictions.csv"):
        cells = [row["name"].replace("_", " "), f"{float(row['makespan_s']):.2f}"]
        cells.append(f"{float(row['latency_us']) / 1e3:.1f}")
        columns = ("timeouts", "marks", "aqm_data", "aqm_acks", "aqm_syns", "full_data")
        cells += [f"{float(row[column]):.0f}" for column in columns]
        yield f"| {' | '.join(cells)} |"


def experiments() -> Iterator[str]:
    """Yield the lines of the table of open settings, changed one at a time."""
    titles = list(SETTINGS)
    yield f"| makespan, s; latency, ms; ACKs lost | {' | '.join(titles)} |"
    yield f"|---{'|---' * len(titles)}|"
    found: dict[str, list[str]] = {}
    for row in rows(HERE / "results" / "experiments.csv"):
        lost = float(row["aqm_acks"]) + float(row["full_acks"])
        cell = f"{float(row['makespan_s']):.2f}; {float(row['latency_us']) / 1e3:.1f}; {lost:.0f}"
        found.setdefault(row["name"].replace("-", " "), []).append(cell)
    for name, cells in found.items():
        yield f"| {name} | {' | '.join(cells)} |"


def picture() -> Figure:
    """Draw makespan against latency, and drops by kind, measured on Linux and simulated."""
    figure = Figure(figsize=(10.6, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    _front(left)
    _drops(right)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=2)
    return figure


def _front(axes: Axes) -> None:
    known = _measured()
    makespan = {part["name"]: part for part in _parts("makespan")}
    latency = {part["name"]: part for part in _parts("latency")}
    for place, (title, setting) in enumerate(SETTINGS.items()):
        x, y = known[setting, "latency_ms_mean"], known[setting, "makespan_s"]
        once = {} if place else {"label": "Linux 6.18 ± standard deviation"}
        axes.errorbar(
            float(x["mean"]), float(y["mean"]), xerr=float(x["sd"]), yerr=float(y["sd"]),
            fmt="s", ms=6, capsize=3, color=ORANGE, **once,
        )  # fmt: skip
        a, b = latency[title], makespan[title]
        once = {} if place else {"label": "simulated, 95 % interval"}
        axes.errorbar(
            a["value"], b["value"], xerr=[[a["value"] - a["low"]], [a["high"] - a["value"]]],
            yerr=[[b["value"] - b["low"]], [b["high"] - b["value"]]],
            fmt="o", ms=4, capsize=2, color=BLUE, **once,
        )  # fmt: skip
        axes.annotate(title, (a["value"], b["value"]), (9, 5), textcoords="offset points")
    axes.set_xlim(0, 78)
    axes.set_ylim(5, 9)
    axes.set_xlabel("mean latency of packets (ms)")
    axes.set_ylabel("makespan (s)")


def _drops(axes: Axes) -> None:
    known = _measured()
    for name in _DROPS:
        for part in _parts(name):
            of, _, kind = part["name"].partition(": ")
            row = known[SETTINGS[of], f"{name}_{_KINDS[kind]}"]
            mean, spread = float(row["mean"]), float(row["sd"])
            x, y = max(1.0, mean), max(0.5, part["value"])
            axes.plot([max(1.0, mean - spread), x + spread], [y, y], color=ORANGE, lw=1, alpha=0.6)
            axes.plot(x, y, "o" if name == "early_drops" else "s", color=BLUE, ms=4)
            if part["verdict"] == "differs":
                place, side = ((-8, 5), "right") if x > 1000 else ((-4, 17), "left")
                axes.annotate(
                    part["name"], (x, y), place, textcoords="offset points", ha=side, fontsize=7
                )
    ends = [1.0, 2e4]
    axes.plot(ends, ends, color=ORANGE, lw=1)
    low, high = [0.7 * end for end in ends], [1.3 * end for end in ends]
    axes.fill_between(ends, low, high, color=ORANGE, alpha=0.15)
    log_axis(axes, "x")
    log_axis(axes, "y")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlim(8, 2e4)
    axes.set_ylim(0.5, 2e4)
    axes.set_xlabel("dropped by Linux's switch, by setting and kind (circles: early)")
    axes.set_ylabel("dropped in the simulation")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        condense(Path(sys.argv[1]), "predictions")
        condense(Path(sys.argv[2]), "experiments")
    with style():
        drawn = picture()
        save(drawn, HERE / "results" / "overview.svg")
    readme = HERE / "README.md"
    tables = (numbers, drops, shares, predictions, experiments)
    readme.write_text(filled(readme.read_text(), {each.__name__: each() for each in tables}))
