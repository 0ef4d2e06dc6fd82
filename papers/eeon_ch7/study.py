"""Chapter 7 of E-EON: every configuration of its grid with both TCPs, by one command.

    python papers/eeon_ch7/study.py          # goes on where it was stopped
    python papers/eeon_ch7/study.py --plan   # only what is missing, and how long it takes
    python papers/eeon_ch7/study.py --kept   # runs nothing: what the store has already
    python papers/eeon_ch7/study.py --draw   # the pictures again, from the kept numbers

Runs are those of the claims: grid.toml with the study's TCP and with that of profiles.toml. What is
kept, in results/study, is a CSV with means and 95 % intervals over seeds (``n`` seeds: 0 is not
run), and the pictures (drawing.py). After it ``eastwest claims 'eeon/F7*' --record`` only reads.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from drawing import PICTURES

from eastwest.cli.study import (
    Labels,
    Part,
    Point,
    command,
    common,
    decided,
    grid_sweeps,
    interval,
    points_of,
    policy_of,
    ratios,
)
from eastwest.plot.style import style
from eastwest.store import Store
from eastwest.sweep.spec import Spec

HERE = Path(__file__).resolve().parent
BUFFERS = {"200 packets": "shallow", "2000 packets": "deep"}
#: Measured CPU seconds of a run.
RUN_S = 1.7
#: Numbers that are also told relative to links that are always on, with the same queue.
RELATIVE = ("runtime_s", "latency_us")


def labels_of(tcp: str, spec: Spec, number: int) -> Labels:
    """Names of a point."""
    settings = decided(spec, number)
    queue = {"drop-tail": "DropTail", "red": "RED with ECN"}[settings["fabric.queue.kind"]]
    if settings.get("fabric.queue.protection") == "ack+syn":
        queue += ", ack+syn"
    every = settings["fabric.host_energy.kind"] == "coalescing"
    policy = policy_of(settings)
    return {
        "tcp": tcp,
        "queue": queue,
        "buffer": BUFFERS[settings["fabric.queue.limit"]],
        "links": "all links" if every else "between switches",
        "policy": "eee" if policy == "nopa" else policy,
    }


def numbers_of(summary: Mapping[str, Any]) -> dict[str, float]:
    """Numbers of one run, from its summary."""
    latency, fabric = summary["latency_us"], summary["energy_j"]["fabric_links"]
    found = {
        "runtime_s": summary["jobs"]["tasks_s"],
        "latency_us": latency["mean"],
        "latency_p99_us": latency["p99"],
        "fabric_energy_j": fabric["total"],
        "fabric_always_on_j": fabric["always_on"],
        "fabric_ideal_j": fabric["ideal"],
        "energy_j": summary["energy_j"]["total"],
        "timeouts": summary["tcp"]["timeouts"],
        "drops": summary["packets"]["dropped"],
        "marks": sum(summary["marks"].values()),
        "cpu_s": summary["cpu_s"],
    }
    return {name: float(value) for name, value in found.items()}


def table_of(points: Sequence[Point]) -> pl.DataFrame:
    """Means and intervals over seeds, also relative to always-on and to ideal links."""
    by_labels = {tuple(point.labels.items()): point for point in points}
    rows: list[dict[str, Any]] = []
    for point in points:
        samples = {name: [run[name] for run in point.runs.values()] for name in common(point)}
        base = {**point.labels, "links": "between switches", "policy": "ideal"}
        awake = by_labels[tuple(base.items())].runs  # ideal links carry what always-on ones do
        for name in (*RELATIVE, "fabric_energy_j"):
            samples[f"{name}_relative"] = ratios(point.runs, awake, name)
        if point.labels["policy"] == "ideal":
            legacy = [run["fabric_always_on_j"] / run["fabric_energy_j"] for run in awake.values()]
            samples["legacy_of_ideal"] = legacy
        found = {name: values for name, values in samples.items() if values}
        found = found or {"runtime_s": []}
        rows += [
            {**point.labels, "metric": name, **interval(values)} for name, values in found.items()
        ]
    return pl.DataFrame(rows, infer_schema_length=None)


def finish(part: Part, store: Store, read: bool) -> None:
    """Keep the numbers, and draw them."""
    kept = HERE / "results" / "study"
    kept.mkdir(parents=True, exist_ok=True)
    path = kept / f"{part.name}.csv"
    if read:
        table_of(points_of(part, store, numbers_of)).write_csv(path, float_precision=6)
    table = pl.read_csv(path, schema_overrides={"mean": pl.Float64})
    for picture, draw in PICTURES.items():
        with style():
            figure = draw(table)
            figure.savefig(kept / f"{picture}.png", metadata={"Software": None}, dpi=110)
            figure.savefig(kept / f"{picture}.svg", metadata={"Date": None})


def main(arguments: Sequence[str]) -> None:
    """Run and draw the chapter."""

    def chapter() -> Part:
        return Part("chapter7", grid_sweeps(HERE, "linux"), labels_of, lambda *_: RUN_S)

    command(arguments, {"chapter7": chapter}, finish)


if __name__ == "__main__":
    main(sys.argv[1:])
