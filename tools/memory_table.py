"""Compares the estimated memory of a run with the measured memory for building its network.

``python tools/memory_table.py`` builds twelve fabrics, each with packets and with flows, in a
process of its own. It prints the rows of the table in docs/internals/memory.md. A process that
holds more than ``MOST`` bytes is ended. The arguments are names of fabrics; without any, all are
built. The exit code is 1 if the estimate of a fabric of more than 50 MB is less than 0.7 or more
than 1.5 times the measured memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MOST = 4_000_000_000
SMALL = 50_000_000
BAND = (0.7, 1.5)

FABRICS = {
    "star of 100,000": "kind = 'star'\nhosts = 100000",
    "leaf–spine 64 × 40, 16": "kind = 'leaf-spine'\nleaves = 64\nhosts_per_leaf = 40\nspines = 16",
    "fat tree k = 8": "kind = 'fat-tree'\nk = 8",
    "fat tree k = 32": "kind = 'fat-tree'\nk = 32",
    "fat tree k = 48": "kind = 'fat-tree'\nk = 48",
    "fat tree k = 64": "kind = 'fat-tree'\nk = 64",
    "torus 50 × 50": "kind = 'torus'\nsizes = [50, 50]",
    "torus 100 × 100": "kind = 'torus'\nsizes = [100, 100]",
    "torus 300 × 300": "kind = 'torus'\nsizes = [300, 300]",
    "DCell n = 8, level 2": "kind = 'dcell'\nn = 8\nlevels = 2",
    "XGFT 16-ary 4-tree": "kind = 'k-ary-n-tree'\nk = 16\nlevels = 4",
    "graph file of 2,000 switches": "kind = 'graph'\nfile = 'ring.toml'",
    "fat tree k = 128": "kind = 'fat-tree'\nk = 128",
}

CHILD = """
import json, sys, time
from eastwest import core
from eastwest.memory import held_bytes
from eastwest.run import peak_rss_mb

class Built(Exception):
    pass

class Look:
    def expect(self, parts):
        self.parts = parts
        self.start = time.perf_counter()
    def __call__(self, state):
        raise Built

text, folder, whole = sys.argv[1], sys.argv[2], sys.argv[3] == "whole"
before, look = held_bytes(), Look()
try:
    core.run(text, folder, folder, [], None, False, look)
except Built:
    pass
built = sum(value for _, value, built in look.parts if built or whole)
print(json.dumps({
    "estimate": built,
    "measured": int(peak_rss_mb() * 1e6) - before,
    "seconds": time.perf_counter() - look.start,
    "parts": look.parts,
}))
"""


def scenario(fabric: str, fidelity: str, *, whole: bool) -> str:
    """Return a scenario in which two hosts send many bytes; with ``whole``, one that ends at once.

    With packets these are two messages of 1 TB, so that no table of messages grows before the first
    measurement, after a tenth of a second. With flows two messages would have ended by then, so
    many short ones follow each other, and their table is part of the measurement.
    """
    rates = "host_rate = '10 Gbit/s'\n" + "uplink_rate = '10 Gbit/s'\n" * ("star" not in fabric)
    rates = "" if "graph" in fabric else rates
    flows, size = (2, "1 TB") if fidelity == "packet" else (1_000_000_000, "1 KB")
    ends = "duration = '1 ns'" if whole else ""
    return (
        f"schema = 1\nfidelity = '{fidelity}'\n{ends}\n[fabric]\n{fabric}\n{rates}\n"
        "[[workload]]\nname = 'two'\nkind = 'poisson'\nhosts = ['h0', 'h1']\nload = 0.2\n"
        f"sizes = '{size}'\nflows = {flows}\n"
    )


def graph_file(folder: Path) -> None:
    """Write a graph of a ring of 2,000 switches with chords, with one host at each."""
    number = 2000
    lines = [f"hosts = {[f'h{i}' for i in range(number)]}"]
    lines.append(f"switches = {[f's{i}' for i in range(number)]}")
    pairs = [(f"h{i}", f"s{i}") for i in range(number)]
    for step in (1, 7, 43, 211):
        pairs += [(f"s{i}", f"s{(i + step) % number}") for i in range(number)]
    lines += [f'[[cable]]\na = "{a}"\nb = "{b}"\nrate = "10 Gbit/s"' for a, b in pairs]
    (folder / "ring.toml").write_text("\n".join(lines) + "\n")


def measure(text: str, folder: Path, what: str) -> dict[str, float] | None:
    """Return the memory of building a scenario in a new process; None if it exceeded the limit."""
    command = [sys.executable, "-c", CHILD, text, str(folder), what]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        while child.poll() is None:
            try:
                pages = int(Path(f"/proc/{child.pid}/statm").read_text().split()[1])
            except (OSError, IndexError):
                break
            if pages * 4096 > MOST:
                child.kill()
                return None
            time.sleep(0.02)
        said = child.communicate()[0]
    found: dict[str, float] = json.loads(said)
    return found


def row(name: str, fidelity: str, folder: Path) -> tuple[str, bool]:
    """Return one row of the table, and whether the estimate is in the band."""
    cells, good = [f"{name}, {fidelity}s"], True
    for what in ("built", "whole"):
        text = scenario(FABRICS[name], fidelity, whole=what == "whole")
        found = measure(text, folder, what)
        if found is None:
            cells.append("more than 4 GB" if what == "built" else "")
            continue
        estimate, measured = found["estimate"], found["measured"]
        ratio = estimate / measured
        if what == "built":
            cells.append(f"{found['seconds']:.1f} s")
            good = measured < SMALL or BAND[0] <= ratio <= BAND[1]
        cells.append(f"{estimate / 1e6:,.0f} / {measured / 1e6:,.0f} MB = {ratio:.2f}")
    return "| " + " | ".join(cells) + " |", good


def main(names: list[str]) -> int:
    """Print all rows; return 1 if an estimate is outside the band."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, all_good = Path(scratch), True
        graph_file(folder)
        for name in names or FABRICS:
            for fidelity in ("packet", "flow"):
                line, good = row(name, fidelity, folder)
                print(line, "" if good else "<-- out of the band", flush=True)
                all_good &= good
    return 0 if all_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
