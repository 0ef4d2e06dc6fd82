"""Zipkin's JSON, version 2: lists of spans, or lists of lists of spans (its ``/traces``).

Times are in microseconds. A span without a duration, which Zipkin allows, gets the duration 0, with
a remark. If both sides of a call recorded spans with the same id (``shared``), ``mend`` separates
them. Annotations become events (``carried``). Spans of version 1 are refused with a message that
names the version.
"""

from __future__ import annotations

import re
from typing import Any

from eastwest.account import Account
from eastwest.errors import InputError
from eastwest.observe.carried import NOTHING, carried, event
from eastwest.observe.gather import Gathering
from eastwest.observe.json_stream import JsonStream, read_documents
from eastwest.observe.otlp_json import unknown
from eastwest.observe.remarks import Remarks
from eastwest.observe.span import (
    Place,
    SpanError,
    id_of,
    kind_of,
    name_of,
    parent_of,
    text_of,
    time_of,
    whole,
    written,
)
from eastwest.traces.source import Source

#: Fields of a span that are not stored in ``extra``: columns and attributes of spans contain their
#: data, or (``shared``) the data are not needed.
_COLUMNS = frozenset(
    (
        *("traceId", "id", "parentId", "name", "kind", "timestamp", "duration", "tags", "shared"),
        *("localEndpoint", "remoteEndpoint", "annotations", "debug"),
    )
)
_LOOKS = (re.compile(rb'"traceId"\s*:'), re.compile(rb'"id"\s*:'))


def looks_like(start: bytes) -> bool:
    """Whether a file may be Zipkin's JSON; ``start`` has its first bytes."""
    return start.lstrip().startswith(b"[") and all(each.search(start) for each in _LOOKS)


def read(source: Source, writer: Gathering, problems: Account) -> None:
    """Add the spans of a file to ``writer``; report errors and remarks to ``problems``."""
    places: dict[tuple[Any, ...], Place] = {}
    remarks = Remarks(source.name, problems)

    def document(stream: JsonStream) -> None:
        for _ in stream.items():
            remarks.line = stream.line
            found = stream.value()
            for span in found if isinstance(found, list) else [found]:
                try:
                    _add(span, places, writer, remarks)
                except SpanError as error:
                    remarks.bad(error.reason, error.found)

    read_documents(source, problems, document)


def _place(endpoint: Any, places: dict[tuple[Any, ...], Place], writer: Gathering) -> Place:
    if endpoint is None:
        return Place()
    if not isinstance(endpoint, dict):
        raise SpanError("localEndpoint is not an object", endpoint)
    address, other = text_of(endpoint.get("ipv4")), text_of(endpoint.get("ipv6"))
    address, other = (address, other) if address else (other, None)
    port = endpoint.get("port")
    port = port if isinstance(port, int) and 0 < port < 1 << 16 else None
    service = text_of(endpoint.get("serviceName"))
    key = (service, address, port, other)
    place = places.get(key)
    if place is None:
        instance = f"{address}:{port}" if address and port else address
        said = {"service.name": service, "ip": address, "port": port, "ipv6": other}
        resource = writer.resource({name: v for name, v in said.items() if v is not None})
        place = places[key] = Place(service, instance, address, resource)
    return place


def _add(
    span: Any,
    places: dict[tuple[Any, ...], Place],
    writer: Gathering,
    remarks: Remarks,
) -> None:
    if not isinstance(span, dict):
        raise SpanError("a span is not an object", span)
    _refuse_version_1(span, remarks)
    start = time_of(whole(span.get("timestamp"), "timestamp") * 1000, "timestamp")
    length = span.get("duration")
    if length is None:
        reason = "a span without a duration: its duration is set to 0"
        remarks.note(
            reason, "", "the span's own work takes no time, and child spans lie outside it"
        )
    tags = _tags(span)
    kind = kind_of(span.get("kind"))
    if kind is None and span.get("kind"):
        unknown("kind", span["kind"], remarks)
    row = (
        id_of(span.get("traceId"), "traceId"),
        id_of(span.get("id"), "id"),
        parent_of(span.get("parentId")),
        _place(span.get("localEndpoint"), places, writer),
        name_of(span.get("name"), remarks),
        start,
        time_of(start + whole(length or 0, "duration") * 1000, "timestamp with duration"),
        kind,
        "error" if "error" in tags else None,
        written(tags),
    )
    extra = None
    if span.get("annotations") or not _COLUMNS.issuperset(span):
        others = {name: value for name, value in span.items() if name not in _COLUMNS}
        extra = carried({**others, "events": _events(span, remarks)}, NOTHING, remarks)
    writer.add(*row, extra)


def _tags(span: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a span: its tags, its remote endpoint and its debug flag."""
    tags = span.get("tags") or {}
    if not isinstance(tags, dict):
        raise SpanError("tags are not an object", tags)
    remote = span.get("remoteEndpoint")
    if isinstance(remote, dict) and remote:
        tags = {**tags, "remote": remote}
    return {**tags, "zipkin.debug": True} if span.get("debug") else tags


def _events(span: dict[str, Any], remarks: Remarks) -> list[dict[str, Any]]:
    """Return the annotations of a span as events in OTLP's JSON.

    An annotation without a valid time and value is left out, with a remark.
    """
    found = []
    annotations = span.get("annotations") or []
    for each in annotations if isinstance(annotations, list) else [annotations]:
        try:
            at = time_of(whole(each["timestamp"], "its timestamp") * 1000, "its timestamp")
            found.append(event(at, str(each["value"]), {}))
        except (KeyError, TypeError, SpanError):
            remarks.note(
                "an annotation without a time or a value: left out", each, "it is not exported"
            )
    return found


def _refuse_version_1(span: dict[str, Any], remarks: Remarks) -> None:
    """Raise ``InputError`` if the span has version 1: its annotations then have endpoints."""
    annotations = span.get("annotations")
    ends = isinstance(annotations, list) and any(
        isinstance(each, dict) and "endpoint" in each for each in annotations
    )
    if ends or "binaryAnnotations" in span:
        raise InputError(
            f"{remarks.file}:{remarks.line}: is Zipkin's JSON of version 1 "
            "(annotations with endpoints, binaryAnnotations), but only version 2 is "
            "supported; ask the server for /api/v2/traces instead of "
            "/api/v1/traces, or record with version 2"
        )
