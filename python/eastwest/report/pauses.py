"""Ports that PFC paused: counters, and pauses over time where they were logged."""

from __future__ import annotations

import polars as pl

from eastwest import units
from eastwest.report.draw import Chart
from eastwest.report.heat import Heat
from eastwest.views.facts import Facts
from eastwest.views.pauses import longest, names, places, sentence, shares, sound
from eastwest.views.series import Bins

_BINS = 240
#: Maximum number of rows of ports and priorities that are drawn: those with the longest time in
#: pause.
_MOST_ROWS = 48
#: Maximum number of rows of the table of paused ports.
_MOST_LISTED = 20


def heat(facts: Facts) -> Chart | None:
    """Return a heat map of the share of time in pause, ports in the order of their first pauses."""
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
    """Return rows of number and duration of pauses of ports and priorities; longest first."""
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
