"""Fills the page's template and writes it: one file that loads nothing."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from eastwest import plot, units
from eastwest.plot.charts import CHARTS, Chart, Drawing, Labelled
from eastwest.plot.latency import by_size
from eastwest.plot.style import svg
from eastwest.report import words
from eastwest.results import Result, pick

_MOST_LABEL = 40


def write_page(results: Sequence[Result], out: Path | None = None) -> Path:
    """Write the page about one result, or the comparison of several, and return its path."""
    if not results:
        raise ValueError("a report needs at least one result folder")
    if len(results) == 1:
        target = out or results[0].path / "report.html"
        text = single(results[0])
    else:
        target = out or results[0].path.parent / "comparison.html"
        text = comparison(results)
    _write(target, text)
    return target


def write_picture(result: Result, out: Path) -> None:
    """Draw the overview of a result as a picture, in the format that ``out`` ends with."""
    with plot.style.style():
        plot.overview(result).savefig(out, facecolor="white")


def _write(target: Path, text: str) -> None:
    """Write a file whole or not at all."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _render(template: str, **context: Any) -> str:
    environment = Environment(
        loader=PackageLoader("eastwest.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**context)


def _picture(drawing: Drawing) -> dict[str, Any]:
    """Make a drawing ready for the page; its SVG was made by us and escapes its own text."""
    return {
        "name": drawing.name,
        "title": drawing.title,
        "wide": drawing.wide,
        "svg": Markup(svg(drawing.figure, drawing.name)),
    }


def _pictures(results: Labelled, charts: Sequence[Chart]) -> list[dict[str, Any]]:
    """Draw charts in order; of an odd number of narrow ones, the last takes a line of its own."""
    narrow = [chart for chart in charts if not chart.wide]
    last = narrow[-1] if len(narrow) % 2 else None
    return [_picture(plot.draw(c.name, results, wide=c.wide or c is last)) for c in charts]


def _title(result: Result) -> str:
    return units.clean(str(result.summary.get("scenario", result.path.name)), 100)


def single(result: Result) -> str:
    """Give the page about one result."""
    return _render(
        "single.html.j2",
        title=_title(result),
        seed=result.summary.get("seed", "?"),
        version=units.clean(str(result.summary.get("version", "?")), 40),
        digest=units.clean(result.digest, 128),
        span=units.span(pick(result.summary, "simulated_s")),
        wall=units.span(pick(result.summary, "wall_s")),
        notes=[units.clean(str(note), 500) for note in result.summary.get("notes", [])],
        fabric=words.fabric(result),
        workload=words.workload(result),
        headlines=words.headlines(result),
        pictures=_pictures([("", result)], [c for c in CHARTS.values() if c.applies(result)]),
        sizes=_sizes(result),
        purposes=words.purpose_rows(result),
        latency=words.latency_rows(result),
        drop_kinds=list(words.DROP_KINDS.values()),
        drops=words.drop_rows(result),
        busiest=words.busiest_links(result),
        scenario=result.scenario,
        rerun=f"eastwest run {shlex.quote(str(result.path / 'scenario.toml'))}",
    )


def _sizes(result: Result) -> list[list[str]]:
    return [
        [
            row["size"],
            units.count(row["flows"]),
            units.span(row["fct_us_p50"] / 1e6),
            units.span(row["fct_us_p99"] / 1e6),
            f"{row['slowdown_p50']:.3g}",
            f"{row['slowdown_p99']:.3g}",
        ]
        for row in by_size(result).iter_rows(named=True)
    ]


def labels(results: Sequence[Result]) -> Labelled:
    """Name results for a comparison: by scenario and seed, or by folder if that is not enough."""
    names = [f"{_title(r)[:_MOST_LABEL]}, seed {r.summary.get('seed', '?')}" for r in results]
    if len(set(names)) < len(names):
        names = [units.clean(str(r.path), 100)[-_MOST_LABEL:] for r in results]
    if len(set(names)) < len(names):
        names = [f"{number}: {name}" for number, name in enumerate(names, 1)]
    return list(zip(names, results, strict=True))


def comparison(results: Sequence[Result]) -> str:
    """Give the page that compares several results."""
    labelled = labels(results)
    charts = [
        chart
        for chart in CHARTS.values()
        if chart.compares and all(chart.applies(result) for result in results)
    ]
    return _render(
        "comparison.html.j2",
        title=f"{len(results)} results compared",
        names=[name for name, _ in labelled],
        folder_rows=[[name, units.clean(str(result.path), 300)] for name, result in labelled],
        metrics=_metrics(results),
        differences=_differences(results),
        pictures=_pictures(labelled, charts),
    )


#: Row title, path in the summary, factor to seconds or base units, how it is written.
_METRICS: tuple[tuple[str, tuple[str, ...], float, Any], ...] = (
    ("Jobs", ("jobs", "count"), 1, units.count),
    ("Job runtime, mean", ("jobs", "runtime_s", "mean"), 1, units.span),
    ("Job runtime, median", ("jobs", "runtime_s", "p50"), 1, units.span),
    ("Job runtime, p99", ("jobs", "runtime_s", "p99"), 1, units.span),
    ("Makespan", ("jobs", "makespan_s"), 1, units.span),
    ("Flows complete", ("flows", "completed"), 1, units.count),
    ("Flow completion, mean", ("flows", "fct_us", "mean"), 1e-6, units.span),
    ("Flow completion, median", ("flows", "fct_us", "p50"), 1e-6, units.span),
    ("Flow completion, p99", ("flows", "fct_us", "p99"), 1e-6, units.span),
    ("Packet latency, mean", ("latency_us", "mean"), 1e-6, units.span),
    ("Packet latency, p99", ("latency_us", "p99"), 1e-6, units.span),
    ("Packet latency, p99.9", ("latency_us", "p999"), 1e-6, units.span),
    ("Throughput per host, mean", ("throughput_bps",), 1, units.rate),
    ("TCP retransmissions", ("tcp", "retransmits"), 1, units.count),
    ("TCP timeouts", ("tcp", "timeouts"), 1, units.count),
    ("Packet-hops", ("packet_hops",), 1, units.count),
    ("CPU time", ("cpu_s",), 1, units.span),
)


def _metrics(results: Sequence[Result]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Every metric that any result has: the value of each, and its change against the first."""
    rows = []
    for title, path, factor, write in _METRICS:
        values = [_metric(result, path) for result in results]
        if all(value is None for value in values):
            continue
        first = values[0]
        cells = []
        for place, value in enumerate(values):
            shown = ""
            if place and value is not None and first and value != first:
                shown = change(value / first)
            cells.append((write(None if value is None else value * factor), shown))
        rows.append((title, cells))
    drops = [words.carried(result)[1] for result in results]
    rows.append(("Packets dropped", [(units.count(value), "") for value in drops]))
    rows.append(("Digest", [(units.clean(result.digest, 64)[:12], "") for result in results]))
    return rows


def _metric(result: Result, path: tuple[str, ...]) -> float | None:
    """One number of a summary; nothing about jobs where there were none."""
    if path[0] == "jobs" and not pick(result.summary, "jobs", "count"):
        return None
    return pick(result.summary, *path)


def change(ratio: float) -> str:
    """Write a change as a percentage, or as a factor where that would be a large number."""
    if ratio >= 3:
        return f"× {ratio:.3g}"
    return f"{100 * (ratio - 1):+.3g} %".replace("-", "−")


def _differences(results: Sequence[Result]) -> list[tuple[str, list[str]]]:
    """Settings in which the scenarios differ."""
    everything = [words.settings(result) for result in results]
    paths = list(dict.fromkeys(path for settings in everything for path in settings))
    rows = []
    for path in paths:
        values = [settings.get(path, "–") for settings in everything]
        if len(set(values)) > 1:
            rows.append((path, values))
    return rows
