"""Measures of claims: arrivals, marks and drops at ports, by kind of packet.

The table ``drops`` of a run has a row for each port, kind of packet and ECT. A measure of this
module adds up one column of this table, such as ``drops_early``, over the rows of some kinds of
packets at the ports of one tier.
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

#: Columns of the table ``drops`` that the measures of ports can add up.
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
    """Return the sum of a column of the table ``drops`` over the rows that fit the arguments.

    Empty ``kinds``, ``ect`` or ``tier`` fit all kinds of packets, ECT values or tiers.
    """
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
    """Return the mean number of packets at ports, such as early drops, over the runs at ``at``.

    ``column`` is the column of the table ``drops`` that is added up, for packets of ``kinds``.
    ``ect`` is ``ect`` or ``not-ect``; if empty, both are counted. ``tier`` is a tier of ports, such
    as ``host-down``; if empty, the ports of all tiers are counted.
    """
    found = [_counted(result, column, kinds, ect, tier) for _, _, result in data.results(at)]
    interval = mean_interval(found)
    return Measured(interval.value, interval.low, interval.high, interval.n)


@measure("port-share", share=True)
def port_share(
    data: Data, at: Settings, column: str, kinds: list[str], ect: str = "", tier: str = ""
) -> Measured:
    """Return the share (0 to 1) of packets of ``kinds`` and ``ect`` in drops, marks or arrivals.

    The share is relative to the packets of all kinds that ``column`` of the table ``drops``, such
    as ``drops_early``, counts at the ports of ``tier``. The result is the mean share over the runs
    at ``at``.
    """
    shares = []
    for _, _, result in data.results(at):
        whole = _counted(result, column, [], "", tier)
        if not whole:
            raise MeasureError(
                f"{result.path}: the sum of {column} at these ports is 0, so that no share is "
                "defined"
            )
        shares.append(_counted(result, column, kinds, ect, tier) / whole)
    interval = mean_interval(shares)
    return Measured(interval.value, interval.low, interval.high, interval.n)
