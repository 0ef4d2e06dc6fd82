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


@dataclass(frozen=True)
class Measure:
    """Statistics of the durations that an application has measured under one name."""

    workload: str
    #: Name of the measure without its unit, such as ``query``.
    name: str
    #: Statistics by their name in the summary: ``count``; ``mean``, ``p50``, ``max`` … in µs.
    statistics: Mapping[str, float]


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
    """
    rows = result.application_times.filter(
        (pl.col("workload") == measure.workload) & (pl.col("measure") == measure.name)
    )
    longest_us = pick(measure.statistics, "max")
    upper = pl.col("upper_us").clip(upper_bound=longest_us) if longest_us else pl.col("upper_us")
    return rows.select(upper, "count").filter(pl.col("count") > 0).sort("upper_us")


def shares(histogram: pl.DataFrame) -> tuple[Floats, Floats]:
    """Return the upper bounds of a histogram's buckets in s, and shares of durations up to them.

    ``histogram`` is a table as from :func:`distribution`; shares are from 0 to 1.
    """
    counts = np.cumsum(histogram["count"].to_numpy().astype(np.float64))
    return histogram["upper_us"].to_numpy() / 1e6, counts / counts[-1]


def at_share(histogram: pl.DataFrame, share: float) -> float:
    """Return the quantile ``share`` (0 to 1) of a histogram of durations in s; NaN if empty."""
    found = quantile(histogram, share)
    return float("nan") if found is None else found / 1e6
