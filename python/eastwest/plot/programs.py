"""Pictures of programs that are graphs, such as training jobs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from eastwest.plot.numbers import record
from eastwest.plot.style import BLUE, GREEN, ORANGE, legend_above, nothing, span_ticks
from eastwest.results import Result
from eastwest.units import percent, span

#: Parts of an iteration from the bottom of a bar to its top: column, name, colour.
_PARTS = (
    ("compute_s", "computation", GREEN),
    ("exposed_s", "exposed communication", ORANGE),
    ("idle_s", "waiting", BLUE),
)
#: Maximum number of ranks that have their numbers at the axis.
_MOST_NAMED = 40


def iterations(axes: Axes, results: Sequence[tuple[str, Result]]) -> str:
    """Draw the mean iteration of each rank, divided into its parts; return the title.

    The first iteration of a rank is left out if there are others: it opens connections.
    """
    table = results[0][1].mpi_iterations
    if table.height == 0:
        return nothing(axes, "No iteration has ended")
    later = table.filter(pl.col("iteration") > 0)
    whole = pl.col("ended_s") - pl.col("began_s")
    ranks = (
        (later if later.height else table)
        .with_columns(
            idle_s=(whole - pl.col("compute_s") - pl.col("exposed_s")).clip(lower_bound=0.0)
        )
        .group_by("workload", "rank")
        .agg(pl.col(column).mean() for column, _, _ in _PARTS)
        .sort("workload", "rank")
    )
    places = np.arange(ranks.height)
    below = np.zeros(ranks.height)
    for column, name, colour in _PARTS:
        values = ranks[column].to_numpy()
        axes.bar(places, values, bottom=below, width=0.9, color=colour, label=name)
        below = below + values
    parts = {column: ranks[column].to_numpy() for column, _, _ in _PARTS}
    record(axes, "", {"rank": ranks["rank"].to_numpy(), **parts})
    programs = ranks["workload"].unique(maintain_order=True).to_list()
    axes.margins(x=0.01)
    axes.set(xlabel=f"rank ({', '.join(programs)})", ylabel="mean iteration", ylim=(0, None))
    shown = places[:: ranks.height // _MOST_NAMED + 1]
    axes.set_xticks(shown, [str(ranks["rank"][int(place)]) for place in shown])
    span_ticks(axes, "y")
    axes.grid(visible=False, axis="x")
    legend_above(axes)
    mean_s, exposed = float(below.mean()), float(parts["exposed_s"].mean())
    share = percent(exposed / mean_s) if mean_s > 0 else "no"
    return f"Iterations take {span(mean_s)}, {share} of it exposed"
