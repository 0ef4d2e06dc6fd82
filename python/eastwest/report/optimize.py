"""Page about an optimisation: the recommended point and its reason, the front, all finalists."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any

from eastwest import units
from eastwest.optimize.folder import OptimizeResult
from eastwest.report.draw import UNITS, Chart, Scale, fill_lines, linear, logarithmic
from eastwest.report.page import render
from eastwest.sweep import seeds
from eastwest.views.front import GROUPS, group, interval, pairs
from eastwest.views.labels import as_sentence, plural, shown
from eastwest.views.metrics import KNOWN

_MOST_FINALISTS = 200
#: Order of the groups of points in the table: the group with 0 comes first.
_ORDER = dict(zip(GROUPS, (5, 4, 1, 2, 3, 0), strict=True))
_BY_ENDING: tuple[tuple[str, float, Callable[[float | None], str]], ...] = (
    ("_us", 1e-6, units.span),
    ("_s", 1.0, units.span),
    ("_j", 1.0, units.joules),
    ("_bps", 1.0, units.rate),
)


def optimize_page(result: OptimizeResult) -> str:
    """Return the HTML page about an optimisation."""
    summary = result.summary
    finalists = summary["finalists"][:_MOST_FINALISTS]
    charts = [_front(summary, finalists, *pair) for pair in pairs(summary) if finalists]
    fill_lines(charts)
    chosen = summary["recommended"]
    file = result.path / "optimize.toml"
    return render(
        "optimize.html.j2",
        charts,
        title=shown(summary.get("name", result.path.name), 100),
        scenario=shown(summary.get("scenario", "?"), 100),
        version=shown(summary.get("version", "?"), 40),
        counts=_counts(summary),
        reason=shown(summary["reason"], 2000),
        notes=[*map(as_sentence, seeds.of_optimisation(summary))],
        chosen=None if chosen is None else shown(chosen["name"], 300),
        settings=_settings(chosen),
        command=_command(result) if chosen is not None else "",
        changes=_changes(chosen or summary["closest"], summary),
        candidates=[
            [shown(c["name"], 100), shown(c["verdict"], 500), _against(c)]
            for c in summary["candidates"]
        ],
        charts=charts,
        headings=["point", *_headings(summary)],
        rows=_rows(summary, finalists),
        left_out=len(summary["finalists"]) - len(finalists),
        stages=_stages(summary),
        failures=[
            [shown(f["name"], 200), shown(f["message"], 400)] for f in summary["failed_points"]
        ],
        rerun=f"eastwest optimize {shlex.quote(str(file))} --force",
        file=file.read_text(encoding="utf-8", errors="replace")[:200_000] if file.is_file() else "",
    )


def _counts(summary: Mapping[str, Any]) -> str:
    runs = summary["runs"]
    return (
        f"{plural(summary['points'], 'point')} by {shown(summary['search']['method'], 60)}, "
        f"{plural(runs['done'], 'run')}, {units.count(runs['failed'])} failed"
    )


def _settings(chosen: Mapping[str, Any] | None) -> list[list[str]]:
    if chosen is None:
        return []
    return [[shown(path, 100), shown(value, 200)] for path, value in chosen["settings"].items()]


def _command(result: OptimizeResult) -> str:
    return f"eastwest run {shlex.quote(str(result.path / 'recommended.toml'))}"


def _change(told: Mapping[str, Any] | None) -> str:
    """Return a change against the baseline as text: ``+12.0 % (+3.0 to +20.0)``; ``–`` for None.

    ``told`` has ``mean``, ``low`` and ``high`` of the relative change (0.12 is +12 %).
    """
    if told is None:
        return "–"
    text = f"{100 * told['mean']:+.1f} %"
    if told["low"] is None or told["high"] is None:
        return text
    return f"{text} ({100 * told['low']:+.1f} to {100 * told['high']:+.1f})"


def _writer(metric: str) -> tuple[float, Callable[[float | None], str]]:
    """Return (factor, function) of a metric: the function formats the value times the factor.

    ``KNOWN`` has both for some metrics; for all others, the unit in the metric's name decides.
    """
    if metric in KNOWN:
        return KNOWN[metric].factor, KNOWN[metric].write
    for ending, factor, write in _BY_ENDING:
        if any(part.endswith(ending) for part in metric.split(".")):
            return factor, write
    return 1.0, units.count


def _value(metric: str, told: Mapping[str, Any]) -> str:
    factor, write = _writer(metric)
    return write(told["mean"] * factor)


def _changes(point: Mapping[str, Any] | None, summary: Mapping[str, Any]) -> list[list[str]]:
    """Return a row for each goal and limit of a point, as text; no rows for None.

    Columns: goal or limit, which values are better or whether the limit is kept, value, change
    against the baseline.
    """
    if point is None:
        return []
    rows = [
        [
            shown(goal["metric"], 80),
            "higher is better" if wanted["more"] else "lower is better",
            _value(goal["metric"], goal["value"]),
            _change(goal["change"]),
        ]
        for goal, wanted in zip(point["goals"], summary["goals"], strict=True)
    ]
    for limit in point["limits"]:
        word = "kept for certain" if limit["surely"] else "kept" if limit["kept"] else "missed"
        value = _value(limit["limit"].split(" ")[0], limit["value"])
        rows.append([shown(limit["limit"], 120), word, value, _change(limit["change"])])
    return rows


def _against(candidate: Mapping[str, Any]) -> str:
    changes = candidate["recommended_against_it"]
    return "; ".join(f"{shown(m, 80)} {_change(told)}" for m, told in changes.items()) or "–"


def _headings(summary: Mapping[str, Any]) -> list[str]:
    return [
        *(shown(goal["metric"], 60) for goal in summary["goals"]),
        *(shown(limit, 100) for limit in summary["limits"]),
        "score",
    ]


def _rows(
    summary: Mapping[str, Any], finalists: list[dict[str, Any]]
) -> list[tuple[str, str, list[tuple[float | str, str, str]]]]:
    """Return (name, group, cells) of each finalist; a cell is (value, value as text, change).

    There is a cell for each goal, for each limit, and for the score.
    """
    rows = []
    for point in sorted(finalists, key=lambda p: (_ORDER[group(p, summary)], p["score"])):
        cells: list[tuple[float | str, str, str]] = []
        for goal in point["goals"]:
            told = goal["value"]
            text = _value(goal["metric"], told)
            cells.append((told["mean"], text, _change(goal["change"])))
        for limit in point["limits"]:
            metric = limit["limit"].split(" ")[0]
            told = limit["value"]
            word = "" if limit["kept"] else " missed"
            cells.append((told["mean"], _value(metric, told), _change(limit["change"]) + word))
        cells.append((point["score"], f"{point['score']:.3f}", ""))
        rows.append((shown(point["name"], 200), group(point, summary), cells))
    return rows


def _stages(summary: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for stage in summary["stages"]:
        foretold = stage["foretold_next"]
        settings = (f"{shown(p, 80)} = {shown(v, 60)}" for p, v in stage["settings"].items())
        rows.append(
            [
                shown(stage["name"], 60),
                units.count(stage["points"]),
                units.count(len(stage["seeds"])),
                ", ".join(settings) or "–",
                "–" if foretold is None else f"{foretold:.2f}",
            ]
        )
    return rows


def _front(
    summary: Mapping[str, Any], finalists: list[dict[str, Any]], across: int, up: int
) -> Chart:
    names = [shown(summary["goals"][goal]["metric"], 60) for goal in (across, up)]
    scaled = []
    scales: list[Scale] = []
    for goal, name in zip((across, up), names, strict=True):
        factor, write = _writer(summary["goals"][goal]["metric"])
        values = [interval(point, goal, factor) for point in finalists]
        means, lows, highs = zip(*values, strict=True)
        low, high, unit = min(lows), max(highs), UNITS.get(write, "count")
        wide = low > 0 and min(means) > 0 and high > 4 * low
        scales.append(logarithmic(low, high, name, unit) if wide else linear([high], name, unit))
        scaled.append(values)
    chart = Chart(
        f"front-{across}-{up}",
        f"{names[1]} against {names[0]}: {plural(len(summary['front']), 'point')} on the front",
        "Means over the seeds of the last stage; bars are their confidence intervals. "
        + ", ".join(_wanted(summary["goals"][goal]) for goal in (across, up))
        + ".",
        scales[0],
        scales[1],
        height=320,
        legend=list(GROUPS),
        key="dot",
        css="sizes",
    )
    rows = []
    for point, (x, x_low, x_high), (y, y_low, y_high) in zip(finalists, *scaled, strict=True):
        name = group(point, summary)
        series = GROUPS.index(name)
        xs, ys = chart.points([x_low, x_high, x], [y, y, y])
        chart.add(f"whisker s{series}", f"M{xs[0]:.0f} {ys[0]:.1f}H{xs[1]:.0f}", series)
        chart.interval(x, y_low, y, y_high, series)
        rows.append([shown(point["name"], 120), name, chart.x.write(x), chart.y.write(y)])
    chart.data = {"type": "none"}
    chart.table = (["point", "is", *names], rows)
    return chart


def _wanted(goal: Mapping[str, Any]) -> str:
    return f"{'higher' if goal['more'] else 'lower'} {shown(goal['metric'], 60)} is better"
