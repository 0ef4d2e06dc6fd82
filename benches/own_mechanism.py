"""Measures the CPU time of builds of a mechanism crate, and the speed of the built code.

    python benches/own_mechanism.py [--with-release] [--runs N] [--out FILE.md]

Each row is one build of the template of ``eastwest new`` (after a type error, an edit, …), in a
process of its own, with the cache of compiled code in a temporary folder. Its CPU time includes
cargo and the compiler. With ``--with-release`` the builds with full optimisation are measured too,
and runs of S1 with both builds.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import eastwest as ew
from eastwest import core
from eastwest.files import write_whole
from eastwest.mechanisms import crate, new

ROOT = Path(__file__).resolve().parents[1]
#: Allowed CPU time in s of a first build, of a rebuild, and of a build that finds a type error.
FIRST, LATER, ERROR = 120, 15, 10
_BUILD = """
import sys
from pathlib import Path
from eastwest.errors import MechanismError
from eastwest.mechanisms import crate
try:
    crate.build(Path(sys.argv[1]), release=sys.argv[2] == "release")
except MechanismError as error:
    sys.exit(10 if "E0308" in error.trace else f"{error}\\n{error.trace}")
"""
_CHECK = "type error, dependencies not compiled (`cargo check`)"
_REST = "build after this check"
_S1 = {"fabric.queue.limit": "200 packets", "fabric.queue.min": 5, "fabric.queue.max": 15}


@dataclass
class Table:
    """Rows of the table: what was built, CPU and wall time in s, and the allowed CPU time in s."""

    rows: list[tuple[str, float, float, int | None]] = field(default_factory=list)

    def measure(self, what: str, mark: int | None, build: Callable[[], None]) -> None:
        """Add a row with the CPU time of the processes that ``build`` starts, and its wall time.

        ``mark`` is the allowed CPU time in s.
        """
        began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        build()
        wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.rows.append((what, cpu, wall, mark))
        print(f"{what}: {cpu:.1f} CPU s, {wall:.1f} s", file=sys.stderr, flush=True)

    def text(self) -> str:
        """Return the table in Markdown."""
        lines = ["| build | CPU s | wall s | mark, CPU s |", "|---|---|---|---|"]
        for what, cpu, wall, mark in self.rows:
            judged = "" if mark is None else f"{mark}: {'reached' if cpu <= mark else 'missed'}"
            lines.append(f"| {what} | {cpu:.1f} | {wall:.1f} | {judged} |")
        return "\n".join(lines)


def build(folder: Path, profile: str = "dev", *, fails: bool = False) -> None:
    """Build a crate in a new process.

    With ``fails``, expect the type error that ``spoil`` makes.
    """
    ran = subprocess.run([sys.executable, "-c", _BUILD, str(folder), profile], check=False)
    if ran.returncode != (10 if fails else 0):
        sys.exit(f"{folder}: exit code {ran.returncode}")


def edit(folder: Path, old: str, changed: str) -> None:
    """Replace a piece of text in the source of a crate."""
    file = folder / "src" / "lib.rs"
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, old
    file.write_text(text.replace(old, changed), encoding="utf-8")


def cpu_of(task: Callable[[], object]) -> float:
    """Return the CPU time of a task in this process, in s."""
    before = time.process_time()
    task()
    return time.process_time() - before


def loop() -> None:
    """Count to ten million; the CPU time shows how much other processes slow this machine."""
    for _ in range(10_000_000):
        pass


def speeds(folder: Path, runs: int) -> str:
    """Return a table with the CPU time of S1 with both builds of the crate, run in turns."""
    times: dict[str, list[float]] = {"development": [], "release": []}
    digests = set()
    loaded = {
        profile: crate.load(crate.build(folder, release=profile == "release")) for profile in times
    }
    settings: dict[str, object] = {**_S1, "fabric.queue.kind": folder.name}
    for _ in range(runs):
        for profile, module in loaded.items():
            with core.using(core.Extras(module)):
                begun = time.process_time()
                digests.add(ew.run("s1", set=settings).digest)
                times[profile].append(time.process_time() - begun)
    assert len(digests) == 1
    lines = ["| profile | CPU s of S1, median | least |", "|---|---|---|"]
    for profile, taken in times.items():
        lines.append(f"| {profile} | {statistics.median(taken):.2f} | {min(taken):.2f} |")
    ratio = statistics.median(times["development"]) / statistics.median(times["release"])
    least = min(times["development"]) / min(times["release"])
    lines.append(
        f"\nOne digest for both. A run in the development profile takes {ratio:.2f} times the CPU "
        f"time of the release profile by medians, {least:.2f} by the least times."
    )
    return "\n".join(lines)


def measured(*, release: bool, runs: int) -> str:
    """Build in temporary caches, and return the page of results as Markdown."""
    table = Table()
    idle = cpu_of(loop)
    first = new.write("first-queue", new.Kind.queue).folder.resolve()
    second = new.write("second-queue", new.Kind.queue).folder.resolve()
    right, wrong = "let fits = arrival", "let fits: u32 = arrival"
    os.environ["XDG_CACHE_HOME"] = str(Path("cache").resolve())
    edit(first, right, wrong)
    table.measure(_CHECK, None, lambda: build(first, fails=True))
    edit(first, wrong, right)
    table.measure(_REST, None, lambda: build(first))
    both = [row for row in table.rows if row[0] in {_CHECK, _REST}]
    table.rows.append(
        ("both: a first build", sum(r[1] for r in both), sum(r[2] for r in both), FIRST)
    )
    edit(first, "waiting >= max", "waiting >= max + 1.0")
    table.measure("build after an edit", LATER, lambda: build(first))
    edit(first, right, wrong)
    table.measure("type error, dependencies compiled", ERROR, lambda: build(first, fails=True))
    edit(first, wrong, right)
    build(first)
    table.measure("nothing changed", LATER, lambda: build(first))
    table.measure("another crate", LATER, lambda: build(second))
    size = sum(p.stat().st_size for p in Path("cache").rglob("*") if p.is_file())
    pages = []
    if release:
        table.measure("first build with --with-release", None, lambda: build(first, "release"))
        edit(first, "max + 1.0", "max + 0.0")
        table.measure(
            "build after an edit with --with-release", None, lambda: build(first, "release")
        )
        pages = [speeds(first, runs)]
    busy = max(idle, cpu_of(loop))
    about = (
        f"Eastwest {core.version()}, {date.today().isoformat()}, {platform.machine()}, "
        f"{os.cpu_count()} cores, load {os.getloadavg()[2]:.1f} over 15 minutes; a loop to ten "
        f"million in Python took {idle:.2f} to {busy:.2f} CPU s. Compiled code of the development "
        f"profile: {size / 1e6:.0f} MB."
    )
    command = f"`python benches/own_mechanism.py{' --with-release' if release else ''}`"
    title = "# Builds of a mechanism crate"
    return "\n\n".join([title, f"{command}. {about}", table.text(), *pages]) + "\n"


def main() -> None:
    """Measure, print the page, and write it to a file if the command line names one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--with-release", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    page = arguments.out.resolve() if arguments.out else None
    os.environ.pop("CARGO_TARGET_DIR", None)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        text = measured(release=arguments.with_release, runs=arguments.runs)
        os.chdir(ROOT)
    print(text)
    if page is not None:
        write_whole(page, text.encode())


if __name__ == "__main__":
    main()
