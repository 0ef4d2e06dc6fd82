"""Shapes of jobs: groups of jobs with similar quantities.

As in Chen, Ganapathi, Griffith and Katz (MASCOTS 2011) and Chen, Alspaugh and Katz (VLDB 2012,
section 6.2), jobs are grouped by k-means on all dimensions. Each dimension is transformed by
``log10(1 + x)`` and standardised to mean 0 and standard deviation 1, so that all units have equal
weight. The authors increase k until the variance within the groups hardly falls. This module has a
rule: k is the smallest number for which one more group would explain less than 3 % of the variance,
and there are at least ten jobs per group on average.

Lloyd's iterations start from k-means++ (Arthur and Vassilvitskii, SODA 2007), and the best of
several starts is used; equal seeds give equal groups. At most 50,000 jobs, evenly spaced through
the trace, determine the centres; every job then belongs to the group with the nearest centre.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.cluster.vq import kmeans2, vq

from eastwest.workload.jobs import BYTES, WORK, Floats, Jobs, Whole, evenly, spread

#: Minimum share of the variance that one more group must explain.
LEAST_GAIN = 0.03
MOST_SHAPES = 12
#: Minimum mean number of jobs per group; it limits the number of groups.
_LEAST_JOBS = 10
#: Maximum number of jobs that determine the centres.
MOST_JOBS = 50_000
#: Minimum share of jobs that must have a value of a quantity, so that the quantity is a dimension.
KNOWN_SHARE = 0.9
_STARTS = 8
_CHUNK = 500_000


@dataclass(frozen=True)
class Shape:
    """Group of similar jobs: number of jobs, shares of all jobs and bytes, median job, and name."""

    jobs: int
    share: float
    #: Share of the bytes of all jobs (input, shuffle and output) that belongs to the group.
    bytes_share: float
    #: Median of each dimension over the jobs of the group, by the dimension's name.
    median: Mapping[str, float]
    #: Name of the shape, from the bytes of the median job (see ``word``).
    word: str


@dataclass(frozen=True)
class Shapes:
    """Groups of similar jobs of a trace, the largest first."""

    shapes: tuple[Shape, ...]
    dimensions: tuple[str, ...]
    #: Number of jobs that belong to no group, because a dimension of the job is unknown.
    left_out: int
    #: Share of the variance that 1, 2, 3, … groups explain; the last value can be for one group
    #: more than were chosen.
    explained: tuple[float, ...]
    seed: int


def shapes(jobs: Jobs, seed: int = 1) -> Shapes:
    """Return the groups of similar jobs of a trace; equal seeds give equal groups."""
    names = tuple(
        name
        for name in (*BYTES, *WORK)
        if name in jobs.known and np.mean(~np.isnan(jobs.known[name])) >= KNOWN_SHARE
    )
    whole = np.ones(len(jobs), dtype=bool)
    for name in names:
        whole &= ~np.isnan(jobs.known[name])
    place = np.flatnonzero(whole)
    if not names or not place.size:
        return Shapes((), names, len(jobs), (), seed)
    chosen = place[evenly(place.size, MOST_JOBS)]
    sample = np.column_stack([spread(jobs.known[name][chosen]) for name in names])
    mean, deviation = sample.mean(axis=0), sample.std(axis=0)
    deviation[deviation == 0] = 1.0
    centres, explained = _centres((sample - mean) / deviation, seed)
    label = _nearest(jobs, names, place, mean, deviation, centres)
    groups = [_shape(jobs, names, place[label == k]) for k in range(len(centres))]
    kept = sorted((g for g in groups if g.jobs), key=lambda g: -g.jobs)
    return Shapes(tuple(kept), names, len(jobs) - place.size, explained, seed)


def _centres(points: Floats, seed: int) -> tuple[Floats, tuple[float, ...]]:
    """Return (array (groups, dimensions) of centres; explained variance for 1, 2, … groups).

    The explained variance is a share, 0 to 1. ``points`` is an array (jobs, dimensions),
    standardised.
    """
    total = float(((points - points.mean(axis=0)) ** 2).sum())
    best, explained = points.mean(axis=0)[None, :], [0.0]
    distinct = len(np.unique(points, axis=0)) if total else 1
    for k in range(2, min(MOST_SHAPES, distinct, len(points) // _LEAST_JOBS) + 1):
        centres, within = _k_means(points, k, seed)
        explained.append(1.0 - within / total)
        if explained[-1] - explained[-2] < LEAST_GAIN:
            break
        best = centres
    return best, tuple(explained)


def _k_means(points: Floats, k: int, seed: int) -> tuple[Floats, float]:
    """Return (array (``k``, dimensions) of centres; sum of squares within the groups).

    The result is that of the best of several starts. ``points`` is an array (jobs, dimensions),
    standardised.
    """
    found: tuple[Floats, float] | None = None
    for start in range(_STARTS):
        random = np.random.default_rng([seed, k, start])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # an empty group is only a bad start
            centres, label = kmeans2(points, k, minit="++", iter=30, rng=random)
        within = float(((points - centres[label]) ** 2).sum())
        if found is None or within < found[1]:
            found = centres, within
    assert found is not None
    return found


def _nearest(
    jobs: Jobs,
    names: tuple[str, ...],
    place: Whole,
    mean: Floats,
    deviation: Floats,
    centres: Floats,
) -> Whole:
    """Return an array: number of the nearest centre for each job whose index is in ``place``.

    ``names`` are the dimensions; ``mean`` and ``deviation`` standardise each dimension as for the
    centres.
    """
    label = np.empty(place.size, dtype=np.int64)
    for start in range(0, place.size, _CHUNK):
        part = place[start : start + _CHUNK]
        points = np.column_stack([spread(jobs.known[name][part]) for name in names])
        label[start : start + _CHUNK] = vq((points - mean) / deviation, centres)[0]
    return label


def _shape(jobs: Jobs, names: tuple[str, ...], place: Whole) -> Shape:
    if not place.size:
        return Shape(0, 0.0, 0.0, {}, "")
    median = {name: float(np.median(jobs.known[name][place])) for name in names}
    everything = float(jobs.moved_bytes.sum())
    moved = float(jobs.moved_bytes[place].sum())
    return Shape(
        int(place.size),
        place.size / len(jobs),
        moved / everything if everything else 0.0,
        median,
        word(median),
    )


def word(median: Mapping[str, float]) -> str:
    """Return the name of a group from its median job, such as ``small aggregate, map only``.

    The first word is *tiny* up to 1 MB of input, shuffle and output together, *small* up to 1 GB,
    *large* up to 1 TB, and *huge* above. The second word is *aggregate* if the output is less than
    a tenth of the input, *expand* if it is more than ten times the input, otherwise *transform*.
    *map only* is added if the shuffle is 0. A job without bytes is *nothing*. Chen et al. give
    similar names by hand. ``median`` has the median of each dimension by name.
    """
    read, moved, written = (median.get(name, 0.0) for name in BYTES)
    total = read + moved + written
    if total == 0:
        return "nothing"
    names = ((1e6, "tiny"), (1e9, "small"), (1e12, "large"), (np.inf, "huge"))
    how_much = next(name for limit, name in names if total <= limit)
    if written * 10 < read:
        what = "aggregate"
    elif written > 10 * read:
        what = "expand"
    else:
        what = "transform"
    return f"{how_much} {what}" + (", map only" if "shuffle_bytes" in median and not moved else "")
