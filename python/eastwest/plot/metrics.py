"""Pictures of a selection of metrics (``eastwest observe select``)."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from eastwest.observe.select import Selection
from eastwest.plot.numbers import record
from eastwest.plot.sheet import sheet
from eastwest.plot.style import BLUE, MUTED, ORANGE, nothing
from eastwest.units import clean


def selection(found: Selection) -> Figure:
    """Draw two bars for each selected metric, in the order of selection: relevance, redundancy.

    Relevance is mutual information with the target; redundancy is mean mutual information with the
    metrics selected before. Both are in nats.
    """
    rows = max(1, len(found.chosen))
    with sheet((10.9, 1.2 + 0.3 * rows)) as (figure, axes):
        if not found.chosen:
            nothing(axes, "nothing was selected")
            return figure
        places = [float(place) for place in range(rows)]
        axes.barh(
            [p - 0.2 for p in places], [c.relevance for c in found.chosen], 0.38, color=BLUE,
            label="relevance: information about the target",
        )  # fmt: skip
        axes.barh(
            [p + 0.2 for p in places], [c.redundancy for c in found.chosen], 0.38, color=ORANGE,
            label="redundancy: mean information about the metrics above",
        )  # fmt: skip
        for each in found.chosen:
            drawn = {"relevance_nats": [each.relevance], "redundancy_nats": [each.redundancy]}
            more = {"lag_rows": [each.lag], "selected_share": [each.frequency]}
            record(axes, each.metric, {**drawn, **more})
        most = max(max(c.relevance, c.redundancy) for c in found.chosen)
        for place, each in zip(places, found.chosen, strict=True):
            said = [f"lag {each.lag}"] if each.lag else []
            if each.frequency is not None and math.isfinite(each.frequency):
                said.append(f"selected in {each.frequency:.0%} of resamples")
            end = max(each.relevance, each.redundancy) + 0.01 * most
            axes.text(end, place, ", ".join(said), va="center", color=MUTED)
        axes.set_yticks(places, [clean(each.metric, 70) for each in found.chosen])
        axes.invert_yaxis()
        axes.grid(False, axis="y")
        axes.set(xlabel="mutual information (nats)", xlim=(0, 1.2 * most))
        axes.set_title(f"Metrics selected for {clean(found.target, 80)}")
        figure.legend(loc="outside lower right", ncols=2)
    return figure
