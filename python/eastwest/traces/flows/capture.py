"""Packet captures: pcap (both byte orders, µs and ns) and pcapng.

Sources: the Internet-Drafts draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng. A capture can have
fewer bytes of a packet than were on the wire (snap length). If a capture ends inside a packet, the
packets before this packet are read. A Simple Packet Block has no time: the packet gets the time of
the previous packet.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from eastwest.account import Account
from eastwest.errors import InputError
from eastwest.traces.flows.stream import Stream
from eastwest.units import count

#: By the magic number at the start of a pcap file: (byte order for ``struct``, nanoseconds per unit
#: of the sub-second part of a time stamp).
_PCAP = {
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\x3c\x4d": (">", 1),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
}
_SECTION = b"\x0a\x0d\x0d\x0a"
#: Byte order of a section of pcapng, for ``struct``, by the byte-order magic in the section header.
_ORDERS = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}
#: Types of pcapng blocks: interface description, and packet (obsolete, simple, enhanced).
_IDB, _OPB, _SPB, _EPB = 1, 2, 3, 6
#: Maximum number of captured bytes of a packet.
MOST_PACKET = 1 << 20
#: Maximum length of a block of pcapng, in bytes.
_MOST_BLOCK = 16 << 20
#: Maximum number of interfaces of a section of pcapng.
_MOST_INTERFACES = 65_536
#: Codes of two options of an interface description: resolution of time stamps (``if_tsresol``), and
#: offset of time stamps in seconds (``if_tsoffset``).
_TSRESOL, _TSOFFSET = 9, 14


class Captured(NamedTuple):
    """Packet of a capture, not yet decoded: number, time, link-layer type, bytes and length."""

    #: Number of the packet in its file, from 1.
    number: int
    #: Time at which the packet was captured, in ns since 1970.
    time_ns: int
    #: Link-layer type of the packet: its number in the registry of tcpdump.org.
    link: int
    #: Captured bytes of the packet, from its link-layer header on; they may be fewer than
    #: ``length``.
    data: bytes
    #: Length of the packet on the wire, in bytes.
    length: int


def looks_like(start: bytes) -> bool:
    """Whether the first bytes of a file (at least 12) are those of a pcap or pcapng capture."""
    return start[:4] in _PCAP or (start[:4] == _SECTION and start[8:12] in _ORDERS)


def packets(stream: Stream, account: Account) -> Iterator[Captured]:
    """Yield the packets of a capture up to the end, or up to damage that hides all later packets.

    Damage is reported to ``account``. Raises ``InputError`` if the file is not a capture, or if
    ``account.stop`` is set and the file is damaged.
    """
    if stream.peek(4) in _PCAP:
        yield from _classic(stream, account)
    elif looks_like(stream.peek(12)):
        yield from _Blocks(stream, account).packets()
    else:
        raise InputError(f"{stream.name}: is not a capture in the format pcap or pcapng")


def _classic(stream: Stream, account: Account) -> Iterator[Captured]:
    head = stream.take(24)
    if len(head) < 24:
        raise InputError(f"{stream.name}: ends inside the header of the capture")
    order, unit = _PCAP[head[:4]]
    link = struct.unpack(order + "I", head[20:])[0] & 0xFFFF
    record, second, number = struct.Struct(order + "IIII"), 10**9, 0
    while start := stream.take(16):
        number += 1
        if len(start) < 16:
            _cut(stream, account, number)
            return
        seconds, fraction, captured, length = record.unpack(start)
        if captured > MOST_PACKET:
            _damaged(
                stream,
                account,
                number,
                f"the header of a packet is damaged: it states more than {MOST_PACKET:,} captured "
                "bytes, the maximum",
                captured,
            )
            return
        data = stream.take(captured)
        if len(data) < captured:
            _cut(stream, account, number)
            return
        yield Captured(number, seconds * second + fraction * unit, link, data, length)


class _Interface(NamedTuple):
    #: Link-layer type of the interface: its number in the registry of tcpdump.org.
    link: int
    #: Nanoseconds per unit of time stamps, as a fraction: ``numerator`` / ``denominator``.
    numerator: int
    denominator: int
    #: Time in ns since 1970 to which the time stamps of the interface are relative.
    offset_ns: int
    #: Maximum number of captured bytes of a packet (snap length); 0: no limit.
    snap: int


class _Blocks:
    """Reader of a pcapng file, which consists of blocks in sections."""

    def __init__(self, stream: Stream, account: Account) -> None:
        self.stream = stream
        self.account = account
        self.order = "<"
        self.interfaces: list[_Interface] = []
        self.number = 0
        self.time_ns = 0

    def packets(self) -> Iterator[Captured]:
        """Yield the packets of all sections of the pcapng file."""
        while (found := self._block()) is not None:
            kind, body = found
            if kind == _IDB:
                self._interface(body)
            elif kind in {_EPB, _OPB, _SPB}:
                self.number += 1
                packet = self._packet(kind, body)
                if packet is None:
                    self._wrong(
                        "packet block that is damaged, or whose interface was not described before"
                    )
                    continue
                yield packet

    def _block(self) -> tuple[int, bytes] | None:
        """Return (type, body) of the next block; None at the end of the file or after damage.

        A section header also sets the byte order, and removes the interfaces of the previous
        section.
        """
        at = self.stream.at
        head = self.stream.take(8)
        if not head:
            return None
        if head[:4] == _SECTION:
            magic = self.stream.peek(4)
            if magic not in _ORDERS:
                return self._stop("a section header has no byte-order magic", at, len(magic) < 4)
            self.order = _ORDERS[magic]
            self.interfaces = []
        kind, total, wrong = 0, 0, ""
        if len(head) == 8:
            kind, total = struct.unpack(self.order + "II", head)
            if total < 12 or total % 4 or total > _MOST_BLOCK:
                return self._stop(
                    f"a block states a length of {total} bytes; allowed: multiples of 4 from 12 to "
                    f"{_MOST_BLOCK:,}",
                    at,
                    False,
                )
        body = self.stream.take(max(0, total - 8))
        cut = len(head) < 8 or len(body) < total - 8
        if not cut and struct.unpack(self.order + "I", body[-4:])[0] != total:
            wrong = "the lengths at the start and at the end of a block differ"
        return self._stop(wrong, at, cut) if cut or wrong else (kind, body[:-4])

    def _stop(self, what: str, at: int, cut: bool) -> tuple[int, bytes] | None:
        """Report a truncated or damaged block; return None, which ends the reading.

        ``what`` describes the damage, ``at`` is the position of the block's first byte in the file,
        ``cut`` is true if the file ends inside the block.
        """
        if cut:
            _cut(self.stream, self.account, self.number + 1)
        else:
            _damaged(self.stream, self.account, self.number + 1, what, at)
        return None

    def _wrong(self, reason: str) -> None:
        self.account.bad(self.stream.name, self.number, reason)

    def _interface(self, body: bytes) -> None:
        if len(body) < 8 or len(self.interfaces) == _MOST_INTERFACES:
            raise InputError(
                f"{self.stream.name}: byte {count(self.stream.at)}: an interface block is damaged, "
                f"or its section has more than {_MOST_INTERFACES:,} interfaces, the maximum"
            )
        link, _, snap = struct.unpack(self.order + "HHI", body[:8])
        numerator, denominator, offset = 1000, 1, 0
        at = 8
        while at + 4 <= len(body):
            code, length = struct.unpack(self.order + "HH", body[at : at + 4])
            value = body[at + 4 : at + 4 + length]
            if code == 0:
                break
            if code == _TSRESOL and length == 1 and value:
                power = min(value[0] & 0x7F, 64)
                base = 2 if value[0] & 0x80 else 10
                numerator, denominator = 10**9, base**power
            elif code == _TSOFFSET and length == 8 and len(value) == 8:
                offset = struct.unpack(self.order + "q", value)[0] * 10**9
            at += 4 + (length + 3) // 4 * 4
        self.interfaces.append(_Interface(link, numerator, denominator, offset, snap))

    def _packet(self, kind: int, body: bytes) -> Captured | None:
        if kind == _SPB:
            if len(body) < 4 or not self.interfaces:
                return None
            length = struct.unpack(self.order + "I", body[:4])[0]
            captured = min(length, self.interfaces[0].snap or length)
            data = body[4 : 4 + captured]
            then = "it gets the time of the previous packet"
            self.account.note(
                self.stream.name, self.number, "a packet block without a time", consequence=then
            )
            link = self.interfaces[0].link
            return Captured(self.number, self.time_ns, link, data, length)
        if len(body) < 20:
            return None
        if kind == _OPB:
            which, _, high, low, captured, length = struct.unpack(self.order + "HHIIII", body[:20])
        else:
            which, high, low, captured, length = struct.unpack(self.order + "IIIII", body[:20])
        data = body[20 : 20 + captured]
        if which >= len(self.interfaces) or len(data) < captured:
            return None
        face = self.interfaces[which]
        self.time_ns = (high << 32 | low) * face.numerator // face.denominator + face.offset_ns
        return Captured(self.number, self.time_ns, face.link, data, length)


def _cut(stream: Stream, account: Account, number: int) -> None:
    then = "the packets before it are used"
    account.note(stream.name, number, "the capture ends inside a packet", consequence=then)


def _damaged(stream: Stream, account: Account, number: int, what: str, found: int) -> None:
    """Report damage that hides all later packets.

    ``number`` is the number of the next packet; ``what`` describes the damage; ``found`` is the
    wrong length, or the position of the damaged block. Raises ``InputError`` if ``account.stop`` is
    set.
    """
    then = "the packets before it are used"
    reason = f"{what} (the reader stopped at byte {stream.at:,} of the capture)"
    account.bad(stream.name, number, reason, str(found), consequence=then)
