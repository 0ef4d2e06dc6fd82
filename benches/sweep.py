"""Measures the overhead of a sweep beyond its runs, and the speed-up by a second process.

Run ``.venv/bin/python benches/sweep.py`` on a quiet machine. In each round, it prints the CPU time
of the runs of a loop in one process, which calls only the simulator, and of a sweep of the same
runs on two processes: user and system time of all processes, with start, imports, storage and
tables. This ratio hardly depends on other load. Then it prints the wall time of a sweep on one and
on two processes. All sweeps have a new store.
"""

from __future__ import annotations

import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import eastwest as ew
from eastwest import core, shipped
from eastwest.run import as_overrides, load_source

ROUNDS = 3


@dataclass(frozen=True)
class Load:
    """A scenario, and the number of seeds with which a sweep runs it."""

    scenario: str
    settings: dict[str, str]
    seeds: int


#: A thousand runs of about 0.1 s.
MANY = Load("first", {"workload.transfers.bytes": "30 MB"}, 1000)
FEW = Load("first", {"workload.transfers.bytes": "20 MB"}, 60)


def used_s() -> float:
    """Return the CPU time of this process and of its finished children in s."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)


def bare_s(load: Load, runs: int) -> float:
    """Return the CPU time of one run in a loop that calls only the simulator, in s."""
    source, settings = load_source(load.scenario), as_overrides(load.settings)
    began = used_s()
    for seed in range(1, runs + 1):
        core.run(source.text, str(source.base_dir), str(shipped.DATA), settings, seed)
    return (used_s() - began) / runs


@dataclass(frozen=True)
class Timed:
    """Wall time and CPU time of a sweep in s."""

    wall_s: float
    cpu_s: float


def timed(load: Load, jobs: int) -> Timed:
    """Run a sweep with an empty store and measure it."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        began, used = time.perf_counter(), used_s()
        ew.sweep(
            {"scenario": load.scenario, "seeds": load.seeds, "set": load.settings},
            out=place / "out",
            store=place / "store",
            jobs=jobs,
        )
        return Timed(time.perf_counter() - began, used_s() - used)


def main() -> None:
    """Print overhead per run and speed-up of each round."""
    for number in range(1, ROUNDS + 1):
        bare = bare_s(MANY, 100)
        swept = timed(MANY, 2).cpu_s / MANY.seeds
        print(
            f"round {number}: {1000 * bare:.1f} ms of CPU for a bare run, {1000 * swept:.1f} ms "
            f"for one of {MANY.seeds} runs of a sweep on two processes: {swept / bare - 1:+.1%}",
            flush=True,
        )
        one, two = timed(FEW, 1), timed(FEW, 2)
        print(
            f"round {number}: {FEW.seeds} runs: {one.wall_s:.2f} s on one process, "
            f"{two.wall_s:.2f} s on two, {one.wall_s / two.wall_s:.2f} times as fast",
            flush=True,
        )


if __name__ == "__main__":
    main()
