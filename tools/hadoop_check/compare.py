"""Compares the runs of the cluster with the simulator: scenario, bands and table.

The machine profile is calibrated on the history of the first run. If there is only one run, only
its network times are predicted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import hadoop_real
from eastwest.calibrate import Containers, calibrate, read, toml_text
from eastwest.run import Setting
from hadoop_check.network import WORKERS, Shape
from hadoop_check.wire import Sample, by_port
from hadoop_real_measures import Attempt, Network, first_percent
from hadoop_real_measures import outcome as made


@dataclass(frozen=True)
class Measured:
    """A job that ran on the cluster."""

    shape: Shape
    history: Path
    samples: list[Sample]
    drops: int
    retransmits: int
    timeouts: int
    maps: int
    #: Packets dropped at the switch's port towards the master.
    master_drops: int = 0


def outcome(run: Measured) -> hadoop_real.Outcome:
    """Return the numbers of the job, from its history and the counters of the switch."""
    history = read(run.history)
    attempts = [
        Attempt(kind, a.started_s or 0.0, a.finished_s or 0.0, a.input_done_s)
        for kind in ("map", "reduce")
        for a in history.of(kind)
    ]
    network = Network(run.retransmits, run.timeouts, run.drops, run.master_drops)
    ports = by_port(run.samples, history.submitted_at_s)
    return made(history.finished_s, attempts, ports, network)


def as_runs(runs: Sequence[Measured]) -> list[hadoop_real.Run]:
    """Return the runs in the form in which the paper compares runs."""
    return [
        hadoop_real.Run(
            f"{run.shape.rate_mbit:g}-{run.shape.congestion}-{number}-1",
            run.shape.rate_mbit,
            run.shape.switch_buffer_bytes,
            run.shape.congestion,
            run.maps,
            0.0,
            outcome(run),
        )
        for number, run in enumerate(runs, 1)
    ]


def report(
    runs: Sequence[Measured], seeds: int, extra: Mapping[str, Setting], cores: int = 2
) -> tuple[str, bool]:
    """Return the table, and whether all bands are held; ``extra`` changes the scenario.

    ``cores`` is the number of cores of the machine that runs all nodes.
    """
    first = runs[0]
    compared = as_runs(runs)
    cluster = Containers(cores, len(WORKERS))
    rates, seen = [first.shape.rate_mbit * 1e6], [first_percent(compared[0].measured)]
    found = calibrate([first.history], rates, cluster=cluster, first_percents_s=seen)
    profile = toml_text(found)
    # The devices send no segment larger than a packet (gso_max_segs 1), so offload is switched off.
    extra = {"tcp.segmentation_offload": False, "workload.hadoop.node.cores": cores, **extra}
    calibrated = () if len(runs) == 1 else (compared[0].setting,)
    results = hadoop_real.compare(compared, profile, seeds, extra, calibrated)
    held = all(value <= band for value, band in hadoop_real.verdicts(results).values())
    return hadoop_real.show(results), held
