"""Measures the durations of exchanges between pairs of hosts."""

from __future__ import annotations

import math
import statistics

from eastwest.claims.measures import MeasureError, run_value
from eastwest.results import Result


def _pairs(result: Result) -> list[tuple[float, float]]:
    """Return first write and last arrival of each pair of hosts in s, over both directions."""
    found: dict[tuple[int, int], tuple[float, float]] = {}
    columns = ("src", "dst", "purpose", "start_s", "fct_us")
    for src, dst, purpose, start_s, fct_us in result.flows.select(columns).iter_rows():
        # A request goes in the opposite direction to the data.
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
