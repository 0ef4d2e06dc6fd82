"""Pictures of throughput over time: rates of streams at their receivers, and fairness."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eastwest.plot.numbers import record
from eastwest.plot.sheet import empty, sheet
from eastwest.plot.style import color, rate_ticks, time_axis
from eastwest.results import Result
from eastwest.units import clean, count
from eastwest.views.throughput import MOST_LINES, rates_of


def throughput(result: Result) -> Figure:
    """Draw the rate of each stream at its receiver over time, and Jain's fairness index.

    The rate, in bit/s, counts each payload byte once, when it arrives. Of more than six streams,
    the six with the most bytes are drawn, and a panel below shows the sum of all streams. With
    several streams, the lowest panel shows Jain's index over the streams that are between their
    first and last bin with data. The run must have recorded ``measure.flow_samples``.
    """
    found = rates_of(result)
    if found is None:
        return empty("No stream was sampled: name senders in measure.flow_samples")
    several, many = found.streams.height > 1, found.streams.height > MOST_LINES
    tall = [2.6, *([1.2] if many else []), *([1.2] if several else [])]
    how: dict[str, Any] = {"sharex": True, "squeeze": False, "height_ratios": tall}
    with sheet((10.9, 0.6 + sum(tall)), len(tall), **how) as (figure, grid):
        panels: list[Axes] = list(grid[:, 0])
        edges = found.edges * time_axis(panels[-1], float(found.edges[-1]))
        look: dict[str, Any] = {"baseline": None, "lw": 1.2}
        names = found.names(lambda host: f"h{host}")
        times = {"time_s": found.edges[:-1], "until_s": found.edges[1:]}
        panels[0].set_label("each stream")
        for number, name in enumerate(names):
            label = clean(name, 60)
            panels[0].stairs(found.rates[number], edges, color=color(number), label=label, **look)
            record(panels[0], label, {**times, "rate_bps": found.rates[number]})
        _rate_panel(panels[0], "each")
        if several:
            panels[0].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        if many:
            panels[1].set_label("all streams")
            panels[1].stairs(found.total, edges, color=color(0), **look)
            record(panels[1], "all", {**times, "rate_bps": found.total})
            _rate_panel(panels[1], "all")
        if several:
            panels[-1].set_label("fairness")
            panels[-1].stairs(found.jain, edges, color=color(0), **look)
            record(panels[-1], "all", {**times, "jain_index": found.jain})
            panels[-1].set(ylim=(0, 1.05), ylabel="Jain's index")
        panels[0].set_xlim(0, edges[-1])
        more = found.streams.height - len(names)
        said = f" ({count(more)} more are only in the sum)" if more else ""
        panels[0].set_title(found.sentence() + said)
    return figure


def _rate_panel(axes: Axes, label: str) -> None:
    axes.set(ylim=(0, None), ylabel=label)
    rate_ticks(axes)
