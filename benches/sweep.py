"""Measures the overhead of a sweep beyond its runs, and the speed-up by a second process.

Run ``.venv/bin/python benches/sweep.py`` on a quiet machine. It runs sweeps of one scenario with
many seeds, on one and on two processes in turns, each with a new store. The first line of each
round is for runs of a few milliseconds (overhead), the second for runs of about a tenth of a second
(speed-up).
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import eastwest as ew

ROUNDS = 3


@dataclass(frozen=True)
class Load:
    """A scenario, and the number of seeds with which a sweep runs it."""

    scenario: str
    settings: dict[str, str]
    seeds: int


SHORT = Load("first", {}, 200)
LONG = Load("first", {"workload.transfers.bytes": "20 MB"}, 60)


@dataclass(frozen=True)
class Timed:
    """Duration of a sweep, and the sum of the durations of its runs, in seconds."""

    wall_s: float
    runs_s: float


def timed(load: Load, jobs: int) -> Timed:
    """Run a sweep with an empty store and measure it."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        began = time.perf_counter()
        found = ew.sweep(
            {"scenario": load.scenario, "seeds": load.seeds, "set": load.settings},
            out=place / "out",
            store=place / "store",
            jobs=jobs,
        )
        return Timed(time.perf_counter() - began, float(found.costs["wall_s"].sum()))


def main() -> None:
    """Print overhead per run and speed-up of each round."""
    for number in range(1, ROUNDS + 1):
        short = timed(SHORT, 1)
        beyond_ms = (short.wall_s - short.runs_s) / SHORT.seeds * 1000
        print(f"round {number}: {beyond_ms:.1f} ms beyond each of {SHORT.seeds} short runs")
        one, two = timed(LONG, 1), timed(LONG, 2)
        print(
            f"round {number}: {LONG.seeds} runs of {one.runs_s / LONG.seeds * 1000:.0f} ms: "
            f"{one.wall_s:.2f} s on one process, {two.wall_s:.2f} s on two, "
            f"{one.wall_s / two.wall_s:.2f} times as fast"
        )


if __name__ == "__main__":
    main()
