"""Explanation of one packet: its way from hop to hop, with the time at every hop.

A packet is named by a flow and a byte of its message: ``17@0`` is the packet with the first byte of
flow 17. If a packet with this byte was lost, the story has every packet that carried the byte. The
times come from the table ``packet_hops``; if the result lacks it, the run is simulated again.
"""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from eastwest.core import ProgressCallback
from eastwest.errors import InputError
from eastwest.explain import again, flow
from eastwest.explain.flow import CAUSES, KINDS
from eastwest.explain.story import Moment, Part, Story
from eastwest.units import clean, size, span
from eastwest.views.evidence import Event, Evidence, number
from eastwest.views.labels import plural

#: Maximum number of packets with one byte that a story describes; it counts all of them.
_MOST = 20
#: At most 18 digits, with or without commas between thousands.
_NUMBER = re.compile(r"\d{1,18}|\d{1,3}(,\d{3}){1,5}", re.ASCII)


def parse(id: str) -> tuple[int, int]:
    """Return (flow, byte) of the id ``FLOW@BYTE``; without ``@BYTE``, the byte is 0.

    Numbers may have commas between thousands, because explanations print them in this form.
    """
    name, at, byte = id.partition("@")
    texts = (name, byte) if at else (name, "0")
    if not all(_NUMBER.fullmatch(text) for text in texts):
        raise InputError(
            f"{clean(id, 60)!r} is not a packet: name a flow and a byte of its message, such as "
            "17@0 for the packet with the first byte of flow 17"
        )
    first, second = (int(text.replace(",", "")) for text in texts)
    return first, second


def story(evidence: Evidence, id: str, rerun_s: float, progress: ProgressCallback | None) -> Story:
    """Return the explanation of the packets that carried one byte of a flow.

    ``rerun_s`` is the longest wall time in s of a run that is simulated again.
    """
    number_of_flow, byte = parse(id)
    row = flow.find(evidence, number_of_flow)
    if not byte < row["bytes"]:
        raise InputError(f"flow {number_of_flow} has no byte {byte}; its bytes are 0 to "
                         f"{row['bytes'] - 1}")  # fmt: skip
    if row["connection"] is None or row["stream_start"] is None:
        raise InputError(f"flow {number_of_flow} has no connection, so that its packets have no id")
    src, dst = evidence.host(row["src"]), evidence.host(row["dst"])
    made = Story(
        "packet",
        f"{number_of_flow}@{byte}",
        f"Packet with byte {byte:,} of flow {number_of_flow}: {src} → {dst}",
        "",
        {"flow": number_of_flow, "byte": byte, "src": src, "dst": dst, "packets": [], "hops": []},
    )
    position = int(row["stream_start"]) + byte
    found = _packets(evidence, row, position)
    if not found:
        why = "it took longer than the limit for a second run"
        if again.seconds(evidence.result) < rerun_s:
            why = again.record(evidence, "measure.packet_hops", [f"{src}->{dst}"], progress) or ""
            found = _packets(evidence, row, position)
        if not found:
            made.summary = "The way of this packet is not known."
            made.lacks(
                "The way of single packets (table packet_hops): "
                + (why or "the packet is not among the recorded ones")
                + "."
            )
            return made
    _tell(evidence, made, row, position, found)
    return made


def _packets(evidence: Evidence, row: dict[str, Any], position: int) -> list[list[dict[str, Any]]]:
    """Return the packets with a byte of a stream: for each packet its rows of ``packet_hops``.

    A packet that a switch trimmed has no payload from there on.
    """
    start = pl.col("stream_start").cast(pl.Int64)
    rows = evidence.table("packet_hops").filter(
        (pl.col("connection") == row["connection"]) & (pl.col("src") == row["src"])
    )
    found = rows.filter(
        (start <= position) & (start + pl.col("bytes").cast(pl.Int64) > position)
    ).select(pl.col("packet").unique())
    order = rows.join(found, on="packet", how="semi").sort("packet", "hop")
    return [packet.to_dicts() for packet in order.partition_by("packet", maintain_order=True)]


def _tell(
    evidence: Evidence,
    made: Story,
    row: dict[str, Any],
    position: int,
    found: list[list[dict[str, Any]]],
) -> None:
    """Add summary, parts, moments and a section for each packet to a story."""
    begin_s = number(row["start_s"])
    losses = [
        event
        for event in evidence.events_of(row["connection"], begin_s, number(row["finish_s"]))
        if event.what == "drop" and event.src == row["src"] and event.covers(position)
    ]
    into = set(evidence.ports_to(row["dst"])["link"].to_list())
    shown = next((packet for packet in found if _has_arrived(packet, into)), None)
    arrived = shown is not None
    shown = shown or found[-1]
    told = found[:_MOST]
    if shown not in told:
        told[-1] = shown
    known = [_facts(evidence, packet) for packet in told]
    made.facts["packets"] = known
    made.facts["hops"] = known[told.index(shown)]["hops"]
    first, last = shown[0], shown[-1]
    took_us = sum(hop["total_us"] for hop in made.facts["hops"])
    kind = KINDS.get(first["kind"], clean(first["kind"], 40))
    sent = plural(len(found), "packet")
    lost = f", {plural(len(losses), 'of them was', 'of them were')} lost" if losses else ""
    made.summary = (
        f"The byte was in {sent} that left the host{lost}. "
        f"The {kind} that {'arrived' if arrived else 'was sent last'} has "
        f"{size(first['bytes'])} of payload and crossed {plural(len(shown), 'link')} in "
        f"{span(took_us / 1e6)}; its last bit arrived at {last['arrived_s']:.9f} s, "
        f"{span(last['arrived_s'] - begin_s)} after the flow was written."
    )
    made.total_us = took_us
    for hop in made.facts["hops"]:
        if hop["waited_us"] > 0:
            made.parts.append(Part(f"waited before {hop['name']}", hop["waited_us"]))
    for key, what in (("transmission_us", "transmission"), ("propagation_us", "propagation")):
        made.parts.append(Part(f"{what} on all links", sum(h[key] for h in made.facts["hops"])))
    made.parts.sort(key=lambda part: -part.us)
    made.moments = sorted(
        (*_sendings(known, begin_s), *(_loss(evidence, event, begin_s) for event in losses)),
        key=lambda moment: moment.at_us,
    )
    if (more := len(found) - len(known)) > 0:
        made.lacks(f"{plural(more, 'further packet')} with the byte: not described here.")
    for packet in known:
        made.add(
            f"Hops of packet {packet['packet']} ({KINDS.get(packet['kind'], packet['kind'])})",
            *(
                f"{hop['name']}: waited {span(hop['waited_us'] / 1e6)}, transmission "
                f"{span(hop['transmission_us'] / 1e6)}, propagation "
                f"{span(hop['propagation_us'] / 1e6)}, arrived at {hop['arrived_s']:.9f} s"
                f"{' without its payload (trimmed)' if hop['bytes'] < packet['bytes'] else ''}"
                for hop in packet["hops"]
            ),
        )
    made.lacks(evidence.events_note(number(row["finish_s"])))


def _has_arrived(packet: list[dict[str, Any]], into: set[int]) -> bool:
    """Whether a packet has reached its receiver, over a link of ``into``, with its payload."""
    return packet[-1]["link"] in into and packet[-1]["bytes"] > 0


def _facts(evidence: Evidence, packet: list[dict[str, Any]]) -> dict[str, Any]:
    """Return number, kind, size and hops of a packet, as facts of a story."""
    hops = [
        {
            "link": hop["link"],
            "name": evidence.port(hop["link"]),
            "bytes": hop["bytes"],
            "arrived_s": hop["arrived_s"],
            "waited_us": hop["waited_us"],
            "transmission_us": hop["transmission_us"],
            "propagation_us": hop["propagation_us"],
            "total_us": hop["waited_us"] + hop["transmission_us"] + hop["propagation_us"],
        }
        for hop in packet
    ]
    first = packet[0]
    return {**{key: first[key] for key in ("packet", "kind", "stream_start", "bytes")},
            "hops": hops}  # fmt: skip


def _sendings(packets: list[dict[str, Any]], begin_s: float) -> list[Moment]:
    """Return a moment for the creation of each packet at its host."""
    made = []
    for packet in packets:
        first = packet["hops"][0]
        at_us = max(0.0, (first["arrived_s"] - begin_s) * 1e6 - first["total_us"])
        kind = KINDS.get(packet["kind"], packet["kind"])
        made.append(Moment(at_us, f"{kind} created at the host (packet {packet['packet']})"))
    return made


def _loss(evidence: Evidence, event: Event, begin_s: float) -> Moment:
    """Return the moment at which a packet with the byte was lost."""
    why = CAUSES.get(event.cause, clean(event.cause, 40))
    kind = KINDS.get(event.kind, clean(event.kind, 40))
    return Moment(
        (event.time_s - begin_s) * 1e6, f"{kind} lost at {evidence.port(event.link)}: {why}"
    )
