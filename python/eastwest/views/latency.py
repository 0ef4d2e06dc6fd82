"""Latency of packets and completion times of flows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from eastwest.results import Result
from eastwest.views.series import Floats, percentile

#: Upper ends (included) of the bins of flow sizes in bytes, by name of the bin.
SIZE_BINS = {
    "≤ 10 kB": 10_000,
    "10–100 kB": 100_000,
    "100 kB–1 MB": 1_000_000,
    "1–10 MB": 10_000_000,
    "> 10 MB": 2**62,
}


def finished(result: Result) -> pl.DataFrame:
    """Return the rows of the table ``flows`` for flows that are complete."""
    return result.flows.filter(pl.col("fct_us").is_finite())


def in_size_bins(flows: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield (name, rows of ``flows``) for each bin of flow sizes with flows, smallest first."""
    low = -1
    for name, high in SIZE_BINS.items():
        inside = flows.filter((pl.col("bytes") > low) & (pl.col("bytes") <= high))
        low = high
        if inside.height:
            yield name, inside


def by_size(result: Result) -> pl.DataFrame:
    """Return a table of complete flows: one row for each bin of flow sizes.

    Columns: ``size`` (name of the bin), ``flows`` (their number), and median and 99th percentile of
    completion time in µs and of slowdown: ``fct_us_p50``, ``fct_us_p99``, ``slowdown_p50``,
    ``slowdown_p99``.
    """
    rows = []
    for name, inside in in_size_bins(finished(result)):
        row: dict[str, object] = {"size": name, "flows": inside.height}
        for column in ("fct_us", "slowdown"):
            for share, suffix in ((0.5, "p50"), (0.99, "p99")):
                row[f"{column}_{suffix}"] = percentile(inside[column].to_numpy(), share)
        rows.append(row)
    return pl.DataFrame(rows)


def quantile(histogram: pl.DataFrame, share: float) -> float | None:
    """Return the quantile ``share`` (0 to 1) of a histogram of times in µs; None if empty.

    ``histogram`` has a row for each bucket: ``upper_us`` (upper bound) and ``count``.
    """
    ordered = histogram.sort("upper_us")
    total = np.cumsum(ordered["count"].to_numpy().astype(np.float64))
    if total.size == 0 or total[-1] == 0:
        return None
    place = int(np.searchsorted(total, share * total[-1]))
    return float(ordered["upper_us"].to_numpy()[min(place, total.size - 1)])


def tail_s(histogram: pl.DataFrame) -> float | None:
    """Return the 99th percentile in s of a histogram of latency; None if it is empty."""
    tail = quantile(histogram, 0.99)
    return None if tail is None else tail / 1e6


def curve(histogram: pl.DataFrame) -> tuple[Floats, Floats]:
    """Return two arrays with a value for each bucket: share of packets (0 to 1), upper bound in s.

    The share is that of packets in the bucket and in all buckets below it.
    """
    ordered = histogram.sort("upper_us")
    seen = np.cumsum(ordered["count"].to_numpy().astype(np.float64))
    # Half a packet is subtracted, because a share of exactly 1 cannot be drawn on an axis of nines.
    return np.minimum(seen / seen[-1], 1 - 0.5 / seen[-1]), ordered["upper_us"].to_numpy() / 1e6


def classes(result: Result) -> list[tuple[str, pl.DataFrame]]:
    """Return (traffic class, histogram of the latency of its data packets), most packets first."""
    data = result.latency.filter((pl.col("kind") == "data") & (pl.col("count") > 0))
    busiest = data.group_by("class").agg(pl.col("count").sum())
    names = busiest.sort(["count", "class"], descending=[True, False])["class"].to_list()
    return [(str(name), data.filter(pl.col("class") == name)) for name in names]
