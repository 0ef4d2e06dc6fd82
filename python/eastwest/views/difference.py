"""The first difference of two results in simulated time, by table; their flows and jobs in pairs.

Every table with times is a list of *moments*: a packet was lost, a flow started, a map had its
input. Two runs are equal up to a time if each moment up to this time occurs equally often in both,
with equal values. Hosts and links are compared by name. Numbers that depend on the order of
creation (connections, flows) are not compared.

Sampled tables have one row per interval: a difference in a row happened within the interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from eastwest import fidelity
from eastwest.deadlock import deadlock
from eastwest.results import pick
from eastwest.units import span
from eastwest.views.evidence import Evidence, number, pick_setting

#: Maximum number of differing moments that are listed per run and table.
MOST_ROWS = 3


@dataclass(frozen=True)
class Kind:
    """Kind of moments that two runs are compared by: a table, its time column, other columns.

    A moment is a row of ``table`` at the time in the column ``time``; ``columns`` are compared.
    """

    table: str
    time: str
    columns: tuple[str, ...]
    #: Whether the row of an object, such as a flow, is written only when the object has ended. A
    #: run that was stopped early then has no moments of objects in progress.
    needs_end: bool = False

    @property
    def name(self) -> str:
        """Table and time column: ``flows.finish_s``."""
        return f"{self.table}.{self.time}"


_FLOW = ("workload", "purpose", "class", "src", "dst", "bytes", "job")
_JOB = ("job", "workload", "name", "kind")
_TASK = ("job", "workload", "task", "kind", "host", "locality")
_CALL = ("transaction", "workload", "call", "component", "service", "operation", "host")

#: All kinds of moments that are compared and have exact times.
KINDS = (
    Kind(
        "events", "time_s", ("what", "src", "dst", "kind", "stream_start", "bytes", "link", "cause")
    ),
    Kind("flows", "start_s", _FLOW, needs_end=True),
    Kind("flows", "finish_s", (*_FLOW, "start_s", "retransmits", "timeouts")),
    *(
        Kind("jobs", time, _JOB, needs_end=time != "finished_s")
        for time in ("submitted_s", "started_s", "finished_s")
    ),
    *(
        Kind("tasks", time, _TASK, needs_end=time != "finished_s")
        for time in ("assigned_s", "started_s", "input_done_s", "finished_s")
    ),
    *(
        Kind("rounds", time, ("workload", "round", "bytes"), needs_end=time != "finished_s")
        for time in ("started_s", "finished_s")
    ),
    Kind("transactions", "arrived_s", ("workload", "name", "transaction"), needs_end=True),
    Kind("transactions", "finished_s", ("workload", "name", "transaction", "calls")),
    *(
        Kind("calls", time, _CALL, needs_end=True)
        for time in ("sent_s", "arrived_s", "answered_s", "done_s")
    ),
    Kind("mpi_states", "ended_s", ("workload", "rank", "state", "call", "began_s")),
    Kind("mpi_messages", "received_s", ("workload", "from", "to", "tag", "call", "bytes")),
    Kind("mpi_collectives", "ended_s", ("workload", "group", "number", "call", "last_rank")),
    Kind("mpi_iterations", "ended_s", ("workload", "rank", "iteration")),
    Kind("mpi_ranks", "finished_s", ("workload", "rank", "host")),
    Kind("pauses", "began_s", ("link", "priority")),
    Kind("pauses", "until_s", ("link", "priority", "ended")),
    Kind("lpi", "falls_asleep_s", ("link",)),
    Kind("lpi", "awake_s", ("link",)),
    Kind(
        "tcp_trace",
        "time_s",
        ("src", "dst", "cwnd_bytes", "ssthresh_bytes", "srtt_us", "in_flight_bytes", "phase"),
    ),
)
#: Sampled tables: columns that identify a row, and columns that are compared.
_SAMPLED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "link_samples": (("link",), ("bytes", "drops", "marks")),
    "queues": (("link",), ("packets", "bytes")),
}
#: Tables that exist only if the scenario sets ``measure.NAME``, with rows only for the senders or
#: ports that this setting names.
_ASKED_FOR = ("pauses", "lpi", "tcp_trace")
#: Tables of limited length, and the path in the summary of the number of rows beyond the limit.
_CUT = {
    "pauses": ("pauses", "left_out"),
    "lpi": ("lpi", "left_out"),
    "tcp_trace": ("tcp_trace", "left_out"),
    "mpi_states": ("mpi", "rows_left_out"),
    "mpi_messages": ("mpi", "rows_left_out"),
    "mpi_collectives": ("mpi", "rows_left_out"),
    "mpi_iterations": ("mpi", "rows_left_out"),
}
#: Tables whose rows are in the order of time: if rows are missing, the table is complete up to the
#: time of its last row.
_IN_ORDER = {"tcp_trace"}
#: Names of columns that contain numbers of hosts.
_HOSTS = {"src", "dst", "host"}


@dataclass(frozen=True)
class First:
    """First difference of two runs in a table: its time, and moments that only one run has.

    The difference is in the interval from ``since_s`` to ``time_s``, in simulated s; both are equal
    for an exact time.
    """

    kind: Kind
    since_s: float
    time_s: float
    #: Rows of the first run that the second lacks, and rows of the second that the first lacks: at
    #: most ``MOST_ROWS`` each, in order of time.
    only: tuple[list[dict[str, Any]], list[dict[str, Any]]]

    @property
    def is_exact(self) -> bool:
        """Whether the difference has the exact time of a moment, not an interval."""
        return self.since_s == self.time_s


@dataclass
class Difference:
    """First differences of two results, table by table, up to the end of the shorter run."""

    #: Time in simulated s up to which the runs are compared: the end of the shorter run.
    until_s: float
    #: End of each run, in simulated s.
    ends_s: tuple[float, float]
    #: Names of the compared kinds of moments, such as ``flows.finish_s``.
    compared: list[str] = field(default_factory=list)
    #: First difference of each kind of moments that differs, the earliest first.
    tables: list[First] = field(default_factory=list)
    #: Sentences for the user: which tables could not be compared, and why.
    not_compared: list[str] = field(default_factory=list)

    @property
    def first(self) -> First | None:
        """The earliest difference, None without any; of equal times, an exact time comes first."""
        return self.tables[0] if self.tables else None

    @property
    def same_until_s(self) -> float:
        """Simulated time in s up to which all compared moments are equal."""
        return min((first.since_s for first in self.tables), default=self.until_s)


def compare(first: Evidence, second: Evidence) -> Difference:
    """Return the first difference of two results in simulated time, table by table."""
    both = (first, second)
    ends = tuple(pick(each.result.summary, "simulated_s") or 0.0 for each in both)
    found = Difference(min(ends), (ends[0], ends[1]))
    cut_off = [each for each in both if not is_whole(each)]
    skipped: dict[str, None] = {}
    for kind in KINDS:
        why = _why_not(both, kind.table)
        if why is not None:
            skipped[why] = None
            continue
        until = _complete_until(both, kind.table, found.until_s)
        if kind.needs_end and cut_off:
            if any(each.result.table(kind.table).height for each in both):
                skipped[_cut_off_note(cut_off)] = None
            continue
        if until < found.until_s:
            skipped[
                f"Differences in {kind.table} after {until:.9f} s: the table of a run was full."
            ] = None
        moments = [_moments(each, kind, until) for each in both]
        if any(frame.height for frame in moments):
            found.compared.append(kind.name)
            _add(found, kind, moments, None)
    found.not_compared = list(skipped)
    for table in _SAMPLED:
        _compare_samples(found, both, table)
    # If an exact time lies before or at the end of an interval, the exact time comes first.
    found.tables.sort(key=lambda each: (each.time_s, not each.is_exact))
    return found


def is_whole(evidence: Evidence) -> bool:
    """Whether a run ended because its work was done.

    Its time limit, a goal or a deadlock can end a run earlier.
    """
    summary = evidence.result.summary
    duration_s = evidence.time_setting("duration")
    ended_s = pick(summary, "simulated_s") or 0.0
    if "stopped_early" in summary or deadlock(summary):
        return False
    if duration_s is not None and ended_s >= duration_s:
        return False
    return pick(summary, "flows", "completed") == pick(summary, "flows", "count")


def _cut_off_note(cut_off: Sequence[Evidence]) -> str:
    names = " and ".join(str(each.result.path) for each in cut_off)
    return (
        f"Starts of flows, jobs and tasks: {names} ended while work was in progress, "
        "and unfinished work has no rows. Differences in starts show when the work finishes."
    )


def _why_not(both: Sequence[Evidence], table: str) -> str | None:
    """Return a sentence on why a table of two runs cannot be compared, or None if it can."""
    if table == "events":
        if len({fidelity.is_approximate(each.result.summary) for each in both}) > 1:
            return "Losses and timeouts: one of the runs does not simulate all packets."
        if any(each.events_until_s is None for each in both):
            return "Losses and timeouts: a run recorded no events (measure.events)."
    if table in _ASKED_FOR:
        asked = [pick_setting(each.settings, "measure", table) for each in both]
        if asked[0] != asked[1]:
            return f"Differences in {table}: the runs have different settings of measure.{table}."
    if table not in _IN_ORDER and any(_rows_left_out(each, table) for each in both):
        return f"Differences in {table}: the table of a run was full."
    return None


def _complete_until(both: Sequence[Evidence], table: str, until_s: float) -> float:
    """Return the simulated s up to which a table is complete in both runs, at most ``until_s``."""
    if table == "events":
        limits = [each.events_until_s for each in both]
        return min(until_s, *(limit for limit in limits if limit is not None))
    if table in _IN_ORDER:
        cut = [each.result.table(table) for each in both if _rows_left_out(each, table)]
        return min([until_s, *(number(rows["time_s"].max()) for rows in cut)])
    return until_s


def _rows_left_out(evidence: Evidence, table: str) -> bool:
    """Whether a table of a run has reached its maximum length, so that rows are missing."""
    return table in _CUT and bool(pick(evidence.result.summary, *_CUT[table]))


def named(evidence: Evidence, table: pl.DataFrame) -> pl.DataFrame:
    """Return ``table`` with names of hosts and ports in place of the numbers of hosts and links."""
    columns = []
    for name, dtype in table.schema.items():
        if name in _HOSTS and dtype.is_integer():
            numbers = table[name].unique().to_list()
            names = [evidence.host(host) for host in numbers]
        elif name == "link":
            numbers = table[name].unique().to_list()
            names = ["" if link < 0 else evidence.port(link) for link in numbers]
        else:
            continue
        # without rows, a mapping of numbers to names would have no data type
        text = pl.col(name).cast(pl.String)
        if numbers:
            text = pl.col(name).replace_strict(numbers, names, return_dtype=pl.String)
        columns.append(text)
    return table.with_columns(columns)


def _moments(evidence: Evidence, kind: Kind, until_s: float) -> pl.DataFrame:
    """Return the moments of a run up to ``until_s``: ``at`` in s, then the columns of ``kind``."""
    at = pl.col(kind.time)
    rows = evidence.result.table(kind.table).filter(at.is_finite() & (at <= until_s))
    return named(evidence, rows.select(at.alias("at"), *kind.columns))


def _add(
    found: Difference, kind: Kind, moments: Sequence[pl.DataFrame], step_s: float | None
) -> None:
    """Add the first difference between the moments of two runs to ``found``, if they differ.

    ``moments`` has a table for each run, with a column ``at``: a time in s, or with ``step_s`` the
    number of an interval of ``step_s`` seconds.
    """
    signed = [
        frame.with_columns(side=pl.lit(sign)) for frame, sign in zip(moments, (1, -1), strict=True)
    ]
    whole = pl.concat(signed)
    columns = [name for name in whole.columns if name != "side"]
    uneven = (
        whole.group_by(columns).agg(pl.col("side").sum()).filter(pl.col("side") != 0).sort(columns)
    )
    if uneven.height == 0:
        return
    scale = 1.0 if step_s is None else step_s
    rows = uneven.with_columns(pl.col("at") * scale)
    only = tuple(rows.filter(pl.col("side") * sign > 0).head(MOST_ROWS) for sign in (1, -1))
    time_s = float(rows["at"][0])
    since_s = time_s if step_s is None else time_s - step_s
    left, right = ([*frame.drop("side").iter_rows(named=True)] for frame in only)
    found.tables.append(First(kind, since_s, time_s, (left, right)))


def _compare_samples(found: Difference, both: Sequence[Evidence], table: str) -> None:
    """Compare a sampled table of two runs in steps of the longer sampling interval.

    Adds to ``found`` the first difference, or a sentence on why the table cannot be compared.
    """
    steps = [each.sample_s for each in both]
    if steps[0] is None or steps[1] is None:
        return
    step = max(steps[0], steps[1])
    ratios = [step / each for each in steps if each is not None]
    if any(abs(ratio - round(ratio)) > 1e-6 for ratio in ratios):
        found.not_compared.append(
            f"Differences in {table}: the sampling intervals {span(steps[0])} and "
            f"{span(steps[1])} of the runs are not multiples of each other."
        )
        return
    keys, columns = _SAMPLED[table]
    rows_of = [each.result.table(table) for each in both]
    # A column is compared only if both results have it; older formats lack some columns.
    values = [c for c in columns if all(c in t.columns and not t[c].null_count() for t in rows_of)]
    last = math.floor(found.until_s / step + 1e-9)
    frames = []
    for each, whole in zip(both, rows_of, strict=True):
        place = pl.col("time_s") / step
        interval = (place - 1e-6).ceil().cast(pl.Int64)
        rows = whole.with_columns(at=interval).filter(pl.col("at") <= last)
        # a queue is sampled at an instant; other columns are sums over the interval
        if table == "queues":
            rows = rows.filter((place - pl.col("at")).abs() < 1e-6)
        sums = rows.group_by("at", *keys).agg(pl.col(values).cast(pl.UInt64).sum())
        frames.append(named(each, sums))
    found.compared.append(f"{table}.time_s")
    _add(found, Kind(table, "time_s", (*keys, *values)), frames, step)


def paired_flows(first: Evidence, second: Evidence) -> pl.DataFrame:
    """Return pairs of complete flows of both runs, with equal hosts, purpose and order of start.

    Columns that are equal in both runs: ``workload``, ``job``, ``purpose``, ``src``, ``dst`` (names
    of hosts) and ``order``, the number of the flow among flows with these values, by start time.
    Columns of the first run: ``flow``, ``fct_us``, ``retransmits``, ``timeouts``; the names of
    columns of the second run end in ``_after``. A flow that only one run has is not in the table.
    """
    ends = ("workload", "job", "purpose", "src", "dst")
    key = [*ends, "order"]
    frames = []
    for each in (first, second):
        flows = each.flows.filter(pl.col("fct_us").is_finite()).sort("start_s", "flow")
        order = pl.int_range(pl.len()).over(ends)
        chosen = flows.with_columns(order=order).select(
            *key, "flow", "fct_us", "retransmits", "timeouts"
        )
        frames.append(named(each, chosen))
    return frames[0].join(frames[1], on=key, suffix="_after", maintain_order="left")


def paired_jobs(first: Evidence, second: Evidence) -> pl.DataFrame:
    """Return one row for each job that both runs have, with its runtime in each run.

    Jobs are paired by workload and number. Columns: ``workload``, ``job``, ``name``, ``runtime_s``
    of the first run, and ``runtime_s_after`` of the second.
    """
    jobs, after = (
        each.result.jobs.select("workload", "job", "name", "runtime_s") for each in (first, second)
    )
    pairs = jobs.join(after, on=["workload", "job"], suffix="_after", maintain_order="left")
    return pairs.drop("name_after")


def changed_ports(first: Evidence, second: Evidence) -> Iterator[tuple[str, int, int]]:
    """Yield (port, drops in the first run, drops in the second), where the numbers differ.

    The port with the largest change is first. A port that only one run has counts with 0 drops in
    the other run.
    """
    before, after = (each.result.links.select("name", "drops") for each in (first, second))
    both = before.join(after, on="name", how="full", coalesce=True, suffix="_after")
    both = both.with_columns(pl.col("drops", "drops_after").fill_null(0).cast(pl.Int64))
    change = (pl.col("drops_after") - pl.col("drops")).abs()
    ranked = both.filter(change > 0).sort([change, "name"], descending=[True, False])
    yield from ranked.iter_rows()
