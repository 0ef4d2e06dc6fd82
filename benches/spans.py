"""Measures the cost of importing spans, for each format.

``python benches/spans.py FOLDER [COUNT]`` writes COUNT spans (default: a million) in each format to
FOLDER (1.7 GB for a million). Then it reads each file with ``eastwest observe import`` in a process
of its own, and prints CPU seconds and peak memory of the process as the kernel accounts for them.
Traces have ten spans of twelve services on four hosts, with three attributes each. A file that
FOLDER already has is not written again.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, TracesData

BEGAN_US = 1_700_000_000_000_000
SPANS = 10
SERVICES = 12
OPERATIONS = ("GET /items", "POST /order", "query", "render")
#: Number of traces in one OTLP document, as an exporter sends them together.
TOGETHER = 100


@dataclass
class Made:
    """A generated span; times are in microseconds."""

    trace: str
    span: str
    parent: str
    service: int
    operation: str
    start: int
    length: int
    kind: str
    status: int
    url: str

    @property
    def host(self) -> str:
        """Return the host on which the span was recorded."""
        return f"node-{self.service % 4}"


def traces(count: int) -> Iterator[list[Made]]:
    """Yield traces as lists of their spans; each call yields the same traces."""
    draw = random.Random(1)
    for number in range(count // SPANS):
        trace = f"{draw.getrandbits(128) | 1 << 127:032x}"
        spans: list[Made] = []
        for place in range(SPANS):
            spans.append(
                Made(
                    trace,
                    f"{draw.getrandbits(64) | 1 << 63:016x}",
                    spans[(place - 1) // 3].span if place else "",
                    draw.randrange(SERVICES),
                    OPERATIONS[place % len(OPERATIONS)],
                    BEGAN_US + number * 2000 + place * 100,
                    5000 - place * 300 + draw.randrange(100),
                    "client" if place % 2 else "server",
                    draw.randrange(200, 600),
                    f"http://shop/{draw.randrange(10**6)}",
                )
            )
        yield spans


def _together(count: int) -> Iterator[list[Made]]:
    gathered: list[Made] = []
    for number, spans in enumerate(traces(count), 1):
        gathered += spans
        if number % TOGETHER == 0:
            yield gathered
            gathered = []
    if gathered:
        yield gathered


def _line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _pairs(**values: str | int) -> list[dict[str, Any]]:
    return [
        {"key": key.replace("__", "."), "value": {"intValue": str(value)}
         if isinstance(value, int) else {"stringValue": value}}
        for key, value in values.items()
    ]  # fmt: skip


def otlp_json(file: IO[bytes], count: int) -> None:
    """Write one OTLP document per line, as the Collector's file exporter does."""
    for gathered in _together(count):
        resources: dict[int, list[Any]] = {}
        for s in gathered:
            resources.setdefault(s.service, []).append(
                {
                    "traceId": s.trace,
                    "spanId": s.span,
                    "parentSpanId": s.parent,
                    "name": s.operation,
                    "kind": 2 if s.kind == "server" else 3,
                    "startTimeUnixNano": str(s.start * 1000),
                    "endTimeUnixNano": str((s.start + s.length) * 1000),
                    "attributes": _pairs(
                        http__status_code=s.status, http__url=s.url, component="http"
                    ),
                    "status": {},
                }
            )
        found = [
            {
                "resource": {
                    "attributes": _pairs(
                        service__name=f"service-{service}", host__name=f"node-{service % 4}"
                    )
                },
                "scopeSpans": [{"scope": {"name": "made"}, "spans": spans}],
            }
            for service, spans in resources.items()
        ]
        file.write(_line({"resourceSpans": found}) + b"\n")


def otlp_proto(file: IO[bytes], count: int) -> None:
    """Write protobuf messages one after the other; together they form one valid message."""
    for gathered in _together(count):
        data = TracesData()
        scopes: dict[int, ScopeSpans] = {}
        for s in gathered:
            if s.service not in scopes:
                one = data.resource_spans.add()
                for key, text in (("service.name", f"service-{s.service}"), ("host.name", s.host)):
                    pair = one.resource.attributes.add()
                    pair.key, pair.value.string_value = key, text
                scopes[s.service] = one.scope_spans.add()
            made = scopes[s.service].spans.add()
            made.trace_id, made.span_id = bytes.fromhex(s.trace), bytes.fromhex(s.span)
            made.parent_span_id = bytes.fromhex(s.parent)
            made.name = s.operation
            made.kind = 2 if s.kind == "server" else 3  # type: ignore[assignment]
            made.start_time_unix_nano = s.start * 1000
            made.end_time_unix_nano = (s.start + s.length) * 1000
            pair = made.attributes.add()
            pair.key, pair.value.int_value = "http.status_code", s.status
            for key, text in (("http.url", s.url), ("component", "http")):
                pair = made.attributes.add()
                pair.key, pair.value.string_value = key, text
        file.write(data.SerializeToString())


def jaeger(file: IO[bytes], count: int) -> None:
    """Write one answer of Jaeger's query service."""
    file.write(b'{"data":[')
    for number, spans in enumerate(traces(count)):
        found = []
        for s in spans:
            of = {"refType": "CHILD_OF", "traceID": s.trace, "spanID": s.parent}
            tags = (
                ("span.kind", "string", s.kind),
                ("http.status_code", "int64", s.status),
                ("http.url", "string", s.url),
            )
            found.append(
                {
                    "traceID": s.trace,
                    "spanID": s.span,
                    "operationName": s.operation,
                    "references": [of] if s.parent else [],
                    "startTime": s.start,
                    "duration": s.length,
                    "tags": [{"key": k, "type": t, "value": v} for k, t, v in tags],
                    "logs": [],
                    "processID": f"p{s.service}",
                    "warnings": None,
                }
            )
        processes = {
            f"p{s.service}": {
                "serviceName": f"service-{s.service}",
                "tags": [{"key": "hostname", "type": "string", "value": s.host}],
            }
            for s in spans
        }
        trace = {"traceID": spans[0].trace, "spans": found, "processes": processes}
        file.write(b"," * bool(number) + _line({**trace, "warnings": None}))
    file.write(b'],"total":0,"limit":0,"offset":0,"errors":null}')


def zipkin(file: IO[bytes], count: int) -> None:
    """Write one JSON list of spans in Zipkin's format."""
    file.write(b"[")
    for number, spans in enumerate(traces(count)):
        for place, s in enumerate(spans):
            one: dict[str, Any] = {
                "traceId": s.trace,
                "id": s.span,
                "name": s.operation,
                "kind": s.kind.upper(),
                "timestamp": s.start,
                "duration": s.length,
                "localEndpoint": {
                    "serviceName": f"service-{s.service}",
                    "ipv4": f"10.0.0.{s.service % 4}",
                },
                "tags": {"http.status_code": str(s.status), "http.url": s.url, "component": "http"},
            }
            if s.parent:
                one["parentId"] = s.parent
            file.write(b",\n" * bool(number or place) + _line(one))
    file.write(b"]")


def csv(file: IO[bytes], count: int) -> None:
    """Write CSV: a line of column names, then a line for each span."""
    file.write(
        b"TraceID,SpanID,ParentID,Service,Host,OperationName,Kind,StartTimeUnixNano,"
        b"EndTimeUnixNano,status_code,url\n"
    )
    for spans in traces(count):
        for s in spans:
            row = (
                *(s.trace, s.span, s.parent, f"service-{s.service}", s.host, s.operation, s.kind),
                *(s.start * 1000, (s.start + s.length) * 1000, s.status, s.url),
            )
            file.write((",".join(map(str, row)) + "\n").encode())


FORMATS: dict[str, Callable[[IO[bytes], int], None]] = {
    "otlp.json": otlp_json,
    "otlp.pb": otlp_proto,
    "jaeger.json": jaeger,
    "zipkin.json": zipkin,
    "spans.csv": csv,
}


def main() -> None:
    """Write the files that the folder lacks, then read each file and print its cost."""
    folder = Path(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    folder.mkdir(exist_ok=True)
    for name, write in FORMATS.items():
        path = folder / name
        if not path.exists():
            with path.open("wb") as file:
                write(file, count)
        out = folder / "spans"
        shutil.rmtree(out, ignore_errors=True)
        command = [sys.executable, "-m", "eastwest", "observe", "import", str(path), "-o", str(out)]
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        said = process.stdout.read() if process.stdout else ""
        _, status, used = os.wait4(process.pid, 0)
        wall = time.monotonic() - began
        assert status == 0 and f"{count:,} spans".replace(",000,000", " million") in said, said
        print(
            f"{name}: {path.stat().st_size / 1e6:.0f} MB, {used.ru_utime + used.ru_stime:.1f} CPU s"
            f" ({used.ru_stime:.1f} of them the kernel's), {wall:.1f} s,"
            f" {used.ru_maxrss / 1e6:.2f} GB",
            flush=True,
        )
    shutil.rmtree(folder / "spans", ignore_errors=True)


if __name__ == "__main__":
    main()
