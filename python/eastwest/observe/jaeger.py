"""Jaeger's JSON: what its query service and its page give (``data`` → ``spans``, ``processes``).

A trace has its processes beside its spans, mostly behind them, so that it is taken whole: at most
``json_stream.MOST_VALUE`` characters. Times are microseconds. The parent is the first reference of
kind ``CHILD_OF`` in the same trace, else the first ``FOLLOWS_FROM``; others are noted.
"""

from __future__ import annotations

import re
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
    kind_of,
    parent_of,
    place_of,
    text_of,
    time_of,
    whole,
    written,
)
from eastwest.traces.source import Source

#: Lengths of the identifiers of trace, span and parent, as clients write them.
_LENGTHS = {(trace, 16, parent) for trace in (16, 32) for parent in (0, 16)}
#: Places by what was said of them: each trace says it again.
_Places = dict[tuple[Any, ...], Place]
_MOST_PLACES = 10_000
_LOOKS = re.compile(rb'"(?:traceID|spanID|operationName|processes|processID)"\s*:')


def looks_like(start: bytes) -> bool:
    """Whether a file that starts so may be one of this format."""
    return len(set(_LOOKS.findall(start))) >= 2


def read(source: Source, writer: Gathering, problems: Account) -> None:
    """Read a file into ``writer``."""
    stream = JsonStream(source)
    known: _Places = {}
    while stream.more():
        try:
            _document(stream, source.name, known, writer, problems)
        except JsonError as error:
            if error.cut:
                problems.broken(source.name, error.line, f"is no JSON: {error.reason}")
                break
            problems.bad(source.name, error.line, f"is no JSON: {error.reason}")
            if not stream.skip_line():
                break
    problems.end(source.name, stream.line, source.cut)


def _document(
    stream: JsonStream, file: str, known: _Places, writer: Gathering, problems: Account
) -> None:
    """Read what the query service answers, or one trace by itself."""
    alone: dict[str, Any] = {}
    line = stream.line
    found = False
    for key in stream.fields():
        if key == "data" and not stream.null():
            found = True
            for _ in stream.items():
                line = stream.line
                _trace(stream.value(), file, line, known, writer, problems)
        elif key in {"spans", "processes", "traceID"}:
            alone[key] = stream.value()
        else:
            stream.value()
    if "spans" in alone:
        _trace(alone, file, line, known, writer, problems)
    elif not found:
        problems.note(file, line, "a document without spans: passed over")


def _trace(
    trace: Any,
    file: str,
    line: int,
    known: _Places,
    writer: Gathering,
    problems: Account,
) -> None:
    if not isinstance(trace, dict) or not isinstance(trace.get("spans"), list):
        problems.bad(file, line, "a trace has no list of spans")
        return
    processes = trace.get("processes")
    places: dict[str, Place] = {}
    for name, process in processes.items() if isinstance(processes, dict) else ():
        try:
            places[name] = _known_place(process, known, writer)
        except SpanError as error:
            problems.note(file, line, f"a process: {error.reason}", error.found)
    for span in trace["spans"]:
        if _add_plain(span, places, writer):
            continue
        try:
            if not isinstance(span, dict):
                raise SpanError("a span is no object", span)
            place = places.get(str(span.get("processID")))
            if place is None:
                inline = span.get("process")
                place = _place(inline, writer) if isinstance(inline, dict) else Place()
                if not isinstance(inline, dict):
                    problems.note(file, line, "a span without its process: no service")
            _add(span, place, file, line, writer, problems)
        except SpanError as error:
            problems.bad(file, line, error.reason, error.found)


def _known_place(process: Any, known: _Places, writer: Gathering) -> Place:
    """A place that was met before, or a new one."""
    try:
        name, tags = process["serviceName"], process.get("tags") or ()
        key = (name, *((tag["key"], type(tag["value"]), tag["value"]) for tag in tags))
        place = known.get(key)
    except (KeyError, TypeError, AttributeError):
        return _place(process, writer)
    if place is None:
        place = _place(process, writer)
        if len(known) < _MOST_PLACES:
            known[key] = place
    return place


def _add_plain(span: Any, places: dict[str, Place], writer: Gathering) -> bool:
    """Add a span as nearly all clients write it; false, and nothing done, for any other.

    The same as ``_add`` with its checks in line: a million spans come this way.
    """
    try:
        trace, own, name = span["traceID"], span["spanID"], span["operationName"]
        start, length, place = span["startTime"], span["duration"], places[span["processID"]]
        parent = ""
        if span.get("references"):
            (reference,) = span["references"]
            if reference["traceID"] != trace:
                return False
            parent = reference["spanID"]
        elif span.get("parentSpanID"):
            return False
        if (
            type(start) is not int
            or type(length) is not int
            or (len(trace), len(own), len(parent)) not in _LENGTHS
            or f"{trace}{own}{parent}".translate(NO_HEX)
            or (parent and not parent.strip("0"))
            or not name.isascii()
            or not 0 < len(name) <= MOST_TEXT
        ):
            return False
        start_ns, end_ns = start * 1000, (start + length) * 1000
        if not (EARLIEST_NS <= start_ns <= LATEST_NS and EARLIEST_NS <= end_ns <= LATEST_NS):
            return False
        kept = {tag["key"][:1024]: tag.get("value") for tag in span.get("tags") or ()}
        status, kind = kept.pop("otel.status_code", None), kept.pop("span.kind", None)
        failed = kept.get("error") in (True, "true") or status == "ERROR"
        attributes = written(kept) if kept else None
    except (KeyError, TypeError, AttributeError, ValueError, IndexError):
        return False
    writer.add(
        *(trace, own, parent or None, place, name, start_ns, end_ns, kind_of(kind)),
        *("error" if failed else "ok" if status == "OK" else None, attributes),
    )
    return True


def _place(process: Any, writer: Gathering) -> Place:
    if not isinstance(process, dict):
        raise SpanError("is no object", process)
    tags = _flat(process.get("tags"))
    name = process.get("serviceName")
    attributes = {**tags, "service.name": name} if isinstance(name, str) and name else tags
    place = place_of(attributes)
    place.resource = writer.resource(attributes)
    return place


def _flat(tags: object) -> dict[str, Any]:
    if tags is None:
        return {}
    if not isinstance(tags, list):
        raise SpanError("tags are no list", tags)
    found = {}
    for tag in tags:
        if not isinstance(tag, dict) or not isinstance(tag.get("key"), str):
            raise SpanError("a tag is no key with a value", tag)
        found[tag["key"][:1024]] = tag.get("value")
    return found


def _parent(
    span: dict[str, Any], trace: str, file: str, line: int, problems: Account
) -> str | None:
    """The identifier of the parent: from references, or the older parentSpanID."""
    references = span.get("references")
    if not references:
        return parent_of(span.get("parentSpanID"))
    if not isinstance(references, list) or not all(isinstance(r, dict) for r in references):
        raise SpanError("references are no list of objects", references)
    if len(references) == 1 and references[0].get("traceID") == span.get("traceID"):
        return parent_of(references[0].get("spanID"))
    own = [r for r in references if str(r.get("traceID", trace)).lower() == trace]
    own.sort(key=lambda r: r.get("refType") != "CHILD_OF")
    if len(references) > 1:
        reason = "a span with several references: one is its parent"
        problems.note(file, line, reason)
    return parent_of(own[0].get("spanID")) if own else None


def _add(
    span: dict[str, Any],
    place: Place,
    file: str,
    line: int,
    writer: Gathering,
    problems: Account,
) -> None:
    trace = id_of(span.get("traceID"), "traceID")
    tags = _flat(span.get("tags"))
    start = time_of(whole(span.get("startTime"), "startTime") * 1000, "startTime")
    length = whole(span.get("duration"), "duration")
    status = tags.pop("otel.status_code", None)
    failed = tags.get("error") in (True, "true") or status == "ERROR"
    writer.add(
        trace,
        id_of(span.get("spanID"), "spanID"),
        _parent(span, trace, file, line, problems),
        place,
        text_of(span.get("operationName")),
        start,
        time_of(start + length * 1000, "startTime with duration"),
        kind_of(tags.pop("span.kind", None)),
        "error" if failed else "ok" if status == "OK" else None,
        written(tags),
    )
