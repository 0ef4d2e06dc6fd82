"""Data access of jobs: bytes per job, shares of small jobs, popularity and re-access of files.

After Chen, Alspaugh and Katz, *Interactive Analytical Processing in Big Data Systems* (VLDB 2012),
section 4: the distributions of input, shuffle and output bytes per job; the number of reads of each
file, whose logarithm falls about linearly with that of the file's rank (Zipf); and the time until
data is read again, after it was read or written.

Each limit of size has two definitions: a gigabyte is 10⁹ bytes to some and 2³⁰ bytes to others.
Both are reported, because outputs of exactly one gigabyte are common.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from eastwest.workload.jobs import BYTES, Floats, Jobs

#: Percentiles of bytes per job that are reported.
PERCENTILES = (1, 10, 25, 50, 75, 90, 99, 99.9)
#: Sizes as text, with the bytes of their decimal and of their binary meaning.
SIZES = (
    ("1 MB", 10**6, 2**20),
    ("100 MB", 10**8, 100 * 2**20),
    ("1 GB", 10**9, 2**30),
    ("10 GB", 10**10, 10 * 2**30),
    ("1 TB", 10**12, 2**40),
)
#: Maximum number of points of a cumulative distribution.
_POINTS = 800
#: Minimum number of ranks for which an exponent of Zipf's law is fitted.
_ENOUGH_RANKS = 10
_WRITES = (pl.col("access") == "write").alias("writes")
#: Names of repeated accesses by two flags: the file was written before, it is written now.
_RE_ACCESS = {
    (False, False): "read again",
    (True, False): "read after written",
    (True, True): "written again",
}


@dataclass(frozen=True)
class Sizes:
    """Distribution of input, shuffle or output bytes over the jobs for which they are known."""

    #: Number of jobs for which the bytes are known.
    jobs: int
    #: Number of jobs for which the bytes are not known.
    missing: int
    #: Share of the jobs with known bytes that have 0 bytes.
    zero_share: float
    total: float
    mean: float
    most: float
    #: Percentiles of bytes over the jobs with known bytes, including jobs with 0 bytes; by percent.
    percentiles: Mapping[str, float]
    #: Cumulative distribution: bytes, and the share of jobs with at most this number of bytes.
    curve: tuple[Floats, Floats]


@dataclass(frozen=True)
class Files:
    """Frequency of accesses to files, and times between them."""

    files: int
    accesses: int
    #: Share of accesses that go to the most used tenth of the files.
    top_tenth_share: float
    #: Exponent s of Zipf's law, accesses ∝ rank^−s, by least squares on logarithms, or None.
    zipf: float | None
    #: Ranks of files by use, and number of accesses to the file of each of these ranks.
    ranks: tuple[Floats, Floats]
    #: Seconds from an access to a file to the next one, by kind of the two accesses, such as
    #: ``read after written``: values and cumulative shares.
    again: Mapping[str, tuple[Floats, Floats]]
    #: Share of reads whose file was read or written earlier in the trace.
    reread_share: float


@dataclass(frozen=True)
class Access:
    """Use of data by the jobs of a trace: bytes per job, and accesses to files."""

    sizes: Mapping[str, Sizes]
    #: For several sizes: the size as text, and the shares of jobs whose input, shuffle and output
    #: together are below its decimal and its binary meaning.
    under: tuple[tuple[str, float, float], ...]
    #: Number of jobs without any input, shuffle or output bytes.
    empty: int
    #: Share of jobs that shuffle 0 bytes, among the jobs whose shuffled bytes are known.
    map_only_share: float | None
    files: Files | None


def access(
    jobs: Jobs, files: pl.LazyFrame | None = None, table: pl.LazyFrame | None = None
) -> Access:
    """Return the use of data in a trace.

    ``files`` is its table of files, and ``table`` its table of jobs, which has the times of the
    accesses. If one of them is None, accesses to files are not analysed.
    """
    sizes = {name: _sizes(jobs.known[name]) for name in BYTES if name in jobs.known}
    moved = jobs.moved_bytes
    shuffle = sizes.get("shuffle_bytes")
    return Access(
        sizes,
        tuple(
            (word, float(np.mean(moved < ten)), float(np.mean(moved < two)))
            for word, ten, two in SIZES
        ),
        int(np.count_nonzero(moved == 0)),
        shuffle.zero_share if shuffle else None,
        _files(files, table) if files is not None and table is not None else None,
    )


def cumulative(values: Floats, points: int = _POINTS) -> tuple[Floats, Floats]:
    """Return distinct values and the cumulative shares at them, thinned to ``points`` values."""
    at, counts = np.unique(values, return_counts=True)
    shares = np.cumsum(counts) / max(1, values.size)
    if at.size > points:
        # Most points are evenly spaced by share. In the tail, points are spaced by the logarithm of
        # the share above them.
        body = np.searchsorted(shares, np.linspace(0, 1, points - points // 4))
        tail = np.searchsorted(shares, 1 - np.geomspace(1 / values.size, 1, points // 4))
        place = np.unique(np.minimum(np.concatenate([[0], body, tail]), at.size - 1))
        return at[place], shares[place]
    return at, shares


def _sizes(values: Floats) -> Sizes:
    there = values[~np.isnan(values)]
    at = np.percentile(there, PERCENTILES, method="inverted_cdf")
    return Sizes(
        int(there.size),
        int(values.size - there.size),
        float(np.mean(there == 0)),
        float(there.sum()),
        float(there.mean()),
        float(there.max()),
        {f"{p:g}": float(v) for p, v in zip(PERCENTILES, at, strict=True)},
        cumulative(there),
    )


def _files(files: pl.LazyFrame, table: pl.LazyFrame) -> Files | None:
    """Return popularity and re-access of files; None if no job names a file.

    ``files`` is the table of files, ``table`` that of jobs. Paths are hashed to save memory.
    """
    when = table.select("job", pl.col("submit_s").cast(pl.Float64))
    used = (
        files.select("job", _WRITES, pl.col("path").hash(0).alias("file"))
        .join(when, on="job", how="inner")
        .sort("submit_s", "job", "writes", maintain_order=True)
        .collect()
    )
    if not used.height:
        return None
    counts = np.sort(used.group_by("file").len()["len"].to_numpy())[::-1].astype(np.float64)
    tenth = max(1, counts.size // 10)
    used = used.with_columns(
        pl.col("writes").shift(1).over("file").alias("before"),
        (pl.col("submit_s") - pl.col("submit_s").shift(1).over("file")).alias("after_s"),
    )
    again = {}
    for (first, then), word in _RE_ACCESS.items():
        part = used.filter((pl.col("before") == first) & (pl.col("writes") == then))
        if part.height:
            again[word] = cumulative(part["after_s"].to_numpy().astype(np.float64))
    reads = used.filter(~pl.col("writes"))
    place = np.unique(np.geomspace(1, counts.size, 200).astype(np.int64)) - 1
    return Files(
        int(counts.size),
        used.height,
        float(counts[:tenth].sum() / counts.sum()),
        _zipf(counts),
        ((place + 1).astype(np.float64), counts[place]),
        again,
        float(reads["before"].is_not_null().mean() or 0.0) if reads.height else 0.0,  # type: ignore[arg-type]
    )


def _zipf(counts: Floats) -> float | None:
    """Return Zipf's exponent by least squares on the logarithms of rank and accesses.

    The ranks are evenly spaced in the logarithm, because the many files that are used once would
    determine the slope otherwise.
    """
    if counts.size < _ENOUGH_RANKS or counts[0] == counts[-1]:
        return None
    place = np.unique(np.geomspace(1, counts.size, 50).astype(np.int64)) - 1
    slope = np.polyfit(np.log10(place + 1.0), np.log10(counts[place]), 1)[0]
    return float(-slope)
