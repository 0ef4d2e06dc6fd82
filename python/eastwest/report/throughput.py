"""Charts of the throughput of each stream at its receiver over time."""

from __future__ import annotations

import numpy as np

from eastwest import units
from eastwest.report.draw import Chart, Scale, linear, time
from eastwest.views.facts import Facts
from eastwest.views.series import Bins, Floats
from eastwest.views.throughput import MOST_LINES, Throughput, rates_of


def charts(facts: Facts) -> list[Chart]:
    """Return up to three charts over time: rates of streams, their sum, and Jain's index.

    The sum is drawn if there are more than six streams. There is no chart if the run did not record
    ``measure.flow_samples``.
    """
    found = rates_of(facts.result)
    if found is None:
        return []
    drawn = [_streams(facts, found)]
    if found.streams.height > MOST_LINES:
        drawn.append(_total(facts, found))
    if found.streams.height > 1 and np.isfinite(found.jain).any():
        drawn.append(_jain(facts, found))
    return drawn


def _streams(facts: Facts, found: Throughput) -> Chart:
    names = found.names(facts.host)
    note = (
        "Payload in bits per second that arrived at the receiver, without repeated "
        f"bytes; means over {units.span(found.step)}."
    )
    if found.streams.height > len(names):
        note += (
            f" Shown are the {len(names)} of {units.plural(found.streams.height, 'stream')} "
            "with most bytes."
        )
    chart = Chart(
        "stream-rates",
        found.sentence(),
        note,
        time(facts.end),
        linear(np.nan_to_num(found.rates), "rate", "rate"),
        wide=True,
        legend=names,
        height=190,
    )
    _steps(chart, list(found.rates), names, found.step)
    return chart


def _total(facts: Facts, found: Throughput) -> Chart:
    peak = float(found.total.max())
    chart = Chart(
        "stream-rates-sum",
        f"Together, {units.plural(found.streams.height, 'stream')} reach {units.rate(peak)}",
        "Payload in bits per second that arrived at all receivers; means over "
        f"{units.span(found.step)}.",
        time(facts.end),
        linear(found.total, "rate", "rate"),
        height=150,
    )
    _steps(chart, [found.total], ["all together"], found.step)
    return chart


def _jain(facts: Facts, found: Throughput) -> Chart:
    known = found.jain[np.isfinite(found.jain)]
    chart = Chart(
        "stream-fairness",
        f"Jain's index of the streams' rates is {np.median(known):.2f} at the median, "
        f"{known.min():.2f} at the lowest",
        f"For each {units.span(found.step)}, over the streams between their first "
        "and their last byte: 1 if all rates are equal, 1/n if one of n streams has "
        "everything.",
        time(facts.end),
        Scale("linear", 0.0, 1.04, "Jain's index"),
        height=150,
    )
    _steps(chart, [found.jain], ["Jain's index"], found.step)
    return chart


def _steps(chart: Chart, values: list[Floats], heads: list[str], step: float) -> None:
    bins = Bins(step, values[0].size)
    for number, each in enumerate(values):
        chart.steps(bins.edges, each, number)
    write = None if chart.y.unit == "rate" else "{:.3f}".format
    chart.over_time(bins, values, heads, write)
