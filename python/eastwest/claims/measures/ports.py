"""Counts of ports by kind of packet.

The table ``drops`` of a run has a row for each port, kind of packet and ECT. A measure of this
module adds up a column of it, such as ``drops_early``, over the rows of some kinds at the ports of
one tier.
"""

from __future__ import annotations

from eastwest.claims.measures.base import (
    Data,
    Measured,
    MeasureError,
    Settings,
    measure,
)
from eastwest.results import Result
from eastwest.stats import mean_interval

#: Columns of the table that can be added.
_COLUMNS = (
    "arrivals",
    "marks",
    "drops",
    "drops_queue_full",
    "drops_early",
    "drops_shared_buffer",
    "drops_sojourn",
)


def _counted(result: Result, column: str, kinds: list[str], ect: str, tier: str) -> float:
    """Return the sum of a column over some rows; no kinds, no ECT or no tier select all."""
    if column not in _COLUMNS:
        raise MeasureError(
            f"the table drops has no count {column!r}; allowed: {', '.join(_COLUMNS)}"
        )
    rows = result.drops
    if kinds:
        rows = rows.filter(rows["kind"].is_in(kinds))
    if ect:
        rows = rows.filter(rows["ect"] == ect)
    if tier:
        links = result.links.filter(result.links["tier"] == tier)["link"]
        rows = rows.filter(rows["link"].is_in(links.to_list()))
    return float(rows[column].sum())


@measure("port-count")
def port_count(
    data: Data, at: Settings, column: str, kinds: list[str], ect: str = "", tier: str = ""
) -> Measured:
    """Return the mean number of packets of some kinds in one count of ports, at one point.

    ``column`` is one of the table ``drops``; without ``ect`` (``ect`` or ``not-ect``) and ``tier``
    (such as ``host-down``) all count.
    """
    found = [_counted(result, column, kinds, ect, tier) for _, _, result in data.results(at)]
    interval = mean_interval(found)
    return Measured(interval.value, interval.low, interval.high, interval.n)


@measure("port-share", share=True)
def port_share(
    data: Data, at: Settings, column: str, kinds: list[str], ect: str = "", tier: str = ""
) -> Measured:
    """Return the mean share of some kinds of packets in one count of ports, at one point."""
    shares = []
    for _, _, result in data.results(at):
        whole = _counted(result, column, [], "", tier)
        if not whole:
            raise MeasureError(f"{result.path}: no port counted {column}")
        shares.append(_counted(result, column, kinds, ect, tier) / whole)
    interval = mean_interval(shares)
    return Measured(interval.value, interval.low, interval.high, interval.n)
