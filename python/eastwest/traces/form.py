"""The normal form of a trace: a folder with ``trace.json`` and Parquet tables.

Every recording is converted to these tables. A column that the source does not provide is null, and
listed under ``lacks`` in ``trace.json``; a table without any data is left out. A value that the
source marks as missing (−1 in Rumen) is null too, never zero.

Times are seconds from time zero of the trace. Time zero is that of the source if it has one (SWIM,
a table), else the first submission. ``began_s`` in ``trace.json`` is time zero in seconds since
1970, if the source states it. Sizes are in bytes. The column ``job`` numbers the jobs from 0 in the
order of submission; jobs with equal times keep the order of the source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

#: Format of the folders that this version writes: the value of ``format`` in ``trace.json``.
TRACE_FORMAT = 1

#: Name of the file that describes the trace.
ABOUT = "trace.json"

#: Description of each format of recorded workloads, by the format's name for ``--format``.
SOURCES = {
    "swim": "SWIM: six, eight or nine tab-separated columns",
    "rumen": "Rumen: job objects in JSON, one after the other",
    "mrv1": 'job history of Hadoop 0.20 to 1.x: KIND KEY="value" lines',
    "jhist": "job history of Hadoop 2 and 3: Avro's JSON or binary form",
    "spark": "Spark event log: one JSON object per line",
    "table": "CSV or Parquet with columns named as in the table of jobs",
}

#: Latest accepted time and longest accepted duration in seconds: 100 years. A larger value must be
#: in another unit.
MOST_S = 100 * 366 * 86_400.0

#: Values of the columns ``outcome``: how an attempt, stage or job ended.
OUTCOMES = ("succeeded", "failed", "killed")

#: Tables of the normal form of a trace, by name: type of each column, by the column's name.
TABLES: dict[str, dict[str, str]] = {
    # One row for each job. ``name`` is the user's name of the job, ``source_id`` the framework's
    # id. ``input_bytes``: read from files by its maps or first stages; ``shuffle_bytes``: fetched
    # by reduces, or by later stages; ``output_bytes``: written to files; ``map_output_bytes``:
    # emitted by maps before combining and compression, which differs from the shuffled bytes.
    # ``map_s`` and ``reduce_s``: task-seconds of the attempts that succeeded.
    "jobs": {
        "job": "u32",
        "name": "str",
        "source_id": "str",
        "user": "str",
        "queue": "str",
        "framework": "str",
        "submit_s": "f64",
        "launch_s": "f64",
        "finish_s": "f64",
        "outcome": "str",
        "maps": "u32",
        "reduces": "u32",
        "input_bytes": "u64",
        "map_output_bytes": "u64",
        "shuffle_bytes": "u64",
        "output_bytes": "u64",
        "map_s": "f64",
        "reduce_s": "f64",
    },
    # One row for each task attempt. ``kind``: map, reduce, setup, cleanup, or task (Spark). Only
    # Spark has ``stage``. ``input_done_s``: end of the map function or of a reduce's shuffle;
    # ``sorted_s``: end of a reduce's merge. ``shuffle_bytes``: fetched by this attempt.
    "attempts": {
        "job": "u32",
        "task": "str",
        "attempt": "u32",
        "kind": "str",
        "stage": "u32",
        "host": "str",
        "rack": "str",
        "start_s": "f64",
        "input_done_s": "f64",
        "sorted_s": "f64",
        "finish_s": "f64",
        "outcome": "str",
        "locality": "str",
        "input_bytes": "u64",
        "input_records": "u64",
        "map_output_bytes": "u64",
        "shuffle_bytes": "u64",
        "output_bytes": "u64",
        "output_records": "u64",
        "file_bytes_read": "u64",
        "file_bytes_written": "u64",
        "spilled_records": "u64",
        "cpu_s": "f64",
    },
    # One row for each stage of a job that is a graph (Spark). ``after``: stages for which it waits.
    "stages": {
        "job": "u32",
        "stage": "u32",
        "name": "str",
        "after": "list[u32]",
        "tasks": "u32",
        "submit_s": "f64",
        "finish_s": "f64",
        "outcome": "str",
        "input_bytes": "u64",
        "shuffle_bytes": "u64",
        "shuffle_written_bytes": "u64",
        "output_bytes": "u64",
        "task_s": "f64",
        "cpu_s": "f64",
    },
    # One row for each file or folder that a job names. ``access``: read or write.
    "files": {"job": "u32", "path": "str", "access": "str", "bytes": "u64"},
    # One row for each host that the trace names.
    "hosts": {"rack": "str", "host": "str"},
}


#: Columns of each table that are never null.
NEEDED = {
    "jobs": ("job", "submit_s"),
    "attempts": ("job", "kind"),
    "stages": ("job", "stage"),
    "files": ("job", "path", "access"),
    "hosts": ("host",),
}


def schema(table: str) -> dict[str, pl.DataType]:
    """Return the polars type of each column of the table ``table``, by name, in order."""
    import polars as pl  # noqa: PLC0415  slow to load, and the names do not need it

    types = {
        "u32": pl.UInt32(),
        "u64": pl.UInt64(),
        "f64": pl.Float64(),
        "str": pl.String(),
        "list[u32]": pl.List(pl.UInt32()),
    }
    return {name: types[kind] for name, kind in TABLES[table].items()}
