"""The slowest flows of a run and their events: losses, timeouts and fast recoveries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from eastwest import units
from eastwest.report.draw import clock
from eastwest.results import pick
from eastwest.views.facts import Facts
from eastwest.views.labels import agree, plural, shown
from eastwest.views.latency import finished

#: Maximum number of flows with the longest times, and of flows with the largest slowdowns.
_EACH = 15
#: Maximum number of events of one flow that are read.
_MOST_EVENTS = 3000
_STRIP = 1000


@dataclass(frozen=True)
class Mark:
    """Mark of an event on the strip of a flow, which represents the time from start to end.

    ``css`` is the kind of the event; ``at`` and ``to`` are its begin and end, 0 to 1000.
    """

    css: str
    at: int
    to: int


def rows(facts: Facts) -> list[dict[str, Any]]:
    """Return a row (cells by name) for each of the slowest flows, the longest time first.

    The slowest flows are the 15 flows with the longest completion times, and the 15 with the
    largest slowdowns.
    """
    done = finished(facts.result)
    if done.height == 0:
        return []
    picked = pl.concat([done.top_k(_EACH, by="fct_us"), done.top_k(_EACH, by="slowdown")]).unique(
        "flow", maintain_order=True
    )
    picked = picked.sort(["fct_us", "flow"], descending=[True, False])
    names = _job_names(facts)
    by_connection = _events_of(facts, picked)
    until = _recorded_until(facts)
    return [_row(facts, row, names, by_connection, until) for row in picked.iter_rows(named=True)]


def without_loss(rows: list[dict[str, Any]]) -> str:
    """Return a sentence on the rows of :func:`rows` without a loss; empty without such rows."""
    count = sum(not row["story"] for row in rows)
    if not count:
        return ""
    if len(rows) == 1:
        which = "The flow"
    elif count == len(rows):
        which = "All flows"
    else:
        which = f"{units.count(count)} of the {plural(len(rows), 'flow')}"
    return (
        f"{which} in this table lost no packet: {agree(count, 'it', 'they')} waited in queues or "
        f"shared {agree(count, 'its', 'their')} path with other flows."
    )


def _recorded_until(facts: Facts) -> float:
    """Return the simulated s up to which events are recorded; infinite if none was left out."""
    left_out = pick(facts.result.summary, "event_log", "left_out")
    last = facts.events["time_s"].max() if left_out else None
    return float(last) if isinstance(last, float) else float("inf")


def _job_names(facts: Facts) -> dict[tuple[str, int], str]:
    """Return the names of jobs by (workload, number of the job)."""
    columns = facts.jobs.select("workload", "job", "name").iter_rows()
    return {(workload, job): shown(name, 40) for workload, job, name in columns}


def _events_of(facts: Facts, picked: pl.DataFrame) -> dict[tuple[int, int, int], pl.DataFrame]:
    """Return the events of the connections of the flows ``picked``.

    Keys are (connection, source, destination); a connection has two directions.
    """
    numbers = picked["connection"].drop_nulls().unique().cast(pl.Int64, strict=False)
    events = facts.events
    if not numbers.len() or not events.height:
        return {}
    parts = events.filter(pl.col("connection").is_in(numbers.implode())).partition_by(
        "connection", "src", "dst", as_dict=True, maintain_order=True
    )
    return {(int(k[0]), int(k[1]), int(k[2])): part for k, part in parts.items()}


def _own(
    row: dict[str, Any], by_connection: dict[tuple[int, int, int], pl.DataFrame]
) -> pl.DataFrame | None:
    """Return the events of a flow, or None if its connection has none.

    Events are those of the flow's direction between its start and end. Drops are included only if
    they concern bytes of the flow.
    """
    if row["connection"] is None:
        return None
    events = by_connection.get((int(row["connection"]), int(row["src"]), int(row["dst"])))
    if events is None:
        return None
    first = row["stream_start"] or 0
    after = pl.col("stream_start") + pl.max_horizontal("bytes", 1)
    about = (pl.col("stream_start") < first + row["bytes"]) & (after > first)
    during = (pl.col("time_s") >= row["start_s"]) & (pl.col("time_s") <= row["finish_s"])
    return events.filter(during & (about | (pl.col("what") != "drop"))).head(_MOST_EVENTS)


def _row(
    facts: Facts,
    row: dict[str, Any],
    names: dict[tuple[str, int], str],
    by_connection: dict[tuple[int, int, int], pl.DataFrame],
    recorded_until: float,
) -> dict[str, Any]:
    events = _own(row, by_connection)
    job = names.get((row["workload"], row["job"]), "")
    marks: list[Mark] = []
    if events is None or events.height == 0:
        story = _without_events(row)
        if row["finish_s"] > recorded_until and (row["retransmits"] or row["timeouts"]):
            story += (
                " There are no details, because the log of events was full before the flow ended."
            )
    else:
        story, marks = _with_events(facts, row, events)
    fct = row["fct_us"] / 1e6
    return {
        "flow": row["flow"],
        "ends": f"{facts.host(row['src'])} → {facts.host(row['dst'])}",
        "purpose": shown(row["purpose"], 30),
        "job": job,
        "bytes": (row["bytes"], units.size(row["bytes"])),
        "start": (row["start_s"], clock(round(row["start_s"], 3), facts.end)),
        "fct": (fct, units.span(fct)),
        "slowdown": (row["slowdown"], f"{units.count(row['slowdown'])} ×"),
        "lost": (row["retransmits"], units.count(row["retransmits"])),
        "timeouts": (row["timeouts"], units.count(row["timeouts"])),
        "story": story,
        "marks": marks,
    }


def _without_events(row: dict[str, Any]) -> str:
    """Return a description of a flow from its counters: ``2 segments retransmitted, no timeout.``.

    The text is empty for a flow without retransmissions and timeouts.
    """
    again, late = row["retransmits"], row["timeouts"]
    if not again and not late:
        return ""
    said = f"{plural(again, 'segment', 'segments')} retransmitted"
    return said + (f", {plural(late, 'timeout', 'timeouts')}." if late else ", no timeout.")


def _with_events(facts: Facts, row: dict[str, Any], events: pl.DataFrame) -> tuple[str, list[Mark]]:
    """Return a description of a flow, and marks of its events on the strip of the flow."""
    start, length = row["start_s"], max(row["finish_s"] - row["start_s"], 1e-12)

    def place(time: float) -> int:
        return int(np.clip(round(_STRIP * (time - start) / length), 0, _STRIP))

    said, marks = [], []
    lost = events.filter(pl.col("what") == "drop")
    if lost.height:
        where = lost.group_by("link", "cause").len().sort(["len", "link"], descending=True)
        places = [
            f"{units.count(n)} at {facts.link_names.get(link, 'no link')}"
            + (f" ({shown(cause, 20).replace('-', ' ')})" if cause else "")
            for link, cause, n in where.head(2).iter_rows()
        ]
        rest = int(where["len"].slice(2).sum() or 0)
        if rest:
            places.append(f"{units.count(rest)} elsewhere")
        one = places[0].removeprefix(f"{units.count(lost.height)} ")
        all_of_them = f" {one}" if len(places) == 1 else f": {', '.join(places)}"
        said.append(f"Lost {plural(lost.height, 'packet', 'packets')}{all_of_them}.")
        marks += [Mark("drop", p, p) for p in sorted({place(t) for t in lost["time_s"]})]
    waits = _silences(row, events)
    if waits:
        total = sum(end - begin for begin, end in waits)
        said.append(
            f"{plural(len(waits), 'timeout', 'timeouts')}: nothing was sent for up "
            f"to {units.span(total)}, {units.percent(min(1.0, total / length))} of "
            "the time of the flow."
        )
        marks += [Mark("wait", place(begin), place(end)) for begin, end in waits]
    recoveries = _recoveries(row, events)
    if recoveries:
        said.append(f"{plural(len(recoveries), 'fast recovery', 'fast recoveries')}.")
        marks += [Mark("recovery", place(begin), place(end)) for begin, end in recoveries]
    spurious = int((events["what"] == "spurious").sum())
    if spurious:
        said.append(f"{plural(spurious, 'timeout was', 'timeouts were')} spurious.")
    if "failed" in set(events["what"].to_list()):
        said.append("The connection was aborted.")
    order = {"recovery": 0, "wait": 1, "drop": 2}
    marks.sort(key=lambda mark: (order[mark.css], mark.at))
    return " ".join(said) or _without_events(row), marks


def _silences(row: dict[str, Any], events: pl.DataFrame) -> list[tuple[float, float]]:
    """Return (begin, end) in simulated s of the wait before each timeout of a flow.

    A wait begins with the last event before the timeout, or with the start of the flow.
    """
    times = [float(row["start_s"]), *events["time_s"].to_list()]
    before = zip(times, times[1:], events["what"].to_list(), strict=False)
    return [(last, time) for last, time, what in before if what == "timeout"]


def _recoveries(row: dict[str, Any], events: pl.DataFrame) -> list[tuple[float, float]]:
    """Return (begin, end) in simulated s of each fast recovery of a flow.

    If a timeout ends the recovery, its end is the last event before the timeout.
    """
    found, begun = [], None
    last = float(row["start_s"])
    for time, what in events.select("time_s", "what").iter_rows():
        if what == "recovery":
            begun = float(time) if begun is None else begun
        elif begun is not None and what in {"recovered", "timeout", "failed"}:
            found.append((begun, last if what == "timeout" else float(time)))
            begun = None
        last = float(time)
    if begun is not None:
        found.append((begun, float(row["finish_s"])))
    return found
