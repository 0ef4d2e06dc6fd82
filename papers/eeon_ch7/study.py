"""Chapter 7 of E-EON by one command: its grid with both TCPs, and further sweeps.

    python papers/eeon_ch7/study.py          # all parts; continues where it was stopped
    python papers/eeon_ch7/study.py reading  # one of them
    python papers/eeon_ch7/study.py --plan   # only what is missing, and how long it takes
    python papers/eeon_ch7/study.py --kept   # runs nothing: what the store has already
    python papers/eeon_ch7/study.py --draw   # the pictures again, from the kept numbers
    python papers/eeon_ch7/study.py --dask tcp://10.0.0.1:8786   # on the workers of a Dask cluster

The part ``reading`` has the runs of the claims under the best-supported reading (readings.toml).
The part ``chapter7`` has the runs of all tables of grid.toml under the reading ``first`` of the
claim files, with the TCP of [first] and with Linux's. The other parts are the sweeps of study/:
every policy, and one that adapts, with the values of ``first``. The folder results/study has a
table per part with means and 95 % intervals over ``n`` seeds (0: not run), and the pictures
(drawing.py). After this program, ``eastwest claims eeon_ch7 --record`` only reads runs from the
store.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from drawing import PICTURES

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
from eastwest.sweep.check import load
from eastwest.sweep.spec import Spec

HERE = Path(__file__).resolve().parent
BUFFERS = {"200 packets": "shallow", "2000 packets": "deep"}
#: Measured CPU seconds of a run.
RUN_S = 1.7
#: Tables of grid.toml that have the runs from which claims are measured.
MEASURED = ("droptail", "droptail-ideal", "red", "red-ideal")
#: CPU seconds of a run of each sweep of study/.
STUDIES = {"policies": 1.7, "service": 4.0, "fast": 1.7}
#: Metrics that are also given relative to links that are always on, with the same queue.
RELATIVE = ("runtime_s", "latency_us", "latency_data_us")


def read_sweeps() -> list[tuple[str, Spec]]:
    """Return TCP and sweep of each part of the claims' runs under the best-supported reading."""
    sweeps = grid_sweeps(HERE, read_as="", names=MEASURED, claim="eeon/F7.2")
    return [(str(spec.settings["tcp.profile"]), spec) for _, spec in sweeps]


def labels_of(tcp: str, spec: Spec, number: int) -> Labels:
    """Return the labels of a point of the sweep, which name its row in the table."""
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


def study_labels(_: str, spec: Spec, number: int) -> Labels:
    """Return the labels of a point of study/: the file's queue, and the policy."""
    settings = decided(spec, number)
    queue, energy = settings["fabric.queue"], settings["fabric.energy"]
    kinds = {"drop-tail": "DropTail", "step-marking": "DCTCP"}
    name = kinds.get(queue["kind"], "RED with ECN")
    if queue.get("protection") == "ack+syn":
        name += ", ack+syn"
    if queue["kind"] == "drop-tail":
        name += f", {BUFFERS[queue['limit']]}"
    policy = policy_of({f"fabric.energy.{key}": value for key, value in energy.items()})
    return {"queue": name, "policy": "eee" if policy == "nopa" else policy}


def numbers_of(summary: Mapping[str, Any]) -> dict[str, float]:
    """Return the study's numbers of one run, by name, from its summary."""
    latency, fabric = summary["latency_us"], summary["energy_j"]["fabric_links"]
    found = {
        "runtime_s": summary["jobs"]["tasks_s"],
        "latency_us": latency["mean"],
        "latency_data_us": latency["data"]["mean"],
        "latency_p99_us": latency["p99"],
        "fabric_energy_j": fabric["total"],
        "fabric_always_on_j": fabric["always_on"],
        "fabric_ideal_j": fabric["ideal"],
        "energy_j": summary["energy_j"]["total"],
        "energy_of_ideal": summary["energy_j"]["total"] / summary["energy_j"]["ideal"],
        "fabric_of_ideal": fabric["total"] / fabric["ideal"],
        "timeouts": summary["tcp"]["timeouts"],
        "drops": summary["packets"]["dropped"],
        "marks": sum(summary["marks"].values()),
        "cpu_s": summary["cpu_s"],
    }
    if "service" in latency["classes"]:
        service = latency["classes"]["service"]
        found |= {f"service_{name}_us": service[name] for name in ("p50", "p99", "p999")}
    return {name: float(value) for name, value in found.items()}


def table_of(points: Sequence[Point]) -> pl.DataFrame:
    """Return means and intervals by point and metric, also relative to other links."""
    by_labels = {tuple(point.labels.items()): point for point in points}

    def relative(point: Point) -> dict[str, list[float]]:
        base = {**point.labels, "links": "between switches", "policy": "ideal"}
        # Ideal links carry equal traffic to always-on links, so their energy is relative to these.
        awake = by_labels[tuple(base.items())].runs
        found = {
            f"{name}_relative": ratios(point.runs, awake, name)
            for name in (*RELATIVE, "fabric_energy_j")
        }
        if point.labels["policy"] == "ideal":
            legacy = [run["fabric_always_on_j"] / run["fabric_energy_j"] for run in awake.values()]
            found["legacy_of_ideal"] = legacy
        return found

    return averages(points, relative)


def finish(part: Part, store: Store, read: bool) -> None:
    """Write the table of a part (from the store if ``read``), and draw its pictures."""

    def table() -> pl.DataFrame:
        points = points_of(part, store, numbers_of)
        return averages(points) if part.name in STUDIES else table_of(points)

    path = HERE / "results" / "study" / f"{part.name}.parquet"
    panels.keep(PICTURES[part.name], kept_table(path, table if read else None), path.parent)


def main(arguments: Sequence[str]) -> None:
    """Run and draw the chapter."""

    def chapter() -> Part:
        return Part("chapter7", grid_sweeps(HERE, "linux"), labels_of, lambda *_: RUN_S)

    def read() -> Part:
        return Part("reading", read_sweeps(), labels_of, lambda *_: RUN_S)

    def study(name: str) -> Part:
        sweeps = [("", load(HERE / "study" / f"{name}.toml"))]
        return Part(name, sweeps, study_labels, lambda *_: STUDIES[name])

    parts = {"reading": read, "chapter7": chapter}
    command(arguments, {**parts, **{n: partial(study, n) for n in STUDIES}}, finish)


if __name__ == "__main__":
    main(sys.argv[1:])
