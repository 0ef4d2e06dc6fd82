"""Data access of jobs: bytes per job, shares of small jobs, popularity and re-access of files.

The analyses follow Chen, Alspaugh and Katz, *Interactive Analytical Processing in Big Data Systems*
(VLDB 2012), section 4:

* the distributions of input, shuffle and output bytes per job,
* the number of accesses to each file by the file's rank, nearly a straight line if both axes are
  logarithmic (Zipf's law),
* the time between accesses to one file.

Shares of small jobs are reported for two definitions of each limit, for example a gigabyte of 10⁹
bytes and of 2³⁰ bytes, because outputs of exactly one gigabyte are common.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from eastwest.workload.jobs import BYTES, Floats, Jobs

#: Percentiles, in percent, of the bytes per job that are reported.
PERCENTILES = (1, 10, 25, 50, 75, 90, 99, 99.9)
#: Size limits of small jobs: (text, bytes with decimal units, bytes with binary units).
SIZES = (
    ("1 MB", 10**6, 2**20),
    ("100 MB", 10**8, 100 * 2**20),
    ("1 GB", 10**9, 2**30),
    ("10 GB", 10**10, 10 * 2**30),
    ("1 TB", 10**12, 2**40),
)
#: Maximum number of points of a cumulative distribution.
_POINTS = 800
#: Minimum number of files for which an exponent of Zipf's law is fitted.
_ENOUGH_RANKS = 10
_WRITES = (pl.col("access") == "write").alias("writes")
#: Name of each kind of repeated access to a file, by (previous access was a write, this access is a
#: write).
_RE_ACCESS = {
    (False, False): "read again",
    (True, False): "read after written",
    (True, True): "written again",
}


@dataclass(frozen=True)
class Sizes:
    """Distribution of one kind of bytes (input, shuffle or output) over the jobs."""

    #: Number of jobs for which the bytes are known.
    jobs: int
    #: Number of jobs for which the bytes are not known.
    missing: int
    #: Share of the jobs with known bytes that have 0 bytes.
    zero_share: float
    total: float
    mean: float
    most: float
    #: Bytes at each percentile, by the percent as text (``99.9``); jobs with 0 bytes count.
    percentiles: Mapping[str, float]
    #: Cumulative distribution, two arrays: bytes, and share of jobs with at most these bytes.
    curve: tuple[Floats, Floats]


@dataclass(frozen=True)
class Files:
    """Popularity of files, and times between two accesses to one file."""

    files: int
    accesses: int
    #: Share of all accesses that go to the tenth of the files with the most accesses.
    top_tenth_share: float
    #: Exponent s of Zipf's law, accesses ∝ rank^−s, fitted by least squares on the logarithms; None
    #: for fewer than ten files, or if all files have equally many accesses.
    zipf: float | None
    #: Two arrays: rank of a file by its number of accesses, and number of accesses at this rank.
    ranks: tuple[Floats, Floats]
    #: Cumulative distribution of the seconds between an access to a file and the next access to the
    #: file, by kind, such as ``read after written``: two arrays, seconds and shares.
    again: Mapping[str, tuple[Floats, Floats]]
    #: Share of reads whose file was read or written earlier in the trace.
    reread_share: float


@dataclass(frozen=True)
class Access:
    """Use of data by the jobs of a trace: bytes per job, and accesses to files."""

    sizes: Mapping[str, Sizes]
    #: For each limit in ``SIZES``: (text, share of jobs below the limit in decimal units, the share
    #: in binary units). The size of a job is the sum of input, shuffle and output bytes.
    under: tuple[tuple[str, float, float], ...]
    #: Number of jobs with 0 input, shuffle and output bytes; unknown bytes count as 0.
    empty: int
    #: Share of jobs that shuffle 0 bytes, among the jobs whose shuffled bytes are known.
    map_only_share: float | None
    files: Files | None


def access(
    jobs: Jobs, files: pl.LazyFrame | None = None, table: pl.LazyFrame | None = None
) -> Access:
    """Return the analysis of data access in a trace.

    ``files`` is the trace's table of files; ``table`` is the table of jobs, from which the times of
    accesses are taken. If one of the two tables is None, accesses to files are not analysed.
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
    """Return a cumulative distribution as two arrays: distinct values, and share up to each value.

    If there are more than ``points`` distinct values, at most about ``points`` are returned.
    """
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
    """Return the popularity of files and the times between accesses; None if no job names a file.

    ``files`` is the table of files, ``table`` the table of jobs. Paths are hashed to save memory.
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
    """Return the exponent of Zipf's law, fitted by least squares on logarithms.

    ``counts`` has the accesses of each file, the most used file first. The fit uses ranks that are
    evenly spaced in the logarithm; otherwise the many files with one access would determine the
    slope. The result is None for fewer than ten files, or if all files have equally many accesses.
    """
    if counts.size < _ENOUGH_RANKS or counts[0] == counts[-1]:
        return None
    place = np.unique(np.geomspace(1, counts.size, 50).astype(np.int64)) - 1
    slope = np.polyfit(np.log10(place + 1.0), np.log10(counts[place]), 1)[0]
    return float(-slope)
