"""Jaeger's JSON, as its query service and web page return it (``data`` → ``spans``, ``processes``).

A trace has its processes beside its spans, mostly after them, so each trace is parsed as a whole:
at most ``json_stream.MOST_VALUE`` characters. Times are in microseconds. The parent of a span is
its first reference of kind ``CHILD_OF`` to a span of its trace, else the first ``FOLLOWS_FROM``.
Other references become links and logs become events (``carried``); warnings become the attribute
``jaeger.warnings``.
"""

from __future__ import annotations

import re
from typing import Any

from eastwest.account import Account
from eastwest.observe.carried import NOTHING, carried, event, link
from eastwest.observe.form import EARLIEST_NS, LATEST_NS
from eastwest.observe.gather import Gathering
from eastwest.observe.json_stream import JsonStream, read_documents
from eastwest.observe.otlp_json import MOST_KEY, mapping, unknown
from eastwest.observe.remarks import Remarks
from eastwest.observe.span import (
    MOST_TEXT,
    NO_HEX,
    Place,
    SpanError,
    id_of,
    kind_of,
    name_of,
    parent_of,
    place_of,
    time_of,
    whole,
    written,
)
from eastwest.traces.source import Source

#: Usual lengths, in characters, of the ids of trace, span and parent (0: no parent).
_LENGTHS = {(trace, 16, parent) for trace in (16, 32) for parent in (0, 16)}
#: Cache of places (service, instance, host) by the name and tags of a process. Every trace repeats
#: the processes.
_Places = dict[tuple[Any, ...], Place]
_MOST_PLACES = 10_000
#: Kind of a reference from a span to its parent; a reference that states no kind has this kind.
_CHILD = "CHILD_OF"
_PARENTS = (_CHILD, "FOLLOWS_FROM")
#: Fields of a span that the fast reader (``_add_plain``) and the complete reader (``_add``) use.
_PLAIN = frozenset(
    (
        *("traceID", "spanID", "operationName", "references", "startTime", "duration", "tags"),
        *("processID", "logs", "warnings", "flags"),
    )
)
#: Further fields of a span that the complete reader (``_add``) uses, or ignores without a remark.
#: All other fields are left out with a remark.
_USED = frozenset(("parentSpanID", "process", "startTimeMillis"))
#: Text of ``extra`` for the usual values of ``flags``: 0 (not sampled) and 1 (sampled).
_USUAL_FLAGS = {0: None, 1: '{"flags":1}'}
_STATUSES = ("OK", "ERROR", "UNSET")
_NO_SERVICE = "spans have no service, instance or host"
_LOOKS = re.compile(rb'"(?:traceID|spanID|operationName|processes|processID)"\s*:')


def looks_like(start: bytes) -> bool:
    """Whether a file may be Jaeger's JSON; ``start`` has its first bytes."""
    return len(set(_LOOKS.findall(start))) >= 2


def read(source: Source, writer: Gathering, problems: Account) -> None:
    """Add the spans of a file to ``writer``; report errors and remarks to ``problems``."""
    known: _Places = {}
    remarks = Remarks(source.name, problems)
    read_documents(source, problems, lambda stream: _document(stream, known, writer, remarks))


def _document(stream: JsonStream, known: _Places, writer: Gathering, remarks: Remarks) -> None:
    """Add the spans of a document to ``writer``: an answer of the query service, or one trace."""
    alone: dict[str, Any] = {}
    line = stream.line
    found = False
    for key in stream.fields():
        if key == "data" and not stream.null():
            found = True
            for _ in stream.items():
                remarks.line = stream.line
                _trace(stream.value(), known, writer, remarks)
        elif key in {"spans", "processes", "traceID"}:
            alone[key] = stream.value()
        elif (value := stream.value()) and key == "errors":
            remarks.line = stream.line
            remarks.note("an error that the query service reports", value, "spans may be missing")
    remarks.line = line
    if "spans" in alone:
        _trace(alone, known, writer, remarks)
    elif not found:
        remarks.note("a document without spans: ignored")


def _trace(trace: Any, known: _Places, writer: Gathering, remarks: Remarks) -> None:
    if not isinstance(trace, dict) or not isinstance(trace.get("spans"), list):
        remarks.bad("a trace has no list of spans")
        return
    if trace.get("warnings"):
        remarks.note("a trace with warnings of Jaeger", trace["warnings"], "warnings are left out")
    processes = trace.get("processes")
    places: dict[str, Place] = {}
    for name, process in processes.items() if isinstance(processes, dict) else ():
        try:
            places[name] = _known_place(process, known, writer, remarks)
        except SpanError as error:
            remarks.note(f"a process: {error.reason}", error.found, _NO_SERVICE)
    for span in trace["spans"]:
        if _add_plain(span, places, writer):
            continue
        try:
            if not isinstance(span, dict):
                raise SpanError("a span is not an object", span)
            place = places.get(str(span.get("processID")))
            if place is None:
                inline = span.get("process")
                place = _place(inline, writer, remarks) if isinstance(inline, dict) else Place()
                if not isinstance(inline, dict):
                    remarks.note("a span that names no known process: no service", "", _NO_SERVICE)
            _add(span, place, writer, remarks)
        except SpanError as error:
            remarks.bad(error.reason, error.found)


def _known_place(process: Any, known: _Places, writer: Gathering, remarks: Remarks) -> Place:
    """Return the place (service, instance, host) of a process; use and fill the cache ``known``."""
    try:
        name, tags = process["serviceName"], process.get("tags") or ()
        key = (name, *((tag["key"], type(tag["value"]), tag["value"]) for tag in tags))
        place = known.get(key)
    except (KeyError, TypeError, AttributeError):
        return _place(process, writer, remarks)
    if place is None:
        place = _place(process, writer, remarks)
        if len(known) < _MOST_PLACES:
            known[key] = place
    return place


def _add_plain(span: Any, places: dict[str, Place], writer: Gathering) -> bool:
    """Add a span to ``writer`` if it has the usual form; return False if it has another form.

    If the result is False, nothing was added and ``_add`` must read the span. This fast reader
    repeats the checks of ``_add`` in place, because files have millions of spans.
    """
    try:
        trace, own, name = span["traceID"], span["spanID"], span["operationName"]
        start, length, place = span["startTime"], span["duration"], places[span["processID"]]
        parent = ""
        if span.get("references"):
            (reference,) = span["references"]
            parent = reference["spanID"]
            if reference["traceID"] != trace or reference.get("refType", _CHILD) not in _PARENTS:
                return False
        if (
            not _PLAIN.issuperset(span)
            or span.get("logs")
            or span.get("warnings")
            or type(start) is not int
            or type(length) is not int
            or (len(trace), len(own), len(parent)) not in _LENGTHS
            or f"{trace}{own}{parent}".translate(NO_HEX)
            or (parent and not parent.strip("0"))
            or not name.isascii()
            or not 0 < len(name) <= MOST_TEXT
            or span.get("flags", 1) not in _USUAL_FLAGS
        ):
            return False
        start_ns, end_ns = start * 1000, (start + length) * 1000
        tags = span.get("tags") or ()
        kept = {tag["key"]: tag.get("value") for tag in tags}
        status, kind = kept.pop("otel.status_code", None), kept.pop("span.kind", None)
        if (
            not (EARLIEST_NS <= start_ns <= LATEST_NS and EARLIEST_NS <= end_ns <= LATEST_NS)
            or len(kept) + (status is not None) + (kind is not None) != len(tags)
            or max(map(len, kept), default=0) > MOST_KEY
            or (kind is not None and kind_of(kind) is None)
            or (status is not None and status not in _STATUSES)
        ):
            return False
        failed = kept.get("error") in (True, "true") or status == "ERROR"
        attributes = written(kept) if kept else None
        extra = _USUAL_FLAGS[span.get("flags", 0)]
    except (KeyError, TypeError, AttributeError, ValueError, IndexError):
        return False
    writer.add(
        *(trace, own, parent or None, place, name, start_ns, end_ns, kind_of(kind)),
        *("error" if failed else "ok" if status == "OK" else None, attributes, extra),
    )
    return True


def _place(process: Any, writer: Gathering, remarks: Remarks) -> Place:
    if not isinstance(process, dict):
        raise SpanError("is not an object", process)
    tags = _flat(process.get("tags"), remarks)
    name = process.get("serviceName")
    attributes = {**tags, "service.name": name} if isinstance(name, str) and name else tags
    place = place_of(attributes)
    place.resource = writer.resource(attributes)
    return place


def _flat(tags: object, remarks: Remarks) -> dict[str, Any]:
    if tags is None:
        return {}
    if not isinstance(tags, list):
        raise SpanError("tags are not a list", tags)
    for tag in tags:
        if not isinstance(tag, dict) or not isinstance(tag.get("key"), str):
            raise SpanError("a tag is not a key with a value", tag)
    return mapping(((tag["key"], tag.get("value")) for tag in tags), remarks)


def _parent(
    span: dict[str, Any], trace: str, remarks: Remarks
) -> tuple[str | None, list[dict[str, Any]]]:
    """Return (id of the parent or None, links): all references of a span but the parent are links.

    The parent comes from ``references``, or from the older field ``parentSpanID``. Raises
    ``SpanError`` if the references do not have Jaeger's form.
    """
    references = span.get("references")
    if not references:
        return parent_of(span.get("parentSpanID")), []
    if not isinstance(references, list) or not all(isinstance(r, dict) for r in references):
        raise SpanError("references are not a list of objects", references)
    own = [
        r
        for r in references
        if _trace_of(r, trace) == trace and r.get("refType", _CHILD) in _PARENTS
    ]
    own.sort(key=lambda r: r.get("refType", _CHILD) != _CHILD)
    parent = own[0] if own else None
    others = [r for r in references if r is not parent]
    if own and others:
        reason = "a span with several references: one is its parent"
        remarks.note(reason, "", "the other references are kept as links")
    links = [
        link(
            _trace_of(r, trace),
            id_of(r.get("spanID"), "the spanID of a reference"),
            {"opentracing.ref_type": str(r.get("refType", _CHILD)).lower()},
        )
        for r in others
    ]
    return None if parent is None else parent_of(parent.get("spanID")), links


def _trace_of(reference: dict[str, Any], trace: str) -> str:
    """Return the trace id in ``reference``; if it has none, ``trace``, the trace of the span."""
    named = reference.get("traceID")
    return id_of(named, "the traceID of a reference") if named else trace


def _events(span: dict[str, Any], remarks: Remarks) -> list[dict[str, Any]]:
    """Return the logs of a span as events in OTLP's JSON.

    The field ``event`` of a log becomes the name of the event. A log without a valid time and
    fields is left out, with a remark.
    """
    found = []
    logs = span.get("logs") or []
    for log in logs if isinstance(logs, list) else [logs]:
        try:
            fields = _flat(log["fields"], remarks)
            at = time_of(whole(log["timestamp"], "its timestamp") * 1000, "its timestamp")
        except (KeyError, TypeError, AttributeError, SpanError):
            reason = "a log in a span, without a valid time or valid fields"
            remarks.note(reason, log, "the log is left out")
            continue
        name = fields.pop("event", "")
        found.append(event(at, name if isinstance(name, str) else str(name), fields))
    return found


def _add(span: dict[str, Any], place: Place, writer: Gathering, remarks: Remarks) -> None:
    trace = id_of(span.get("traceID"), "traceID")
    tags = _flat(span.get("tags"), remarks)
    start = time_of(whole(span.get("startTime"), "startTime") * 1000, "startTime")
    length = whole(span.get("duration"), "duration")
    status, kind = tags.get("otel.status_code"), tags.get("span.kind")
    if status in _STATUSES:
        del tags["otel.status_code"]
    if kind_of(kind):
        del tags["span.kind"]
    elif kind is not None:
        unknown("kind", kind, remarks)
    failed = tags.get("error") in (True, "true") or status == "ERROR"
    parent, links = _parent(span, trace, remarks)
    if span.get("warnings"):
        tags["jaeger.warnings"] = span["warnings"]
    row = (
        trace,
        id_of(span.get("spanID"), "spanID"),
        parent,
        place,
        name_of(span.get("operationName"), remarks),
        start,
        time_of(start + length * 1000, "startTime with duration"),
        kind_of(kind),
        "error" if failed else "ok" if status == "OK" else None,
        written(tags),
    )
    others = {name: value for name, value in span.items() if name not in _PLAIN | _USED}
    found = {"flags": span.get("flags"), "links": links, "events": _events(span, remarks)}
    writer.add(*row, carried({**others, **found}, NOTHING, remarks))
