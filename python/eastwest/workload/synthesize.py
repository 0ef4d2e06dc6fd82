"""Synthetic traces from a source trace: whole windows of it, or jobs resampled within windows.

*windows*: SWIM's method (Chen, Ganapathi, Griffith and Katz, MASCOTS 2011, section 4): windows of
the source's time are drawn at random, with replacement, and joined until the wanted length is
reached. Jobs, their order and their gaps within a window stay as they were recorded.

*resample*: windows are drawn as for *windows* and give the times of submission. The jobs themselves
are new: each new job is a job of the drawn window, drawn with replacement, whose known quantities
(bytes, tasks, times) are jointly changed a little. This is a smoothed bootstrap (Silverman and
Young 1987) in normal scores. If ``u`` is the rank of a value among the values of the source, as a
share of their number, and ``z = Φ⁻¹(u)`` is the score of the value, the new score is

    z' = √(1 − h²) · z + h · ε,     ε ~ N(0, R),     h = (4 / (n · (d + 2)))^(1 / (d + 4)),

with R the correlations of the scores, d quantities and n jobs (Silverman's h). The factor of z
keeps the variance, and R keeps the rank correlations. The new value is the source's value at rank
``Φ(z')``, interpolated on the logarithms of the neighbouring values, which keeps every
distribution. A rank is computed among the jobs with equal sets of zero and unknown quantities, so
that a job without shuffle has no shuffle afterwards.

The draw is repeated, with other random numbers from one seed, until every distance to the source is
inside its interval (module `quality`), or the maximum number of draws is reached. The draw with the
fewest distances outside is used, and the number of this draw is stored with the trace. Equal seeds
give equal traces.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import polars as pl
from scipy.special import ndtr, ndtri

from eastwest.errors import InputError
from eastwest.workload.jobs import WORK, Floats, Jobs, Whole, usable
from eastwest.workload.quality import Quality, ReferenceInterval, window_for

#: Default for the maximum number of draws until all distances are inside their intervals.
DRAWS = 20
#: Minimum number of jobs with equal sets of zero and unknown quantities; in smaller groups, the
#: quantities of jobs are not changed.
_LEAST_GROUP = 10
_BYTES = ("input_bytes", "map_output_bytes", "shuffle_bytes", "output_bytes")
_COUNTS = ("maps", "reduces")
#: Maximum number of windows in a synthetic trace; a larger number is taken for a wrong length.
_MOST_DRAWN = 1_000_000
#: Maximum number of jobs of a synthetic trace, because of memory.
_MOST_JOBS = 50_000_000


class Method(StrEnum):
    """Method of synthesis: whole windows of the source, or new jobs in these windows."""

    WINDOWS = "windows"
    RESAMPLE = "resample"


@dataclass(frozen=True)
class Synthetic:
    """Synthetic trace with the distances to its source."""

    #: Rows of the table ``jobs``, in the order of submission.
    jobs: pl.DataFrame
    quality: Quality
    method: Method
    length_s: float
    seed: int
    #: Number of the draw that made this trace, from 1.
    draws: int


def synthesize(
    table: pl.DataFrame,
    length_s: float,
    method: Method = Method.WINDOWS,
    window_s: float | None = None,
    seed: int = 1,
    draws: int = DRAWS,
) -> Synthetic:
    """Return a synthetic trace of ``length_s`` seconds; ``table`` has the jobs of the source.

    ``window_s`` is the length of a window in s; if it is None, that of ``window_for``. ``draws`` is
    the maximum number of draws. Raises ``InputError`` if the lengths do not suit each other, if the
    source has no whole window, or if the trace would have no jobs.
    """
    table = usable(table.lazy()).collect()
    source = Jobs.of(table)
    window = window_for(source) if window_s is None else window_s
    if not (length_s > 0 and length_s / window < _MOST_DRAWN):
        raise InputError(
            f"a length of {length_s:g} s does not suit windows of {window:g} s: the "
            f"length must be above 0 s and below {_MOST_DRAWN:,} windows"
        )
    reference = ReferenceInterval(source, window, seed)
    nearest: Synthetic | None = None
    for draw in range(1, draws + 1):
        random = np.random.default_rng([seed, draw, 3])
        place, times = _windows(source, length_s, window, random)
        if not place.size:
            continue
        if method == Method.WINDOWS:
            jobs = _take(table, place, times)
        else:
            alike = _alike(source.window(window), place, random)
            jobs = _resample(table, _take(table, alike, times), alike, random)
        quality = reference.measure(Jobs.of(jobs, length_s))
        made = Synthetic(jobs, quality, method, length_s, seed, draw)
        if nearest is None or quality.outside < nearest.quality.outside:
            nearest = made
        if quality.inside:
            break
    if nearest is None:
        raise InputError("the new trace has no jobs: use a greater length or other windows")
    return nearest


def _windows(
    source: Jobs, length_s: float, window_s: float, random: np.random.Generator
) -> tuple[Whole, Floats]:
    """Return two arrays for the jobs of drawn windows: row in the source, new submission time in s.

    ``length_s`` is the length of the synthetic trace in s. Raises ``InputError`` if the source has
    no whole window, or if the drawn windows have too many jobs.
    """
    there = source.windows(window_s)
    if there < 1:
        raise InputError(
            f"{source.where}the trace has no whole window of {window_s:g} s: the "
            f"last job comes after {source.last_s:g} s; use shorter windows"
        )
    drawn = random.integers(there, size=int(np.ceil(length_s / window_s)))
    edges = np.searchsorted(source.submit_s, np.arange(there + 1) * window_s)
    counts = np.diff(edges)[drawn]
    if counts.sum() > _MOST_JOBS:
        raise InputError(
            f"the new trace would have {counts.sum():,} jobs, but at most {_MOST_JOBS:,} "
            "are allowed"
        )
    first = np.repeat(edges[drawn] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    place = np.arange(counts.sum()) + first
    moved = np.repeat((np.arange(drawn.size) - drawn) * window_s, counts)
    times = source.submit_s[place] + moved
    kept = times < length_s
    return place[kept], times[kept]


def _take(table: pl.DataFrame, place: Whole, times: Floats) -> pl.DataFrame:
    """Return a table of jobs: rows of ``table`` with new job numbers and new times.

    ``place`` has the row in ``table`` for each new job, ``times`` the submission time of each new
    job in s. Launch and end of a job are shifted by as much as the submission.
    """
    later = pl.Series("later", times) - table["submit_s"].gather(place)
    moved = [c for c in ("submit_s", "launch_s", "finish_s") if c in table.columns]
    rows = table[place].with_columns(later)
    return rows.with_columns(
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("job"),
        *((pl.col(name) + pl.col("later")).round(6) for name in moved),
    ).drop("later")


def _alike(window: Whole, place: Whole, random: np.random.Generator) -> Whole:
    """Return an array: for each job in ``place``, the row of a random job of the same window.

    ``window`` has the window of each row of the source, ``place`` has rows of the source.
    """
    of = window[place]
    start = np.searchsorted(window, of)
    end = np.searchsorted(window, of, side="right")
    return np.asarray(start + np.floor(random.random(place.size) * (end - start)), dtype=np.int64)


def _resample(
    table: pl.DataFrame, jobs: pl.DataFrame, place: Whole, random: np.random.Generator
) -> pl.DataFrame:
    """Return the table ``jobs`` with quantities changed at random by the smoothed bootstrap.

    ``table`` has the jobs of the source; ``place`` has the row in ``table`` for each of ``jobs``.
    """
    source = Jobs.of(table)
    names = tuple(name for name in (*_BYTES, *WORK) if name in source.known)
    names = tuple(dict.fromkeys(names))
    known = np.column_stack([source.known[name] for name in names])
    new = known[place]
    for members in _groups(known):
        chosen = np.flatnonzero(np.isin(place, members))
        there = known[members[0]] > 0
        if chosen.size and members.size >= _LEAST_GROUP and there.any():
            rank = np.searchsorted(members, place[chosen])
            new[np.ix_(chosen, there)] = _smooth(known[np.ix_(members, there)], rank, random)
    columns = dict(zip(names, new.T, strict=True))
    return _with_columns(jobs, columns)


def _groups(known: Floats) -> Iterator[Whole]:
    """Yield for each group of jobs an array of their row numbers in ``known``.

    The jobs of a group have equal sets of zero and unknown quantities. ``known`` is an array (jobs,
    quantities) with NaN for unknown values.
    """
    code = np.zeros(len(known), dtype=np.int64)
    for column in known.T:
        code = code * 3 + np.where(np.isnan(column), 2, column > 0)
    for value in np.unique(code):
        yield np.flatnonzero(code == value)


def _smooth(values: Floats, chosen: Whole, random: np.random.Generator) -> Floats:
    """Return an array (new jobs, quantities) of new values, by the smoothed bootstrap.

    ``values`` is an array (jobs of a group, quantities), all positive; ``chosen`` has for each new
    job the row in ``values`` whose quantities are changed.
    """
    n, d = values.shape
    ordered = np.sort(values, axis=0)
    # Equal values share their ranks: one of these ranks is drawn, so that ties keep their
    # frequency.
    low = np.column_stack([np.searchsorted(o, v) for o, v in zip(ordered.T, values.T, strict=True)])
    high = np.column_stack(
        [np.searchsorted(o, v, side="right") for o, v in zip(ordered.T, values.T, strict=True)]
    )
    score = ndtri((low + random.random((n, d)) * (high - low)) / n)
    score = np.clip(score, -8.0, 8.0)
    width = float((4 / (n * (d + 2))) ** (1 / (d + 4)))
    # Without the small diagonal term, two fully correlated quantities would make the matrix
    # singular.
    near = np.corrcoef(score, rowvar=False).reshape(d, d)
    roots, directions = np.linalg.eigh(np.nan_to_num(near) * (1 - 1e-9) + 1e-9 * np.eye(d))
    noise = random.standard_normal((chosen.size, d)) * np.sqrt(np.maximum(roots, 0)) @ directions.T
    moved = np.sqrt(1 - width**2) * score[chosen] + width * noise
    at = ndtr(moved) * n - 0.5
    logs = np.log(ordered)
    place = np.arange(n, dtype=np.float64)
    new = [np.exp(np.interp(a, place, column)) for a, column in zip(at.T, logs.T, strict=True)]
    return np.column_stack(new)


def _with_columns(jobs: pl.DataFrame, columns: dict[str, Floats]) -> pl.DataFrame:
    """Return the table ``jobs`` with new values in ``columns`` and new names of jobs.

    ``columns`` has an array for each quantity. ``wait_s`` and ``run_s`` are added to the submission
    and become ``launch_s`` and ``finish_s``.
    """
    drawn = {name: pl.Series(name, values).fill_nan(None) for name, values in columns.items()}
    parts: list[pl.Expr | pl.Series] = [
        drawn[name].round().cast(jobs.schema[name]) for name in (*_BYTES, *_COUNTS) if name in drawn
    ]
    parts += [drawn[name].round(6) for name in ("map_s", "reduce_s") if name in drawn]
    for length, time in (("wait_s", "launch_s"), ("run_s", "finish_s")):
        if length in drawn:
            parts.append((jobs["submit_s"] + drawn[length]).round(6).alias(time))
    moved = jobs.with_columns(*parts, pl.format("synthetic-{}", "job").alias("name"))
    if {"wait_s", "run_s"} <= drawn.keys():
        moved = moved.with_columns(pl.min_horizontal("launch_s", "finish_s").alias("launch_s"))
    return moved
