"""Infers the transactions of spans by a method, compares them with the truth, and writes them.

The method does not see the recorded parents (except ``ids``, which uses them). A black-box method
sees only source, destination and times of messages. The result is spans in the normal form with the
inferred parents and transactions, so that graphs and workloads can be derived from them as from
recorded spans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from eastwest.account import Account
from eastwest.errors import InputError
from eastwest.observe import convolution, grey, nesting, truth
from eastwest.observe.calls import (
    Calls,
    Integers,
    calls_of,
    concurrency,
    parent_rows,
    transactions,
)
from eastwest.observe.form import TABLES
from eastwest.observe.kept_account import accounts
from eastwest.observe.load import Spans
from eastwest.observe.write import SpanWriter

#: Inference methods by their names, each with the information that it uses.
METHODS = {
    "ids": "white-box: the parents that the spans name",
    "linking": "grey-box: spans that share the value of one attribute",
    "stitching": "grey-box: spans whose attributes match by a file of rules",
    "nesting": "black-box: calls that lie within other calls in time",
    "convolution": "black-box: messages that follow other messages after a typical delay",
}
_COLUMNS = [name for name in TABLES["spans"] if name not in {"resource", "shift_ns", "mended"}]


@dataclass(frozen=True)
class Wanted:
    """Inference method with its settings; each comment begins with the methods that use it."""

    method: str
    #: linking: the attribute that all spans of a transaction share.
    by: str = ""
    #: stitching: file of rules, which say which attributes of parent and child must match.
    rules: Path | None = None
    #: nesting: maximum number of rounds; a round estimates the delays and assigns the parents
    #: again.
    rounds: int = nesting.ROUNDS
    #: convolution: time step in ns, the resolution of the delays.
    step_ns: int = convolution.STEP_NS
    #: nesting, convolution: factors by which the rate of transactions is multiplied; the accuracy
    #: is measured at each of them.
    speeds: Sequence[float] = (1.0,)


@dataclass
class Inferred:
    """Result of an inference: spans with inferred parents, and a summary."""

    method: str
    #: Spans with inferred parents and transactions; None for a method that finds only causes.
    spans: pl.DataFrame | None
    #: Summary for JSON: counts, and the accuracy compared with the true parents.
    said: dict[str, Any] = field(default_factory=dict)


def infer(spans: Spans, wanted: Wanted, told: nesting.Told | None = None) -> Inferred:
    """Return the transactions that the method ``wanted.method`` infers from ``spans``.

    ``told`` is called with the name of a step and the share done, by the method ``nesting`` only.
    Raises ``InputError`` if the method cannot be used with these spans or settings.
    """
    method = wanted.method
    frame = spans.frame(*_COLUMNS)
    if method == "linking":
        return _joined(frame, method, grey.link(frame.drop("parent_id"), wanted.by))
    if method == "stitching":
        if wanted.rules is None:
            raise InputError("the method stitching needs a file of rules (--rules)")
        rules = grey.read_rules(wanted.rules)
        return _joined(frame, method, grey.stitch(frame.drop("parent_id"), rules))
    if method == "ids":
        parent = parent_rows(frame)
        return _joined(frame, method, grey.Joined(parent, transactions(parent)))
    calls = calls_of(frame)
    if not calls.inside.any():
        raise InputError(
            f"{spans.name}: no node calls another, so there are no messages to analyse"
        )
    if method == "nesting":
        return _nesting(frame, calls, wanted, told)
    if method == "convolution":
        return _convolution(calls, wanted.speeds, wanted.step_ns)
    raise InputError(f"the method is {method!r:.60}, but must be one of {', '.join(METHODS)}")


def write(inferred: Inferred, out: Path, source: Spans, force: bool = False) -> dict[str, Any]:
    """Write the spans of ``inferred`` as a folder in the normal form; return its ``spans.json``.

    ``source`` are the spans that were analysed; ``spans.json`` includes the report of their import.
    Raises ``InputError`` if the method finds no single transactions.
    """
    if inferred.spans is None:
        raise InputError(
            f"the method {inferred.method} finds no single transactions, so there are no "
            "spans to write"
        )
    # Nothing is refused here: contradictions in the spans were resolved when they were imported.
    problems = Account(stop=False, lossy=True)
    made = inferred.spans
    if "extra" in made.columns and made["extra"].null_count() < made.height:
        problems.note(
            source.name,
            0,
            "spans with links, events or a scope, in transactions with new ids",
            consequence="links still contain the recorded ids of traces and spans",
        )
    with SpanWriter(out, force) as writer:
        writer.add_frame(inferred.spans)
        about = {
            "sources": ["inferred"],
            "files": [],
            "inferred": inferred.said,
            "accounts": accounts(source.about, source.name),
        }
        return writer.finish(about, problems, source.name)


def _joined(frame: pl.DataFrame, method: str, joined: grey.Joined) -> Inferred:
    """Return spans with the inferred parents, and a summary with precision and recall.

    ``frame`` has the recorded parents, ``joined`` the inferred parents and transactions. Each
    inferred transaction becomes a trace with a new ``trace_id`` (``t0``, ``t1`` …). If span ids are
    not unique, they become row numbers.
    """
    true = parent_rows(frame)
    right = (joined.parent >= 0) & (joined.parent == true)
    inferred, known = int((joined.parent >= 0).sum()), int((true >= 0).sum())
    said: dict[str, Any] = {
        "method": method,
        "spans": frame.height,
        "alone": joined.alone,
        "transactions": int(joined.transaction.max(initial=-1)) + 1,
        "precision": round(int(right.sum()) / inferred, 6) if inferred else None,
        "recall": round(int(right.sum()) / known, 6) if known else None,
    }
    ids = frame["span_id"]
    # Identifiers are unique within a trace, but not within an inferred transaction.
    number = pl.Series(np.arange(frame.height)).cast(pl.String)
    own = ids if ids.is_unique().all() else number
    above = own.gather(np.maximum(joined.parent, 0)).to_list()
    parents = [p if row >= 0 else None for p, row in zip(above, joined.parent, strict=True)]
    spans = frame.with_columns(
        own.alias("span_id"),
        pl.Series("parent_id", parents, pl.String),
        ("t" + pl.Series(joined.transaction).cast(pl.String)).alias("trace_id"),
    )
    return Inferred(method, spans, said)


def _nesting(
    frame: pl.DataFrame, calls: Calls, wanted: Wanted, told: nesting.Told | None
) -> Inferred:
    def nest(calls: Calls) -> Integers:
        return nesting.nest(calls, wanted.rounds, told)

    parents = nest(calls)
    measured = truth.over_speeds(calls, wanted.speeds, nest)
    said = {
        "method": "nesting",
        "rounds": wanted.rounds,
        "nodes": len(calls.nodes) - 1,
        "calls": len(calls),
        "transactions": int((parents < 0).sum()),
        "concurrency": round(concurrency(calls), 3),
        "accuracy": [each.as_json() for each in measured],
    }
    return Inferred("nesting", _spans_of(frame, calls, parents), said)


def _spans_of(frame: pl.DataFrame, calls: Calls, parents: Integers) -> pl.DataFrame:
    """Return two spans for each call, one at the caller and one at the called node.

    A call from outside has only the span at the called node. ``parents`` has the row of each call's
    inferred parent, or −1, and so determines the transactions.
    """
    services = dict(
        frame.select(pl.coalesce("instance", "service").fill_null("(unknown)"), "service")
        .unique("instance", keep="first", maintain_order=True)
        .iter_rows()
    )
    nodes = np.array(calls.nodes, dtype=object)
    ids = np.array([f"c{row}" for row in range(len(calls))], dtype=object)
    names = [f"t{number}" for number in transactions(parents).tolist()]
    inside = np.flatnonzero(calls.inside)

    def side(rows: Integers, client: bool) -> pl.DataFrame:
        node = nodes[(calls.caller if client else calls.callee)[rows]].tolist()
        above = [ids[p] if p >= 0 else None for p in parents[rows].tolist()]
        sent = [f"{name}/client" for name in ids[rows]]
        outside = ~calls.inside[rows]
        server_parent = [None if out else name for out, name in zip(outside, sent, strict=True)]
        start, end = (
            (calls.sent_ns, calls.returned_ns) if client else (calls.received_ns, calls.answered_ns)
        )
        return pl.DataFrame(
            {
                "trace_id": [names[row] for row in rows.tolist()],
                "span_id": sent if client else ids[rows].tolist(),
                "parent_id": above if client else server_parent,
                "service": [services.get(name) for name in node],
                "operation": [f"to {calls.nodes[to]}" for to in calls.callee[rows].tolist()]
                if client
                else [f"from {calls.nodes[by]}" for by in calls.caller[rows].tolist()],
                "instance": node,
                "start_ns": start[rows],
                "end_ns": end[rows],
                "kind": "client" if client else "server",
            },
            schema_overrides={"parent_id": pl.String, "service": pl.String},
        )

    return pl.concat([side(np.arange(len(calls)), False), side(inside, True)])


def _convolution(calls: Calls, speeds: Sequence[float], step_ns: int) -> Inferred:
    try:
        found = convolution.causes(convolution.messages_of(calls), step_ns)
        measured = []
        for speed in speeds:
            moved = calls.compressed(speed)
            causes = convolution.causes(convolution.messages_of(moved), step_ns)
            right = convolution.compare(causes, moved)
            measured.append(
                {
                    "speed": speed,
                    "concurrency": round(concurrency(moved), 3),
                    "found": right.found,
                    "direct": right.direct,
                    "precision": round(right.precision, 6),
                    "recall": round(right.recall, 6),
                }
            )
    except ValueError as error:
        raise InputError(str(error)) from None
    names = calls.nodes
    return Inferred(
        "convolution",
        None,
        {
            "method": "convolution",
            "step_ns": step_ns,
            "nodes": len(names) - 1,
            "calls": len(calls),
            "concurrency": round(concurrency(calls), 3),
            "accuracy": measured,
            "causes": [
                {
                    "from": names[each.origin],
                    "at": names[each.node],
                    "to": names[each.target],
                    "delay_s": each.delay_ns / 1e9,
                    "deviations": each.deviations,
                }
                for each in sorted(found, key=lambda each: -each.deviations)
            ],
        },
    )
