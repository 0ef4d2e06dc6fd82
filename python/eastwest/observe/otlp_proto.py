"""OpenTelemetry's spans in protobuf (OTLP 1.x): messages of ``TracesData``.

A file is one message, or several messages, each after its length: four bytes in big-endian order
(the Collector's file exporter) or a varint. The reader walks down field by field to the spans, and
opentelemetry-proto's own class parses each span, so memory holds one span at a time. Data of a span
that has no column is stored in ``extra``, in the form of OTLP's JSON (``carried``).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from eastwest.account import Account
from eastwest.errors import InputError
from eastwest.observe.carried import NOTHING, Shared, carried, shared
from eastwest.observe.gather import Gathering
from eastwest.observe.otlp_json import (
    CODES,
    KINDS,
    MOST_KEY,
    as_text,
    double,
    late_resource,
    left_field,
    mapping,
    rest_of,
    unknown,
)
from eastwest.observe.remarks import Remarks
from eastwest.observe.span import Place, SpanError, name_of, place_of, time_of, written
from eastwest.traces.source import Source
from eastwest.units import size

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

#: Maximum length of a span, resource or scope in bytes.
MOST_MESSAGE = 16 << 20
_BLOCK = 1 << 20
_MOST_DEPTH = 8
#: Tags (field number << 3 | wire type) of the fields that lead the reader to the spans.
_RESOURCE_SPANS = _RESOURCE = _SCOPE = 1 << 3 | 2
_SCOPE_SPANS = _SPANS = 2 << 3 | 2
_SCHEMA = 3 << 3 | 2


class WireError(ValueError):
    """Error: the bytes of the file are not valid protobuf."""


class _Wire:
    """Reader of the bytes of a file, from front to back."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._data = b""
        self._at = 0
        #: Number of bytes of the file that were returned or skipped so far.
        self.taken = 0

    def ready(self, length: int) -> bool:
        """Whether the file has ``length`` more bytes; loads them into the buffer."""
        while len(self._data) - self._at < length:
            block = self._source.read(_BLOCK)
            if not block:
                return False
            self._data = self._data[self._at :] + block
            self._at = 0
        return True

    def take(self, length: int) -> bytes:
        """Read and return the next ``length`` bytes; raise ``WireError`` if there are fewer."""
        if not self.ready(length):
            raise WireError("the file ends within a message")
        at = self._at
        self._at += length
        self.taken += length
        return self._data[at : at + length]

    def varint(self) -> int:
        """Read and return the next varint.

        Raises ``WireError`` if the file ends within it, or if it has more than ten bytes.
        """
        value = shift = 0
        while shift < 70:
            if self._at >= len(self._data) and not self.ready(1):
                raise WireError("the file ends within a message")
            byte = self._data[self._at]
            self._at += 1
            self.taken += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise WireError("a varint is longer than ten bytes")

    def skip(self, length: int) -> None:
        """Skip the next ``length`` bytes; raise ``WireError`` if there are fewer."""
        while length > 0:
            step = min(length, _BLOCK)
            self.take(step)
            length -= step


def looks_like(start: bytes) -> bool:
    """Whether a file may be OTLP in protobuf; ``start`` has its first bytes."""
    return _framing(start) is not None


def _framing(start: bytes) -> str | None:
    """Return how the messages of a file are framed, or None if the file is not OTLP.

    ``none``: the file is one message; ``fixed``: a length in four bytes precedes each message;
    ``varint``: a length as a varint precedes each message. ``start`` has the first bytes of the
    file.
    """
    if len(start) >= 6 and start[0] == 0 and start[4] == _RESOURCE_SPANS:
        return "fixed" if _inside(start[4:], int.from_bytes(start[:4])) else None
    if _inside(start, None):
        return "none"
    length, used = _number(start)
    if used and _inside(start[used:], length):
        return "varint"
    return None


def _inside(data: bytes, length: int | None) -> bool:
    """Whether ``data`` can be the first bytes of a ``TracesData`` message.

    ``length`` is the length of the message in bytes, or None if it is not known.
    """
    if len(data) < 4 or data[0] != _RESOURCE_SPANS:
        return False
    inner, used = _number(data[1:])
    after = data[1 + used :]
    if not used or not inner or (length is not None and inner + 1 + used > length):
        return False
    return bool(after) and after[0] in (_RESOURCE, _SCOPE_SPANS, 3 << 3 | 2)


def _number(data: bytes) -> tuple[int, int]:
    value = 0
    for at, byte in enumerate(data[:10]):
        value |= (byte & 0x7F) << (7 * at)
        if byte < 0x80:
            return value, at + 1
    return 0, 0


def read(source: Source, writer: Gathering, problems: Account) -> None:
    """Add the spans of a file to ``writer``; report errors and remarks to ``problems``."""
    framing = _framing(source.peek(64))
    if framing is None:
        raise InputError(f"{source.name}: is not OTLP in protobuf")
    wire = _Wire(source)
    reader = _Reader(source.name, wire, writer, problems)
    try:
        while wire.ready(1):
            if framing == "none":
                reader.traces(None)
            else:
                reader.traces(int.from_bytes(wire.take(4)) if framing == "fixed" else wire.varint())
    except WireError as error:
        reason = f"is not valid protobuf: {error}"
        if "ends within" in str(error):
            problems.broken(source.name, 0, reason)
        else:
            problems.bad(source.name, 0, reason, f"byte {wire.taken}")
    problems.end(source.name, 0, source.cut)


class _Reader:
    """Reader of protobuf messages: walks down to the spans and adds them to the writer."""

    def __init__(self, file: str, wire: _Wire, writer: Gathering, problems: Account) -> None:
        from google.protobuf.message import DecodeError  # noqa: PLC0415
        from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope  # noqa: PLC0415
        from opentelemetry.proto.resource.v1.resource_pb2 import Resource  # noqa: PLC0415
        from opentelemetry.proto.trace.v1.trace_pb2 import Span  # noqa: PLC0415  slow to load

        self._resource, self._span, self._scope = Resource, Span, InstrumentationScope
        self._damaged = DecodeError
        self._wire, self._writer = wire, writer
        self._remarks = Remarks(file, problems)

    def traces(self, length: int | None) -> None:
        """Read a ``TracesData`` message of ``length`` bytes; None: it ends with the file."""
        for tag, inner in self._fields(length):
            if tag == _RESOURCE_SPANS:
                self._resource_spans(inner)
            else:
                self._left(tag, inner, 0)

    def _fields(self, length: int | None) -> Iterator[tuple[int, int]]:
        """Yield (tag, length in bytes) of each field that has a length; skip the others.

        ``length`` is that of the message in bytes, None: up to the end of the file. The caller must
        read or skip the content of each field before the next one.
        """
        wire = self._wire
        end = None if length is None else wire.taken + length
        while wire.ready(1) if end is None else wire.taken < end:
            tag = wire.varint()
            kind = tag & 7
            if kind == 2:
                inner = wire.varint()
                if end is not None and wire.taken + inner > end:
                    raise WireError("a field is longer than its message")
                yield tag, inner
            elif kind == 0:
                wire.varint()
            elif kind in {1, 5}:
                wire.skip(8 if kind == 1 else 4)
            else:
                raise WireError(f"a field has the wire type {kind}; allowed are 0, 1, 2 and 5")
        if end is not None and wire.taken != end:
            raise WireError("a field is longer than its message")

    def _left(self, tag: int, length: int, spans: int) -> None:
        """Skip a field that is not used, and report it.

        ``tag`` is the tag of the field, ``length`` its length in bytes, ``spans`` the number of
        spans read before it.
        """
        schema = tag == _SCHEMA and length < _BLOCK
        found = self._wire.take(length).decode(errors="replace") if schema else str(tag >> 3)
        if not schema:
            self._wire.skip(length)
        left_field("schemaUrl" if schema else f"number {found}", found, spans, self._remarks)

    def _resource_spans(self, length: int) -> None:
        place, rest = Place(), dict[str, Any]()
        spans = 0
        for tag, inner in self._fields(length):
            if tag == _RESOURCE:
                late_resource(spans, self._remarks)
                place, rest = self._place(self._message(inner))
            elif tag == _SCOPE_SPANS:
                spans += self._scope_spans(inner, place, rest)
            else:
                self._left(tag, inner, spans)

    def _scope_spans(self, length: int, place: Place, rest: Mapping[str, Any]) -> int:
        """Read the spans of a ``ScopeSpans`` message of ``length`` bytes; return their number.

        ``place`` and ``rest`` are the place and the other fields of the resource of these spans.
        """
        spans = 0
        of = shared(None, rest, self._remarks) if rest else NOTHING
        for tag, inner in self._fields(length):
            if tag == _SPANS:
                spans += 1
                self._add(self._message(inner), place, of)
            elif tag == _SCOPE:
                scope = self._scope()
                try:
                    scope.ParseFromString(self._message(inner))
                    of = shared(as_json(scope), rest, self._remarks)
                except self._damaged:
                    self._remarks.note(
                        "the bytes of a scope are not a valid protobuf message",
                        "",
                        "the scope is left out",
                    )
            else:
                self._left(tag, inner, spans)
        return spans

    def _message(self, length: int) -> bytes:
        if length > MOST_MESSAGE:
            raise WireError(f"a span or resource is longer than {size(MOST_MESSAGE)}, the maximum")
        return self._wire.take(length)

    def _place(self, data: bytes) -> tuple[Place, dict[str, Any]]:
        """Return (place, other fields) of a resource; a place is service, instance and host.

        ``data`` are the bytes of the ``Resource`` message. If they are not valid, both are empty,
        and a remark says so.
        """
        then = "its spans have no service, instance or host"
        try:
            resource = self._resource()
            resource.ParseFromString(data)
            attributes = _flat(resource.attributes, self._remarks, len(data))
            place = place_of(attributes)
            place.resource = self._writer.resource(attributes)
            resource.ClearField("attributes")
            return place, rest_of(as_json(resource), self._remarks)
        except SpanError as error:
            self._remarks.note(f"a resource: {error.reason}", error.found, then)
        except self._damaged:
            self._remarks.note("the bytes of a resource are not a valid protobuf message", "", then)
        return Place(), {}

    def _add(self, data: bytes, place: Place, of: Shared) -> None:
        remarks = self._remarks
        try:
            try:
                span = self._span()
                span.ParseFromString(data)
            except self._damaged:
                raise SpanError("the bytes of a span are not a valid protobuf message") from None
            attributes, kind, code = span.attributes, span.kind, span.status.code
            row = (
                _identifier(span.trace_id, "trace_id"),
                _identifier(span.span_id, "span_id"),
                span.parent_span_id.hex() if any(span.parent_span_id) else None,
                place,
                name_of(span.name, remarks),
                time_of(span.start_time_unix_nano, "start_time_unix_nano"),
                time_of(span.end_time_unix_nano, "end_time_unix_nano"),
                KINDS[kind] if 0 <= kind < len(KINDS) else unknown("kind", kind, remarks),
                CODES[code] if 0 <= code < len(CODES) else unknown("status", code, remarks),
                written(_flat(attributes, remarks, len(data))) if attributes else None,
            )
            others = _others(span)
            self._writer.add(*row, carried(others, of, remarks) if others else of.text)
        except SpanError as error:
            found = f"{error.found} in the span that ends at byte {self._wire.taken}".strip()
            remarks.bad(error.reason, found)


def _others(span: Span) -> dict[str, Any]:
    """Return the fields of a span for which the table of spans has no column, as in OTLP's JSON.

    The result is empty for most spans.
    """
    message, events, links = span.status.message, span.events, span.links
    if not (
        events
        or links
        or message
        or span.trace_state
        or span.flags
        or span.dropped_attributes_count
        or span.dropped_events_count
        or span.dropped_links_count
    ):
        return {}
    return {
        "traceState": span.trace_state,
        "flags": span.flags,
        "droppedAttributesCount": span.dropped_attributes_count,
        "droppedEventsCount": span.dropped_events_count,
        "droppedLinksCount": span.dropped_links_count,
        "statusMessage": message,
        "events": [as_json(event) for event in events],
        "links": [
            {**as_json(link), "traceId": link.trace_id.hex(), "spanId": link.span_id.hex()}
            for link in links
        ],
    }


def as_json(message: Message) -> dict[str, Any]:
    """Return a protobuf message in OTLP's JSON, but with identifiers in base64 in place of hex."""
    from google.protobuf.json_format import MessageToDict  # noqa: PLC0415  slow to load

    return MessageToDict(message)


def _identifier(value: bytes, what: str) -> str:
    if not 0 < len(value) <= 64:
        raise SpanError(f"{what} is missing, or longer than 64 bytes", value.hex())
    return value.hex()


def _flat(pairs: Any, remarks: Remarks, longest: int) -> dict[str, Any]:
    """Return attributes as a mapping by name.

    ``longest`` is an upper bound, in bytes, for the length of their names.
    """
    if longest <= MOST_KEY:
        found = {pair.key: _value(pair.value, 0, remarks) for pair in pairs}
        if len(found) == len(pairs):
            return found
    return mapping(((pair.key, _value(pair.value, 0, remarks)) for pair in pairs), remarks)


def _value(value: AnyValue, depth: int, remarks: Remarks) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    held = getattr(value, kind)
    if kind == "bytes_value":
        return as_text(base64.b64encode(held).decode(), remarks)
    if kind == "double_value":
        return double(held, remarks)
    if kind not in {"array_value", "kvlist_value"}:
        return held
    if depth >= _MOST_DEPTH:
        raise SpanError(f"an attribute is nested too deeply (more than {_MOST_DEPTH} levels)")
    if kind == "array_value":
        return [_value(each, depth + 1, remarks) for each in held.values]
    inside = ((pair.key, _value(pair.value, depth + 1, remarks)) for pair in held.values)
    return mapping(inside, remarks)
