"""Writes imported spans as OTLP in JSON, one document per line, with the data of the source.

Times are those of the source, without the correction of clock skew. A span whose parent ``mend``
removed names this parent again. Links, events, scope and the other fields of ``extra`` are written.
Data that the import left out or changed cannot be restored. Attributes of bytes are strings in
base64. A span whose source stated no resource gets a resource with its service, instance and host.
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

#: Maximum number of spans in a document, which is one line.
_SPANS = 5_000
_ENCODE = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode
#: Fields of ``extra`` that belong to the span itself in OTLP, not to its scope or resource.
_OF_SPAN = (
    *("traceState", "flags", "links", "events"),
    *("droppedAttributesCount", "droppedEventsCount", "droppedLinksCount"),
)


def lines(spans: Spans) -> Iterator[str]:
    """Yield documents of OTLP's JSON with all spans of a folder, one per line.

    Raises ``InputError`` if the folder is damaged.
    """
    resources = [_object(text, spans.name) for text in spans.resources()]
    scan = spans.scan().select(*TABLES["spans"])
    for first in range(0, int(spans.about["spans"]), FLUSH_ROWS):
        with sound(spans.name):
            frame = scan.slice(first, FLUSH_ROWS).collect()
        for part in frame.iter_slices(_SPANS):
            yield _document(part, resources, spans.name)


def _document(frame: pl.DataFrame, resources: list[dict[str, Any]], name: str) -> str:
    """Return the spans of ``frame`` as one document of OTLP's JSON, by resource and scope.

    ``resources`` has the attributes of each resource by its number; ``name`` is the name of the
    folder in messages.
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
    """Return the object in a JSON text; an empty object for None.

    Raises ``InputError``, with ``name`` as the folder's name, if the text holds no object.
    """
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{name}: attributes or extra are not a JSON object: {clean(text, 60)!r}")
    return found
