"""Data of a span for which the table of spans has no column: links, events, trace state, scope.

The column ``extra`` holds these data as a JSON object. Its names and values are those of a span in
OTLP's JSON. Four names are added: ``statusMessage``, ``scope``, ``resource`` (fields of a resource
except its attributes) and ``recordedParent``, the parent that the source stated before ``mend``
removed it. The export of spans writes all of these data. Graphs, transactions and workloads do not
use them; the report of the import says so for data that could change results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from eastwest.observe.otlp_values import pairs
from eastwest.observe.remarks import Remarks
from eastwest.observe.span import SpanError, dumped

#: Maximum length of the JSON text in the column ``extra`` of a span, in characters; the fields of a
#: longer text are left out.
MOST_EXTRA = 1 << 18

_UNUSED = "stored for export; graphs, transactions and workloads do not use it"
_DROPPED = "the tracer dropped the data: the content is unknown"
#: Fields of a span that are stored in ``extra``: type, remark in the report of the import, and
#: consequence for results. A field with an empty remark is not reported.
_KEPT: dict[str, tuple[type, str, str]] = {
    "links": (
        list,
        "a link to another span",
        "kept for export; transactions and what-if do not follow links, so that work which another "
        "trace caused counts as a transaction of its own",
    ),
    "events": (list, "an event of a span", _UNUSED),
    "traceState": (str, "a span with a trace state", _UNUSED),
    "flags": (int, "", ""),
    "statusMessage": (str, "a status with a message", _UNUSED),
    "droppedAttributesCount": (
        int,
        "an attribute that was dropped at recording",
        f"{_DROPPED}; message sizes in these attributes are replaced by a rule",
    ),
    "droppedEventsCount": (int, "an event that was dropped at recording", _DROPPED),
    "droppedLinksCount": (
        int,
        "a link that was dropped at recording",
        f"{_DROPPED}; no tool can follow the links",
    ),
}


@dataclass(frozen=True)
class Shared:
    """Fields of ``extra`` that all spans of a scope have, and the JSON text of these fields."""

    fields: dict[str, Any] = field(default_factory=dict)
    text: str | None = None


NOTHING = Shared()


def shared(scope: Any, resource_rest: Mapping[str, Any], remarks: Remarks) -> Shared:
    """Return the fields of ``extra`` that all spans of a scope have.

    ``scope`` is the ``InstrumentationScope`` of the spans; ``resource_rest`` has the fields of
    their resource except its attributes. Adds a remark if the scope cannot be stored.
    """
    fields: dict[str, Any] = {}
    if isinstance(scope, dict) and any(scope.values()):
        fields["scope"] = {name: value for name, value in scope.items() if value}
    elif scope and not isinstance(scope, dict):
        remarks.note("a scope is not an object: left out", scope, "exported spans have no scope")
    if resource_rest:
        fields["resource"] = dict(resource_rest)
    if not fields:
        return NOTHING
    text = _text(fields, remarks)
    return NOTHING if text is None else Shared(fields, text)


def carried(found: Mapping[str, Any], of: Shared, remarks: Remarks) -> str | None:
    """Return the JSON text for the column ``extra`` of a span, or None if it has no content.

    ``found`` has fields of the span in OTLP's JSON; ``of`` has the fields that all spans of the
    scope have. Fields with an unknown name or a wrong type are left out. Adds a remark for each
    field that is left out, and for stored fields such as links, events and dropped data.
    """
    kept: dict[str, Any] = {}
    for name, value in found.items():
        if not value:
            continue
        if name not in _KEPT:
            reason = "unknown field: left out"
            remarks.note(reason, name, "the field is neither used nor exported")
            continue
        kind, what, then = _KEPT[name]
        sound = _sound(value, kind)
        if sound is None:
            remarks.note(f"{name} has the wrong type: left out", value, "the field is not exported")
            continue
        kept[name] = sound
        if what:
            rows = sound if kind is int else len(sound) if kind is list else 1
            remarks.note(what, "", then, rows)
    if not kept:
        return of.text
    text = _text({**of.fields, **kept}, remarks)
    return of.text if text is None else text


def with_parent(extra: str | None, parent: str) -> str:
    """Return ``extra`` with the id of a removed parent, ``parent``, as ``recordedParent``."""
    fields = orjson.loads(extra) if extra else {}
    return dumped({**fields, "recordedParent": parent})


def link(trace: str, span: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a link of OTLP's JSON to the span with the id ``span`` of the trace ``trace``."""
    return {"traceId": trace, "spanId": span, "attributes": pairs(attributes)}


def event(time_ns: int, name: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event in OTLP's JSON; ``time_ns`` is in ns since 1970."""
    return {"timeUnixNano": str(time_ns), "name": name, "attributes": pairs(attributes)}


def _sound(value: Any, kind: type) -> Any:
    """Return ``value`` if it has the type ``kind``, else None.

    For ``list`` every item must be an object. For ``int`` the value must be below 2³²; digits as
    text are converted.
    """
    if kind is list:
        sound = isinstance(value, list) and all(isinstance(each, dict) for each in value)
        return value if sound else None
    if kind is int:
        if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 11:
            value = int(value)
        sound = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 32
        return value if sound else None
    return value if isinstance(value, kind) else None


def _text(fields: Mapping[str, Any], remarks: Remarks) -> str | None:
    try:
        text = dumped(fields)
    except SpanError:
        remarks.note(
            "links, events or scope are not valid in JSON: left out", "", "they are not exported"
        )
        return None
    if len(text) > MOST_EXTRA:
        reason = f"links, events and scope are longer than {MOST_EXTRA:,} characters: left out"
        remarks.note(reason, len(text), "they are not exported")
        return None
    return text
