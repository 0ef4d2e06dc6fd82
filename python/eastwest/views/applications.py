"""Measured durations and counters of the applications of a run, as numbers and histograms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from eastwest.results import Result, pick
from eastwest.views.latency import quantile
from eastwest.views.series import Floats

#: Upper bound in µs of the first bucket, which has only durations below 1 ns. They count as 0.
_ZERO_US = 0.001


@dataclass(frozen=True)
class Measure:
    """Statistics of the durations that an application has measured under one name."""

    workload: str
    #: Name of the measure without its unit, such as ``query``.
    name: str
    #: Statistics by their name in the summary: ``count``; ``mean``, ``p50``, ``max`` … in µs.
    statistics: Mapping[str, float]

    def seconds(self, name: str) -> float:
        """Return the statistic ``name`` in s: 0 if it is in the bucket of durations below 1 ns."""
        value_us = pick(self.statistics, name) or 0.0
        is_zero = value_us == _ZERO_US < (pick(self.statistics, "max") or 0.0) and name != "mean"
        return 0.0 if is_zero else value_us / 1e6


def all_of(summary: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the measures and counters of applications in a run's summary, by workload name."""
    own = summary.get("applications")
    if not isinstance(own, Mapping):
        return {}
    return {str(name): each for name, each in own.items() if isinstance(each, Mapping)}


def measures(summary: Mapping[str, Any]) -> Iterator[Measure]:
    """Yield the measures with at least one duration, of all applications in a run's summary."""
    for workload, own in all_of(summary).items():
        for key, found in own.items():
            if key.endswith("_us") and isinstance(found, Mapping) and pick(found, "count"):
                yield Measure(workload, key.removesuffix("_us"), found)


def has_operations(tree: Mapping[str, Any], *path: str) -> bool:
    """Whether the application at a path of a summary has planned, begun or completed operations."""
    numbers = ("planned", "begun", "completed")
    return any(pick(tree, *path, "operations", name) for name in numbers)


def counters(summary: Mapping[str, Any]) -> Iterator[tuple[str, str, float]]:
    """Yield (workload name, counter name, value) for all applications in a run's summary."""
    for workload, own in all_of(summary).items():
        found = own.get("counters")
        for name in found if isinstance(found, Mapping) else ():
            value = pick(found, name)
            if value is not None:
                yield workload, str(name), value


def distribution(result: Result, measure: Measure) -> pl.DataFrame:
    """Return the histogram of a measure: one row for each bucket, in ascending order.

    Columns: ``upper_us``, the upper bound of the bucket, and ``count``. The upper bound of the last
    bucket is the longest duration.
    The upper bound of the first bucket, which has only durations below 1 ns, is 0.
    """
    rows = result.application_times.filter(
        (pl.col("workload") == measure.workload) & (pl.col("measure") == measure.name)
    )
    longest_us = pick(measure.statistics, "max")
    upper = pl.col("upper_us")
    if longest_us is not None:
        upper = upper.clip(upper_bound=longest_us)
    upper = pl.when(pl.col("upper_us") <= _ZERO_US).then(0.0).otherwise(upper).alias("upper_us")
    return rows.select(upper, "count").filter(pl.col("count") > 0).sort("upper_us")


def shares(histogram: pl.DataFrame) -> tuple[Floats, Floats]:
    """Return the upper bounds of a histogram's buckets in s, and shares of durations up to them.

    ``histogram`` is a table that :func:`distribution` returns; shares are from 0 to 1.
    """
    counts = np.cumsum(histogram["count"].to_numpy().astype(np.float64))
    return histogram["upper_us"].to_numpy() / 1e6, counts / counts[-1]


def at_share(histogram: pl.DataFrame, share: float) -> float:
    """Return the quantile ``share`` (0 to 1) of a histogram of durations in s; NaN if empty."""
    found = quantile(histogram, share)
    return float("nan") if found is None else found / 1e6
