"""Call pairs and messages: what a passive tracer of the network would have observed of the spans.

A node is an instance (or a service, where no instance is known). A *call pair* is a request from
one node to another with its response; a request from outside starts a transaction. A passive tracer
(Aguilera et al., SOSP 2003) knows source, destination and time of each message, and the response to
each request; it does not know which request a node was serving when it sent another. That request
is the call's *parent*: methods infer it, and the true one is kept here only for comparison.

Times on the caller's node are those of the parent span if this is the client side of the call: a
span of kind client or producer, or a span of unknown kind with a parent and one child. Otherwise
both sides have the times of the called span.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
import polars as pl

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

#: Name of the client outside of the data, which sends the requests that start transactions.
OUTSIDE = "(outside)"


@dataclass(frozen=True)
class Calls:
    """Call pairs, in the order of their requests; a call is identified by its row number."""

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
    #: request from outside. Methods that infer it must not read it.
    parent: Integers
    #: Number of the true transaction of each call.
    transaction: Integers
    #: Row of the called span in the table of spans.
    span: Integers

    def __len__(self) -> int:
        return len(self.caller)

    @property
    def inside(self) -> Flags:
        """Mask of the calls whose caller is a recorded node: only their parents are inferred."""
        return np.not_equal(self.caller, 0)

    def compressed(self, factor: float) -> Self:
        """Return the calls with ``factor`` times as many transactions per second.

        The time from the start of the first transaction to the start of each other one is divided
        by ``factor``; times within a transaction do not change.
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
    """Return the mean number of open transactions, over the time in which any is open."""
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
    """Return the call pairs of spans, with the parents that the spans state."""
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
    """Return the row of each span's parent; −1 where it has none."""
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
    """Return a mask of the spans that are the client side of a call, if their child is remote.

    They have the kind client or producer, or an unknown kind, a parent and exactly one child.
    ``parents`` has the row of each span's parent, or −1.
    """
    children = np.bincount(parents[parents >= 0], minlength=len(parents))
    kind = spans["kind"].fill_null("")
    client = kind.is_in(["client", "producer"]).to_numpy()
    unknown = (kind == "").to_numpy()
    alone = unknown & np.equal(children, 1) & (parents >= 0)
    return np.asarray(client | alone)


def _entries(parents: Integers, remote: Flags) -> Integers:
    """Return for each span the row of the span by which the transaction entered its node.

    It is the span itself or an ancestor. ``parents`` has the row of each span's parent, or −1;
    ``remote`` marks spans whose parent is on another node.
    """
    return _ends(np.where(remote | (parents < 0), np.arange(len(parents)), parents))


def transactions(parents: Integers) -> Integers:
    """Return the transaction number of each span; a trace has one transaction for each root."""
    top = _ends(np.where(parents < 0, np.arange(len(parents)), parents))
    return np.unique(top, return_inverse=True)[1].astype(np.int64)


def _ends(above: Integers) -> Integers:
    """Return for each row the last row of its chain; ``above`` links a row to the next one.

    The last row links to itself.
    """
    while not ((further := above[above]) == above).all():
        above = further
    return above
