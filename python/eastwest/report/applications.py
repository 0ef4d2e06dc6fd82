"""Applications on pages: tables of operations, requests, measures and counters, and charts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from eastwest import units
from eastwest.notes.unanswered import reasons
from eastwest.report.draw import Chart, Scale, logarithmic, thin_curve
from eastwest.results import Result, pick
from eastwest.views import applications
from eastwest.views.facts import Facts
from eastwest.views.labels import shown

#: Maximum number of charts of applications on a page, and of curves in a chart.
_MOST_CHARTS = 4
_MOST_CURVES = 6
#: Beginning in s of the axis if all durations are 0.
_SHORTEST_S = 1e-9
_SHARES = (0.5, 0.9, 0.99, 0.999, 1.0)
#: Paths in the numbers of an application, one for each column of the table of operations and
#: requests.
_NUMBERS = (
    ("operations", "planned"),
    ("operations", "begun"),
    ("operations", "completed"),
    ("requests", "sent"),
    ("requests", "answered"),
    ("requests", "unanswered"),
)


def number_rows(result: Result) -> list[list[str]]:
    """Return a row for each application: its name, numbers of operations and requests, and causes.

    The numbers are those of ``_NUMBERS``; the causes tell why requests have no reply. An operation
    is a unit of work that an application plans, begins and completes; cells of an application
    without operations have a dash. Results before format 10 have no rows.
    """
    rows = []
    for workload, own in applications.all_of(result.summary).items():
        if "requests" not in own:
            continue
        known = applications.has_operations(own)
        cells = [units.count(pick(own, *path)) if known else "–" for path in _NUMBERS[:3]]
        cells += [units.count(pick(own, *path)) for path in _NUMBERS[3:]]
        rows.append([shown(workload, 40), *cells, reasons(own) or "–"])
    return rows


def measure_rows(result: Result) -> list[list[str]]:
    """Return a row for each measure of an application, all cells as text.

    Columns: workload, measure, number of durations, mean, median, 99th and 99.9th percentile,
    maximum.
    """
    return [
        [
            shown(each.workload, 40),
            shown(each.name.replace("_", " "), 60),
            units.count(pick(each.statistics, "count")),
            *(units.span(each.seconds(name)) for name in ("mean", "p50", "p99", "p999", "max")),
        ]
        for each in applications.measures(result.summary)
    ]


def counter_rows(result: Result) -> list[list[str]]:
    """Return a row for each counter of an application: workload, counter and value, as text."""
    return [
        [shown(workload, 40), shown(name.replace("_", " "), 60), units.count(value)]
        for workload, name, value in applications.counters(result.summary)
    ]


def charts(named: Sequence[tuple[str, Facts]]) -> list[Chart]:
    """Return charts of the cumulative distributions of measures, of one or of several results.

    ``named`` has each result with its name. One result has a chart for each application, with a
    curve for each measure; several results have a chart for each measure, with a curve for each
    result. Results before format 10 have no distributions, and no curve.
    """
    groups: dict[tuple[str, ...], list[tuple[str, pl.DataFrame]]] = {}
    for name, facts in named:
        for measure in applications.measures(facts.result.summary):
            histogram = applications.distribution(facts.result, measure)
            if histogram.height:
                one = len(named) == 1
                key = (measure.workload,) if one else (measure.workload, measure.name)
                curve = measure.name.replace("_", " ") if one else name
                groups.setdefault(key, []).append((shown(curve, 40), histogram))
    return [
        _chart(number, key, curves[:_MOST_CURVES], alone=len(named) == 1)
        for number, (key, curves) in enumerate([*groups.items()][:_MOST_CHARTS])
    ]


def _chart(
    number: int, key: tuple[str, ...], curves: list[tuple[str, pl.DataFrame]], *, alone: bool
) -> Chart:
    """Return a chart of the cumulative distribution of durations.

    The chart has a curve for each (name, histogram) in ``curves``. With one result (``alone``),
    ``key`` is (workload,) and each curve is a measure; with several results, ``key`` is (workload,
    measure) and each curve is a result. ``number`` is the number of the chart on the page.
    """
    owner = shown(key[0], 40)
    drawn = [applications.shares(histogram) for _, histogram in curves]
    first = curves[0][1]
    half, most = (units.span(applications.at_share(first, q)) for q in (0.5, 0.99))
    if alone:
        what = curves[0][0]
        title = f"Half of the durations “{what}” of {owner} are up to {half}, 99 % up to {most}"
        note = f"Share of the durations of each measure of {owner} up to a time"
    else:
        what = shown(key[1].replace("_", " "), 40)
        title = f"Measure “{what}” of {owner}"
        note = f"Share of the durations “{what}” of {owner} up to a time"
    values = np.concatenate([x for x, _ in drawn])
    positive = values[values > 0]
    low = float(positive.min()) if positive.size else _SHORTEST_S
    note += ", over the whole run."
    if positive.size < values.size:
        note += " Durations of 0 are at the left end of the axis."
    chart = Chart(
        f"application-{number}",
        title,
        note,
        logarithmic(low, float(values.max()), "time"),
        Scale("linear", 0.0, 1.02, "durations", "percent"),
        legend=[name for name, _ in curves],
    )
    chart.shares([thin_curve(x, y) for x, y in drawn])
    shares = [*(units.percent(share) for share in _SHARES[:-1]), "all"]
    chart.table = (
        ["measure" if alone else "result", "number", *shares],
        [
            [
                name,
                units.count(int(histogram["count"].sum())),
                *(units.span(applications.at_share(histogram, share)) for share in _SHARES),
            ]
            for name, histogram in curves
        ],
    )
    return chart
