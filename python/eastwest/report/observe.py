"""Page about spans: graphs of calls, the critical path of a transaction, and time by service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from eastwest import core, units
from eastwest.observe.graphs import Graphs, placed
from eastwest.observe.kept_account import accounts, lines
from eastwest.observe.path import NETWORK, Forest
from eastwest.observe.transaction import Transaction
from eastwest.report.graph_drawing import fabric, layered
from eastwest.report.page import render
from eastwest.views.labels import agree, plural, shown

_MOST_BARS = 80
_BAR_HEIGHT = 17
_MOST_ROWS = 40
_BARS_WIDTH = 1160
_NAMES_WIDTH = 400


@dataclass(frozen=True)
class Bar:
    """A drawn span of the transaction: position and size in pixels, and its critical parts."""

    text: str
    title: str
    indent: float
    y: float
    x: float
    width: float
    #: Parts of the span on the critical path: (left end in pixels, width in pixels, whether the
    #: part is time in the network).
    critical: list[tuple[float, float, bool]]


@dataclass(frozen=True)
class Shown:
    """Input of the page: spans, and what was computed from them.

    ``transaction`` is the transaction that the page shows.
    """

    name: str
    about: Mapping[str, Any]
    spans: pl.DataFrame
    graphs: Graphs
    forest: Forest
    transaction: Transaction
    #: Time in s on the critical paths of all transactions, by service.
    time: Mapping[str, float]
    #: Number of the transactions whose critical paths are counted in ``time``.
    counted: int
    #: Name of the scenario that describes the network; empty without a scenario.
    scenario: str = ""


def page(given: Shown) -> str:
    """Return the HTML page about spans."""
    graphs, transaction = given.graphs, given.transaction
    bars, left_out = _bars(given)
    whole = sum(given.time.values()) or 1.0
    rows = list(given.time.items())[:_MOST_ROWS]
    per = max(1, given.counted)
    service_of = {
        name: service for service, names in graphs.components_of.items() for name in names
    }
    return render(
        "observe.html.j2",
        [],
        title=shown(given.name, 100),
        about=" · ".join(
            (
                plural(given.spans.height, "span"),
                plural(len(given.forest.roots), "transaction"),
                f"Eastwest {core.version()}",
            )
        ),
        sentences=_sentences(given),
        services=layered(
            graphs.services,
            transaction.services,
            lambda name: (name, plural(graphs.services.nodes[name]["spans"], "span")),
        ),
        components=layered(
            graphs.components,
            transaction.components,
            lambda name: (_method(name.partition(" · ")[2]), service_of[name]),
        ),
        fabric=fabric(graphs.infrastructure, transaction.cables, placed(graphs)),
        fabric_note=_placed_words(given),
        bars=bars,
        bars_height=len(bars) * _BAR_HEIGHT + 24,
        bars_width=_BARS_WIDTH,
        bars_left_out=left_out,
        ticks=_ticks(given),
        trace=shown(transaction.trace_id, 64),
        length=units.span(_length(given, transaction.root)),
        time=[
            [shown(name, 60), units.span(s), units.percent(s / whole), units.span(s / per)]
            for name, s in rows
        ],
        shares=[(shown(name, 60), round(s / whole * 100, 2), name == NETWORK) for name, s in rows],
        counted=units.count(given.counted),
        mappings=_mappings(graphs),
        account=_account(given),
    )


def _length(given: Shown, row: int) -> float:
    return (given.forest.end[row] - given.forest.start[row]) / 1e9


def _method(operation: str | None) -> str:
    """Return the last part of an operation's name: the method, without package and class."""
    text = (operation or "–").rstrip("./")
    return text if " " in text else text.rsplit("/", 1)[-1].rsplit(".", 1)[-1] or "–"


def _sentences(given: Shown) -> list[str]:
    services, components = given.graphs.services, given.graphs.components
    said = [
        f"{plural(len(services), 'service has', 'services have')} "
        f"{plural(services.number_of_edges(), 'dependency', 'dependencies')} on each other; "
        f"{agree(len(services), 'it consists', 'they consist')} of "
        f"{plural(len(components), 'component')} (operations of instances) with "
        f"{plural(components.number_of_edges(), 'different call')}."
    ]
    whole = sum(given.time.values())
    if whole:
        first, *others = given.time.items()
        said.append(
            f"Most of the time on critical paths is spent in {shown(first[0], 60)}: "
            f"{units.percent(first[1] / whole)}"
            + (
                f", then {shown(others[0][0], 60)}: {units.percent(others[0][1] / whole)}"
                if others
                else ""
            )
            + f" (critical paths of {plural(given.counted, 'transaction')})."
        )
    transaction = given.transaction
    said.append(
        f"The transaction shown has {plural(len(transaction.rows), 'span')} and "
        f"takes {units.span(_length(given, transaction.root))}; its critical path "
        "passes from one span to another "
        f"{plural(max(0, len(transaction.critical) - 1), 'time')}."
    )
    skew = given.about.get("skew")
    if isinstance(skew, dict) and skew.get("shifted"):
        said.append(
            f"The times of {units.count(skew['shifted'])} clocks were corrected for clock skew."
        )
    inferred = given.about.get("inferred")
    if isinstance(inferred, dict):
        method = shown(str(inferred.get("method", "?")), 40)
        said.append(f"The transactions were not recorded, but inferred by the method {method}.")
    return said


def _placed_words(given: Shown) -> str:
    where = f"The fabric of {shown(given.scenario, 60)}. " if given.scenario else ""
    if not given.scenario:
        where = "No scenario describes the network, so all hosts are drawn at one node. "
    words = {
        "spans": "The spans name the hosts of their instances.",
        "file": "A file assigns the instances to hosts.",
        "assumed": "Neither spans nor a file assign instances to hosts. It is assumed that "
        "instances are placed in the order of their names, one host after the other.",
    }
    return where + words[given.graphs.placed_by]


def _bars(given: Shown) -> tuple[list[Bar], int]:
    forest, transaction = given.forest, given.transaction
    begin = forest.start[transaction.root]
    last = max(forest.end[row] for row in transaction.rows)
    scale = (_BARS_WIDTH - _NAMES_WIDTH - 10) / max(1, last - begin)
    own: dict[int, list[tuple[float, float, bool]]] = {}
    for piece in transaction.critical:
        left = _NAMES_WIDTH + (piece.start_ns - begin) * scale
        width = max(0.6, (piece.end_ns - piece.start_ns) * scale)
        own.setdefault(piece.row, []).append((round(left, 2), round(width, 2), piece.network))
    depth = {transaction.root: 0}
    rows = transaction.rows[:_MOST_BARS]
    operations = given.spans["operation"]
    bars = []
    for place, row in enumerate(rows):
        depth.setdefault(row, depth.get(int(forest.parents[row]), 0) + 1)
        indent = min(10, depth[row]) * 9
        name = f"{forest.service[row]} · {_method(operations[row])}"
        length = (forest.end[row] - forest.start[row]) / 1e9
        starts = (forest.start[row] - begin) / 1e9
        bars.append(
            Bar(
                text=shown(name, max(12, round((_NAMES_WIDTH - indent - 10) / 6.6))),
                title=f"{shown(forest.service[row], 80)}, {shown(operations[row] or '–', 120)}: "
                f"{units.span(length)} from {units.span(starts)}",
                indent=indent,
                y=place * _BAR_HEIGHT,
                x=round(_NAMES_WIDTH + (forest.start[row] - begin) * scale, 2),
                width=round(max(0.8, (forest.end[row] - forest.start[row]) * scale), 2),
                critical=own.get(row, []),
            )
        )
    return bars, len(transaction.rows) - len(rows)


def _ticks(given: Shown) -> list[tuple[float, str]]:
    forest, transaction = given.forest, given.transaction
    begin = forest.start[transaction.root]
    length = max(forest.end[row] for row in transaction.rows) - begin
    room = _BARS_WIDTH - _NAMES_WIDTH - 10
    return [
        (round(_NAMES_WIDTH + room * part / 4, 1), units.span(length * part / 4e9))
        for part in range(5)
    ]


def _mappings(graphs: Graphs) -> Sequence[Sequence[str]]:
    rows = []
    for service, components in list(graphs.components_of.items())[:_MOST_ROWS]:
        instances = sorted({each.partition(" · ")[0] for each in components})
        hosts = sorted({graphs.host_of[name] for name in instances if name in graphs.host_of})
        rows.append(
            [
                shown(service, 60),
                units.count(len(components)),
                shown(", ".join(instances), 90),
                shown(", ".join(hosts), 60),
            ]
        )
    return rows


def _account(given: Shown) -> list[str]:
    """Return lines on records that the import left out, changed, or noted."""
    said = [shown(line, 500) for line in lines(accounts(given.about, given.name))]
    more = [f"and {len(said) - _MOST_ROWS} more in spans.json"] if len(said) > _MOST_ROWS else []
    return said[:_MOST_ROWS] + more
