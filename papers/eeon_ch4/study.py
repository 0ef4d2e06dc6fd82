"""Chapter 4 of E-EON: every configuration of its grid with both TCPs, by one command.

    python papers/eeon_ch4/study.py               # continues where it was stopped
    python papers/eeon_ch4/study.py --plan        # only what is missing, and how long it takes
    python papers/eeon_ch4/study.py link --kept   # runs nothing: what the store has already
    python papers/eeon_ch4/study.py --draw        # the pictures again, from the kept numbers

There are two parts: ``link`` is the best-supported reading; ``chapter4`` is the reading ``first``,
with the study's TCP and with the TCP of profiles.toml. The runs are those of the claims in
grid.toml. The folder results/study has a table of each part with means and 95 % intervals over
``n`` seeds (0: not run), and the pictures (drawing.py). After this program, ``eastwest claims
eeon_ch4 --record`` only reads runs from the store.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from drawing import PICTURES, READING_PICTURES

from eastwest.cli.study import (
    Labels,
    Part,
    Point,
    averages,
    command,
    decided,
    grid_sweeps,
    kept_table,
    points_of,
    policy_of,
    ratios,
)
from eastwest.plot import panels
from eastwest.store import Store
from eastwest.sweep.spec import Spec

HERE = Path(__file__).resolve().parent
NODES = {12: "24", 25: "50", 40: "80"}
BUFFERS = {"128 KB": "shallow", "10 MB": "deep"}
#: Load in percent by the gap between TeraSorts, from [load] of grid.toml.
LOADS = {
    "6646 ms": "5",
    "2215 ms": "15",
    "1329 ms": "25",
    "949 ms": "35",
    "738 ms": "45",
    "604 ms": "55",
}
#: Measured CPU seconds of a run with links that sleep, by workload and nodes; links that are always
#: on and ideal links need about two thirds.
RUN_S = {
    ("batch", "24"): 1.4,
    ("batch", "50"): 3.2,
    ("batch", "80"): 6.0,
    ("small", "24"): 6.7,
    ("small", "50"): 8.7,
    ("small", "80"): 8.7,
}
AWAKE = 0.7
#: Metrics that are also given relative to standard EEE at the same point.
RELATIVE = ("runtime_s", "energy_j", "fabric_energy_j", "host_energy_j", "fabric_edp_js")


def labels_of(tcp: str, spec: Spec, number: int) -> Labels:
    """Return the labels of a point of the sweep, which name its row in the table."""
    settings = decided(spec, number)
    first, _, second = spec.name.partition("-")
    study = first if first in {"delay", "stall", "load"} else "policies"
    workload = second if study in {"delay", "stall"} else "small" if study == "load" else first
    delay = settings.get("fabric.host_delay", "5 us")
    load = LOADS[settings["workload.hadoop.job.0.interarrival"]] if study == "load" else ""
    return {
        "tcp": tcp,
        "study": study,
        "workload": workload,
        "nodes": NODES[settings["fabric.hosts_per_leaf"]],
        "buffer": BUFFERS[settings["fabric.queue.limit"]],
        "window": settings["tcp.max_window"],
        "policy": policy_of(settings),
        "delay_us": str(int(delay.partition(" ")[0]) - 5),
        "load": load,
    }


def cost_s(spec: Spec, number: int) -> float:
    """Return the expected CPU seconds of a run of a point."""
    labels, settings = labels_of("", spec, number), decided(spec, number)
    sleeps = labels["policy"] not in {"legacy", "ideal"}
    streams = settings.get("workload.hadoop.job.1.count", 20) / 20
    return RUN_S[labels["workload"], labels["nodes"]] * streams * (1 if sleeps else AWAKE)


def numbers_of(summary: Mapping[str, Any]) -> dict[str, float]:
    """Return the study's numbers of one run, by name, from its summary."""
    energy, jobs, latency = summary["energy_j"], summary["jobs"], summary["latency_us"]
    mean_s = float(jobs["runtime_s"]["mean"])
    found = {
        # As in the thesis: the time of all tasks if there is one job, else the mean time of the
        # jobs.
        "runtime_s": jobs["tasks_s"] if jobs["count"] == 1 else mean_s,
        "total_runtime_s": jobs["tasks_s"],
        "energy_j": energy["total"],
        "energy_of_legacy": energy["of_always_on"],
        "energy_of_ideal": energy["of_ideal"],
        "always_on_j": energy["always_on"],
        "edp_js": energy["total"] * mean_s,
        "latency_us": latency["mean"],
        "latency_p99_us": latency["p99"],
        "timeouts": summary["tcp"]["timeouts"],
        "cpu_s": summary["cpu_s"],
    }
    for links in ("fabric", "host"):
        part = energy[f"{links}_links"]
        found[f"{links}_energy_j"] = part["total"]
        found[f"{links}_energy_of_legacy"] = part["of_always_on"]
        found[f"{links}_edp_js"] = part["total"] * mean_s
    return {name: float(value) for name, value in found.items()}


def against(labels: Labels) -> Labels:
    """Return the labels of the reference of a point: standard EEE, or no extra latency."""
    if labels["study"] == "delay":
        return {**labels, "delay_us": "0"}
    if labels["study"] == "stall":
        return {**labels, "study": "policies", "policy": "nopa"}
    return {**labels, "policy": "nopa"}


def table_of(points: Sequence[Point]) -> pl.DataFrame:
    """Return means and intervals by point and metric, also relative to standard EEE."""
    by_labels = {tuple(point.labels.items()): point for point in points}

    def relative(point: Point) -> dict[str, list[float]]:
        base = by_labels[tuple(against(point.labels).items())].runs
        return {f"{name}_relative": ratios(point.runs, base, name) for name in RELATIVE}

    return averages(points, relative)


def finish(part: Part, store: Store, read: bool) -> None:
    """Write the table of a part (from the store if ``read``), and draw its pictures."""

    def table() -> pl.DataFrame:
        return table_of(points_of(part, store, numbers_of))

    path = HERE / "results" / "study" / f"{part.name}.parquet"
    pictures = PICTURES if part.name == "chapter4" else READING_PICTURES
    panels.keep(pictures, kept_table(path, table if read else None), path.parent)


def main(arguments: Sequence[str]) -> None:
    """Run and draw the chapter."""

    def link() -> Part:
        sweeps = [("link", spec) for _, spec in grid_sweeps(HERE, read_as="link")]
        return Part("link", sweeps, labels_of, cost_s)

    def chapter() -> Part:
        return Part("chapter4", grid_sweeps(HERE, "linux"), labels_of, cost_s)

    command(arguments, {"link": link, "chapter4": chapter}, finish)


if __name__ == "__main__":
    main(sys.argv[1:])
