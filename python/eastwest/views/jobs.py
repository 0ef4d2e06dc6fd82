"""Number of running map and reduce tasks over time."""

from __future__ import annotations

import polars as pl

from eastwest.views.series import Floats, in_progress, most_at_once

#: Kinds of tasks, in the order in which they are drawn.
KINDS = ("map", "reduce")


def concurrency(tasks: pl.DataFrame, edges: Floats) -> Floats:
    """Return an array (len(edges) − 1): mean number of running tasks in each interval of time.

    ``edges`` are the borders of the intervals, in simulated s.
    """
    return in_progress(tasks["started_s"].to_numpy(), tasks["finished_s"].to_numpy(), edges)


def at_once(tasks: pl.DataFrame) -> int:
    """Return the largest number of tasks that run at the same time."""
    return most_at_once(tasks["started_s"].to_numpy(), tasks["finished_s"].to_numpy())
