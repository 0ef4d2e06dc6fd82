"""Page about a sweep: every point with its interval over the seeds, and its change."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from eastwest import units
from eastwest.errors import InputError
from eastwest.report import spread
from eastwest.report.compare import METRICS, Metric, change, told
from eastwest.report.draw import WRITERS, Chart, Scale, linear, logarithmic
from eastwest.report.page import render
from eastwest.report.tables import Facts, shown
from eastwest.sweep import words
from eastwest.sweep.tables import SweepResult

#: Most points that are drawn and listed; the tables in the folder have all.
MOST_POINTS = 120
_MOST_SERIES = 6
_MOST_CHARTS = 8


@dataclass(frozen=True)
class Estimate:
    """Mean of a metric over the seeds of a point, with its interval where there is one."""

    mean: float
    low: float | None
    high: float | None
    seeds: int

    def text(self, metric: Metric) -> str:
        """Return the mean, and half the interval's width as a share of it, as text."""
        said = metric.write(self.mean)
        if self.low is None or self.high is None or not self.mean:
            return said
        share = 50 * (self.high - self.low) / abs(self.mean)
        return f"{said} ± {share:.{0 if share >= 9.5 else 1}f} %"


class Points:
    """Points of a sweep, their settings as text, and estimates of metrics."""

    def __init__(self, sweep: SweepResult) -> None:
        self.sweep = sweep
        self.table = sweep.points
        self.baseline = int(sweep.summary.get("baseline", 0))
        head = self.table.unique("point", maintain_order=True).sort("point")
        self.all = head["point"].to_list()
        self.numbers = self.all[:MOST_POINTS]
        #: Paths as in the tables, and ``case`` for each axis with names.
        self.axes = [
            path if axis is not None or path in head.columns else f"set.{path}"
            for path, axis in sweep.columns
        ]
        self.settings = {
            row["point"]: self._settings(row)
            for row in head.head(MOST_POINTS).iter_rows(named=True)
        }

    def _settings(self, row: Mapping[str, Any]) -> list[str]:
        """Return the value or name of a point along each axis."""
        names = self.sweep.names(row["point"])
        pairs = zip(self.axes, self.sweep.columns, strict=True)
        return [
            shown(row[column] if axis is None else names[axis], 40) for column, (_, axis) in pairs
        ]

    @property
    def is_named(self) -> bool:
        """Whether the horizontal axis has the names of cases."""
        return self.across == "case"

    @cached_property
    def short(self) -> list[str]:
        """Names of the axes: the last parts of their paths, if these differ."""
        last = [axis.rsplit(".", 1)[-1] for axis in self.axes]
        return [shown(n, 40) for n in (last if len(set(last)) == len(last) else self.axes)]

    def name(self, point: int) -> str:
        """Return the settings of a point as text."""
        plain = [axis is None for _, axis in self.sweep.columns]
        words = zip(self.short, plain, self.settings.get(point, []), strict=False)
        said = [f"{axis} {value}" if own else value for axis, own, value in words]
        return ", ".join(said) or f"point {point}"

    @cached_property
    def estimates(self) -> dict[tuple[str, int], Estimate]:
        """Estimates by metric and point, in the units in which metrics are shown."""
        factors = {".".join(m.path): m.factor for m in METRICS}
        rows = self.table.filter(
            pl.col("metric").is_in(list(factors)) & pl.col("point").is_in(self.numbers)
        ).select("metric", "point", "mean", "low", "high", "n")
        return {
            (metric, point): Estimate(
                mean * factors[metric],
                _scaled(low, factors[metric]),
                _scaled(high, factors[metric]),
                n,
            )
            for metric, point, mean, low, high, n in rows.iter_rows()
            if mean is not None and math.isfinite(mean)
        }

    def of(self, metric: Metric) -> dict[int, Estimate]:
        """Return the estimates of a metric by point."""
        name = ".".join(metric.path)
        return {p: self.estimates[name, p] for p in self.numbers if (name, p) in self.estimates}

    @cached_property
    def metrics(self) -> list[Metric]:
        """Metrics that are not zero everywhere; those of energy only where links slept."""
        share = next(m for m in METRICS if m.path == ("energy_j", "of_always_on"))
        worth = told(estimate.mean for estimate in self.of(share).values())
        return [m for m in worth if any(e.mean for e in self.of(m).values())]

    @cached_property
    def layout(self) -> tuple[list[str], list[str], dict[int, tuple[int, int]]]:
        """Columns, series, and the place of each point: the axis with most values is horizontal."""
        columns = [list(dict.fromkeys(v)) for v in zip(*self.settings.values(), strict=True)]
        if columns:
            across = max(range(len(columns)), key=lambda i: len(columns[i]))
            others = {
                p: ", ".join(
                    f"{axis} {value}"
                    for i, (axis, value) in enumerate(zip(self.short, row, strict=True))
                    if i != across
                )
                for p, row in self.settings.items()
            }
            series = list(dict.fromkeys(others.values()))
            places = {
                p: (columns[across].index(row[across]), series.index(others[p]))
                for p, row in self.settings.items()
            }
            if len(series) <= _MOST_SERIES and len(set(places.values())) == len(places):
                return columns[across], series if len(columns) > 1 else [], places
        return (
            [str(p) for p in self.numbers],
            [],
            {p: (place, 0) for place, p in enumerate(self.numbers)},
        )

    @cached_property
    def across(self) -> str:
        """Name of the horizontal axis of the charts."""
        columns, _, _ = self.layout
        for place, axis in enumerate(self.axes):
            if {row[place] for row in self.settings.values()} == set(columns):
                return shown(axis, 60)
        return "point"


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None or not math.isfinite(value) else value * factor


def sweep_page(sweep: SweepResult) -> str:
    """Return the page about a sweep."""
    points = Points(sweep)
    charts = [_chart(points, metric) for metric in _drawn(points)]
    if any(axis is not None for _, axis in sweep.columns):
        charts[:0] = _factors(points)
    if len(charts) % 2:
        charts[-1].wide = True
    curves, curves_note = _curves(points)
    summary = sweep.summary
    return render(
        "sweep.html.j2",
        {"charts": {c.name: c.script() for c in [*charts, *curves]}, "topology": None},
        title=shown(summary.get("name", sweep.path.name), 100),
        scenario=shown(summary.get("scenario", "?"), 100),
        version=shown(summary.get("version", "?"), 40),
        counts=_counts(points),
        sentences=_sentences(points),
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
    return [m for m in points.metrics if m.headline or _varies(points, m)][:10]


def _varies(points: Points, metric: Metric) -> bool:
    return len({e.mean for e in points.of(metric).values()}) > 1


def _drawn(points: Points) -> list[Metric]:
    varying = [m for m in points.metrics if _varies(points, m)]
    return sorted(varying, key=lambda m: not m.headline)[:_MOST_CHARTS]


_UNITS = {write: name for name, write in WRITERS.items()}


def _chart(points: Points, metric: Metric) -> Chart:
    """Return a chart of mean and interval of a metric at every point."""
    columns, series, places = points.layout
    found = points.of(metric)
    lows = [e.low if e.low is not None else e.mean for e in found.values()]
    highs = [e.high if e.high is not None else e.mean for e in found.values()]
    least, most = min(e.mean for e in found.values()), max(highs)
    unit = _UNITS[metric.write]
    wide_range = least > 0 and most > 30 * least and min(lows) > 0
    best = min(found, key=lambda p: found[p].mean)
    worst = max(found, key=lambda p: found[p].mean)
    chart = Chart(
        "metric-" + "-".join(metric.path),
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
    cells: list[list[list[Any]]] = [[] for _ in columns]
    lines: dict[int, list[tuple[float, float]]] = {}
    shift = min(0.14, 0.7 / max(1, len(series)))
    for point, estimate in found.items():
        column, number = places[point]
        at = column + 0.5 + (number - (max(1, len(series)) - 1) / 2) * shift
        low = estimate.low if estimate.low is not None else estimate.mean
        high = estimate.high if estimate.high is not None else estimate.mean
        x, y = chart.points([at] * 3, [max(low, chart.y.low), estimate.mean, high])
        chart.add(f"whisker s{number}", f"M{x[0]:.0f} {y[0]:.1f}V{y[2]:.1f}", number)
        chart.dots([at], [estimate.mean], number, "dots big")
        lines.setdefault(number, []).append((at, estimate.mean))
        text = metric.write(estimate.mean)
        if estimate.low is not None and estimate.high is not None:
            text += f" ({metric.write(estimate.low)} – {metric.write(estimate.high)})"
        cells[column].append([series[number] if series else "mean", text, number])
    for number, path in lines.items():
        path.sort()
        if not points.is_named:  # cases have no order
            chart.line([x for x, _ in path], [y for _, y in path], number)
    chart.data = {"type": "cells", "categories": _sparse(columns), "heads": columns, "cells": cells}
    return chart


def _needs_width(columns: list[str]) -> bool:
    """Whether the labels of columns, or the columns themselves, need the full width of a page."""
    return len(columns) > 12 or sum(min(len(c), 14) + 2 for c in columns) > 72


def _factors(points: Points) -> list[Chart]:
    """Return a chart with the ratios of the sweep's shown metrics to their baselines."""
    compared = _compared(points)
    wanted = points.sweep.summary.get("show") or [".".join(m.path) for m in _drawn(points)]
    there = [name for name in wanted if any(metric == name for metric, _ in compared)]
    series = [shown(words.shown(name)[1], 60) for name in there[:_MOST_SERIES]]
    factors = {key: [1 + part for part in row if part is not None] for key, row in compared.items()}
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
    cells: list[list[list[Any]]] = [[] for _ in columns]
    for number, name in enumerate(there[:_MOST_SERIES]):
        for column, point in enumerate(points.numbers):
            values = factors.get((name, point))
            if values is None:
                continue
            at = column + 0.5 + (number - (len(series) - 1) / 2) * 0.14
            x, y = chart.points([at] * 2, [max(min(values), 0.0), max(values)])
            chart.add(f"whisker s{number}", f"M{x[0]:.0f} {y[0]:.1f}V{y[1]:.1f}", number)
            chart.dots([at], [values[0]], number, "dots big")
            text = f"{values[0]:.2f} ×"
            if len(values) > 1:
                text += f" ({min(values):.2f} – {max(values):.2f})"
            cells[column].append([series[number], text, number])
    chart.data = {"type": "cells", "categories": _sparse(columns), "heads": columns, "cells": cells}
    return [chart]


def _sparse(columns: list[str]) -> list[str]:
    """Return labels of columns, empty for some where there are too many."""
    every = -(-len(columns) // 12)
    return [shown(c, 14) if i % every == 0 else "" for i, c in enumerate(columns)]


def _confidence(points: Points) -> str:
    level = points.sweep.summary.get("confidence", 0.95)
    return units.percent(level if isinstance(level, float) else 0.95)


def _compared(points: Points) -> dict[tuple[str, int], tuple[float, float | None, float | None]]:
    """Return the relative difference to the baseline by metric and point, with its interval."""
    rows = points.sweep.comparisons.filter(pl.col("point").is_in(points.numbers)).select(
        "metric", "point", "difference", "low", "high", "baseline_mean"
    )
    found = {}
    for metric, point, difference, low, high, base in rows.iter_rows():
        if base and difference is not None and math.isfinite(difference):
            scale = abs(base)
            found[metric, point] = (
                difference / scale,
                _scaled(low, 1 / scale),
                _scaled(high, 1 / scale),
            )
    return found


def _rows(points: Points) -> list[dict[str, Any]]:
    """Return one row for each point: settings, and means with the change against the baseline."""
    compared = _compared(points)
    rows = []
    for point in points.numbers:
        cells: list[tuple[float | str, str, str, bool]] = []
        for metric in _listed(points):
            estimate = points.of(metric).get(point)
            if estimate is None:
                cells.append(("", "–", "", False))
                continue
            by, low, high = compared.get((".".join(metric.path), point), (0.0, None, None))
            clear = low is not None and high is not None and (low > 0 or high < 0)
            text = change(1 + by) if by and point != points.baseline else ""
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
    compared = _compared(points)
    for metric in _drawn(points):
        if not metric.headline:
            continue
        found = points.of(metric)
        low, high = (
            min(found, key=lambda p: found[p].mean),
            max(found, key=lambda p: found[p].mean),
        )
        name = ".".join(metric.path)
        against = [compared[name, p] for p in found if (name, p) in compared]
        clear = sum(
            1 for _, a, b in against if a is not None and b is not None and (a > 0 or b < 0)
        )
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
    if len(charts) % 2:
        charts[-1].wide = True
    note = f"One run (seed {seed}) of {len(named)} points"
    return charts, note + (", spread over the sweep." if len(few) < len(points.numbers) else ".")


def _failures(sweep: SweepResult) -> list[list[str]]:
    rows = []
    for failure in sweep.failures[:50]:
        if isinstance(failure, dict):
            rows.append(
                [
                    shown(failure.get("point", "?"), 20),
                    shown(failure.get("seed", "?"), 20),
                    shown(failure.get("settings", ""), 200),
                    shown(failure.get("message", ""), 400),
                ]
            )
    return rows


def _methods(summary: dict[str, Any]) -> list[list[str]]:
    methods = summary.get("methods", {})
    if not isinstance(methods, dict):
        return []
    return [[shown(name, 60), shown(text, 400)] for name, text in methods.items()]
