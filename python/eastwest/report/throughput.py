"""Throughput of each stream at its receiver over time, where the scenario asked for it."""

from __future__ import annotations

import numpy as np

from eastwest import units
from eastwest.plot.throughput import MOST_LINES, Throughput, rates_of
from eastwest.report.draw import Chart, Floats, Scale, clock, linear, rounded, thin_rows, time
from eastwest.report.tables import Facts


def charts(facts: Facts) -> list[Chart]:
    """Return charts of rates of streams, of their sum if some are not drawn, and Jain's index."""
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
    more = found.streams.height - len(names)
    chart = Chart(
        "stream-rates",
        found.sentence(),
        "Bits per second of payload that came to the receiver, every byte once; means over "
        f"{units.span(found.step)}."
        + (
            f" The {len(names)} of {units.count(found.streams.height)} with most bytes."
            if more
            else ""
        ),
        time(facts.end),
        linear(np.nan_to_num(found.rates), "rate", "rate"),
        wide=True,
        legend=names,
        height=190,
    )
    for number, values in enumerate(found.rates):
        _steps(chart, found, values, number)
    chart.data = {"type": "bins", "step": found.step, "values": [rounded(v) for v in found.rates]}
    chart.table = _table(facts, found, names, list(np.nan_to_num(found.rates)))
    return chart


def _total(facts: Facts, found: Throughput) -> Chart:
    peak = float(found.total.max())
    chart = Chart(
        "stream-rates-sum",
        f"All {units.count(found.streams.height)} streams together reach {units.rate(peak)}",
        f"Bits per second of payload that came to receivers; means over {units.span(found.step)}.",
        time(facts.end),
        linear(found.total, "rate", "rate"),
        height=150,
    )
    _steps(chart, found, found.total, 0)
    chart.data = {"type": "bins", "step": found.step, "values": [rounded(found.total)]}
    chart.table = _table(facts, found, ["all together"], [found.total])
    return chart


def _jain(facts: Facts, found: Throughput) -> Chart:
    known = found.jain[np.isfinite(found.jain)]
    chart = Chart(
        "stream-fairness",
        f"Jain's index of the streams' rates is {np.median(known):.2f} at the median, "
        f"{known.min():.2f} at the lowest",
        f"In each {units.span(found.step)}, of the streams between their first and their last "
        "byte: 1 where all get the same, 1/n where one of n gets everything.",
        time(facts.end),
        Scale("linear", 0.0, 1.04, "Jain's index"),
        height=150,
    )
    _steps(chart, found, found.jain, 0)
    chart.data = {"type": "bins", "step": found.step, "values": [rounded(found.jain)]}
    rows = [
        [clock(float(found.edges[i + 1]), facts.end), f"{found.jain[i]:.3f}"]
        for i in np.flatnonzero(np.isfinite(found.jain))
    ]
    chart.table = (["until", "Jain's index"], thin_rows(rows))
    return chart


def _steps(chart: Chart, found: Throughput, values: Floats, series: int) -> None:
    """Draw steps of values; NaN leaves a gap."""
    known = np.flatnonzero(np.isfinite(values))
    for piece in np.split(known, np.flatnonzero(np.diff(known) > 1) + 1):
        if piece.size:
            at = found.edges[piece[0] : piece[-1] + 2]
            chart.line(at, np.append(values[piece], values[piece[-1]]), series, step=True)


def _table(
    facts: Facts, found: Throughput, names: list[str], values: list[Floats]
) -> tuple[list[str], list[list[str]]]:
    some = np.flatnonzero(np.sum(values, axis=0) > 0)
    rows = [
        [clock(float(found.edges[i + 1]), facts.end), *(units.rate(float(v[i])) for v in values)]
        for i in some
    ]
    return ["until", *names], thin_rows(rows)
