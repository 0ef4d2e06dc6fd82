"""Text of nfdump: ``-o csv``, ``pipe``, ``line``, ``long``, ``extended`` and ``biline``.

Columns of CSV are found by the names in the first line. nfdump prints local times without a time
zone; they are treated as UTC. ``csv`` has whole seconds, the other formats have milliseconds. In
``line``, ``long``, ``extended`` and ``biline``, sizes above a million are rounded to tenths of a
unit (``12.6 M``) unless nfdump was called with ``-N``, and IPv6 addresses are shortened unless
nfdump was called with ``-6``. Shortened addresses are refused.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from eastwest.traces.flows.collect import Collector
from eastwest.traces.source import Source

_MOST_LINE = 1 << 16
_MOST = 1 << 63
#: Names that a column of nfdump's CSV can have, by the name of the column in this module.
_NAMES = {
    "first": ("ts", "firstSeen", "first"),
    "last": ("te", "lastSeen", "last"),
    "duration": ("td", "duration"),
    "src": ("sa", "srcAddr", "srcaddr"),
    "dst": ("da", "dstAddr", "dstaddr"),
    "sport": ("sp", "srcPort", "srcport"),
    "dport": ("dp", "dstPort", "dstport"),
    "protocol": ("pr", "proto"),
    "packets": ("ipkt", "inPackets", "packets"),
    "bytes": ("ibyt", "inBytes", "bytes"),
    "back_packets": ("opkt", "outPackets"),
    "back_bytes": ("obyt", "outBytes"),
    "router": ("ra", "exporterIP"),
}
#: Columns that a heading of nfdump's CSV must have.
_NEEDED = ("first", "src", "dst", "sport", "dport", "protocol", "packets", "bytes")
_PROTOCOLS = {"TCP": 6, "UDP": 17}
_DATE = re.compile(rb"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")
_DURATION = re.compile(rb"(?:(\d{1,4})d\s?)?(?:(\d\d):(\d\d):)?(\d{1,9})(?:\.(\d{1,9}))?")
_WHOLE = re.compile(rb"\d{1,19}")
_SCALED = re.compile(rb"\d{1,9}\.\d")
_UNITS = {b"K": 10**3, b"M": 10**6, b"G": 10**9, b"T": 10**12}
_PIPE = re.compile(rb"(2|10)\|\d{1,14}\|")
_HEADING = re.compile(rb"Date (first seen|flow start)")
_ROW = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
#: (Position of packets, position of bytes) among the columns after both addresses, by the number of
#: these columns.
_AFTER = {3: (0, 1), 5: (2, 3), 8: (2, 3)}


def looks_like(start: bytes) -> bool:
    """Whether the first bytes of a file are text of nfdump."""
    line = start.lstrip().partition(b"\n")[0]
    if _HEADING.match(line) or _PIPE.match(line):
        return True
    if _ROW.match(line) and b"->" in line:
        return True
    return _columns(line) is not None


def read(source: Source, collector: Collector) -> None:
    """Read the records of a file of nfdump, and add them to a collector."""
    reader: Callable[[bytes, int], str] | None = None
    rows = _Rows(source.name, collector)
    for number, line in source.lines(_MOST_LINE):
        text = line.strip()
        if not text:
            continue
        if reader is None or _HEADING.match(text):
            reader, heading = rows.reader(text)
            if heading:
                continue
        if text.startswith((b"Summary", b"Time window", b"Total flows", b"Sys:")):
            break
        if b"no matching flow" in text.lower():
            continue
        problem = reader(text, number)
        if problem:
            collector.account.bad(
                source.name, number, problem, text[:60].decode("utf-8", "replace")
            )
    collector.account.end(source.name, 0, source.cut)


class _Traffic(NamedTuple):
    """5-tuple of a record, and the times of its first and last packet in ns since 1970."""

    ends: tuple[bytes, bytes, int, int, int]
    times_ns: tuple[int, int]


class _Rows:
    def __init__(self, name: str, collector: Collector) -> None:
        self.name = name
        self.collector = collector
        self.columns: dict[str, int] = {}
        self.observer = collector.observer("text")

    def reader(self, first: bytes) -> tuple[Callable[[bytes, int], str], bool]:
        """Return (method that reads rows of the file's format, whether ``first`` is a heading).

        ``first`` is the first line of the file: a heading, or a row if there is no heading.
        """
        columns = _columns(first)
        if columns is not None:
            self.columns = columns
            return self.comma, True
        if _PIPE.match(first):
            return self.pipe, False
        return self.line, bool(_HEADING.match(first))

    def add(
        self, number: int, traffic: _Traffic, octets: int, packets: int, observer: int | None = None
    ) -> None:
        """Add one record to the collector.

        ``number``: line of the record; ``octets``: IP bytes; ``observer``: number of the router in
        the collector, None if the record names no router.
        """
        at = self.observer if observer is None else observer
        place = (self.name, number)
        self.collector.flow_record(place, at, *traffic, octets, packets, 1)

    def comma(self, text: bytes, number: int) -> str:
        """Add a row of CSV to the collector; return the reason if it is unusable, else empty.

        ``number`` is the line number of the row.
        """
        cells = [cell.strip() for cell in text.split(b",")]
        if len(cells) <= max(self.columns.values()):
            return "row with too few columns"
        row = {name: cells[at] for name, at in self.columns.items()}
        first, counts = _time(row["first"]), [_whole(row["packets"]), _whole(row["bytes"])]
        back = [_whole(row.get(name, b"0")) for name in ("back_packets", "back_bytes")]
        ends = _ends(row["src"], row["dst"], row["protocol"], row["sport"], row["dport"])
        if first is None or None in counts or None in back or isinstance(ends, str):
            return ends if isinstance(ends, str) else "row without date, packets or bytes"
        length, last = _duration(row.get("duration", b"")), _time(row.get("last", b""))
        if last is None or (length is not None and last >= first):
            if length is None and (row.get("duration") or row.get("last")):
                return "row whose duration or end is not a time"
            last = first + (length or 0)
        observer = None
        if any(c not in b"0.:" for c in row.get("router", b"")):
            observer = self.collector.observer("router " + row["router"].decode("utf-8", "replace"))
        traffic = _Traffic(ends, (first, last))
        self.add(number, traffic, counts[1] or 0, counts[0] or 0, observer)
        if back[1]:
            self.add(number, _turned(traffic), back[1], back[0] or 0, observer)
        return ""

    def pipe(self, text: bytes, number: int) -> str:
        """Add a row of the output of ``nfdump -o pipe`` to the collector.

        All cells of the format are whole numbers. ``number`` is the line number of the row. Returns
        the reason if the row is unusable, else an empty text.
        """
        cells = text.split(b"|")
        if len(cells) not in {22, 24}:
            return "row of pipe format whose number of columns is not 22 or 24"
        found = [_whole(cell) for cell in cells]
        if None in found:
            return "row of pipe format with a cell that is not a whole number"
        whole = [value or 0 for value in found]
        # Older versions of nfdump write seconds and milliseconds in two columns each.
        first, last, rest = whole[1], whole[2], whole[3:]
        if len(cells) == 24:
            first, last = 1000 * whole[1] + whole[2], 1000 * whole[3] + whole[4]
            rest = whole[5:]
        words = [*rest[1:5], *rest[6:10]]
        if max(words) >= 1 << 32 or max(rest[5], rest[10]) >= 1 << 16:
            return "row of pipe format with an address or port that is too large"
        packed = b"".join(word.to_bytes(4, "big") for word in words)
        src, dst = packed[:16], packed[16:]
        if whole[0] == 2:
            src, dst = src[12:], dst[12:]
        traffic = _Traffic((src, dst, rest[0], rest[5], rest[10]), (first * 10**6, last * 10**6))
        self.add(number, traffic, rest[-1], rest[-2])
        return ""

    def line(self, text: bytes, number: int) -> str:
        """Add a row of ``-o line``, ``long``, ``extended`` or ``biline`` to the collector.

        ``number`` is the line number of the row. The result is the reason if the row is unusable,
        else empty.
        """
        words = text.split()
        arrow = next((w for w in (b"->", b"<->") if w in words), b"")
        at = words.index(arrow) if arrow else 0
        if at < 4 or len(words) < at + 4:
            return "row that is not in a format of nfdump (csv, pipe, line, long, extended, biline)"
        first, length = _time(b" ".join(words[:2])), _duration(b" ".join(words[2 : at - 2]))
        (src, sport), (dst, dport) = _port(words[at - 1]), _port(words[at + 1])
        ends = _ends(src, dst, words[at - 2], sport, dport)
        if isinstance(ends, str):
            return ends
        counts = list(_counts(words[at + 2 :]))
        if first is None or length is None:
            return "row without date or duration"
        traffic = _Traffic(ends, (first, first + length))
        where = (2, 4) if arrow == b"<->" else _AFTER.get(len(counts), (0, 0))
        if arrow == b"<->" and len(counts) == 5:
            where = (1, 3)
        if where == (0, 0) or max(where) >= len(counts):
            return "row whose number of columns fits no output format of nfdump"
        packets, octets = (_size(counts[i]) for i in where)
        if packets is None or octets is None:
            return "row whose packets or bytes are not a number"
        if any(len(counts[i].split()) == 2 for i in where):
            reason = "size that nfdump rounded to tenths of a unit"
            then = "its error is up to 5 %: nfdump -N writes exact numbers"
            self.collector.account.note(self.name, number, reason, consequence=then)
        self.add(number, traffic, octets, packets)
        if arrow == b"<->":
            more, other = _size(counts[where[0] - 1]), _size(counts[where[1] - 1])
            if other:
                self.add(number, _turned(traffic), other, more or 0)
        return ""


def _columns(line: bytes) -> dict[str, int] | None:
    """Return the position of each known column in a heading of CSV, by the names of ``_NAMES``.

    The result is None if the line is not a heading of nfdump's CSV.
    """
    names = [name.strip().decode("utf-8", "replace") for name in line[:4096].split(b",")]
    found = {
        meaning: names.index(name)
        for meaning, known in _NAMES.items()
        if (name := next((n for n in known if n in names), None)) is not None
    }
    return found if all(name in found for name in _NEEDED) else None


def _turned(traffic: _Traffic) -> _Traffic:
    src, dst, protocol, sport, dport = traffic.ends
    return _Traffic((dst, src, protocol, dport, sport), traffic.times_ns)


def _ends(
    src: bytes, dst: bytes, protocol: bytes, sport: bytes, dport: bytes
) -> tuple[bytes, bytes, int, int, int] | str:
    """Return (source address, destination address, protocol, source port, destination port).

    The addresses are packed. If a value of the row is not valid, the result is a text with the
    reason.
    """
    name = protocol.decode("ascii", "replace").upper()
    number = _PROTOCOLS.get(name, int(name) if name.isascii() and name.isdigit() else 0)
    ports = [_whole(port) for port in (sport, dport)]
    if number not in _PROTOCOLS.values():
        ports = [0, 0]  # for other protocols, such as ICMP, the columns of ports have other values
    if any(port is None or port >= 1 << 16 for port in ports):
        return "row with a port that is not a number from 0 to 65535"
    packed = []
    for address in (src, dst):
        text = address.decode("ascii", "replace")
        if ".." in text:
            return "row with a shortened IPv6 address: nfdump -6 writes it completely"
        try:
            packed.append(ipaddress.ip_address(text).packed)
        except ValueError:
            return "row with an address that is neither IPv4 nor IPv6"
    if len(packed[0]) != len(packed[1]):
        return "row with one IPv4 and one IPv6 address"
    return packed[0], packed[1], min(number, 255), ports[0] or 0, ports[1] or 0


def _port(word: bytes) -> tuple[bytes, bytes]:
    """Return (address, port) from a text such as ``10.0.0.1:80`` or ``2001:db8::1.80``.

    In rows of ICMP, a dot and not a colon separates an IPv4 address from its port.
    """
    if word.count(b":") == 1:
        address, _, port = word.partition(b":")
        return address, port
    address, _, port = word.rpartition(b".")
    return address, port


def _counts(words: list[bytes]) -> Iterator[bytes]:
    """Yield each number in ``words``, followed by a space and its unit if it has one (``12.6 M``).

    ``words`` are those after the addresses of a row.
    """
    held = b""
    for word in words:
        if word in _UNITS and held:
            yield held + b" " + word
            held = b""
            continue
        if held:
            yield held
        held = word
    if held:
        yield held


def _size(text: bytes) -> int | None:
    number, _, unit = text.partition(b" ")
    if unit and _SCALED.fullmatch(number):
        return round(float(number) * _UNITS[unit])
    return _whole(number) if not unit else None


def _whole(text: bytes) -> int | None:
    value = int(text) if _WHOLE.fullmatch(text) else None
    return value if value is None or value < _MOST else None


def _time(text: bytes) -> int | None:
    """Return a time in ns since 1970 from a date (as UTC) or a number of s or ms; else None."""
    if (only := _whole(text)) is not None:
        # large numbers are milliseconds, others seconds
        return only * 10**6 if only > 10**11 else only * 10**9
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    try:
        year, month, day, hour, minute, second = map(int, found.groups()[:6])
        date = datetime.datetime(year, month, day, hour, minute, second, tzinfo=datetime.UTC)
    except ValueError:
        return None
    return int(date.timestamp()) * 10**9 + int((found[7] or b"0").ljust(9, b"0"))


def _duration(text: bytes) -> int | None:
    """Return a duration in ns from ``2.856`` (seconds) or ``1d 00:00:02.856``; else None."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[:4])
    whole = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return whole * 10**9 + int((found[5] or b"0").ljust(9, b"0"))
