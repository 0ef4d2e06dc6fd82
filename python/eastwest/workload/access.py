"""How jobs use data: bytes per job, shares of small jobs, popularity and re-access of files.

After Chen, Alspaugh and Katz, *Interactive Analytical Processing in Big Data Systems* (VLDB 2012),
section 4: the distributions of input, shuffle and output bytes per job; files by how often they are
read, whose logarithm falls about linearly with that of their rank (Zipf); and the time until data
is read again, after it was read or after it was written.

"Small" is said twice, as a gigabyte is 10⁹ bytes to some and 2³⁰ to others, and outputs of exactly
one of them are common.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from eastwest.workload.jobs import BYTES, Floats, Jobs

#: Percentiles of bytes per job that are told.
PERCENTILES = (1, 10, 25, 50, 75, 90, 99, 99.9)
#: Sizes with both of their meanings.
SIZES = (
    ("1 MB", 10**6, 2**20),
    ("100 MB", 10**8, 100 * 2**20),
    ("1 GB", 10**9, 2**30),
    ("10 GB", 10**10, 10 * 2**30),
    ("1 TB", 10**12, 2**40),
)
#: Points of a curve that is kept.
_POINTS = 800
#: Files from which on a slope means something.
_ENOUGH_RANKS = 10
_WRITES = (pl.col("access") == "write").alias("writes")
#: Whether a file was written before, whether it is now, and what that is called.
_RE_ACCESS = {
    (False, False): "read again",
    (True, False): "read after written",
    (True, True): "written again",
}


@dataclass(frozen=True)
class Sizes:
    """One quantity of bytes over all jobs that say it."""

    jobs: int
    missing: int
    zero_share: float
    total: float
    mean: float
    most: float
    #: Bytes by percentile of all jobs, those of no bytes too.
    percentiles: Mapping[str, float]
    #: Cumulative share of jobs: bytes, and the share that has at most so many.
    curve: tuple[Floats, Floats]


@dataclass(frozen=True)
class Files:
    """How often files are used, and how soon again."""

    files: int
    accesses: int
    #: Share of accesses that go to the tenth of the files that is used most.
    top_tenth_share: float
    #: Exponent s of Zipf's law, accesses ∝ rank^−s, by least squares on logarithms; or nothing.
    zipf: float | None
    #: Ranks, and accesses of the files of these ranks.
    ranks: tuple[Floats, Floats]
    #: Seconds until data is used again, by kind: values and cumulative shares.
    again: Mapping[str, tuple[Floats, Floats]]
    #: Share of reads whose file was read or written before in the trace.
    reread_share: float


@dataclass(frozen=True)
class Access:
    """Use of data by the jobs of a trace."""

    sizes: Mapping[str, Sizes]
    #: Size in words; share of jobs whose input, shuffle and output together are smaller, with
    #: powers of ten and of two.
    under: tuple[tuple[str, float, float], ...]
    #: Jobs of no bytes at all.
    empty: int
    #: Share of jobs without shuffle, of those that say.
    map_only_share: float | None
    files: Files | None


def access(
    jobs: Jobs, files: pl.LazyFrame | None = None, table: pl.LazyFrame | None = None
) -> Access:
    """Analyse a trace; ``table`` is its jobs again, to know when files were used."""
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
    """Distinct values and the share that does not exceed them, thinned but for the largest."""
    at, counts = np.unique(values, return_counts=True)
    shares = np.cumsum(counts) / max(1, values.size)
    if at.size > points:
        # evenly by share, and by logarithm of what is left above
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
    """Popularity and re-access; paths are hashed, so that long ones cost no memory."""
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
    """Exponent by least squares through the logarithms of rank and accesses.

    Taken at ranks evenly spaced in the logarithm, as otherwise the many files that are used once
    decide alone.
    """
    if counts.size < _ENOUGH_RANKS or counts[0] == counts[-1]:
        return None
    place = np.unique(np.geomspace(1, counts.size, 50).astype(np.int64)) - 1
    slope = np.polyfit(np.log10(place + 1.0), np.log10(counts[place]), 1)[0]
    return float(-slope)
