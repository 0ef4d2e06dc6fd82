"""Measures the overhead of a sweep beyond its runs, and the speed-up by a second process.

Run ``.venv/bin/python benches/sweep.py`` on a quiet machine. In each round, it prints the CPU time
of the runs of a loop that calls only the simulator, in two processes at the same time, before and
after a sweep, and of the sweep of such runs on two processes: user and system time of all
processes, with start, imports, storage and tables. Other load changes this ratio by several
percent. Then it prints the wall time of a sweep on one and on two processes. All sweeps have a new
store.
"""

from __future__ import annotations

import functools
import multiprocessing
import resource
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import eastwest as ew
from eastwest import core, shipped
from eastwest.run import as_overrides, load_source

ROUNDS = 3
#: Number of runs of a loop in each of two processes, before and after each sweep.
BARE_RUNS = 50


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


def loop_s(load: Load, runs: int) -> float:
    """Return the CPU time of one run in a loop that calls only the simulator, in s."""
    source, settings = load_source(load.scenario), as_overrides(load.settings)
    began = time.process_time()
    for seed in range(1, runs + 1):
        core.run(source.text, str(source.base_dir), str(shipped.DATA), settings, seed)
    return (time.process_time() - began) / runs


def bare_s(load: Load) -> float:
    """Return the mean of ``loop_s`` of two processes that run at the same time, in s.

    Like the processes of a sweep, they share caches and memory.
    """
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        return statistics.mean(pool.map(functools.partial(loop_s, load), [BARE_RUNS] * 2))


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
        before, swept, after = bare_s(MANY), timed(MANY, 2).cpu_s / MANY.seeds, bare_s(MANY)
        print(
            f"round {number}: {1000 * before:.1f} and {1000 * after:.1f} ms of CPU for a bare run, "
            f"{1000 * swept:.1f} ms for one of {MANY.seeds} runs of a sweep on two processes: "
            f"{2 * swept / (before + after) - 1:+.1%}",
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
