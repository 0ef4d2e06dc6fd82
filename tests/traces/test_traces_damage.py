"""Recorded workloads that are damaged, hostile, or of another kind: bounded, named errors."""

from __future__ import annotations

import bz2
import gzip
import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner, Result

import avro_history
import flow_exports
import project_paths
from eastwest.account import Account
from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.traces import source as sources
from eastwest.traces import take
from eastwest.traces.flows import read as flows_of
from eastwest.traces.hadoop import Confs
from eastwest.traces.load import open_trace
from eastwest.traces.made import Imported
from eastwest.traces.source import Source
from eastwest.traces.take import import_trace
from eastwest.traces.write import Writer

DATA = project_paths.DATA / "traces"
RUMEN = DATA / "rumen"
GOOD = "a\t0\t0\t1\t2\t3\n"


def taken(out: Path, *files: Path, **options: Any) -> Imported:
    return import_trace(files, out / "trace", force=True, lasting=False, **options)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["trace", "import", *map(str, arguments)])


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("b\t1\t1\t2\t3", "6 to 9 columns are expected, found '5'"),
        ("b\t1\t1\t2\t3\t4\t5\t6\t7\t8", "6 to 9 columns are expected, found '10'"),
        ("b,1,1,2,3,4", "columns are separated by single tabs, found '1'"),
        (" \t1\t1\t2\t3\t4", "column 1 (job name) is blank"),
        ("b\t-1\t1\t2\t3\t4", "column 2 (submission): is negative, found '-1'"),
        ("b\t1\t1\t2\t-3\t4", "column 5 (shuffle bytes): is negative, found '-3'"),
        ("b\t1.5\t1\t2\t3\t4", "a whole number of seconds is expected, found '1.5'"),
        ("b\t1\t1\t2\t3 MB\t4", "of bytes is expected, without a unit, found '3 MB'"),
        ("b\t1\t1\t\t3\t4", "column 4 (map-input bytes): is not a number"),
        ("b\t1\t1\t+2\t3\t4", "column 4 (map-input bytes): a whole number"),
        ("b\t1\t1\t2\t3\t18446744073709551616", "is more than 18446744073709551615, the maximum"),
        ("b\t1240335962848\t1\t2\t3\t4", "a hundred years in seconds: is it in another unit?"),
        ("b\0\t1\t1\t2\t3\t4", "is not text: it has a NUL, or bytes that are not UTF-8"),
        ("b" * 70_000 + "\t1\t1\t2\t3\t4", "longer than 65,536 bytes"),
        ("b\t٣\t1\t2\t3\t4", "column 2 (submission): a whole number"),
    ],
)
def test_rows_of_swim_that_cannot_be_used(tmp_path: Path, row: str, expected: str) -> None:
    file = tmp_path / "x.tsv"
    file.write_text(GOOD + row + "\n" + GOOD, "utf-8")
    with pytest.raises(InputError) as error:
        taken(tmp_path, file)
    assert f"{file}:2: " in str(error.value)
    assert expected in str(error.value)
    assert not (tmp_path / "trace").exists()
    imported = taken(tmp_path, file, on_bad_row="skip")
    assert imported.about["rows"] == {"jobs": 2}
    assert imported.about["rows_skipped"] == 1
    (skipped,) = imported.about["skipped"]
    assert (skipped["count"], skipped["first"][0]["line"]) == (1, 2)
    assert skipped["first"][0]["file"] == "x.tsv"


def test_rows_that_are_odd_and_taken(tmp_path: Path) -> None:
    file = tmp_path / "x.tsv"
    lines = [
        "a\t5\t0\t1\t2\t3",
        "",
        "b\t3\t0\t1\t2\t3\tin",
        "a\t3\t0\t1\t2\t3\r",
        "d\t9\t0\t1\t2\t3",
    ]
    file.write_bytes("\n".join(lines).encode())
    imported = taken(tmp_path, file)
    with open_trace(imported.path) as trace:
        jobs = trace.collect(trace.jobs)
    assert jobs["name"].to_list() == ["b", "a", "a", "d"]
    noted = {entry["reason"]: entry["count"] for entry in imported.about["noted"]}
    assert noted == {
        "blank line": 1,
        "job submitted before the job of the line above: sorted": 1,
        "the last line has no end: it may be cut off": 1,
        "lines have different numbers of columns (6, 7)": 1,
    }


def test_a_trace_in_another_unit_is_noted(tmp_path: Path) -> None:
    file = tmp_path / "x.tsv"
    rows = (f"j{n}\t{n * 60_000}\t60\t1\t2\t3\n" for n in range(50))
    file.write_text("".join(rows), "utf-8")
    noted = [entry["reason"] for entry in taken(tmp_path, file).about["noted"]]
    assert any("one of them may not be in seconds" in reason for reason in noted)


def test_reasons_are_counted_and_few_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "x.tsv"
    file.write_text(GOOD + "b\t-1\t0\t1\t2\t3\n" * 5000 + "c\n", "utf-8")
    imported = taken(tmp_path, file, on_bad_row="skip")
    counts = [(entry["count"], len(entry["first"])) for entry in imported.about["skipped"]]
    assert counts == [(5000, 3), (1, 1)]
    problems = Account(stop=False)
    for number in range(1000):
        problems.bad("f", number, f"reason {number}")
    assert problems.rows_skipped == 1000
    assert len(problems.skipped) <= 41


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("empty", b"", "is empty"),
        ("blank", b"\n \n", "is empty"),
        ("text", b"Dear diary\n", "has no known format; it starts with 'Dear diary"),
        ("binary", bytes(range(256)), "has no known format"),
        ("object", b'{"a": 1}', "has no known format"),
        ("page", b"<html></html>", "has no known format"),
        ("avro", b"Obj\x01\x02", "has no known format"),
        ("none.csv", b"name,input_bytes\na,1\n", "has no column submit_s"),
        ("near.csv", b"submit_time_s,input_bytes\n1,1\n", "did you mean 'submit_time_s'?"),
        ("twice.csv", b"submit_s,maps,maps\n1,1,1\n", "has the column 'maps' twice"),
        ("x.parquet", b"PAR1PAR1", "is not a valid Parquet file"),
        ("schema.jhist", b"Avro-Binary\n{}\nabc", ":2: is not a schema of a job history"),
        ("head.jhist", b"Avro-Binary\n", "line 2 the Avro schema"),
        ("json.jhist", b"Avro-Json\n{}\n", "history without a record of a job"),
        ("x.tsv.gz", gzip.compress(b"", mtime=0)[:5], "is empty"),
    ],
)
def test_files_that_are_no_traces(tmp_path: Path, name: str, content: bytes, expected: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as error:
        taken(tmp_path, tmp_path / name)
    assert str(tmp_path / name) in str(error.value)
    assert expected in str(error.value)


def test_companions_alone_are_refused_by_name(tmp_path: Path) -> None:
    for name, expected in (
        ("rumen/gold-minimal.json", "a histogram of Rumen's tests; the file is not a trace"),
        (
            "rumen/input-minimal.json",
            "values for a histogram of Rumen's tests; the file is not a trace",
        ),
        ("rumen/topo-with-numeric-ips.json", "a topology of racks and hosts: name a trace"),
        ("rumen/sample-conf.file.new.xml", "a job's configuration: name a trace beside it"),
        ("spark/stage_list_json_expectation.json.gz", "an answer of Spark's REST interface"),
    ):
        with pytest.raises(InputError, match=expected):
            taken(tmp_path, DATA / name)
    trace = RUMEN / "counters-test-trace.json.gz"
    with pytest.raises(InputError, match="the file name has no job id"):
        taken(tmp_path, trace, RUMEN / "sample-conf.file.new.xml")


def test_files_of_different_formats_are_not_mixed(tmp_path: Path) -> None:
    swim = DATA / "swim" / "Additional_Workloads_Placeholder.tsv"
    with pytest.raises(InputError, match="of different formats"):
        taken(tmp_path, RUMEN / "counters-test-trace.json.gz", swim)
    both = tmp_path / "both.json"
    both.write_bytes(
        gzip.decompress((RUMEN / "counters-test-trace.json.gz").read_bytes()) + swim.read_bytes()
    )
    imported = taken(tmp_path, both, on_bad_row="skip")
    assert imported.about["rows"]["jobs"] == 1


def test_a_job_is_taken_once(tmp_path: Path) -> None:
    for name in ("rumen/counters-test-trace.json.gz", "spark/local-1422981780767.gz"):
        with pytest.raises(InputError) as error:
            taken(tmp_path, DATA / name, DATA / name)
        assert f"{DATA / name}:" in str(error.value)
        assert ": job with the id of an earlier job, found '" in str(error.value)
        imported = taken(tmp_path, DATA / name, DATA / name, on_bad_row="skip")
        assert imported.about["rows_skipped"] >= imported.about["rows"]["jobs"]
        assert imported.about["rows"]["jobs"] in {2, 3}


def test_wrong_units_in_rumen(tmp_path: Path) -> None:
    job = {"jobID": "job_1_1", "submitTime": 1_240_335_962, "mapTasks": []}
    file = tmp_path / "x.json"
    file.write_text(json.dumps(job), "utf-8")
    with pytest.raises(InputError, match=r"not ms since 1970 \(1980 to 2100\)"):
        taken(tmp_path, file)
    for key, value in (
        ("totalMaps", -2),
        ("totalMaps", 2**40),
        ("submitTime", "yesterday"),
        ("mapTasks", {"a": 1}),
        ("mapTasks", [{"taskID": "t"}]),
        ("mapTasks", [{"taskID": "t", "attempts": [{"hostName": "h"}]}]),
    ):
        file.write_text(json.dumps(job | {"submitTime": 1_240_335_962_848, key: value}), "utf-8")
        with pytest.raises(InputError, match="is not a job of Rumen"):
            taken(tmp_path, file)


def test_paths_in_names_stay_names(tmp_path: Path) -> None:
    job = {
        "jobID": "../../../job_1_1",
        "submitTime": 1_240_335_962_848,
        "jobName": "/etc/passwd\u001b[2J",
        "mapTasks": [],
        "outcome": "SUCCESS",
    }
    file = tmp_path / "..x.json"
    file.write_text(json.dumps(job), "utf-8")
    result = run(file, "-o", tmp_path / "trace")
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    assert sorted(p.name for p in tmp_path.iterdir()) == ["..x.json", "trace"]
    with open_trace(tmp_path / "trace") as trace:
        assert trace.collect(trace.jobs)["source_id"][0] == "../../../job_1_1"


def test_bombs_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FREE_BYTES", 1 << 18)
    line = b"a\t0\t0\t1\t2\t3\n"
    for name, packed in (
        ("x.gz", gzip.compress(line * 300_000)),
        ("x.bz2", bz2.compress(line * 300_000)),
    ):
        (tmp_path / name).write_bytes(packed)
        with pytest.raises(InputError, match="decompresses to more than"):
            taken(tmp_path, tmp_path / name)
    (tmp_path / "line").write_bytes(line + b"x" * (6 << 20))
    with pytest.raises(InputError, match="has a line of more than"):
        taken(tmp_path, tmp_path / "line")
    laughs = b'<!DOCTYPE c [<!ENTITY a "aaaa">]><configuration>&a;</configuration>'
    (tmp_path / "job_1_1_conf.xml").write_bytes(b"<?xml version='1.0'?>" + laughs)
    with pytest.raises(InputError, match="declares entities"):
        taken(tmp_path, RUMEN / "counters-test-trace.json.gz", tmp_path / "job_1_1_conf.xml")
    pl.DataFrame({"submit_s": [0.0]}).select(
        pl.col("submit_s").repeat_by(3_000_000).explode()
    ).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(InputError, match="more than one per byte"):
        taken(tmp_path, tmp_path / "x.parquet")


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ({"type": "array", "items": "null"}, "the items of an array have a size of 0 bytes"),
        (
            {"type": "array", "items": {"type": "record", "name": "E", "fields": []}},
            "a size of 0 bytes",
        ),
        (["null", "R"], "R contains itself"),
        ("nowhere", "is not a schema"),
    ],
)
def test_hostile_schemas_are_refused(tmp_path: Path, field: object, expected: str) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "x", "type": field}]}
    head = b"Avro-Binary\n" + json.dumps(schema).encode() + b"\n"
    (tmp_path / "x.jhist").write_bytes(head + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f" * 20)
    with pytest.raises(InputError, match=expected):
        taken(tmp_path, tmp_path / "x.jhist")


def test_tables_with_wrong_values(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    rows = ["x,1,succeeded", "1,-1,succeeded", "2,1.5,failed", "3,1k,failed", "4,1,well", "5,1"]
    rows += ["1e12,1,failed", "nan,1,failed", ",1,failed", "6,99999999999,failed", "7,2,killed"]
    file.write_text("submit_s,maps,outcome\n" + "\n".join(rows) + "\n", "utf-8")
    imported = taken(tmp_path, file, on_bad_row="skip")
    assert imported.about["rows"] == {"jobs": 1}
    assert imported.about["rows_skipped"] == 10
    told = {entry["reason"]: entry["first"][0]["line"] for entry in imported.about["skipped"]}
    assert told["maps: is negative"] == 3
    assert told["outcome must be one of succeeded, failed, killed"] == 6


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Return some bytes with parts cut, repeated, overwritten or joined."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(found) + 1)
        length = chance.choice((1, 1, 3, 40, 400))
        kind = chance.randrange(5)
        if kind == 0:
            del found[at : at + length]
        elif kind == 1:
            found[at : at + length] = chance.randbytes(length)
        elif kind == 2:
            found[at:at] = found[chance.randrange(len(found) + 1) :][:length]
        elif kind == 3:
            known = (b"-1", b"null", b"[]", b"{}", b'"', b"9" * 30, b"1e400", b"\n", b"\0", b"\xff")
            found[at : at + chance.randrange(4)] = chance.choice(known)
        else:
            del found[at:]
        if not found:
            found = bytearray(b"x")
    return bytes(found)


def small(name: str) -> bytes:
    """Return the short start of a file that its reader accepts as a whole."""
    data = (DATA / name).read_bytes()
    data = gzip.decompress(data) if name.endswith(".gz") else data
    if name.startswith("rumen/counters"):
        return data[:40_000]
    return data[:60_000]


FUZZED = {
    "swim": "swim/Additional_Workloads_Placeholder.tsv",
    "rumen": "rumen/counters-test-trace.json.gz",
    "mrv1": "rumen/truncated-job-tracker-log.gz",
    "jhist": "jhist/made-from-the-specification.jhist.gz",
    "spark": "spark/app-20180109111548-0000.gz",
}


@pytest.mark.parametrize("kind", [*FUZZED, "json of jhist", "table"])
@pytest.mark.parametrize("on_bad_row", ["stop", "skip"])
def test_random_damage_gives_only_input_errors(tmp_path: Path, kind: str, on_bad_row: str) -> None:
    chance = random.Random(f"{kind} {on_bad_row}")
    if kind == "table":
        whole = b"submit_s,name,input_bytes,outcome\n" + b'1.5,"a, b",7,failed\n2,c,,\n' * 20
    elif kind == "json of jhist":
        whole, kind = gzip.decompress(avro_history.SOURCE.read_bytes()), "jhist"
    else:
        whole = small(FUZZED[kind])
    file = tmp_path / "x"
    read = 0
    for number in range(40):
        file.write_bytes(damaged(whole, chance))
        problems = Account(stop=on_bad_row == "stop")
        try:
            with (
                Writer(tmp_path / "trace", force=True, lasting=False) as writer,
                Source(file) as source,
            ):
                take.READERS[kind](source, writer, problems, Confs())
                if number % 4 == 0:
                    writer.finish({"source": kind, **problems.as_json()})
            read += 1
        except InputError as error:
            assert str(error).strip()
    assert read > 0 or on_bad_row == "stop"


RECORDS = [
    flow_exports.Record(f"10.0.0.{i}", f"10.0.0.{i + 1}", i, 80, 10, 15_000, 10 * i, 20 * i)
    for i in range(1, 9)
]
PACKETS = [
    (i / 100, flow_exports.tcp("10.0.0.1", "10.0.0.2", 1, 80, 1000 * i, 1000)) for i in range(8)
]
#: Flow records of routers, and captures, with the format of each.
FLOWS = {
    "csv": (
        "nfdump",
        b"ts,td,sa,da,sp,dp,pr,ipkt,ibyt,opkt,obyt\n"
        + b"2023-11-14 22:13:20,0.9,10.0.0.1,10.0.0.2,1,80,TCP,10,15000,5,9000\n" * 8,
    ),
    "pipe": (
        "nfdump",
        b"2|1700000000000|1700000000900|6|0|0|0|9|80|0|0|0|8|1|0|0|0|0|26|0|9|9999\n" * 8,
    ),
    "line": (
        "nfdump",
        b"2023-11-14 22:13:20.000 0.9 TCP 10.0.0.1:1 -> 10.0.0.2:80 10 1.5 M 1\n" * 8,
    ),
    "v5": ("netflow", flow_exports.v5(RECORDS, 10) * 3),
    "v9": ("netflow", flow_exports.v9(RECORDS, sampling=10) * 3),
    "ipfix": ("netflow", flow_exports.ipfix(RECORDS, sampling=10) * 3),
    "v9 in a capture": (
        "netflow",
        flow_exports.exported([(0.0, flow_exports.v9(RECORDS))] * 4, 2055, "10.9.9.9"),
    ),
    "sflow": ("sflow", flow_exports.sflow([p for _, p in PACKETS], counters=True) * 3),
    "sflow in a capture": (
        "sflow",
        flow_exports.exported(
            [(0.0, flow_exports.sflow([p for _, p in PACKETS], expanded=True))] * 4,
            6343,
            "10.9.9.9",
        ),
    ),
    "pcap": ("pcap", flow_exports.pcap([(t, flow_exports.ethernet(p)) for t, p in PACKETS], 1)),
    "pcapng": ("pcap", flow_exports.pcapng(PACKETS)),
}


@pytest.mark.parametrize("kind", FLOWS)
@pytest.mark.parametrize("stop", [True, False])
def test_damaged_records_of_flows_are_read_or_refused(
    tmp_path: Path, kind: str, stop: bool
) -> None:
    chance = random.Random(f"{kind} {stop}")
    source, whole = FLOWS[kind]
    file = tmp_path / "x"
    read = 0
    for number in range(60):
        file.write_bytes(damaged(whole, chance))
        try:
            found = flows_of.read([file], source if number % 2 else "auto", stop=stop)
        except InputError as error:
            assert str(error).strip() and "\n" not in str(error)
            continue
        read += 1
        assert 0 < found.used == found.records - found.left
        flows_of.write(found, tmp_path / "flows.csv", [file])
        for flow in found.flows:
            assert 0 < flow.bytes <= 10**15 and 0 <= flow.start_s <= 480 * 3600
            assert flow.src != flow.dst
    assert read > 0


def test_random_bytes_are_of_no_format_or_refused(tmp_path: Path) -> None:
    chance = random.Random("bytes")
    starts = (
        b"",
        b"Avro-Json\n",
        b"Avro-Binary\n{}\n",
        b"PAR1",
        b"{",
        b"\x1f\x8b",
        b"BZh9",
        b'Job A="',
    )
    for number in range(40):
        (tmp_path / "x").write_bytes(chance.choice(starts) + chance.randbytes(300))
        try:
            taken(tmp_path, tmp_path / "x", on_bad_row=("stop", "skip")[number % 2])
        except InputError as error:
            assert str(error).strip()


def test_the_command_tells_what_it_took(tmp_path: Path) -> None:
    file = RUMEN / "sample-job-tracker-logs.gz"
    result = run(file, "-o", tmp_path / "trace")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert len(lines) <= 20
    assert max(map(len, lines)) <= 80
    for part in ("4 in 17 min 54 s", "3 succeeded", "shuffle 210 MB", "283 attempts", "2009-04-21"):
        assert part in result.stdout, part
    assert "noted 26 × attempt that starts before its task" in result.stderr
    told = json.loads(run(file, "-o", tmp_path / "again", "--json").stdout)
    assert told["rows"]["attempts"] == 283
    assert told["lacks"].count("stages") == 1


def test_the_command_refuses_with_a_reason(tmp_path: Path) -> None:
    bad = tmp_path / "bad.tsv"
    bad.write_text(GOOD + "b\t1\n", "utf-8")
    cases: list[tuple[list[str | Path], str]] = [
        ([bad], f"{bad}:2: 6 to 9 columns are expected, found '2'"),
        ([bad, "--on-bad-row", "ignore"], "expected stop or skip"),
        ([bad, "--format", "swimm"], "did you mean swim?"),
        ([tmp_path / "none"], "the file does not exist"),
        ([tmp_path], "is a folder, but a file is expected: give the files in it"),
        ([bad, "--format", "rumen"], "has no usable job"),
    ]
    for arguments, expected in cases:
        result = run(*arguments, "-o", tmp_path / "trace")
        assert result.exit_code == 2, (arguments, result.output)
        assert expected in result.stderr.replace("\n", ""), result.stderr
    skipped = run(bad, "--on-bad-row", "skip", "-o", tmp_path / "trace")
    assert skipped.exit_code == 0
    assert "left out 1 × 6 to 9 columns are expected" in skipped.stderr
    again = run(bad, "--on-bad-row", "skip", "-o", tmp_path / "trace")
    assert again.exit_code == 2
    assert "already exists" in again.stderr
