"""Transactions for a replay: calls with their dependencies and computing times, from spans.

A span is a call to the component (instance or service) that recorded it. A client-side span and its
only child span form one call if another component recorded the child. A client-side span without a
child is a call to the peer that its attributes name (``peer.service`` …), because databases do not
record spans; without such an attribute it counts as computing. A client-side span at the root
belongs to a client outside of the system: the transaction begins with the called span.

- A call is made *after* the sibling calls that had ended when it began; a sibling on which another
  of these siblings already depends is left out. The *gap* of the call is the time from the last end
  of these siblings, or from the caller's start, to the call.
- The caller waits for calls that end before it does. The *rest* of the caller is the time from the
  end of the last of these calls (or from the caller's start) to its own end.

The time between the client side and the server side of a call has two parts that cannot be
separated: the recorded network, and the software of both hosts. As ``host`` it counts as computing
of the called component, so that a replay over a fast fabric takes as long as the recording did; as
``network`` it is left out, and the simulated network takes its place.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass, field

import polars as pl

from eastwest.errors import InputError
from eastwest.observe.calls import client_side, parent_rows

#: Attributes of a span that state the size of the request in bytes; the first that a span has is
#: used. The names are the current and older names of OpenTelemetry's semantic conventions.
REQUEST_KEYS = (
    "http.request.body.size",
    "http.request.size",
    "http.request_content_length",
    "http.request_content_length_uncompressed",
    "rpc.request.size",
    "messaging.message.body.size",
    "messaging.message.envelope.size",
    "messaging.message_payload_size_bytes",
)
#: Attributes of a span that state the size of the response in bytes; the first that a span has is
#: used.
RESPONSE_KEYS = (
    "http.response.body.size",
    "http.response.size",
    "http.response_content_length",
    "http.response_content_length_uncompressed",
    "rpc.response.size",
)
#: Attributes of a client-side span that name the called component. The attributes are used only if
#: the called component recorded no span.
PEER_KEYS = ("peer.service", "db.system", "db.system.name", "messaging.system", "server.address")

#: Ways to count the time between the client side and the server side of a call: as computing of the
#: called component (``host``), or not at all (``network``).
BETWEEN = ("host", "network")
#: Maximum number of predecessors of a call: sibling calls that must have ended before the call is
#: made.
MOST_AFTER = 1000
#: Maximum payload of a message in bytes; a larger size in an attribute is reduced to this value.
MOST_BYTES = 10**12
UNKNOWN = "(unknown)"


@dataclass(slots=True)
class Call:
    """One call of a transaction: request, work of the called component, response; times in ns."""

    #: Index of the calling call in the transaction's list of calls; −1 for the first call.
    parent: int
    component: str
    service: str
    operation: str
    #: Indices, in the transaction's list of calls, of the sibling calls that must have ended before
    #: this call is made.
    after: list[int]
    #: Computing time of the caller before this call, in ns: from the last end of the calls in
    #: ``after`` (if there are none: from the start of the caller's work) to the request.
    gap_ns: int
    #: Computing time of the called component before its response, in ns: from the last response
    #: that it awaits (if there is none: from the start of its work) to its own response.
    rest_ns: int
    #: Whether the caller waits for the response before it sends its own response.
    waited: bool
    #: Payload of the request in bytes; 0 if it is not known.
    request_bytes: int = 0
    #: Payload of the response in bytes; 0 if it is not known.
    response_bytes: int = 0
    #: Departure of the request, in ns after the transaction's start.
    sent_ns: int = 0
    #: Arrival of the response, in ns after the transaction's start.
    done_ns: int = 0


@dataclass(slots=True)
class Tree:
    """Transaction: a list of calls in which every caller precedes its callees.

    ``start_ns`` is the start in ns after the start of the first transaction.
    """

    name: str
    start_ns: int
    calls: list[Call] = field(default_factory=list)

    @property
    def response_ns(self) -> int:
        """Response time of the transaction in ns: from the first request to its response."""
        return self.calls[0].done_ns


@dataclass
class Book:
    """All transactions in order of arrival, and counts of calls for which spans are missing."""

    trees: list[Tree]
    #: Arrival of the first transaction, in ns since 1970.
    began_ns: int
    #: How the time between the client side and the server side of a call is counted: ``host`` or
    #: ``network``.
    between: str
    #: Sum of the times between the client side and the server side, in ns, over all calls with
    #: spans of both sides.
    between_ns: int = 0
    #: Number of calls from one component to another.
    remote: int = 0
    #: Number of calls to another component whose client side was not recorded.
    without_caller: int = 0
    #: Number of calls whose server side was not recorded, for example calls to databases.
    without_called: int = 0

    @property
    def calls(self) -> int:
        """Number of calls in all transactions."""
        return sum(len(tree.calls) for tree in self.trees)


def book_of(spans: pl.DataFrame, between: str = "host") -> Book:
    """Return the transactions of ``spans`` in the order of their arrival.

    ``spans`` has all columns of the normal form and at least one row; ``between`` is one of
    ``BETWEEN``. Raises ``InputError`` for another value of ``between``.
    """
    if between not in BETWEEN:
        raise InputError(f"between is {between!r:.40}, but must be one of {', '.join(BETWEEN)}")
    reader = _Reader(spans, between)
    trees = [reader.tree(root) for root in reader.roots]
    order = sorted(range(len(trees)), key=lambda i: (trees[i].start_ns, i))
    trees = [trees[i] for i in order]
    began = trees[0].start_ns
    for tree in trees:
        tree.start_ns -= began
    made = reader.made
    made.trees, made.began_ns = trees, began
    return made


def sizes(spans: pl.DataFrame, keys: tuple[str, ...]) -> list[int]:
    """Return a list: for each span the payload bytes that its attributes state, or 0.

    If a span has several of the attributes ``keys``, the first of them is used.
    """
    text = spans["attributes"]
    if text.null_count() == len(text):
        return [0] * len(text)
    found = [
        pl.col("attributes")
        .str.json_path_match(f"$['{key}']")
        .cast(pl.Float64, strict=False)
        .fill_nan(None)
        for key in keys
    ]
    bytes_ = pl.coalesce(found).clip(0, MOST_BYTES).fill_null(0).cast(pl.Int64)
    return spans.select(bytes_.alias("bytes"))["bytes"].to_list()


class _Reader:
    """Builder of transactions: walks the trees of spans, whose columns it stores as lists."""

    def __init__(self, spans: pl.DataFrame, between: str) -> None:
        parents = parent_rows(spans)
        self.client = client_side(spans, parents).tolist()
        self.kind_client = spans["kind"].is_in(["client", "producer"]).fill_null(False).to_list()
        unknown = pl.lit(UNKNOWN)
        named = spans.select(
            pl.coalesce("instance", "service", unknown).alias("component"),
            pl.coalesce("service", "instance", unknown).alias("service"),
            pl.coalesce("operation", unknown).alias("operation"),
            "trace_id",
            "start_ns",
            "end_ns",
        )
        self.component: list[str] = named["component"].to_list()
        self.service: list[str] = named["service"].to_list()
        self.operation: list[str] = named["operation"].to_list()
        self.trace: list[str] = named["trace_id"].to_list()
        self.start: list[int] = named["start_ns"].to_list()
        self.end: list[int] = named["end_ns"].to_list()
        self.request = sizes(spans, REQUEST_KEYS)
        self.response = sizes(spans, RESPONSE_KEYS)
        self.peer = _peers(spans)
        self.below: dict[int, list[int]] = defaultdict(list)
        self.roots: list[int] = []
        for row, parent in enumerate(parents.tolist()):
            if parent < 0:
                self.roots.append(row)
            else:
                self.below[parent].append(row)
        self.made = Book([], 0, between)

    def tree(self, root: int) -> Tree:
        """Return the transaction whose root span is in row ``root``.

        ``start_ns`` of the transaction is in ns since 1970.
        """
        trace = self.trace[root]
        tree = Tree(trace, self.start[root])
        zero = self.start[root]
        # Stack of spans to visit: (row of the outer span, index of the calling call, rows of the
        # predecessors, gap in ns, whether the caller waits for the response)
        waiting: list[tuple[int, int, list[int], int, bool]] = [(root, -1, [], 0, True)]
        numbers: dict[int, int] = {}
        while waiting:
            outer, parent, after, gap, waited = waiting.pop()
            inner, component, service = self._called(outer)
            number = len(tree.calls)
            numbers[outer] = number
            call = Call(
                parent,
                component,
                service,
                self.operation[inner],
                [numbers[row] for row in after],
                gap,
                0,
                waited,
                self.request[inner] or self.request[outer],
                self.response[inner] or self.response[outer],
                self.start[outer] - zero,
                max(self.start[outer], self.end[outer]) - zero,
            )
            tree.calls.append(call)
            begin, end = self._inside(outer, inner)
            children = self._order(inner, begin, end)
            last = begin
            for row, _, _, child_waited in children:
                if child_waited:
                    last = max(last, self.end[row])
            call.rest_ns = max(0, end - last)
            # Children are pushed in reverse order, so that calls are numbered in the order of their
            # starts.
            waiting.extend(
                (row, number, before, gap, child_waited)
                for row, before, gap, child_waited in reversed(children)
            )
        return tree

    def _called(self, outer: int) -> tuple[int, str, str]:
        """Return a tuple (row, component, service): the called side of a call.

        ``outer`` is the row of the span that stands for the call. The called side is the only child
        of ``outer`` if that child is on another component, else ``outer`` itself, whose peer
        attribute may name another component. Side effect: adds calls to other components to the
        counts of the ``Book``.
        """
        below = self.below.get(outer, ())
        if len(below) == 1 and self.client[outer]:
            inner = below[0]
            if self.component[inner] != self.component[outer]:
                self.made.remote += 1
                took = self.end[outer] - self.start[outer]
                self.made.between_ns += max(0, took - (self.end[inner] - self.start[inner]))
                return inner, self.component[inner], self.service[inner]
        if not below and self.kind_client[outer] and self.peer[outer]:
            self.made.remote += 1
            self.made.without_called += 1
            return outer, self.peer[outer], self.peer[outer]
        return outer, self.component[outer], self.service[outer]

    def _inside(self, outer: int, inner: int) -> tuple[int, int]:
        """Return start and end of the called component's work, in ns since 1970.

        ``outer`` and ``inner`` are the rows of the client-side and the called span. With ``between
        = network`` the work is that of ``inner``; with ``host`` it is that of ``outer``, so that
        the time between both sides counts as work.
        """
        row = inner if self.made.between == "network" else outer
        return self.start[row], max(self.start[row], self.end[row])

    def _order(self, inner: int, begin: int, end: int) -> list[tuple[int, list[int], int, bool]]:
        """Return the calls that a span makes, in the order of their starts.

        ``inner`` is the row of the span; ``begin`` and ``end`` bound its work, in ns since 1970. A
        call is a tuple: row, rows of its predecessors, gap in ns, whether the caller waits for it.
        Side effect: counts calls to other components whose client side was not recorded.
        """
        rows = sorted(
            self.below.get(inner, ()), key=lambda row: (self.start[row], self.end[row], row)
        )
        found = []
        open_: list[tuple[int, int]] = []
        over: list[tuple[int, int]] = []
        latest = begin
        for row in rows:
            start = max(begin, self.start[row])
            while open_ and open_[0][0] <= start:
                ended, other = heapq.heappop(open_)
                over.append((ended, other))
                latest = max(latest, self.start[other])
            after: list[int] = []
            # A call that ended before another predecessor began is left out: that predecessor
            # already depends on it.
            for ended, other in reversed(over):
                if after and ended <= latest and self.start[other] < latest:
                    break
                if len(after) == MOST_AFTER:
                    break
                after.append(other)
            since = max(begin, over[-1][0]) if over else begin
            found.append((row, sorted(after), max(0, start - since), self.end[row] <= end))
            heapq.heappush(open_, (max(start, self.end[row]), row))
            if self.component[row] != self.component[inner] and not self.client[row]:
                self.made.remote += 1
                self.made.without_caller += 1
        return found


def _peers(spans: pl.DataFrame) -> list[str]:
    """Return a list: for each span the called peer that its attributes name, or an empty text."""
    text = spans["attributes"]
    if text.null_count() == len(text):
        return [""] * len(text)
    found = [pl.col("attributes").str.json_path_match(f"$['{key}']") for key in PEER_KEYS]
    peer = pl.coalesce(found).fill_null("").str.slice(0, 200)
    return spans.select(peer.alias("peer"))["peer"].to_list()
