"""Makes spans for tests, and writes them in every format that Eastwest reads."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

BEGAN_NS = 1_700_000_000 * 10**9
MS = 10**6
_OTLP_KINDS = ["", "internal", "server", "client", "producer", "consumer"]


@dataclass
class Made:
    """One span; times are in milliseconds from the time zero of the test."""

    span: int
    parent: int = 0
    start: float = 0.0
    end: float = 1.0
    service: str = "web"
    operation: str = "work"
    kind: str = ""
    trace: int = 1
    host: str = ""
    failed: bool = False
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def trace_id(self) -> str:
        return f"{self.trace:032x}"

    @property
    def span_id(self) -> str:
        return f"{self.span:016x}"

    @property
    def parent_id(self) -> str:
        return f"{self.parent:016x}" if self.parent else ""

    @property
    def start_ns(self) -> int:
        return BEGAN_NS + round(self.start * MS)

    @property
    def end_ns(self) -> int:
        return BEGAN_NS + round(self.end * MS)


def a_call() -> list[Made]:
    """Return a request that a web server answers with the help of a database on another host."""
    return [
        Made(1, 0, 0, 100, "web", "GET /", "server", host="a"),
        Made(2, 1, 10, 60, "web", "query", "client", host="a", attributes={"port": 7}),
        Made(3, 2, 20, 50, "db", "query", "server", host="b", failed=True),
        Made(4, 1, 70, 90, "web", "render", "internal", host="a"),
    ]


def _any(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def _pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _any(value)} for key, value in attributes.items()]


def otlp(spans: Sequence[Made]) -> dict[str, Any]:
    """Return an OTLP document in JSON."""
    found = []
    for span in spans:
        place = {"service.name": span.service} if span.service else {}
        if span.host:
            place["host.name"] = span.host
        one: dict[str, Any] = {
            "traceId": span.trace_id,
            "spanId": span.span_id,
            "parentSpanId": span.parent_id,
            "name": span.operation,
            "kind": _OTLP_KINDS.index(span.kind),
            "startTimeUnixNano": str(span.start_ns),
            "endTimeUnixNano": str(span.end_ns),
            "attributes": _pairs(span.attributes),
            "status": {"code": 2} if span.failed else {},
        }
        found.append({"resource": {"attributes": _pairs(place)}, "scopeSpans": [{"spans": [one]}]})
    return {"resourceSpans": found}


def protobuf(spans: Sequence[Made]) -> bytes:
    """Return an OTLP message in protobuf."""
    data = TracesData()
    for span in spans:
        one = data.resource_spans.add()
        for key, text in (("service.name", span.service), ("host.name", span.host)):
            if text:
                pair = one.resource.attributes.add()
                pair.key, pair.value.string_value = key, text
        made = one.scope_spans.add().spans.add()
        made.trace_id, made.span_id = bytes.fromhex(span.trace_id), bytes.fromhex(span.span_id)
        made.parent_span_id = bytes.fromhex(span.parent_id)
        made.name = span.operation
        made.kind = _OTLP_KINDS.index(span.kind)  # type: ignore[assignment]
        made.start_time_unix_nano, made.end_time_unix_nano = span.start_ns, span.end_ns
        for key, value in span.attributes.items():
            pair = made.attributes.add()
            pair.key, pair.value.int_value = key, value
        if span.failed:
            made.status.code = 2  # type: ignore[assignment]
    return bytes(data.SerializeToString())


def jaeger(spans: Sequence[Made]) -> dict[str, Any]:
    """Return an answer of Jaeger's query service."""
    processes = {}
    found = []
    for number, span in enumerate(spans):
        tags = [{"key": "hostname", "type": "string", "value": span.host}] if span.host else []
        processes[f"p{number}"] = {"serviceName": span.service, "tags": tags}
        reference = {"refType": "CHILD_OF", "traceID": span.trace_id, "spanID": span.parent_id}
        given = {**span.attributes, **({"span.kind": span.kind} if span.kind else {})}
        if span.failed:
            given["error"] = True
        found.append(
            {
                "traceID": span.trace_id,
                "spanID": span.span_id,
                "operationName": span.operation,
                "references": [reference] if span.parent else [],
                "startTime": span.start_ns // 1000,
                "duration": (span.end_ns - span.start_ns) // 1000,
                "tags": [{"key": key, "value": value} for key, value in given.items()],
                "processID": f"p{number}",
            }
        )
    return {"data": [{"traceID": "1", "spans": found, "processes": processes}]}


def zipkin(spans: Sequence[Made]) -> list[dict[str, Any]]:
    """Return a list of spans in Zipkin's format."""
    found = []
    for span in spans:
        endpoint = {"serviceName": span.service, "ipv4": f"10.0.0.{ord(span.host or 'a')}"}
        one: dict[str, Any] = {
            "traceId": span.trace_id,
            "id": span.span_id,
            "name": span.operation,
            "timestamp": span.start_ns // 1000,
            "duration": (span.end_ns - span.start_ns) // 1000,
            "localEndpoint": endpoint,
            "tags": {key: str(value) for key, value in span.attributes.items()},
        }
        if span.parent:
            one["parentId"] = span.parent_id
        if span.kind not in {"", "internal"}:
            one["kind"] = span.kind.upper()
        if span.failed:
            one["tags"]["error"] = "yes"
        found.append(one)
    return found


def csv_text(spans: Sequence[Made]) -> str:
    """Return spans in CSV with the column names of the normal form."""
    rows = ["trace_id,span_id,parent_id,service,host,operation,kind,status,start_ns,end_ns,port"]
    for span in spans:
        status = "error" if span.failed else ""
        port = span.attributes.get("port", "")
        rows.append(
            f"{span.trace_id},{span.span_id},{span.parent_id},{span.service},{span.host},"
            f"{span.operation},{span.kind},{status},{span.start_ns},{span.end_ns},{port}"
        )
    return "\n".join(rows) + "\n"


def write(folder: Path, spans: Sequence[Made], kind: str = "otlp-json") -> Path:
    """Write spans in a format that ``--format`` knows, or as OTLP in lines or with lengths."""
    path = folder / f"spans.{kind}"
    message = protobuf(spans)
    texts: dict[str, Any] = {
        "otlp-json": lambda: json.dumps(otlp(spans), indent=1).encode(),
        "otlp-lines": lambda: b"".join(json.dumps(otlp([s])).encode() + b"\n" for s in spans),
        "otlp-proto": lambda: message,
        "otlp-fixed": lambda: struct.pack(">I", len(message)) + message,
        "otlp-varint": lambda: _varint(len(message)) + message,
        "jaeger": lambda: json.dumps(jaeger(spans)).encode(),
        "zipkin": lambda: json.dumps(zipkin(spans)).encode(),
        "csv": lambda: csv_text(spans).encode(),
    }
    path.write_bytes(texts[kind]())
    return path


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])
