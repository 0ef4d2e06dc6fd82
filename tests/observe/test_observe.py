"""Spans: every format becomes one form, and every error in them is repaired and reported."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner, Result

import project_paths
import spans_made
from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.observe import json_stream
from eastwest.observe.form import TABLES
from eastwest.observe.load import open_spans
from eastwest.observe.take import import_spans
from eastwest.traces import source as sources
from eastwest.traces.made import Imported
from spans_made import MS, Made, a_call

DATA = project_paths.DATA / "spans"
NEZHA = DATA / "nezha-first-20-s.csv.gz"
KINDS = [
    *("otlp-json", "otlp-lines", "otlp-proto", "otlp-fixed", "otlp-varint"),
    *("jaeger", "zipkin", "csv"),
]


def taken(folder: Path, *files: Path, **options: Any) -> Imported:
    return import_spans(files, folder / "spans", force=True, lasting=False, **options)


def table(folder: Path, *files: Path, **options: Any) -> pl.DataFrame:
    taken(folder, *files, **options)
    with open_spans(folder / "spans") as spans:
        return spans.frame(*TABLES["spans"])


def of(folder: Path, spans: list[Made], **options: Any) -> pl.DataFrame:
    return table(folder, spans_made.write(folder, spans), **options)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["observe", *map(str, arguments)])


def reasons(imported: Imported) -> dict[str, int]:
    return {reason: found.count for reason, found in imported.account.noted.items()}


def changes(imported: Imported) -> dict[str, int]:
    return {reason: found.count for reason, found in imported.account.changed.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_every_format_gives_the_same_spans(tmp_path: Path, kind: str) -> None:
    found = table(tmp_path, spans_made.write(tmp_path, a_call(), kind))
    whole = found.sort("span_id")
    assert whole["span_id"].to_list() == [span.span_id for span in a_call()]
    assert whole["parent_id"].to_list() == [span.parent_id or None for span in a_call()]
    assert whole["service"].to_list() == ["web", "web", "db", "web"]
    assert whole["operation"].to_list() == ["GET /", "query", "query", "render"]
    assert whole["start_ns"].to_list() == [span.start_ns for span in a_call()]
    assert whole["end_ns"].to_list() == [span.end_ns for span in a_call()]
    assert whole["kind"].to_list()[:3] == ["server", "client", "server"]
    assert whole["status"].to_list() == [None, None, "error", None]
    assert whole["host"].n_unique() == 2
    port = json.loads(whole["attributes"][1])["port"]
    assert int(port) == 7


@pytest.mark.parametrize("kind", KINDS)
def test_spans_come_out_as_they_come_whatever_the_blocks(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "_BLOCK", 7)
    monkeypatch.setattr("eastwest.observe.otlp_proto._BLOCK", 5)
    monkeypatch.setattr("eastwest.observe.csv_spans._BLOCK", 11)
    found = table(tmp_path, spans_made.write(tmp_path, a_call(), kind))
    assert found.height == 4
    assert found["operation"].to_list() == ["GET /", "query", "query", "render"]


def test_several_files_of_several_formats_become_one(tmp_path: Path) -> None:
    first, second = a_call()[:2], a_call()[2:]
    files = [spans_made.write(tmp_path, first, "zipkin"), spans_made.write(tmp_path, second, "csv")]
    imported = taken(tmp_path, *files)
    assert imported.about["sources"] == ["zipkin", "csv"]
    assert imported.about["spans"] == 4
    assert [file["spans"] for file in imported.about["files"]] == [2, 2]


def test_nezha(tmp_path: Path) -> None:
    imported = taken(tmp_path, NEZHA)
    about = imported.about
    assert (about["spans"], about["traces"], about["services"]) == (8116, 183, 10)
    assert about["lacks"] == ["host", "kind", "status", "resource"]
    assert about["skew"]["shifted"] == 0
    with open_spans(tmp_path / "spans") as spans:
        frame = spans.frame("service", "instance", "start_ns", "end_ns", "parent_id", "attributes")
    pods = dict(frame.select("instance", "service").unique().iter_rows())
    assert pods["productcatalogservice-668d5f85fb-wckp8"] == "productcatalogservice"
    assert frame["parent_id"].null_count() == 183
    # Duration is in microseconds, start and end are in nanoseconds: the end is used.
    length = (frame["end_ns"] - frame["start_ns"]) // 1000
    given = frame["attributes"].str.json_path_match("$.Duration").cast(pl.Int64)
    assert ((length - given).abs() <= 1).all()


def test_the_same_span_in_otlp_and_as_jaeger_gives_it(tmp_path: Path) -> None:
    extra = ("resource", "attributes", "extra")
    frames = [
        table(tmp_path, DATA / f"jaeger__otlp2jaeger-{end}.json").drop(*extra)
        for end in ("in", "out")
    ]
    assert frames[0].equals(frames[1])
    assert frames[0].height == 1, "the sample has the span twice"
    assert frames[0]["mended"].to_list() == ["lost-parent"]


def test_numbers_that_are_numbers_and_letters_that_are_large(tmp_path: Path) -> None:
    found = table(tmp_path, DATA / "otel-proto__trace.json")
    assert found["trace_id"].to_list() == ["5b8efff798038103d269b633813fc60c"]
    assert (found["end_ns"] - found["start_ns"]).to_list() == [10**9]
    assert found["kind"].to_list() == ["server"]


def test_a_parent_that_is_not_there(tmp_path: Path) -> None:
    found = of(tmp_path, [Made(1), Made(2, 9)])
    assert found["parent_id"].to_list() == [None, None]
    assert found["mended"].to_list() == [None, "lost-parent"]


@pytest.mark.parametrize("length", [1, 2, 3, 7])
def test_cycles_are_cut_at_the_span_that_starts_first(tmp_path: Path, length: int) -> None:
    ring = [Made(n + 1, (n + 1) % length + 1, start=100 - n, end=200) for n in range(length)]
    below = Made(50, 1, 150, 160)
    path = spans_made.write(tmp_path, [*ring, below, Made(60)])
    with pytest.raises(InputError, match=r"a span that is its own ancestor.*with --lossy"):
        taken(tmp_path, path)
    imported = taken(tmp_path, path, lossy=True)
    assert changes(imported) == {"a span that is its own ancestor": 1}
    with open_spans(tmp_path / "spans") as spans:
        found = spans.frame("span_id", "parent_id", "mended")
    roots = found.filter(pl.col("mended") == "cycle")["span_id"].to_list()
    assert roots == [f"{length:016x}"]
    assert found["parent_id"].null_count() == 2


def test_two_cycles_in_one_trace(tmp_path: Path) -> None:
    spans = [Made(1, 2, 5, 9), Made(2, 1, 6, 9), Made(3, 4, 8, 9), Made(4, 3, 7, 9)]
    found = of(tmp_path, spans, lossy=True)
    cut = found.filter(pl.col("mended") == "cycle")["span_id"].to_list()
    assert sorted(cut) == [Made(1).span_id, Made(4).span_id]


def test_repeated_and_differing_spans_of_one_id(tmp_path: Path) -> None:
    spans = [Made(1), Made(1), Made(1, operation="other"), Made(1, trace=2)]
    path = spans_made.write(tmp_path, spans)
    with pytest.raises(InputError, match=r"a different span with an id.*with --lossy: the first"):
        taken(tmp_path, path)
    imported = taken(tmp_path, path, lossy=True)
    assert imported.about["spans"] == 2
    assert reasons(imported)["duplicate of a span: left out"] == 1
    assert changes(imported) == {"a different span with an id that is in use": 1}


def test_both_sides_of_a_call_under_one_id_are_taken_apart(tmp_path: Path) -> None:
    spans = [
        Made(1, 0, 0, 100, "web"),
        Made(2, 1, 10, 90, "web", kind="client", host="a"),
        Made(2, 1, 20, 80, "db", kind="server", host="b"),
        Made(3, 2, 30, 40, "db", host="b"),
    ]
    found = table(tmp_path, spans_made.write(tmp_path, spans, "zipkin"))
    rows = found.select("span_id", "parent_id", "service", "mended").rows()
    one, two, three = (Made(n).span_id for n in (1, 2, 3))
    assert rows == [
        (one, None, "web", None),
        (f"{two}/client", one, "web", "shared-id"),
        (two, f"{two}/client", "db", "shared-id"),
        (three, two, "db", None),
    ]


def test_a_span_that_ends_before_it_starts(tmp_path: Path) -> None:
    path = spans_made.write(tmp_path, [Made(1, start=5, end=3)])
    with pytest.raises(InputError, match=r"a span that ends before it starts.*with --lossy"):
        taken(tmp_path, path)
    imported = taken(tmp_path, path, lossy=True)
    assert imported.about["began_ns"] == imported.about["ended_ns"]
    assert changes(imported) == {"a span that ends before it starts": 1}


def test_traces_are_mended_whole_however_few_at_once(tmp_path: Path) -> None:
    spans = [Made(n, n - 1 if n % 3 else 0, n, 100 - n, trace=n // 3) for n in range(1, 60)]
    path = spans_made.write(tmp_path, spans)
    whole = table(tmp_path, path, lossy=True).sort("trace_id", "span_id")
    pieces = table(tmp_path, path, mend_rows=7, lossy=True).sort("trace_id", "span_id")
    assert whole.equals(pieces)


def skewed(shift: float, calls: int = 9) -> list[Made]:
    """Return calls between two hosts; the clock of one is ahead by ``shift`` milliseconds."""
    spans = []
    for n in range(calls):
        begin = 100.0 * n
        spans.append(Made(2 * n + 1, 0, begin, begin + 50, "web", trace=n, host="a"))
        late, early = begin + 10 + n % 3 + shift, begin + 40 + n % 3 + shift
        spans.append(Made(2 * n + 2, 2 * n + 1, late, early, "db", trace=n, host="b"))
    return spans


@pytest.mark.parametrize("shift", [3600_000, 60, -60, 5])
def test_clocks_that_disagree_are_corrected_and_told(tmp_path: Path, shift: float) -> None:
    imported = taken(tmp_path, spans_made.write(tmp_path, skewed(shift)))
    skew = imported.about["skew"]
    if abs(shift) < 10:
        assert skew["shifted"] == 0, "every call could be with clocks that agree"
        return
    assert skew["outside_before"] == 9
    assert skew["outside_after"] == 0
    # The middle of the nine calls is 1 ms off the middle of their callers, so the estimate is too.
    assert skew["shift_ns"] == {"b": round((-shift - 1) * MS)}
    with open_spans(tmp_path / "spans") as spans:
        found = spans.frame("host", "start_ns", "shift_ns", "trace_id").filter(
            (pl.col("host") == "b") & (pl.col("trace_id") == f"{0:032x}")
        )
    begin = found["start_ns"][0] - found["shift_ns"][0]
    assert begin == spans_made.BEGAN_NS + round((10 + shift) * MS), "the source's time is kept"


def test_shifts_add_up_from_clock_to_clock(tmp_path: Path) -> None:
    spans = []
    for n in range(6):
        begin = 1000.0 * n
        spans += [
            Made(3 * n + 1, 0, begin, begin + 90, trace=n, host="a"),
            Made(3 * n + 2, 3 * n + 1, begin + 510, begin + 580, trace=n, host="b"),
            Made(3 * n + 3, 3 * n + 2, begin + 220, begin + 270, trace=n, host="c"),
        ]
    imported = taken(tmp_path, spans_made.write(tmp_path, spans))
    assert imported.about["skew"]["shift_ns"] == {"b": -500 * MS, "c": -200 * MS}
    assert imported.about["skew"]["outside_after"] == 0


def test_a_message_that_nobody_waits_for_says_nothing_of_clocks(tmp_path: Path) -> None:
    spans = []
    for n in range(9):
        begin = 100.0 * n
        spans.append(Made(2 * n + 1, 0, begin, begin + 1, trace=n, host="a", kind="producer"))
        late = Made(2 * n + 2, 2 * n + 1, begin + 50, begin + 60, trace=n, host="b")
        late.kind = "consumer"
        spans.append(late)
    assert taken(tmp_path, spans_made.write(tmp_path, spans)).about["skew"]["calls_between"] == 0


def edited(change: dict[str, Any]) -> bytes:
    document = spans_made.otlp(a_call())
    document["resourceSpans"][1]["scopeSpans"][0]["spans"][0].update(change)
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"traceId": None}, "traceId is missing, or is not text of 1 to 128"),
        ({"spanId": "x" * 200}, "spanId is missing, or is not text of 1 to 128 ASCII characters"),
        (
            {"spanId": 7},
            "spanId is missing, or is not text of 1 to 128 ASCII characters, found '7'",
        ),
        ({"startTimeUnixNano": "soon"}, "startTimeUnixNano is not a whole number, found 'soon'"),
        ({"startTimeUnixNano": 1700000000}, "lies outside 1980 to 2100: is it in another unit?"),
        ({"endTimeUnixNano": "9" * 40}, "endTimeUnixNano is not a whole number"),
        ({"endTimeUnixNano": True}, "endTimeUnixNano is not a whole number"),
        ({"attributes": {"a": 1}}, "attributes are not a list"),
        ({"attributes": [{"value": 1}]}, "an attribute is not a key with a value"),
        (
            {"attributes": [{"key": "k", "value": {"stringValue": "x" * 70_000}}]},
            "the attributes of the span are longer than 65,536 characters",
        ),
    ],
)
def test_spans_that_cannot_be_used(tmp_path: Path, change: dict[str, Any], expected: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(edited(change))
    with pytest.raises(InputError, match=r"bad\.json:1: ") as error:
        taken(tmp_path, path)
    assert expected in str(error.value)
    imported = taken(tmp_path, path, on_bad_row="skip")
    assert imported.about["rows_skipped"] == 1
    assert imported.about["spans"] == 3
    assert not list(tmp_path.glob(".partial*"))


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (",s,,1700000000000000000,1700000000000000001", "TraceID is missing"),
        ("t,,,1700000000000000000,1700000000000000001", "SpanID is missing"),
        ("t,s,,soon,1700000000000000001", "StartTimeUnixNano is not a number, found 'soon'"),
        ("t,s,,1700000000000000000,", "EndTimeUnixNano is not a number"),
        ("t,s,,1700000000,1700000001", "StartTimeUnixNano lies outside 1980 to 2100"),
        ("t,s,,99999999999999999999999,1", "StartTimeUnixNano"),
        ("t,s,,1700000000000000000", "5 values are expected, found '4'"),
        ("t,s,,1700000000000000000,1700000000000000001,9", "5 values are expected, found '6'"),
    ],
)
def test_rows_of_csv_that_cannot_be_used(tmp_path: Path, row: str, expected: str) -> None:
    path = tmp_path / "bad.csv"
    good = "t,a,root,1700000000000000000,1700000000000000001"
    path.write_text(f"TraceID,SpanID,ParentID,StartTimeUnixNano,EndTimeUnixNano\n{good}\n{row}\n")
    with pytest.raises(InputError, match=r"bad\.csv:3: ") as error:
        taken(tmp_path, path)
    assert expected in str(error.value)
    assert taken(tmp_path, path, on_bad_row="skip").about["rows_skipped"] == 1


@pytest.mark.parametrize(
    ("head", "row", "length_ns"),
    [
        ("trace,span_id,start_ms,duration_us", "t,s,1700000000000,5", 5000),
        ("traceid,id,timestamp,duration_s", "t,s,1700000000.25,0.5", 500_000_000),
        ("trace;spanId;startTime;endTime", "t;s;1700000000000000;1700000000000007", 7000),
        (
            "trace,span_id,start_ns,end_ns,name",
            't,s,1700000000000000000,1700000000000000003,"a\n,b"',
            3,
        ),
    ],
)
def test_units_of_csv(tmp_path: Path, head: str, row: str, length_ns: int) -> None:
    path = tmp_path / "spans.csv"
    path.write_text(f"{head}\n{row}\n")
    found = table(tmp_path, path)
    assert (found["end_ns"] - found["start_ns"]).to_list() == [length_ns]
    if "name" in head:
        assert found["operation"].to_list() == ["a\n,b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is empty"),
        (
            "trace_id,span_id,start_ns,duration\nt,s,1,2\n",
            "the column 'duration' must have a name with a unit",
        ),
        (
            "trace_id,span_id,start_ns\nt,s,1\n",
            "has no column end_ns (end of a span) or duration_ns",
        ),
        ("trace_id,span_id,start,end\nt,s,77,78\n", "must hold times between 1980 and 2100 in ns"),
        ("trace_id,trace_id,span_id,start_ns,end_ns\n", "has the column 'trace_id' twice"),
        ('{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId', "has no usable span"),
        ('{"resourceSpans": {}}', "is not JSON: an array is expected"),
        ('{"resourceSpans": [' + "[" * 100_000, "is not JSON"),
        ('{"resourceSpans": [{"x": NaN}]}', "nan is not a number that json allows"),
        ('{"resourceSpans": []}', "has no usable span"),
        ('[{"traceId": "a", "id": "b"}]', "timestamp is not a whole number"),
        ('{"data": [{"traceID": "a", "spans": 3}], "processes": {}}', "has no list of spans"),
        ("\n\x05" * 40, "is not valid protobuf: a field is longer than its message"),
        ("hello", "holds spans of no known format; it starts with 'hello'"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "given"
    path.write_text(text)
    done = run("import", path, "-o", tmp_path / "out")
    assert done.exit_code == 2, done.output
    assert expected in " ".join(done.output.split())
    assert sorted(tmp_path.iterdir()) == [path]


def test_a_file_that_is_cut_off_counts_up_to_there(tmp_path: Path) -> None:
    whole = spans_made.write(tmp_path, a_call(), "otlp-lines").read_bytes()
    (tmp_path / "cut.json").write_bytes(whole[:-20])
    imported = taken(tmp_path, tmp_path / "cut.json")
    assert imported.about["spans"] == 3
    assert "the last record is incomplete and is left out" in reasons(imported)
    packed = gzip.compress(whole + b" " * 5000)[:-12]
    (tmp_path / "cut.gz").write_bytes(packed)
    assert any("truncated" in reason for reason in reasons(taken(tmp_path, tmp_path / "cut.gz")))


def test_packed_rows_that_are_cut_off_count_up_to_there(tmp_path: Path) -> None:
    (tmp_path / "cut.gz").write_bytes(NEZHA.read_bytes()[:60_000])
    imported = taken(tmp_path, tmp_path / "cut.gz")  # A damaged row would make the import fail.
    assert 1000 < imported.about["spans"] < 3000
    assert any("truncated" in reason for reason in reasons(imported))


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FREE_BYTES", 1 << 20)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b'{"resourceSpans": [' + b" " * (8 << 20) + b"]}"))
    with pytest.raises(InputError, match="decompresses to more than"):
        taken(tmp_path, path)


def test_values_have_a_longest_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "MOST_VALUE", 1000)
    monkeypatch.setattr(json_stream, "_BLOCK", 256)
    path = tmp_path / "long.json"
    path.write_bytes(edited({"name": "x" * 5000}))
    with pytest.raises(InputError, match="a value is longer than 1 kB"):
        taken(tmp_path, path)
    monkeypatch.setattr("eastwest.observe.otlp_proto.MOST_MESSAGE", 1000)
    long = spans_made.write(tmp_path, [Made(1, operation="x" * 5000)], "otlp-proto")
    with pytest.raises(InputError, match="a span or resource is longer than 1 kB"):
        taken(tmp_path, long)


def test_names_are_kept_and_shown_without_what_controls_a_terminal(tmp_path: Path) -> None:
    evil = "</script>\x1b[31m\u202e" + "é" * 9000
    path = spans_made.write(tmp_path, [Made(1, service=evil, operation=evil)])
    found = table(tmp_path, path)
    assert found["operation"][0] == evil[:4096]
    done = run("import", path, "-o", tmp_path / "again")
    assert done.exit_code == 0
    assert "\x1b" not in done.output


def test_a_damaged_folder(tmp_path: Path) -> None:
    taken(tmp_path, NEZHA)
    folder = tmp_path / "spans"
    file = folder / "spans.parquet"
    whole = file.read_bytes()
    pl.read_parquet(file).drop("kind").write_parquet(file)
    with pytest.raises(InputError, match="column 'kind' is missing, expected String"):
        open_spans(folder)
    file.write_bytes(whole[:5000] + whole[6000:])
    with pytest.raises(InputError, match="a table is damaged"):
        open_spans(folder)
    (folder / "spans.json").write_text('{"format": 99}')
    with pytest.raises(InputError, match="has format 99, but this version of"):
        open_spans(folder)
    done = run("import", NEZHA, "-o", folder)
    assert done.exit_code == 2
    assert "already exists: name another folder, or replace it with --force" in " ".join(
        done.output.split()
    )
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x").touch()
    assert run("import", NEZHA, "-o", tmp_path / "other", "--force").exit_code == 2


def test_what_import_says(tmp_path: Path) -> None:
    path = spans_made.write(tmp_path, skewed(-60))
    done = run("import", path, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "18 spans, 9 traces, 2 services" in done.output
    assert "2 in the spans, 1 shifted, most b by +59 ms; 9 of 9 calls" in " ".join(
        done.output.split()
    )
    assert len(done.output.splitlines()) < 20
    done = run("import", path, "-o", tmp_path / "out", "--force", "--json")
    said = json.loads(done.stdout)
    assert said["skew"]["shift_ns"] == {"b": 59 * MS}
    assert said["files"][0]["spans"] == 18
    done = run("import", path, "-o", tmp_path / "other", "--format", "zipkn")
    assert done.exit_code == 2
    assert "did you mean zipkin?" in done.output
