"""Imports every recorded workload of a folder and compares counts and totals with a second count.

``python tools/check_trace_totals.py DATA`` takes ``swim``, ``rumen``, ``jhist`` and
``spark-events`` below DATA, and compares the results of the readers with a second, simpler count of
the same file: sums of columns, of JSON objects, of names of attempts. Rumen's gold output is
compared with the logs from which it was made, its topologies with the hosts found, and Spark's
stages with the answers of its REST interface. ``--write`` puts the table into
docs/validation/traces.md; without it, the command exits with 1 where that page has another table.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from eastwest.errors import InputError
from eastwest.traces.made import Imported
from eastwest.traces.take import import_trace

PAGE = Path(__file__).resolve().parents[1] / "docs" / "validation" / "traces.md"
MARK = "<!-- table by tools/check_trace_totals.py -->"
FOLDERS = ("swim", "rumen", "jhist", "spark-events")
#: Files beside the traces that are not traces.
_PAPERS = re.compile(r"(LICENSE|NOTICE|README)")
_LONGEST_NAME = 44
Counts = dict[str, int]


def text_of(path: Path) -> str:
    """Return the text of a file, decompressed if needed."""
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode(errors="replace")


def count_swim(path: Path) -> Counts:
    """Count the lines and sum the columns of a SWIM file."""
    rows = [line.split("\t") for line in text_of(path).splitlines()]
    return {
        "jobs": len(rows),
        "input": sum(int(row[3]) for row in rows),
        "shuffle": sum(int(row[4]) for row in rows),
        "output": sum(int(row[5]) for row in rows),
    }


def count_rumen(path: Path) -> Counts:
    """Return counts of objects and attempts of a Rumen file, and sums of bytes.

    The bytes of a task are those of its last successful attempt.
    """
    decoder, text, at = json.JSONDecoder(), text_of(path).strip(), 0
    found: Counter[str] = Counter()
    while at < len(text):
        job, at = decoder.raw_decode(text, at)
        at += len(text[at:]) - len(text[at:].lstrip())
        found["jobs"] += 1
        for group in ("mapTasks", "reduceTasks", "otherTasks"):
            for task in job[group]:
                found["attempts"] += len(task["attempts"])
                good = [a for a in task["attempts"] if a["result"] == "SUCCESS"]
                if good and group != "otherTasks":
                    last = max(good, key=lambda a: a["finishTime"])
                    for ours, theirs in (
                        ("input", "hdfsBytesRead"),
                        ("shuffle", "reduceShuffleBytes"),
                        ("output", "hdfsBytesWritten"),
                    ):
                        found[ours] += max(0, last[theirs])
    return dict(found)


def count_mrv1(path: Path) -> Counts:
    """Count the names of jobs and attempts in a job history of Hadoop 1."""
    text = text_of(path)
    return {
        "jobs": len(set(re.findall(r'^Job JOBID="(\w+)"', text, re.M))),
        "attempts": len(set(re.findall(r'TASK_ATTEMPT_ID="(\w+)"', text))),
    }


def count_jhist(path: Path) -> Counts:
    """Count the submissions and the names of attempts in a job history of Hadoop 2 or 3."""
    text = text_of(path)
    return {
        "jobs": text.count('"event":{"org.apache.hadoop.mapreduce.jobhistory.JobSubmitted"'),
        "attempts": len(set(re.findall(r'"attemptId":"(\w+)"', text))),
    }


def count_spark(path: Path) -> Counts:
    """Count the events of a Spark log by name, and sum the bytes in all task metrics."""
    found: Counter[str] = Counter()
    names = {"JobStart": "jobs", "TaskEnd": "attempts"}
    for line in text_of(path).splitlines():
        event = json.loads(line)
        found[names.get(event["Event"].removeprefix("SparkListener"), "")] += 1
        metrics = event.get("Task Metrics") or {}
        fetched = metrics.get("Shuffle Read Metrics", {})
        found["input"] += metrics.get("Input Metrics", {}).get("Bytes Read", 0)
        found["shuffle"] += fetched.get("Remote Bytes Read", 0) + fetched.get("Local Bytes Read", 0)
        found["output"] += metrics.get("Output Metrics", {}).get("Bytes Written", 0)
    del found[""]
    return dict(found)


COUNTERS: dict[str, Callable[[Path], Counts]] = {
    "swim": count_swim,
    "rumen": count_rumen,
    "mrv1": count_mrv1,
    "jhist": count_jhist,
    "spark": count_spark,
}


def ours_of(imported: Imported) -> Counts:
    """Return counts and totals of an import, under the names that the second count uses."""
    rows, totals = imported.about["rows"], imported.about["totals"]
    sums = {name: totals.get(f"{name}_bytes", 0) for name in ("input", "shuffle", "output")}
    return {"jobs": rows.get("jobs", 0), "attempts": rows.get("attempts", 0), **sums}


def check(path: Path, out: Path) -> tuple[str, list[str]]:
    """Return the row of the table for a file, and the differences that were found."""
    name = path.name if len(path.name) <= _LONGEST_NAME else path.name[: _LONGEST_NAME - 1] + "…"
    where = f"{path.parent.name}/{name}"
    try:
        imported = import_trace([path], out / "trace", force=True, lasting=False)
    except InputError as error:
        reason = str(error).removeprefix(str(path)).lstrip(": ")
        return f"| `{where}` | refused: {reason} | | | | | |", []
    ours, theirs = ours_of(imported), COUNTERS[imported.source_format](path)
    wrong = [
        f"{where}: {name}: {ours[name]:,} read, {theirs[name]:,} counted"
        for name in theirs
        if ours[name] != theirs[name]
    ]
    noted = "; ".join(f"{e['count']} × {e['reason']}" for e in imported.about["noted"])
    numbers = " | ".join(f"{ours[name]:,}" for name in ours)
    return (
        f"| `{where}` | {imported.source_format} | {numbers} |{' ' + noted if noted else ''} |",
        wrong,
    )


def gold(data: Path, out: Path) -> Iterator[str]:
    """Yield differences of imported logs from Rumen's output, and of topologies from hosts."""
    tests = data / "rumen" / "small-trace-test"
    pairs = [
        ("sample-job-tracker-logs.gz", "job-tracker-logs-trace-output.gz"),
        ("truncated-job-tracker-log", "truncated-trace-output"),
    ]
    for log, made in pairs:
        mine = import_trace([tests / log], out / "log", force=True, lasting=False).path
        theirs = import_trace([tests / made], out / "gold", force=True, lasting=False).path
        for table, key in (("jobs", ["job"]), ("attempts", ["task", "attempt"])):
            a, b = (pl.read_parquet(p / f"{table}.parquet").sort(key) for p in (mine, theirs))
            known = [c for c in a.columns if b[c].null_count() < b.height and c != "rack"]
            if not a.select(known).equals(b.select(known)):
                yield f"{log}: {table} differ from {made}"
    mumak = data / "rumen" / "mumak"
    files = [mumak / "19-jobs.trace.json.gz", mumak / "19-jobs.topology.json.gz"]
    hosts = pl.read_parquet(
        import_trace(files, out / "mumak", force=True, lasting=False).path / "hosts.parquet"
    )
    if (hosts.height, hosts["rack"].n_unique()) != (1545, 41):
        yield f"mumak: {hosts.height} hosts in {hosts['rack'].n_unique()} racks, not 1,545 in 41"


def rest(data: Path, out: Path) -> Iterator[str]:
    """Yield differences between imported stages and the answers of Spark's REST interface."""
    spark = data / "spark-events"
    for log, answer in (("local-1422981780767", "stage_list_json_expectation.json"),):
        trace = import_trace([spark / log], out / "spark", force=True, lasting=False).path
        stages = {s["stage"]: s for s in pl.read_parquet(trace / "stages.parquet").to_dicts()}
        told: list[dict[str, Any]] = json.loads((spark / "expected" / answer).read_text("utf-8"))
        for stage in told:
            mine = stages.pop(stage["stageId"])
            for column, key in (
                ("tasks", "numTasks"),
                ("input_bytes", "inputBytes"),
                ("shuffle_bytes", "shuffleReadBytes"),
                ("shuffle_written_bytes", "shuffleWriteBytes"),
                ("output_bytes", "outputBytes"),
            ):
                if mine[column] != stage[key]:
                    yield f"{log}: stage {mine['stage']}: {column} {mine[column]}, not {stage[key]}"
        if stages:
            yield f"{log}: stages {sorted(stages)} are not in {answer}"


def main() -> int:
    """Check the folder that the command line names; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--write", action="store_true", help="write the table into the page")
    arguments = parser.parse_args()
    rows, wrong = [], []
    with tempfile.TemporaryDirectory(prefix="eastwest-check-") as folder:
        out = Path(folder)
        for name in FOLDERS:
            for path in sorted(p for p in (arguments.data / name).rglob("*") if p.is_file()):
                if not _PAPERS.match(path.name):
                    row, problems = check(path, out)
                    rows.append(row)
                    wrong += problems
        wrong += [*gold(arguments.data, out), *rest(arguments.data, out)]
    head = (
        "| file | format | jobs | attempts | input | shuffle | output | noted |\n"
        + "|---" * 8
        + "|"
    )
    before, _, _ = PAGE.read_text("utf-8").partition(MARK)
    page = before + MARK + "\n\n" + "\n".join([head, *rows]) + "\n"
    if arguments.write:
        PAGE.write_text(page, "utf-8")
    elif PAGE.read_text("utf-8") != page:
        wrong.append(f"{PAGE.name} has another table: --write replaces it")
    for line in wrong:
        print(line)
    print(f"{len(rows)} files, {len(wrong)} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
