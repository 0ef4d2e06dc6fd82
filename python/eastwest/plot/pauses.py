"""Pictures of pauses: the paused ports over time, and how pauses spread."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from eastwest.plot.numbers import record
from eastwest.plot.sheet import empty, sheet
from eastwest.plot.style import BLUE, heat, time_axis
from eastwest.results import Result
from eastwest.units import count
from eastwest.views.pauses import longest, names, places, sentence, shares, sound

#: Maximum number of rows, one for each port and priority; those with the longest time in pause
#: are drawn.
_MOST_ROWS = 40
#: Number of time bins of the picture.
_COLUMNS = 1500


def pauses(result: Result) -> Figure:
    """Draw the pauses by PFC of each port and priority over time.

    There is one row for each port and priority, from top to bottom in the order of their first
    pauses, which shows how pauses spread. The shade is the share of time in pause. Of more than 40
    rows, the 40 with the longest time in pause are drawn. The run must have recorded
    ``measure.pauses``.
    """
    rows = sound(result)
    if rows.height == 0:
        return empty("No pause was logged: name ports in measure.pauses, with [fabric.pfc]")
    found = places(rows)
    shown = longest(found, _MOST_ROWS)
    with sheet((10.9, 1.3 + 0.19 * max(4, shown.height))) as (figure, axes):
        end = max(float(np.max(rows["until_s"].to_numpy())), 1e-9)
        scale = time_axis(axes, end)
        paused = shares(rows, shown, np.linspace(0, end, _COLUMNS + 1))
        image = heat(axes, paused, end * scale, BLUE)
        several = found["priority"].n_unique() > 1
        for place, name in zip(
            shown.iter_rows(named=True), names(shown, several=several), strict=True
        ):
            own = rows.filter(link=place["link"], priority=place["priority"])
            record(axes, name, own.sort("began_s").select("began_s", "until_s").to_dict())
        axes.set_yticks(np.arange(shown.height) + 0.5, names(shown, several=several))
        axes.hlines(np.arange(1, shown.height), 0, end * scale, color="white", lw=1.5)
        axes.grid(visible=False)
        bar = figure.colorbar(image, ax=axes, pad=0.01, ticks=[0, 0.5, 1])
        bar.ax.set_yticklabels(["0 %", "50 %", "100 %"])
        bar.set_label("in pause")
        more = found.height - shown.height
        axes.set_title(sentence(found) + (f" ({count(more)} more not drawn)" if more else ""))
    return figure
