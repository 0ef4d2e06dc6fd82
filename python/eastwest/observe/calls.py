"""Call pairs and messages: what a tracer of the network would have seen of the spans.

A node is an instance (else a service). A *call pair* is a request from one node to another with its
answer; a request from outside starts a transaction. A passive tracer (Aguilera et al., SOSP 2003)
knows source, destination and time of each message, and which answer belongs to which request; not
which request a node was serving when it sent another. That is the call's *parent*, which methods
infer, and which is kept here only to be compared with.

Times are those of the span that is on the caller's node, where it is there: a span of kind client,
or of unknown kind, whose only child is on another node. Otherwise both sides have the called
span's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
import polars as pl

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

#: Name of what is not in the data: whoever sends the requests that start transactions.
OUTSIDE = "(outside)"


@dataclass(frozen=True)
class Calls:
    """Call pairs, in the order of their requests; row numbers are their names."""

    #: Names of nodes; ``caller`` and ``callee`` are their numbers.
    nodes: tuple[str, ...]
    caller: Integers
    callee: Integers
    #: On the caller's clock: when the request left, and when the answer came.
    sent_ns: Integers
    returned_ns: Integers
    #: On the called node's clock: when the request came, and when the answer left.
    received_ns: Integers
    answered_ns: Integers
    #: The true parent: a row, −1 for a request from outside. Not for methods that infer it.
    parent: Integers
    #: The true transaction: number of its root.
    transaction: Integers
    #: Row of the called span in the table of spans.
    span: Integers

    def __len__(self) -> int:
        return len(self.caller)

    @property
    def inside(self) -> Flags:
        """Which calls come from a node of the data: those whose parents are to be inferred."""
        return np.not_equal(self.caller, 0)

    def compressed(self, factor: float) -> Self:
        """Let transactions start ``factor`` times as fast one after the other, each as it is."""
        if factor == 1.0:
            return self
        number = int(self.transaction.max(initial=-1)) + 1
        begin = np.full(number, np.iinfo(np.int64).max)
        np.minimum.at(begin, self.transaction, self.sent_ns)
        first = int(begin.min())
        shift = ((begin - first) / factor - (begin - first)).astype(np.int64)
        by = shift[self.transaction]
        moved = replace(
            self,
            sent_ns=self.sent_ns + by,
            returned_ns=self.returned_ns + by,
            received_ns=self.received_ns + by,
            answered_ns=self.answered_ns + by,
        )
        return moved._ordered()

    def _ordered(self) -> Self:
        order = np.lexsort((self.span, self.sent_ns))
        place = np.empty(len(order) + 1, np.int64)
        place[order] = np.arange(len(order))
        place[-1] = -1
        columns = ("caller", "callee", "sent_ns", "returned_ns", "received_ns", "answered_ns")
        moved = {name: getattr(self, name)[order] for name in (*columns, "transaction", "span")}
        return replace(self, **moved, parent=place[self.parent[order]])


def concurrency(calls: Calls) -> float:
    """Transactions open at once, on the average over the time in which any is open."""
    outer = ~calls.inside
    start, end = np.sort(calls.sent_ns[outer]), calls.returned_ns[outer]
    order = np.argsort(calls.sent_ns[outer], kind="stable")
    latest = np.maximum.accumulate(end[order]) if len(order) else end
    if not len(start):
        return 0.0
    gaps = np.maximum(0, start[1:] - latest[:-1]).sum()
    busy = float(latest[-1] - start[0] - gaps)
    return float((end - calls.sent_ns[outer]).sum() / busy) if busy else 1.0


def calls_of(spans: pl.DataFrame) -> Calls:
    """Find the call pairs of spans, with the parents that the spans name."""
    parents = parent_rows(spans)
    nodes, node = _nodes(spans)
    remote = (parents >= 0) & (node[parents] != node)
    entry = _entries(parents, remote)
    called = np.flatnonzero(remote | (parents < 0))
    above = parents[called]
    start, end = (spans[name].to_numpy() for name in ("start_ns", "end_ns"))
    at_caller = client_side(spans, parents)[above] & (above >= 0)
    caller = np.where(above >= 0, node[above], 0)
    number = np.full(len(parents) + 1, -1, np.int64)
    number[called] = np.arange(len(called))
    calls = Calls(
        nodes=nodes,
        caller=caller,
        callee=node[called],
        sent_ns=np.where(at_caller, start[above], start[called]),
        returned_ns=np.where(at_caller, end[above], end[called]),
        received_ns=start[called],
        answered_ns=end[called],
        parent=np.where(above >= 0, number[entry[above]], -1),
        transaction=_transactions(parents)[called],
        span=called.astype(np.int64),
    )
    return calls._ordered()


def parent_rows(spans: pl.DataFrame) -> Integers:
    """Row of each span's parent; −1 where it has none."""
    there = spans.select("trace_id", "span_id", pl.int_range(pl.len(), dtype=pl.Int64).alias("row"))
    found = spans.select("trace_id", "parent_id").join(
        there,
        left_on=["trace_id", "parent_id"],
        right_on=["trace_id", "span_id"],
        how="left",
        maintain_order="left",
    )
    return found["row"].fill_null(-1).to_numpy()


def _nodes(spans: pl.DataFrame) -> tuple[tuple[str, ...], Integers]:
    named = spans.select(pl.coalesce("instance", "service").fill_null("(unknown)").alias("node"))
    names = sorted(named["node"].unique().to_list())
    numbers = {name: place + 1 for place, name in enumerate(names)}
    node = named["node"].replace_strict(numbers, return_dtype=pl.Int64)
    return (OUTSIDE, *names), node.to_numpy()


def client_side(spans: pl.DataFrame, parents: Integers) -> Flags:
    """Which spans are the caller's side of a call to another node."""
    children = np.bincount(parents[parents >= 0], minlength=len(parents))
    kind = spans["kind"].fill_null("")
    client = kind.is_in(["client", "producer"]).to_numpy()
    unknown = (kind == "").to_numpy()
    alone = unknown & np.equal(children, 1) & (parents >= 0)
    return np.asarray(client | alone)


def _entries(parents: Integers, remote: Flags) -> Integers:
    """For each span, the span with which its node was entered: itself, or one above it."""
    rows = np.arange(len(parents))
    above = np.where(remote | (parents < 0), rows, parents)
    while True:
        further = above[above]
        if (further == above).all():
            return above
        above = further


def _transactions(parents: Integers) -> Integers:
    """Number transactions: a trace has as many as it has roots."""
    rows = np.arange(len(parents))
    top = np.where(parents < 0, rows, parents)
    while True:
        further = top[top]
        if (further == top).all():
            break
        top = further
    _, number = np.unique(top, return_inverse=True)
    return number.astype(np.int64)
