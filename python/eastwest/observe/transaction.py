"""Choice of one transaction, and its calls in the graphs of services, components and cables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from eastwest.errors import InputError
from eastwest.observe.graphs import Graphs
from eastwest.observe.path import Forest, Piece
from eastwest.units import clean


@dataclass(frozen=True)
class Transaction:
    """Transaction: its spans, its critical path, and its calls in the three graphs."""

    #: Row of the root span of the transaction.
    root: int
    trace_id: str
    #: Rows of the transaction's spans, parents before children.
    rows: list[int]
    critical: list[Piece]
    #: Number of calls from one service to another, by (caller, callee).
    services: Counter[tuple[str, str]]
    #: Number of calls from one component to another, by (caller, callee).
    components: Counter[tuple[str, str]]
    #: Number of calls whose shortest path uses a cable, by the names of the cable's two nodes in
    #: alphabetical order.
    cables: Counter[tuple[str, str]]


def choose(forest: Forest, spans: pl.DataFrame, wanted: str = "") -> int:
    """Return the row of the root span of the transaction whose trace id begins with ``wanted``.

    If ``wanted`` is empty, it is the transaction with the longest root span. Raises ``InputError``
    if no trace id or several trace ids begin with ``wanted``.
    """
    if not wanted:
        return max(forest.roots, key=lambda row: (forest.end[row] - forest.start[row], -row))
    traces = spans["trace_id"]
    found = [row for row in forest.roots if traces[row].startswith(wanted.lower())]
    if not found:
        raise InputError(f"there is no transaction whose id begins with {clean(wanted, 60)!r}")
    if len({traces[row] for row in found}) > 1:
        raise InputError(
            f"{len(found)} transactions have an id that begins with "
            f"{clean(wanted, 60)!r}: give more characters of the id"
        )
    return found[0]


def follow(forest: Forest, spans: pl.DataFrame, graphs: Graphs, root: int) -> Transaction:
    """Return the transaction whose root span is in row ``root``, with its calls in ``graphs``."""
    rows = forest.tree(root)
    services: Counter[tuple[str, str]] = Counter()
    components: Counter[tuple[str, str]] = Counter()
    cables: Counter[tuple[str, str]] = Counter()
    ways: dict[tuple[str, str], list[str]] = {}
    for row in rows[1:]:
        above = int(forest.parents[row])
        if forest.service[row] != forest.service[above]:
            services[forest.service[above], forest.service[row]] += 1
        if graphs.component[row] != graphs.component[above]:
            components[graphs.component[above], graphs.component[row]] += 1
        ends = graphs.instance[above], graphs.instance[row]
        if ends[0] == ends[1]:
            continue
        if ends not in ways:
            ways[ends] = graphs.way(*ends)
        cables.update(tuple(sorted(pair)) for pair in pairwise(ways[ends]))  # type: ignore[misc]
    return Transaction(
        root=root,
        trace_id=spans["trace_id"][root],
        rows=rows,
        critical=forest.critical(root),
        services=services,
        components=components,
        cables=cables,
    )
