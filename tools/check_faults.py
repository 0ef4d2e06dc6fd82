"""Checks that commands disturbed from outside leave no incomplete file under a final name.

``python tools/check_faults.py calls`` runs eight small commands again and again. Each time, one
call fails: a write, an fsync, a rename, the creation of a file or folder, or a large memory
allocation. ``python tools/check_faults.py kills`` kills the commands at seeded random moments.
After each fault, files under final names must be complete, no process may be left, and a second run
of the command must succeed and leave exactly the result of an undisturbed one. ``--write`` puts the
table into docs/validation/faults.md. The exit code is 1 if data was lost. Needs Linux with glibc,
and ``cc``.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import queue
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from faults.cases import BY_NAME, CASES, ROOT, write_inputs

PAGE = ROOT / "docs" / "validation" / "faults.md"
SHIM = Path(__file__).parent / "faults" / "shim.c"
#: Kinds of calls that can fail; ``faults/shim.c`` describes them.
KINDS = ("write", "sync", "rename", "make", "alloc")
#: Smaller memory allocations are not counted: they are too many, and most are Python's own.
LEAST_BYTES = 256 * 1024
#: For each kind of call, the faults to make: the error of the call, and whether all later calls
#: fail too.
_HOW = {
    "write": ((errno.EIO, 0), (errno.ENOSPC, 1), ("short", 0)),
    "sync": ((errno.EIO, 0), (errno.ENOSPC, 1)),
    "rename": ((errno.EIO, 0), (errno.ENOSPC, 1)),
    "make": ((errno.EIO, 0), (errno.ENOSPC, 1)),
    "alloc": ((errno.ENOMEM, 0),),
}
#: Number of kills of each command in a check of 1,000 kills.
_SHARES = {
    "run": 300,
    "run-replace": 250,
    "sweep": 60,
    "sweep-resume": 60,
    "claims": 30,
    "report": 80,
    "trace-import": 110,
    "observe-import": 110,
}
#: Number of undisturbed runs that measure a command's duration; kills between two checks of the
#: time limit.
_TIMED = 3
_TURN = 24
Request = dict[str, Any]


class Bench:
    """Processes that run and disturb commands, each in a folder of its own."""

    def __init__(self, folder: Path, jobs: int) -> None:
        shim = folder / "shim.so"
        flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fno-builtin"]
        subprocess.run(["cc", *flags, "-o", str(shim), str(SHIM)], check=True)
        write_inputs(folder / "inputs")
        path = os.pathsep.join([str(ROOT / "python"), str(ROOT / "tools")])
        env = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
        self.processes = []
        for number in range(jobs):
            place = folder / str(number)
            place.mkdir()
            words = ["-m", "faults.disturb", str(place), str(folder / "inputs"), str(shim)]
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, *words],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env={**env, "LD_PRELOAD": str(shim)},
                    text=True,
                )
            )

    def run(self, requests: Sequence[Request]) -> list[Request]:
        """Return the answers to the requests, in the order of the requests."""
        waiting: queue.SimpleQueue[tuple[int, Request]] = queue.SimpleQueue()
        for pair in enumerate(requests):
            waiting.put(pair)
        answers: dict[int, Request] = {}
        threads = [
            threading.Thread(target=_serve, args=(process, waiting, answers))
            for process in self.processes
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if len(answers) != len(requests):
            raise SystemExit("a process that disturbs commands ended")
        return [answers[number] for number in range(len(requests))]

    def close(self) -> None:
        """End the processes that disturb commands."""
        for process in self.processes:
            process.communicate()


def _serve(
    process: subprocess.Popen[str],
    waiting: queue.SimpleQueue[tuple[int, Request]],
    answers: dict[int, Request],
) -> None:
    assert process.stdin is not None and process.stdout is not None
    while True:
        try:
            number, request = waiting.get_nowait()
        except queue.Empty:
            return
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            return
        answers[number] = json.loads(line)
        for loss in answers[number]["losses"]:
            said = answers[number]["said"].strip()[-600:]
            sys.stderr.write(f"LOSS {json.dumps(request)}: {loss}\n  {said}\n")


def sample(count: int, most: int) -> list[int]:
    """Return numbers from 1 to ``count``: all of them, or ``most`` at equal distances."""
    if count <= most:
        return list(range(1, count + 1))
    return sorted({1 + round(i * (count - 1) / (most - 1)) for i in range(most)})


def check_calls(bench: Bench, names: Sequence[str], kinds: Sequence[str], most: int) -> list[Any]:
    """Count the calls of each kind, let them fail one after the other, and return the results."""
    base = {"least": LEAST_BYTES}
    asked = [
        {"case": name, "kind": kind, "at": 0, "how": "", **base} for name in names for kind in kinds
    ]
    counted = bench.run(asked)
    requests = []
    for each in counted:
        sys.stderr.write(f"{each['case']}: {each['calls']} calls ({each['kind']})\n")
        for how, stays in _HOW[each["kind"]]:
            # Beyond the number of calls no fault is made, and the command succeeds.
            numbers = [*sample(each["calls"], most), each["calls"] + 1000]
            shared = {"case": each["case"], "kind": each["kind"], "how": how, "stays": stays}
            requests += [{**shared, "at": number, **base} for number in numbers]
    return [counted, bench.run(requests)]


def check_kills(
    bench: Bench, names: Sequence[str], kills: int, seed: int, minutes: float
) -> list[Request]:
    """Measure each command, kill it at random moments up to ``kills`` times; return the results.

    The kills alternate between commands, so that a check that stops early, after ``minutes``, has
    kills of all of them.
    """
    moments = random.Random(seed)
    until = time.monotonic() + 60 * minutes
    timed = bench.run([{"case": name} for name in names for _ in range(_TIMED)])
    longest = {
        name: 1.05 * statistics.median(one["wall_s"] for one in timed if one["case"] == name)
        for name in names
    }
    whole = sum(_SHARES[name] for name in names)
    wanted = {name: round(kills * _SHARES[name] / whole) for name in names}
    killed = dict.fromkeys(names, 0)
    done: list[Request] = []
    while killed != wanted and time.monotonic() < until:
        left = [name for name in names for _ in range(wanted[name] - killed[name])]
        turn = moments.sample(left, min(len(left), _TURN))
        answers = bench.run(
            [{"case": name, "kill_s": moments.uniform(0, longest[name])} for name in turn]
        )
        done += answers  # Commands that ended before the kill are counted separately.
        for each in answers:
            killed[each["case"]] += each["killed"]
        sys.stderr.write(f"{sum(killed.values())} kills\n")
    return done


def table_of_calls(counted: list[Request], done: list[Request]) -> Iterator[str]:
    """Yield a Markdown table: how many calls of each kind failed on purpose, per command."""
    yield "| command | call | calls | made to fail | whole result | exit 2 | aborted | losses |"
    yield "|---|---|---|---|---|---|---|---|"
    groups = defaultdict(list)
    for each in done:
        groups[each["case"], each["kind"]].append(each)
    for each in counted:
        group = [one for one in groups[each["case"], each["kind"]] if one["faults"]]
        codes = [one["code"] for one in group]
        cells = [len(group), codes.count(0), codes.count(2), sum(code < 0 for code in codes)]
        cells.append(sum(bool(one["losses"]) for one in group))
        shown = " | ".join(map(str, cells))
        yield f"| {each['case']} | {each['kind']} | {each['calls']} | {shown} |"


def table_of_kills(done: list[Request]) -> Iterator[str]:
    """Yield a Markdown table: kills, left-over files and losses by command."""
    yield "| command | kills | ended before the kill | kills with left-overs | losses |"
    yield "|---|---|---|---|---|"
    names = dict.fromkeys(each["case"] for each in done)
    for name in [*names, "all"]:
        group = [each for each in done if name in {each["case"], "all"}]
        killed = [each for each in group if each["killed"]]
        left = sum(each["left"] > 0 for each in killed)
        losses = sum(bool(each["losses"]) for each in group)
        yield f"| {name} | {len(killed)} | {len(group) - len(killed)} | {left} | {losses} |"


def put(mark: str, lines: Sequence[str]) -> None:
    """Replace the part of the page docs/validation/faults.md between the marks with this name."""
    text = PAGE.read_text(encoding="utf-8")
    begin, end = f"<!-- {mark} by tools/check_faults.py -->", f"<!-- end of {mark} -->"
    head, _, rest = text.partition(begin)
    if not rest:
        raise SystemExit(f"{PAGE} has no line {begin}")
    tail = rest.partition(end)[2]
    PAGE.write_text(head + begin + "\n" + "\n".join(lines) + "\n" + end + tail, encoding="utf-8")


def main() -> None:
    """Run the check that the arguments name, print the table, and exit with 1 if data was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["calls", "kills"])
    parser.add_argument("--only", action="append", choices=list(BY_NAME), help="some commands")
    parser.add_argument("--kind", action="append", choices=KINDS, help="some kinds of calls")
    parser.add_argument("--most", type=int, default=60, help="most calls of a kind and command")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=120, help="kills: time limit in minutes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    given = parser.parse_args()
    names = given.only or [case.name for case in CASES]
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="check-faults-") as folder:
        bench = Bench(Path(folder), given.jobs)
        if given.what == "calls":
            counted, done = check_calls(bench, names, given.kind or KINDS, given.most)
            lines = list(table_of_calls(counted, done))
        else:
            done = check_kills(bench, names, given.kills, given.seed, given.minutes)
            lines = list(table_of_kills(done))
        bench.close()
    minutes = (time.monotonic() - began) / 60
    losses = sum(bool(each["losses"]) for each in done)
    told = f"{datetime.now(UTC):%Y-%m-%d}, `python tools/check_faults.py {' '.join(sys.argv[1:])}`"
    lines = [f"{told}, {minutes:.0f} minutes: {len(done)} trials, {losses} losses.", "", *lines]
    print("\n".join(lines))
    if given.write:
        put(given.what, lines)
    sys.exit(1 if losses else 0)


if __name__ == "__main__":
    main()
