"""Writes imported spans as OTLP in JSON, one document per line, with the data of the source.

Times are those of the source, without the correction of clock skew. A span whose parent was removed
when it was mended names this parent again. Links, events, scope and the other fields of ``extra``
are written back. Data that the import left out or changed cannot be restored.
Attributes of bytes are strings in base64. A span without a resource in its source gets a resource
of its service, instance and host.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from eastwest.errors import InputError
from eastwest.observe.form import TABLES
from eastwest.observe.gather import FLUSH_ROWS
from eastwest.observe.load import Spans
from eastwest.observe.otlp_json import CODES, KINDS
from eastwest.observe.otlp_values import pairs
from eastwest.traces.opened import sound
from eastwest.units import clean

#: Maximum number of spans in a document; a document is one line.
_SPANS = 5_000
_ENCODE = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode
#: Fields of ``extra`` that OTLP stores in the span itself, not in its scope or resource.
_OF_SPAN = (
    *("traceState", "flags", "links", "events"),
    *("droppedAttributesCount", "droppedEventsCount", "droppedLinksCount"),
)


def lines(spans: Spans) -> Iterator[str]:
    """Yield documents of imported spans, one per line.

    Raises ``InputError`` where the folder is damaged.
    """
    resources = [_object(text, spans.name) for text in spans.resources()]
    scan = spans.scan().select(*TABLES["spans"])
    for first in range(0, int(spans.about["spans"]), FLUSH_ROWS):
        with sound(spans.name):
            frame = scan.slice(first, FLUSH_ROWS).collect()
        for part in frame.iter_slices(_SPANS):
            yield _document(part, resources, spans.name)


def _document(frame: pl.DataFrame, resources: list[dict[str, Any]], name: str) -> str:
    """Return one document of spans, grouped by their resource and scope.

    ``resources`` has the attributes of each resource by number; ``name`` is the folder's name in
    messages.
    """
    found: dict[str, dict[str, Any]] = {}
    scopes: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in frame.iter_rows(named=True):
        extra = _object(row["extra"], name)
        resource = _resource(row, resources, extra, name)
        scope = extra.get("scope") or {}
        of, by = _ENCODE(resource), _ENCODE(scope)
        spans = scopes.get((of, by))
        if spans is None:
            document = found.setdefault(of, {"resource": resource, "scopeSpans": []})
            spans = scopes[of, by] = []
            document["scopeSpans"].append({"scope": scope, "spans": spans})
        spans.append(_span(row, extra, name))
    return _ENCODE({"resourceSpans": list(found.values())}) + "\n"


def _resource(
    row: Mapping[str, Any], resources: list[dict[str, Any]], extra: Mapping[str, Any], name: str
) -> dict[str, Any]:
    number = row["resource"]
    if number is None:
        said = {
            "service.name": row["service"],
            "service.instance.id": row["instance"],
            "host.name": row["host"],
        }
        attributes = {key: value for key, value in said.items() if value is not None}
    elif number < len(resources):
        attributes = resources[number]
    else:
        raise InputError(
            f"{name}: spans.parquet names resource {number}, which resources.parquet does not have"
        )
    rest = extra.get("resource")
    return {"attributes": pairs(attributes), **(rest if isinstance(rest, dict) else {})}


def _span(row: Mapping[str, Any], extra: Mapping[str, Any], name: str) -> dict[str, Any]:
    shift = row["shift_ns"]
    status: dict[str, Any] = {"code": CODES.index(row["status"])} if row["status"] else {}
    if extra.get("statusMessage"):
        status["message"] = extra["statusMessage"]
    span = {
        "traceId": row["trace_id"],
        "spanId": row["span_id"],
        "parentSpanId": row["parent_id"] or extra.get("recordedParent") or "",
        "name": row["operation"] or "",
        "kind": KINDS.index(row["kind"]) if row["kind"] in KINDS else 0,
        "startTimeUnixNano": str(row["start_ns"] - shift),
        "endTimeUnixNano": str(row["end_ns"] - shift),
        "attributes": pairs(_object(row["attributes"], name)),
        "status": status,
    }
    return span | {key: extra[key] for key in _OF_SPAN if key in extra}


def _object(text: str | None, name: str) -> dict[str, Any]:
    """Return the object that a JSON text holds; an empty object for null."""
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{name}: attributes are not an object of JSON: {clean(text, 60)!r}")
    return found
