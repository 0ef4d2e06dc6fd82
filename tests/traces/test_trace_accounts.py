"""Readers of traces drop nothing silently: it is refused, or reported in the account."""

from __future__ import annotations

import gzip
import json
import re
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner, Result

import eastwest as ew
from eastwest import core
from eastwest.account import Account, entries
from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.report import write_report
from eastwest.traces import matrix, source
from eastwest.traces.mpi import chakra_nodes as graphs
from eastwest.traces.mpi import otf2, take
from eastwest.traces.mpi.ranks import RankFiles
from eastwest.traces.take import import_trace

STAR = """schema = 1
[fabric]
kind = "star"
hosts = 8
host_rate = "1 Gbit/s"
[[workload]]
kind = "{kind}"
name = "app"
trace = "{trace}"
"""


def said(about: dict[str, Any], kind: str = "noted") -> dict[str, int]:
    """Return the reasons of one kind of entries, with their counts."""
    return {entry["reason"]: entry["count"] for entry in about[kind]}


def refused(files: list[Path], folder: Path, text: str, **options: Any) -> None:
    """Check that files cannot be imported without ``--lossy``, and that the message names it."""
    with pytest.raises(InputError, match=re.escape(text)) as error:
        take.import_mpi(files, folder / "refused", **options)
    assert "with --lossy: " in str(error.value)
    assert not (folder / "refused").exists()


def collective(number: int, **about: Any) -> dict[str, Any]:
    """Return a collective node of a Chakra graph that takes 7 µs."""
    return {"Id": number, "NodeType": 7, "runtime": 7, "data_deps": [], **about}


def chakra(folder: Path, *ranks: list[dict[str, Any]]) -> list[Path]:
    """Write a Chakra trace for each rank."""
    files = [folder / f"t.{rank}.json" for rank in range(len(ranks))]
    for file, nodes in zip(files, ranks, strict=True):
        file.write_text(json.dumps({"workload_graph": nodes}))
    return files


def test_a_json_trace_beyond_its_limits_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = chakra(tmp_path, [collective(number, **SUM) for number in range(50)])
    assert take.import_mpi(files, tmp_path / "out", ranks=2).about["records"] == 50
    for limit, most, says in (
        ("_MOST_NODES", 49, "has more than 49 nodes, which is the maximum"),
        ("_MOST_JSON", 1000, "has more than 1,000 bytes of JSON, which is the maximum"),
    ):
        monkeypatch.setattr(graphs, limit, most)
        with pytest.raises(InputError, match=says):
            take.import_mpi(files, tmp_path / "no", ranks=2)


SUM = {"comm_type": 0, "comm_size": 4096}


def test_collectives_without_a_size_are_refused_or_counted(tmp_path: Path) -> None:
    launch = collective(1, is_cpu_op=True)
    on_device = collective(2, is_cpu_op=False, data_deps=[1])
    files = chakra(tmp_path, [launch, on_device, collective(3, comm_type=0, data_deps=[2])])
    refused(files, tmp_path, "a collective without type and size")
    about = take.import_mpi(files, tmp_path / "out", lossy=True).about
    changed = said(about, "changed")
    assert changed == {
        "a collective without type and size: its bytes are not known": 1,
        "a collective without comm_size: its bytes are not known": 1,
    }
    assert said(about)["call that launches a collective"] == 1
    assert about["records"] == 3
    # All three collectives take their recorded time of 7 µs.
    assert (tmp_path / "out/rank-00000.txt").read_text().count("0 compute 7000") == 3


@pytest.mark.parametrize(
    "groups",
    [
        [{"pg_name": "a"}, {"pg_name": "a"}, {"pg_name": "b"}, {"pg_name": "b"}],
        [{"comm_group": 1}, {"comm_group": 1}, {"comm_group": 2}, {"comm_group": 2}],
        [{"pg_ranks": [0, 4]}] * 4,
        [{"group_size": 2}] * 4,
        [{"involved_dim": [True, False]}] * 4,
    ],
)
def test_process_groups_are_not_taken_for_all_ranks(
    groups: list[dict[str, Any]], tmp_path: Path
) -> None:
    files = chakra(tmp_path, *([collective(1, **SUM, **group)] for group in groups))
    refused(files, tmp_path, "found 'node 1'")
    about = take.import_mpi(files, tmp_path / "out", lossy=True).about
    assert about["changed"][0]["count"] == 4
    assert "its bytes are not sent" in about["changed"][0]["consequence"]
    assert "allreduce" not in about["calls"]


def test_a_group_that_all_ranks_use_is_that_of_all_ranks(tmp_path: Path) -> None:
    world = {"pg_name": "0", "pg_ranks": [1, 0], "involved_dim": [True]}
    files = chakra(tmp_path, [collective(1, **SUM, **world)], [collective(1, **SUM, **world)])
    about = take.import_mpi(files, tmp_path / "out").about
    assert about["calls"]["allreduce"] == 2
    assert about["changed"] == []
    alike = chakra(tmp_path, [collective(1, **SUM, pg_name="0")])
    assert take.import_mpi(alike, tmp_path / "alike", ranks=4).about["calls"]["allreduce"] == 4
    two = [collective(1, **SUM, pg_name="0"), collective(2, **SUM, pg_name="1")]
    refused(chakra(tmp_path, two), tmp_path, "is not known to have all ranks", ranks=4)


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ({"NodeType": 5, "comm_dst": 1}, "a send without comm_size"),
        ({"NodeType": 6, "comm_size": 5}, "a message without comm_src"),
        ({"NodeType": 77}, "a node of the unknown type 77"),
        ({"NodeType": 7, "comm_type": 55, "comm_size": 1}, "a collective of the unknown type 55"),
    ],
)
def test_nodes_that_cannot_be_replayed_are_refused_or_counted(
    node: dict[str, Any], text: str, tmp_path: Path
) -> None:
    files = chakra(tmp_path, [{"Id": 1, "runtime": 3, **node}], [])
    refused(files, tmp_path, text)
    about = take.import_mpi(files, tmp_path / "out", lossy=True).about
    assert [entry["count"] for entry in about["changed"]] == [1]
    chakra(tmp_path, [collective(1, **SUM), collective(1, **SUM)], [])
    with pytest.raises(InputError, match="several nodes of the trace have the id 1"):
        take.import_mpi(files, tmp_path / "twice")


@pytest.mark.parametrize("call", ["comm_split 1 2", "Comm_dup", "put 1 0 9", "waitany"])
def test_a_replay_and_an_import_know_the_same_calls(call: str, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    for rank in range(2):
        text = f"# made\n\n{rank} init\n{rank} {call}\n{rank} barrier\n{rank} finalize\n"
        (tmp_path / f"t/rank-{rank}.txt").write_text(text)
    refused([tmp_path / "t"], tmp_path, "rank-0.txt:4: found the call")
    (tmp_path / "s.toml").write_text(STAR.format(kind="mpi", trace="t"))
    (problem, *_) = core.check((tmp_path / "s.toml").read_text(), str(tmp_path), "", [])["problems"]
    assert "found the call" in problem["message"]
    assert "eastwest trace import --lossy" in problem["message"]
    about = take.import_mpi([tmp_path / "t"], tmp_path / "out", lossy=True).about
    (entry,) = about["changed"]
    assert (entry["count"], entry["first"][0]["line"]) == (2, 4)
    assert about["calls"] == {"barrier": 2, "finalize": 2, "init": 2}
    assert about["records"] == 8


def test_an_import_refuses_what_a_run_refuses(tmp_path: Path) -> None:
    lines = {
        "0 bcast 1 7\n": "x.txt:1: found 7, expected a root of the call bcast",
        "0 init 1\n0 alltoallv 1\n": "x.txt:2:",
        "0 send 0 0 1 99\n": "expected the number of a data type",
        "0 send 0 0 1\n": "1 more sends than receives",
        "0 compute 5\nnonsense\n": 'x.txt:2: found "nonsense"',
    }
    for text, expected in lines.items():
        (tmp_path / "x.txt").write_text(text)
        with pytest.raises(InputError, match=re.escape(expected)):
            take.import_mpi([tmp_path / "x.txt"], tmp_path / "out", source_format="ti", lossy=True)


def test_files_that_are_passed_over_are_noted(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t/rank-0.txt").write_text("0 init\n0 finalize\n")
    (tmp_path / "t/README").write_text("about it\n")
    with tarfile.open(tmp_path / "t.tar", "w") as archive:
        archive.add(tmp_path / "t", "t")
    for given in (tmp_path / "t", tmp_path / "t.tar"):
        about = take.import_mpi([given], tmp_path / "out", force=True).about
        assert said(about) == {"file whose name contains no rank": 1}
    # The list is longer than the 64 KiB that are read to find the format.
    names = [tmp_path / f"t/{'r' * 240}{rank}.txt" for rank in range(300)]
    for rank, name in enumerate(names):
        name.write_text(f"{rank} init\n")
    (tmp_path / "list").write_text("".join(f"t/{name.name}\n" for name in names))
    assert take.import_mpi([tmp_path / "list"], tmp_path / "many").about["ranks"] == 300


def test_text_in_the_place_of_a_file_is_refused_as_such(tmp_path: Path) -> None:
    graph = json.dumps({"workload_graph": [{"Id": 1, "NodeType": 4, "Name": "x" * 300}]})
    (tmp_path / "t.0.json").write_text(graph)
    assert take.import_mpi([tmp_path / "t.0.json"], tmp_path / "out").about["records"] == 1
    for reader in (take.import_mpi, import_trace):
        with pytest.raises(InputError, match="is not a valid file name"):
            reader([graph], tmp_path / "no")
    with pytest.raises(InputError, match="is not a valid file name"):
        ew.run(graph, out=tmp_path / "no")


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ("30:0:0:1:9", "a one-sided operation"),
        ("7:0:0:1", "a record of the kind '7'"),
        ("1:0:1:1.0", "a record of a thread other than the first"),
        ("10:0:0:0:5:0:0:1:1:2", "wait for a non-blocking operation that did not begin"),
        ("10:0:0:0:9:0:0:1:1", "communicator without a definition, beside others"),
    ],
)
def test_dimemas_records_that_cannot_be_replayed_are_refused_or_counted(
    record: str, text: str, tmp_path: Path
) -> None:
    made = f'#DIMEMAS:"x":1,0:3(1,1,1)\nd:1:5:2:0:1\nd:2:1:2\n20:0:0:1:1\n{record}\n'
    rest = "10:1:0:0:9:0:0:1:1\n10:2:0:0:9:0:0:1:1\n" if ":0:9:" in record else ""
    (tmp_path / "x.dim").write_text(made + rest)
    refused([tmp_path / "x.dim"], tmp_path, text)
    about = take.import_mpi([tmp_path / "x.dim"], tmp_path / "out", lossy=True).about
    (entry,) = about["changed"]
    assert entry["first"][0]["line"] == 5
    assert said(about) == {
        "event record (20)": 1,
        "definition of something other than a communicator": 1,
    }
    assert about["records"] == 4 + 2 * bool(rest)


def test_otf2_events_that_are_not_replayed_are_refused_or_counted(tmp_path: Path) -> None:
    here, there = (SimpleNamespace(group=name) for name in "ab")

    class Communicator:
        """A communicator; it is equal only to itself."""

        def __init__(self, *members: Any) -> None:
            self.group = SimpleNamespace(members=members)

    world, threads, alone = Communicator(here, there), Communicator(here, here), Communicator()

    def event(kind: str, **values: Any) -> Any:
        return type(kind, (SimpleNamespace,), {})(time=5, **values)

    ends = {"root": 0, "size_sent": 8, "size_received": 8}
    kinds = {
        "event RmaPut, which a replay cannot express": event("RmaPut"),
        "receive that is posted but never completed: its message is not known": event(
            "MpiIrecvRequest", request_id=1
        ),
        "allreduce of a communicator whose ranks are not processes": event(
            "MpiCollectiveEnd", collective_op="X.ALLREDUCE", communicator=threads, **ends
        ),
        "collective neighbor, which a replay cannot express": event(
            "MpiCollectiveEnd", collective_op="X.NEIGHBOR", communicator=world, **ends
        ),
        "non-blocking collective that is never completed: its kind is not known": event(
            "NonBlockingCollectiveRequest", request_id=2
        ),
    }
    own = event("MpiCollectiveEnd", collective_op="X.ALLREDUCE", communicator=alone, **ends)
    events = [*kinds.values(), event("Metric"), event("MpiCollectiveBegin"), own]
    stream = SimpleNamespace(
        timer_resolution=1000,
        definitions=SimpleNamespace(locations=[here, there]),
        events=[(here, each) for each in events],
    )
    with RankFiles(tmp_path / "no") as strict, pytest.raises(InputError, match="with --lossy"):
        otf2._Reading("t", stream, strict).all({})
    with RankFiles(tmp_path / "out", lossy=True) as into:
        otf2._Reading("t", stream, into).all({})
        about = into.finish(2, {})
    assert said(about, "changed") == dict.fromkeys(kinds, 1)
    expected = ["event Metric", "event MpiCollectiveBegin", "allreduce of one rank (MPI_COMM_SELF)"]
    assert said(about) == dict.fromkeys(expected, 1)
    assert about["records"] == len(events)


def command(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_account_is_printed_kept_in_results_and_shown_in_pages(tmp_path: Path) -> None:
    text = "0 init\n1 init\n0 comm_dup\n1 comm_dup\n0 barrier\n1 barrier\n"
    (tmp_path / "all.txt").write_text(text)
    plain = command("trace", "import", tmp_path / "all.txt", "-o", tmp_path / "t")
    assert plain.exit_code == 2
    assert 'all.txt:3: found the call "comm_dup"' in plain.output
    assert "--lossy" in plain.output
    lossy = command("trace", "import", tmp_path / "all.txt", "-o", tmp_path / "t", "--lossy")
    assert lossy.exit_code == 0, lossy.output
    assert "changed 2 × found the call" in lossy.output
    assert "collective calls and tags of a group of ranks then count for all ranks" in lossy.output
    (tmp_path / "s.toml").write_text(STAR.format(kind="mpi", trace="t"))
    result = ew.run(tmp_path / "s.toml", out=tmp_path / "result")
    (note,) = [note for note in result.summary["notes"] if "the import changed" in note]
    assert "t: the import changed 2 × found the call" in note
    assert "(all.txt:3); the call is left out" in note
    again = ew.run(result.path, out=tmp_path / "again")
    assert again.summary["notes"] == result.summary["notes"]
    for folder in (tmp_path / "t", result.path):
        page = write_report([folder], tmp_path / "page.html").read_text("utf-8")
        assert "collective calls and tags of a group of ranks then count for all ranks" in page, (
            folder
        )


def test_jobs_keep_their_account_through_a_run_and_a_page(tmp_path: Path) -> None:
    rows = "".join(f"job{n}\t{n}\t1\t1000\t500\t100\t5\t6\t7\n" for n in range(30))
    (tmp_path / "x.tsv").write_text(rows + "\n")
    about = import_trace([tmp_path / "x.tsv"], tmp_path / "trace").about
    assert said(about) == {
        "column 7 or 8 that is a number instead of a path": 30,
        "column 9": 30,
        "blank line": 1,
    }
    (tmp_path / "s.toml").write_text(STAR.format(kind="mapreduce", trace="trace"))
    result = ew.run(tmp_path / "s.toml", out=tmp_path / "result")
    noted = [note for note in result.summary["notes"] if note.startswith("trace: the import")]
    assert len(noted) == 3
    text = "trace: the import noted 30 × column 9 (x.tsv:1); its value is left out"
    assert any(text in note for note in noted)
    again = ew.run(result.path, out=tmp_path / "again")
    assert again.summary["notes"] == result.summary["notes"]
    assert again.digest == result.digest
    page = write_report([tmp_path / "trace"]).read_text("utf-8")
    assert "its value is left out: its meaning is not documented" in page
    with pytest.raises(InputError, match="cannot be compared with other folders: name only"):
        write_report([tmp_path / "trace", result.path])


def test_entries_of_a_damaged_account_are_passed_over() -> None:
    account = Account(stop=False, lossy=True)
    account.bad("a", 1, "one", consequence="so")
    account.change("a", 2, "two", "then", rows=5)
    account.note("a", 0, "three")
    about = json.loads(json.dumps(account.as_json()))
    found = entries(about)
    assert [(e.kind, e.count, e.reason, e.first, e.consequence) for e in found] == [
        ("left out", 1, "one", "a:1", "so"),
        ("changed", 5, "two", "a:2", "then"),
        ("noted", 1, "three", "a", ""),
    ]
    about["noted"] = [7, {"count": "x"}, {"count": -1}, {"count": 1, "reason": "r", "first": [9]}]
    assert [e.count for e in entries(about)] == [1, 5, 1]
    assert entries({"noted": "x", "skipped": None}) == ()


def test_events_counters_and_attempts_of_hadoop_are_accounted_for(tmp_path: Path) -> None:
    start = 1_600_000_000_000
    job, task = 'JOBID="job_202001010000_0001"', "task_202001010000_0001_m_000000"
    counters = "{(g)(g)[(SPILLED_RECORDS)(s)(-5)][(MINE)(m)(1)][(low case)(m)(2)]}"
    ends = (("0", "FAILED"), ("1", "SUCCESS"), ("2", "ODD"))
    attempts = "".join(
        f'MapAttempt TASK_TYPE="MAP" TASKID="{task}" '
        f'TASK_ATTEMPT_ID="attempt{task[4:]}_{number}" START_TIME="{start}" '
        f'FINISH_TIME="{start + 5}" TASK_STATUS="{status}" COUNTERS="{counters}" .\n'
        for number, status in ends
    )
    (tmp_path / "x").write_text(
        f'Meta VERSION="9" .\nJob {job} JOBNAME="x" SUBMIT_TIME="{start}" .\n{attempts}'
        f'Job {job} FINISH_TIME="{start + 9}" JOB_STATUS="SUCCESS" .\n'
    )
    with pytest.raises(InputError, match="x:1: a log whose version is not 1, found '9'"):
        import_trace([tmp_path / "x"], tmp_path / "out")
    about = import_trace([tmp_path / "x"], tmp_path / "out", lossy=True).about
    assert said(about, "changed") == {"a log whose version is not 1": 1}
    assert said(about) == {
        "counter of an attempt for which there is no column": 3,
        "counter of an attempt that is negative": 3,
        "counter that is not of the form [(NAME)(title)(value)]": 3,
        "attempt that failed or was killed": 1,
        "attempt whose outcome is missing or unknown": 1,
    }


def test_events_of_spark_that_are_not_read_are_noted(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = [
        {"Event": "SparkListenerLogStart", "Spark Version": "3.5.1"},
        {"Event": "SparkListenerUnpersistRDD", "RDD ID": 1},
        {"Event": "SparkListenerUnpersistRDD", "RDD ID": 2},
        {"Event": "SparkListenerApplicationEnd", "Timestamp": 1_600_000_000_000},
    ]
    (tmp_path / "x").write_text("".join(json.dumps(event) + "\n" for event in events))
    noted = said(import_trace([tmp_path / "x"], tmp_path / "out", lasting=False).about)
    assert noted["event UnpersistRDD"] == 2
    assert noted["event LogStart"] == 1


def test_a_table_says_what_it_replaces_and_what_a_run_will_lack(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(
        b"submit_s,name,job,maps\n0,caf\xe9,7,2000000\n99999999,b,8,1\n2305843,c,9,1\n"
    )
    noted = said(import_trace([tmp_path / "x.csv"], tmp_path / "out").about)
    assert noted == {
        "column 'job'": 1,
        "line that is not text in UTF-8, or has a NUL": 1,
        "job submitted before 0 s or after 2305843 s, which a run cannot simulate": 1,
        "job of more than 1000000 maps or reduces": 1,
    }
    assert pl.read_parquet(tmp_path / "out/jobs.parquet").height == 3
    replayed = pl.read_csv(tmp_path / "out" / "jobs.tsv", separator="\t")
    assert replayed["submit_s"].to_list() == [0.0, 2_305_843.0]


def test_failures_of_a_matrix_are_refused_or_counted(tmp_path: Path) -> None:
    file = tmp_path / "x.cm"
    file.write_text(
        "Nodes 2\nConnections 1\n0->1 start 0 size 9 prio 1\ntrigger id 1 oneshot\nfailure x\n"
    )
    with pytest.raises(InputError, match=r"x\.cm:5: a failure"):
        matrix.read(file)
    account = matrix.read(file, lossy=True).account
    assert [*account.changed] == ["a failure, which a list of flows cannot express"]
    assert [*account.noted] == ["priority of a connection", "trigger"]


def test_a_bomb_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: Any) -> None:
    line = b"a\t0\t0\t1\t2\t3\n"
    (tmp_path / "x.gz").write_bytes(gzip.compress(line * 400_000))
    monkeypatch.setattr(source, "FREE_BYTES", 2 << 20)
    read = 0
    with source.Source(tmp_path / "x.gz") as file, pytest.raises(InputError, match="decompress it"):
        for block in file.blocks(block=1 << 16):
            read += len(block)
    # The reader reads ahead a little beyond the bytes after which the file is weighed.
    assert source.WEIGH_BYTES - (1 << 17) < read < source.WEIGH_BYTES + (1 << 17)
    monkeypatch.setattr(source, "FREE_BYTES", len(line) * 400_000)
    with source.Source(tmp_path / "x.gz") as file:
        assert sum(len(block) for block in file.blocks()) == len(line) * 400_000


def test_an_archive_that_is_a_bomb_is_refused_by_its_table(
    tmp_path: Path, monkeypatch: Any
) -> None:
    (tmp_path / "rank-0.txt").write_text("0 compute 1\n" * 300_000)
    with tarfile.open(tmp_path / "t.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "rank-0.txt", "rank-0.txt")
    monkeypatch.setattr(source, "FREE_BYTES", 1 << 20)
    with pytest.raises(InputError, match="if it is valid, decompress it first"):
        take.import_mpi([tmp_path / "t.tar.gz"], tmp_path / "out")


def test_comparing_names_the_trace_that_is_too_short(tmp_path: Path) -> None:
    for name, last in (("long", 50_000), ("short", 60)):
        rows = "".join(f"j\t{last * n // 20}\t0\t1\t1\t1\n" for n in range(21))
        (tmp_path / f"{name}.tsv").write_text(rows)
    ran = command("trace", "compare", tmp_path / "long.tsv", tmp_path / "short.tsv")
    assert ran.exit_code == 2
    assert f"{tmp_path}/short.tsv: no whole window" in ran.output.replace("\n", "")


def test_events_and_counters_of_histories_are_accounted_for(tmp_path: Path) -> None:
    job, start = "job_1600000000000_0001", 1_600_000_000_000
    task = job.replace("job", "task") + "_m_000000"
    counts = [
        {"name": name, "value": value} for name, value in (("MINE", 4), ("SPILLED_RECORDS", -3))
    ]
    counters = {"name": "COUNTERS", "groups": [{"name": "g", "counts": counts}]}
    attempt = {"taskid": task, "attemptId": task.replace("task", "attempt") + "_0"}
    attempt |= {"taskType": "MAP"}
    ended = {"taskStatus": "SUCCEEDED", "finishTime": start + 9000, "mapFinishTime": start + 8000}
    submitted = {"jobid": job, "jobName": "x", "submitTime": start}
    events: list[tuple[str, dict[str, Any]]] = [
        ("AMStarted", {"startTime": start}),
        ("AMStarted", {"startTime": start + 100}),
        ("JobSubmitted", submitted),
        ("JobInfoChange", {"jobid": job, "submitTime": start - 5000, "launchTime": start}),
        ("JobPriorityChange", {"jobid": job, "priority": "HIGH"}),
        ("TaskAttemptStarted", {**attempt, "startTime": start + 1000}),
        ("MapAttemptFinished", {**attempt, **ended, "counters": counters}),
        ("Unheard", {}),
        ("JobFinished", {"jobid": job, "finishTime": start + 10_000, "totalCounters": None}),
    ]
    lines = [
        json.dumps({"type": kind, "event": {f"org.apache.hadoop.{kind}": event}})
        for kind, event in events
    ]
    (tmp_path / "x.jhist").write_text("\n".join(["Avro-Json", "{}", *lines]) + "\n")
    imported = import_trace([tmp_path / "x.jhist"], tmp_path / "out")
    assert said(imported.about) == {
        "event JobPriorityChange": 1,
        "event Unheard": 1,
        "the application master was started again": 1,
        "counter of an attempt for which there is no column": 1,
        "counter of an attempt that is negative": 1,
    }
    (row,) = pl.read_parquet(imported.path / "jobs.parquet").to_dicts()
    assert (row["submit_s"], row["launch_s"], row["finish_s"]) == (0.0, 5.0, 15.0)
