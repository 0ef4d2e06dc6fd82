"""Zipkin's JSON, version 2: lists of spans, or of lists of spans (its ``/traces``).

Times are microseconds. A span without a duration, which Zipkin allows, ends when it starts, and is
noted. ``shared`` spans, recorded by both sides under one id, are taken apart by ``mend``.
"""

from __future__ import annotations

import re
from typing import Any

from eastwest.account import Account
from eastwest.observe.gather import Gathering
from eastwest.observe.json_stream import JsonError, JsonStream
from eastwest.observe.span import (
    Place,
    SpanError,
    id_of,
    kind_of,
    parent_of,
    text_of,
    time_of,
    whole,
    written,
)
from eastwest.traces.source import Source

_LOOKS = (re.compile(rb'"traceId"\s*:'), re.compile(rb'"id"\s*:'))


def looks_like(start: bytes) -> bool:
    """Whether a file that starts so may be one of this format."""
    return start.lstrip().startswith(b"[") and all(each.search(start) for each in _LOOKS)


def read(source: Source, writer: Gathering, problems: Account) -> None:
    """Read a file into ``writer``."""
    stream = JsonStream(source)
    places: dict[tuple[Any, ...], Place] = {}
    while stream.more():
        try:
            for _ in stream.items():
                line = stream.line
                found = stream.value()
                for span in found if isinstance(found, list) else [found]:
                    try:
                        _add(span, places, source.name, line, writer, problems)
                    except SpanError as error:
                        problems.bad(source.name, line, error.reason, error.found)
        except JsonError as error:
            if error.cut:
                problems.broken(source.name, error.line, f"is no JSON: {error.reason}")
                break
            problems.bad(source.name, error.line, f"is no JSON: {error.reason}")
            if not stream.skip_line():
                break
    problems.end(source.name, stream.line, source.cut)


def _place(endpoint: Any, places: dict[tuple[Any, ...], Place], writer: Gathering) -> Place:
    if endpoint is None:
        return Place()
    if not isinstance(endpoint, dict):
        raise SpanError("localEndpoint is no object", endpoint)
    address = text_of(endpoint.get("ipv4")) or text_of(endpoint.get("ipv6"))
    port = endpoint.get("port")
    port = port if isinstance(port, int) and 0 < port < 1 << 16 else None
    service = text_of(endpoint.get("serviceName"))
    key = (service, address, port)
    place = places.get(key)
    if place is None:
        instance = f"{address}:{port}" if address and port else address
        said = {"service.name": service, "ip": address, "port": port}
        resource = writer.resource({name: v for name, v in said.items() if v is not None})
        place = places[key] = Place(service, instance, address, resource)
    return place


def _add(
    span: Any,
    places: dict[tuple[Any, ...], Place],
    file: str,
    line: int,
    writer: Gathering,
    problems: Account,
) -> None:
    if not isinstance(span, dict):
        raise SpanError("a span is no object", span)
    tags = span.get("tags") or {}
    if not isinstance(tags, dict):
        raise SpanError("tags are no object", tags)
    remote = span.get("remoteEndpoint")
    if isinstance(remote, dict) and remote:
        tags = {**tags, "remote": remote}
    start = time_of(whole(span.get("timestamp"), "timestamp") * 1000, "timestamp")
    length = span.get("duration")
    if length is None:
        problems.note(file, line, "a span without a duration: taken for none")
    writer.add(
        id_of(span.get("traceId"), "traceId"),
        id_of(span.get("id"), "id"),
        parent_of(span.get("parentId")),
        _place(span.get("localEndpoint"), places, writer),
        text_of(span.get("name")),
        start,
        time_of(start + whole(length or 0, "duration") * 1000, "timestamp with duration"),
        kind_of(span.get("kind")),
        "error" if "error" in tags else None,
        written(tags),
    )
