"""Bursts of a real TCP, and the packets in the network card before them (papers/hadoop_real).

``python tools/hadoop_real_bursts.py`` compares ``data/bursts.csv.gz`` with TCP's rule of small
queues and draws both. With ``--captures NAME=FILE`` the table is made again, by tshark, from
captures taken behind the network card of a sender. Segments with equal timestamps and without a gap
left TCP as one burst. Segments with that timestamp or an earlier one that pass only later were
waiting in the card. Timestamps are whole milliseconds; the smallest difference between a timestamp
and its capture time is used as the difference of the two clocks.
"""

from __future__ import annotations

import argparse
import bisect
import csv
import gzip
import io
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

from matplotlib.figure import Figure

from eastwest.files import write_whole
from eastwest.plot import picture
from eastwest.plot.style import INK, ORANGE, style
from hadoop_real import PAPER

DATA = PAPER / "data" / "bursts.csv.gz"
#: Address of the sender behind whose card the captures were taken, and port of its service.
SENDER, PORT = "10.77.0.11", "13562"
SEGMENT, OVERHEAD = 1448, 896
#: Packets of 1514 B that 50 Mbit/s carry in 1 ms, the step of a timestamp.
TICK_PACKETS = 4
_FIELDS = (
    "frame.time_epoch", "ip.src", "tcp.srcport", "ip.dst", "tcp.dstport", "tcp.seq_raw", "tcp.len",
    "tcp.options.timestamp.tsval",
)  # fmt: skip


@dataclass(frozen=True)
class Burst:
    """Segments that left TCP together, and the connection's segments in the card at that time."""

    run: str
    connection: int
    sent_ms: int
    segments: int
    waiting: int


@dataclass(frozen=True)
class Packet:
    """A captured segment: capture time, first sequence number, payload bytes, TCP timestamp."""

    passed_ms: float
    seq: int
    length: int
    stamp: int


def most_waiting(segments: int) -> int:
    """Return how many segments may be in the card when TCP sends a burst, by the rule."""
    return (2 * (segments * SEGMENT + OVERHEAD) - 1) // (SEGMENT + OVERHEAD)


def bursts(run: str, capture: Path) -> Iterator[Burst]:
    """Yield the bursts of new data in a capture."""
    fields = [word for field in _FIELDS for word in ("-e", field)]
    command = [
        "tshark", "-r", str(capture), "-o", "tcp.calculate_timestamps:FALSE",
        "-Y", f"ip.src == {SENDER} && tcp.srcport == {PORT} && tcp.len > 0",
        "-T", "fields", *fields,
    ]  # fmt: skip
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    flows: dict[tuple[str, ...], list[Packet]] = defaultdict(list)
    for line in lines:
        at, *names, seq, length, stamp = line.split("\t")
        flows[tuple(names)].append(Packet(float(at) * 1e3, int(seq), int(length), int(stamp)))
    for number, packets in enumerate(flows.values()):
        yield from _bursts_of(run, number, packets)


def _bursts_of(run: str, connection: int, packets: list[Packet]) -> Iterator[Burst]:
    offset = min(p.passed_ms - p.stamp for p in packets)
    passed = [p.passed_ms for p in packets]
    highest, sent, waiting, members = 0, 0, 0, 0
    for place, packet in enumerate(packets):
        if members and (packet.seq != highest or packet.stamp != sent):
            yield Burst(run, connection, sent - packets[0].stamp, members, waiting)
            members = 0
        if packet.seq < highest:
            continue  # The segment was sent before: a retransmission.
        if members == 0:
            sent = packet.stamp
            # Segments pass in order: count earlier segments that had not passed when this was sent.
            waiting = place - bisect.bisect_right(passed, sent + offset, hi=place)
        members, highest = members + 1, packet.seq + packet.length


def read() -> list[Burst]:
    """Return the table of bursts."""
    with gzip.open(DATA, "rt", encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))[1:]
    return [Burst(run, *(int(value) for value in values)) for run, *values in rows]


def held_back(found: Iterable[Burst]) -> list[Burst]:
    """Return the bursts of runs with deep buffers that the card delayed, and not the window."""
    return [b for b in found if b.segments > 3 and b.waiting >= most_waiting(b.segments) - 1]


def draw(found: Iterable[Burst]) -> Figure:
    """Return a figure of the segments in the card before each burst, and of the rule."""
    found = list(found)
    with style():
        figure = Figure(figsize=(5.6, 3.4), layout="constrained")
        axes = figure.subplots()
        axes.plot(
            [b.segments for b in found],
            [b.waiting for b in found],
            "o", ms=3, mew=0, alpha=0.5, color=ORANGE, label="Linux 6.18",
        )  # fmt: skip
        sizes = range(1, 46)
        rule = [most_waiting(n) for n in sizes]
        axes.plot(sizes, rule, color=INK, lw=1, label="the rule, and one tick of the clock more")
        axes.plot(sizes, [n + TICK_PACKETS for n in rule], color=INK, lw=1, ls=":")
        axes.set_xlabel("segments of a burst")
        axes.set_ylabel("segments that waited before it")
        axes.set_xlim(0, 47)
        axes.set_ylim(0, 70)
        axes.legend(loc="upper left")
    return figure


def main() -> int:
    """Compare and draw; make the table first if the command line names captures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--captures", nargs="+", default=[], metavar="NAME=FILE")
    arguments = parser.parse_args()
    if arguments.captures:
        named = [entry.split("=", 1) for entry in arguments.captures]
        made = [burst for name, file in named for burst in bursts(name, Path(file))]
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(Burst.__annotations__)
        writer.writerows(astuple(burst) for burst in made)
        write_whole(DATA, gzip.compress(stream.getvalue().encode(), mtime=0))
    found = [b for b in read() if b.segments > 3]
    above = [b for b in found if b.waiting > most_waiting(b.segments) + TICK_PACKETS + 1]
    print(f"{len(found)} bursts of more than 3 segments, {len(above)} with more before them")
    for low, high in ((4, 11), (12, 19), (20, 27), (28, 35), (36, 44), (45, 45)):
        held = [b for b in held_back(found) if low <= b.segments <= high]
        if held:
            waited = statistics.mean(b.waiting for b in held)
            rule = statistics.mean(most_waiting(b.segments) for b in held)
            print(f"{low}-{high}: {len(held)} held back, {waited:.1f} waited, rule {rule:.1f}")
    with style():
        picture.save(draw(found), PAPER / "results" / "bursts.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
