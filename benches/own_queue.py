"""Compares the speed of a queue from the template of ``eastwest new`` with the built-in RED.

    python benches/own_queue.py [--runs N] [--out FILE.md]

Both queues run S1 in turns, in one process. The template marks with a probability that rises with
the queue, as RED on the momentary queue does, and draws the same random numbers. Therefore the
digests of both are equal: they process the same packets. The cost of a queue is the CPU time of its
runs, tables included; drop-tail is shown for comparison.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
from pathlib import Path

import eastwest as ew
from eastwest import core
from eastwest.files import write_whole
from eastwest.mechanisms import new
from eastwest.mechanisms.load import load

ROOT = Path(__file__).resolve().parents[1]
LIMIT = {"fabric.queue.limit": "200 packets"}
RED = {
    **LIMIT,
    "fabric.queue.kind": "red",
    "fabric.queue.min": "5 packets",
    "fabric.queue.max": "15 packets",
    "fabric.queue.weight": 1,
    "fabric.queue.max_probability": 1,
    "fabric.queue.even": False,
    "fabric.queue.gentle": False,
}


def ramp() -> core.Extras:
    """Return the compiled template of a queue, which draws the random numbers of RED."""
    crate = new.write("ramp", new.Kind.queue, source=ROOT).folder
    file = crate / "src" / "lib.rs"
    text = file.read_text()
    assert text.count('random("ramp")') == 1
    file.write_text(text.replace('random("ramp")', 'random("red")'))
    return load([crate], show=True, release=True)[0]


def main() -> None:
    """Measure, print the page, and write it to a file if the command line names one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    page = arguments.out.resolve() if arguments.out else None
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        text = measured(arguments.runs)
        os.chdir(ROOT)
    print(text)
    if page is not None:
        write_whole(page, text.encode())


def measured(runs: int) -> str:
    """Run all queues in turns; return the results as Markdown."""
    own = ramp()
    settings = {
        "drop-tail": (core.Extras(), LIMIT),
        "built-in": (core.Extras(), RED),
        "own": (own, {**LIMIT, "fabric.queue.kind": "ramp"}),
    }
    cpu: dict[str, list[float]] = {name: [] for name in settings}
    hops: dict[str, int] = {}
    digests: dict[str, str] = {}
    for turn in range(runs + 1):
        for name, (extras, changes) in settings.items():
            with core.using(extras):
                summary = ew.run("s1", set=changes, out="run", force=True).summary
            hops[name], digests[name] = summary["packet_hops"], summary["digest"]
            if turn > 0:  # The first run of each queue only warms up caches and is not counted.
                cpu[name].append(summary["cpu_s"])
    assert digests["own"] == digests["built-in"] != digests["drop-tail"]
    ratios = [b / o for b, o in zip(cpu["built-in"], cpu["own"], strict=True)]
    lines = [
        "# A queue of one's own against a built-in one",
        "",
        f"S1 with the template's ramp (`eastwest new`) and with RED of the moment, {runs} runs of "
        "each in turns, in one process; `python benches/own_queue.py` measures anew. Eastwest "
        f"{core.version()}, {platform.machine()}, {os.cpu_count()} cores; not a quiet machine.",
        "",
        "| queue | packet-hops | CPU s, median | least | million hops per CPU-s, median |",
        "|---|---|---|---|---|",
    ]
    for name, times in cpu.items():
        median = statistics.median(times)
        speed = hops[name] / median / 1e6
        lines.append(f"| {name} | {hops[name]:,} | {median:.3f} | {min(times):.3f} | {speed:.2f} |")
    least = min(cpu["built-in"]) / min(cpu["own"])
    lines += [
        "",
        f"One digest for both: `{digests['own']}`. Speed of the own queue in that of the built-in "
        f"one: {statistics.median(ratios):.1%} (median of pairs; {min(ratios):.1%} to "
        f"{max(ratios):.1%}), {least:.1%} by the least times.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
