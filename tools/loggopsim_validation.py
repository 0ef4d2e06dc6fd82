"""Compares the times of graphs in Eastwest and in LogGOPSim with equal LogGP parameters.

``python tools/loggopsim_validation.py LOGGOPSIM TXT2BIN`` takes the paths of the two built programs
of https://github.com/spcl/LogGOPSim (its README.md says how to build them). Each program is written
as a GOAL schedule by ``trace export``, as text and binary; the binary form must equal that which
``txt2bin`` makes from the text. LogGOPSim runs it, Eastwest imports and runs it over a star that is
as near to LogGP as possible: raw frames of the smallest size, no framing, no jitter. ``--changed``
adds a column for a LogGOPSim that was changed as ``docs/validation/loggopsim.md`` describes;
``--write`` replaces the table of this page.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import eastwest as ew
from eastwest.files import write_whole
from eastwest.traces.mpi.goal_write import export
from eastwest.traces.mpi.take import import_mpi

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "validation" / "loggopsim.md"
#: Lines of the page between which this program writes.
BEGIN, END = "<!-- measured: start -->", "<!-- measured: end -->"
#: LogGP parameters: latency L in ns, values of the overhead o in ns, gap per byte G in ns; the gap
#: per message g is that of one byte, since Eastwest has no other gap between messages.
L_NS, OVERHEADS_NS, G_NS = 20_000, (500, 5_000), 1
#: Bytes of an Ethernet frame, the smallest, and of the envelope of a message.
FRAME, ENVELOPE = 46, 1
#: Largest difference that counts as agreement.
GOAL = 0.01
_FINISHED = re.compile(r"Maximum finishing time at host \d+: (\d+)|^Host \d+: (\d+)$", re.MULTILINE)
SCENARIO = """schema = 1
name = "graph"
[fabric]
kind = "star"
hosts = {ranks}
host_rate = "{rate} Mbit/s"
host_delay = "{delay} ps"
framing = 0
mtu = 68
processing_jitter = "0 s"
[fabric.pfc]
buffer = "1 GB"
[[class]]
name = "graph"
priority = 3
[[workload]]
kind = "mpi"
name = "graph"
trace = "graph"
transport = "ethernet"
frame = {frame}
envelope = {envelope}
send_overhead = "{overhead} ns"
receive_overhead = "{overhead} ns"
eager_limit = "{eager} B"
"""

#: Lines of each rank of a program, without the number of the rank.
Program = list[list[str]]


@dataclass(frozen=True)
class Case:
    """A program of the set: name, description, ranks, and largest eager message in bytes."""

    name: str
    what: str
    program: Program
    eager: int = 10**9


def ring(ranks: int, rounds: int, size: int) -> Program:
    """Return a message that goes round a ring; each rank computes 10 µs before it sends on."""
    program: Program = [[] for _ in range(ranks)]
    for at in range(ranks * rounds):
        one, other = at % ranks, (at + 1) % ranks
        program[one] += ["compute 10000", f"send {other} 0 {size} 6"]
        program[other].append(f"recv {one} 0 {size} 6")
    return program


def shifts(ranks: int, rounds: int, size: int) -> Program:
    """Return rounds in which each rank sends to the next one and receives from the one before."""
    return [
        [
            line
            for _ in range(rounds)
            for line in (
                f"irecv {(rank - 1) % ranks} 0 {size} 6",
                f"send {(rank + 1) % ranks} 0 {size} 6",
                "waitall",
                "compute 20000",
            )
        ]
        for rank in range(ranks)
    ]


def calls(ranks: int, lines: list[str]) -> Program:
    """Return a program in which all ranks make the same collective calls."""
    return [lines for _ in range(ranks)]


def conjugate_gradient(ranks: int, iterations: int, rows: int) -> Program:
    """Return the messages of NAS CG: a matrix of ``rows`` rows on a grid of ranks.

    In each iteration a rank exchanges parts of a vector along its row of the grid, exchanges a part
    with the rank mirrored at the diagonal, and sums two numbers along its row.
    """
    high = 1 << (ranks.bit_length() - 1) // 2
    wide = ranks // high
    part = 8 * rows // wide
    program: Program = []
    for rank in range(ranks):
        row, column = divmod(rank, wide)
        mirrored = (
            (column // (wide // high)) * wide + row * (wide // high) + column % (wide // high)
        )
        partners = [row * wide + (column ^ bit) for bit in _powers(wide)]
        lines: list[str] = []

        def exchange(other: int, size: int, into: list[str] = lines) -> None:
            into += [f"irecv {other} 1 {size} 6", f"send {other} 1 {size} 6", "waitall"]

        for _ in range(iterations):
            lines.append(f"compute {rows * 220 // ranks}")
            for other in partners:
                exchange(other, part)
            if mirrored != rank:
                exchange(mirrored, part)
            for _ in range(2):
                lines.append(f"compute {rows * 4 // wide}")
                for other in partners:
                    exchange(other, 8)
        program.append(lines)
    return program


def _powers(below: int) -> list[int]:
    return [1 << bit for bit in range(below.bit_length() - 1)]


def drawn(ranks: int, nodes: int, largest: int, seed: int, chain: bool) -> Program:
    """Return graphs with random computing, messages and dependencies.

    A node waits for up to three of the nodes shortly before it on its rank; with ``chain`` also for
    the last one that is no receive, so that the processor never has a choice. Receives wait for
    nothing, so that all are posted when messages arrive.
    """
    chance = random.Random(seed)
    program: Program = [["graph"] for _ in range(ranks)]
    last: list[list[int]] = [[] for _ in range(ranks)]

    def add(rank: int, line: str) -> None:
        earlier = range(max(0, len(program[rank]) - 9), len(program[rank]) - 1)
        chosen = chance.sample(earlier, min(len(earlier), chance.randrange(1, 4)))
        needs = sorted({*chosen, *last[rank]} if chain else set(chosen))
        last[rank] = [len(program[rank]) - 1]
        program[rank].append(line + (f" after {' '.join(map(str, needs))}" if needs else ""))

    for tag in range(nodes // 2):
        add(chance.randrange(ranks), f"compute {chance.randrange(1000, 40000)}")
        one, other = chance.sample(range(ranks), 2)
        size = round(largest ** chance.random())
        add(one, f"send {other} {tag} {size} 6")
        program[other].append(f"recv {one} {tag} {size} 6")
    return program


def cases() -> list[Case]:
    """Return all programs of the set."""
    small, long = 8, 60_000
    found = [
        Case("ring-16", "16 ranks, 4 rounds, 8 B", ring(16, 4, small)),
        Case("ring-16-long", "16 ranks, 4 rounds, 60,000 B", ring(16, 4, long)),
        Case("shift-16", "to the next of 16 ranks, 20 rounds, 8 B", shifts(16, 20, small)),
        Case("shift-16-long", "to the next of 16 ranks, 20 rounds, 60,000 B", shifts(16, 20, long)),
        Case("bcast-64", "binomial tree, 64 ranks, 8 B", calls(64, [f"bcast {small} 0 6"])),
        Case(
            "bcast-64-long", "binomial tree, 64 ranks, 60,000 B", calls(64, [f"bcast {long} 0 6"])
        ),
        Case("reduce-64", "binomial tree, 64 ranks, 8 B", calls(64, [f"reduce {small} 0 0 6"])),
        Case(
            "reduce-64-long",
            "binomial tree, 64 ranks, 60,000 B",
            calls(64, [f"reduce {long} 0 0 6"]),
        ),
        Case(
            "allreduce-64",
            "recursive doubling, 64 ranks, 10 calls, 8 B",
            calls(64, [f"allreduce {small} 2000 6"] * 10),
        ),
    ]
    for ranks in (4, 16, 64):
        what = f"messages of CG, {ranks} ranks, 3 iterations, 14,000 rows"
        found.append(Case(f"cg-{ranks}", what, conjugate_gradient(ranks, 3, 14_000)))
    for ranks in (4, 16, 64):
        what = f"messages of CG, {ranks} ranks, 3 iterations, 1,400 rows"
        found.append(Case(f"cg-{ranks}-small", what, conjugate_gradient(ranks, 3, 1_400)))
    for seed, largest in ((1, 100), (2, 100), (3, 60_000), (4, 60_000)):
        what = f"16 ranks, 600 nodes in chains, messages of 1 to {largest:,} B"
        found.append(Case(f"random-{seed}", what, drawn(16, 600, largest, seed, chain=True)))
    for seed in (5, 6):
        what = "16 ranks, 600 nodes, messages of 1 to 100 B"
        found.append(Case(f"choices-{seed}", what, drawn(16, 600, 100, seed, chain=False)))
    for case in [each for each in found if each.name in {"ring-16-long", "cg-16"}]:
        what = f"{case.what}; rendezvous above 1,000 B"
        found.append(Case(f"{case.name}-rendezvous", what, case.program, 1000))
    return found


@dataclass(frozen=True)
class Row:
    """Times of a program in ns, by overhead: in Eastwest, in LogGOPSim and in the changed one."""

    case: Case
    eastwest: dict[int, float]
    loggopsim: dict[int, int]
    changed: dict[int, int]

    def errors(self, of: dict[int, int]) -> list[float]:
        """Return the relative differences of Eastwest's times from those of a LogGOPSim."""
        return [self.eastwest[overhead] / time - 1 for overhead, time in of.items()]


def measure(case: Case, folder: Path, txt2bin: Path, programs: list[Path]) -> Row:
    """Run a program in Eastwest and in one or two programs LogGOPSim with each overhead."""
    home = folder / case.name
    (home / "program").mkdir(parents=True)
    for rank, lines in enumerate(case.program):
        text = "".join(f"{rank} {line}\n" for line in lines)
        (home / "program" / f"rank-{rank:05}.txt").write_text(text, "utf-8")
    export(home / "program", home / "graph.goal", "goal")
    export(home / "program", home / "graph.bin", "goal-binary")
    converted = home / "converted.bin"
    _call([txt2bin, "-i", home / "graph.goal", "-o", converted])
    if converted.read_bytes() != (home / "graph.bin").read_bytes():
        raise SystemExit(f"{case.name}: the binary form differs from that of txt2bin")
    import_mpi([home / "graph.goal"], home / "graph")
    times = [
        {overhead: _time(home / "graph.bin", each, case, overhead) for overhead in OVERHEADS_NS}
        for each in programs
    ]
    own = {overhead: _own_time(home, case, overhead) for overhead in OVERHEADS_NS}
    return Row(case, own, times[0], times[1] if len(times) > 1 else {})


def _time(schedule: Path, program: Path, case: Case, overhead: int) -> int:
    """Return the time in ns at which the last rank of a schedule has finished in LogGOPSim."""
    values = {"L": L_NS, "o": overhead, "g": G_NS, "G": G_NS, "O": 0, "S": case.eager}
    options = [f"--LogGOPS_{name}={value}" for name, value in values.items()]
    said = _call([program, "-f", schedule, *options])
    times = [int(one or other) for one, other in _FINISHED.findall(said)]
    if not times:
        raise SystemExit(f"{case.name}: LogGOPSim did not finish: {said[-300:]}")
    return max(times)


def _own_time(home: Path, case: Case, overhead: int) -> float:
    """Return the time in ns at which the last rank of a program has finished in Eastwest."""
    # A message arrives L - G after its departure, when its bytes are subtracted: its envelope, and
    # one frame that the switch stores before it forwards it, are a part of L.
    delay = (L_NS - (ENVELOPE + FRAME + 1) * G_NS) * 1000 // 2
    text = SCENARIO.format(
        ranks=len(case.program), rate=8000 // G_NS, delay=delay, frame=FRAME, envelope=ENVELOPE,
        overhead=overhead, eager=case.eager,
    )  # fmt: skip
    (home / "graph.toml").write_text(text, "utf-8")
    run = ew.run(home / "graph.toml", out=home / f"result-{overhead}")
    return float(run.summary["mpi"]["runtime_s"]) * 1e9


def _call(command: list[str | Path]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed: {done.stderr[-300:] or done.stdout[-300:]}")
    return done.stdout


def table(rows: list[Row]) -> str:
    """Return the table of the page."""
    both = " and ".join(f"{overhead / 1000:g}" for overhead in OVERHEADS_NS)
    lines = [
        f"| program | what | LogGOPSim, o = {both} (µs) | Eastwest (µs) | difference "
        "| from the changed LogGOPSim |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        times = (
            ", ".join(f"{each / 1000:,.1f}" for each in of.values())
            for of in (row.loggopsim, row.eastwest)
        )
        errors = (
            ", ".join(f"{error:+.2%}" for error in row.errors(of))
            for of in (row.loggopsim, row.changed)
        )
        lines.append(f"| {row.case.name} | {row.case.what} | {' | '.join([*times, *errors])} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Compare all programs, or those that the command line names; print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("loggopsim", type=Path, help="path of the built program LogGOPSim")
    parser.add_argument("txt2bin", type=Path, help="path of the built program txt2bin")
    parser.add_argument("only", nargs="*", help="names of programs; all without")
    parser.add_argument("--changed", type=Path, help="path of a changed LogGOPSim")
    parser.add_argument("--write", action="store_true", help=f"write the table of {PAGE.name}")
    options = parser.parse_args()
    programs = [each.resolve() for each in (options.loggopsim, options.changed) if each]
    rows = []
    with TemporaryDirectory() as folder:
        for case in cases():
            if options.only and case.name not in options.only:
                continue
            row = measure(case, Path(folder), options.txt2bin.resolve(), programs)
            rows.append(row)
            errors = [*row.errors(row.loggopsim), *row.errors(row.changed)]
            print(f"{case.name:24} {' '.join(f'{error:+8.2%}' for error in errors)}", flush=True)
    if options.write:
        head, rest = PAGE.read_text("utf-8").split(BEGIN)
        tail = rest.split(END)[1]
        write_whole(PAGE, f"{head}{BEGIN}\n\n{table(rows)}\n{END}{tail}".encode())
    agreed = sum(all(abs(e) <= GOAL for e in row.errors(row.loggopsim)) for row in rows)
    print(f"{agreed} of {len(rows)} programs agree within {GOAL:.0%} with both overheads")
    return 0


if __name__ == "__main__":
    sys.exit(main())
