"""The critical path of a transaction, and the components to which its time belongs.

The path is found backwards from the end. From a span and a time, the search takes the child that
ended last, because the span waited for it last; a child that had not ended at this time counts as
ended at this time. The time between the child's end and the given time belongs to the span itself.
The path continues in the child up to the child's start, and from there in the span again. The
pieces add up to the duration of the root. A span that ends after its parent counts up to the
parent's end.

On the client side of a call, the time before the called span began and after it ended belongs to
the *network*: links, queues, and the stacks of both hosts. This time is known only for calls with
spans of both sides.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import polars as pl

from eastwest.observe.calls import Integers, parent_rows

#: Maximum number of spans of one transaction that are analysed.
MOST_SPANS = 100_000
#: Maximum number of transactions that are analysed; of a larger number, every n-th is analysed.
MOST_TRANSACTIONS = 20_000
#: Name used in place of a service for the time on the network.
NETWORK = "(network)"


@dataclass(frozen=True)
class Piece:
    """Interval of the critical path (ns since 1970): time of span ``row``, or network time."""

    row: int
    start_ns: int
    end_ns: int
    network: bool


class Forest:
    """Trees of spans: the parent and children of each row of a table of spans, and the roots."""

    def __init__(self, spans: pl.DataFrame) -> None:
        self.parents: Integers = parent_rows(spans)
        self.start: list[int] = spans["start_ns"].to_list()
        self.end: list[int] = spans["end_ns"].to_list()
        node = pl.coalesce("instance", "service").fill_null("(unknown)").alias("node")
        self.node: list[str] = spans.select(node)["node"].to_list()
        service = pl.coalesce("service", "instance").fill_null("(unknown)").alias("service")
        self.service: list[str] = spans.select(service)["service"].to_list()
        self.children: dict[int, list[int]] = defaultdict(list)
        for row, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                self.children[parent].append(row)
        self.roots = [row for row, parent in enumerate(self.parents.tolist()) if parent < 0]

    def tree(self, root: int) -> list[int]:
        """Return the rows of a transaction's spans, parents first, at most ``MOST_SPANS``.

        ``root`` is the row of the root span. Siblings are in the order of their starts.
        """
        found: list[int] = []
        waiting = [root]
        while waiting and len(found) < MOST_SPANS:
            row = waiting.pop()
            found.append(row)
            below = sorted(self.children.get(row, ()), key=lambda each: -self.start[each])
            waiting.extend(below)
        return found

    def critical(self, root: int) -> list[Piece]:
        """Return the critical path of a transaction as pieces in the order of time.

        ``root`` is the row of the root span.
        """
        pieces: list[Piece] = []
        # Intervals still to be divided into pieces: (row of the span, start in ns, end in ns)
        waiting = [(root, self.start[root], self.end[root])]
        while waiting and len(pieces) < MOST_SPANS:
            row, least, now = waiting.pop()
            below = [c for c in self.children.get(row, ()) if self.start[c] < now]
            below.sort(key=lambda each: (min(self.end[each], now), self.start[each]))
            network = any(self.node[child] != self.node[row] for child in below)
            while below and now > least:
                child = below.pop()
                end = min(self.end[child], now)
                begin = max(self.start[child], least)
                if begin >= now or end <= least:
                    continue
                if end < now:
                    pieces.append(Piece(row, end, now, network and self._alone(row)))
                waiting.append((child, begin, end))
                now = begin
                below = [each for each in below if self.start[each] < now]
            if now > least:
                pieces.append(Piece(row, least, now, network and self._alone(row)))
        return sorted(pieces, key=lambda piece: (piece.start_ns, piece.end_ns, piece.row))

    def _alone(self, row: int) -> bool:
        """Whether span ``row`` can be the client side of a call: no root, a single child."""
        below = self.children.get(row, ())
        return len(below) == 1 and self.parents[row] >= 0


def time_by_service(forest: Forest) -> tuple[dict[str, float], int]:
    """Return (seconds on critical paths by service or network, number of analysed transactions).

    Of more than ``MOST_TRANSACTIONS`` transactions, every n-th is analysed.
    """
    step = -(-len(forest.roots) // MOST_TRANSACTIONS)
    roots = forest.roots[:: max(1, step)]
    total: dict[str, float] = defaultdict(float)
    for root in roots:
        for piece in forest.critical(root):
            name = NETWORK if piece.network else forest.service[piece.row]
            total[name] += (piece.end_ns - piece.start_ns) / 1e9
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0]))), len(roots)
