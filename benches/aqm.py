"""Measures how much a queue discipline on all ports slows scenario S1, relative to drop-tail.

``python benches/aqm.py [ROUNDS] [BYTES]`` runs S1 with flows of BYTES ("1 MB"). In each round every
discipline runs once, so that other work on the machine slows all of them. It prints the CPU time
per packet-hop, and the speed as a share of the speed with drop-tail in the same round; both are
medians of all rounds. Thresholds and targets are small enough that every discipline acts. The
required speeds are 80 % for RED and step marking, and 65 % for CoDel. To count instructions, which
do not depend on other work on the machine, run ``valgrind --tool=callgrind
target/release/examples/s1 short red``, and divide by the hops that it prints.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

import eastwest as ew

#: Name of each row → settings of ``fabric.queue`` and ``fabric.host_queue``.
QUEUES: dict[str, dict[str, str | int]] = {
    "drop-tail": {"kind": "drop-tail"},
    "step-marking": {"kind": "step-marking", "threshold": "65 packets"},
    "red": {"kind": "red", "min": "50 packets", "max": "150 packets"},
    "pie": {
        "kind": "pie",
        "target": "500 us",
        "update": "500 us",
        "alpha": 4,
        "beta": 40,
        "burst": "5 ms",
    },
    "codel": {"kind": "codel", "target": "500 us", "interval": "10 ms"},
    "fq-codel": {"kind": "fq-codel", "target": "500 us", "interval": "10 ms"},
}


def settings(queue: dict[str, str | int], ecn: str, size: str) -> dict[str, str | int]:
    """Return the overrides of scenario S1 that set one queue discipline at every port."""
    both = {
        f"fabric.{place}.{key}": value
        for place in ("queue", "host_queue")
        for key, value in {**queue, "limit": "200 packets"}.items()
    }
    return {**both, "tcp.ecn": ecn, "workload.0.bytes": size}


def ns_per_hop(queue: dict[str, str | int], ecn: str, size: str) -> float:
    """Return the CPU time in ns per packet-hop (one packet on one link) of a run of S1."""
    with tempfile.TemporaryDirectory() as folder:
        summary = ew.run("s1", set=settings(queue, ecn, size), out=Path(folder) / "run").summary
        return float(1e9 * summary["cpu_s"] / summary["packet_hops"])


def main() -> None:
    """Print the table of all disciplines, for TCP without and with ECN."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    size = sys.argv[2] if len(sys.argv) > 2 else "1 MB"
    for ecn in ("off", "on"):
        took: dict[str, list[float]] = {name: [] for name in QUEUES}
        for _ in range(rounds):
            for name, queue in QUEUES.items():
                took[name].append(ns_per_hop(queue, ecn, size))
        print(f"ECN {ecn}, {rounds} rounds of flows of {size}")
        for name, each in took.items():
            shares = [plain / own for plain, own in zip(took["drop-tail"], each, strict=True)]
            shown = " / ".join(f"{value:.1f}" for value in each)
            print(f"{name:13} {statistics.median(shares):.0%} of drop-tail; ns per hop {shown}")


if __name__ == "__main__":
    main()
