"""Durations of task attempts by kind of task, for traces with a table of attempts.

Only successful attempts count. The duration of an attempt is the time from start to end. *Slow*
attempts (stragglers) took more than twice the median duration of the attempts of the same job and
kind. In Ananthanarayanan et al. (OSDI 2010), stragglers are attempts above 1.5 times the median.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from eastwest.workload.access import cumulative
from eastwest.workload.jobs import Floats

#: An attempt is slow if its duration is more than this multiple of the median over the successful
#: attempts of the same job and kind.
SLOW = 2.0
_SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "most": 1.0}


@dataclass(frozen=True)
class Durations:
    """Durations of the attempts of one kind of task."""

    #: Number of all attempts of this kind, successful or not.
    attempts: int
    #: Number of attempts that succeeded and have a duration.
    succeeded: int
    #: Duration in s at the percentiles ``p50``, ``p90`` and ``p99``, and maximum (``most``).
    seconds: Mapping[str, float]
    #: Share of slow attempts among those counted in ``succeeded`` (see ``SLOW``).
    slow_share: float
    #: Cumulative distribution, two arrays: duration in s, and share of attempts up to it.
    curve: tuple[Floats, Floats]


def durations(attempts: pl.LazyFrame) -> dict[str, Durations]:
    """Return the durations of task attempts by kind of task, the most frequent kind first.

    ``attempts`` is the table of attempts; kinds without a successful attempt are left out.
    """
    took = pl.col("finish_s") - pl.col("start_s")
    kinds = (
        attempts.group_by("kind").len().sort(["len", "kind"], descending=[True, False]).collect()
    )
    found = {}
    for kind, count in kinds.drop_nulls().iter_rows():
        done = (
            attempts.filter((pl.col("kind") == kind) & (pl.col("outcome") == "succeeded"))
            .select("job", took.alias("took"))
            .filter(pl.col("took").is_finite() & (pl.col("took") >= 0))
            .with_columns((pl.col("took") / pl.col("took").median().over("job")).alias("times"))
            .select("took", "times")
            .collect()
        )
        if not done.height:
            continue
        seconds = done["took"]
        found[str(kind)] = Durations(
            count,
            done.height,
            {name: float(seconds.quantile(q, "higher") or 0.0) for name, q in _SHARES.items()},
            float((done["times"].fill_nan(0.0) > SLOW).mean() or 0.0),  # type: ignore[arg-type]
            cumulative(seconds.to_numpy()),
        )
    return found
