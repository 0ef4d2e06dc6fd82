"""Values of spans beyond the columns are kept and reported; the account follows the spans."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from typer.testing import CliRunner, Result

import eastwest as ew
import project_paths
import spans_made
from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.observe.form import TABLES
from eastwest.observe.load import open_spans
from eastwest.observe.take import import_spans
from eastwest.traces.made import Imported
from spans_made import MS, Made, a_call

DATA = project_paths.DATA / "spans"
T0 = spans_made.BEGAN_NS


def taken(path: Path, **options: Any) -> Imported:
    out = path.parent / "spans"
    return import_spans([path], out, force=True, lasting=False, **options)


def frame(path: Path, **options: Any) -> pl.DataFrame:
    taken(path, **options)
    with open_spans(path.parent / "spans") as spans:
        return spans.frame(*TABLES["spans"])


def noted(imported: Imported) -> dict[str, int]:
    return {reason: found.count for reason, found in imported.account.noted.items()}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


def text(value: str) -> dict[str, Any]:
    return {"stringValue": value}


def rich() -> dict[str, Any]:
    """Return an OTLP document in which every field of a span, scope and resource has a value."""
    span = {
        "traceId": "5b8efff798038103d269b633813fc60c",
        "spanId": "eee19b7ec3c1b174",
        "parentSpanId": "eee19b7ec3c1b173",
        "traceState": "congo=t61rcWkgMzE",
        "flags": 257,
        "name": "checkout",
        "kind": 2,
        "startTimeUnixNano": str(T0 + 5),
        "endTimeUnixNano": str(T0 + 905),
        "attributes": [
            {"key": "a", "value": text("x")},
            {"key": "d", "value": {"doubleValue": 2.0}},
            {"key": "n", "value": {"intValue": "12"}},
            {"key": "b", "value": {"boolValue": True}},
            {"key": "l", "value": {"arrayValue": {"values": [{"intValue": "1"}, text("y")]}}},
            {"key": "m", "value": {"kvlistValue": {"values": [{"key": "k", "value": text("v")}]}}},
        ],
        "droppedAttributesCount": 3,
        "events": [
            {
                "timeUnixNano": str(T0 + 7),
                "name": "exception",
                "attributes": [{"key": "exception.type", "value": text("IOError")}],
                "droppedAttributesCount": 1,
            }
        ],
        "droppedEventsCount": 4,
        "links": [
            {
                "traceId": "a" * 32,
                "spanId": "b" * 16,
                "traceState": "x=1",
                "attributes": [{"key": "why", "value": text("batch")}],
            },
            {"traceId": "c" * 32, "spanId": "d" * 16},
        ],
        "droppedLinksCount": 5,
        "status": {"code": 2, "message": "it burns"},
    }
    root = {
        **{key: span[key] for key in ("traceId", "startTimeUnixNano", "endTimeUnixNano", "name")},
        "spanId": "eee19b7ec3c1b173",
        "parentSpanId": "",
        "kind": 0,
        "attributes": [],
        "status": {},
    }
    resource = {
        "attributes": [{"key": "service.name", "value": text("shop")}],
        "droppedAttributesCount": 2,
    }
    scope = {
        "name": "tracer",
        "version": "1.2",
        "attributes": [{"key": "s", "value": text("t")}],
    }
    return {
        "resourceSpans": [
            {"resource": resource, "scopeSpans": [{"scope": scope, "spans": [root, span]}]}
        ]
    }


def written(folder: Path, document: Any, name: str = "in.json") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(json.dumps(document))
    return path


def as_protobuf(document: dict[str, Any]) -> bytes:
    """Return the message in protobuf, whose own JSON has identifiers in base64."""
    changed = json.loads(json.dumps(document))
    for group in changed["resourceSpans"]:
        for scope in group["scopeSpans"]:
            for span in scope["spans"]:
                for each in (span, *span.get("links", [])):
                    for key in ("traceId", "spanId", "parentSpanId"):
                        if key in each:
                            each[key] = base64.b64encode(bytes.fromhex(each[key])).decode()
    return ParseDict(changed, TracesData()).SerializeToString()


@pytest.mark.parametrize("kind", ["json", "protobuf"])
def test_a_round_trip_loses_nothing(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, rich())
    if kind == "protobuf":
        path = tmp_path / "in.pb"
        path.write_bytes(as_protobuf(rich()))
    imported = taken(path)
    told = noted(imported)
    assert told["a link to another span"] == 2
    assert told["an event of a span"] == 1
    assert told["a span with a trace state"] == 1
    assert told["an attribute that was dropped at recording"] == 3
    assert told["an event that was dropped at recording"] == 4
    assert told["a link that was dropped at recording"] == 5
    assert told["a status with a message"] == 1
    found = imported.account.noted["a link to another span"]
    assert "what-if do not follow links" in found.consequence
    out = tmp_path / "out.json"
    done = run("observe", "export", tmp_path / "spans", "--spans", "-o", out)
    assert done.exit_code == 0, done.output
    assert json.loads(out.read_text()) == rich()


def test_spans_of_a_real_sample_come_back(tmp_path: Path) -> None:
    sample = DATA / "jaeger__otlp2jaeger-in.json"
    path = tmp_path / "in.json"
    path.write_bytes(sample.read_bytes())
    first = frame(path)
    assert first["extra"].null_count() == 0
    done = run("observe", "export", tmp_path / "spans", "--spans", "-o", tmp_path / "again.json")
    assert done.exit_code == 0, done.output
    again = frame(tmp_path / "again.json")
    assert first.drop("resource").equals(again.drop("resource"))
    given = json.loads(sample.read_text())["resourceSpans"][0]
    back = json.loads((tmp_path / "again.json").read_text())["resourceSpans"][0]
    assert back["resource"] == given["resource"]
    want = given["scopeSpans"][0]["spans"][0]
    has = back["scopeSpans"][0]["spans"][0]
    for key in ("links", "events", "parentSpanId", "status"):
        assert has.get(key) == want.get(key), key


def test_exports_have_times_and_parents_of_the_source(tmp_path: Path) -> None:
    spans = []
    for n in range(9):
        spans.append(Made(2 * n + 1, 0, 100 * n, 100 * n + 50.001, trace=n, host="a"))
        late = Made(2 * n + 2, 2 * n + 1, 100 * n + 70, 100 * n + 90.001, trace=n, host="b")
        spans.append(late)
    spans.append(Made(99, 98, 5, 6, trace=50))
    path = spans_made.write(tmp_path, spans)
    given = frame(path)
    assert given["shift_ns"].n_unique() == 2, "the test needs a clock that is shifted"
    assert given["mended"].drop_nulls().to_list() == ["lost-parent"]
    run("observe", "export", tmp_path / "spans", "--spans", "-o", tmp_path / "out.json")
    back = [
        span
        for each in json.loads((tmp_path / "out.json").read_text())["resourceSpans"]
        for span in each["scopeSpans"][0]["spans"]
    ]
    found = {
        s["spanId"]: (s["startTimeUnixNano"], s["endTimeUnixNano"], s["parentSpanId"]) for s in back
    }
    assert found == {s.span_id: (str(s.start_ns), str(s.end_ns), s.parent_id) for s in spans}


def jaeger_span(**more: Any) -> dict[str, Any]:
    return {
        "traceID": "a" * 32,
        "spanID": "b" * 16,
        "operationName": "work",
        "startTime": T0 // 1000,
        "duration": 10,
        "processID": "p1",
        **more,
    }


def jaeger(folder: Path, *spans: dict[str, Any], **trace: Any) -> Path:
    processes = {"p1": {"serviceName": "web", "tags": []}}
    whole = {"traceID": "a" * 32, "spans": list(spans), "processes": processes, **trace}
    return written(folder, {"data": [whole], "errors": None})


def test_references_of_jaeger_that_are_no_parent_are_links(tmp_path: Path) -> None:
    other = {"refType": "FOLLOWS_FROM", "traceID": "c" * 32, "spanID": "d" * 16}
    strange = {"refType": "CAUSED_BY", "traceID": "a" * 32, "spanID": "e" * 16}
    path = jaeger(
        tmp_path,
        jaeger_span(references=[other]),
        jaeger_span(spanID="e" * 16, references=[strange]),
    )
    found = frame(path)
    assert found["parent_id"].to_list() == [None, None]
    links = [json.loads(extra)["links"][0] for extra in found.sort("span_id")["extra"]]
    assert [(each["traceId"][0], each["spanId"][0]) for each in links] == [("c", "d"), ("a", "e")]
    kinds = [each["attributes"][0]["value"]["stringValue"] for each in links]
    assert kinds == ["follows_from", "caused_by"]
    assert noted(taken(path))["a link to another span"] == 2


def test_logs_warnings_and_flags_of_jaeger(tmp_path: Path) -> None:
    log = {
        "timestamp": T0 // 1000 + 3,
        "fields": [{"key": "event", "value": "retry"}, {"key": "n", "value": 2}],
    }
    twice = [{"key": "t", "value": 1}, {"key": "t", "value": 2}]
    path = jaeger(
        tmp_path,
        jaeger_span(logs=[log], warnings=["clock skew"], flags=3, tags=twice),
        warnings=["a trace's own"],
    )
    found = frame(path).row(0, named=True)
    extra = json.loads(found["extra"])
    assert extra["flags"] == 3
    assert extra["events"] == [
        {
            "timeUnixNano": str(T0 + 3000),
            "name": "retry",
            "attributes": [{"key": "n", "value": {"intValue": "2"}}],
        }
    ]
    attributes = json.loads(found["attributes"])
    assert attributes == {"t": 2, "jaeger.warnings": ["clock skew"]}
    told = noted(taken(path))
    assert told["an event of a span"] == 1
    assert told["an attribute that a span has twice"] == 1
    assert told["a trace with warnings of Jaeger"] == 1


def zipkin_span(**more: Any) -> dict[str, Any]:
    return {
        "traceId": "a" * 16,
        "id": "b" * 16,
        "name": "get",
        "timestamp": T0 // 1000,
        "duration": 10,
        "localEndpoint": {"serviceName": "web", "ipv4": "10.0.0.1", "ipv6": "fe80::1"},
        **more,
    }


def test_annotations_of_zipkin_are_events(tmp_path: Path) -> None:
    annotations = [{"timestamp": T0 // 1000 + 1, "value": "wire send"}, {"value": "no time"}]
    path = written(
        tmp_path, [zipkin_span(annotations=annotations, debug=True, kind="OTHER", new=1)]
    )
    found = frame(path).row(0, named=True)
    event = {"timeUnixNano": str(T0 + 1000), "name": "wire send", "attributes": []}
    assert json.loads(found["extra"]) == {"events": [event]}
    assert json.loads(found["attributes"]) == {"zipkin.debug": True}
    told = noted(taken(path))
    assert told["an event of a span"] == 1
    assert told["an annotation without a time or a value: left out"] == 1
    assert told["an unknown kind of a span: treated as missing"] == 1
    assert told["unknown field: left out"] == 1
    resources = pl.read_parquet(tmp_path / "spans" / "resources.parquet")
    assert json.loads(resources["attributes"][0])["ipv6"] == "fe80::1"


@pytest.mark.parametrize(
    "more",
    [
        {"binaryAnnotations": []},
        {
            "annotations": [
                {
                    "timestamp": 1,
                    "value": "cs",
                    "endpoint": {"serviceName": "web", "ipv4": "1.1.1.1"},
                }
            ]
        },
    ],
)
def test_version_1_of_zipkin_is_refused_by_its_name(tmp_path: Path, more: Any) -> None:
    span = {"traceId": "a" * 16, "id": "b" * 16, "name": "get", **more}
    for on_bad_row in ("stop", "skip"):
        with pytest.raises(InputError, match=r"in.json:1: is Zipkin's JSON of version 1 .*/api/v2"):
            taken(written(tmp_path, [span]), on_bad_row=on_bad_row)


def test_values_that_cannot_be_kept_as_they_are_are_told(tmp_path: Path) -> None:
    document = rich()
    span = document["resourceSpans"][0]["scopeSpans"][0]["spans"][1]
    span["attributes"] = [
        {"key": "nan", "value": {"doubleValue": "NaN"}},
        {"key": "raw", "value": {"bytesValue": "aGk="}},
        {"key": "odd", "value": {"dateValue": "today"}},
        {"key": "k" * 2000, "value": text("x")},
    ]
    span["kind"], span["status"] = 17, {"code": "STATUS_CODE_LATE"}
    span["newField"], span["name"] = 1, "n" * 5000
    path = written(tmp_path, document)
    told = noted(taken(path))
    for reason in (
        "a doubleValue that is not a finite number: kept as text",
        "an attribute whose value is bytes",
        "a value of a type that OTLP does not have: left out",
        "an attribute whose name is longer than 1,024 characters",
        "an unknown kind of a span: treated as missing",
        "an unknown status of a span: treated as missing",
        "unknown field: left out",
        "the name of an operation is not text, or longer than 4,096 characters: changed",
    ):
        assert told.get(reason) == 1, (reason, told)
    attributes = json.loads(frame(path).sort("span_id")["attributes"][1])
    assert attributes["nan"] == "NaN"
    assert attributes["raw"] == "aGk="


def test_a_resource_that_follows_its_spans_is_no_loss_without_a_word(tmp_path: Path) -> None:
    group = rich()["resourceSpans"][0]
    late = {"scopeSpans": group["scopeSpans"], "resource": group["resource"]}
    path = written(tmp_path, {"resourceSpans": [late]})
    with pytest.raises(InputError, match=r"a resource that follows its spans.*with --lossy"):
        taken(path)
    imported = taken(path, lossy=True)
    assert imported.account.changed["a resource that follows its spans"].count == 2


def test_identifiers_in_base64_keep_their_case(tmp_path: Path) -> None:
    document = rich()
    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    for span, own, parent in zip(spans, ("q6urq6urq6s=", "Q6URq6urq6s="), ("", ""), strict=True):
        span["traceId"], span["spanId"], span["parentSpanId"] = (
            "W47/95gDgQPSabYzgT/GDA==",
            own,
            parent,
        )
    found = frame(written(tmp_path, document))
    assert sorted(found["span_id"]) == ["Q6URq6urq6s=", "q6urq6urq6s="]


# Clocks.


def recording(
    shift_ms: dict[str, float], step_ns: int, calls: int = 400, seed: int = 1
) -> list[Made]:
    """Return calls from ``front`` to services, whose clocks are ahead and cut times to a step."""
    draw = random.Random(seed)
    spans: list[Made] = []

    def cut(service: str, at: float) -> float:
        ns = round((at + shift_ms.get(service, 0.0)) * MS)
        return ns // step_ns * step_ns / MS

    for n in range(calls):
        at = 20.0 * n + draw.random() * 10
        length = 2 + draw.random() * 8
        spans.append(
            Made(
                *(10 * n + 1, 0, cut("front", at), cut("front", at + length), "front"),
                trace=n + 1,
                host="front",
            )
        )
        for place, service in enumerate(("cart", "ads", "mail", "pay")):
            begin = at + length * (0.1 + 0.2 * draw.random())
            end = begin + (at + length - begin) * (0.3 + 0.7 * draw.random() ** 3)
            spans.append(
                Made(
                    *(10 * n + 2 + place, 10 * n + 1, cut(service, begin), cut(service, end)),
                    service,
                    trace=n + 1,
                    host=service,
                )
            )
    return spans


def late_ends(step_ns: int) -> list[Made]:
    """Return spans on a coarse clock that begin with their callers and end one step after them."""
    spans = []
    step = step_ns / MS
    for n in range(60):
        at = 40.0 * n
        spans.append(Made(3 * n + 1, 0, at, at + 9 * step, "front", trace=n + 1, host="front"))
        inside = Made(3 * n + 2, 3 * n + 1, at + step, at + 10 * step, "ads", trace=n + 1)
        inside.host = "ads"
        spans.append(inside)
    return spans


@pytest.mark.parametrize("step_ns", [10**6, 10**5])
def test_steps_of_a_clock_are_no_skew(tmp_path: Path, step_ns: int) -> None:
    for spans in (recording({}, step_ns), late_ends(step_ns)):
        imported = taken(spans_made.write(tmp_path, spans))
        skew = imported.about["skew"]
        assert skew["shifted"] == 0, skew
        assert skew["resolution_ns"][-1]["step_ns"] >= step_ns
        assert skew["outside_after"] == skew["outside_before"]
        assert any("counts time in steps of" in reason for reason in imported.account.noted)
    assert skew["outside_within_resolution"] == 60
    reason = "a call that lies outside its caller, but by no more than the steps of both clocks"
    assert imported.account.noted[reason].count == 60


@pytest.mark.parametrize("step_ns", [1, 1000, 10**6])
def test_skews_above_the_steps_are_found(tmp_path: Path, step_ns: int) -> None:
    true = {"cart": 30.0, "ads": -25.0, "mail": 0.0, "pay": 3600_000.0}
    imported = taken(spans_made.write(tmp_path, recording(true, step_ns)))
    found = imported.about["skew"]["shift_ns"]
    assert set(found) == {"cart", "ads", "pay"}
    for clock, shift in found.items():
        # The estimate's error is at most the difference of the delays of both directions.
        assert abs(shift / MS + true[clock]) < 2.5, (clock, shift)
    assert imported.about["skew"]["outside_after"] < 0.1 * imported.about["skew"]["outside_before"]
    reason = "a clock that contradicts the clocks of its callers: shifted"
    told = imported.account.noted[reason]
    assert told.count == 3
    assert told.places[0][2].startswith("pay: -")
    assert "calls lay outside their callers" in told.consequence


def test_spans_longer_than_their_callers_say_nothing_of_clocks(tmp_path: Path) -> None:
    """Most calls outlive their callers; the others could all be with clocks that agree."""
    spans = []
    for n in range(30):
        at, longer = 100.0 * n, n % 3 != 0
        spans.append(Made(2 * n + 1, 0, at, at + 10.001, trace=n + 1, host="a"))
        end = at + (40.007 if longer else 3.007)
        below = Made(2 * n + 2, 2 * n + 1, at + 0.103, end, trace=n + 1, host="b")
        spans.append(below)
    assert taken(spans_made.write(tmp_path, spans)).about["skew"]["shifted"] == 0


# The account goes on.


def lossy_file(folder: Path) -> Path:
    spans = [*a_call(), Made(7, 3, 45, 40, "db", "log", host="b"), Made(8, 99, 5, 6)]
    return spans_made.write(folder, spans)


def test_lossy_is_asked_for_wherever_spans_are_read(tmp_path: Path) -> None:
    path = lossy_file(tmp_path)
    for command in (
        ["import", path, "-o", tmp_path / "o"],
        ["infer", path, "--method", "ids"],
        ["workload", path, "-o", tmp_path / "w"],
        ["graphs", path, "-o", tmp_path / "g"],
    ):
        done = run("observe", *command)
        assert done.exit_code == 2, done.output
        assert "a span that ends before it starts" in " ".join(done.output.split())
        assert "with --lossy" in " ".join(done.output.split())
        done = run("observe", *command, "--lossy")
        assert done.exit_code == 0, done.output
        shown = " ".join(done.output.split())
        assert "eastwest: changed 1 × a span that ends before it starts" in shown
        assert "noted 1 × a span whose parent is missing" in shown
        assert "the span begins a transaction of its own" in shown


def test_the_account_goes_where_the_spans_go(tmp_path: Path) -> None:
    spans = tmp_path / "s"
    assert run("observe", "import", lossy_file(tmp_path), "-o", spans, "--lossy").exit_code == 0
    inferred = tmp_path / "i"
    command = ["infer", spans, "--method", "linking", "--by", "trace_id", "-o", inferred]
    assert run("observe", *command).exit_code == 0
    said = json.loads((inferred / "spans.json").read_text())["accounts"]
    assert [each["reason"] for each in said[0]["changed"]] == ["a span that ends before it starts"]
    assert run("observe", "workload", inferred, "-o", tmp_path / "w").exit_code == 0
    workload = json.loads((tmp_path / "w" / "workload.json").read_text())["accounts"]
    changed = [each["reason"] for account in workload for each in account["changed"]]
    assert changed == ["a span that ends before it starts"]
    result = ew.run(tmp_path / "w" / "scenario.toml", out=tmp_path / "r")
    again = ew.run(tmp_path / "r", out=tmp_path / "again")
    for each in (result, again):
        told = [note for note in each.summary["notes"] if "ends before it starts" in note]
        assert len(told) == 1
        assert told[0].startswith("workload transactions: spans: changed 1 × ")
    assert run("observe", "graphs", inferred, "-o", tmp_path / "g").exit_code == 0
    page = (tmp_path / "g" / "observe.html").read_text()
    assert "What the import left out, changed and noted" in page
    assert "a span that ends before it starts" in page
    assert "the duration is 0" in page


def test_an_account_of_a_folder_is_not_trusted(tmp_path: Path) -> None:
    path = spans_made.write(tmp_path, a_call())
    taken(path)
    about = tmp_path / "spans" / "spans.json"
    said = json.loads(about.read_text())
    said["noted"] = [
        {"reason": "<script>x</script>\u0007", "count": 3, "consequence": 7, "first": "no"},
        {"reason": 5, "count": 1},
        "nothing",
    ]
    said["accounts"] = [7, {"of": None, "changed": {}}]
    about.write_text(json.dumps(said))
    assert run("observe", "graphs", tmp_path / "spans", "-o", tmp_path / "g").exit_code == 0
    page = (tmp_path / "g" / "observe.html").read_text()
    assert "<script>x" not in page
    assert "3 × &lt;script&gt;x&lt;/script&gt;" in page


def test_a_folder_of_an_earlier_build_is_read(tmp_path: Path) -> None:
    path = spans_made.write(tmp_path, a_call())
    taken(path)
    table = tmp_path / "spans" / "spans.parquet"
    pl.read_parquet(table).drop("extra").write_parquet(table)
    with open_spans(tmp_path / "spans") as spans:
        assert spans.frame("extra")["extra"].null_count() == 4


def test_much_text_is_passed_on_before_there_are_many_spans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from eastwest.observe import gather, write  # noqa: PLC0415  to be changed

    many = {f"key {number}": number for number in range(150)}
    spans = [Made(n, attributes=dict(many), trace=n) for n in range(1, 200)]
    path = spans_made.write(tmp_path, spans)
    whole = frame(path).sort("trace_id")
    monkeypatch.setattr(gather, "FLUSH_TEXT", 10_000)
    monkeypatch.setattr(write, "MEND_BYTES", 50_000)
    parts: list[int] = []
    part = write.SpanWriter.part

    def counted(self: Any, some: pl.DataFrame) -> None:
        parts.append(some.height)
        part(self, some)

    monkeypatch.setattr(write.SpanWriter, "part", counted)
    assert frame(path).sort("trace_id").equals(whole)
    assert max(parts) <= 6


# Tables of spans.


def csv_frame(folder: Path, head: str, *rows: str, **options: Any) -> pl.DataFrame:
    path = folder / "in.csv"
    path.write_text("\n".join([head, *rows]) + "\n")
    return frame(path, **options)


def test_fractions_of_seconds_are_exact(tmp_path: Path) -> None:
    found = csv_frame(
        tmp_path,
        "trace_id,span_id,start_s,duration_ms",
        "t,a,1700000000.123456789,0.000001",
        "t,b,1700000000,1.5",
        "t,c,1.7e9,2e0",
    ).sort("span_id")
    assert found["start_ns"].to_list() == [1_700_000_000_123_456_789, T0, T0]
    assert (found["end_ns"] - found["start_ns"]).to_list() == [1, 1_500_000, 2_000_000]


def test_values_of_tables_that_are_not_kept_are_told(tmp_path: Path) -> None:
    head = "trace_id,span_id,start_ns,end_ns,kind,status,attributes,operation"
    times = f"{T0},{T0 + 1}"
    found = csv_frame(
        tmp_path,
        head,
        f"t,a,{times},server,ok,{{}},x",
        f"t,b,{times},SPAN_KIND_CLIENT,STATUS_CODE_UNSET,,x",
        f"t,c,{times},weird,200,k=v,{'n' * 5000}",
    )
    assert found.sort("span_id")["kind"].to_list() == ["server", "client", None]
    told = taken(tmp_path / "in.csv").account.noted
    assert told["an unknown kind of a span: treated as missing"].places == [
        (str(tmp_path / "in.csv"), 4, "weird")
    ]
    assert told["an unknown status of a span: treated as missing"].count == 1
    assert told["attributes is not an object of JSON: left out"].count == 1
    assert told["operation is longer than 4,096 characters: it is cut"].count == 1


def test_codes_of_http_are_attributes_and_no_status(tmp_path: Path) -> None:
    head = "trace_id,span_id,start_ns,end_ns,status_code,kind"
    rows = [f"t,{n},{T0},{T0 + 1},{200 + n},server" for n in range(3)]
    found = csv_frame(tmp_path, head, *rows).sort("span_id")
    assert found["status"].null_count() == 3
    assert found["kind"].to_list() == ["server"] * 3
    codes = [json.loads(text) for text in found["attributes"]]
    assert codes == [{"status_code": str(200 + n)} for n in range(3)]
    told = noted(taken(tmp_path / "in.csv"))
    assert told["the column status_code holds no known status: used as an attribute"] == 1


def test_pods_give_services_row_by_row_whatever_the_blocks(tmp_path: Path) -> None:
    head = "trace_id,span_id,start_ns,end_ns,service,pod"
    rows = [
        f"t,{n},{T0},{T0 + 1},{'named' if n == 1 else ''},cart-5b8f4d6c7d-x2x4z" for n in (1, 2)
    ]
    assert csv_frame(tmp_path, head, *rows).sort("span_id")["service"].to_list() == [
        "named",
        "cart",
    ]


def test_identifiers_of_tables_keep_their_case_unless_they_are_hexadecimal(tmp_path: Path) -> None:
    head = "trace_id,span_id,parent_id,start_ns,end_ns"
    times = f"{T0},{T0 + 1}"
    found = csv_frame(
        tmp_path,
        head,
        f"ABCD-EF,q6u=,ROOT,{times}",
        f"abcd-ef,Q6U=,q6u=,{times}",
    )
    assert found["trace_id"].to_list() == ["abcd-ef"] * 2
    assert dict(found.select("span_id", "parent_id").iter_rows()) == {"q6u=": None, "Q6U=": "q6u="}
