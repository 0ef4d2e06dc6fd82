"""Page that compares several results: different settings, and their effect on the metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from eastwest import fidelity, formats, units
from eastwest.report import spread, words
from eastwest.report.draw import WRITERS
from eastwest.report.page import render
from eastwest.report.single import title_of
from eastwest.report.tables import Facts, shown
from eastwest.report.triangle import triangle
from eastwest.results import Result, pick

_MOST_LABEL = 40
#: Text for a setting that a scenario does not have.
ABSENT = "–"
#: Most settings in the sentences at the top; the table has all.
_MOST_NAMED = 6


@dataclass(frozen=True)
class Metric:
    """A row of the comparison: a number of the summary, and the format of its values."""

    title: str
    path: tuple[str, ...]
    write: Callable[[float | None], str]
    #: Factor to the unit of ``write``.
    factor: float = 1.0
    #: Whether the metric is in the sentences at the top.
    headline: bool = False

    def of(self, result: Result) -> float | None:
        """Return the metric's value; None for metrics of jobs in a run without jobs."""
        if self.path[0] in {"jobs", "rounds"} and not pick(result.summary, self.path[0], "count"):
            return None
        value = pick(result.summary, *self.path)
        return None if value is None else value * self.factor


METRICS = (
    Metric("Jobs", ("jobs", "count"), units.count),
    Metric("Job runtime, mean", ("jobs", "runtime_s", "mean"), units.span),
    Metric("Job runtime, median", ("jobs", "runtime_s", "p50"), units.span, headline=True),
    Metric("Job runtime, p99", ("jobs", "runtime_s", "p99"), units.span),
    Metric("Makespan", ("jobs", "makespan_s"), units.span),
    Metric("Runtime of MPI programs", ("mpi", "runtime_s"), units.span, headline=True),
    Metric("Rounds", ("rounds", "count"), units.count),
    Metric("Goodput of rounds", ("rounds", "goodput_bps"), units.rate, headline=True),
    Metric("Flows complete", ("flows", "completed"), units.count),
    Metric("Flow completion, mean", ("flows", "fct_us", "mean"), units.span, 1e-6),
    Metric("Flow completion, median", ("flows", "fct_us", "p50"), units.span, 1e-6),
    Metric("Flow completion, p99", ("flows", "fct_us", "p99"), units.span, 1e-6, headline=True),
    Metric("Packet latency, mean", ("latency_us", "mean"), units.span, 1e-6),
    Metric("Packet latency, p99", ("latency_us", "p99"), units.span, 1e-6, headline=True),
    Metric("Packet latency, p99.9", ("latency_us", "p999"), units.span, 1e-6),
    Metric("Throughput per host, mean", ("throughput_bps",), units.rate),
    Metric("Packets dropped", ("packets", "dropped"), units.count, headline=True),
    Metric("TCP retransmissions", ("tcp", "retransmits"), units.count),
    Metric("TCP timeouts", ("tcp", "timeouts"), units.count, headline=True),
    Metric("Energy of links", ("energy_j", "total"), units.joules, headline=True),
    Metric("Energy, of always on", ("energy_j", "of_always_on"), units.percent),
    Metric("Energy, of ideal", ("energy_j", "of_ideal"), WRITERS["times"]),
    Metric("Energy × delay, J·s", ("energy_j", "delay_product_js"), units.count),
    Metric("Energy per GB moved", ("energy_j", "per_gb"), units.joules),
    Metric("Energy per job", ("energy_j", "per_job"), units.joules),
    Metric("Energy of links and switches", ("energy_j", "with_switches", "total"), units.joules),
    Metric("Packet-hops", ("packet_hops",), units.count),
    Metric("CPU time", ("cpu_s",), units.span),
)


def told(shares: Iterable[float | None]) -> list[Metric]:
    """Return the metrics to show: those of energy only where links slept in any of the results.

    ``shares`` are the shares of always-on energy that each result used.
    """
    slept = any(share is not None and share < 1 for share in shares)
    return [metric for metric in METRICS if slept or metric.path[0] != "energy_j"]


def _shown_metrics(results: Sequence[Result]) -> list[Metric]:
    return told(pick(result.summary, "energy_j", "of_always_on") for result in results)


def labels(results: Sequence[Result], different: list[tuple[str, list[str]]]) -> list[str]:
    """Return names of results for a comparison: scenario and seed, differences, or folder."""
    names = [f"{title_of(r)[:_MOST_LABEL]}, seed {r.summary.get('seed', '?')}" for r in results]
    if len(set(names)) < len(names) and 0 < len(different) <= 3:
        names = [
            ", ".join(
                f"{path.rsplit('.', 1)[-1]} {values[place]}"
                for path, values in different
                if values[place] != ABSENT
            )
            or f"result {place + 1}"
            for place in range(len(results))
        ]
    if len(set(names)) < len(names) or max(len(name) for name in names) > 2 * _MOST_LABEL:
        names = [shown(r.path, 100)[-_MOST_LABEL:] for r in results]
    if len(set(names)) < len(names):
        names = [f"{number}: {name}" for number, name in enumerate(names, 1)]
    return names


def comparison(results: Sequence[Result]) -> str:
    """Return the page that compares several results."""
    different = differences(results)
    names = labels(results, different)
    named = [(name, Facts(result)) for name, result in zip(names, results, strict=True)]
    curves = {chart.name: chart for chart in spread.charts(named)}
    charts = list(curves.values())
    if len(charts) % 2:
        charts[-1].wide = True
    left_out = max(0, len(results) - spread.MOST_CURVES)
    return render(
        "comparison.html.j2",
        {"charts": {chart.name: chart.script() for chart in charts}, "topology": None},
        title=f"{len(results)} results compared",
        names=names,
        sentences=_sentences(results, names, different),
        metrics=metrics(results),
        differences=different,
        charts=charts,
        trade=triangle(results, names),
        left_out=left_out,
        folder_rows=[
            [name, shown(result.path, 300), shown(result.digest, 64)[:12]]
            for name, result in zip(names, results, strict=True)
        ],
    )


def _sentences(
    results: Sequence[Result], names: list[str], different: list[tuple[str, list[str]]]
) -> list[str]:
    """Return sentences on the different settings and their effect, against the first result."""
    said = []
    writers = dict.fromkeys(shown(formats.writer(result.summary), 80) for result in results)
    if len(writers) > 1:
        said.append(
            f"They were written by different versions ({'; '.join(writers)}): "
            "what differs may be the program, not a setting."
        )
    flows = [n for r, n in zip(results, names, strict=True) if fidelity.is_flow(r.summary)]
    if flows:
        whose = "All are" if len(flows) == len(results) else f"{', '.join(flows[:_MOST_NAMED])}:"
        first = next(r for r in results if fidelity.is_flow(r.summary))
        said.append(f"{whose} {shown(fidelity.error(first.summary), 400)}.")
    if different:
        shown_paths = [f"{path} ({' / '.join(values)})" for path, values in different]
        rest = len(shown_paths) - _MOST_NAMED
        said.append(
            f"{len(different)} {'setting differs' if len(different) == 1 else 'settings differ'}: "
            + "; ".join(text[:120] for text in shown_paths[:_MOST_NAMED])
            + (f"; and {rest} more." if rest > 0 else ".")
        )
    else:
        said.append("All settings are the same.")
    if len({result.digest for result in results}) == 1:
        return [*said, "All results have the same digest: the same thing happened in each."]
    for metric in _shown_metrics(results):
        if metric.headline:
            values = [metric.of(result) for result in results]
            sentence = _headline(metric, values, names)
            if sentence:
                said.append(sentence)
    return said


def _headline(metric: Metric, values: list[float | None], names: list[str]) -> str:
    known = [(v, n) for v, n in zip(values, names, strict=True) if v is not None]
    if len(known) < 2 or len({v for v, _ in known}) == 1:
        return ""
    if len(values) == 2:
        first, second = known[0][0], known[1][0]
        by = f" ({change(second / first)})" if first else ""
        return f"{metric.title}: {metric.write(first)}, then {metric.write(second)}{by}."
    low, high = min(known), max(known)
    return (
        f"{metric.title}: from {metric.write(low[0])} ({low[1]}) to "
        f"{metric.write(high[0])} ({high[1]})."
    )


def metrics(results: Sequence[Result]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return all metrics that any result has: each value, and its change against the first."""
    rows = []
    for metric in _shown_metrics(results):
        values = [metric.of(result) for result in results]
        if all(value is None for value in values):
            continue
        first = values[0]
        cells = []
        for place, value in enumerate(values):
            text = ""
            if place and value is not None and first and value != first:
                text = change(value / first)
            cells.append((metric.write(value), text))
        rows.append((metric.title, cells))
    return rows


def change(ratio: float) -> str:
    """Return a change as a percentage, or as a factor where that would be a large number."""
    if ratio >= 3:
        return f"× {ratio:.3g}"
    percent = round(100 * (ratio - 1), 1)
    return f"{percent:+.3g} %".replace("-", "−") if percent else "≈ 0 %"


def differences(results: Sequence[Result]) -> list[tuple[str, list[str]]]:
    """Return the settings in which the scenarios differ, with the values of each."""
    everything = [words.settings(result) for result in results]
    paths = list(dict.fromkeys(path for settings in everything for path in settings))
    rows = []
    for path in paths:
        values = [settings.get(path, ABSENT) for settings in everything]
        if len(set(values)) > 1:
            rows.append((shown(path, 120), values))
    return rows
