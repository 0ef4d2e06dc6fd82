"""Page about an optimisation: the recommended point and its reason, the front, all finalists."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

from eastwest import units
from eastwest.optimize.folder import OptimizeResult
from eastwest.report.compare import METRICS
from eastwest.report.draw import WRITERS, Chart, linear, logarithmic
from eastwest.report.page import render
from eastwest.report.tables import shown

_MOST_FINALISTS = 200
_MOST_GOALS = 3
#: Groups of points with their symbols, in the order of the legend.
_GROUPS = (
    "misses a limit",
    "keeps the limits",
    "on the front",
    "candidate",
    "baseline",
    "recommended",
)
#: Rank of each group in the table.
_ORDER = (5, 4, 1, 2, 3, 0)
_UNITS = {write: name for name, write in WRITERS.items()}
_KNOWN = {".".join(m.path): (m.factor, m.write) for m in METRICS}
_BY_ENDING: tuple[tuple[str, float, Callable[[float | None], str]], ...] = (
    ("_us", 1e-6, units.span),
    ("_s", 1.0, units.span),
    ("_j", 1.0, units.joules),
    ("_bps", 1.0, units.rate),
)


def optimize_page(result: OptimizeResult) -> str:
    """Return the page about an optimisation."""
    summary = result.summary
    finalists = summary["finalists"][:_MOST_FINALISTS]
    charts = _charts(summary, finalists)
    if len(charts) % 2:
        charts[-1].wide = True
    chosen = summary["recommended"]
    file = result.path / "optimize.toml"
    return render(
        "optimize.html.j2",
        {"charts": {c.name: c.script() for c in charts}, "topology": None},
        title=shown(summary.get("name", result.path.name), 100),
        scenario=shown(summary.get("scenario", "?"), 100),
        version=shown(summary.get("version", "?"), 40),
        counts=_counts(summary),
        reason=shown(summary["reason"], 2000),
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
        f"{units.count(summary['points'])} points by {shown(summary['search']['method'], 60)}, "
        f"{units.count(runs['done'])} runs, {units.count(runs['failed'])} failed"
    )


def _settings(chosen: Mapping[str, Any] | None) -> list[list[str]]:
    if chosen is None:
        return []
    return [[shown(path, 100), shown(value, 200)] for path, value in chosen["settings"].items()]


def _command(result: OptimizeResult) -> str:
    return f"eastwest run {shlex.quote(str(result.path / 'recommended.toml'))}"


def _change(told: Mapping[str, Any] | None) -> str:
    """Return a change against the baseline, with its interval, as text."""
    if told is None:
        return "–"
    text = f"{100 * told['mean']:+.1f} %"
    if told["low"] is None or told["high"] is None:
        return text
    return f"{text} ({100 * told['low']:+.1f} to {100 * told['high']:+.1f})"


def _writer(metric: str) -> tuple[float, Callable[[float | None], str]]:
    """Return factor and format of a metric: from the comparison, or by the unit in its name."""
    if metric in _KNOWN:
        return _KNOWN[metric]
    for ending, factor, write in _BY_ENDING:
        if any(part.endswith(ending) for part in metric.split(".")):
            return factor, write
    return 1.0, units.count


def _value(metric: str, told: Mapping[str, Any]) -> str:
    factor, write = _writer(metric)
    return write(told["mean"] * factor)


def _changes(point: Mapping[str, Any] | None, summary: Mapping[str, Any]) -> list[list[str]]:
    """Return rows with goals and limits of a point and their changes, as text."""
    if point is None:
        return []
    rows = [
        [
            shown(goal["metric"], 80),
            "to be more" if wanted["more"] else "to be less",
            _value(goal["metric"], goal["value"]),
            _change(goal["change"]),
        ]
        for goal, wanted in zip(point["goals"], summary["goals"], strict=True)
    ]
    for limit in point["limits"]:
        word = "kept for certain" if limit["surely"] else "kept" if limit["kept"] else "missed"
        metric = limit["limit"].split(" ")[0]
        rows.append(
            [
                shown(limit["limit"], 120),
                word,
                _value(metric, limit["value"]),
                _change(limit["change"]),
            ]
        )
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


def _group(point: Mapping[str, Any], summary: Mapping[str, Any]) -> int:
    chosen = summary["recommended"]
    if chosen is not None and point["point"] == chosen["point"]:
        return 5
    if point["origin"] == "baseline":
        return 4
    if point["origin"] == "candidate":
        return 3
    if point["point"] in summary["front"]:
        return 2
    return 1 if all(limit["kept"] for limit in point["limits"]) else 0


def _rows(
    summary: Mapping[str, Any], finalists: list[dict[str, Any]]
) -> list[tuple[str, str, list[tuple[float | str, str, str]]]]:
    """Return rows of finalists: name, description, and goals and limits with their changes."""
    rows = []
    for point in sorted(finalists, key=lambda p: (_ORDER[_group(p, summary)], p["score"])):
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
        rows.append((shown(point["name"], 200), _GROUPS[_group(point, summary)], cells))
    return rows


def _stages(summary: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for stage in summary["stages"]:
        foretold = stage["foretold_next"]
        rows.append(
            [
                shown(stage["name"], 60),
                units.count(stage["points"]),
                units.count(len(stage["seeds"])),
                ", ".join(f"{shown(p, 80)} = {shown(v, 60)}" for p, v in stage["settings"].items())
                or "–",
                "–" if foretold is None else f"{foretold:.2f}",
            ]
        )
    return rows


def _charts(summary: Mapping[str, Any], finalists: list[dict[str, Any]]) -> list[Chart]:
    """Return charts of finalists by pairs of goals."""
    goals = [goal["metric"] for goal in summary["goals"]][:_MOST_GOALS]
    return [
        _front(summary, finalists, across, up)
        for across, up in combinations(range(len(goals)), 2)
        if finalists
    ]


def _front(
    summary: Mapping[str, Any], finalists: list[dict[str, Any]], across: int, up: int
) -> Chart:
    names = [shown(summary["goals"][goal]["metric"], 60) for goal in (across, up)]
    scaled = {
        goal: [_told(point, goal, summary["goals"][goal]["metric"]) for point in finalists]
        for goal in (across, up)
    }
    scales = []
    for goal, name in zip((across, up), names, strict=True):
        write = _writer(summary["goals"][goal]["metric"])[1]
        low = min(value[1] for value in scaled[goal])
        high = max(value[2] for value in scaled[goal])
        unit = _UNITS.get(write, "count")
        means = [value[0] for value in scaled[goal]]
        wide = low > 0 and min(means) > 0 and high > 4 * low
        scales.append(logarithmic(low, high, name, unit) if wide else linear([high], name, unit))
    chart = Chart(
        f"front-{across}-{up}",
        f"{names[1]} against {names[0]}: {len(summary['front'])} points on the front",
        "Means over the seeds of the last stage, bars: their intervals. "
        + ", ".join(_wanted(summary["goals"][goal]) for goal in (across, up))
        + ".",
        scales[0],
        scales[1],
        height=320,
        legend=list(_GROUPS),
        key="dot",
        css="sizes",
    )
    rows = []
    for place, point in enumerate(finalists):
        group = _group(point, summary)
        (x, x_low, x_high), (y, y_low, y_high) = scaled[across][place], scaled[up][place]
        xs, ys = chart.points([x_low, x, x_high], [y_low, y, y_high])
        css = f"whisker s{group}"
        chart.add(css, f"M{xs[0]:.0f} {ys[1]:.1f}H{xs[2]:.0f}", group)
        chart.add(css, f"M{xs[1]:.0f} {ys[0]:.1f}V{ys[2]:.1f}", group)
        chart.dots([x], [y], group, "dots big")
        rows.append([shown(point["name"], 120), _GROUPS[group], chart.x.write(x), chart.y.write(y)])
    chart.data = {"type": "none"}
    chart.table = (["point", "is", *names], rows)
    return chart


def _wanted(goal: Mapping[str, Any]) -> str:
    return f"{'more' if goal['more'] else 'less'} of {shown(goal['metric'], 60)} is better"


def _told(point: Mapping[str, Any], goal: int, metric: str) -> tuple[float, float, float]:
    """Return mean and interval of a goal, in the unit of its format."""
    factor = _writer(metric)[0]
    told = point["goals"][goal]["value"]
    mean = told["mean"] * factor
    low, high = (told[end] * factor if told[end] is not None else mean for end in ("low", "high"))
    return mean, low, high
