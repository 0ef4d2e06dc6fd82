"""Ports that PFC paused: a table of counters, and a chart of pauses over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from eastwest import units
from eastwest.report.draw import Chart
from eastwest.report.heat import Heat
from eastwest.results import Result, pick
from eastwest.views.facts import Facts
from eastwest.views.labels import shown
from eastwest.views.pauses import longest, names, places, sentence, shares, sound
from eastwest.views.series import Bins
from eastwest.views.settings import tree

_BINS = 240
#: Maximum number of rows, one for each port and priority; those with the longest time in pause
#: are drawn.
_MOST_ROWS = 48
#: Maximum number of rows of the table of paused ports.
_MOST_LISTED = 20
#: Memory pools of a switch: prefix in ``dcb.memory`` of the summary, name, and the setting of
#: ``[fabric.pfc]`` with the size.
_POOLS = (
    ("shared", "shared memory", "shared"),
    ("headroom", "headroom of all inputs", "headroom_pool"),
    ("lossy", "memory of lossy queues", "lossy"),
)


def heat(facts: Facts) -> Chart | None:
    """Return a heat map of the share of time in pause, with a row for each port and priority.

    Rows are in the order of first pauses. Returns None if the run did not record
    ``measure.pauses``.
    """
    rows = sound(facts.result)
    if rows.height == 0:
        return None
    found = places(rows)
    drawn = longest(found, _MOST_ROWS)
    bins = Bins(facts.end / _BINS, _BINS)
    several = found["priority"].n_unique() > 1
    more = found.height - drawn.height
    note = (
        f"Share of each {units.span(bins.step)} in which a port was not allowed to send"
        + (" a priority" if several else "")
        + ". Ports are in the order of their first pauses from top to bottom, so that "
        "spreading congestion runs down the picture."
        + (
            f" {units.plural(more, 'more row', 'more rows')} with shorter pauses "
            f"{units.agree(more, 'is', 'are')} not drawn."
            if more
            else ""
        )
    )
    return Heat(
        "pauses",
        sentence(found),
        note,
        names(drawn, several=several),
        bins,
        shares(rows, drawn, bins.edges),
        "paused",
        "percent",
        1.0,
    ).chart(facts.end)


def rows(facts: Facts) -> list[list[str]]:
    """Return a row for each paused port and priority, the longest time in pause first, as text.

    Columns: port, priority, number of pauses, time in pause, share of the run in pause, maximum
    backlog of the port, maximum amount in the next switch that had arrived over the port's link.
    """
    pfc = facts.result.pfc.filter(pl.col("pauses") > 0)
    top = pfc.sort(["paused_s", "link", "priority"], descending=[True, False, False])
    return [
        [
            facts.link(row["link"]),
            str(row["priority"]),
            units.count(row["pauses"]),
            units.span(row["paused_s"]),
            units.percent(row["paused_s"] / facts.end),
            units.size(row["output_most_bytes"]),
            units.size(row["input_most_bytes"]),
        ]
        for row in top.head(_MOST_LISTED).iter_rows(named=True)
    ]


def memory_rows(result: Result) -> list[list[str]]:
    """Return rows of the use of each memory pool of switches; empty without ``fabric.pfc.shared``.

    A row has the pool, its size for a switch, the most bytes of a switch in it, and the bytes of
    all switches in it at the end of the run.
    """
    used = _nested(result.summary, "dcb", "memory")
    if not used:
        return []
    pfc = _nested(tree(result), "fabric", "pfc")
    return [
        [
            name,
            shown(pfc.get(setting, "–"), 40),
            *(units.size(pick(used, f"{pool}_{which}")) for which in ("most_bytes", "bytes")),
        ]
        for pool, name, setting in _POOLS
    ]


def _nested(held: Any, *path: str) -> Mapping[str, Any]:
    """Return a nested mapping by its keys; empty where it is missing."""
    for key in path:
        held = held.get(key) if isinstance(held, Mapping) else None
    return held if isinstance(held, Mapping) else {}
