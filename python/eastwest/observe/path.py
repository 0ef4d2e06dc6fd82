"""The critical path of a transaction, and where its time goes.

The path is found from the end: of the spans below the one at hand, the one that ended last, but not
later than the time at hand, is what was waited for last; the time between its end and the time at
hand is the span's own. The path goes on in that span, and then from its start. What it is made of
adds up to the length of the root. A span that outlives its parent counts up to the parent's end.

Time on the caller's side of a call while the called span had not begun or had ended is the
*network's*: links, queues, and the stacks of both hosts. It needs spans of both sides.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import polars as pl

from eastwest.observe.calls import Integers, parent_rows

#: Most spans of one transaction that are followed.
MOST_SPANS = 100_000
#: Most transactions whose time is added up; of more, every so-manieth is taken.
MOST_TRANSACTIONS = 20_000
#: What time between two nodes is put down to.
NETWORK = "(network)"


@dataclass(frozen=True)
class Piece:
    """A piece of the critical path: time that a span, or the network on its way, took."""

    row: int
    start_ns: int
    end_ns: int
    network: bool


class Forest:
    """Spans as trees."""

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
        """Rows of a transaction, each before those below it, in the order of their start."""
        found: list[int] = []
        waiting = [root]
        while waiting and len(found) < MOST_SPANS:
            row = waiting.pop()
            found.append(row)
            below = sorted(self.children.get(row, ()), key=lambda each: -self.start[each])
            waiting.extend(below)
        return found

    def critical(self, root: int) -> list[Piece]:
        """The critical path of a transaction, in the order of time."""
        pieces: list[Piece] = []
        # (row, from when on it is looked at, up to when)
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
        """Whether a span only waits for one call to another node: the caller's side of it."""
        below = self.children.get(row, ())
        return len(below) == 1 and self.parents[row] >= 0


def time_by_service(forest: Forest) -> tuple[dict[str, float], int]:
    """Seconds on critical paths by service, the network apart, and how many were added up."""
    step = -(-len(forest.roots) // MOST_TRANSACTIONS)
    roots = forest.roots[:: max(1, step)]
    total: dict[str, float] = defaultdict(float)
    for root in roots:
        for piece in forest.critical(root):
            name = NETWORK if piece.network else forest.service[piece.row]
            total[name] += (piece.end_ns - piece.start_ns) / 1e9
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0]))), len(roots)
