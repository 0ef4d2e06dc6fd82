"""Runs two experiments with queue disciplines that Eastwest does not have; some 15 minutes.

    python papers/eeon_ch6/sketches.py

*CoDel as in its authors' NS-2 module* (2012): if dropping begins again within 16 intervals, the
count continues at one less than at the end of the previous dropping. RFC 8289 continues with the
number that was added in it. Does this explain the differences of CoDel from the thesis (F5.4a,
F5.4b, F5.4d)?

*RED that protects single kinds of packets*: TCP-ECN, 100 us, shallow buffers. It protects only SYN
and SYN-ACK, or only ACKs with ECE; *ece-bit* protects both. Which of these kinds makes latency in
default mode lower than with *ece-bit* (C6.3)?

Each experiment runs with one seed; results/study/sketches.csv has the numbers.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
from numbers_of import numbers_of

import eastwest as ew

HERE = Path(__file__).resolve().parent
SCENARIO = HERE.parent / "eeon_ch5/scenarios/terasort.toml"
KEPT = ("runtime_s", "latency_us", "data_latency_us", "timeouts", "early", "full", "marks")
_PS_PER_US = 1_000_000


class Ns2Codel(ew.Queue):
    """CoDel whose count is reduced by only one when dropping begins again."""

    target_us: float = 500.0
    interval_us: float = 20_000.0

    def __init__(self) -> None:
        self.target = round(self.target_us * _PS_PER_US)
        self.interval = round(self.interval_us * _PS_PER_US)
        self.above_at = 0
        self.dropping = False
        #: Whether the previous packet was the first to be dropped; then the next packet is sent.
        self.begun = False
        #: Time at which the previous packet was dropped; −1 if it was not.
        self.dropped_at = -1
        self.drop_next = 0
        self.count = 0

    def at_dequeue(self, head: ew.Head) -> ew.Verdict:
        """Decide whether the packet at the head of the queue is sent or dropped."""
        late = self._late(head)
        if self.begun:
            self.begun = False
            return ew.Verdict.ENQUEUE
        if self.dropping:
            return self._go_on(head, late)
        if not late:
            return ew.Verdict.ENQUEUE
        recent = head.now_ps - self.drop_next < 16 * self.interval
        self.dropping = True
        self.count = self.count - 1 if self.count > 1 and recent else 1
        self.drop_next = self._after(head.now_ps)
        verdict = self.signal(head)
        self.begun = verdict != ew.Verdict.MARK
        return verdict

    def _go_on(self, head: ew.Head, late: bool) -> ew.Verdict:
        if not late:
            self.dropping = False
            return ew.Verdict.ENQUEUE
        if self.dropped_at == head.now_ps:
            self.drop_next = self._after(self.drop_next)
            self.dropped_at = -1
        if head.now_ps < self.drop_next:
            return ew.Verdict.ENQUEUE
        self.count += 1
        verdict = self.signal(head)
        if verdict == ew.Verdict.MARK:
            self.drop_next = self._after(self.drop_next)
        else:
            self.dropped_at = head.now_ps
        return verdict

    def _late(self, head: ew.Head) -> bool:
        """Return whether packets have been above the target for an interval."""
        if head.waited_ps < self.target or head.left_bytes <= self.mtu:
            self.above_at = 0
        elif self.above_at == 0:
            self.above_at = head.now_ps + self.interval
        else:
            return head.now_ps >= self.above_at
        return False

    def _after(self, time_ps: int) -> int:
        return time_ps + int(self.interval / math.sqrt(self.count))


class SparingRed(ew.Queue):
    """RED on the momentary queue that protects some kinds of packets.

    The probability rises to 1 at three times the threshold.
    """

    target_us: float = 100.0
    spare_syn: bool = False
    spare_ece: bool = False

    def __init__(self) -> None:
        #: Number of packets since the last mark or early drop.
        self.passed = 0

    def at_enqueue(self, arrival: ew.Arrival) -> ew.Verdict:
        """Decide whether an arriving packet is accepted, marked or dropped."""
        if not arrival.fits:
            return ew.Verdict.DROP
        low = self.target_us * self.rate_bps / 8e9  # Threshold in packets of 1000 B.
        above = (arrival.queued_packets - low) / (2 * low)
        if above < 0:
            self.passed = 0
            return ew.Verdict.ENQUEUE
        self.passed += 1
        if above < 1 and self.random.unit() * (1 - self.passed * above) >= above:
            return ew.Verdict.ENQUEUE
        self.passed = 0
        is_syn = arrival.kind in {"syn", "syn_ack"}
        spared = self.spare_syn if is_syn else self.spare_ece and arrival.has_ece
        if spared and not arrival.understands_marks:
            return ew.Verdict.ENQUEUE
        return self.signal(arrival)


def runs() -> dict[str, dict[str, Any]]:
    """Return the settings of each run, by the name of the run."""
    found: dict[str, dict[str, Any]] = {}
    for target, interval, limit in (
        (500, 20_000, 200),
        (800, 1_500, 200),
        (800, 1_500, 2000),
        (300, 750, 2000),
    ):
        name = f"CoDel {target} us, {limit} packets"
        times = {"target": f"{target} us", "interval": f"{interval} us"}
        found[f"{name}: RFC 8289"] = {"kind": "codel", "limit": f"{limit} packets", **times}
        own = {"target_us": float(target), "interval_us": float(interval)}
        found[f"{name}: NS-2"] = {"kind": "ns2-codel", "limit": f"{limit} packets", **own}
    for spared, flags in {
        "nothing": {},
        "SYN and SYN-ACK": {"spare_syn": True},
        "ACKs with ECE": {"spare_ece": True},
        "both": {"spare_syn": True, "spare_ece": True},
    }.items():
        queue = {"kind": "sparing-red", "limit": "200 packets", **flags}
        found[f"RED 100 us, TCP-ECN, 200 packets: sparing {spared}"] = queue
    return found


def measure(queue: Mapping[str, Any]) -> dict[str, float]:
    """Run the Hadoop job with this discipline at all ports; return its numbers."""
    ports = ("fabric.queue", "fabric.host_queue")
    settings = {f"{port}.{key}": value for port in ports for key, value in queue.items()}
    settings["tcp.ecn"] = "on" if queue["kind"] == "sparing-red" else "off"
    with tempfile.TemporaryDirectory(prefix="eastwest-sketch-") as folder:
        result = ew.run(
            SCENARIO, set=settings, out=Path(folder) / "run", mechanisms=[Ns2Codel, SparingRed]
        )
        numbers = numbers_of(result.summary)
    return {name: numbers[name] for name in KEPT}


def main() -> None:
    """Run all experiments and write their numbers."""
    rows = []
    for name, queue in runs().items():
        rows.append({"run": name, **measure(queue)})
        print(rows[-1], flush=True)
    table = HERE / "results" / "study" / "sketches.csv"
    pl.DataFrame(rows).write_csv(table, float_precision=3)


if __name__ == "__main__":
    main()
