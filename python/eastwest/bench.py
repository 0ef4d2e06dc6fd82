"""Standard performance scenarios, each run in a new process with all default measurements on.

``packet_hops`` counts every transmission of a packet on a link. ``cpu_s`` is the CPU time of the
simulation: reading the scenario, building the fabric, running it and returning its tables. Starting
Python and writing the result folder are not part of it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from eastwest import shipped
from eastwest.partial import Partial


class Measurement(TypedDict):
    """CPU time, wall time, memory and packet-hops of one run of a scenario."""

    scenario: str
    threads: int
    packet_hops: int
    cpu_s: float
    wall_s: float
    hops_per_cpu_s: float
    peak_rss_mb: float
    digest: str
    notes: list[str]


class BenchError(Exception):
    """Error of a benchmark; ``code`` is the exit code for the command.

    The code is 2 for an unknown scenario or for an error of another program, 3 if digests differ,
    otherwise the exit code of the run.
    """

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def compare(name: str, settings: Sequence[str], threads: int, rounds: int = 3) -> list[Measurement]:
    """Return the runs of median wall time on one thread and on ``threads`` threads, in this order.

    The scenario is run ``rounds`` times on each number of threads, alternately, so that other load
    on the machine affects both alike. Raises ``BenchError`` if the scenario does not exist or a run
    fails, and with code 3 if the digests of the runs differ: results must not depend on threads.
    """
    runs = [[measure(name, settings, n) for n in (1, threads)] for _ in range(rounds)]
    digests = {run["digest"] for pair in runs for run in pair}
    if len(digests) > 1:
        raise BenchError(
            f"{name}: the result depends on the number of threads: its digests differ: "
            f"{', '.join(sorted(digests))}",
            3,
        )
    return [
        sorted(of, key=lambda run: run["wall_s"])[rounds // 2] for of in zip(*runs, strict=True)
    ]


def path_of(name: str) -> Path:
    """Return the file of a shipped scenario or of a path; raises ``BenchError`` without a file."""
    path = shipped.find(name) or Path(name)
    if not path.is_file():
        raise BenchError(
            f"no scenario {name!r}; shipped scenarios: {', '.join(shipped.names())}", 2
        )
    return path


def command(path: Path, out: Path, settings: Sequence[str], threads: int = 1) -> list[str]:
    """Return the command of one run with its result in the folder ``out``; it prints JSON."""
    found = [sys.executable, "-m", "eastwest", "run", str(path), "--json", "--out", str(out)]
    if threads > 1:
        found += ["--threads", str(threads)]
    for setting in settings:
        found += ["--set", setting]
    return found


def measure(name: str, settings: Sequence[str] = (), threads: int = 1) -> Measurement:
    """Run a shipped scenario or a scenario file and return its wall time, CPU time and memory.

    Raises ``BenchError`` if the scenario does not exist or its run fails.
    """
    path = path_of(name)
    with Partial.scratch() as scratch:
        wanted = command(path, scratch.path / "result", settings, threads)
        done = subprocess.run(wanted, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"the run of {name} failed:\n{done.stderr.strip()}", done.returncode)
    summary = json.loads(done.stdout)
    hops, cpu = int(summary["packet_hops"]), float(summary["cpu_s"])
    return {
        "scenario": path.stem,
        "threads": threads,
        "packet_hops": hops,
        "cpu_s": cpu,
        "wall_s": float(summary["wall_s"]),
        "hops_per_cpu_s": hops / cpu if cpu > 0 else 0.0,
        "peak_rss_mb": float(summary["peak_rss_mb"]),
        "digest": str(summary["digest"]),
        "notes": [str(note) for note in summary.get("notes", [])],
    }
