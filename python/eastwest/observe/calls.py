"""Call pairs and messages: what a passive tracer of the network would have seen of the spans.

A node is an instance (or a service, if no instance is known). A *call pair* is a request from one
node to another and its response; a request from outside starts a transaction. A passive tracer
(Aguilera et al., SOSP 2003) knows source, destination and time of each message, and the response to
each request. The tracer does not know which request a node was serving when it sent another
request. The served request is the *parent* of the new call: inference methods estimate it, and the
true parent is stored only for comparison.

The times at the caller are those of the parent span if the parent span is the client side of the
call: a span of kind client or producer, or a span of unknown kind that has a parent and exactly one
child. Otherwise the called span gives the times of both sides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
import polars as pl

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

#: Name of the node that stands for all clients without spans; its requests start transactions.
OUTSIDE = "(outside)"


@dataclass(frozen=True)
class Calls:
    """Call pairs in the order of their requests; the number of its row identifies a call."""

    #: Names of the nodes; ``caller`` and ``callee`` are indices into this tuple.
    nodes: tuple[str, ...]
    caller: Integers
    callee: Integers
    #: Departure of the request, in ns since 1970 on the caller's clock.
    sent_ns: Integers
    #: Arrival of the response, in ns since 1970 on the caller's clock.
    returned_ns: Integers
    #: Arrival of the request, in ns since 1970 on the called node's clock.
    received_ns: Integers
    #: Departure of the response, in ns since 1970 on the called node's clock.
    answered_ns: Integers
    #: True parent: row of the call that the caller was serving when it sent this request; −1 for a
    #: request from outside. Inference methods must not read this array.
    parent: Integers
    #: Number of the true transaction to which each call belongs.
    transaction: Integers
    #: Row of the called span in the table of spans.
    span: Integers

    def __len__(self) -> int:
        return len(self.caller)

    @property
    def inside(self) -> Flags:
        """Mask of the calls whose caller has spans. Only for these calls a parent is inferred."""
        return np.not_equal(self.caller, 0)

    def compressed(self, factor: float) -> Self:
        """Return the calls with ``factor`` times as many transactions per second.

        The time from the start of the first transaction to the start of every other transaction is
        divided by ``factor``; times within a transaction do not change.
        """
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
    """Return the mean number of open transactions, over the time in which at least one is open."""
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
    """Return the call pairs of ``spans``, with the true parents that the spans state."""
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
        transaction=transactions(parents)[called],
        span=called.astype(np.int64),
    )
    return calls._ordered()


def parent_rows(spans: pl.DataFrame) -> Integers:
    """Return an array: for each span the row of its parent span, or −1 without a parent."""
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
    """Return a mask of the spans that are client sides of calls, if their child is on another node.

    A client side has the kind client or producer, or an unknown kind, a parent and exactly one
    child. ``parents`` has the row of each span's parent, or −1.
    """
    children = np.bincount(parents[parents >= 0], minlength=len(parents))
    kind = spans["kind"].fill_null("")
    client = kind.is_in(["client", "producer"]).to_numpy()
    unknown = (kind == "").to_numpy()
    alone = unknown & np.equal(children, 1) & (parents >= 0)
    return np.asarray(client | alone)


def _entries(parents: Integers, remote: Flags) -> Integers:
    """Return an array: for each span the row of the span by which its transaction entered the node.

    This row is the span itself or one of its ancestors. ``parents`` has the row of each span's
    parent, or −1; ``remote`` marks spans whose parent is on another node.
    """
    return _ends(np.where(remote | (parents < 0), np.arange(len(parents)), parents))


def transactions(parents: Integers) -> Integers:
    """Return an array: for each span the number of its transaction, from 0.

    A trace with several roots has a transaction for each root. ``parents`` has the row of each
    span's parent, or −1.
    """
    top = _ends(np.where(parents < 0, np.arange(len(parents)), parents))
    return np.unique(top, return_inverse=True)[1].astype(np.int64)


def _ends(above: Integers) -> Integers:
    """Return an array: for each row the last row of its chain.

    ``above`` has for each row the next row of the chain; the last row of a chain has its own
    number.
    """
    while not ((further := above[above]) == above).all():
        above = further
    return above
