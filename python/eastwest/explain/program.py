"""Explanation of an MPI program: the critical path through its ranks.

The path is followed backwards from the rank that finished last. Where a rank waited for a message,
the path continues at the sender, at the time at which the send was called. Where a send waited for
the receiver (rendezvous), the path continues at the receiver, at the time of the match. Elsewhere
the path stays on its rank (Yang and Miller, *Critical path analysis for the execution of parallel
and distributed programs*, ICDCS 1988). Each instant of the runtime belongs to one part.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from eastwest.errors import InputError, did_you_mean
from eastwest.explain.story import Part, Story
from eastwest.results import pick
from eastwest.units import clean, percent, size, span
from eastwest.views.evidence import Evidence
from eastwest.views.labels import plural

#: Maximum number of messages on the critical path that the explanation lists.
_MOST_LISTED = 5


@dataclass(frozen=True)
class Step:
    """One step of the critical path, from ``begin_s`` to ``end_s`` on ``rank``.

    ``message`` is the row (table ``mpi_messages``) of the message that took this time, if any.
    """

    rank: int
    begin_s: float
    end_s: float
    what: str
    message: dict[str, Any] | None = None


class _Ranks:
    """States and messages of one MPI program by rank: lists in order of end, receipt or match."""

    def __init__(self, states: pl.DataFrame, messages: pl.DataFrame) -> None:
        self.states = _by_rank(states.sort("ended_s"), "rank")
        self.received = _by_rank(messages.sort("received_s"), "to")
        self.sent = _by_rank(
            messages.filter(pl.col("protocol") == "rendezvous").sort("matched_s"), "from"
        )
        self._ends = {rank: [row["ended_s"] for row in rows] for rank, rows in self.states.items()}
        self._received = _times(self.received, "received_s")
        self._matched = _times(self.sent, "matched_s")

    def before(self, rank: int, time_s: float) -> Step | None:
        """Return the step of the critical path that ends on a rank at a time; None at the start."""
        ends = self._ends.get(rank, [])
        place = bisect_left(ends, time_s)
        if place < len(ends):
            state = self.states[rank][place]
            if state["began_s"] < time_s:
                return self._of_state(rank, state, time_s)
        # The time is between two recorded states, or before the first one.
        if place == 0:
            return Step(rank, 0.0, time_s, "before its first call") if time_s > 0 else None
        return Step(rank, ends[place - 1], time_s, "between calls")

    def _of_state(self, rank: int, state: dict[str, Any], time_s: float) -> Step:
        begin_s, call = state["began_s"], state["call"]
        if state["state"] in {"compute", "sleep"}:
            what = "computing" if state["state"] == "compute" else "sleeping"
            return Step(rank, begin_s, time_s, what)
        message = _last(self.received, self._received, rank, begin_s, time_s)
        if message is not None and message["sent_s"] < time_s:
            where = "between hosts" if message["over"] == "network" else "within a host"
            what = f"{message['call']}: messages {where}"
            return Step(rank, message["sent_s"], time_s, what, message)
        matched = _last(self.sent, self._matched, rank, begin_s, time_s)
        if matched is not None and matched["matched_s"] < time_s:
            what = f"{matched['call']}: from the match of the receiver on (rendezvous)"
            return Step(rank, matched["matched_s"], time_s, what, matched)
        return Step(rank, begin_s, time_s, f"{call}: in the call")


def _by_rank(rows: pl.DataFrame, column: str) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows.iter_rows(named=True):
        found.setdefault(int(row[column]), []).append(row)
    return found


def _times(rows: dict[int, list[dict[str, Any]]], column: str) -> dict[int, list[float]]:
    return {rank: [row[column] for row in of_rank] for rank, of_rank in rows.items()}


def _last(
    rows: dict[int, list[dict[str, Any]]],
    times: dict[int, list[float]],
    rank: int,
    after_s: float,
    until_s: float,
) -> dict[str, Any] | None:
    """Return the last row of a rank whose time is above ``after_s`` and at most ``until_s``.

    ``rows`` and ``times`` have the rows of each rank and their times, in ascending order.
    """
    place = bisect_right(times.get(rank, []), until_s) - 1
    if place < 0 or times[rank][place] <= after_s:
        return None
    return rows[rank][place]


def path(ranks: _Ranks, last: int, finish_s: float) -> Iterator[Step]:
    """Yield the steps of the critical path, from the end of the program to its start.

    ``last`` is the rank that finished last, ``finish_s`` the time at which it finished.
    """
    rank, time_s = last, finish_s
    while time_s > 0:
        step = ranks.before(rank, time_s)
        if step is None:
            return
        yield step
        time_s = step.begin_s
        message = step.message
        if message is not None:
            rank = message["from"] if message["to"] == rank else message["to"]


def story(evidence: Evidence, name: str) -> Story:
    """Return the explanation of the MPI program of the workload ``name``."""
    result = evidence.result
    finished = result.mpi_ranks.filter(pl.col("workload") == name)
    if finished.height == 0:
        known = result.mpi_ranks["workload"].unique().sort().to_list()
        raise InputError(
            f"{result.path} has no finished MPI program {clean(name, 60)!r}; "
            + (f"its programs: {', '.join(known)}" if known else "it has none")
            + did_you_mean(name, known)
        )
    last = finished.row(-1, named=True)
    finish_s = float(last["finished_s"])
    messages = result.mpi_messages.filter(pl.col("workload") == name)
    states = result.mpi_states.filter(pl.col("workload") == name)
    steps = list(path(_Ranks(states, messages), int(last["rank"]), finish_s))
    told = Story(
        "program",
        name,
        f"Program {name!r}: {plural(finished.height, 'rank')}, {span(finish_s)}",
        f"Rank {last['rank']} on {evidence.host(last['host'])} finished last, {span(finish_s)} "
        "after the start of the run. Its critical path has "
        f"{plural(len(steps), 'step')} on {plural(len({s.rank for s in steps}), 'rank')}.",
    )
    told.total_us = finish_s * 1e6
    parts: dict[str, float] = {}
    for step in steps:
        parts[step.what] = parts.get(step.what, 0.0) + (step.end_s - step.begin_s) * 1e6
    order = sorted(parts, key=lambda what: -parts[what])
    told.parts = [Part(what, parts[what]) for what in order if parts[what] > 0]
    told.facts |= {"ranks": finished.height, "runtime_s": finish_s, "steps": len(steps)}
    told.facts["parts_us"] = parts
    _slowest(evidence, told, steps, finished)
    _imbalance(told, finished, finish_s)
    if pick(result.summary, "mpi", "left_out"):
        told.lacks(
            "Later messages and states: the tables of the result were full (measure.mpi_rows)."
        )
    if told.facts["slowest_flows"]:
        told.lacks(
            "Where the time of a message went: eastwest explain RUN flow ID divides it among the "
            "window and the queues of ports."
        )
    return told


def _slowest(evidence: Evidence, told: Story, steps: list[Step], finished: pl.DataFrame) -> None:
    """Add a section on the longest messages of the critical path, with their flows."""
    hosts = dict(zip(finished["rank"], finished["host"], strict=True))
    of_messages = [step for step in steps if step.message is not None]
    lines, numbers = [], []
    for step in sorted(of_messages, key=lambda s: s.begin_s - s.end_s)[:_MOST_LISTED]:
        message = step.message or {}
        src, dst = hosts.get(message["from"]), hosts.get(message["to"])
        flows = evidence.flows.filter(
            (pl.col("workload") == told.id)
            & (pl.col("src") == src)
            & (pl.col("dst") == dst)
            & ((pl.col("finish_s") - message["arrived_s"]).abs() < 1e-9)
        )
        flow = f", flow {flows['flow'][0]}" if flows.height else ""
        numbers += flows["flow"].to_list()[:1]
        lines.append(
            f"{span(step.end_s - step.begin_s)} until {step.end_s:.6f} s: {message['call']}, "
            f"{size(message['bytes'])} from rank {message['from']} to {message['to']} "
            f"({message['over']}, {message['protocol']}{flow})"
        )
    told.facts["slowest_flows"] = numbers
    told.add("The longest messages on the path", *lines)


def _imbalance(told: Story, finished: pl.DataFrame, finish_s: float) -> None:
    """Add a section on the least and the largest share of computation of all ranks."""
    if finish_s <= 0:
        return
    compute = (finished["compute_s"] / finish_s).sort()
    told.facts["compute_share_least"], told.facts["compute_share_most"] = compute[0], compute[-1]
    told.add(
        "Computation of the ranks",
        f"From {percent(compute[0])} to {percent(compute[-1])} of the runtime.",
    )
