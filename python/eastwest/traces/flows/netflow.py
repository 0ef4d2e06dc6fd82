"""Export messages of NetFlow v5, NetFlow v9 (RFC 3954) and IPFIX (RFC 7011).

A file is a sequence of messages: export packets written one after the other, or the IPFIX file
format (RFC 5655). A v9 message does not state its length: it ends where the number of the next set
would be 2 to 255, because no set of v9 has such a number, but the version of the next message, 9,
has. Fields have the numbers of IANA's registry *IP Flow Information Export Entities*.

Templates and sampling rates belong to an exporter and one of its source ids or observation domains.
A data set that comes before its template is left out. A biflow (RFC 5103, reverse counters of
enterprise 29305), or a record with counters of initiator and responder, becomes two records.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from eastwest.traces.flows.collect import Collector
from eastwest.traces.flows.stream import Stream

V5, V9, IPFIX = 5, 9, 10
#: Size in bytes of the header of an export message, by version.
_HEADS = {V5: 24, V9: 20, IPFIX: 16}
_V5_RECORD = struct.Struct(">4s4s8xIIIIHHxxB9x")
#: Maximum number of records in a v5 message, of templates and samplers of all exporters together,
#: and of fields in a template.
_MOST_V5, _MOST_TEMPLATES, _MOST_FIELDS = 1000, 50_000, 2000
#: Maximum size of a v9 message, in bytes.
_MOST_V9 = 1 << 20
#: Enterprise number of the fields that count the reverse direction of a biflow (RFC 5103).
_REVERSE = 29305
#: Length in a template that means a variable length (RFC 7011, section 7).
_VARIABLE = 0xFFFF
#: Fields that state a sampling rate: name in this module, by the number in IANA's registry.
_SAMPLING = {34: "interval", 50: "interval", 305: "sampled", 306: "space", 309: "size"}
_SAMPLING |= {310: "population", 311: "probability", 48: "sampler", 302: "sampler"}
#: All fields that are read: name in this module, by the number in IANA's registry; other fields are
#: skipped.
_FIELDS = {
    1: "bytes",
    2: "packets",
    4: "protocol",
    7: "sport",
    8: "src4",
    11: "dport",
    12: "dst4",
    21: "last_up",
    22: "first_up",
    23: "out_bytes",
    24: "out_packets",
    27: "src6",
    28: "dst6",
    61: "direction",
    85: "total_bytes",
    86: "total_packets",
    150: "first_s",
    151: "last_s",
    152: "first_ms",
    153: "last_ms",
    154: "first_ntp",
    155: "last_ntp",
    156: "first_ntp",
    157: "last_ntp",
    158: "first_before_us",
    159: "last_before_us",
    160: "up_since_ms",
    161: "length_ms",
    162: "length_us",
    231: "initiator_bytes",
    232: "responder_bytes",
    298: "initiator_packets",
    299: "responder_packets",
    313: "section",
    314: "section",
    315: "section",
    322: "seen_s",
    323: "seen_ms",
} | _SAMPLING
#: Fields that count the reverse direction of a biflow: name in this module, by the field's number.
_REVERSE_FIELDS = {1: "back_bytes", 2: "back_packets", 85: "back_bytes", 86: "back_packets"}
_REVERSE_FIELDS |= {23: "back_bytes", 24: "back_packets"}
_MS, _S = 10**6, 10**9
#: Half the range of a counter of ms with 32 bits.
_HALF_MS = 1 << 31
#: Seconds from 1 January 1900, where NTP time begins, to 1 January 1970.
_NTP = 2_208_988_800
_CUT = "the file ends inside a message"


class _Field(NamedTuple):
    #: Name in ``_FIELDS``; empty for a field that is skipped.
    name: str
    #: Length in bytes; ``_VARIABLE`` if each record states it.
    length: int


class _Template(NamedTuple):
    fields: tuple[_Field, ...]
    #: Size of a record in bytes; the minimum size if fields have a variable length.
    size: int
    #: Whether a field has a variable length.
    variable: bool
    #: Whether the records describe the exporter (options template), not flows.
    options: bool


@dataclass
class _Exporter:
    """Templates and sampling rates of an exporter for one source id or observation domain."""

    #: Number of the exporter, with the source id or observation domain, in the collector.
    observer: int
    templates: dict[int, _Template] = field(default_factory=dict)
    #: Sampling rate N (1 in N) by number of the sampler; a rate without a sampler has the number 0.
    rates: dict[int, int] = field(default_factory=dict)
    #: Start of the exporter's uptime clock in ns since 1970, if IPFIX states it; else None.
    booted_ns: int | None = None


def looks_like(start: bytes) -> bool:
    """Whether the first bytes of a file or payload are a NetFlow or IPFIX export message."""
    if len(start) < 20:
        return False
    version, second = (int.from_bytes(start[at : at + 2], "big") for at in (0, 2))
    if version == V5:
        return 0 < second <= _MOST_V5 and int.from_bytes(start[12:16], "big") < _S
    head = _HEADS.get(version, 0)
    if not head or len(start) < head + 4:
        return False
    number, length = (int.from_bytes(start[at : at + 2], "big") for at in (head, head + 2))
    if version == V9:
        return (number < 2 or number >= 256) and length >= 4
    return second >= 20 and (number in {2, 3} or number >= 256) and length >= 4


class Reader:
    """Reader of NetFlow and IPFIX export messages: adds the flow records to a collector."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.account = collector.account
        self._exporters: dict[str, _Exporter] = {}
        self._templates = 0

    def raw(self, stream: Stream) -> None:
        """Read all messages of a file, and add the records to the collector."""
        number = 0
        while stream.peek(1):
            number += 1
            place = (stream.name, number)
            at = stream.at
            data, problem = _one(stream)
            if problem == _CUT:
                then = "the records before the end of the file are used"
                self.account.note(*place, _CUT, consequence=then)
                self.message(data, place, cut=True)
                return
            if problem:
                self.account.bad(*place, f"{problem} (byte {at:,})")
                return
            self.message(data, place)

    def message(
        self,
        data: bytes,
        place: tuple[str, int],
        exporter: str = "",
        *,
        cut: bool = False,
    ) -> None:
        """Read one message, and add the records to the collector.

        ``place``: (file, number of the message) for reports. ``exporter``: address of the sender;
        empty if unknown. ``cut``: the file ends inside the message, so missing parts are no error.
        """
        version = int.from_bytes(data[:2], "big")
        if version not in _HEADS or len(data) < _HEADS[version]:
            if not cut:
                self.account.bad(
                    *place,
                    "message of a version other than 5, 9 and 10, or shorter than its header",
                    "",
                )
            return
        if version == V5:
            self._v5(data, place, exporter, cut=cut)
            return
        if version == V9:
            up_ms, unix_s, _, domain = struct.unpack_from(">IIII", data, 4)
            booted = unix_s * _S - up_ms * _MS
        else:
            unix_s, _, domain = struct.unpack_from(">III", data, 4)
            booted = None
            data = data[: int.from_bytes(data[2:4], "big")]
        known = self._exporter(f"exporter {exporter} {version} {domain}")
        sets = _Sets(self, known, version, unix_s * _S, booted, place)
        sets.read(data, _HEADS[version], cut=cut)

    def _exporter(self, name: str) -> _Exporter:
        known = self._exporters.get(name)
        if known is None:
            known = self._exporters[name] = _Exporter(self.collector.observer(name))
        return known

    def counted_template(self, place: tuple[str, int]) -> bool:
        """Count a new template or sampler; return False if there are too many to store it.

        ``place`` is (file, number of the message) for the report if there are too many.
        """
        self._templates += 1
        if self._templates > _MOST_TEMPLATES:
            self.account.bad(
                *place,
                f"there are more than {_MOST_TEMPLATES:,} templates and samplers, which "
                "is the maximum",
            )
            return False
        return True

    def _v5(self, data: bytes, place: tuple[str, int], exporter: str, *, cut: bool) -> None:
        records, up_ms, unix_s, unix_ns, _, engine, sampling = struct.unpack_from(
            ">HIIIIHH", data, 2
        )
        booted = unix_s * _S + unix_ns - up_ms * _MS
        observer = self.collector.observer(f"exporter {exporter} 5 {engine}")
        rate = max(1, sampling & 0x3FFF)
        for number in range(records):
            at = 24 + 48 * number
            if at + 48 > len(data):
                if not cut:
                    reason = "message of NetFlow v5 with fewer records than its header states"
                    self.account.bad(*place, reason, f"{records} stated records")
                return
            src, dst, packets, octets, first, last, sport, dport, protocol = _V5_RECORD.unpack_from(
                data, at
            )
            ends = (src, dst, protocol, sport, dport)
            sent = booted + up_ms * _MS
            times = _unwrapped(booted + first * _MS, booted + last * _MS, sent)
            self.collector.flow_record(place, observer, ends, times, octets, packets, rate)


class _Sets:
    """Reader of the sets (templates and data) in one message of NetFlow v9 or IPFIX."""

    def __init__(
        self,
        reader: Reader,
        exporter: _Exporter,
        version: int,
        sent_ns: int,
        booted_ns: int | None,
        place: tuple[str, int],
    ) -> None:
        self.reader = reader
        self.account = reader.account
        self.exporter = exporter
        self.version = version
        self.sent_ns = sent_ns
        self.booted_ns = booted_ns
        self.place = place

    def read(self, data: bytes, at: int, *, cut: bool) -> None:
        """Read the sets of the message ``data`` from byte ``at`` on.

        Templates are stored, and flow records are added to the collector. ``cut``: the file ends
        inside the message, so an incomplete set is no error.
        """
        first_template = 0 if self.version == V9 else 2
        while at + 4 <= len(data):
            number, length = struct.unpack_from(">HH", data, at)
            if length < 4 or at + length > len(data):
                if not cut:
                    reason = "message with a set of less than 4 bytes, or longer than the message"
                    self.account.bad(*self.place, reason, f"set {number} of {length} bytes")
                    return
                length = len(data) - at
            body = data[at + 4 : at + length]
            if number == first_template:
                self._templates(body, options=False)
            elif number == first_template + 1:
                self._templates(body, options=True)
            elif number >= 256:
                self._records(number, body)
            at += length

    def _templates(self, body: bytes, *, options: bool) -> None:
        at = 0
        while at + 4 <= len(body):
            number, fields = struct.unpack_from(">HH", body, at)
            at += 4
            if number == 0 and fields == 0:
                return None  # padding
            skip = 0
            if options and self.version == V9:
                if at + 2 > len(body):
                    return self._bad_template(number)
                scope, rest = fields, struct.unpack_from(">H", body, at)[0]
                skip, fields, at = scope // 4, (scope + rest) // 4, at + 2
            elif fields == 0:
                # a template without fields withdraws the template of this number
                self.exporter.templates.pop(number, None)
                continue
            elif options:
                skip = struct.unpack_from(">H", body, at)[0] if at + 2 <= len(body) else 0
                at += 2
            if number < 256 or fields > _MOST_FIELDS:
                return self._bad_template(number)
            found = list(self._fields(body, at, fields))
            if len(found) < fields:
                return self._bad_template(number)
            at += sum(4 + 4 * wide for _, _, wide in found)
            self._keep(number, found, skip, options=options)
        return None

    def _fields(self, body: bytes, at: int, fields: int) -> Iterator[tuple[str, int, bool]]:
        """Yield (name, length in bytes, whether the field has an enterprise number) of each field.

        The fields are those of a template; the name is empty for a field that is skipped. ``at`` is
        the position of the first field in ``body``, ``fields`` the number of fields.
        """
        for _ in range(fields):
            if at + 4 > len(body):
                return
            number, length = struct.unpack_from(">HH", body, at)
            at += 4
            wide = self.version == IPFIX and bool(number & 0x8000)
            if not wide:
                yield _FIELDS.get(number, ""), length, False
                continue
            if at + 4 > len(body):
                return
            enterprise = struct.unpack_from(">I", body, at)[0]
            at += 4
            name = _REVERSE_FIELDS.get(number & 0x7FFF, "") if enterprise == _REVERSE else ""
            yield name, length, True

    def _keep(
        self, number: int, found: list[tuple[str, int, bool]], skip: int, *, options: bool
    ) -> None:
        # Scope fields do not describe the record, except the number of the sampler (IPFIX:
        # selectorId).
        named = [
            _Field(name if at >= skip or name == "sampler" else "", length)
            for at, (name, length, _) in enumerate(found)
        ]
        size = sum(1 if each.length == _VARIABLE else each.length for each in named)
        variable = self.version == IPFIX and any(each.length == _VARIABLE for each in named)
        if number not in self.exporter.templates and not self.reader.counted_template(self.place):
            return
        self.exporter.templates[number] = _Template(tuple(named), size, variable, options)

    def _bad_template(self, number: int) -> None:
        self.account.bad(*self.place, "template that is damaged", f"template {number}")

    def _records(self, number: int, body: bytes) -> None:
        template = self.exporter.templates.get(number)
        if template is None:
            reason = "data set whose template did not come before it"
            then = "it is left out: without the template, its fields are not known"
            self.account.note(*self.place, reason, f"template {number}", consequence=then)
            return
        if template.size == 0:
            self.account.bad(
                *self.place,
                "template whose records have a size of 0 bytes",
                f"template {number}",
            )
            return
        at = 0
        while at + template.size <= len(body):
            values, at = _values(template, body, at)
            if at > len(body):
                self.account.bad(
                    *self.place, "record with a field that is longer than the rest of its set"
                )
                return
            if template.options:
                self._sampler(values)
            else:
                self._record(values)

    def _sampler(self, values: Mapping[str, bytes]) -> None:
        """Store the sampling rate and the start of the uptime clock from an options record.

        ``values`` are the fields of the record, by name.
        """
        if "up_since_ms" in values:
            self.exporter.booted_ns = _int(values["up_since_ms"]) * _MS
        rate = _rate(values)
        if rate:
            number = _int(values.get("sampler", b""))
            if number in self.exporter.rates or self.reader.counted_template(self.place):
                self.exporter.rates[number] = rate

    def _record(self, values: Mapping[str, bytes]) -> None:
        collector, place = self.reader.collector, self.place
        src = values.get("src4") or values.get("src6") or b""
        dst = values.get("dst4") or values.get("dst6") or b""
        if not any(src) and values.get("src6"):
            src, dst = values["src6"], values.get("dst6", b"")
        if len(src) not in {4, 16} or len(src) != len(dst):
            what = (
                "record with the bytes of a sampled packet instead of a flow"
                if "section" in values
                else ("record without IP addresses")
            )
            collector.leave(place, what)
            return
        octets, packets = _counted(values)
        if octets is None:
            collector.leave(place, "record without a number of bytes")
            return
        if packets is None:
            collector.account.note(
                *place,
                "record without a number of packets",
                consequence="its bytes count as payload",
            )
        ends = (
            src,
            dst,
            _int(values.get("protocol", b"")),
            _int(values.get("sport", b"")),
            _int(values.get("dport", b"")),
        )
        rate = _rate(values) or self._rate(_int(values.get("sampler", b"")))
        times = self._times(values)
        observer = self.exporter.observer
        if values.get("direction") == b"\1":
            observer = collector.observer(f"egress of {observer}")
        collector.flow_record(place, observer, ends, times, octets, packets or 0, rate)
        back = values.get("back_bytes") or values.get("responder_bytes")
        if back and _int(back):
            more = values.get("back_packets") or values.get("responder_packets") or b""
            turned = (dst, src, ends[2], ends[4], ends[3])
            collector.flow_record(place, observer, turned, times, _int(back), _int(more), rate)

    def _rate(self, sampler: int) -> int:
        rates = self.exporter.rates
        if sampler in rates:
            return rates[sampler]
        return next(iter(rates.values())) if len(rates) == 1 else 1

    def _times(self, values: Mapping[str, bytes]) -> tuple[int, int]:
        """Return (time of the first packet, time of the last packet) of a record, in ns since 1970.

        ``values`` are the fields of the record, by name. A record without times gets the time of
        its message, with a note.
        """
        first, last = self._time(values, "first"), self._time(values, "last")
        if first is None and last is None:
            seen = _int(values.get("seen_ms", b"")) * _MS or _int(values.get("seen_s", b"")) * _S
            if not seen:
                reason = "record without times"
                then = "it gets the time of its message"
                self.account.note(*self.place, reason, consequence=then)
            first = last = seen or self.sent_ns
        length = _int(values.get("length_ms", b"")) * _MS
        length = length or _int(values.get("length_us", b"")) * 1000
        if first is None:
            first = (last or 0) - length
        if last is None:
            last = first + length
        if "first_up" in values or "last_up" in values:
            return _unwrapped(first, last, self.sent_ns)
        return first, last

    def _time(self, values: Mapping[str, bytes], end: str) -> int | None:
        for unit, scale in (("ms", _MS), ("s", _S)):
            if value := values.get(f"{end}_{unit}"):
                return _int(value) * scale
        value = values.get(f"{end}_ntp", b"")
        if len(value) == 8:
            return (_int(value[:4]) - _NTP) * _S + (_int(value[4:]) * _S >> 32)
        if value := values.get(f"{end}_before_us"):
            return self.sent_ns - _int(value) * 1000
        if value := values.get(f"{end}_up"):
            booted = self.exporter.booted_ns if self.booted_ns is None else self.booted_ns
            if "up_since_ms" in values:
                booted = _int(values["up_since_ms"]) * _MS
            return None if booted is None else booted + _int(value) * _MS
        return None


def _counted(values: Mapping[str, bytes]) -> tuple[int | None, int | None]:
    """Return (IP bytes, packets) that a flow record counts; None for a missing number."""
    for octets, packets in (
        ("bytes", "packets"),
        ("total_bytes", "total_packets"),
        ("initiator_bytes", "initiator_packets"),
        ("out_bytes", "out_packets"),
    ):
        if octets in values:
            number = _int(values[packets]) if packets in values else None
            return _int(values[octets]), number
    return None, None


def _rate(values: Mapping[str, bytes]) -> int:
    """Return the sampling rate N (1 in N) that a record states; 0 if it states none."""
    found = {name: _int(value) for name, value in values.items() if name in _SAMPLING.values()}
    rate = found.get("interval", 0)
    if found.get("sampled"):
        rate = round((found["sampled"] + found.get("space", 0)) / found["sampled"])
    elif found.get("size") and found.get("population"):
        rate = round(found["population"] / found["size"])
    elif len(values.get("probability", b"")) == 8:
        share = struct.unpack(">d", values["probability"])[0]
        rate = round(1 / share) if 1e-9 < share <= 1 else 0
    return rate if 0 < rate < 1 << 32 else 0


def _values(template: _Template, body: bytes, at: int) -> tuple[dict[str, bytes], int]:
    """Return (values of the known fields of a record by name, position after the record).

    ``at`` is the position of the record in ``body``, the content of a data set. If the position is
    beyond the end of ``body``, the record is damaged.
    """
    values: dict[str, bytes] = {}
    for name, length in template.fields:
        if length == _VARIABLE and template.variable:
            size = int.from_bytes(body[at : at + 1], "big")
            at += 1
            if size == 255:
                size = int.from_bytes(body[at : at + 2], "big")
                at += 2
        else:
            size = length
        if name and name not in values:
            values[name] = body[at : at + size]
        at += size
    return values, at


def _int(value: bytes) -> int:
    return int.from_bytes(value, "big") if len(value) <= 8 else 0


def _unwrapped(first: int, last: int, sent: int) -> tuple[int, int]:
    """Return the times of a record from a counter of ms that wraps at 2³².

    All times are in ns. A time of more than 2³¹ ms after the message was sent is from before the
    wrap. If the last packet is then before the first, the counter has wrapped in between, unless
    the difference would be 2³¹ ms or more (as for serial numbers, RFC 1982): times of such a record
    stay in the wrong order.
    """
    half, wrap = _HALF_MS * _MS, 2 * _HALF_MS * _MS
    first, last = (time - wrap if time - sent > half else time for time in (first, last))
    if last < first and (last - first) % wrap < half:
        last = first + (last - first) % wrap
    return first, last


def _one(stream: Stream) -> tuple[bytes, str]:
    """Return (next message of a file, reason why it is unusable); the reason is empty if usable."""
    head = stream.peek(24)
    version = int.from_bytes(head[:2], "big")
    second = int.from_bytes(head[2:4], "big")
    if len(head) >= 2 and version not in _HEADS:
        return b"", f"message of version {version}; only versions 5, 9 and 10 (IPFIX) can be read"
    if len(head) < _HEADS.get(version, 24):
        return stream.take(24), _CUT
    if version == V9:
        return _one_v9(stream)
    length = 24 + 48 * second if version == V5 else second
    if length < _HEADS[version] or (version == V5 and second > _MOST_V5):
        return b"", f"message whose header is damaged: it states a length of {length} bytes"
    data = stream.take(length)
    return data, _CUT if len(data) < length else ""


def _one_v9(stream: Stream) -> tuple[bytes, str]:
    pieces = [stream.take(20)]
    total = 20
    while len(head := stream.peek(4)) == 4:
        number, length = struct.unpack(">HH", head)
        if 1 < number < 256:
            break
        if length < 4:
            return b"", f"message with set {number} of {length} bytes; a set has 4 bytes or more"
        total += length
        if total > _MOST_V9:
            return b"", f"message of more than {_MOST_V9:,} bytes, the maximum"
        piece = stream.take(length)
        pieces.append(piece)
        if len(piece) < length:
            return b"".join(pieces), _CUT
    if head and len(head) < 4:
        return b"".join([*pieces, stream.take(4)]), _CUT
    return b"".join(pieces), ""
