"""Measured runs of the cluster against the simulator: scenario, bands and table of the paper.

The machine is calibrated on the history of the first run; where there is only one, it predicts
itself but for the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import hadoop_real
from eastwest.calibrate import calibrate, read, toml_text
from eastwest.run import Setting
from hadoop_check.network import Shape
from hadoop_check.wire import Sample, wire_time


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


def outcome(run: Measured) -> hadoop_real.Outcome:
    """The job's numbers, by its history and the switch's counters."""
    history = read(run.history)
    reduces = history.of("reduce")
    begins = min(r.started_s or 0.0 for r in reduces) + history.submitted_at_s
    ends = max(r.input_done_s or 0.0 for r in reduces) + history.submitted_at_s
    wire_s, _ = wire_time(run.samples, begins, ends)
    return hadoop_real.Outcome(history.finished_s, wire_s, run.drops, run.retransmits, run.timeouts)


def as_runs(runs: Sequence[Measured]) -> list[hadoop_real.Run]:
    """The runs as those the paper compares."""
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


def report(runs: Sequence[Measured], seeds: int, extra: Mapping[str, Setting]) -> tuple[str, bool]:
    """The table, and whether all bands are held; ``extra`` changes the scenario."""
    first = runs[0]
    profile = toml_text(calibrate([first.history], [first.shape.rate_mbit * 1e6]))
    compared = as_runs(runs)
    # the devices take no burst of more than a segment (gso_max_segs)
    extra = {"tcp.segmentation_offload": False, **extra}
    found = hadoop_real.compare(compared, profile, seeds, extra, calibrated=(compared[0].setting,))
    if len(runs) == 1:
        found = hadoop_real.compare(compared, profile, seeds, extra, calibrated=())
    held = all(value <= band for value, band in hadoop_real.verdicts(found).values())
    return hadoop_real.show(found), held
