"""Datagrams of sFlow version 5 (sflow.org, *sFlow Version 5*, July 2004).

A flow sample has the first bytes of one packet, sampled at 1 in ``sampling rate``. Records with raw
headers (format 1), sampled IPv4 and sampled IPv6 (formats 3 and 4) are read. Counter samples and
other records are left out, because they have no packets. Datagrams have no date: the time of a
sample is the time at which its datagram was captured, or else the uptime of the agent.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from eastwest.traces.flows import packets
from eastwest.traces.flows.collect import PROTOCOLS, Collector
from eastwest.traces.flows.stream import Stream

#: Maximum number of samples in a datagram, of records in a sample that are read, and of bytes in a
#: sample.
_MOST_SAMPLES, _MOST_RECORDS, _MOST_SAMPLE = 4096, 1024, 1 << 16
_FLOW, _EXPANDED = 1, 3
_RAW, _SAMPLED_IPV4, _SAMPLED_IPV6 = 1, 3, 4
#: Link-layer type as in captures, by sFlow's number for the protocol of a raw header.
_LINKS = {1: 1, 11: 228, 12: 229}
_HEADERS = {6: 32, 17: 8}
_NOT_ONE = "datagram that is damaged, or not of sFlow version 5"


def looks_like(start: bytes) -> bool:
    """Whether the first bytes of a file or payload are a datagram of sFlow version 5."""
    if len(start) < 28 or start[:4] != b"\0\0\0\5":
        return False
    kind = int.from_bytes(start[4:8], "big")
    at = {1: 12, 2: 24}.get(kind, 0)
    if not at or len(start) < at + 16:
        return False
    return int.from_bytes(start[at + 12 : at + 16], "big") <= _MOST_SAMPLES


class Reader:
    """Reader of sFlow datagrams: adds the sampled packets to a collector."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.account = collector.account

    def raw(self, stream: Stream) -> None:
        """Read all sFlow datagrams of a file, and add the sampled packets to the collector."""
        number = 0
        then = "times are uptimes of the agents"
        self.account.note(stream.name, 0, "file of sFlow datagrams without dates", consequence=then)
        while stream.peek(1):
            number += 1
            at = stream.at
            datagram, sound = _one(stream)
            if not sound and not stream.peek(1):
                reason = "the file ends inside a datagram"
                then = "the samples before it are used"
                self.account.note(stream.name, number, reason, consequence=then)
                self.datagram(datagram, (stream.name, number), cut=True)
                return
            if not sound:
                reason = f"{_NOT_ONE} (byte {at:,})"
                self.account.bad(stream.name, number, reason, rows=1)
                return
            self.datagram(datagram, (stream.name, number))

    def datagram(
        self, data: bytes, place: tuple[str, int], time_ns: int | None = None, *, cut: bool = False
    ) -> None:
        """Read one datagram, and add the sampled packets to the collector.

        ``place``: (file, number of the datagram) for messages. ``time_ns``: time in ns since 1970
        at which the datagram was captured; None: the agent's uptime is used. ``cut``: the file ends
        inside the datagram, so missing samples are no error.
        """
        if not looks_like(data):
            if not cut:
                self.account.bad(*place, _NOT_ONE)
            return
        wide = data[7] == 2
        agent = data[8 : 24 if wide else 12]
        at = 24 if wide else 12
        uptime_ms, samples = struct.unpack_from(">II", data, at + 8)
        time = uptime_ms * 10**6 if time_ns is None else time_ns
        name = f"agent {agent.hex()} {int.from_bytes(data[at : at + 4], 'big')}"
        at += 16
        for _ in range(samples):
            if at + 8 > len(data):
                break
            kind, length = struct.unpack_from(">II", data, at)
            body = data[at + 8 : at + 8 + length]
            at += 8 + length
            if len(body) < length:
                break
            try:
                self._sample(kind, body, place, name, time)
            except (struct.error, IndexError):
                self.account.bad(*place, "a sample is damaged")
        else:
            return
        if not cut:
            reason = "datagram of sFlow that ends inside a sample"
            self.account.note(*place, reason, consequence="the samples before it are used")

    def _sample(self, kind: int, body: bytes, place: tuple[str, int], name: str, time: int) -> None:
        if kind not in {_FLOW, _EXPANDED}:
            reason = "counter sample, or sample in a vendor's own format"
            self.account.note(*place, reason, consequence="it is left out: it has no packet")
            return
        if kind == _FLOW:
            source, rate, records = struct.unpack_from(">4xII16xI", body)
            at = 32
        else:
            source, rate, records = struct.unpack_from(">8xII24xI", body)
            at = 44
        observer = self.collector.observer(f"{name} {source}")
        for _ in range(min(records, _MOST_RECORDS)):
            form, length = struct.unpack_from(">II", body, at)
            record = body[at + 8 : at + 8 + length]
            at += 8 + (length + 3) // 4 * 4
            if form in {_RAW, _SAMPLED_IPV4, _SAMPLED_IPV6}:
                self._record(form, record, place, observer, time, max(1, rate))
                return
        self.collector.leave(place, "sample without the header of its packet")

    def _record(
        self,
        form: int,
        record: bytes,
        place: tuple[str, int],
        observer: int,
        time: int,
        rate: int,
    ) -> None:
        if form == _RAW:
            protocol, length, _, size = struct.unpack_from(">IIII", record)
            if protocol not in _LINKS:
                self.collector.leave(place, "sample with a link layer other than Ethernet and IP")
                return
            found = packets.decode(_LINKS[protocol], record[16 : 16 + size], length)
            if isinstance(found, str):
                self.collector.leave(place, found)
                return
            ends, payload = found.ends, found.payload
        else:
            width = 4 if form == _SAMPLED_IPV4 else 16
            length, protocol = struct.unpack_from(">II", record)
            src, dst = record[8 : 8 + width], record[8 + width : 8 + 2 * width]
            sport, dport = struct.unpack_from(">II", record, 8 + 2 * width)
            ends = (src, dst, protocol, sport & 0xFFFF, dport & 0xFFFF)
            header = _HEADERS.get(protocol, 0) + (20 if width == 4 else 40)
            payload = max(0, length - header) if protocol in PROTOCOLS else 0
        self.collector.packet(place, observer, ends, time, payload, rate=rate)


def _one(stream: Stream) -> tuple[bytes, bool]:
    """Return (next datagram of a file, whether it is complete and valid)."""
    head = stream.peek(40)
    if not looks_like(head):
        return stream.take(40), False
    at = 24 if head[7] == 2 else 12
    samples = int.from_bytes(head[at + 12 : at + 16], "big")
    pieces = list(_pieces(stream, at + 16, samples))
    return b"".join(pieces), all(pieces)


def _pieces(stream: Stream, head: int, samples: int) -> Iterator[bytes]:
    """Yield the bytes of a datagram's header, then those of each sample.

    Empty bytes after the last item mean that the datagram is damaged or incomplete. ``head`` is the
    length of the header in bytes, ``samples`` the number of samples.
    """
    yield stream.take(head)
    for _ in range(samples):
        start = stream.peek(8)
        length = int.from_bytes(start[4:], "big")
        if len(start) < 8 or length > _MOST_SAMPLE:
            yield b""
            return
        piece = stream.take(8 + length)
        yield piece
        if len(piece) < 8 + length:
            yield b""
            return
