"""Where ports were paused (PFC): counters, and pauses over time where they were logged."""

from __future__ import annotations

import numpy as np
import polars as pl

from eastwest import units
from eastwest.plot.pauses import places, sentence, sound
from eastwest.report.draw import Chart, Floats
from eastwest.report.heat import Heat
from eastwest.report.tables import Bins, Facts, shown

_BINS = 240
#: Ports and priorities that are drawn, those paused for longest.
_MOST_ROWS = 48
#: Rows of the table.
_MOST_LISTED = 20


def heat(facts: Facts) -> Chart | None:
    """Draw how much of the time each port was paused, in the order of their first pauses."""
    rows = sound(facts.result)
    if rows.height == 0:
        return None
    found = places(rows)
    longest = found.sort("paused_s", descending=True, maintain_order=True).head(_MOST_ROWS)
    drawn = longest.sort("first_s", "link", "priority")
    bins = Bins(facts.end / _BINS, _BINS)
    several = found["priority"].n_unique() > 1
    names, values = [], []
    for link, priority, port in drawn.select("link", "priority", "port").iter_rows():
        own = rows.filter((pl.col("link") == link) & (pl.col("priority") == priority))
        values.append(shares(own["began_s"].to_numpy(), own["until_s"].to_numpy(), bins))
        names.append(shown(port, 40) + (f" ({priority})" if several else ""))
    more = found.height - drawn.height
    note = (
        f"Share of each {units.span(bins.step)} in which a port was not allowed to send"
        + (" a priority" if several else "")
        + ". From top to bottom in the order of their first pauses, so that a spreading jam runs "
        "down the picture."
        + (f" {units.count(more)} more that were paused for less are not drawn." if more else "")
    )
    return Heat(
        "pauses", sentence(found), note, names, bins, np.array(values), "paused", "percent", 1.0
    ).chart(facts.end)


def shares(began: Floats, until: Floats, bins: Bins) -> Floats:
    """Share of each bin that lies in spans of time that do not overlap."""

    def before(times: Floats) -> Floats:
        """Time since those of ``times`` that lie before an edge, summed."""
        ordered = np.sort(times)
        number = np.searchsorted(ordered, bins.edges)
        sums = np.concatenate([[0.0], np.cumsum(ordered)])[number]
        return np.asarray(number * bins.edges - sums)

    paused = np.diff(before(began) - before(until))
    return np.asarray(np.clip(paused / bins.step, 0, 1))


def rows(facts: Facts) -> list[list[str]]:
    """Say of ports and priorities how often and for how long they were paused; longest first."""
    pfc = facts.result.pfc.filter(pl.col("pauses") > 0)
    top = pfc.sort(["paused_s", "link", "priority"], descending=[True, False, False])
    return [
        [
            facts.link_names.get(row["link"], f"link {row['link']}"),
            str(row["priority"]),
            units.count(row["pauses"]),
            units.span(row["paused_s"]),
            units.percent(row["paused_s"] / facts.end),
            units.size(row["output_most_bytes"]),
            units.size(row["input_most_bytes"]),
        ]
        for row in top.head(_MOST_LISTED).iter_rows(named=True)
    ]
