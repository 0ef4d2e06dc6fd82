"""OpenTelemetry's spans in JSON (OTLP 1.x, opentelemetry-proto's ``trace.proto``).

One document (``resourceSpans`` → ``scopeSpans`` → ``spans``), or documents one after the other, as
the Collector's file exporter writes them. The protobuf names (``resource_spans``), the older
``instrumentationLibrarySpans`` and Tempo's ``batches`` are taken for what they are. Times and kinds
may be numbers or text. A document of logs or metrics is passed over, and noted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from eastwest.account import Account
from eastwest.observe.form import EARLIEST_NS, LATEST_NS
from eastwest.observe.gather import Gathering
from eastwest.observe.json_stream import JsonError, JsonStream
from eastwest.observe.span import (
    MOST_TEXT,
    NO_HEX,
    Place,
    SpanError,
    id_of,
    parent_of,
    place_of,
    text_of,
    time_of,
    whole,
    written,
)
from eastwest.traces.source import Source

#: SpanKind of trace.proto, by number; 0 is unspecified.
KINDS = (None, "internal", "server", "client", "producer", "consumer")
#: StatusCode of trace.proto, by number; 0 is unset.
CODES = (None, "ok", "error")
_KIND_NAMES = {f"SPAN_KIND_{kind.upper()}": kind for kind in KINDS if kind}
_CODE_NAMES = {"STATUS_CODE_OK": "ok", "STATUS_CODE_ERROR": "error"}
_TOP = {"resourceSpans", "resource_spans", "batches"}
_SCOPES = {"scopeSpans", "scope_spans", "instrumentationLibrarySpans"}
_LOOKS = re.compile(rb'"(?:resourceSpans|resource_spans|scopeSpans|batches)"\s*:')
_MOST_DEPTH = 8
#: Kinds of values that JSON has too, with what they are read as.
_PLAIN: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "bytes": str,
    "bool": bool,
    "double": (int, float),
}


#: Values that are taken as they are.
_AS_THEY_ARE: dict[str, type] = {"stringValue": str, "boolValue": bool, "doubleValue": float}
#: Lengths of the identifiers of trace, span and parent, and of times, as exporters write them.
_LENGTHS = {(32, 16, 0), (32, 16, 16)}
_DIGITS = (19, 19)


def looks_like(start: bytes) -> bool:
    """Whether a file that starts so may be one of this format."""
    return _LOOKS.search(start) is not None


def read(source: Source, writer: Gathering, problems: Account) -> None:
    """Read a file into ``writer``."""
    stream = JsonStream(source)
    while stream.more():
        try:
            _document(stream, source.name, writer, problems)
        except JsonError as error:
            line = error.line
            if error.cut:
                problems.broken(source.name, line, f"is no JSON: {error.reason}")
                break
            problems.bad(source.name, line, f"is no JSON: {error.reason}")
            if not stream.skip_line():
                break
    problems.end(source.name, stream.line, source.cut)


def _document(stream: JsonStream, file: str, writer: Gathering, problems: Account) -> None:
    known = False
    line = stream.line
    for key in stream.fields():
        if key in _TOP and not stream.null():
            known = True
            for _ in stream.items():
                _resource(stream, file, writer, problems)
        else:
            stream.value()
    if not known:
        problems.note(file, line, "a document without spans: passed over")


def _resource(stream: JsonStream, file: str, writer: Gathering, problems: Account) -> None:
    place = Place()
    spans = 0
    for key in stream.fields():
        if key == "resource":
            if spans:
                problems.note(
                    file, stream.line, "the resource follows its spans: these have none", rows=spans
                )
            place = place_from(stream.value(), writer, file, stream.line, problems)
        elif key in _SCOPES and not stream.null():
            for _ in stream.items():
                spans += _scope(stream, file, place, writer, problems)
        else:
            stream.value()


def place_from(resource: Any, writer: Gathering, file: str, line: int, problems: Account) -> Place:
    """Say where the spans of a resource were recorded."""
    try:
        attributes = flat(resource.get("attributes")) if isinstance(resource, dict) else {}
        place = place_of(attributes)
        place.resource = writer.resource(attributes)
    except SpanError as error:
        problems.note(file, line, f"a resource: {error.reason}", error.found)
        return Place()
    return place


def _scope(
    stream: JsonStream, file: str, place: Place, writer: Gathering, problems: Account
) -> int:
    spans = 0
    for key in stream.fields():
        if key != "spans":
            stream.value()
            continue
        if stream.null():
            continue
        for _ in stream.items():
            span = stream.value()
            spans += 1
            if _add_plain(span, place, writer):
                continue
            try:
                _add(span, place, writer)
            except SpanError as error:
                problems.bad(file, stream.line, error.reason, error.found)
    return spans


def _add_plain(span: Any, place: Place, writer: Gathering) -> bool:
    """Add a span as nearly all exporters write it; false, and nothing done, for any other.

    The same as ``_add`` with its checks in line: a million spans come this way.
    """
    try:
        trace, own, name = span["traceId"], span["spanId"], span["name"]
        start, end = span["startTimeUnixNano"], span["endTimeUnixNano"]
        parent, kind = span.get("parentSpanId", ""), span.get("kind", 0)
        code = span["status"].get("code", 0) if "status" in span else 0
        # identifiers of their usual length and in small letters, times of today
        if (
            type(kind) is not int
            or type(code) is not int
            or min(kind, code) < 0
            or (len(trace), len(own), len(parent)) not in _LENGTHS
            or f"{trace}{own}{parent}".translate(NO_HEX)
            or (parent and not parent.strip("0"))
            or (len(start), len(end)) != _DIGITS
            or not (start + end).isdecimal()
            or not (start.isascii() and end.isascii() and name.isascii())
            or not 0 < len(name) <= MOST_TEXT
        ):
            return False
        start_ns, end_ns = int(start), int(end)
        if not (EARLIEST_NS <= start_ns <= LATEST_NS and EARLIEST_NS <= end_ns <= LATEST_NS):
            return False
        kept: dict[str, Any] = {}
        for pair in span.get("attributes", ()):
            ((form, held),) = pair["value"].items()
            key = pair["key"]
            if form == "intValue" and type(held) is str and len(held) < 18:
                held = int(held)
            elif type(held) is not _AS_THEY_ARE[form]:
                return False
            kept[key[:1024]] = held
        attributes = written(kept) if kept else None
        writer.add(
            *(trace, own, parent or None, place, name, start_ns, end_ns),
            *(KINDS[kind], CODES[code], attributes),
        )
    except (KeyError, TypeError, AttributeError, ValueError, IndexError):
        return False
    return True


def _add(span: Any, place: Place, writer: Gathering) -> None:
    if not isinstance(span, dict):
        raise SpanError("a span is no object", span)
    get = span.get
    status = get("status")
    code = status.get("code") if isinstance(status, dict) else None
    attributes = get("attributes")
    writer.add(
        id_of(get("traceId") or get("trace_id"), "traceId"),
        id_of(get("spanId") or get("span_id"), "spanId"),
        parent_of(get("parentSpanId") or get("parent_span_id")),
        place,
        text_of(get("name")),
        _time(get("startTimeUnixNano") or get("start_time_unix_nano"), "startTimeUnixNano"),
        _time(get("endTimeUnixNano") or get("end_time_unix_nano"), "endTimeUnixNano"),
        named(get("kind"), KINDS, _KIND_NAMES),
        named(code, CODES, _CODE_NAMES),
        written(flat(attributes)) if attributes else None,
    )


def _time(value: object, what: str) -> int:
    return time_of(whole(value, what), what)


def named(value: object, names: tuple[str | None, ...], texts: dict[str, str]) -> str | None:
    """A member of an enumeration by its number or its name; nothing where it is unknown."""
    if isinstance(value, int) and not isinstance(value, bool):
        return names[value] if 0 <= value < len(names) else None
    return texts.get(value) if isinstance(value, str) else None


def flat(pairs: object) -> dict[str, Any]:
    """Attributes as a mapping, from the list of keys and values of OTLP."""
    if pairs is None:
        return {}
    if not isinstance(pairs, list):
        raise SpanError("attributes are no list", pairs)
    return dict(_pairs(pairs, 0))


def _pairs(pairs: list[Any], depth: int) -> Iterator[tuple[str, Any]]:
    for pair in pairs:
        if not isinstance(pair, dict) or not isinstance(pair.get("key"), str):
            raise SpanError("an attribute is no key with a value", pair)
        value = pair.get("value")
        # most are texts: no need to look further
        text = value.get("stringValue") if isinstance(value, dict) else None
        yield pair["key"][:1024], text if isinstance(text, str) else _value(value, depth)


def _value(value: object, depth: int) -> Any:
    """A value from its AnyValue; arrays and lists of pairs inside are taken with it."""
    if not isinstance(value, dict) or not value:
        return None
    name, held = next(iter(value.items()))
    kind = name.removesuffix("Value").removesuffix("_value")
    if kind == "int":
        return whole(held, "an intValue")
    if kind in _PLAIN:
        return held if isinstance(held, _PLAIN[kind]) else None
    if depth >= _MOST_DEPTH:
        raise SpanError("an attribute is nested too deeply")
    inside = held.get("values") if isinstance(held, dict) else None
    if not isinstance(inside, list) or kind not in {"array", "kvlist"}:
        return None
    if kind == "array":
        return [_value(each, depth + 1) for each in inside]
    return dict(_pairs(inside, depth + 1))
