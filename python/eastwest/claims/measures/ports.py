"""Counts of ports by kind of packet, and durations of exchanges between pairs of hosts.

The table ``drops`` of a run has a row for each port, kind of packet and ECT. A measure of this
module adds up a column of it, such as ``drops_early``, over the rows of some kinds at the ports of
one tier.
"""

from __future__ import annotations

import math
import statistics

from eastwest.claims.measures.base import (
    Data,
    Measured,
    MeasureError,
    Settings,
    measure,
    run_value,
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
        raise MeasureError(f"ports count no {column!r}; there are {', '.join(_COLUMNS)}")
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
    """Return the mean number of packets of some kinds that ports lost, marked or met, at one point.

    ``column`` is one of the table ``drops``; without ``ect`` (``ect`` or ``not-ect``) and ``tier``
    (such as ``host-down``) all count.
    """
    found = [_counted(result, column, kinds, ect, tier) for _, _, result in data.results(at)]
    interval = mean_interval(found)
    return Measured(interval.value, interval.low, interval.high, interval.n)


@measure("port-share")
def port_share(
    data: Data, at: Settings, column: str, kinds: list[str], ect: str = "", tier: str = ""
) -> Measured:
    """Return the mean share of some kinds of packets in what a column counts, at one point."""
    shares = []
    for _, _, result in data.results(at):
        whole = _counted(result, column, [], "", tier)
        if not whole:
            raise MeasureError(f"{result.path}: no port counted {column}")
        shares.append(_counted(result, column, kinds, ect, tier) / whole)
    interval = mean_interval(shares)
    return Measured(interval.value, interval.low, interval.high, interval.n)


def _pairs(result: Result) -> list[tuple[float, float]]:
    """Return the first write and last arrival of each pair of hosts in s, in both directions."""
    found: dict[tuple[int, int], tuple[float, float]] = {}
    columns = ("src", "dst", "purpose", "start_s", "fct_us")
    for src, dst, purpose, start_s, fct_us in result.flows.select(columns).iter_rows():
        # a request has the opposite direction to the data
        pair = (dst, src) if purpose == "request" else (src, dst)
        begun, ended = found.get(pair, (math.inf, -math.inf))
        found[pair] = (min(begun, start_s), max(ended, start_s + fct_us * 1e-6))
    if not found:
        raise MeasureError(f"{result.path} has no flows")
    return list(found.values())


@run_value("pairs-makespan-s")
def pairs_makespan_s(result: Result) -> float:
    """Return the time from the first write of any pair of hosts to the last arrival, in s."""
    pairs = _pairs(result)
    return max(ended for _, ended in pairs) - min(begun for begun, _ in pairs)


@run_value("mean-pair-s")
def mean_pair_s(result: Result) -> float:
    """Return the mean time from the first write of a pair of hosts to its last arrival, in s."""
    return statistics.mean(ended - begun for begun, ended in _pairs(result))


@run_value("slowest-request-s")
def slowest_request_s(result: Result) -> float:
    """Return the longest time from opening a connection to the arrival of its request, in s."""
    asked = result.flows.filter(result.flows["purpose"] == "request")
    if asked.is_empty():
        raise MeasureError(f"{result.path} has no requests")
    times: list[float] = asked["fct_us"].to_list()
    return max(times) / 1e6
