"""Pictures of the parts of flows' completion times."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from eastwest.plot.numbers import record
from eastwest.plot.sheet import empty, sheet
from eastwest.plot.style import color, legend_above, percent_ticks
from eastwest.results import Result
from eastwest.units import plural, span
from eastwest.views.flows import drawn_parts, largest_part, parts_by_size


def flow_parts(result: Result) -> Figure:
    """Draw a bar for each size of flows, with the parts of their completion time.

    The height of a part, such as queueing, is its mean share of the completion time of a flow; the
    text above a bar has the number of flows and their median completion time. The run must have
    recorded ``measure.flow_parts``.
    """
    table = parts_by_size(result)
    if table.height == 0:
        return empty("No parts of completion times were recorded: set measure.flow_parts")
    with sheet() as (figure, axes):
        at = np.arange(table.height)
        below = np.zeros(table.height)
        for number, part in enumerate(drawn_parts(table)):
            share = table[f"{part}_share"].to_numpy().astype(float)
            axes.bar(at, share, 0.62, below, color=color(number), label=part)
            drawn = {"size": table["size"], "flows": table["flows"], "share_of_time": share}
            record(axes, part, {**drawn, "median_completion_us": table["completion_us"]})
            below = below + share
        for place, row in enumerate(table.iter_rows(named=True)):
            said = f"{plural(row['flows'], 'flow')}, median {span(row['completion_us'] / 1e6)}"
            axes.text(place, 1.02, said, ha="center", va="bottom")
        axes.set_ylim(0, 1.12)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
        percent_ticks(axes, "y")
        axes.set_xticks(at, table["size"].to_list())
        beside = max(0.1, (3 - table.height) / 2)
        axes.set_xlim(-0.5 - beside, table.height - 0.5 + beside)
        axes.set_ylabel("share of the time of a flow")
        axes.grid(visible=False, axis="x")
        legend_above(axes)
        axes.set_title(largest_part(table))
    return figure
