"""Explanation of an MPI program: the critical path through its ranks.

The path is followed backwards from the rank that finished last. Where a rank waited for a message,
the path continues at the sender, at the time at which the send was called. Where a send waited for
the receiver (rendezvous), the path continues at the receiver, at the time of the match. Elsewhere
the path stays on its rank (Yang and Miller, *Critical path analysis for the execution of parallel
and distributed programs*, ICDCS 1988). Each instant of the runtime belongs to one part. A rank with
a graph has several states at one time: the path then continues with the state or message that ended
at this instant.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from eastwest.errors import InputError, did_you_mean
from eastwest.explain.neighbours import port_line
from eastwest.explain.story import Part, Story
from eastwest.results import pick
from eastwest.units import clean, percent, rate, size, span
from eastwest.views.evidence import Evidence
from eastwest.views.labels import plural

#: Maximum number of messages on the critical path that the explanation lists.
_MOST_LISTED = 5
#: Maximum number of nodes of a rank that are considered to be active at one time.
_MOST_ACTIVE = 64
#: Share of the runtime above which the ports that were busy during a collective call are named.
_LONG = 0.01
#: Maximum number of ports that the explanation names for the longest collective call.
_MOST_PORTS = 3


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

    def __init__(
        self, states: pl.DataFrame, messages: pl.DataFrame, graphs: frozenset[int] = frozenset()
    ) -> None:
        #: Ranks whose programs are graphs: several of their nodes may be active at one time.
        self.graphs = graphs
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
        state = self.states[rank][place] if place < len(ends) else None
        if rank in self.graphs and (state is None or state["ended_s"] > time_s):
            message = _last(self.received, self._received, rank, -1.0, time_s)
            if message and message["sent_s"] < message["received_s"] == time_s:
                return _of_message(rank, message, time_s)
            # in the middle of a collective call, or of another node
            active = [
                s
                for s in self.states.get(rank, [])[place : place + _MOST_ACTIVE]
                if s["began_s"] < time_s
            ]
            state = next(
                (s for s in active if s["state"] == "collective"), next(iter(active), None)
            )
        if state is not None and state["began_s"] < time_s:
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
            return _of_message(rank, message, time_s)
        matched = _last(self.sent, self._matched, rank, begin_s, time_s)
        if matched is not None and matched["matched_s"] < time_s:
            what = f"{matched['call']}: from the match of the receiver on (rendezvous)"
            return Step(rank, matched["matched_s"], time_s, what, matched)
        return Step(rank, begin_s, time_s, f"{call}: in the call")


def _of_message(rank: int, message: dict[str, Any], time_s: float) -> Step:
    """Return the step of a message that the rank has received, up to a time."""
    where = "between hosts" if message["over"] == "network" else "within a host"
    what = f"{message['call']}: messages {where}"
    return Step(rank, message["sent_s"], time_s, what, message)


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
    iterations = result.mpi_iterations.filter(pl.col("workload") == name)
    graphs = frozenset(iterations["rank"].unique().to_list())
    steps = list(path(_Ranks(states, messages, graphs), int(last["rank"]), finish_s))
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
    _iterations(told, iterations)
    _collectives(evidence, told, name)
    _slowest(evidence, told, steps, finished)
    _imbalance(told, finished, finish_s)
    if pick(result.summary, "mpi", "rows_left_out"):
        told.lacks(
            "Later messages and states: the tables of the result were full (measure.mpi_rows)."
        )
    if told.facts["slowest_flows"]:
        told.lacks(
            "Where the time of a message went: eastwest explain RUN flow ID divides it among the "
            "window and the queues of ports."
        )
    return told


def _iterations(told: Story, iterations: pl.DataFrame) -> None:
    """Add a section on the parts of the iterations of a program that is a graph."""
    later = iterations.filter(pl.col("iteration") > 0)
    counted = later if later.height else iterations
    if not counted.height:
        return
    spans = counted.select(
        (pl.col("ended_s") - pl.col("began_s")).alias("all"), "compute_s", "exposed_s"
    ).mean()
    whole_s, compute_s, exposed_s = (float(value) for value in spans.row(0))
    idle_s = max(0.0, whole_s - compute_s - exposed_s)
    told.facts["iteration"] = {
        "mean_s": whole_s, "compute_s": compute_s, "exposed_s": exposed_s, "idle_s": idle_s
    }  # fmt: skip
    which = " after the first" if later.height else ""
    lines = [f"Mean of all ranks{which}: {span(whole_s)}."]
    if whole_s > 0:
        lines.append(
            f"{percent(compute_s / whole_s)} computation, {percent(exposed_s / whole_s)} exposed "
            f"collective calls, {percent(idle_s / whole_s)} waiting for other ranks and messages."
        )
    told.add("Iterations", *lines)


def _collectives(evidence: Evidence, told: Story, name: str) -> None:
    """Add a section on the collective calls of a program, the slowest one and the busiest ports."""
    calls = evidence.result.mpi_collectives.filter(pl.col("workload") == name)
    calls = calls.with_columns((pl.col("ended_s") - pl.col("complete_s")).alias("took_s"))
    kinds = calls.group_by("call", "ranks").agg(
        pl.len().alias("count"),
        pl.col("took_s").sum().alias("sum_s"),
        pl.col("bus_bandwidth_bps").median().alias("median_bps"),
    )
    if not kinds.height:
        return
    lines = []
    for kind in (
        kinds.sort("sum_s", "call", "ranks", descending=[True, False, False])
        .head(_MOST_LISTED)
        .iter_rows(named=True)
    ):
        bps = kind["median_bps"]
        speed = f", median bus bandwidth {rate(bps)}" if bps > 0 else ""
        lines.append(
            f"{kind['call']} of {plural(kind['ranks'], 'rank')}: {plural(kind['count'], 'call')}, "
            f"{span(kind['sum_s'])} in sum{speed}."
        )
    worst = calls.sort("took_s", "number", descending=[True, False]).row(0, named=True)
    begin_s, end_s = worst["complete_s"], worst["ended_s"]
    told.facts["slowest_collective"] = {
        key: worst[key] for key in ("call", "group", "number", "ranks", "took_s", "last_rank")
    }
    lines.append(
        f"The longest: {worst['call']} number {worst['number']} of group {worst['group']} "
        f"({plural(worst['ranks'], 'rank')}), "
        f"{span(worst['took_s'])} after its last rank (rank {worst['last_rank']}) had entered it "
        f"at {begin_s:.6f} s."
    )
    if worst["took_s"] * 1e6 > _LONG * (told.total_us or 0.0):
        lines += _busiest_ports(evidence, told, begin_s, end_s)
    told.add("Collective calls", *lines)


def _busiest_ports(evidence: Evidence, told: Story, begin_s: float, end_s: float) -> list[str]:
    """Return lines on the ports whose rates were used most between two times."""
    interval = evidence.sample_s
    if interval is None or end_s - begin_s < interval:
        told.lacks(
            "The ports that were busy during the longest collective call: the run has no samples "
            "of this time (measure.sample_interval)."
        )
        return []
    inside = pl.col("time_s").is_between(begin_s + interval, end_s)
    sent = evidence.result.table("link_samples").filter(inside).group_by("link")
    busy = (
        evidence.result.links.join(sent.agg(pl.col("bytes").sum().alias("_sent")), on="link")
        .with_columns((pl.col("_sent") / pl.col("rate_bps")).alias("_used"))
        .sort("_used", "link", descending=[True, False])
        .head(_MOST_PORTS)
    )
    told.facts["busiest_ports"] = busy["name"].to_list()
    lines = (port_line(evidence, row, begin_s, end_s) for row in busy.iter_rows(named=True))
    return [line for line in lines if line]


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
