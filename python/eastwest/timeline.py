"""A result as a timeline that https://ui.perfetto.dev opens: jobs, ranks, flows, losses, queues.

The file is in the Trace Event Format of Chrome (JSON, times in microseconds with three decimals):

- jobs and flows are nestable asynchronous slices (``b`` and ``e``) in lanes; slices that overlap in
  time are in different lanes, one below the other;
- tasks are complete slices (``X``) on threads that represent the slots of a host, with their stages
  as slices within;
- ranks of MPI programs are threads with their states, messages between them slices in lanes;
- low-power idle periods of links (naps) are complete slices on a thread per port: falling asleep,
  asleep, waking;
- pauses are complete slices on a thread per port and priority;
- losses are instants (``i``) at their port, timeouts and recoveries at the host that sends;
- queues, windows and throughput are counters (``C``).

If there are more events than the limit, each kind is thinned, with a note in the file: only the
longest slices, every n-th instant, and the largest of neighbouring counter values are written, and
throughput is written as means over longer intervals.
"""

from __future__ import annotations

import gzip
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eastwest.errors import InputError
from eastwest.files import write_whole
from eastwest.formats import STREAM
from eastwest.results import Result, pick
from eastwest.units import clean, count, size, span

if TYPE_CHECKING:
    import polars as pl

    from eastwest.views.evidence import Evidence

#: Default limit of the events of a file: some 25 MB, which a browser opens in seconds.
MOST_EVENTS = 200_000
#: Share of the limit of events that each kind may use, where a result has more events than the
#: limit. The sum is above 1: a file with many events of all kinds has more events than the limit.
_SHARES = {
    "jobs": 0.06,
    "tasks": 0.18,
    "flows": 0.3,
    "events": 0.15,
    "queues": 0.15,
    "tcp": 0.06,
    "naps": 0.1,
    "pauses": 0.1,
    "rates": 0.1,
    "states": 0.18,
    "messages": 0.3,
}
_JOBS, _PORTS, _QUEUES, _WINDOWS, _NAPS, _PAUSES, _RATES = 1, 2, 3, 4, 5, 6, 7
_RANKS, _MESSAGES = 100, 500
_TASKS, _SENDERS = 1_000, 2_000_000

#: Tolerance, in s, of the comparison of two samples' distance with the sampling interval.
_NANOSECOND = 1e-9

Row = dict[str, Any]


@dataclass
class _Trace:
    """Chrome trace under construction: its events, notes, processes and threads."""

    evidence: Evidence
    most: int
    total: int = 0
    events: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    threads: dict[tuple[int, str], int] = field(default_factory=dict)
    processes: dict[int, str] = field(default_factory=dict)

    def limit(self, kind: str) -> int:
        """Return the maximum number of events of a kind in the file."""
        return self.total if self.total <= self.most else int(self.most * _SHARES[kind])

    def process(self, pid: int, name: str) -> int:
        """Return ``pid``; at the first call, add the events that name this process of the trace."""
        if pid not in self.processes:
            self.processes[pid] = name
            self.meta("process_name", pid, 0, {"name": clean(name, 120)})
            self.meta("process_sort_index", pid, 0, {"sort_index": pid})
        return pid

    def thread(self, pid: int, name: str) -> int:
        """Return the number of the thread ``name`` of a process; a new name gets a new number."""
        key = (pid, name)
        if key not in self.threads:
            self.threads[key] = len(self.threads) + 1
            self.meta("thread_name", pid, self.threads[key], {"name": clean(name, 120)})
        return self.threads[key]

    def meta(self, name: str, pid: int, tid: int, args: Row) -> None:
        """Add a metadata event (``M``), which describes a process or thread of the trace."""
        self.events.append({"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args})

    def note(self, what: str, kept: int, of: int) -> None:
        """Add a note if only ``kept`` of ``of`` events are in the file; ``what`` names them."""
        if kept < of:
            self.notes.append(f"thinned: {count(kept)} of {count(of)} {what}")

    def note_left_out(self, table: str, what: str, setting: str) -> None:
        """Add a note on rows that the result lacks because of ``setting``, a limit of the scenario.

        ``what`` names the rows of ``table``.
        """
        left_out = pick(self.evidence.result.summary, table, "left_out")
        if left_out:
            self.notes.append(f"{count(left_out)} later {what} are not in the result ({setting})")

    def rows(self, table: str, rows: pl.DataFrame) -> Iterator[Row]:
        """Yield ``rows``, rows of ``table``; raise ``InputError`` where a row is damaged."""
        for row in rows.iter_rows(named=True):
            self.evidence.sound(table, row)
            yield row

    def slice(
        self, thread: tuple[int, int, str], name: str, begin: int, end: int, args: Row | None = None
    ) -> None:
        """Add a complete slice from ``begin`` to ``end`` (ns); ``thread``: pid, tid, category."""
        pid, tid, category = thread
        times = {"ts": _us(begin), "dur": _us(end - begin)}
        where = {"pid": pid, "tid": tid, "cat": category, "args": args or {}}
        self.events.append({"ph": "X", "name": name, **times, **where})

    def stages(self, thread: tuple[int, int, str], names: Sequence[str], times: list[int]) -> None:
        """Add a slice for each of ``names``, between two consecutive ``times`` (ns).

        A stage without duration gets no slice.
        """
        for name, (begin, end) in zip(names, itertools.pairwise(times), strict=True):
            if end > begin:
                self.slice(thread, name, begin, end)


def trace(result: Result, most: int = MOST_EVENTS) -> dict[str, Any]:
    """Return a result as a Chrome trace: ``traceEvents``, and notes on thinning in ``otherData``.

    With more than ``most`` events, each kind is thinned to its share of ``most`` (``_SHARES``);
    events that name processes and threads do not count.
    """
    from eastwest.views.evidence import Evidence  # noqa: PLC0415  loads polars

    if most < 100:
        raise InputError(
            f"{most} is too low as the maximum number of events of a timeline; allowed: 100 or more"
        )
    into = _Trace(Evidence(result), most)
    # For each table: its name, the number of events for each row, and the function that adds them.
    kinds: tuple[tuple[str, int, Callable[[_Trace, pl.DataFrame], None]], ...] = (
        ("jobs", 2, _jobs),
        ("tasks", 4, _tasks),
        ("flows", 2, _flows),
        ("events", 1, _events),
        ("queues", 2, _queues),
        ("tcp_trace", 1, _windows),
        ("lpi", 3, _naps),
        ("pauses", 1, _pauses),
        ("flow_samples", 2, _throughput),
        ("mpi_states", 1, _ranks),
        ("mpi_messages", 2, _messages),
    )
    tables = [(result.table(name), per_row, add) for name, per_row, add in kinds]
    into.total = sum(table.height * per_row for table, per_row, _ in tables)
    for table, _, add in tables:
        if table.height:
            add(into, table)
    summary = result.summary
    return {
        "traceEvents": into.events,
        "displayTimeUnit": "ms",
        "otherData": {
            "scenario": clean(str(summary.get("scenario", ""))),
            "seed": str(summary.get("seed", "")),
            "digest": clean(str(summary.get("digest", ""))),
            "version": clean(str(summary.get("version", ""))),
            "notes": "; ".join(into.notes),
        },
    }


def timeline(
    result: Result | str | Path, out: str | Path | None = None, *, most: int = MOST_EVENTS
) -> Path:
    """Write a result as a timeline for https://ui.perfetto.dev and return the file's path.

    ``out`` is ``timeline.json`` in the result folder unless given; a name that ends in ``.gz`` is
    compressed, which Perfetto reads as well. With more than ``most`` events, each kind of events is
    thinned; ``otherData.notes`` of the file lists the kinds that were thinned.
    """
    found = result if isinstance(result, Result) else Result(result)
    return write(trace(found, most), Path(out) if out is not None else found.path / "timeline.json")


def write(made: dict[str, Any], out: Path) -> Path:
    """Write a trace to a file, which is complete or absent, and return its path."""
    head = {key: value for key, value in made.items() if key != "traceEvents"}
    lines = (json.dumps(event, separators=(",", ":")) for event in made["traceEvents"])
    plain = json.dumps(head)[:-1] + ', "traceEvents": [\n' + ",\n".join(lines) + "\n]}\n"
    data = plain.encode()
    write_whole(out, gzip.compress(data, mtime=0) if out.suffix == ".gz" else data)
    return out


def nanoseconds(time_s: Any) -> int:
    """Return a time of a result (s) in whole ns; raise ``InputError`` if it is not a time."""
    if not isinstance(time_s, float) or not math.isfinite(time_s) or abs(time_s) > 1e9:
        raise InputError(f"the result is damaged: {time_s!r:.40} is not a time of a run")
    return round(time_s * 1e9)


def _in_order(row: Row, columns: Sequence[str], what: str) -> list[int]:
    """Return the times of ``columns`` of a row in ns; raise ``InputError`` unless they ascend.

    ``what`` is the name of the table, for the message.
    """
    times = [nanoseconds(row[column]) for column in columns]
    if times != sorted(times):
        shown = ", ".join(f"{row[column]!r:.30}" for column in columns)
        raise InputError(
            f"the result is damaged: in a row of the table {what}, the times "
            f"{', '.join(columns)} do not ascend: {shown}"
        )
    return times


def _us(ns: int) -> float:
    return ns / 1000


def _longest_rows(
    into: _Trace, kind: str, table: pl.DataFrame, begin: str, per_row: int
) -> pl.DataFrame:
    """Return the rows with the longest duration, up to the limit, in order of column ``begin``.

    ``per_row`` is the number of events that one row becomes. If rows are left out, a note is added
    to ``into``.
    """
    import polars as pl  # noqa: PLC0415  large: only when a timeline is made

    room = max(1, into.limit(kind) // per_row)
    kept = table
    if table.height > room:
        ends = ("finish_s", "finished_s", "awake_s", "until_s", "ended_s", "received_s")
        end = next(column for column in ends if column in table.columns)
        kept = table.sort(pl.col(end) - pl.col(begin), descending=True, maintain_order=True)
        kept = kept.head(room)
        into.note(f"{kind}, the longest", kept.height, table.height)
    return kept.sort(begin, maintain_order=True)


def _slices(
    into: _Trace, pid: int, category: str, rows: Iterable[tuple[str, int, int, str, Row]]
) -> None:
    """Add asynchronous slices: ``rows`` are (group of lanes, begin ns, end ns, name, details)."""
    from eastwest.views.series import Lanes  # noqa: PLC0415  loads numpy

    lanes: dict[str, Lanes] = {}
    for group, begin, end, name, args in rows:
        lane = lanes.setdefault(group, Lanes()).place(begin, max(end, begin + 1))
        common = {"cat": category, "id": f"{category}-{group}-{lane}", "pid": pid, "tid": 0}
        into.events.append(
            {"ph": "b", "name": clean(name), "ts": _us(begin), "args": args, **common}
        )
        into.events.append({"ph": "e", "name": clean(name), "ts": _us(end), **common})


def _jobs(into: _Trace, table: pl.DataFrame) -> None:
    pid = into.process(_JOBS, "Jobs")
    kept = _longest_rows(into, "jobs", table, "submitted_s", 2)
    _slices(
        into,
        pid,
        "job",
        (
            (
                "all",
                nanoseconds(row["submitted_s"]),
                nanoseconds(row["finished_s"]),
                f"{clean(row['name'], 80)} (job {row['job']})",
                {
                    "workload": clean(row["workload"]),
                    "maps": row["maps"],
                    "reduces": row["reduces"],
                    "shuffle": size(row["shuffle_bytes"]),
                },
            )
            for row in into.rows("jobs", kept)
        ),
    )


def _tasks(into: _Trace, table: pl.DataFrame) -> None:
    from eastwest.views.series import Lanes  # noqa: PLC0415  loads numpy

    lanes: dict[tuple[int, str], Lanes] = {}
    columns = ("assigned_s", "started_s", "input_done_s", "finished_s")
    kept = _longest_rows(into, "tasks", table, "assigned_s", 4)
    for row in into.rows("tasks", kept):
        host, kind = int(row["host"]), clean(row["kind"], 20)
        times = _in_order(row, columns, "tasks")
        lane = lanes.setdefault((host, kind), Lanes()).place(times[0], max(times[3], times[0] + 1))
        pid = into.process(_TASKS + host, f"{into.evidence.host(host)} tasks")
        tid = into.thread(pid, f"{kind} slot {lane + 1}")
        thread = (pid, tid, "task")
        name = f"job {row['job']} {kind} {row['task']}"
        args = {"locality": clean(row["locality"], 20), "in": size(row["bytes_in"])}
        into.slice(thread, name, times[0], times[3], args)
        second = "fetch" if kind == "reduce" else "read"
        last = "reduce and write" if kind == "reduce" else "compute and spill"
        into.stages(thread, ("start", second, last), times)


def _flows(into: _Trace, table: pl.DataFrame) -> None:
    kept = _longest_rows(into, "flows", table, "start_s", 2)
    for (src,), part in kept.group_by("src", maintain_order=True):
        host = int(str(src))
        pid = into.process(_SENDERS + host, f"{into.evidence.host(host)} sends")
        _slices(into, pid, "flow", _flow_slices(into, part))


def _flow_slices(into: _Trace, part: pl.DataFrame) -> Iterator[tuple[str, int, int, str, Row]]:
    for row in into.rows("flows", part):
        dst = into.evidence.host(row["dst"])
        yield (
            f"{row['src']}-{row['dst']}",
            nanoseconds(row["start_s"]),
            nanoseconds(row["finish_s"]),
            f"→ {dst} {size(row['bytes'])} {row['purpose']}",
            {
                "flow": row["flow"],
                "job": row["job"],
                "slowdown": round(row["slowdown"], 3),
                "retransmits": row["retransmits"],
                "timeouts": row["timeouts"],
            },
        )


def _events(into: _Trace, table: pl.DataFrame) -> None:
    room = into.limit("events")
    step = max(1, math.ceil(table.height / max(1, room)))
    kept = table.gather_every(step)
    into.note("losses, timeouts and recoveries", kept.height, table.height)
    into.note_left_out("event_log", "events", "measure.events")
    for row in into.rows("events", kept):
        if row["what"] == "drop" and row["link"] >= 0:
            pid = into.process(_PORTS, "Losses at ports")
            tid = into.thread(pid, into.evidence.port(row["link"]))
            name = f"lost: {row['kind']} ({row['cause']})"
        else:
            host = int(row["src"])
            pid = into.process(_SENDERS + host, f"{into.evidence.host(host)} sends")
            tid = into.thread(pid, "TCP")
            name = f"{row['what']} → {into.evidence.host(row['dst'])}"
        into.events.append(
            {
                "ph": "i",
                "s": "t",
                "name": clean(name),
                "cat": clean(row["what"], 20),
                "ts": _us(nanoseconds(row["time_s"])),
                "pid": pid,
                "tid": tid,
                "args": {"connection": row["connection"], "byte": row["stream_start"]},
            }
        )


def _queues(into: _Trace, table: pl.DataFrame) -> None:
    import polars as pl  # noqa: PLC0415  large: only when a timeline is made

    pid = into.process(_QUEUES, "Queues")
    interval = into.evidence.sample_s or 0.0
    # Empty queues have no rows. The column last_s marks the last sample before a queue is empty;
    # it is made before rows are left out.
    table = table.sort("link", "time_s", maintain_order=True)
    follows = pl.col("time_s").shift(-1).over("link") <= pl.col("time_s") + interval + _NANOSECOND
    last = pl.when(~follows.fill_null(value=False)).then("time_s").alias("last_s")
    kept = _largest_of_neighbours(into, "queues", table.with_columns(last), ["link"], "packets")
    for (link,), part in kept.group_by("link", maintain_order=True):
        name = f"{into.evidence.port(int(str(link)))} packets"
        rows = part.select("time_s", "packets", "last_s").iter_rows()
        into.events += _counters(pid, name, "packets", _with_zeros(rows, interval))


def _with_zeros(
    rows: Iterable[tuple[float, int, float | None]], interval: float
) -> Iterator[tuple[int, int]]:
    """Yield (time in ns, value) of queue samples, and (time, 0) where a queue becomes empty.

    ``rows`` are (time in s, value, time in s of the last sample before the queue is empty, or
    None). ``interval`` is the sampling interval in s.
    """
    for time_s, value, last_s in rows:
        yield nanoseconds(time_s), value
        if last_s is not None:
            yield nanoseconds(last_s) + nanoseconds(interval), 0


def _windows(into: _Trace, table: pl.DataFrame) -> None:
    pid = into.process(_WINDOWS, "Windows")
    kept = _largest_of_neighbours(into, "tcp", table, ["connection", "src"], "cwnd_bytes")
    for (number, src), part in kept.group_by("connection", "src", maintain_order=True):
        dst = into.evidence.host(part["dst"][0])
        name = f"{into.evidence.host(int(str(src)))}->{dst} (connection {number}) cwnd"
        rows = zip(part["time_s"].to_list(), part["cwnd_bytes"].to_list(), strict=True)
        into.events += _counters(
            pid, name, "bytes", ((nanoseconds(at), value) for at, value in rows)
        )


def _naps(into: _Trace, table: pl.DataFrame) -> None:
    pid = into.process(_NAPS, "Low-power idle")
    into.note_left_out("lpi", "naps", "measure.lpi_rows")
    kept = _longest_rows(into, "naps", table, "falls_asleep_s", 3)
    columns = ("falls_asleep_s", "asleep_s", "wakes_s", "awake_s")
    for row in into.rows("lpi", kept.sort("link", "falls_asleep_s", maintain_order=True)):
        times = _in_order(row, columns, "lpi")
        tid = into.thread(pid, into.evidence.port(row["link"]))
        into.stages((pid, tid, "lpi"), ("falling asleep", "asleep", "waking"), times)


def _pauses(into: _Trace, table: pl.DataFrame) -> None:
    """Add the pauses of each port and priority as slices on a thread."""
    pid = into.process(_PAUSES, "Paused ports")
    into.note_left_out("pauses", "pauses", "measure.pauses_rows")
    kept = _longest_rows(into, "pauses", table, "began_s", 1)
    order = ["link", "priority", "began_s"]
    for row in into.rows("pauses", kept.sort(order, maintain_order=True)):
        begin, end = _in_order(row, ("began_s", "until_s"), "pauses")
        port = into.evidence.port(row["link"])
        tid = into.thread(pid, f"{port} priority {row['priority']}")
        into.slice((pid, tid, "pfc"), "paused", begin, end, {"ended": clean(row["ended"], 20)})


def _throughput(into: _Trace, table: pl.DataFrame) -> None:
    """Add the throughput of each stream in bit/s: means over one or several sample intervals."""
    import polars as pl  # noqa: PLC0415  large: only when a timeline is made

    interval = nanoseconds(pick(into.evidence.result.summary, "flow_samples", "interval_s"))
    if interval <= 0:
        raise InputError(
            "the result is damaged: flow_samples.interval_s of summary.json is not above 0"
        )
    numbers = [round(nanoseconds(at) / interval) - 1 for at in table["time_s"].to_list()]
    if min(numbers) < 0:
        raise InputError(
            "the result is damaged: a row of the table flow_samples has a time_s before the end of "
            "the first interval"
        )
    group = 1
    while True:
        keyed = table.with_columns(bin=pl.Series(numbers) // group)
        bins = keyed.group_by(*STREAM, "bin").agg(pl.col("bytes").sum()).sort(*STREAM, "bin")
        # A rate may be followed by a zero, so that one row can become two events.
        if 2 * bins.height <= into.limit("rates") or group > max(numbers):
            break
        group *= 2
    if group > 1:
        into.notes.append(f"thinned: throughput as means over {span(group * interval / 1e9)}")
    pid = into.process(_RATES, "Throughput")
    for key, part in bins.group_by(*STREAM, maintain_order=True):
        row = dict(zip(STREAM, key, strict=True))
        src, dst = (into.evidence.host(row[end]) for end in ("src", "dst"))
        kind = "stream" if row["stream"] >= 0 else "connection"
        name = f"{src}->{dst} ({row['workload']}, {kind} {row[kind]})"
        rows = zip(part["bin"].to_list(), part["bytes"].to_list(), strict=True)
        into.events += _counters(pid, name, "bit/s", _rates(rows, group * interval))


def _rates(rows: Iterable[tuple[int, int]], width: int) -> Iterator[tuple[int, int]]:
    """Yield (start in ns, rate in bit/s) of intervals, and a rate of 0 at gaps and at the end.

    ``rows`` are (number of the interval, bytes in it); ``width`` is the length of an interval in
    ns.
    """
    due: int | None = None
    for number, held in rows:
        if due is not None and number > due:
            yield due * width, 0
        yield number * width, round(held * 8e9 / width)
        due = number + 1
    if due is not None:
        yield due * width, 0


def _ranks(into: _Trace, table: pl.DataFrame) -> None:
    """Add the ranks of MPI programs: a process for each program, a thread for each rank."""
    programs: dict[str, int] = {}
    kept = _longest_rows(into, "states", table, "began_s", 1)
    for row in into.rows("mpi_states", kept.sort("rank", "began_s", maintain_order=True)):
        program = str(row["workload"])
        number = programs.setdefault(program, len(programs))
        pid = into.process(_RANKS + number, f"{clean(program, 60)} ranks")
        tid = into.thread(pid, f"rank {row['rank']}")
        begin, end = _in_order(row, ("began_s", "ended_s"), "mpi_states")
        into.slice((pid, tid, "mpi"), clean(row["call"], 40), begin, end)


def _messages(into: _Trace, table: pl.DataFrame) -> None:
    """Add the messages of MPI programs, from send to receipt, in lanes of the sending rank."""
    kept = _longest_rows(into, "messages", table, "sent_s", 2)
    for number, ((program,), part) in enumerate(kept.group_by("workload", maintain_order=True)):
        pid = into.process(_MESSAGES + number, f"{clean(str(program), 60)} messages")
        _slices(into, pid, f"message {number}", _message_slices(into, part))


def _message_slices(into: _Trace, part: pl.DataFrame) -> Iterator[tuple[str, int, int, str, Row]]:
    for row in into.rows("mpi_messages", part):
        yield (
            f"rank {row['from']}",
            nanoseconds(row["sent_s"]),
            nanoseconds(row["received_s"]),
            f"{row['from']} → {row['to']} {size(row['bytes'])} {clean(row['call'], 40)}",
            {"tag": row["tag"], "protocol": row["protocol"], "over": row["over"]},
        )


def _largest_of_neighbours(
    into: _Trace, kind: str, table: pl.DataFrame, keys: list[str], value: str
) -> pl.DataFrame:
    """Return a table thinned to the limit: of neighbours in a series, the largest value stays.

    Rows with equal values in the columns ``keys`` are a series; ``value`` is the column that is
    compared. ``last_s`` (time of the last sample before a queue is empty) moves from a removed row
    to the row that stays. If rows are removed, a note is added to ``into``.
    """
    import polars as pl  # noqa: PLC0415  large: only when a timeline is made

    ordered = table.sort([*keys, "time_s"], maintain_order=True)
    # Each sample of a queue may be followed by a zero.
    room = max(1, into.limit(kind) // (2 if kind == "queues" else 1))
    if ordered.height <= room:
        return ordered
    step = math.ceil(ordered.height / room)
    grouped = ordered.with_columns(bin=pl.int_range(pl.len()).over(keys) // step)
    if "last_s" in grouped.columns:
        grouped = grouped.with_columns(pl.col("last_s").backward_fill().over([*keys, "bin"]))
    kept = grouped.filter(pl.col(value) == pl.col(value).max().over([*keys, "bin"]))
    kept = kept.unique([*keys, "bin"], keep="first", maintain_order=True).drop("bin")
    what = "samples of queues" if kind == "queues" else "changes of windows"
    into.note(f"{what}, the largest", kept.height, ordered.height)
    return kept


def _counters(pid: int, name: str, unit: str, rows: Iterable[tuple[int, int]]) -> Iterator[Row]:
    for at, value in rows:
        yield {
            "ph": "C",
            "name": clean(name),
            "ts": _us(at),
            "pid": pid,
            "tid": 0,
            "args": {unit: value},
        }
