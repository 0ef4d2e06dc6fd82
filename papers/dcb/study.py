"""The case study by one command: throughput and latency over load, and three flows over time.

    python papers/dcb/study.py          # all parts; continues where it was stopped
    python papers/dcb/study.py uniform  # one of them
    python papers/dcb/study.py --plan   # only what is missing, and how long it takes
    python papers/dcb/study.py --kept   # runs nothing: what the store has already
    python papers/dcb/study.py --draw   # the pictures again, from the kept numbers

The runs are those of the claims (grid.toml), under the study's best-supported reading. The
folder results/study has a CSV per part: means and 95 % intervals over seeds by load, and the rates
of three flows over time of one seed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from eastwest.cli.study import (
    Labels,
    Part,
    averages,
    command,
    decided,
    grid_sweeps,
    kept_table,
    points_of,
)
from eastwest.plot import panels
from eastwest.plot.panels import error, seeds_of
from eastwest.plot.style import BLUE, GREEN, INK, ORANGE
from eastwest.store import Store, plan
from eastwest.sweep.check import overrides, source_of
from eastwest.sweep.spec import Spec

HERE = Path(__file__).resolve().parent
NAMES = {"none": "no congestion management", "qcn": "QCN", "adaptive": "QCN, adaptive routing"}
COLOURS = {"none": INK, "qcn": ORANGE, "adaptive": GREEN, "coloured": BLUE}
#: Rate of a host's cable in bit/s, and expected CPU time of a run in s.
RATE_BPS, RUN_S = 10e9, 2.0
HOSTS = 6


def labels(_: str, spec: Spec, number: int) -> Labels:
    """Return the congestion management and the load of a point."""
    load = decided(spec, number).get("workload.frames.load", "")
    return {"management": spec.name, "load": str(load)}


def numbers_of(summary: Mapping[str, Any]) -> dict[str, float]:
    """Return the study's numbers of one run, by name, from its summary."""
    streams, bridging = summary["streams"], summary["dcb"]
    run_s = float(summary["simulated_s"])
    found = {
        "throughput": streams["bytes_received"] * 8 / (run_s * RATE_BPS * HOSTS),
        "latency_us": summary["latency_us"]["mean"],
        "reordered": streams["frames_reordered"] / max(1, streams["frames_received"]),
        "resequenced_most": streams["resequenced_most"],
        "paused_s": bridging["paused_s"],
        "messages": bridging["qcn_messages"],
        "dropped": summary["packets"]["dropped"],
        "cpu_s": summary["cpu_s"],
    }
    return {name: float(value) for name, value in found.items()}


def over_load(table: pl.DataFrame) -> Figure:
    """Draw throughput and latency over load."""
    title = f"Uniform traffic of six hosts ({seeds_of(table)})"
    figure, [[left, right]] = panels.panels(1, 2, (4.4, 3.2), title)
    for axes, metric in ((left, "throughput"), (right, "latency_us")):
        for name, colour in COLOURS.items():
            part = table.filter(pl.col("management") == name, pl.col("metric") == metric)
            part = part.with_columns(pl.col("load").cast(pl.Float64)).sort("load")
            axes.errorbar((part["load"] * 100).to_list(), part["mean"].to_list(),
                          yerr=error(part), fmt="o-", color=colour, ms=3, lw=1.3, elinewidth=0.6,
                          label=NAMES.get(name, "QCN, computed routes"))  # fmt: skip
        axes.set_xlabel("load, % of the hosts' rate")
    left.axhline(5 / 9, color=BLUE, lw=0.8, ls=":")
    left.set_ylabel("received, of the hosts' rate")
    right.set_ylabel("mean latency, µs")
    right.set_yscale("log")
    right.yaxis.set_major_formatter("{x:,.0f}")
    left.legend(fontsize=7)
    return figure


def over_time(table: pl.DataFrame) -> Figure:
    """Draw the rates of three flows over time."""
    title = "Three flows that contend only because of routing, 95 % load (one seed)"
    figure, [grid] = panels.panels(1, 3, (3.4, 2.8), title)
    for axes, (name, words) in zip(grid, NAMES.items(), strict=True):
        part = table.filter(pl.col("management") == name)
        for number, colour in enumerate((BLUE, ORANGE, GREEN)):
            flow = part.filter(pl.col("flow") == number).sort("time_s")
            times = (flow["time_s"] * 1e3).to_list()
            axes.plot(times, flow["mbyte_s"].to_list(), color=colour, lw=1.0,
                      label=f"h{number} to h{number + 3}")  # fmt: skip
        axes.set_title(words)
        axes.set_ylim(0, 1300)
        axes.set_xlabel("ms")
    grid[0].set_ylabel("MB/s")
    grid[0].legend(fontsize=7)
    return figure


def rates(part: Part, store: Store) -> pl.DataFrame:
    """Return rates of cables to receivers: ``management``, ``flow``, ``time_s``, ``mbyte_s``."""
    found = []
    for _, spec in part.sweeps:
        wanted = plan(source_of(spec), overrides(spec, spec.at(0)))
        run = store.find(wanted.key(next(iter(spec.seeds))))
        if run is None:
            continue
        into = run.links.filter(
            pl.col("tier") == "host-down", pl.col("dst").is_in(["h3", "h4", "h5"])
        )
        samples = (
            run.table("link_samples").join(into.select("link", "dst"), on="link").sort("time_s")
        )
        times = samples["time_s"].unique().sort()
        step = float(times[0])
        found.append(
            samples.select(
                pl.lit(spec.name.removeprefix("pairs-")).alias("management"),
                (pl.col("dst").str.strip_prefix("h").cast(pl.Int64) - 3).alias("flow"),
                "time_s",
                (pl.col("bytes") / step / 1e6).alias("mbyte_s"),
            )
        )
    return pl.concat(found)


PICTURES = {"uniform": {"over_load": over_load}, "pairs": {"over_time": over_time}}


def finish(part: Part, store: Store, read: bool) -> None:
    """Write the table of a part (from the store if ``read``), and draw its pictures."""

    def table() -> pl.DataFrame:
        if part.name == "uniform":
            return averages(points_of(part, store, numbers_of), always="throughput")
        return rates(part, store)

    path = HERE / "results" / "study" / f"{part.name}.csv"
    panels.keep(PICTURES[part.name], kept_table(path, table if read else None), path.parent)


def main(arguments: Sequence[str]) -> None:
    """Run and draw the study."""

    def some(name: str, names: Sequence[str]) -> Part:
        sweeps = grid_sweeps(HERE, read_as="", names=names)
        return Part(name, sweeps, labels, lambda *_: RUN_S)

    parts = {
        "uniform": lambda: some("uniform", list(COLOURS)),
        "pairs": lambda: some("pairs", [f"pairs-{name}" for name in NAMES]),
    }
    command(arguments, parts, finish)


if __name__ == "__main__":
    main(sys.argv[1:])
