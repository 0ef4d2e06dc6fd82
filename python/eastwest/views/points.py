"""Points of a sweep as a table of text: settings, and metrics with their intervals or ratios."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl

from eastwest.errors import did_you_mean
from eastwest.sweep import words
from eastwest.sweep.tables import SweepResult
from eastwest.sweep.words import HEADLINES, Shown, shown
from eastwest.units import clean
from eastwest.views import goals


@dataclass(frozen=True)
class Cells:
    """A table of text: headings and rows, with settings in the first columns."""

    headings: list[str]
    #: Number of columns of settings, which come first.
    settings: int
    rows: list[list[str]]


def metrics(result: SweepResult, most: int) -> tuple[list[Shown], list[tuple[str, str]]]:
    """Return a sweep's metrics to show, and (name, hint) for names in ``show`` that no run has.

    Without ``show`` in the sweep, at most ``most`` metrics are returned: first the metrics of
    goals, then of workloads, then headline metrics that are not 0 at all points.
    """
    points = result.points
    there = set(points["metric"].unique())
    wanted = [words.full(metric, there) for metric in result.summary.get("show") or []]
    if wanted:
        absent = [(metric, did_you_mean(metric, there)) for metric in wanted if metric not in there]
        return [shown(metric) for metric in wanted if metric in there], absent
    constant = points.group_by("metric").agg(pl.col("mean").abs().max())
    nothing = set(constant.filter(pl.col("mean") == 0)["metric"])
    headlines = [h[0] for h in HEADLINES if h[0] in there - nothing]
    first = [*goals.measures(result.summary, there), *words.of_workloads(there), *headlines]
    return [shown(metric) for metric in dict.fromkeys(first)][:most], []


def cells(result: SweepResult, numbers: list[int], chosen: list[Shown], longest: int) -> Cells:
    """Return a table with a row for each point of a sweep: settings, number of seeds, and metrics.

    ``numbers`` are the numbers of the points, ``chosen`` the metrics. In a sweep with named cases,
    metrics have ratios to the baseline in place of intervals. In a sweep with goals, the last
    column has the state of the limits. Settings have about ``longest`` characters at most.
    """
    named = any(axis is not None for _, axis in result.columns)
    compared = factors(result) if named else {}
    paths = [clean(path.rpartition(".")[2], 16) for path, _ in result.columns]
    titles = (clean(each[1], 60).replace(" while ", "\nwhile ") for each in chosen)
    states = goals.states(result.summary)
    rows = []
    for number in numbers:
        part = result.points.filter(pl.col("point") == number)
        found = {row["metric"]: row for row in part.iter_rows(named=True)}
        row = part.row(0, named=True)
        names = result.names(number)
        settings = []
        for path, axis in result.columns:
            if axis is not None:
                settings.append(clean(names[axis], max(32, longest)))
                continue
            said = str(row.get(f"set.{path}", row.get(path)))
            if path in result.labels:
                settings.append(clean(result.labels[path].get(said, said), max(32, longest)))
            else:
                settings.append(clean(said, longest))
        seeds = max(r["n"] for r in found.values())
        values = (value(found.get(h[0]), h[2], compared.get((number, h[0]))) for h in chosen)
        reached = [states.get(number, "")] if states else []
        rows.append([*settings, str(seeds), *values, *reached])
    return Cells([*paths, "n", *titles, *(["goal"] if states else [])], len(paths), rows)


def factors(result: SweepResult) -> dict[tuple[int, str], str]:
    """Return the ratio of each metric to the baseline as text, by (point number, metric name).

    With several seeds, the text has a confidence interval, for which values of the point and of the
    baseline with the same seed are paired. Metrics that are 0 at the baseline have no ratio.
    """
    rows = result.comparisons.select(
        "point", "metric", "difference", "low", "high", "baseline_mean"
    )
    found = {}
    for point, metric, difference, low, high, base in rows.iter_rows():
        if not base:
            continue
        ratio = 1 + difference / base
        half = None if low is None else (high - low) / 2 / abs(base)
        if half is None:
            found[point, metric] = f"× {ratio:.2f}"
        elif 0 <= ratio <= half:  # a ratio of two metrics cannot be negative
            found[point, metric] = f"× {ratio:.2f} (≤ {ratio + half:.1f})"
        else:
            found[point, metric] = f"× {ratio:.2f} ± {half:.2f}"
    return found


def value(row: dict[str, Any] | None, show: Callable[[float], str], factor: str | None) -> str:
    """Return a mean with its confidence interval: ``1.2 ms ± 3 %``; or with the text ``factor``.

    If runs of the point were stopped early, the text is a lower bound of the mean: ``≥ 1 ms``.

    ``row`` has ``mean``, ``low`` and ``high`` of a metric at a point; ``show`` formats a number. If
    the interval reaches to 0 or below, its upper end is shown: ``1.2 ms (≤ 3 ms)``.
    """
    if row is None:
        return "–"
    if row["mean"] is None:  # runs were stopped early
        return f"≥ {show(row['at_least'])}"
    if factor is not None:
        return f"{show(row['mean'])}  {factor}"
    if row["low"] is None or not row["mean"]:
        return show(row["mean"])
    if row["low"] <= 0 < row["mean"]:
        return f"{show(row['mean'])} (≤ {show(row['high'])})"
    half = (row["high"] - row["low"]) / 2 / abs(row["mean"])
    return f"{show(row['mean'])} ± {100 * half:.0f} %"
