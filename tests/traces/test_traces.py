"""Readers of recorded workloads: contents of each file, and agreement between readers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import avro_history
import project_paths
from eastwest.errors import FolderError, InputError
from eastwest.traces import write
from eastwest.traces.form import ABOUT, TABLES, schema
from eastwest.traces.load import Trace, open_trace
from eastwest.traces.made import Imported
from eastwest.traces.take import import_trace

DATA = project_paths.DATA / "traces"
JHIST = DATA.parent / "jhist"
RUMEN = DATA / "rumen"
SWIM = DATA / "swim"


def taken(out: Path, *files: Path, **options: Any) -> Imported:
    return import_trace(files, out / "trace", lasting=False, **options)


def table(imported: Imported, name: str) -> pl.DataFrame:
    with open_trace(imported.path) as trace:
        return trace.collect(trace.table(name))


def reasons(imported: Imported) -> dict[str, int]:
    return {entry["reason"]: entry["count"] for entry in imported.about["noted"]}


#: Samples: file, format, rows of its tables; bytes that its jobs read, shuffled and wrote.
FILES: list[tuple[Path, str, dict[str, int], tuple[int | None, int | None, int | None]]] = [
    (
        SWIM / "FB-2009_samples_24_times_1hr_0_first50jobs.tsv",
        "swim",
        {"jobs": 50},
        (16_208_585_408, 19_133_284_339, 154_932_355_988),
    ),
    (
        SWIM / "Additional_Workloads_Placeholder.tsv",
        "swim",
        {"jobs": 10, "files": 20},
        (121_902_716_203, 4_277_570_407, 17_333_302_908),
    ),
    (
        RUMEN / "counters-test-trace.json.gz",
        "rumen",
        {"jobs": 2, "attempts": 21, "hosts": 20},
        (5186, 2024, 3304),
    ),
    (
        RUMEN / "trace_1m.json.gz",
        "rumen",
        {"jobs": 5, "attempts": 57, "files": 10, "hosts": 8},
        (225_927_246, 227_062_710, 225_921_492),
    ),
    (
        RUMEN / "sample-job-tracker-logs.gz",
        "mrv1",
        {"jobs": 4, "attempts": 283, "hosts": 599},
        (4_433_410_849, 209_692_756, 71_341_731),
    ),
    (
        RUMEN / "truncated-job-tracker-log.gz",
        "mrv1",
        {"jobs": 1, "attempts": 24, "hosts": 81},
        (2_019_250, 705_622, 56_630),
    ),
    (
        RUMEN / "v20-resource-usage-log.gz",
        "mrv1",
        {"jobs": 1, "attempts": 3, "hosts": 5},
        (None, 0, None),
    ),
    (
        JHIST / "pi.jhist.gz",
        "jhist",
        {"jobs": 1, "attempts": 2, "hosts": 1},
        (268, 28, 215),
    ),
    (
        JHIST / "r50-deep-1.jhist.gz",
        "jhist",
        {"jobs": 1, "attempts": 12, "hosts": 4},
        (536_871_232, 558_345_408, 536_870_400),
    ),
    (
        DATA / "spark" / "local-1422981780767.gz",
        "spark",
        {"jobs": 3, "attempts": 32, "stages": 4, "hosts": 1},
        (28_000_288, 0, 0),
    ),
    (
        DATA / "spark" / "app-20180109111548-0000.gz",
        "spark",
        {"jobs": 1, "attempts": 22, "stages": 2, "hosts": 1},
        (0, 460, 0),
    ),
]


@pytest.mark.parametrize(
    ("file", "kind", "rows", "totals"), FILES, ids=[f.name[:30] for f, *_ in FILES]
)
def test_counts_and_totals_of_every_file(
    tmp_path: Path,
    file: Path,
    kind: str,
    rows: dict[str, int],
    totals: tuple[int | None, int | None, int | None],
) -> None:
    imported = taken(tmp_path, file)
    assert imported.source_format == kind
    assert imported.about["rows"] == rows
    names = ("input_bytes", "shuffle_bytes", "output_bytes")
    assert tuple(imported.about["totals"].get(name) for name in names) == totals
    jobs = table(imported, "jobs")
    assert jobs.columns == list(TABLES["jobs"])
    assert [jobs[name].sum() for name in names] == [total or 0 for total in totals]
    assert list(tmp_path.iterdir()) == [tmp_path / "trace"]


def test_swim_keeps_its_clock_and_its_zeros(tmp_path: Path) -> None:
    jobs = table(taken(tmp_path, SWIM / "FB-2009_samples_24_times_1hr_0_first50jobs.tsv"), "jobs")
    assert jobs["submit_s"].to_list()[:3] == [49.0, 101.0, 122.0]
    assert int(jobs["output_bytes"].max() or 0) > 2**31  # type: ignore[arg-type]
    # Map-only jobs have zero shuffle bytes, not unknown ones.
    assert jobs["shuffle_bytes"].null_count() == 0
    assert (jobs["shuffle_bytes"] == 0).sum() == 18
    assert jobs["reduces"].null_count() == 50


def test_swim_paths_become_files(tmp_path: Path) -> None:
    imported = taken(tmp_path, SWIM / "Additional_Workloads_Placeholder.tsv")
    files = table(imported, "files")
    assert files.filter(pl.col("job") == 2).rows() == [
        (2, "inputPath3", "read", 53_088_744_165),
        (2, "outputPath3", "write", 5_759_777),
    ]


def test_a_log_of_mrv1_and_what_rumen_made_of_it_agree(tmp_path: Path) -> None:
    """The gold output of Rumen, job by job and attempt by attempt."""
    ours = taken(tmp_path / "", RUMEN / "sample-job-tracker-logs.gz")
    (tmp_path / "gold").mkdir()
    gold = taken(tmp_path / "gold", RUMEN / "job-tracker-logs-trace-output.gz")
    assert ours.about["began_s"] == gold.about["began_s"] == 1_240_335_960.685
    for name, key in (("jobs", ["job"]), ("attempts", ["task", "attempt"])):
        mine, theirs = table(ours, name), table(gold, name)
        same = [c for c in mine.columns if theirs[c].null_count() < theirs.height]
        # Rumen omits names of jobs, and does not divide host names if it does not know the rack.
        same = [c for c in same if c not in {"name", "queue", "rack"}]
        assert len(same) >= 12
        assert mine.sort(key).select(same).equals(theirs.sort(key).select(same)), name
    assert table(ours, "jobs")["outcome"].to_list() == ["killed", *["succeeded"] * 3]
    assert table(ours, "jobs")["name"][1] == "word count"


def test_rumens_topology_is_what_the_log_names(tmp_path: Path) -> None:
    topology = RUMEN / "job-tracker-logs-topology-output.gz"
    alone = taken(tmp_path, RUMEN / "sample-job-tracker-logs.gz")
    beside = taken(tmp_path, RUMEN / "sample-job-tracker-logs.gz", topology, force=True)
    listed = json.loads(gzip.decompress(topology.read_bytes()))
    hosts = {h["name"].replace("\\", "") for rack in listed["children"] for h in rack["children"]}
    found = table(beside, "hosts")
    assert hosts <= set(found["host"])
    assert alone.about["rows"]["hosts"] == len(found)
    assert not any("\\" in host for host in found["host"])
    assert found["rack"].drop_nulls().n_unique() == len(listed["children"])


def test_traps_of_rumen(tmp_path: Path) -> None:
    imported = taken(tmp_path, RUMEN / "3-of-19-jobs.trace.json.gz")
    jobs, attempts = table(imported, "jobs"), table(imported, "attempts")
    assert jobs["outcome"].to_list() == ["succeeded", "failed", "succeeded"]
    # Missing values are null, never −1 or zero.
    assert attempts.filter(pl.col("kind") == "map")["shuffle_bytes"].null_count() == (
        attempts.filter(pl.col("kind") == "map").height
    )
    assert attempts["host"].str.contains("\\", literal=True).sum() == 0
    assert attempts["host"][0].endswith(".megatron.com")
    known = reasons(imported)
    assert known["attempt that ends before it starts: its times are stored unchanged"] == 1
    assert known["attempt that starts before its task: its times are stored unchanged"] > 5
    backwards = attempts.filter(pl.col("finish_s") < pl.col("start_s"))
    assert backwards.height == 1
    # The output of maps is not the same as the shuffled bytes.
    assert jobs["map_output_bytes"][0] != jobs["shuffle_bytes"][0]
    assert 0 < jobs["map_s"][0] < 1e6
    killed = attempts.filter(pl.col("outcome") != "succeeded")
    assert set(killed["outcome"]) == {"failed", "killed"}


def test_a_truncated_log_imports_with_what_it_has(tmp_path: Path) -> None:
    imported = taken(tmp_path, RUMEN / "truncated-job-tracker-log.gz")
    assert reasons(imported)["incomplete record: only its complete fields are used"] == 1
    for name, share in (("sample-job-tracker-logs.gz", 0.7), ("trace_1m.json.gz", 0.9)):
        whole = (RUMEN / name).read_bytes()
        cut = tmp_path / name
        cut.write_bytes(whole[: int(share * len(whole))])
        imported = taken(tmp_path, cut, force=True)
        assert 0 < imported.about["rows"]["jobs"] < 5
        assert "the compressed file is damaged or truncated" in " ".join(reasons(imported))


def test_a_cut_history_of_mrv2_says_that_its_job_has_not_ended(tmp_path: Path) -> None:
    text = gzip.decompress((JHIST / "r50-deep-1.jhist.gz").read_bytes())
    cut = tmp_path / "cut.jhist"
    cut.write_bytes(text[: int(0.8 * len(text))])
    imported = taken(tmp_path, cut)
    job = table(imported, "jobs").row(0, named=True)
    assert (job["maps"], job["outcome"], job["finish_s"]) == (8, None, None)
    assert "history without a record of the end of its job: the file may be truncated" in reasons(
        imported
    )
    assert "the last record is incomplete and is left out" in reasons(imported)


def test_the_binary_form_of_avro_reads_as_its_json_form(tmp_path: Path) -> None:
    made = gzip.decompress(avro_history.MADE.read_bytes())
    source = gzip.decompress(avro_history.SOURCE.read_bytes()).decode()
    assert made == avro_history.binary(source)
    (tmp_path / "json").mkdir()
    for name, rows in (("jobs", 1), ("attempts", 2), ("hosts", 1)):
        ours = table(taken(tmp_path, avro_history.MADE, force=True), name)
        theirs = table(taken(tmp_path / "json", avro_history.SOURCE, force=True), name)
        assert ours.height == rows
        assert ours.equals(theirs), name


def test_a_configuration_beside_a_history_says_what_that_does_not(tmp_path: Path) -> None:
    history, conf = JHIST / "pi.jhist.gz", tmp_path / "job_1526555215992_0001_conf.xml"
    conf.write_text(
        "<configuration>"
        "<property><name>mapreduce.input.fileinputformat.inputdir</name>"
        "<value>hdfs://a/in,hdfs://a/with\\,comma</value></property>"
        "<property><name>mapreduce.output.fileoutputformat.outputdir</name>"
        "<value>../../etc/out</value></property></configuration>",
        "utf-8",
    )
    imported = taken(tmp_path, conf, history)
    assert table(imported, "files").rows() == [
        (0, "hdfs://a/in", "read", None),
        (0, "hdfs://a/with,comma", "read", None),
        (0, "../../etc/out", "write", 215),
    ]
    assert [f["kind"] for f in imported.about["files"]] == ["conf", "jhist"]
    real = DATA / "jhist" / "dr-elephant__job_1526555215992_0001_conf.xml.gz"
    assert "configuration of a job that is not in the trace" not in reasons(
        taken(tmp_path, history, real, force=True)
    )
    other = taken(tmp_path, JHIST / "r50-deep-1.jhist.gz", real, force=True)
    assert reasons(other)["configuration of a job that is not in the trace"] == 1


def test_histories_of_many_jobs_become_one_trace_in_order(tmp_path: Path) -> None:
    files = [JHIST / f"{name}.jhist.gz" for name in ("r50-deep-2", "pi", "r50-deep-1")]
    imported = taken(tmp_path, *files)
    jobs, attempts = table(imported, "jobs"), table(imported, "attempts")
    assert jobs["name"].to_list() == ["QuasiMonteCarlo", "TeraSort", "TeraSort"]
    assert jobs["submit_s"].is_sorted()
    assert jobs["submit_s"][0] == 0.0
    assert imported.about["began_s"] == 1_526_555_642.677
    # Attempts get the new number of their job.
    assert attempts.filter(pl.col("job") == 0).height == 2
    with pytest.raises(InputError, match="job with the id of an earlier job"):
        taken(tmp_path, files[0], files[0], force=True)


def test_spark_totals_are_those_of_its_own_interface(tmp_path: Path) -> None:
    stages = table(taken(tmp_path, DATA / "spark" / "local-1422981780767.gz"), "stages")
    attempts = table(
        taken(tmp_path, DATA / "spark" / "local-1422981780767.gz", force=True), "attempts"
    )
    packed = (DATA / "spark" / "stage_list_json_expectation.json.gz").read_bytes()
    expected = {stage["stageId"]: stage for stage in json.loads(gzip.decompress(packed))}
    assert sorted(stages["stage"]) == sorted(expected)
    for row in stages.iter_rows(named=True):
        told = expected[row["stage"]]
        assert row["name"] == told["name"]
        assert row["input_bytes"] == told["inputBytes"]
        assert row["shuffle_bytes"] == told["shuffleReadBytes"]
        assert row["shuffle_written_bytes"] == told["shuffleWriteBytes"]
        assert row["output_bytes"] == told["outputBytes"]
        mine = attempts.filter(pl.col("stage") == row["stage"])["outcome"].value_counts()
        found = dict(mine.iter_rows())
        assert found.get("succeeded", 0) == told["numCompleteTasks"]
        assert found.get("failed", 0) == told["numFailedTasks"]
        assert row["outcome"] == {"COMPLETE": "succeeded", "FAILED": "failed"}[told["status"]]


def test_a_graph_of_stages(tmp_path: Path) -> None:
    imported = taken(tmp_path, DATA / "spark" / "app-20180109111548-0000.gz")
    stages = table(imported, "stages")
    assert stages.select("stage", "after", "shuffle_bytes", "shuffle_written_bytes").rows() == [
        (0, [], 0, 460),
        (1, [0], 460, 0),
    ]
    job = table(imported, "jobs").row(0, named=True)
    assert job["source_id"] == "app-20180109111548-0000/0"
    assert 0 < job["finish_s"] < 60


@pytest.mark.parametrize("name", ["local-1430917381535_1.gz", "dr-elephant__event_log_2"])
def test_an_application_that_ran_no_job_imports_as_that(tmp_path: Path, name: str) -> None:
    imported = taken(tmp_path, DATA / "spark" / name)
    assert imported.about["rows"] == {}
    assert reasons(imported)["the application ran no job"] == 1
    with pytest.raises(InputError, match="has no job"):
        open_trace(imported.path)


def test_tables_come_in_with_their_names(tmp_path: Path) -> None:
    text = tmp_path / "t.csv"
    text.write_text(
        "submit_s;name;input_bytes;outcome;shufle_bytes\n"
        '5.5;"b; c";10;failed;1\n0;a;;succeeded;1\n\n5.5;c;7;;1\n',
        "utf-8",
    )
    imported = taken(tmp_path, text)
    jobs = table(imported, "jobs")
    assert jobs.select("job", "name", "submit_s", "input_bytes", "outcome").rows() == [
        (0, "a", 0.0, None, "succeeded"),
        (1, "b; c", 5.5, 10, "failed"),
        (2, "c", 5.5, 7, None),
    ]
    left = "the column 'shufle_bytes' is not known: left out; did you mean shuffle_bytes?"
    assert reasons(imported) == {left: 1, "blank line": 1}
    pl.DataFrame({"submit_s": [1, 2], "maps": [3, None]}).write_parquet(tmp_path / "t.parquet")
    again = taken(tmp_path, tmp_path / "t.parquet", force=True)
    assert table(again, "jobs").select("submit_s", "maps").rows() == [(1.0, 3), (2.0, None)]


def test_formats_are_found_whatever_the_name(tmp_path: Path) -> None:
    import bz2  # noqa: PLC0415

    for file, kind, *_ in FILES[::3]:
        data = file.read_bytes()
        plain = gzip.decompress(data) if file.suffix == ".gz" else data
        odd = tmp_path / "x.json"
        odd.write_bytes(bz2.compress(plain))
        assert taken(tmp_path, odd, force=True).source_format == kind


def test_a_trace_says_what_it_lacks(tmp_path: Path) -> None:
    file = SWIM / "FB-2009_samples_24_times_1hr_0_first50jobs.tsv"
    with open_trace(file) as trace:
        assert trace.lacks("jobs", "user")
        assert not trace.lacks("jobs", "shuffle_bytes")
        assert trace.lacks("attempts")
        assert trace.collect(trace.table("attempts")).schema == pl.Schema(schema("attempts"))
        place = trace.path
        assert trace.about["files"][0]["name"] == file.name
    assert not place.exists()


def test_an_import_is_repeated_to_the_byte(tmp_path: Path) -> None:
    first = taken(tmp_path, RUMEN / "counters-test-trace.json.gz")
    before = {p.name: p.read_bytes() for p in first.path.iterdir()}
    again = taken(tmp_path, RUMEN / "counters-test-trace.json.gz", force=True)
    assert {p.name: p.read_bytes() for p in again.path.iterdir()} == before


def test_rows_are_written_as_they_come(tmp_path: Path) -> None:
    with write.Writer(tmp_path / "t", flush_rows=10) as writer:
        for second in range(95):
            writer.add("jobs", {"job": writer.next_job(), "submit_s": float(second)})
        parts = sorted(p.name for p in next(tmp_path.iterdir()).iterdir())
        assert len(parts) == 9
        assert not (tmp_path / "t").exists()
        writer.finish({})
    with open_trace(tmp_path / "t") as trace:
        assert trace.collect(trace.jobs)["submit_s"].to_list() == list(map(float, range(95)))
    assert [p.name for p in tmp_path.iterdir()] == ["t"]


def test_jobs_out_of_order_are_sorted_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "_SORT_ROWS", 40)
    monkeypatch.setattr(write, "_SAMPLE", 4)
    with write.Writer(tmp_path / "t", flush_rows=16) as writer:
        for number in range(300):
            second = float(number * 37 % 100)
            writer.add("jobs", {"job": number, "submit_s": second, "name": str(number)})
            writer.add("attempts", {"job": number, "kind": "map", "task": str(number)})
        writer.next_job(300)
        writer.finish({})
    with open_trace(tmp_path / "t") as trace:
        jobs = trace.collect(trace.jobs)
        attempts = trace.collect(trace.table("attempts"))
    assert jobs["job"].to_list() == list(range(300))
    expected = sorted(range(300), key=lambda n: (n * 37 % 100, n))
    assert [int(name) for name in jobs["name"]] == expected
    by_name = dict(zip(jobs["name"], jobs["job"], strict=True))
    assert all(by_name[task] == job for job, task in attempts.select("job", "task").iter_rows())


def test_an_import_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(file: str, share: float) -> None:
        raise KeyboardInterrupt(f"{file} {share}")

    with pytest.raises(KeyboardInterrupt):
        taken(tmp_path, RUMEN / "trace_1m.json.gz", told=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_the_way_stays(tmp_path: Path) -> None:
    file = SWIM / "Additional_Workloads_Placeholder.tsv"
    mine = tmp_path / "trace"
    mine.mkdir()
    (mine / "thesis.tex").write_text("mine", "utf-8")
    for force in (False, True):
        with pytest.raises(FolderError):
            taken(tmp_path, file, force=force)
    assert (mine / "thesis.tex").read_text("utf-8") == "mine"
    with pytest.raises(FolderError, match="there is no folder"):
        import_trace([file], tmp_path / "none" / "trace")


def opened(path: Path) -> Trace:
    return open_trace(path)


def test_hostile_folders_are_refused(tmp_path: Path) -> None:
    whole = taken(tmp_path, RUMEN / "counters-test-trace.json.gz").path
    about = json.loads((whole / ABOUT).read_text("utf-8"))
    jobs = (whole / "jobs.parquet").read_bytes()
    frame = pl.read_parquet(whole / "jobs.parquet")
    cases: list[tuple[str, bytes | pl.DataFrame, str]] = [
        (ABOUT, b"[" * 100_000, "is damaged"),
        (ABOUT, b"[]", "is damaged"),
        (ABOUT, json.dumps(about | {"format": 99}).encode(), "has format 99"),
        (ABOUT, json.dumps(about | {"lacks": [1]}).encode(), "not a list of names"),
        ("jobs.parquet", jobs[: len(jobs) // 2], "a table is damaged"),
        ("jobs.parquet", b"PAR1", "a table is damaged"),
        ("jobs.parquet", frame.drop("queue"), "column 'queue' is missing"),
        ("jobs.parquet", frame.with_columns(pl.col("maps").cast(pl.String)), "column 'maps' is"),
        ("jobs.parquet", frame.reverse(), "the column job must be 0, 1, 2"),
        ("jobs.parquet", frame.head(1), "has rows of a job that is not in jobs.parquet"),
        (
            "jobs.parquet",
            frame.with_columns(submit_s=pl.lit(float("nan"))),
            "submit_s must have finite numbers in ascending order",
        ),
    ]
    for name, content, expected in cases:
        kept = (whole / name).read_bytes()
        if isinstance(content, bytes):
            (whole / name).write_bytes(content)
        else:
            content.write_parquet(whole / name)
        with pytest.raises(InputError, match=expected):
            opened(whole)
        (whole / name).write_bytes(kept)
    opened(whole).close()
    (whole / "hosts.parquet").unlink()
    (whole / "hosts.parquet").symlink_to(whole / "jobs.parquet")
    with pytest.raises(InputError, match="not a regular file"):
        opened(whole)
