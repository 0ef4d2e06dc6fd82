"""Explanation of one flow: its properties, the parts of its time, and its events.

A flow is a message: a row of the table ``flows``. Its ideal time is ``fct_us`` / ``slowdown``: the
time of this message alone on the idle path, without handshake and slow start
(docs/mechanisms/measuring.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from eastwest.errors import InputError
from eastwest.explain import again, division, neighbours
from eastwest.explain.story import Moment, Part, Story
from eastwest.units import rate, size, span
from eastwest.views import fate, timeouts
from eastwest.views.evidence import Event, Evidence, number, propagation_us
from eastwest.views.labels import plural

#: Purposes of flows whose sender opens the TCP connection.
_OPENS = {"flow", "request", "replica"}
#: Purposes of flows that answer on a connection that the receiver has opened.
_ANSWERS = {"response", "shuffle", "map-input"}
#: Minimum retransmission timeout in seconds by default (docs/mechanisms/tcp.md).
_LEAST_RTO_S = 0.2
#: Texts for causes of losses, by the name of the cause in the table ``events``.
CAUSES = {
    "queue-full": "the queue was full",
    "loss": "lost on the line",
    "link-down": "the link was down",
    "no-route": "there was no route",
    "early": "the queue dropped it early",
    "shared-buffer": "the memory of the switch was full",
    "sojourn": "the queue dropped it after too long a wait",
}
#: Texts for kinds of packets, by the name of the kind in the table ``events``.
KINDS = {
    "data": "segment",
    "retransmission": "segment sent again",
    "ack": "acknowledgement",
    "ece_ack": "acknowledgement with the ECE bit",
    "syn": "SYN",
    "syn_ack": "SYN-ACK",
    "fin": "FIN",
    "datagram": "datagram",
}

#: Facts of the explanation of a flow: columns of ``flows`` (hosts by name), and the ideal time.
_FACTS = (
    *("flow", "workload", "purpose", "class", "job", "src", "dst", "bytes", "start_s", "finish_s"),
    *("fct_us", "ideal_us", "slowdown", "retransmits", "timeouts", "connection", "stream_start"),
)


def find(evidence: Evidence, flow: int) -> dict[str, Any]:
    """Return the row of a flow in ``flows``; raise ``InputError`` if it does not exist."""
    row = evidence.row("flows", pl.col("flow") == flow)
    if row is None:
        total = evidence.flows.height
        known = f"its flows are 0 to {total - 1}" if total else "no flow has finished in it"
        raise InputError(f"{evidence.result.path} has no flow {flow}; {known}")
    return row


def message(row: dict[str, Any]) -> fate.Message:
    """Return the message that a row of the table ``flows`` describes."""
    known = row["connection"] is not None and row["stream_start"] is not None
    own = {name: row[name] for name in ("src", "dst", "bytes", "start_s", "finish_s")}
    stream: dict[str, Any] = {
        name: row[name] if known else None for name in ("connection", "stream_start")
    }
    return fate.Message(**own, total_us=row["fct_us"], **stream)


def line(evidence: Evidence, row: dict[str, Any]) -> str:
    """Return a flow as one line of text: hosts, size, purpose, time and slowdown."""
    return (
        f"flow {row['flow']}: {evidence.host(row['src'])} → {evidence.host(row['dst'])}, "
        f"{size(row['bytes'])} ({row['purpose']}) in {span(row['fct_us'] / 1e6)}, slowdown "
        f"{row['slowdown']:,.3g}"
    )


def story(evidence: Evidence, flow: int) -> Story:
    """Return the explanation of the flow with the number ``flow``."""
    row = find(evidence, flow)
    this = message(row)
    events = evidence.events_of(this.connection, this.start_s, this.finish_s)
    set_to = (evidence.time_setting("tcp", name) for name in ("min_rto", "initial_rto"))
    least_rto_s = min((value for value in set_to if value is not None), default=_LEAST_RTO_S)
    waits = fate.silences(events, this, least_rto_s)
    result = _opening(evidence, row)
    ahead = neighbours.ahead(evidence, row)
    blind = this.connection is None or evidence.events_note(this.finish_s) is not None
    divided = division.of_flow(evidence, flow)
    blind = blind and row["retransmits"] + row["timeouts"] > 0
    _parts(evidence, result, divided, this, events, waits, ahead, blind)
    result.moments = list(_moments(evidence, this, events, waits))
    _tcp(evidence, result, this)
    neighbours.compare(evidence, result, row)
    own_links = {*evidence.ports_from(row["src"])["link"].to_list()}
    waits_at_sender = divided is not None and divided.is_mostly_at_sender(own_links)
    waits_most = divided.waits_us[0][0] if divided is not None and divided.waits_us else -1
    neighbours.beside(evidence, result, row, waits_at_sender, waits_most)
    _unknown(evidence, result, row, this)
    return result


def _opening(evidence: Evidence, row: dict[str, Any]) -> Story:
    src, dst = evidence.host(row["src"]), evidence.host(row["dst"])
    ideal_us = row["fct_us"] / row["slowdown"] if row["slowdown"] > 0 else row["fct_us"]
    title = f"Flow {row['flow']}: {src} → {dst}, {size(row['bytes'])}, {row['purpose']}"
    whose = f"of workload {row['workload']!r}"
    if row["job"] >= 0:
        job = evidence.row(
            "jobs", (pl.col("job") == row["job"]) & (pl.col("workload") == row["workload"])
        )
        name = f" ({job['name']})" if job else ""
        whose = f"for job {row['job']}{name} of workload {row['workload']!r}"
    bits_per_s = row["bytes"] * 8e6 / row["fct_us"] if row["fct_us"] > 0 else None
    summary = (
        f"{src} sent {size(row['bytes'])} to {dst} {whose}: written at {row['start_s']:.6f} s, "
        f"complete {span(row['fct_us'] / 1e6)} later, {rate(bits_per_s)}. At the full rate of the "
        f"idle path, without handshake and window, it takes {span(ideal_us / 1e6)}: slowdown "
        f"{row['slowdown']:,.3g}."
    )
    known = {**row, "src": src, "dst": dst, "ideal_us": ideal_us}
    facts = {name: known[name] for name in _FACTS}
    return Story("flow", str(row["flow"]), title, summary, facts)


def _parts(
    evidence: Evidence,
    result: Story,
    divided: division.Division | None,
    this: fate.Message,
    events: list[Event],
    waits: list[fate.Silence],
    ahead: neighbours.Ahead | None,
    blind: bool,
) -> None:
    """Add the parts of the flow's time to ``result``: from ``divided``, or else from events.

    ``waits`` are silent times before timeouts, ``ahead`` the earlier messages on the connection.
    ``blind``: the counters of the flow show losses that the table ``events`` lacks.
    """
    intervals = [fate.Interval(fate.TIMER, w.begin_s, w.timeout_s) for w in waits]
    if ahead is not None:
        intervals.append(fate.Interval(fate.BEHIND, this.start_s, ahead.until_s))
    repairs = fate.recoveries(events, this)
    intervals += [fate.Interval(fate.RECOVERY, begin, end) for begin, end in repairs]
    unnoticed = fate.unnoticed(events, this)
    intervals += [fate.Interval(fate.UNNOTICED, begin, end) for begin, end in unnoticed]
    parts = fate.divide(this, intervals)
    ideal_us = result.facts["ideal_us"]
    bound = (
        "; at least, because a loss is missing in the table"
        if any(w.at_least for w in waits)
        else ""
    )
    expired, repaired = plural(len(waits), "timeout"), plural(len(repairs), "time")
    # A fast retransmit while the sender waits for the timer is no separate part of the time.
    within = (
        f"; fast retransmit {repaired} meanwhile" if repairs and not parts[fate.RECOVERY] else ""
    )
    words = {
        fate.TIMER: f"waiting for the retransmission timer ({expired}{within}{bound})",
        fate.BEHIND: f"behind {ahead.words if ahead else ''} on its connection",
        fate.RECOVERY: f"repairing losses by fast retransmit ({repaired})",
        fate.UNNOTICED: "waiting until the sender notices a loss",
        fate.SENDING: (
            f"sending and queueing{', and losses without an event' if blind else ''}; "
            f"the ideal time of the whole flow is {span(ideal_us / 1e6)}"
        ),
    }
    result.total_us = this.total_us
    order = sorted(parts, key=lambda label: -parts[label])
    result.parts = [Part(words[label], parts[label]) for label in order if parts[label] > 0]
    result.facts["parts_us"] = dict(parts)
    result.facts["timer_is_lower_bound"] = bool(bound)
    if divided is not None:
        waited = f"{expired}: {span(parts[fate.TIMER] / 1e6)}{bound}"
        said = [waited] * bool(waits) + [f"fast retransmit {repaired}"] * bool(repairs)
        repair = f" ({'; '.join(said)})" if said else ""
        result.parts = divided.told(
            evidence, result.facts["src"], ahead.words if ahead else "", repair
        )
        result.facts["path_us"] = divided.parts_us
        result.facts["round_trips"] = divided.round_trips
        result.facts["queueing_us_by_port"] = {
            evidence.port(link): wait for link, wait in divided.waits_us if link >= 0
        }


def _moments(
    evidence: Evidence, this: fate.Message, events: list[Event], waits: list[fate.Silence]
) -> Iterator[Moment]:
    """Yield a ``Moment`` for each event, or burst of losses, of the message and its connection.

    The moments are in order of time. ``waits`` are silent times before timeouts of the message.
    """
    waited = {wait.timeout_s: wait for wait in waits}
    for item in fate.bursts(events):
        if isinstance(item, fate.Burst):
            yield Moment(this.at_us(item.first.time_s), _burst_words(evidence, this, item))
            continue
        ours = (item.src, item.dst) == (this.src, this.dst)
        who = evidence.host(item.src)
        at = this.at_us(item.time_s)
        if item.what == "timeout" and ours and item.time_s in waited:
            yield Moment(at, _timeout_words(this, item, waited[item.time_s]))
        else:
            words = {
                "timeout": f"timeout of {who}{_because(item)}",
                "recovery": f"{who} retransmits the missing segments (fast retransmit)",
                "recovered": f"{who} has recovered from the losses",
                "spurious": f"{who} detects that its timeout was spurious",
                "failed": f"{who} aborts the connection",
            }
            other = "" if ours else "; the other direction of the connection"
            yield Moment(at, words.get(item.what, item.what) + other)


def _burst_words(evidence: Evidence, this: fate.Message, burst: fate.Burst) -> str:
    first = burst.first
    what = plural(burst.packets, KINDS.get(first.kind, first.kind))
    several = burst.packets > 1
    if several and first.kind == "retransmission":
        what = f"{burst.packets} segments sent again"
    where = f" at {evidence.port(first.link)}" if first.link >= 0 else ""
    until = f" within {span(burst.last.time_s - first.time_s)}" if several else ""
    payload = f" ({size(burst.bytes)})" if burst.bytes else ""
    whose = ""
    if (first.src, first.dst) == (this.src, this.dst) and this.stream_start is not None:
        if burst.bytes:
            place = this.position(first)
            if place < 0:
                whose = ", of an earlier message"
            elif place >= this.bytes:
                whose = ", of a later message"
            else:
                whose = f", from its byte {place:,} on" if several else f", its byte {place:,}"
    elif first.kind not in {"ack", "ece_ack", "syn_ack"}:
        whose = f" from {evidence.host(first.src)}"
    return f"{what}{payload} lost{where}{until}{whose}: {CAUSES.get(first.cause, first.cause)}"


def _timeout_words(this: fate.Message, event: Event, wait: fate.Silence) -> str:
    place = this.position(event)
    if fate.is_handshake(event):
        what = "the opening of the connection"
    elif place < 0:
        what = "a byte of an earlier message"
    elif place >= this.bytes:
        what = "data that follow the message"
    else:
        what = f"byte {place:,}"
    if wait.again:
        since = f"{span(wait.lasts_s)} after the timeout before"
    elif wait.loss is not None:
        since = f"{span(wait.lasts_s)} after its loss"
    else:
        since = f"silent for at least {span(wait.lasts_s)} (tcp.min_rto)"
    needless = "; it was spurious" if wait.spurious else ""
    return f"timeout: {what} is sent again, {since}{_because(event)}{needless}"


def _because(timeout: Event) -> str:
    """Return the cause of a timeout as ``" (CAUSE)"``; an empty text where it is unknown."""
    why = timeouts.long(timeout.cause)
    return f" ({why})" if why else ""


def _tcp(evidence: Evidence, result: Story, this: fate.Message) -> None:
    """Add a section on the sender's congestion window, if the result has the sender's TCP trace."""
    if this.connection is None:
        return
    sender = evidence.result.table("tcp_trace").filter(
        (pl.col("connection") == this.connection) & (pl.col("src") == this.src)
    )
    trace = sender.filter(pl.col("time_s").is_between(this.start_s, this.finish_s))
    if trace.height == 0:
        before = sender.filter(pl.col("time_s") < this.start_s).sort("time_s").tail(1)
        if before.height:
            window = number(before["cwnd_bytes"][0])
            result.facts["cwnd_bytes_min"] = result.facts["cwnd_bytes_max"] = window
            result.add(
                "Congestion window of the sender", f"Window of {size(window)}, without a change."
            )
        return
    low, high = trace["cwnd_bytes"].min(), trace["cwnd_bytes"].max()
    times = trace["srtt_us"].filter(trace["srtt_us"] > 0)
    lines = [
        f"Window from {size(number(low))} to {size(number(high))} in "
        f"{plural(trace.height, 'change')}; phases: {', '.join(trace['phase'].unique().sort())}."
    ]
    if times.len():
        least, most, timeout = (
            span(number(us) / 1e6) for us in (times.min(), times.max(), trace["rto_us"].max())
        )
        lines.append(f"Smoothed round trip from {least} to {most}; timeout at most {timeout}.")
    result.facts["cwnd_bytes_min"], result.facts["cwnd_bytes_max"] = low, high
    result.add("Congestion window of the sender", *lines)


def _unknown(
    evidence: Evidence,
    result: Story,
    row: dict[str, Any],
    this: fate.Message,
) -> None:
    """Add remarks on facts about the flow that the tables of the result do not contain."""
    note = evidence.events_note(this.finish_s)
    if note is None and this.connection is None:
        note = "Events of the flow: the result does not have the number of the flow's connection."
    result.lacks(note)
    if this.connection is None or evidence.events_until_s is None:
        counted = f"{plural(row['retransmits'], 'segment')} sent again"
        if row["timeouts"]:
            counted += f" and {plural(row['timeouts'], 'timeout')}"
        result.unknown.append(
            f"Losses of this flow alone; during the flow, its whole connection had {counted}."
        )
    divided = "path_us" in result.facts
    if not evidence.divides(row["workload"]):
        result.unknown.append(
            "How the time divides into windows, the queue of each port, pacing and delayed ACKs: "
            "only messages over TCP are divided, in packet-level runs."
        )
        return
    if row["purpose"] in _OPENS and row["stream_start"] == 0 and not divided:
        shape = evidence.topology
        one_way = propagation_us(shape, evidence.host(this.src), evidence.host(this.dst))
        if one_way is not None:
            result.facts["handshake_us_least"] = 2 * one_way
            result.unknown.append(
                "Duration of the handshake, which is a part of the time of the flow: at least "
                f"{span(2 * one_way / 1e6)}, the propagation of SYN and SYN-ACK."
            )
    elif row["purpose"] in _ANSWERS and row["stream_start"] == 0:
        result.unknown.append(
            "Duration of the handshake and the request, which preceded the message and is not a "
            "part of its time."
        )
    if not divided:
        how = "eastwest explain --rerun, or a run with"
        if not again.is_possible(evidence.result):
            how = "a run with these mechanisms, and with"
        cores = "the cores of hosts, " if "hosts" in evidence.result.summary else ""
        result.unknown.append(
            f"How the sending time divides into {cores}a full window, the queue of each port, "
            f"pacing and delayed ACKs: {how} --set 'measure.flow_parts=*', records it."
        )
    if not result.facts.get("cwnd_bytes_max"):
        result.unknown.append(
            "The window over time: --set 'measure.tcp_trace=[\""
            f"{evidence.host(this.src)}->{evidence.host(this.dst)}\"]' records it."
        )


def whole_connection(
    evidence: Evidence, connection: int, first_s: float, last_s: float
) -> list[Moment]:
    """Return the events of a connection from ``first_s`` to ``last_s``, in both directions."""
    events = evidence.events_of(connection, first_s, last_s)
    if not events:
        return []
    whole = fate.Message(-1, -1, 0, first_s, last_s, (last_s - first_s) * 1e6, connection, None)
    return list(_moments(evidence, whole, events, []))
