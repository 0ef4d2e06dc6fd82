"""Builds the two ns-3 programs beside this file, runs them, and writes the tables of their results.

    apt-get install libns3-dev ns3 g++
    python papers/kernel_tcp/ns3/run.py

Written for ns-3.37 of Debian 12; takes about ten minutes. ``flows.csv``, ``windows.csv.gz`` and the
two ``reads*.csv`` have the columns of the tables in ../measured.
"""

from __future__ import annotations

import gzip
import itertools
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from eastwest.claims.measures.of_study import module_of

HERE = Path(__file__).parent
_MEASURES = module_of(HERE.parent)
STEADY_S, Windows = _MEASURES.STEADY_S, _MEASURES.Windows
_LIBRARIES = (
    "core", "network", "internet", "point-to-point", "applications", "traffic-control", "stats",
)  # fmt: skip
_RUNS = 5
_FLOWS = {
    "reno_droptail50": ("TcpLinuxReno", "50p", False),
    "cubic_droptail50": ("TcpCubic", "50p", False),
    "reno_codel": ("TcpLinuxReno", "500p", True),
    "cubic_codel": ("TcpCubic", "500p", True),
    "bbr_droptail50": ("TcpBbr", "50p", False),
    "bbr_droptail500": ("TcpBbr", "500p", False),
}
#: Number of senders → rounds of a run, as in the measurement.
_SENDERS = {1: 20, 2: 20, 4: 20, 8: 20, 16: 10, 32: 10}


def build(name: str, folder: Path) -> Path:
    """Compile a C++ program of this folder; return the path of the executable."""
    program = folder / name
    libraries = [f"-lns3-{library}" for library in _LIBRARIES]
    source = str(HERE / f"{name}.cc")
    command = ["g++", "-std=c++17", "-O2", "-Wall", source, "-o", str(program), *libraries]
    subprocess.run(command, check=True)
    return program


def run(program: Path, **options: object) -> str:
    """Run a program with its options; return its output."""
    given = [f"--{name}={int(v) if isinstance(v, bool) else v}" for name, v in options.items()]
    done = subprocess.run([program, *given], check=True, capture_output=True, text=True)
    return done.stdout


def flow(program: Path, case: str, number: int) -> tuple[Windows, dict[str, float]]:
    """Run one flow; return its windows, and its numbers by name."""
    control, queue, codel = _FLOWS[case]
    options = {"control": f"ns3::{control}", "queue": queue, "codel": codel, "run": number}
    *rows, last = run(program, **options).splitlines()
    table = [[float(cell) for cell in row.split(",")] for row in rows]
    delivered, lasted, early, drops = (float(cell) for cell in last.removeprefix("# ").split(","))
    # ns-3's threshold is the largest number before the first loss; here this is infinity.
    thresholds = [math.inf if row[2] == 0 or row[2] > 1e6 else row[2] for row in table]
    windows = Windows(
        [row[0] for row in table],
        [row[1] for row in table],
        thresholds,
        [row[3] == 1 for row in table],
    )
    more = {
        "median-round-trip-ms": statistics.median(row[4] for row in table if row[0] > STEADY_S),
        "goodput-mbps": delivered * 8e-6 / lasted,
        "drops": drops,
        "drops-of-first-second": early,
    }
    return windows, {**windows.numbers(), **more}


def over_runs(values: Sequence[float]) -> Iterable[float]:
    """Return the mean, standard deviation, least and greatest value."""
    return (statistics.mean(values), statistics.stdev(values), min(values), max(values))


def write_flows(program: Path) -> None:
    """Run all single flows and write their tables."""
    numbers = ["case,number,mean,sd,least,greatest,runs"]
    series = ["case,run,time_s,window"]
    for case in _FLOWS:
        found = [flow(program, case, number) for number in range(1, _RUNS + 1)]
        for name in found[0][1]:
            values = [run[name] for _, run in found if name in run]
            if len(values) == _RUNS:
                shown = ",".join(f"{value:.5g}" for value in over_runs(values))
                numbers.append(f"{case},{name},{shown},{_RUNS}")
        series += [f"{case},1,{t:.3f},{w:.0f}" for t, w in found[0][0].thinned()]
    (HERE / "flows.csv").write_text("\n".join(numbers) + "\n")
    text = "\n".join(series) + "\n"
    (HERE / "windows.csv.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def write_reads(program: Path, ack_every: int, name: str) -> None:
    """Run all synchronized reads and write their table."""
    lines = ["case,senders,rounds,repeats,sd,least,greatest,goodput_mbps,timeouts,drops"]
    for sack, min_rto in itertools.product((False, True), (1, 200)):
        case = f"{'modern' if sack else 'classic'}_{min_rto}ms"
        for senders, rounds in _SENDERS.items():
            options = {"senders": senders, "rounds": rounds, "sack": sack, "minrto": min_rto}
            told = [
                run(program, **options, ackevery=ack_every, run=number).strip().split(",")
                for number in range(1, _RUNS + 1)
            ]
            goodput = [float(cells[0]) / 1e6 for cells in told]
            mean, *spread = (f"{value:.2f}" for value in over_runs(goodput))
            counts = [f"{statistics.mean(int(cells[n]) for cells in told):g}" for n in (1, 2)]
            around = (*spread, mean, *counts)
            lines.append(f"{case},{senders},{rounds},{_RUNS},{','.join(around)}")
            print(lines[-1], file=sys.stderr)
    (HERE / name).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        flows, reads = (build(name, Path(temporary)) for name in ("flow", "reads"))
        write_flows(flows)
        write_reads(reads, 2, "reads.csv")
        write_reads(reads, 1, "reads_every_packet.csv")
