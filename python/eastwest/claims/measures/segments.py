"""Segments that a sender sends in each round trip."""

from __future__ import annotations

import math
from collections.abc import Sequence

from eastwest.claims.measures.base import Data, Measured, MeasureError, Row, Settings, measure
from eastwest.results import Result


@measure("bytes-per-round-trip")
def bytes_per_round_trip(
    data: Data,
    at: Settings,
    link: str,
    packet_bytes: int,
    header_bytes: int,
    gap_s: float,
    expected: list[int],
) -> Measured:
    """Return the largest difference, in bytes, between the sent and the expected per round trip.

    A round trip is a burst on ``link``: bytes after at least ``gap_s`` of silence (needs round
    trips much longer than a burst, and bins of ``measure.sample_interval`` shorter than the gap).
    All packets of a burst except the last are full, so that the payload follows from its IP bytes.
    """
    worst, seeds, first = 0.0, set(), None
    rows: list[Row] = []
    for _, seed, result in data.results(at):
        sent = [b for b in _bursts(result, link, packet_bytes, header_bytes, gap_s) if b > 0]
        seeds.add(seed)
        first = first or sent
        for number in range(max(len(sent), len(expected))):
            ours = sent[number] if number < len(sent) else 0
            theirs = expected[number] if number < len(expected) else 0
            worst = max(worst, abs(ours - theirs))
            rows.append(
                {"seed": seed, "round trip": number + 1, "sent_bytes": ours, "published": theirs}
            )
    text = ", ".join(f"{count:,}" for count in first or [])
    return Measured(worst, seeds=len(seeds), text=text, rows=rows)


def _bursts(
    result: Result, link: str, packet_bytes: int, header_bytes: int, gap_s: float
) -> Sequence[int]:
    """Return the payload bytes of each burst on a link; a burst without payload is near 0."""
    numbers = result.links.filter(result.links["name"] == link)["link"]
    if numbers.is_empty():
        raise MeasureError(f"there is no link {link}")
    samples = result.link_samples
    ours = samples.filter(samples["link"] == numbers[0]).sort("time_s")
    bursts: list[int] = []
    before = -math.inf
    for time_s, count in zip(ours["time_s"], ours["bytes"], strict=True):
        if time_s - before > gap_s:
            bursts.append(0)
        bursts[-1] += count
        before = time_s
    return [_payload(count, packet_bytes, header_bytes) for count in bursts]


def _payload(ip_bytes: int, packet_bytes: int, header_bytes: int) -> int:
    packets = math.ceil(ip_bytes / packet_bytes)
    # A single packet of little more than its header is a SYN, which has longer options.
    return 0 if ip_bytes < 2 * header_bytes else ip_bytes - packets * header_bytes
