"""OpenTelemetry's spans in JSON (OTLP 1.x, opentelemetry-proto's ``trace.proto``).

The input is one document (``resourceSpans`` → ``scopeSpans`` → ``spans``), or several documents in
sequence, as the Collector's file exporter writes them. The protobuf names (``resource_spans``), the
older ``instrumentationLibrarySpans`` and Tempo's ``batches`` are accepted too. Times and kinds may
be numbers or text. A document of logs or metrics is skipped with a remark. Data of a span that has
no column (links, events, its scope …) is stored in ``extra`` (``carried``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from eastwest.account import Account
from eastwest.observe.carried import NOTHING, Shared, carried, shared
from eastwest.observe.form import EARLIEST_NS, LATEST_NS
from eastwest.observe.gather import Gathering
from eastwest.observe.json_stream import JsonStream, read_documents
from eastwest.observe.remarks import Remarks
from eastwest.observe.span import (
    MOST_TEXT,
    NO_HEX,
    Place,
    SpanError,
    id_of,
    name_of,
    parent_of,
    place_of,
    time_of,
    whole,
    written,
)
from eastwest.traces.source import Source

#: Kinds of spans in the normal form; the index is the number in ``SpanKind`` of trace.proto, where
#: 0 is unspecified.
KINDS = (None, "internal", "server", "client", "producer", "consumer")
#: Statuses of spans in the normal form; the index is the number in ``StatusCode`` of trace.proto,
#: where 0 is unset.
CODES = (None, "ok", "error")
_KIND_NAMES = {f"SPAN_KIND_{kind.upper()}": kind for kind in KINDS if kind}
#: Last parts of OTLP's names for an unspecified kind and an unset status.
_OPEN = ("_UNSPECIFIED", "_UNSET")
_CODE_NAMES = {"STATUS_CODE_OK": "ok", "STATUS_CODE_ERROR": "error"}
_TOP = {"resourceSpans", "resource_spans", "batches"}
_SCOPES = {"scopeSpans", "scope_spans", "instrumentationLibrarySpans"}
_SCOPE = {"scope", "instrumentationLibrary", "instrumentation_library"}
_LOOKS = re.compile(rb'"(?:resourceSpans|resource_spans|scopeSpans|batches)"\s*:')
_MOST_DEPTH = 8
#: Fields of a span for which the table of spans has columns; the other fields go into ``extra``.
_COLUMNS = frozenset(
    (
        *("traceId", "spanId", "parentSpanId", "name", "kind", "attributes", "status"),
        *("startTimeUnixNano", "endTimeUnixNano"),
    )
)
#: Pattern of the places in a protobuf name (``trace_state``) where its JSON name has a capital
#: letter (``traceState``).
_SNAKE = re.compile(r"_([a-z])")
#: Maximum length of an attribute's name, in characters; a longer name is cut.
MOST_KEY = 1024

#: Fields of an ``AnyValue`` whose value needs no conversion, and the type of the value.
_AS_THEY_ARE: dict[str, type] = {"stringValue": str, "boolValue": bool, "doubleValue": float}
#: Usual lengths, in characters, of the ids of trace, span and parent (0: no parent).
_LENGTHS = {(32, 16, 0), (32, 16, 16)}
_DIGITS = (19, 19)


def looks_like(start: bytes) -> bool:
    """Whether a file may be OTLP in JSON; ``start`` has its first bytes."""
    return _LOOKS.search(start) is not None


def read(source: Source, writer: Gathering, problems: Account) -> None:
    """Add the spans of a file to ``writer``; report errors and remarks to ``problems``."""
    remarks = Remarks(source.name, problems)
    read_documents(source, problems, lambda stream: _document(stream, writer, remarks))


def _document(stream: JsonStream, writer: Gathering, remarks: Remarks) -> None:
    known = False
    line = stream.line
    for key in stream.fields():
        if key in _TOP and not stream.null():
            known = True
            for _ in stream.items():
                _resource(stream, writer, remarks)
        else:
            stream.value()
    if not known:
        remarks.line = line
        remarks.note("a document without spans: ignored", "", "logs and metrics are not read")


def _resource(stream: JsonStream, writer: Gathering, remarks: Remarks) -> None:
    place, rest = Place(), dict[str, Any]()
    spans = 0
    for key in stream.fields():
        if key == "resource":
            resource = stream.value()
            remarks.line = stream.line
            late_resource(spans, remarks)
            place = place_from(resource, writer, remarks)
            rest = rest_of(resource, remarks)
        elif key in _SCOPES and not stream.null():
            for _ in stream.items():
                spans += _scope(stream, place, rest, writer, remarks)
        else:
            remarks.line = stream.line
            left_field(key, stream.value(), spans, remarks)


def late_resource(spans: int, remarks: Remarks) -> None:
    """Report a resource that comes after its spans; do nothing if ``spans`` is 0.

    ``spans`` is the number of spans that came before the resource. Raises ``InputError`` unless the
    import is lossy.
    """
    if spans:
        remarks.change(
            "a resource that follows its spans",
            "these spans have no service, instance or host",
            rows=spans,
        )


def left_field(key: str, value: object, spans: int, remarks: Remarks) -> None:
    """Report a field of a resource or scope that is left out; do nothing if it is empty.

    ``spans`` is the number of spans of the resource or scope that were read before the field.
    """
    if not value:
        return
    if key in {"schemaUrl", "schema_url"}:
        reason = "spans with a schema URL (version of the names of attributes): it is left out"
        then = "attributes are read by their newest names; some older names are known too"
        remarks.note(reason, value, then, max(1, spans))
    else:
        remarks.note("unknown field: left out", key, "the field is not used")


def rest_of(resource: Any, remarks: Remarks) -> dict[str, Any]:
    """Return the fields of a resource except its attributes; report dropped attributes."""
    if not isinstance(resource, dict):
        return {}
    rest = {camel(key): value for key, value in resource.items() if key != "attributes" and value}
    if rest.get("droppedAttributesCount"):
        remarks.note(
            "a resource whose attributes were dropped at recording",
            rest["droppedAttributesCount"],
            "service, instance or host of its spans may not be known",
        )
    return rest


def place_from(resource: Any, writer: Gathering, remarks: Remarks) -> Place:
    """Return the place (service, instance, host) that a resource describes.

    Side effect: stores the attributes of the resource in ``writer``. If they are not valid, the
    place is empty, and a remark says so.
    """
    try:
        pairs = resource.get("attributes") if isinstance(resource, dict) else None
        attributes = flat(pairs, remarks)
        place = place_of(attributes)
        place.resource = writer.resource(attributes)
    except SpanError as error:
        remarks.note(
            f"a resource: {error.reason}",
            error.found,
            "its spans have no service, instance or host",
        )
        return Place()
    return place


def _scope(
    stream: JsonStream,
    place: Place,
    rest: Mapping[str, Any],
    writer: Gathering,
    remarks: Remarks,
) -> int:
    spans = 0
    of = shared(None, rest, remarks) if rest else NOTHING
    for key in stream.fields():
        if key in _SCOPE:
            scope = stream.value()
            remarks.line = stream.line
            if spans:
                reason = "a scope that follows its spans: left out"
                remarks.note(
                    reason, "", "exports do not name the library that recorded these spans", spans
                )
            of = shared(scope, rest, remarks)
        elif key != "spans":
            remarks.line = stream.line
            left_field(key, stream.value(), spans, remarks)
        elif not stream.null():
            for _ in stream.items():
                span = stream.value()
                spans += 1
                if _add_plain(span, place, of, writer, remarks, stream):
                    continue
                remarks.line = stream.line
                try:
                    _add(span, place, of, writer, remarks)
                except SpanError as error:
                    remarks.bad(error.reason, error.found)
    return spans


def _add_plain(
    span: Any,
    place: Place,
    of: Shared,
    writer: Gathering,
    remarks: Remarks,
    stream: JsonStream,
) -> bool:
    """Add a span to ``writer`` if it has the usual form; return False if it has another form.

    If the result is False, nothing was added and ``_add`` must read the span. This fast reader
    repeats the checks of ``_add`` in place, because files have millions of spans.
    """
    try:
        trace, own, name = span["traceId"], span["spanId"], span["name"]
        start, end = span["startTimeUnixNano"], span["endTimeUnixNano"]
        parent, kind = span.get("parentSpanId", ""), span.get("kind", 0)
        status = span.get("status") or ()
        code = status.get("code", 0) if status else 0
        # Conditions of the fast path: identifiers of usual length in lower case, times in 19 digits
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
        pairs = span.get("attributes", ())
        for pair in pairs:
            ((form, held),) = pair["value"].items()
            if form == "intValue" and type(held) is str and len(held) < 18:
                held = int(held)
            elif type(held) is not _AS_THEY_ARE[form]:
                return False
            kept[pair["key"]] = held
        if len(kept) != len(pairs) or max(map(len, kept), default=0) > MOST_KEY:
            return False
        attributes = written(kept) if kept else None
        kind_name, code_name = KINDS[kind], CODES[code]
    except (KeyError, TypeError, AttributeError, ValueError, IndexError):
        return False
    extra = of.text
    if not _COLUMNS.issuperset(span) or len(status) > (1 if "code" in status else 0):
        remarks.line = stream.line
        extra = carried(_others(span), of, remarks)
    writer.add(
        *(trace, own, parent or None, place, name, start_ns, end_ns),
        *(kind_name, code_name, attributes, extra),
    )
    return True


def _add(span: Any, place: Place, of: Shared, writer: Gathering, remarks: Remarks) -> None:
    if not isinstance(span, dict):
        raise SpanError("a span is not an object", span)
    get = span.get
    status = get("status")
    code = status.get("code") if isinstance(status, dict) else None
    row = (
        id_of(get("traceId") or get("trace_id"), "traceId"),
        id_of(get("spanId") or get("span_id"), "spanId"),
        parent_of(get("parentSpanId") or get("parent_span_id")),
        place,
        name_of(get("name"), remarks),
        _time(get("startTimeUnixNano") or get("start_time_unix_nano"), "startTimeUnixNano"),
        _time(get("endTimeUnixNano") or get("end_time_unix_nano"), "endTimeUnixNano"),
        named(get("kind"), KINDS, _KIND_NAMES, "kind", remarks),
        named(code, CODES, _CODE_NAMES, "status", remarks),
        written(flat(get("attributes"), remarks)),
    )
    writer.add(*row, carried(_others(span), of, remarks))


def _others(span: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a span for which spans have no column, by their names in JSON."""
    found = {
        name: value for key, value in span.items() if (name := camel(key)) not in _COLUMNS and value
    }
    status = span.get("status")
    if isinstance(status, dict) and status.get("message"):
        found["statusMessage"] = status["message"]
    return found


def camel(name: str) -> str:
    """Return a protobuf name as JSON has it: ``traceState`` for ``trace_state``."""
    return _SNAKE.sub(lambda match: match[1].upper(), name)


def _time(value: object, what: str) -> int:
    return time_of(whole(value, what), what)


def named(
    value: object,
    names: tuple[str | None, ...],
    texts: Mapping[str, str],
    what: str,
    remarks: Remarks,
) -> str | None:
    """Return the kind or status of a span in the normal form, or None if it is unknown.

    ``value`` is OTLP's number or name. ``names`` has the result by number, ``texts`` by name;
    ``what`` is ``kind`` or ``status``. An unknown value is reported.
    """
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names):
        return names[value]
    if isinstance(value, str) and (value in texts or value.endswith(_OPEN)):
        return texts.get(value)
    if value is not None:
        unknown(what, value, remarks)
    return None


def unknown(what: str, value: object, remarks: Remarks) -> str | None:
    """Return None, and report an unknown kind or status of a span.

    ``what`` is ``kind`` or ``status``.
    """
    then = {
        "kind": "the side of the call is inferred from parent and child spans",
        "status": "the span counts neither as ok nor as failed",
    }
    remarks.note(f"an unknown {what} of a span: treated as missing", value, then[what])
    return None


def flat(pairs: object, remarks: Remarks) -> dict[str, Any]:
    """Return attributes as a mapping by name; ``pairs`` is OTLP's list of keys and values.

    Raises ``SpanError`` if ``pairs`` has another form.
    """
    if pairs is None:
        return {}
    if not isinstance(pairs, list):
        raise SpanError("attributes are not a list", pairs)
    return mapping(_pairs(pairs, 0, remarks), remarks)


def mapping(pairs: Iterator[tuple[str, Any]], remarks: Remarks) -> dict[str, Any]:
    """Return attributes as a mapping by name; if a name occurs twice, its last value is used.

    Repeated and too long names are reported.
    """
    found: dict[str, Any] = {}
    for key, value in pairs:
        short = key[:MOST_KEY]
        if short in found:
            reason = "an attribute that a span has twice"
            remarks.note(reason, short, "only the last value is used")
        elif short != key:
            reason = f"an attribute whose name is longer than {MOST_KEY:,} characters"
            remarks.note(reason, short, "the attribute is exported with a cut name")
        found[short] = value
    return found


def _pairs(pairs: list[Any], depth: int, remarks: Remarks) -> Iterator[tuple[str, Any]]:
    for pair in pairs:
        if not isinstance(pair, dict) or not isinstance(pair.get("key"), str):
            raise SpanError("an attribute is not a key with a value", pair)
        value = pair.get("value")
        # Fast path: most values are texts.
        text = value.get("stringValue") if isinstance(value, dict) else None
        yield pair["key"], text if isinstance(text, str) else _value(value, depth, remarks)


def _value(value: object, depth: int, remarks: Remarks) -> Any:
    """Return the value of an ``AnyValue`` for JSON: a simple value, a list or a mapping.

    ``depth`` is the number of arrays and lists around it.
    """
    if not isinstance(value, dict) or not value:
        return None
    name, held = next(iter(value.items()))
    kind = name.removesuffix("Value").removesuffix("_value")
    if kind in _SIMPLE:
        return _SIMPLE[kind](held, remarks)
    if depth >= _MOST_DEPTH:
        raise SpanError(f"an attribute is nested too deeply (more than {_MOST_DEPTH} levels)")
    inside = held.get("values", []) if isinstance(held, dict) else None
    if not isinstance(inside, list) or kind not in {"array", "kvlist"}:
        return _no_value(held, remarks)
    if kind == "array":
        return [_value(each, depth + 1, remarks) for each in inside]
    return mapping(_pairs(inside, depth + 1, remarks), remarks)


def _no_value(held: object, remarks: Remarks) -> None:
    """Return None, and report a value whose type OTLP does not have."""
    remarks.note(
        "a value of a type that OTLP does not have: left out", held, "the attribute is empty"
    )


def _text(held: object, remarks: Remarks) -> Any:
    return held if isinstance(held, str) else _no_value(held, remarks)


def _flag(held: object, remarks: Remarks) -> Any:
    return held if isinstance(held, bool) else _no_value(held, remarks)


def _integer(held: object, remarks: Remarks) -> int:
    return whole(held, "an intValue")


def double(held: object, remarks: Remarks) -> Any:
    """Return ``held`` as a finite number; if it is not finite, as text, with a remark.

    JSON has no NaN and no infinity.
    """
    try:
        number = float(held) if type(held) in {int, float, str} else math.nan  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        number = math.nan
    if math.isfinite(number):
        return number
    text = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(str(held), str(held))
    remarks.note(
        "a doubleValue that is not a finite number: kept as text",
        text,
        "sums and means leave this value out",
    )
    return text


def as_text(base64: object, remarks: Remarks) -> Any:
    """Return the value of an attribute of bytes as a text in base64, with a remark."""
    if not isinstance(base64, str):
        return _no_value(base64, remarks)
    remarks.note("an attribute whose value is bytes", "", "the value is exported as base64 text")
    return base64


#: Functions that read simple values, by the first part of the field's name (``string`` of
#: ``stringValue``).
_SIMPLE: dict[str, Callable[[object, Remarks], Any]] = {
    "string": _text,
    "bool": _flag,
    "int": _integer,
    "double": double,
    "bytes": as_text,
}
