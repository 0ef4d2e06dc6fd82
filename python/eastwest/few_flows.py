"""Sentence on a run in which a few flows take most of the time, for terminal, pages and notes.

While only these flows are in progress, the network is almost idle. Utilisation, queues and
throughput of the run are means that include this time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eastwest.units import count, percent, span

if TYPE_CHECKING:
    import polars as pl

#: Minimum number of flows of a run for the sentence on few long flows.
_LEAST = 20
#: Maximum share of flows that count as few; two flows always count as few.
_SHARE = 0.01
#: Minimum share of the run (0 to 1) with only the few flows in progress, for the sentence.
_MOST_OF_THE_RUN = 0.5


def few_flows(
    flows: pl.DataFrame | pl.LazyFrame, started: float | None, simulated_s: float | None
) -> str | None:
    """Return a sentence if only a few flows are in progress for over half of a run; else None.

    ``flows`` has the column ``finish_s`` of the table of flows. ``started`` is the number of flows
    that started, including those that were not complete at the end of the run. ``simulated_s`` is
    the simulated time of the run.
    """
    import polars as pl  # noqa: PLC0415  large: not before the simulation has run

    if started is None or not simulated_s or started < _LEAST:
        return None
    if isinstance(flows, pl.LazyFrame):
        flows = flows.select("finish_s").collect()
    times = flows["finish_s"]
    ends = times.filter(times.is_finite())
    few = max(2, int(_SHARE * started))
    last = sorted(ends.top_k(few + 1), reverse=True)
    unfinished = int(started) - len(ends)
    if unfinished < 0 or not last:
        return None
    end_s = simulated_s if unfinished else last[0]
    for place, ended_s in enumerate(last):
        left = unfinished + place
        taken = (end_s - ended_s) / simulated_s
        if 0 < left <= few and taken > _MOST_OF_THE_RUN:
            flows_were = f"{left} of {count(started)} flows {'was' if left == 1 else 'were'}"
            return (
                f"from {span(ended_s)} to {span(end_s)} only {flows_were} "
                f"not complete: {percent(taken)} of the run; means over the run include this time"
            )
    return None
