"""Throughput over time: rates of streams at their receivers, and fairness."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from eastwest.formats import STREAM
from eastwest.results import Result, pick
from eastwest.units import count, rate
from eastwest.views.series import Floats

#: Maximum number of streams that are drawn; the streams with the most bytes are chosen.
MOST_LINES = 6
_MOST_BINS = 600
#: Shortest sampling interval that a result can have, in s.
_SHORTEST = 1e-9


@dataclass(frozen=True)
class Throughput:
    """Received rates of streams in equal bins of simulated time, and fairness between streams.

    A bin consists of whole sampling intervals.
    """

    #: Length of a bin in seconds.
    step: float
    #: One row for each stream, most bytes first: the columns of ``STREAM``, ``bytes``, and
    #: ``first`` and ``last``, the numbers of the first and last bin with data.
    streams: pl.DataFrame
    #: Rates in bit/s of the first :data:`MOST_LINES` streams, an array (streams, bins). A stream
    #: has NaN before its first and after its last bin with data.
    rates: Floats
    #: Rate of all streams together in bit/s, for each bin.
    total: Floats
    #: Jain's fairness index in each bin, over the streams whose first bin with data is not later
    #: and whose last is not earlier; NaN for fewer than two streams.
    jain: Floats

    @property
    def edges(self) -> Floats:
        """Borders of the bins in s, one more than there are bins."""
        return np.asarray(np.arange(self.total.size + 1) * self.step)

    def names(self, host: Callable[[int], str]) -> list[str]:
        """Return the names of the first :data:`MOST_LINES` streams.

        ``host`` returns the name of the host with a number.
        """
        return [name_of(row, host) for row in self.streams.head(MOST_LINES).iter_rows(named=True)]

    def sentence(self) -> str:
        """Return a sentence: mean rate of all streams together, and the median of Jain's index."""
        some = self.total[self.total > 0]
        together = rate(float(some.mean())) if some.size else rate(0.0)
        if self.streams.height == 1:
            return f"One stream receives {together} on average in the intervals with data"
        said = (
            f"{count(self.streams.height)} streams receive {together} together on "
            "average in the intervals with data"
        )
        known = self.jain[np.isfinite(self.jain)]
        if known.size:
            said += f"; Jain's index is {float(np.median(known)):.2f} at the median"
        return said


def name_of(row: Mapping[str, Any], host: Callable[[int], str]) -> str:
    """Return the name of a stream, such as ``h0 → h3 (connection 17)``.

    ``row`` is a row of ``streams``; ``host`` returns the name of the host with a number.
    """
    number = f"stream {row['stream']}" if row["stream"] >= 0 else f"connection {row['connection']}"
    return f"{host(row['src'])} → {host(row['dst'])} ({number})"


def rates_of(result: Result, most: int = _MOST_BINS) -> Throughput | None:
    """Return the rates of streams in at most ``most`` bins of time; None without samples.

    The rates are computed from the table ``flow_samples``.
    """
    interval = pick(result.summary, "flow_samples", "interval_s") or 0.0
    if not _SHORTEST <= interval < np.inf:
        return None
    rows = result.flow_samples.drop_nulls()
    rows = rows.filter(pl.col("time_s").is_between(interval / 2, 1e9) & (pl.col("bytes") > 0))
    if rows.height == 0:
        return None
    numbers = np.maximum(np.rint(rows["time_s"].to_numpy() / interval), 1).astype(np.int64)
    group = -(-int(numbers.max()) // most)
    bins = -(-int(numbers.max()) // group)
    step = interval * group
    got = rows.with_columns(
        bin=pl.Series((numbers - 1) // group), bytes=pl.col("bytes").cast(float)
    )
    got = got.group_by([*STREAM, "bin"]).agg(pl.col("bytes").sum()).sort(["bin", *STREAM])
    streams = got.group_by(*STREAM).agg(
        pl.col("bytes").sum(), first=pl.col("bin").min(), last=pl.col("bin").max()
    )
    streams = streams.sort(["bytes", *STREAM], descending=[True, *([False] * len(STREAM))])
    place, value = got["bin"].to_numpy(), got["bytes"].to_numpy()
    total = np.bincount(place, weights=value, minlength=bins)
    squares = np.bincount(place, weights=value * value, minlength=bins)
    begun, over = (
        np.bincount(streams[column].to_numpy() + late, minlength=bins + 1)[:bins]
        for column, late in (("first", 0), ("last", 1))
    )
    under_way = np.cumsum(begun - over)
    jain = np.full(bins, np.nan)
    some = (under_way > 1) & (squares > 0)
    jain[some] = total[some] ** 2 / (under_way[some] * squares[some])
    return Throughput(step, streams, _rates(got, streams, bins) * 8 / step, total * 8 / step, jain)


def _rates(got: pl.DataFrame, streams: pl.DataFrame, bins: int) -> Floats:
    """Return an array (first :data:`MOST_LINES` streams, bins): received bytes.

    ``got`` has the bytes by stream and bin. A stream has NaN before its first and after its last
    bin with data.
    """
    top = streams.head(MOST_LINES).with_row_index("row")
    bytes_in = np.full((top.height, bins), np.nan)
    for row, first, last in top.select("row", "first", "last").iter_rows():
        bytes_in[row, first : last + 1] = 0.0
    of_top = got.join(top.select("row", *STREAM), on=list(STREAM), how="inner")
    bytes_in[of_top["row"].to_numpy(), of_top["bin"].to_numpy()] = of_top["bytes"].to_numpy()
    return bytes_in
