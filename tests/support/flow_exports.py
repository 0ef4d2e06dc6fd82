"""Encoders of packets, captures and export messages: NetFlow v5 and v9, IPFIX, sFlow v5."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: Time zero of all made files in s since 1970.
BEGAN = 1_700_000_000
TCP, UDP = 6, 17


@dataclass(frozen=True)
class Record:
    """Flow record; times in ms from ``BEGAN``."""

    src: str
    dst: str
    sport: int
    dport: int
    packets: int
    octets: int
    first_ms: int
    last_ms: int
    protocol: int = TCP

    @property
    def addresses(self) -> bytes:
        return packed(self.src) + packed(self.dst)


def packed(address: str) -> bytes:
    return ipaddress.ip_address(address).packed


def tcp(
    src: str, dst: str, sport: int, dport: int, seq: int, payload: int, flags: int = 0x10
) -> bytes:
    """Return an IP packet of TCP without its payload, as a short snap length leaves it."""
    head = struct.pack(">HHIIBBHHH", sport, dport, seq, 0, 0x50, flags, 65535, 0, 0)
    return ip(src, dst, TCP, head, payload)


def udp(src: str, dst: str, sport: int, dport: int, payload: bytes, more: int = 0) -> bytes:
    """Return an IP packet of UDP with its payload; ``more`` bytes are not captured."""
    length = 8 + len(payload) + more
    head = struct.pack(">HHHH", sport, dport, length, 0)
    return ip(src, dst, UDP, head + payload, more)


def ip(src: str, dst: str, protocol: int, body: bytes, more: int = 0, fragment: int = 0) -> bytes:
    """Return an IPv4 or IPv6 packet; ``more`` bytes of its payload are not captured."""
    a, b = packed(src), packed(dst)
    if len(a) == 16:
        return struct.pack(">IHBB", 6 << 28, len(body) + more, protocol, 64) + a + b + body
    total = 20 + len(body) + more
    return struct.pack(">BBHHHBBH", 0x45, 0, total, 1, fragment, 64, protocol, 0) + a + b + body


def ethernet(packet: bytes, vlans: Sequence[int] = ()) -> bytes:
    kind = 0x86DD if packet[0] >> 4 == 6 else 0x0800
    tags = b"".join(struct.pack(">HH", 0x8100, vlan) for vlan in vlans)
    return bytes(12) + tags + struct.pack(">H", kind) + packet


def on_wire(packet: bytes) -> int:
    """Return the bytes of an IP packet on the wire, from its header."""
    if packet[0] >> 4 == 6:
        return 40 + int.from_bytes(packet[4:6], "big")
    return int.from_bytes(packet[2:4], "big")


def pcap(
    packets: Iterable[tuple[float, bytes]], link: int = 101, order: str = "<", ns: bool = False
) -> bytes:
    """Return a capture of IP packets (link type 101), or of frames that were captured whole."""
    magic = 0xA1B23C4D if ns else 0xA1B2C3D4
    made = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, link)]
    unit = 1_000_000_000 if ns else 1_000_000
    for second, data in packets:
        at = round(second * unit)
        length = on_wire(data) if link == 101 else len(data)
        made.append(
            struct.pack(order + "IIII", BEGAN + at // unit, at % unit, len(data), length) + data
        )
    return b"".join(made)


def block(order: str, kind: int, body: bytes) -> bytes:
    total = 12 + (len(body) + 3) // 4 * 4
    padded = body + bytes(total - 12 - len(body))
    return struct.pack(order + "II", kind, total) + padded + struct.pack(order + "I", total)


def pcapng(
    packets: Iterable[tuple[float, bytes]], link: int = 101, order: str = "<", power: int = 9
) -> bytes:
    """Return a capture with one section and one interface, and times in units of 10^-power s."""
    made = [block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))]
    resolution = struct.pack(order + "HHB3xHH", 9, 1, power, 0, 0)
    made.append(block(order, 1, struct.pack(order + "HHI", link, 0, 96) + resolution))
    for second, data in packets:
        at = (BEGAN * 10**power) + round(second * 10**power)
        length = on_wire(data) if link == 101 else len(data)
        head = struct.pack(order + "IIIII", 0, at >> 32, at & 0xFFFFFFFF, len(data), length)
        made.append(block(order, 6, head + data))
    return b"".join(made)


def v5(records: Sequence[Record], sampling: int = 0, engine: int = 0) -> bytes:
    """Return a message of NetFlow v5; the exporter started 1,000 s before ``BEGAN``."""
    up = 1_000_000
    made = [
        struct.pack(
            ">HHIIIIHH", 5, len(records), up, BEGAN, 0, 0, engine, sampling and 1 << 14 | sampling
        )
    ]
    for r in records:
        made.append(
            r.addresses
            + struct.pack(">IHHIIII", 0, 1, 2, r.packets, r.octets, up + r.first_ms, up + r.last_ms)
            + struct.pack(">HHBBBBHHBBH", r.sport, r.dport, 0, 0x1B, r.protocol, 0, 0, 0, 24, 24, 0)
        )
    return b"".join(made)


#: Fields of templates: number of the field, and length in bytes.
V4 = ((8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (2, 8), (1, 8))
V6 = ((27, 16), (28, 16), (7, 2), (11, 2), (4, 1), (2, 8), (1, 8))


def flow_set(number: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    return struct.pack(">HH", number, 4 + len(body)) + body


def template(number: int, fields: Sequence[tuple[int, int]]) -> bytes:
    return struct.pack(">HH", number, len(fields)) + b"".join(
        struct.pack(">HH", *each) for each in fields
    )


def _values(record: Record, times: bytes) -> bytes:
    ports = struct.pack(">HHB", record.sport, record.dport, record.protocol)
    return record.addresses + ports + struct.pack(">QQ", record.packets, record.octets) + times


def v9(
    records: Sequence[Record], *, templates: bool = True, sampling: int = 0, source: int = 7
) -> bytes:
    """Return a message of NetFlow v9 with records of IPv4 (template 256) and IPv6 (257)."""
    up = 1_000_000
    sets = []
    if templates:
        fields = ((22, 4), (21, 4))
        sets.append(flow_set(0, template(256, V4 + fields) + template(257, V6 + fields)))
    if sampling:
        # Scope system (1), 4 bytes; then sampling interval (34) and algorithm (35).
        sets.append(flow_set(1, struct.pack(">HHHHHHHHH", 300, 4, 8, 1, 4, 34, 4, 35, 1)))
        sets.append(flow_set(300, struct.pack(">IIB", 1, sampling, 2)))
    for number, size in ((256, 8), (257, 32)):
        chosen = [r for r in records if len(r.addresses) == size]
        times = [struct.pack(">II", up + r.first_ms, up + r.last_ms) for r in chosen]
        if chosen:
            made = b"".join(_values(r, t) for r, t in zip(chosen, times, strict=True))
            sets.append(flow_set(number, made))
    head = struct.pack(">HHIIII", 9, len(records), up, BEGAN, 1, source)
    return head + b"".join(sets)


def ipfix(
    records: Sequence[Record],
    *,
    templates: bool = True,
    sampling: int = 0,
    domain: int = 7,
    reverse: Sequence[tuple[int, int]] = (),
) -> bytes:
    """Return a message of IPFIX; ``reverse`` has packets and bytes of the other direction."""
    sets = []
    fields: tuple[tuple[int, int], ...] = ((152, 8), (153, 8), (82, 0xFFFF))
    more = b""
    count = len(V4) + len(fields)
    if reverse:
        more = struct.pack(">HHIHHI", 0x8000 | 2, 8, 29305, 0x8000 | 1, 8, 29305)
        count += 2
    if templates:
        for number, ends in ((256, V4), (257, V6)):
            body = template(number, ends + fields)
            sets.append(flow_set(2, struct.pack(">HH", number, count) + body[4:] + more))
    if sampling:
        # Scope selectorId (302); then samplingPacketInterval (305) and samplingPacketSpace (306).
        body = struct.pack(">HHHHHHHHH", 300, 3, 1, 302, 4, 305, 4, 306, 4)
        sets.append(flow_set(3, body))
        sets.append(flow_set(300, struct.pack(">III", 0, 1, sampling - 1)))
    for number, size in ((256, 8), (257, 32)):
        made = b""
        for at, r in enumerate(records):
            if len(r.addresses) != size:
                continue
            times = [BEGAN * 1000 + r.first_ms, BEGAN * 1000 + r.last_ms]
            name = b"eth0" if at % 2 else b"x" * 300
            long = bytes([len(name)]) if len(name) < 255 else struct.pack(">BH", 255, len(name))
            made += _values(r, struct.pack(">QQ", *times)) + long + name
            if reverse:
                made += struct.pack(">QQ", *reverse[at])
        if made:
            sets.append(struct.pack(">HH", number, 4 + len(made)) + made)
    body = b"".join(sets)
    return struct.pack(">HHIII", 10, 16 + len(body), BEGAN, 1, domain) + body


def sflow(
    packets: Sequence[bytes],
    rate: int = 100,
    *,
    agent: str = "10.9.9.9",
    up_ms: int = 5000,
    expanded: bool = False,
    counters: bool = False,
) -> bytes:
    """Return a datagram of sFlow v5 with a raw header for each IP packet."""
    samples = []
    for number, packet in enumerate(packets):
        frame = ethernet(packet)
        length = on_wire(packet) + 14
        padded = frame + bytes(-len(frame) % 4)
        record = struct.pack(">IIII", 1, length + 4, 4, len(frame)) + padded
        record = struct.pack(">II", 1, len(record)) + record
        if expanded:
            head = struct.pack(">IIIIIIIIIII", number, 0, 3, rate, 0, 0, 0, 1, 0, 2, 1)
        else:
            head = struct.pack(">IIIIIIII", number, 3, rate, 0, 0, 1, 2, 1)
        body = head + record
        samples.append(struct.pack(">II", 3 if expanded else 1, len(body)) + body)
    if counters:
        samples.append(struct.pack(">II", 2, 12) + struct.pack(">III", 1, 3, 0))
    address = packed(agent)
    start = struct.pack(">II", 5, 1 if len(address) == 4 else 2) + address
    start += struct.pack(">IIII", 0, 1, up_ms, len(samples))
    return start + b"".join(samples)


def exported(messages: Iterable[tuple[float, bytes]], port: int, sender: str) -> bytes:
    """Return a capture of a collector's traffic: each message in a UDP packet from ``sender``."""
    return pcap((at, udp(sender, "10.250.0.1", 40000, port, data)) for at, data in messages)
