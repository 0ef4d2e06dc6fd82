"""Latency of packets and completion times of flows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from eastwest.results import Result
from eastwest.views.series import Floats, percentile

#: Upper ends of the bins of flow sizes in bytes, and their names.
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
    """Yield the name and the rows of each bin of ``bytes`` that has flows, smallest first."""
    low = -1
    for name, high in SIZE_BINS.items():
        inside = flows.filter((pl.col("bytes") > low) & (pl.col("bytes") <= high))
        low = high
        if inside.height:
            yield name, inside


def by_size(result: Result) -> pl.DataFrame:
    """Return complete flows by size bin.

    Columns: ``size``, ``flows``, and the median and 99th percentile of completion times in µs and
    of slowdowns: ``fct_us_p50``, ``fct_us_p99``, ``slowdown_p50``, ``slowdown_p99``.
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
    """Return the latency in µs that a share of the packets of a histogram does not exceed.

    ``histogram`` has a row for each bucket: ``upper_us`` and ``count``; ``share`` is from 0 to 1.
    None if the histogram has no packets.
    """
    ordered = histogram.sort("upper_us")
    total = np.cumsum(ordered["count"].to_numpy().astype(np.float64))
    if total.size == 0 or total[-1] == 0:
        return None
    place = int(np.searchsorted(total, share * total[-1]))
    return float(ordered["upper_us"].to_numpy()[min(place, total.size - 1)])


def tail_s(histogram: pl.DataFrame) -> float | None:
    """Return the 99th percentile of latency of a histogram in s; None for an empty one."""
    tail = quantile(histogram, 0.99)
    return None if tail is None else tail / 1e6


def curve(histogram: pl.DataFrame) -> tuple[Floats, Floats]:
    """Return two arrays by bucket of a histogram: share of packets up to it, upper end in s."""
    ordered = histogram.sort("upper_us")
    seen = np.cumsum(ordered["count"].to_numpy().astype(np.float64))
    # Half a packet is subtracted, because a share of exactly 1 cannot be drawn on an axis of nines.
    return np.minimum(seen / seen[-1], 1 - 0.5 / seen[-1]), ordered["upper_us"].to_numpy() / 1e6


def classes(result: Result) -> list[tuple[str, pl.DataFrame]]:
    """Return (traffic class, histogram of its data packets), most packets first."""
    data = result.latency.filter((pl.col("kind") == "data") & (pl.col("count") > 0))
    busiest = data.group_by("class").agg(pl.col("count").sum())
    names = busiest.sort(["count", "class"], descending=[True, False])["class"].to_list()
    return [(str(name), data.filter(pl.col("class") == name)) for name in names]
