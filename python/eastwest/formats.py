"""Versions of the result format: what each one holds, and how old results are read.

The one place that knows versions. ``TABLES`` is what this version writes; ``SINCE`` says what a
version has added. A folder of an older format reads as one of today's: its missing tables are
empty, its missing columns are null, or filled where their value is known. A newer one is refused:
what it means is not known here. docs/reference/formats.md has the history and the promise.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eastwest.errors import InputError

if TYPE_CHECKING:
    import polars as pl

#: Format of the folders this version writes: ``format`` in ``summary.json``.
RESULT_FORMAT = 7

#: Tables this version writes: their columns, in order, with their types.
TABLES: dict[str, dict[str, str]] = {
    "jobs": {
        "job": "u32",
        "workload": "str",
        "name": "str",
        "kind": "str",
        "class": "str",
        "submitted_s": "f64",
        "started_s": "f64",
        "finished_s": "f64",
        "runtime_s": "f64",
        "maps": "u32",
        "reduces": "u32",
        "input_bytes": "u64",
        "shuffle_bytes": "u64",
        "shuffle_local_bytes": "u64",
        "output_bytes": "u64",
        "failed": "str",
    },
    "tasks": {
        "job": "u32",
        "workload": "str",
        "task": "u32",
        "kind": "str",
        "host": "u32",
        "assigned_s": "f64",
        "started_s": "f64",
        "input_done_s": "f64",
        "finished_s": "f64",
        "locality": "str",
        "bytes_in": "u64",
        "bytes_out": "u64",
        "computed_s": "f64",
        "merged_s": "f64",
        "spills": "u32",
        "file_bytes_read": "u64",
        "file_bytes_written": "u64",
        "cpu_s": "f64",
    },
    "counters": {
        "job": "u32",
        "workload": "str",
        "FILE_BYTES_READ": "u64",
        "FILE_BYTES_WRITTEN": "u64",
        "HDFS_BYTES_READ": "u64",
        "HDFS_BYTES_WRITTEN": "u64",
        "TOTAL_LAUNCHED_MAPS": "u64",
        "TOTAL_LAUNCHED_REDUCES": "u64",
        "NUM_FAILED_MAPS": "u64",
        "NUM_FAILED_REDUCES": "u64",
        "NUM_KILLED_MAPS": "u64",
        "NUM_KILLED_REDUCES": "u64",
        "DATA_LOCAL_MAPS": "u64",
        "RACK_LOCAL_MAPS": "u64",
        "OTHER_LOCAL_MAPS": "u64",
        "MAP_OUTPUT_BYTES": "u64",
        "MAP_OUTPUT_MATERIALIZED_BYTES": "u64",
        "SPILLED_RECORDS": "u64",
        "REDUCE_SHUFFLE_BYTES": "u64",
        "SHUFFLED_MAPS": "u64",
        "FAILED_SHUFFLE": "u64",
        "CPU_MILLISECONDS": "u64",
    },
    "flows": {
        "flow": "u64",
        "workload": "str",
        "purpose": "str",
        "class": "str",
        "src": "u32",
        "dst": "u32",
        "bytes": "u64",
        "start_s": "f64",
        "finish_s": "f64",
        "fct_us": "f64",
        "slowdown": "f64",
        "retransmits": "u32",
        "timeouts": "u32",
        "job": "i64",
        "connection": "u64",
        "stream_start": "u64",
        "lost_windows": "u32",
        "lost_ack_windows": "u32",
    },
    "flow_parts": {
        "flow": "i64",
        "stream": "i64",
        "workload": "str",
        "class": "str",
        "src": "u32",
        "dst": "u32",
        "bytes": "u64",
        "loss": "str",
        "completion_us": "f64",
        "injection_us": "f64",
        "queueing_us": "f64",
        "flight_us": "f64",
        "retransmission_us": "f64",
    },
    "flow_samples": {
        "time_s": "f64",
        "connection": "i64",
        "stream": "i64",
        "workload": "str",
        "class": "str",
        "src": "u32",
        "dst": "u32",
        "bytes": "u64",
    },
    "events": {
        "time_s": "f64",
        "what": "str",
        "connection": "i64",
        "src": "u32",
        "dst": "u32",
        "kind": "str",
        "stream_start": "u64",
        "bytes": "u32",
        "link": "i64",
        "cause": "str",
    },
    "links": {
        "link": "u32",
        "name": "str",
        "tier": "str",
        "src": "str",
        "dst": "str",
        "rate_bps": "u64",
        "packets": "u64",
        "bytes": "u64",
        "utilisation": "f64",
        "drops": "u64",
        "drops_data": "u64",
        "drops_retransmission": "u64",
        "drops_ack": "u64",
        "drops_ece_ack": "u64",
        "drops_syn": "u64",
        "drops_syn_ack": "u64",
        "drops_fin": "u64",
        "drops_datagram": "u64",
        "queue_max_us": "f64",
        "queue_max_bytes": "u64",
        "drops_queue_full": "u64",
        "lost_random": "u64",
        "lost_down": "u64",
        "lost_no_route": "u64",
        "drops_early": "u64",
        "drops_shared_buffer": "u64",
        "drops_sojourn": "u64",
        "marks": "u64",
        "energy_j": "f64",
        "energy_always_on_j": "f64",
        "energy_ideal_j": "f64",
        "awake_s": "f64",
        "falling_asleep_s": "f64",
        "asleep_s": "f64",
        "waking_s": "f64",
        "wakes": "u64",
    },
    "drops": {
        "link": "u32",
        "class": "u32",
        "kind": "str",
        "ect": "str",
        "arrivals": "u64",
        "marks": "u64",
        "drops": "u64",
        "drops_queue_full": "u64",
        "lost_random": "u64",
        "lost_down": "u64",
        "lost_no_route": "u64",
        "drops_early": "u64",
        "drops_shared_buffer": "u64",
        "drops_sojourn": "u64",
    },
    "depths": {
        "link": "u32",
        "class": "u32",
        "unit": "str",
        "most": "u64",
        "count": "u64",
    },
    "sojourn": {
        "link": "u32",
        "class": "u32",
        "upper_us": "f64",
        "count": "u64",
    },
    "link_samples": {
        "time_s": "f64",
        "link": "u32",
        "bytes": "u64",
        "drops": "u32",
    },
    "queues": {
        "time_s": "f64",
        "link": "u32",
        "packets": "u32",
        "bytes": "u64",
    },
    "traffic": {
        "time_s": "f64",
        "tier": "str",
        "bytes": "u64",
    },
    "power": {
        "time_s": "f64",
        "tier": "str",
        "energy_j": "f64",
        "energy_always_on_j": "f64",
        "energy_ideal_j": "f64",
        "awake_s": "f64",
        "falling_asleep_s": "f64",
        "asleep_s": "f64",
        "waking_s": "f64",
    },
    "latency": {
        "class": "str",
        "kind": "str",
        "upper_us": "f64",
        "count": "u64",
    },
    "rounds": {
        "workload": "str",
        "round": "u32",
        "started_s": "f64",
        "finished_s": "f64",
        "bytes": "u64",
    },
    "transactions": {
        "transaction": "u32",
        "workload": "str",
        "name": "str",
        "recorded": "u32",
        "client": "i64",
        "arrived_s": "f64",
        "finished_s": "f64",
        "response_us": "f64",
        "network_us": "f64",
        "compute_us": "f64",
        "queued_us": "f64",
        "calls": "u32",
    },
    "calls": {
        "transaction": "u32",
        "workload": "str",
        "call": "u32",
        "parent": "i64",
        "component": "str",
        "service": "str",
        "operation": "str",
        "host": "u32",
        "request_bytes": "u64",
        "response_bytes": "u64",
        "sent_s": "f64",
        "arrived_s": "f64",
        "answered_s": "f64",
        "done_s": "f64",
        "network_us": "f64",
        "compute_us": "f64",
    },
    "mpi_ranks": {
        "workload": "str",
        "rank": "u32",
        "host": "u32",
        "finished_s": "f64",
        "compute_s": "f64",
        "sleep_s": "f64",
        "send_s": "f64",
        "receive_s": "f64",
        "wait_s": "f64",
        "collective_s": "f64",
        "messages": "u64",
        "bytes": "u64",
        "collective_messages": "u64",
        "collective_bytes": "u64",
        "collectives": "u64",
    },
    "mpi_states": {
        "workload": "str",
        "rank": "u32",
        "state": "str",
        "call": "str",
        "began_s": "f64",
        "ended_s": "f64",
    },
    "mpi_messages": {
        "workload": "str",
        "from": "u32",
        "to": "u32",
        "tag": "i64",
        "call": "str",
        "bytes": "u64",
        "protocol": "str",
        "over": "str",
        "sent_s": "f64",
        "matched_s": "f64",
        "arrived_s": "f64",
        "received_s": "f64",
    },
    "tcp_trace": {
        "time_s": "f64",
        "connection": "u64",
        "src": "u32",
        "dst": "u32",
        "cwnd_bytes": "u64",
        "ssthresh_bytes": "i64",
        "srtt_us": "f64",
        "rto_us": "f64",
        "in_flight_bytes": "u64",
        "phase": "str",
    },
    "lpi": {
        "link": "u32",
        "falls_asleep_s": "f64",
        "asleep_s": "f64",
        "wakes_s": "f64",
        "awake_s": "f64",
    },
    "streams": {
        "workload": "str",
        "class": "str",
        "src": "u32",
        "dst": "u32",
        "frames_sent": "u64",
        "bytes_sent": "u64",
        "frames_received": "u64",
        "bytes_received": "u64",
        "frames_lost": "u64",
        "frames_reordered": "u64",
        "resequenced": "u64",
        "resequenced_most": "u64",
        "resequenced_mean": "f64",
        "first_s": "f64",
        "last_s": "f64",
        "throughput_bps": "f64",
        "latency_us_mean": "f64",
        "latency_us_max": "f64",
        "jitter_us": "f64",
        "fate": "str",
    },
    "pfc": {
        "link": "u32",
        "priority": "u32",
        "output_most_bytes": "u64",
        "pauses": "u64",
        "paused_s": "f64",
        "input_most_bytes": "u64",
        "input_bytes": "u64",
        "xoff_sent": "u64",
        "xon_sent": "u64",
        "xoff_repeated": "u64",
        "headroom_bytes": "u64",
        "qcn_samples": "u64",
        "qcn_messages": "u64",
    },
    "pauses": {
        "link": "u32",
        "priority": "u32",
        "began_s": "f64",
        "until_s": "f64",
        "ended": "str",
    },
}

#: What came with a later format than the first: tables, and columns as ``table.column``. The number
#: is the first format of which every folder has it: before version 0.1.0 was released, tables and
#: columns came while a format was current, and its first folders lack them.
SINCE: dict[str, int] = {
    "events": 2,
    "link_samples": 2,
    "tcp_trace": 2,
    "flows.connection": 2,
    "flows.stream_start": 2,
    "links.drops_queue_full": 2,
    "links.lost_random": 2,
    "links.lost_down": 2,
    "links.lost_no_route": 2,
    "links.drops_early": 3,
    "links.marks": 3,
    "jobs.failed": 4,
    "tasks.computed_s": 3,
    "tasks.merged_s": 3,
    "tasks.spills": 3,
    "tasks.file_bytes_read": 3,
    "tasks.file_bytes_written": 3,
    "tasks.cpu_s": 3,
    "drops": 4,
    "counters": 5,
    "depths": 5,
    "sojourn": 5,
    "power": 5,
    "lpi": 5,
    "transactions": 6,
    "calls": 6,
    "mpi_ranks": 6,
    "mpi_states": 6,
    "mpi_messages": 6,
    "flows.lost_windows": 5,
    "flows.lost_ack_windows": 5,
    "links.drops_ece_ack": 4,
    "links.drops_shared_buffer": 4,
    "links.drops_sojourn": 4,
    "links.energy_j": 5,
    "links.energy_always_on_j": 5,
    "links.energy_ideal_j": 5,
    "links.awake_s": 5,
    "links.falling_asleep_s": 5,
    "links.asleep_s": 5,
    "links.waking_s": 5,
    "links.wakes": 5,
    "streams": 5,
    "pfc": 5,
    "flow_parts": 6,
    "flow_samples": 7,
    "pauses": 7,
    "streams.resequenced": 6,
    "streams.resequenced_most": 6,
    "streams.resequenced_mean": 6,
    "transactions.queued_us": 7,
}

#: What tells the streams of the table ``flow_samples`` apart.
STREAM = ("workload", "connection", "stream", "src", "dst")

_LARGEST_SUMMARY = 64 * 1024 * 1024
#: Rows of a table that are read: a file of some hundred kilobytes can hold more than memory does.
_MOST_ROWS = 20_000_000


def stamped(summary: dict[str, Any]) -> dict[str, Any]:
    """Put the format that this version writes at the head of a summary."""
    return {"format": RESULT_FORMAT, **summary}


def read_summary(folder: Path) -> dict[str, Any]:
    """Read ``summary.json``; its ``format`` is always there and one that this version reads.

    Raises ``InputError`` where the file is damaged or of a newer format.
    """
    path = folder / "summary.json"
    if path.stat().st_size > _LARGEST_SUMMARY:
        raise InputError(f"{path} is damaged: larger than any summary")
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is damaged: {error}") from None
    except (RecursionError, ValueError) as error:
        raise InputError(f"{path} is damaged: {type(error).__name__}") from None
    if not isinstance(summary, dict):
        raise InputError(f"{path} is damaged: not a JSON object")
    summary.setdefault("format", 1)
    found = summary["format"]
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise InputError(f"{path} is damaged: its format is {found!r:.40}, not a whole number")
    if found > RESULT_FORMAT:
        raise InputError(_newer(folder, summary))
    if found == 1:
        _count_what_was_not_there(summary)
    return summary


def _count_what_was_not_there(summary: dict[str, Any]) -> None:
    """Add the losses and marks that a run of format 1 cannot have had."""
    drops = summary.get("drops")
    full = drops.get("full") if isinstance(drops, dict) else None
    if isinstance(drops, dict) and isinstance(full, dict):
        for cause in ("loss", "link_down", "no_route", "early"):
            drops.setdefault(cause, dict.fromkeys(full, 0))
        summary.setdefault("marks", dict.fromkeys(full, 0))


def _newer(folder: Path, summary: dict[str, Any]) -> str:
    from eastwest import core  # noqa: PLC0415  only here: this module reads without the simulator

    writer = str(summary.get("version", "of unknown version"))
    return (
        f"{folder} has result format {summary['format']:d}, written by Eastwest {writer:.40}; "
        f"this is Eastwest {core.version()}, which reads formats 1 to {RESULT_FORMAT}. "
        f"Read it with that version or a newer one, or simulate it again with this one: "
        f"eastwest run {folder / 'scenario.toml'}"
    )


def writer(summary: Mapping[str, Any]) -> str:
    """Say which version wrote a result, in which format."""
    return f"Eastwest {summary.get('version', '?')!s:.40}, format {summary.get('format', 1)!s:.20}"


def empty(name: str) -> pl.DataFrame:
    """Give a table of this version without rows."""
    import polars as pl  # noqa: PLC0415  large: not before the simulation has run

    return pl.DataFrame(schema={column: _polars(kind) for column, kind in TABLES[name].items()})


def read_table(folder: Path, name: str, written: int) -> pl.DataFrame:
    """Read a table of a folder whose summary says format ``written``, as this version has it.

    Raises ``FileNotFoundError`` where there is no such table and ``InputError`` where it is
    damaged.
    """
    import polars as pl  # noqa: PLC0415  large: not before the simulation has run

    if name not in TABLES:
        near = difflib.get_close_matches(name, TABLES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"tables: {', '.join(TABLES)}"
        raise FileNotFoundError(f"{folder} has no table {name!r:.60}; {hint}")
    path = folder / f"{name}.parquet"
    if not path.is_file():
        if SINCE.get(name, 1) > written:
            return empty(name)
        raise FileNotFoundError(f"{folder} has no table {name!r}: {path.name} is missing")
    try:
        rows = int(pl.scan_parquet(path).select(pl.len()).collect().item())
        if rows > _MOST_ROWS:
            raise InputError(f"{path} has {rows:,} rows; tables of up to {_MOST_ROWS:,} are read")
        found = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise InputError(f"{path} is damaged: {error}") from None
    return _migrated(found, name, written, path)


def _migrated(found: pl.DataFrame, name: str, written: int, path: Path) -> pl.DataFrame:
    """Give a table the columns of today, in today's order."""
    import polars as pl  # noqa: PLC0415

    columns = []
    for column, kind in TABLES[name].items():
        dtype = _polars(kind)
        if column in found.columns:
            if found.schema[column] != dtype:
                raise InputError(
                    f"{path} is damaged: column {column} is {found.schema[column]}, not {dtype}"
                )
            columns.append(pl.col(column))
        elif SINCE.get(f"{name}.{column}", 1) > written:
            columns.append(_known(name, column, written).cast(dtype).alias(column))
        else:
            raise InputError(f"{path} is damaged: it has no column {column}")
    return found.select(columns)


def _known(name: str, column: str, written: int) -> pl.Expr:
    """Value of a column that a format did not have yet."""
    import polars as pl  # noqa: PLC0415

    if name == "links" and (written == 1 or column in {"drops_early", "marks"}):
        # Only a full queue lost packets then, and none was marked.
        return pl.col("drops") if column == "drops_queue_full" else pl.lit(0)
    return pl.lit(None)


def _polars(kind: str) -> type[pl.DataType]:
    import polars as pl  # noqa: PLC0415

    kinds: dict[str, type[pl.DataType]] = {
        "u32": pl.UInt32,
        "u64": pl.UInt64,
        "i64": pl.Int64,
        "f64": pl.Float64,
        "str": pl.String,
    }
    return kinds[kind]
