"""Applications on pages: tables of their numbers, and distributions of their measures."""

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
_SHARES = (0.5, 0.9, 0.99, 0.999, 1.0)
#: Columns of the table of operations and requests, and the paths of their numbers.
_NUMBERS = (
    ("operations", "planned"),
    ("operations", "begun"),
    ("operations", "completed"),
    ("requests", "sent"),
    ("requests", "answered"),
    ("requests", "unanswered"),
)


def number_rows(result: Result) -> list[list[str]]:
    """Return rows of operations and requests of each application, and why requests have no reply.

    An operation is a unit of work that an application plans, begins and completes. Cells of an
    application without operations have a dash. Results before format 10 have no rows.
    """
    rows = []
    for workload, own in applications.all_of(result.summary).items():
        if "requests" not in own:
            continue
        no_operations = not any(pick(own, *path) for path in _NUMBERS[:3])
        cells = ["–" if no_operations else units.count(pick(own, *path)) for path in _NUMBERS[:3]]
        cells += [units.count(pick(own, *path)) for path in _NUMBERS[3:]]
        rows.append([shown(workload, 40), *cells, reasons(own) or "–"])
    return rows


def measure_rows(result: Result) -> list[list[str]]:
    """Return rows of all measures of applications: number, mean, percentiles and maximum."""
    return [
        [
            shown(each.workload, 40),
            shown(each.name.replace("_", " "), 60),
            units.count(pick(each.statistics, "count")),
            *(
                units.span((pick(each.statistics, name) or 0.0) / 1e6)
                for name in ("mean", "p50", "p99", "p999", "max")
            ),
        ]
        for each in applications.measures(result.summary)
    ]


def counter_rows(result: Result) -> list[list[str]]:
    """Return rows of all counters of applications."""
    return [
        [shown(workload, 40), shown(name.replace("_", " "), 60), units.count(value)]
        for workload, name, value in applications.counters(result.summary)
    ]


def charts(named: Sequence[tuple[str, Facts]]) -> list[Chart]:
    """Return charts of the distributions of measures of one result, or of several together.

    One result has a chart for each application, with a curve for each measure; several results
    have a chart for each measure, with a curve for each result. Measures without a table, in
    results before format 10, have no curve.
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
    """Return a chart of cumulative shares, one curve for each histogram."""
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
    chart = Chart(
        f"application-{number}",
        title,
        f"{note}, over the whole run.",
        logarithmic(
            min(float(x[0]) for x, _ in drawn), max(float(x[-1]) for x, _ in drawn), "time"
        ),
        Scale("linear", 0.0, 1.02, "durations", "percent"),
        legend=[name for name, _ in curves],
    )
    chart.shares([thin_curve(np.maximum(x, chart.x.low), y) for x, y in drawn])
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
