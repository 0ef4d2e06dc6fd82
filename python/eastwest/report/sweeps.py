"""Page about a sweep: every point with its interval over the seeds, and its change."""

from __future__ import annotations

import shlex
from typing import Any

from eastwest import units
from eastwest.errors import InputError
from eastwest.report import spread
from eastwest.report.draw import UNITS, Chart, Scale, fill_lines, linear, logarithmic
from eastwest.report.page import render
from eastwest.sweep import seeds, words
from eastwest.sweep.tables import SweepResult
from eastwest.views import goals
from eastwest.views.facts import Facts
from eastwest.views.labels import as_sentence, shown
from eastwest.views.metrics import Metric, change
from eastwest.views.sweep import Estimate, Points

_MOST_SERIES = 6
_MOST_CHARTS = 8


def sweep_page(sweep: SweepResult) -> str:
    """Return the HTML page about a sweep."""
    points = Points(sweep)
    charts = [_chart(points, metric) for metric in _drawn(points)]
    if any(axis is not None for _, axis in sweep.columns):
        charts[:0] = _factors(points)
    fill_lines(charts)
    curves, curves_note = _curves(points)
    summary = sweep.summary
    return render(
        "sweep.html.j2",
        [*charts, *curves],
        title=shown(summary.get("name", sweep.path.name), 100),
        scenario=shown(summary.get("scenario", "?"), 100),
        version=shown(summary.get("version", "?"), 40),
        counts=_counts(points),
        sentences=[
            *goals.of_sweep(summary, points.names),
            *_sentences(points),
            *map(as_sentence, seeds.of_sweep(sweep)),
        ],
        charts=charts,
        curves=curves,
        curves_note=curves_note,
        axes=points.short,
        metrics=[metric.title for metric in _listed(points)],
        rows=_rows(points),
        baseline=points.name(points.baseline),
        left_out=max(0, len(points.all) - len(points.numbers)),
        failures=_failures(sweep),
        methods=_methods(summary),
        rerun=f"eastwest sweep {shlex.quote(str(sweep.path / 'sweep.toml'))}",
        file=_text(sweep, "sweep.toml"),
    )


def _text(sweep: SweepResult, name: str) -> str:
    path = sweep.path / name
    return path.read_text(encoding="utf-8", errors="replace")[:200_000] if path.is_file() else ""


def _counts(points: Points) -> str:
    runs = points.sweep.summary.get("runs", {})
    seeds = points.sweep.summary.get("seeds", [])
    most = "up to " * bool(points.sweep.summary.get("adaptive"))
    many = f" × {most}{len(seeds)} seeds" if isinstance(seeds, list) and seeds else ""
    return (
        f"{units.count(len(points.all))} points{many}: {runs.get('done', '?')} of "
        f"{runs.get('planned', '?')} runs done, {runs.get('failed', '?')} failed"
    )


def _listed(points: Points) -> list[Metric]:
    """Return the metrics of the table: the headlines and others that differ between points."""
    shown_first = [m for m in points.metrics if m in points.wanted]
    others = [m for m in points.metrics if m not in shown_first]
    return (shown_first + [m for m in others if m.headline or _varies(points, m)])[:10]


def _varies(points: Points, metric: Metric) -> bool:
    return len({e.mean for e in points.of(metric).values()}) > 1


def _drawn(points: Points) -> list[Metric]:
    """Return the metrics with a chart: those that the sweep shows, then others that differ."""
    varying = [m for m in points.metrics if _varies(points, m)]
    return sorted(varying, key=lambda m: (m not in points.wanted, not m.headline))[:_MOST_CHARTS]


def _chart(points: Points, metric: Metric) -> Chart:
    """Return a chart of mean and interval of a metric at every point."""
    columns, series, places = points.layout
    found = points.of(metric)
    lows, highs = zip(*(estimate.reach for estimate in found.values()), strict=True)
    least, most = min(e.mean for e in found.values()), max(highs)
    unit = UNITS[metric.write]
    wide_range = least > 0 and most > 30 * least and min(lows) > 0
    best, worst = _extremes(found)
    chart = Chart(
        "metric-" + "-".join(metric.path).replace("/", "-"),
        f"{metric.title}: {metric.write(found[best].mean)} to {metric.write(found[worst].mean)}",
        f"Mean over the seeds of each point, bar: its {_confidence(points)} interval."
        + (" The axis is logarithmic." if wide_range else ""),
        Scale("linear", 0.0, len(columns), points.across),
        logarithmic(min(lows), most, "mean", unit) if wide_range else linear(highs, "mean", unit),
        legend=series,
        key="dot",
        css="sizes",
        wide=_needs_width(columns),
    )
    lines: dict[int, list[tuple[float, float]]] = {}
    drawn = []
    shift = min(0.14, 0.7 / max(1, len(series)))
    for point, estimate in found.items():
        column, number = places[point]
        aside = (number - (max(1, len(series)) - 1) / 2) * shift
        low, high = estimate.reach
        ends = (max(low, chart.y.low), estimate.mean, high)
        text = metric.write(estimate.mean)
        if None not in estimate.ends:
            text += f" ({metric.write(low)} – {metric.write(high)})"
        drawn.append(((column, aside, number), ends, text))
        lines.setdefault(number, []).append((column + 0.5 + aside, estimate.mean))
    chart.intervals(columns, _sparse(columns), drawn)
    if not points.is_named:  # cases have no order
        for number, path in lines.items():
            across, up = zip(*sorted(path), strict=True)
            chart.line(across, up, number)
    return chart


def _extremes(found: dict[int, Estimate]) -> tuple[int, int]:
    """Return the points with the lowest and the highest mean."""
    return min(found, key=lambda p: found[p].mean), max(found, key=lambda p: found[p].mean)


def _needs_width(columns: list[str]) -> bool:
    """Whether the labels of columns, or the columns themselves, need the full width of a page."""
    return len(columns) > 12 or sum(min(len(c), 14) + 2 for c in columns) > 72


def _factors(points: Points) -> list[Chart]:
    """Return a chart with the ratios of the sweep's shown metrics to their baselines."""
    wanted = [".".join(m.path) for m in points.wanted or _drawn(points)]
    there = [name for name in wanted if any(metric == name for metric, _ in points.compared)]
    series = [shown(words.shown(name)[1], 60) for name in there[:_MOST_SERIES]]
    factors = {
        key: [1 + part for part in (each.mean, *each.ends) if part is not None]
        for key, each in points.compared.items()
    }
    if not series:
        return []
    bases = points.sweep.comparisons.select("metric", "baseline").unique().iter_rows()
    factors |= {(metric, point): [1.0] for metric, point in bases}
    columns = [points.name(point) for point in points.numbers]
    chart = Chart(
        "factors",
        "What each case is of its baseline",
        f"Seed by seed, bar: its {_confidence(points)} interval.",
        Scale("linear", 0.0, len(columns), "case"),
        linear([max(v) for key, v in factors.items() if key[0] in there], "times", "times"),
        legend=series,
        key="dot",
        css="sizes",
        wide=True,
    )
    drawn = []
    for number, name in enumerate(there[:_MOST_SERIES]):
        for column, point in enumerate(points.numbers):
            values = factors.get((name, point))
            if values is not None:
                aside = (number - (len(series) - 1) / 2) * 0.14
                text = f"{values[0]:.2f} ×"
                if len(values) > 1:
                    text += f" ({min(values):.2f} – {max(values):.2f})"
                ends = (max(min(values), 0.0), values[0], max(values))
                drawn.append(((column, aside, number), ends, text))
    chart.intervals(columns, _sparse(columns), drawn)
    return [chart]


def _sparse(columns: list[str]) -> list[str]:
    """Return labels of columns, empty for some where there are too many."""
    every = -(-len(columns) // 12)
    return [shown(c, 14) if i % every == 0 else "" for i, c in enumerate(columns)]


def _confidence(points: Points) -> str:
    level = points.sweep.summary.get("confidence", 0.95)
    return units.percent(level if isinstance(level, float) else 0.95)


def _rows(points: Points) -> list[dict[str, Any]]:
    """Return one row for each point: settings, and means with the change against the baseline."""
    rows = []
    for point in points.numbers:
        cells: list[tuple[float | str, str, str, bool]] = []
        for metric in _listed(points):
            estimate = points.of(metric).get(point)
            if estimate is None:
                cells.append(("", "–", "", False))
                continue
            by = points.compared.get((".".join(metric.path), point))
            text = change(1 + by.mean) if by and by.mean and point != points.baseline else ""
            clear = by is not None and by.is_clear
            cells.append((estimate.mean, estimate.text(metric), text, clear))
        rows.append(
            {
                "point": point,
                "settings": points.settings[point],
                "cells": cells,
                "baseline": point == points.baseline,
            }
        )
    return rows


def _sentences(points: Points) -> list[str]:
    """Return sentences on where each headline is best and worst, and on clear differences."""
    said = []
    for metric in _drawn(points):
        if not metric.headline:
            continue
        found = points.of(metric)
        low, high = _extremes(found)
        name = ".".join(metric.path)
        against = [points.compared[name, p] for p in found if (name, p) in points.compared]
        clear = sum(each.is_clear for each in against)
        said.append(
            f"{metric.title}: from {found[low].text(metric)} ({points.name(low)}) to "
            f"{found[high].text(metric)} ({points.name(high)})"
            # A baseline of zero has no relative differences.
            + (f"; {_of(clear, len(against))} clearly from the baseline." if against else ".")
        )
    if said:
        said.append(
            "Clearly: the 95 % interval of the paired difference leaves out 0. Of many comparisons "
            "one in twenty does so by chance; nothing is corrected for that."
        )
    return said or ["Nothing differs between the points."]


def _of(some: int, of: int) -> str:
    if not some:
        return f"none of {of} points differs"
    return f"{some} of {of} points {'differs' if some == 1 else 'differ'}"


def _curves(points: Points) -> tuple[list[Chart], str]:
    """Return curves of some points, from runs in the store with their tables, and a note."""
    few = points.numbers
    if len(few) > spread.MOST_CURVES:
        step = (len(few) - 1) / (spread.MOST_CURVES - 1)
        few = [few[round(i * step)] for i in range(spread.MOST_CURVES)]
    seeds = points.sweep.summary.get("seeds") or [1]
    seed = seeds[0]
    named = []
    for point in few:
        try:
            result = points.sweep.run(point, seed)
            if (result.path / "flows.parquet").is_file():
                named.append((points.name(point), Facts(result)))
        except (KeyError, OSError, InputError):
            continue
    if len(named) < 2:
        return (
            [],
            'The store has no tables of these runs (keep = "tables"), so there are no curves.',
        )
    charts = spread.charts(named)
    fill_lines(charts)
    note = f"One run (seed {seed}) of {len(named)} points"
    return charts, note + (", spread over the sweep." if len(few) < len(points.numbers) else ".")


def _failures(sweep: SweepResult) -> list[list[str]]:
    limits = {"point": 20, "seed": 20, "settings": 200, "message": 400}
    return [
        [
            shown(failure.get(key, "?" if limit == 20 else ""), limit)
            for key, limit in limits.items()
        ]
        for failure in sweep.failures[:50]
        if isinstance(failure, dict)
    ]


def _methods(summary: dict[str, Any]) -> list[list[str]]:
    methods = summary.get("methods", {})
    if not isinstance(methods, dict):
        return []
    return [[shown(name, 60), shown(text, 400)] for name, text in methods.items()]
