"""Page about a sweep: means of every point, their intervals, and changes against the baseline."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from eastwest import units
from eastwest.errors import InputError
from eastwest.goals import early
from eastwest.notes import deadlines
from eastwest.report import spread
from eastwest.report.draw import (
    SHADES,
    UNITS,
    WIDTH,
    Chart,
    Scale,
    beside,
    characters,
    fill_lines,
    linear,
    logarithmic,
)
from eastwest.report.page import render
from eastwest.sweep import seeds, words
from eastwest.sweep.tables import SweepResult
from eastwest.sweep.values import told_settings
from eastwest.views import goals
from eastwest.views.facts import Facts
from eastwest.views.front import Trade, trade
from eastwest.views.labels import as_sentence, plural, shown
from eastwest.views.metrics import Metric, change
from eastwest.views.sweep import Estimate, Points

_MOST_SERIES = 6
#: Maximum number of points that a sentence names.
_MOST_NAMED = 4
#: Maximum number of charts of metrics that the sweep does not name in ``show``.
_MOST_OTHERS = 6
#: Maximum number of columns of metrics in the table, unless ``show`` of the sweep names more.
_MOST_COLUMNS = 8
#: Last parts of the paths of metrics that differ only in the statistic.
_STATISTICS = {"mean", "p50", "p99", "p999", "max"}
#: Ratio of the largest to the least mean from which an axis is logarithmic.
_LEAST_LOG = 30.0
#: Share of the upper end of an axis: the axis of a scatter chart does not begin at 0 if all values
#: are above this share.
_LEAST_SHARE = 0.4
#: Quotient of the largest and the least ratio to the baseline from which an axis is logarithmic.
_LEAST_LOG_RATIO = 8.0
#: End of a linear and of a logarithmic axis as a multiple of the largest mean; intervals beyond it
#: are cut.
_REACH, _LOG_REACH = 1.5, 3.0


def sweep_page(sweep: SweepResult) -> str:
    """Return the HTML page about a sweep."""
    points = Points(sweep)
    found = trade(points)
    main, others = _drawn(points)
    charts = [_chart(points, metric) for metric in main]
    if any(axis is not None for _, axis in sweep.columns):
        charts[:0] = _factors(points)
    more = [_chart(points, metric) for metric in others]
    for group in (charts, more):
        fill_lines(group)
    if found is not None:
        charts.append(_trade(points, found))
    curves, curves_note = _curves(points)
    summary = sweep.summary
    return render(
        "sweep.html.j2",
        [*charts, *more, *curves],
        title=shown(summary.get("name", sweep.path.name), 100),
        scenario=shown(summary.get("scenario", "?"), 100),
        version=shown(summary.get("version", "?"), 40),
        counts=_counts(points),
        sentences=[
            *goals.of_sweep(summary, points.names),
            *points.apart(),
            *_sentences(points, found),
            *map(as_sentence, _notes(sweep)),
        ],
        charts=charts,
        more=more,
        confidence=_confidence(points),
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


def _notes(sweep: SweepResult) -> list[str]:
    stopped = early.of_sweep(sweep.summary)
    return [*stopped, *deadlines.of_sweep(sweep), *seeds.of_sweep(sweep)]


def _text(sweep: SweepResult, name: str) -> str:
    path = sweep.path / name
    return path.read_text(encoding="utf-8", errors="replace")[:200_000] if path.is_file() else ""


def _counts(points: Points) -> str:
    runs = points.sweep.summary.get("runs", {})
    seeds = points.sweep.summary.get("seeds", [])
    most = "up to " * bool(points.sweep.summary.get("adaptive"))
    many = f" × {most}{plural(len(seeds), 'seed')}" if isinstance(seeds, list) and seeds else ""
    return (
        f"{plural(len(points.all), 'point')}{many}: {runs.get('done', '?')} of "
        f"{runs.get('planned', '?')} runs done, {runs.get('failed', '?')} failed"
    )


def _listed(points: Points) -> list[Metric]:
    """Return the metrics in the table: those in ``show`` of the sweep, then others that differ."""
    main, others = _drawn(points)
    bounds = {metric for metric, _ in points.least_values}
    constant = [
        m for m in points.wanted if m not in main and (points.of(m) or ".".join(m.path) in bounds)
    ]
    asked = main if points.wanted else []
    listed = [*asked, *constant, *(m for m in (*main, *others) if m not in asked)]
    return listed[: max(_MOST_COLUMNS, len(asked) + len(constant))]


def _varies(points: Points, metric: Metric) -> bool:
    """Whether the means of a metric, rounded as on the page, differ between points."""
    return len({metric.write(e.mean) for e in points.of(metric).values()}) > 1


def _drawn(points: Points) -> tuple[list[Metric], list[Metric]]:
    """Return two lists of metrics that differ between points: those that the sweep shows, others.

    If the sweep shows no metric, the first list has the headline metrics.
    """
    varying = [m for m in points.metrics if _varies(points, m)]
    main = [m for m in varying if m in points.wanted]
    if not points.wanted:
        main = [m for m in varying if m.headline]
    others = [m for m in varying if m not in main]
    # A metric comes last if the first list has another statistic of the quantity.
    known = {_quantity(m) for m in main}
    others.sort(key=lambda m: (_quantity(m) in known, not m.headline))
    return main, others[:_MOST_OTHERS]


def _quantity(metric: Metric) -> tuple[str, ...]:
    """Return the path of a metric without the statistic, such as ``p99``."""
    return metric.path[:-1] if metric.path[-1] in _STATISTICS else metric.path


def _chart(points: Points, metric: Metric) -> Chart:
    """Return a chart of the mean of a metric at every point, with confidence intervals."""
    columns, series, places = points.layout
    axis = points.axis
    found = points.of(metric)
    scale, remark = _range(found, metric)
    best, worst = _extremes(found)
    chart = Chart(
        "metric-" + "-".join(metric.path).replace("/", "-"),
        f"{metric.title}: {metric.write(found[best].mean)} to {metric.write(found[worst].mean)}",
        f"Mean over the seeds of each point; a bar is its {_confidence(points)} interval.{remark}",
        Scale("linear", 0.0, len(columns), axis.label),
        scale,
        legend=series,
        key="dot",
        css="sizes",
        wide=_needs_width(axis.texts),
        places=axis.places if axis.is_numeric else [],
    )
    lines: dict[int, list[tuple[float, float]]] = {}
    drawn = []
    shift = min(0.14, 0.7 / max(1, len(series)), 0.7 * axis.least_gap / max(1, len(series)))
    for point, estimate in found.items():
        column, number = places[point]
        aside = (number - (max(1, len(series)) - 1) / 2) * shift
        low, high = estimate.reach
        mean = max(estimate.mean, scale.low)
        # No metric is negative: a bar down to zero needs no arrow.
        ends = (max(low, scale.low) if scale.kind == "linear" else min(low, mean), mean, high)
        text = metric.write(estimate.mean)
        if None not in estimate.ends:
            text += f" ({metric.write(low)} – {metric.write(high)})"
        drawn.append(((column, aside, number), ends, text))
        lines.setdefault(number, []).append((axis.places[column] + aside, mean))
    texts = axis.texts if axis.is_numeric else _sparse(axis.texts, chart.wide)
    chart.intervals(columns, texts, drawn)
    if not points.is_named:  # cases have no order
        for number, path in lines.items():
            across, up = zip(*sorted(path), strict=True)
            chart.line(across, up, number)
    return chart


def _range(found: Mapping[int, Estimate], metric: Metric) -> tuple[Scale, str]:
    """Return the axis for estimates of a metric, and a remark on the axis for the chart's note.

    The means determine the range of the axis, so that one wide interval does not flatten the
    others.
    """
    unit = UNITS[metric.write]
    means = [estimate.mean for estimate in found.values()]
    highs = [estimate.reach[1] for estimate in found.values()]
    positive = [mean for mean in means if mean > 0]
    remark = ""
    if min(means) >= 0 and positive and max(positive) > _LEAST_LOG * min(positive):
        floor = min(positive) / _LOG_REACH
        low = min(max(e.reach[0], floor) for e in found.values() if e.mean > 0)
        high = min(max(highs), _LOG_REACH * max(means))
        # The axis is longer by 4 % at each end, so that the dots there are complete.
        scale = logarithmic(low / (high / low) ** 0.04, high * (high / low) ** 0.04, "mean", unit)
        remark = " The axis is logarithmic."
        if len(positive) < len(means):
            remark += " Means of 0 are at its lower end."
        beyond = [e for e in found.values() if e.mean > 0 and e.reach[0] < scale.low]
    else:
        scale = linear([min(max(highs), max(_REACH * max(means), 0.0))], "mean", unit)
        beyond = []
    beyond = [e for e in found.values() if e in beyond or e.reach[1] > scale.high]
    if beyond:
        most = metric.write(max(estimate.reach[1] for estimate in beyond))
        intervals = "interval reaches" if len(beyond) == 1 else "intervals reach"
        remark += (
            f" {units.count(len(beyond))} {intervals} beyond the axis (up to {most}): "
            "an arrow ends the bar."
        )
    return scale, remark


def _trade(points: Points, found: Trade) -> Chart:
    """Return a chart of two metrics against each other, with a line through the front.

    The front are the points that no other point beats in both means.
    """
    _, series, places = points.layout
    values = {p: (points.of(found.across)[p], points.of(found.up)[p]) for p in found.means}
    scales = []
    for which, metric in enumerate((found.across, found.up)):
        own = {p: both[which] for p, both in values.items()}
        scale, _ = _range(own, metric)
        low = min(estimate.reach[0] for estimate in own.values())
        if scale.kind == "linear" and low > _LEAST_SHARE * scale.high:
            scale = replace(scale, low=low - 0.06 * (scale.high - low))
        scales.append(replace(scale, label=metric.title))
    front = found.front
    good = "to the right" if found.more else "to the left"
    chart = Chart(
        "trade",
        f"{found.up.title} against {found.across.title}",
        f"Means over the seeds; bars are their {_confidence(points)} intervals, cut at the edges "
        f"of the plot. Points below and {good} are better. The line joins the front: points that "
        "no other point beats in both means.",
        scales[0],
        scales[1],
        height=300,
        wide=True,
        legend=series,
        key="dot",
        css="sizes",
    )
    spots: list[list[float]] = []
    cells: list[list[list[Any]]] = []
    rows, names, short = [], [], []
    for point, (x, y) in values.items():
        number = places[point][1]
        (x_low, x_high), (y_low, y_high) = x.reach, y.reach
        ends = np.clip([x_low, x_high], chart.x.low, chart.x.high)
        xs, ys = chart.points([*ends, x.mean], [y.mean] * 3)
        chart.add(f"whisker s{number}", f"M{xs[0]:.0f} {ys[0]:.1f}H{xs[1]:.0f}", number)
        chart.interval(x.mean, max(y_low, chart.y.low), y.mean, y_high, number)
        name = points.name(point)
        names.append(name)
        short.append(points.column_name(point))
        spots.append([round(float(xs[2]) / WIDTH, 4), round(float(ys[2]), 1)])
        both = [x.text(found.across), y.text(found.up)]
        titles = (found.across.title, found.up.title)
        cells.append([[title, text, number] for title, text in zip(titles, both, strict=True)])
        rows.append([name, "on the front" if point in front else "beaten", *both])
    across, up = zip(*(found.means[p] for p in front), strict=True)
    if len(front) > 1:
        chart.line(across, up, len(series) % SHADES if series else 1)
    chart.data = {"type": "spots", "spots": spots, "names": names, "cells": cells}
    chart.table = (["point", "is", found.across.title, found.up.title], rows)
    chart.texts = beside(list(zip(spots, short, strict=True)), chart.height)
    return chart


def _counted(some: int, of: int) -> str:
    return f"{units.count(some)} of {plural(of, 'point')}"


def _extremes(found: dict[int, Estimate]) -> tuple[int, int]:
    """Return the numbers of the points with the lowest and with the highest mean."""
    return min(found, key=lambda p: found[p].mean), max(found, key=lambda p: found[p].mean)


def _needs_width(columns: list[str]) -> bool:
    """Whether the labels of columns, or the columns themselves, need the full width of a page."""
    return len(columns) > 12 or sum(min(len(c), 14) + 2 for c in columns) > 72


def _factors(points: Points) -> list[Chart]:
    """Return a list with one chart of the ratios of metrics to the baseline, or an empty list.

    The metrics are those that the sweep shows.
    """
    main, others = _drawn(points)
    wanted = [".".join(m.path) for m in points.wanted or (*main, *others)]
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
    scale = _ratios([v for key, v in factors.items() if key[0] in there])
    chart = Chart(
        "factors",
        "Ratio of each case to its baseline",
        f"Mean of the ratios seed by seed; a bar is its {_confidence(points)} interval."
        + (" The axis is logarithmic." if scale.kind == "log" else ""),
        Scale("linear", 0.0, len(columns), "case"),
        scale,
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
                floor = max(0.0, scale.low)
                ends = (max(min(values), floor), max(values[0], floor), max(values))
                drawn.append(((column, aside, number), ends, text))
    chart.intervals(columns, _sparse(columns, chart.wide), drawn)
    return [chart]


def _ratios(factors: list[list[float]]) -> Scale:
    """Return an axis for ratios to the baseline.

    A list in ``factors`` has a ratio and the ends of its interval, if there is one. The axis has
    room for all ratios, but not for long intervals.
    """
    ratios = [values[0] for values in factors]
    top = min(max(max(v) for v in factors), _REACH * max(ratios))
    if min(ratios) > 0 and max(ratios) > _LEAST_LOG_RATIO * min(ratios):
        return logarithmic(min(ratios) / 1.3, top, "times", "times")
    return linear([top], "times", "times")


def _sparse(columns: list[str], wide: bool) -> list[str]:
    """Return labels of columns, cut to the room of a label; of more than 12, some are empty."""
    every = -(-len(columns) // 12)
    room = characters(wide) * every // max(1, len(columns)) - 1
    return [shown(c, max(room, 8)) if i % every == 0 else "" for i, c in enumerate(columns)]


def _confidence(points: Points) -> str:
    """Return the confidence of one interval as text: with a rule that adds seeds, its level."""
    summary = points.sweep.summary
    level = (summary.get("adaptive") or {}).get("level", summary.get("confidence", 0.95))
    return units.percent(level if isinstance(level, float) else 0.95)


def _rows(points: Points) -> list[dict[str, Any]]:
    """Return a mapping for each point: number, settings, cells, and whether it is the baseline.

    A cell has, for a metric: mean (or a lower bound, if runs were stopped early), mean as text,
    interval, change against the baseline, and whether this change is clear.
    """
    rows = []
    for point in points.numbers:
        cells: list[tuple[float | str, str, str, str, bool]] = []
        for metric in _listed(points):
            estimate = points.of(metric).get(point)
            if estimate is None:
                bound = points.least_values.get((".".join(metric.path), point))
                text = "–" if bound is None else f"≥ {metric.write(bound)}"
                cells.append(("" if bound is None else bound, text, "", "", False))
                continue
            by = points.compared.get((".".join(metric.path), point))
            changed = change(1 + by.mean) if by and by.mean and point != points.baseline else ""
            clear = by is not None and by.is_clear
            said = metric.write(estimate.mean), estimate.width(metric)
            cells.append((estimate.mean, *said, changed, clear))
        rows.append(
            {
                "point": point,
                "settings": points.settings[point],
                "cells": cells,
                "baseline": point == points.baseline,
            }
        )
    return rows


def _sentences(points: Points, found: Trade | None) -> list[str]:
    """Return the sentences at the top of the page.

    The sentences are about the range of each metric, clear differences from the baseline, and the
    front.
    """
    said = []
    main, others = _drawn(points)
    for metric in main or [m for m in others if m.headline]:
        if pair := _pair(points, metric):
            said.append(pair + _lacking(points, metric))
            continue
        low, high = _extremes(points.of(metric))
        said.append(
            f"{metric.title}: from {points.of(metric)[low].text(metric)} ({points.name(low)}) to "
            f"{points.of(metric)[high].text(metric)} ({points.name(high)})"
            + _against(points, metric)
            + _lacking(points, metric)
        )
    compared = any("baseline" in s or s.endswith(_CLEAR) for s in said)
    for metric in points.wanted:
        values = points.of(metric)
        if values and metric not in main:
            value = metric.write(next(iter(values.values())).mean)
            where = "every point"
            if len(values) < len(points.all):
                where = _counted(len(values), len(points.all))
            elif (points.sweep.summary.get("points") or 0) > len(points.all):
                where = "every point that has a result"
            said.append(f"{metric.title}: {value} at {where}.{_lacking(points, metric)}")
    if found is not None:
        said.append(_front(points, found))
    if any(m.path[-1] in _PERCENTILES for m in main) and points.sweep.points["n"].max() != 1:
        said.append(
            "A percentile of a point is the mean of the percentiles of its runs, so that single "
            "runs can be above it."
        )
    if compared:
        said.append(
            f"A difference is clear if the {_confidence(points)} interval of the "
            f"difference to the baseline ({points.name(points.baseline)}), seed by "
            "seed, does not include 0. Among many comparisons, a few are clear by "
            "chance only; this is not corrected."
        )
    return said or ["Nothing differs between the points."]


def _lacking(points: Points, metric: Metric) -> str:
    """Return a sentence on the points without a value of a metric; empty if there are none."""
    found = points.of(metric)
    lacking = [point for point in points.all if point not in found]
    if not lacking or not found:
        return ""
    named = ", ".join(points.name(point) for point in lacking[:_MOST_NAMED])
    rest = len(lacking) - _MOST_NAMED
    return f" There is no value at {named}" + (f", and {rest} more." if rest > 0 else ".")


#: Statistics of a measure that are percentiles within a run.
_PERCENTILES = {"p50", "p99", "p999"}
#: Ends of sentences on a difference from the baseline.
_CLEAR = ("clear.", "interval.")


def _pair(points: Points, metric: Metric) -> str:
    """Return a sentence on a metric at the two points of a sweep, and on their difference.

    The text is empty if the sweep does not have exactly two points with the metric.
    """
    found = points.of(metric)
    if len(points.all) != 2 or len(found) != 2:
        return ""
    base = points.baseline
    other = next(p for p in found if p != base)
    values = ", ".join(f"{e.text(metric)} ({points.name(p)})" for p, e in found.items())
    by = points.difference(metric, other)
    if by is None:
        return f"{metric.title}: {values}."
    against = f"{points.name(other)} against {points.name(base)}"
    change = _signed(metric, by.mean)
    if by.low is None or by.high is None:
        return f"{metric.title}: {values}; {against}: {change}, one run each, without an interval."
    ends = f"{_signed(metric, by.low)} to {_signed(metric, by.high)}"
    return f"{metric.title}: {values}; {against}: {change} ({ends}), " + (
        "clear." if by.is_clear else "not clear."
    )


def _signed(metric: Metric, value: float) -> str:
    """Return a difference of a metric as text with sign and unit: ``+1.2 ms``."""
    return f"{'+' if value >= 0 else '−'}{metric.write(abs(value))}"


def _front(points: Points, found: Trade) -> str:
    """Return a sentence on the points that no other point beats in two metrics (the front)."""
    both = f"{found.up.title} and {found.across.title}"
    front = found.front
    if len(front) == 1:
        return f"{points.name(front[0])} is the best point in both {both}."
    if len(front) == len(found.means):
        return f"No point is better than another in both {both}: one is traded for the other."
    named = "; ".join(points.name(p) for p in front[:_MOST_NAMED])
    rest = len(front) - _MOST_NAMED
    return (
        f"{_counted(len(front), len(found.means))} are on the front of {both} (no other point is "
        f"better in both means): {named}" + (f"; and {rest} more." if rest > 0 else ".")
    )


#: Ratio of the largest to the smallest mean from which a sentence gives the reason why no point
#: differs clearly.
_WIDE = 1.5


def _against(points: Points, metric: Metric) -> str:
    """Return the end of a sentence on a metric: at how many points it differs clearly."""
    name = ".".join(metric.path)
    found = [points.compared[name, p] for p in points.of(metric) if (name, p) in points.compared]
    # If the baseline is 0, there are no relative differences.
    if not found:
        return "."
    clear = sum(each.is_clear for each in found)
    means = [each.mean for each in points.of(metric).values()]
    if not clear and min(means) > 0 and max(means) >= _WIDE * min(means):
        seeds = len(points.sweep.summary.get("seeds") or [])
        return (
            f"; {_of(clear, len(found))} clearly from the baseline, because the metric varies too "
            f"much between the seeds ({seeds} at most): use more seeds."
        )
    return f"; {_of(clear, len(found))} clearly from the baseline."


def _of(some: int, of: int) -> str:
    if not some:
        return f"none of {plural(of, 'point')} differs"
    return f"{some} of {plural(of, 'point')} {'differs' if some == 1 else 'differ'}"


def _curves(points: Points) -> tuple[list[Chart], str]:
    """Return charts of distributions, with a curve for each of up to six points, and a note.

    Each curve is from the point's run with the first seed, if the store has the tables of this run.
    Without such runs, there are no charts, and the note has the reason.
    """
    few = points.numbers
    warm_up_s = float(points.sweep.summary.get("warm_up_s") or 0.0)
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
                named.append((points.name(point), Facts(result, warm_up_s)))
        except (KeyError, OSError, InputError):
            continue
    if len(named) < 2:
        return (
            [],
            "There are no curves, because the store has no tables of these runs. With keep = "
            "“tables” in the sweep file, eastwest sweep runs all of them again and stores the "
            "tables.",
        )
    charts = spread.charts(named)
    fill_lines(charts)
    note = f"One run (seed {seed}) of {len(named)} points"
    note += ", evenly chosen from the sweep." if len(few) < len(points.numbers) else "."
    if warm_up_s:
        note += (
            f" Flows, jobs and exchanges are those that start after the warm-up of "
            f"{units.span(warm_up_s)}; packets are counted over the whole run."
        )
    return charts, note


def _failures(sweep: SweepResult) -> list[list[str]]:
    limits = {"point": 20, "seed": 20, "settings": 200, "message": 400}
    rows = []
    for failure in sweep.failures[:50]:
        if isinstance(failure, dict):
            told = {**failure, "settings": told_settings(failure.get("settings"))}
            cells = (
                (told.get(key, "?" if most == 20 else ""), most) for key, most in limits.items()
            )
            rows.append([shown(cell, most) for cell, most in cells])
    return rows


def _methods(summary: dict[str, Any]) -> list[list[str]]:
    methods = summary.get("methods", {})
    if not isinstance(methods, dict):
        return []
    return [[shown(name, 60), shown(text, 400)] for name, text in methods.items()]
