"""Page of what-if: the transactions of a trace in several cases, side by side.

A case may have several seeds, common to all cases. Its numbers are then means over the seeds with
their 95 % intervals (Student t), and changes against the first case are those between runs of one
seed (paired), see ``stats``.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from eastwest import core, stats, units
from eastwest.report import spread, words
from eastwest.report.compare import ABSENT, change, differences
from eastwest.report.draw import SHADES, WIDTH, Chart, Scale, linear
from eastwest.report.page import render
from eastwest.report.tables import shown
from eastwest.results import Result, pick

_BAR = 22
_GAP = 12
#: Most services with a colour of their own; the network has another.
_MOST_SERVICES = SHADES - 2
_MOST_ROWS = 40
#: Most runs in the table of folders.
_MOST_FOLDERS = 400
_WORKLOAD = re.compile(r"(workload\.\d+)\..*", re.DOTALL)
#: Settings of a workload that show its purpose.
_TELLING = {"name", "kind", "input", "shuffle", "output", "load", "bytes", "file"}
NETWORK = "(network)"
OTHERS = "others"


@dataclass(frozen=True)
class Shown:
    """A case with its results, one for each seed, in an order common to all cases."""

    name: str
    results: tuple[Result, ...]


@dataclass(frozen=True)
class Row:
    """A number of the comparison: its path in the summary, and whether less is better."""

    title: str
    path: tuple[str, ...]
    write: Callable[[float | None], str]
    factor: float = 1.0


def _per_watt(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


ROWS = (
    Row("Transactions", ("transactions", "count"), units.count),
    Row("Response time, mean", ("transactions", "response_us", "mean"), units.span, 1e-6),
    Row("Response time, median", ("transactions", "response_us", "p50"), units.span, 1e-6),
    Row("Response time, p95", ("transactions", "response_us", "p95"), units.span, 1e-6),
    Row("Response time, p99", ("transactions", "response_us", "p99"), units.span, 1e-6),
    Row("… of it the network, mean", ("transactions", "network_us", "mean"), units.span, 1e-6),
    Row("… of it computing, mean", ("transactions", "compute_us", "mean"), units.span, 1e-6),
    Row(
        "… of that in queues for processors",
        ("transactions", "queued_us", "mean"),
        units.span,
        1e-6,
    ),
    Row("Transactions per second", ("transactions", "per_second"), _per_watt),
    Row("Transactions per second and watt", ("transactions", "per_second_per_watt"), _per_watt),
    Row("Energy of links and switches", ("energy_j", "with_switches", "total"), units.joules),
    Row("Packet latency, p99", ("latency_us", "p99"), units.span, 1e-6),
    Row("Packets dropped", ("packets", "dropped"), units.count),
    Row("TCP timeouts", ("tcp", "timeouts"), units.count),
)


def page(cases: Sequence[Shown], title: str) -> str:
    """Return the page; the first case is the base of all comparisons."""
    first = [case.results[0] for case in cases]
    runs = len(cases[0].results)
    names = [shown(case.name, 60) for case in cases]
    by_service = [[_by_service(result) for result in case.results] for case in cases]
    drawn = (_response(names, cases), _slowdown_chart(names, cases), _intervals_chart(names, cases))
    charts = [chart for chart in drawn if chart]
    if len(charts) % 2:
        charts[-1].wide = True
    where = _time_chart(names, [_mean_by_service(found) for found in by_service])
    seeds = [str(result.summary.get("seed", "?")) for result in cases[0].results]
    return render(
        "what_if.html.j2",
        {"charts": {c.name: c.script() for c in [*charts, where]}, "topology": None},
        title=shown(title, 100),
        about=" · ".join(
            (
                f"{len(cases)} cases" + f" with {runs} seeds each" * (runs > 1),
                f"{units.count(first[0].transactions.height)} transactions in the first",
                f"Eastwest {core.version()}",
            )
        ),
        seeds=runs,
        names=names,
        sentences=_sentences(names, cases),
        metrics=_metrics(cases),
        charts=charts,
        where=where,
        services=_services(by_service),
        operations=_operations(cases),
        differences=_settings(differences(first)),
        folder_rows=[
            [name, seed, shown(result.path, 300), shown(result.digest, 64)[:12]]
            for name, case in zip(names, cases, strict=True)
            for seed, result in zip(seeds, case.results, strict=True)
        ][:_MOST_FOLDERS],
        fabrics=[[name, _fabric(result)] for name, result in zip(names, first, strict=True)],
    )


def intervals(case: Shown, base: Shown) -> dict[str, dict[str, Any]]:
    """Return numbers of a case by their path in the summary, and their ratios to those of ``base``.

    Each has ``n`` seeds, ``mean``, ``low`` and ``high`` (None for one seed), and the corresponding
    keys for the ratio to the base of the same seed. Units are those of the summary.
    """
    found = {}
    for row in ROWS:
        values = _values(case, row)
        if values is None:
            continue
        interval = stats.mean_interval([value / row.factor for value in values])
        ratio = _ratio(values, _values(base, row))
        found[".".join(row.path)] = {
            "n": interval.n,
            "mean": interval.value,
            "low": interval.low,
            "high": interval.high,
            "of_first": None
            if ratio is None
            else {"mean": ratio.value, "low": ratio.low, "high": ratio.high},
        }
    return found


#: Values of one number, one for each seed; None where a run lacks it.
Values = list[float] | None


def _values(case: Shown, row: Row) -> Values:
    values = [pick(result.summary, *row.path) for result in case.results]
    known = [value * row.factor for value in values if value is not None]
    return known if len(known) == len(values) else None


def _ratio(values: Values, base: Values) -> stats.Interval | None:
    """Return the ratio of the values to the base, paired by seed."""
    if values is None or base is None or not all(base):
        return None
    return stats.mean_interval([v / b for v, b in zip(values, base, strict=True)])


def _metrics(cases: Sequence[Shown]) -> list[tuple[str, list[Cell]]]:
    rows = []
    for row in ROWS:
        values = [_values(case, row) for case in cases]
        if any(value is not None for value in values):
            rows.append((row.title, _cells(values, row.write)))
    return rows


#: A value, its interval, and its change against the first case, as text.
Cell = tuple[str, str, str]


def _cells(all_values: Sequence[Values], write: Callable[[float | None], str]) -> list[Cell]:
    """Return values as text, each with its change against the first."""
    cells = []
    for place, values in enumerate(all_values):
        if values is None:
            cells.append((write(None), "", ""))
            continue
        mean = stats.mean_interval(values)
        text = ""
        if place and values != all_values[0] and (ratio := _ratio(values, all_values[0])):
            text = _change(ratio)
        cells.append((write(mean.value), _between(mean, write), text))
    return cells


def _between(interval: stats.Interval, write: Callable[[float | None], str]) -> str:
    """Return an interval as text; an empty text without one, or where both ends are equal."""
    if interval.low is None or interval.high is None:
        return ""
    low, high = write(max(0.0, interval.low)), write(interval.high)
    return "" if low == high else f"{low} to {high}"


def _change(ratio: stats.Interval) -> str:
    """Return a change with its interval as text."""
    between = _between(ratio, lambda value: change(value or 0.0))
    return change(ratio.value) + (f" ({between})" if between else "")


def _sentences(names: Sequence[str], cases: Sequence[Shown]) -> list[str]:
    median, tail = ROWS[2], ROWS[4]

    def mean(case: Shown, row: Row) -> float | None:
        values = _values(case, row)
        return None if values is None else math.fsum(values) / len(values)

    said = [
        f"“{names[0]}”: half of the transactions take up to {units.span(mean(cases[0], median))}, "
        f"99 % up to {units.span(mean(cases[0], tail))}; "
        f"{units.percent(_share(cases[0], 'network_us'))} of the time is the network's"
        f"{_waiting(cases[0])}."
    ]
    for name, case in zip(names[1:], cases[1:], strict=True):
        changes = []
        for row in (median, tail):
            ratio = _ratio(_values(case, row), _values(cases[0], row))
            changes.append("–" if ratio is None else _change(ratio))
        said.append(
            f"“{name}”: the median is {units.span(mean(case, median))} ({changes[0]}), the 99th "
            f"percentile {units.span(mean(case, tail))} ({changes[1]}); "
            f"{units.percent(_share(case, 'network_us'))} is the network's{_waiting(case)}."
        )
    if len(cases[0].results) > 1:
        said.append(
            f"Numbers are means over {len(cases[0].results)} seeds, intervals cover the true mean "
            "with 95 %; changes compare runs of the same seed."
        )
    return said


def _share(case: Shown, part: str) -> float | None:
    """Return the mean share of a part of the response time."""
    shares = []
    for result in case.results:
        found = pick(result.summary, "transactions", part, "mean")
        whole = pick(result.summary, "transactions", "response_us", "mean")
        if found is None or not whole:
            return None
        shares.append(found / whole)
    return math.fsum(shares) / len(shares)


def _waiting(case: Shown) -> str:
    share = _share(case, "queued_us")
    return f", {units.percent(share)} waiting for processors" if share else ""


def _intervals_chart(names: Sequence[str], cases: Sequence[Shown]) -> Chart | None:
    """Return a chart of median and 99th percentile of every case with their intervals."""
    if len(cases[0].results) < 2:
        return None
    rows = (ROWS[2], ROWS[4])
    found = [
        [(at, _ratio(_values(case, row), _values(cases[0], row))) for at, case in enumerate(cases)]
        for row in rows
    ]
    known = [r for series in found for _, r in series if r is not None]
    if not known:
        return None
    highs = [r.value if r.high is None else r.high for r in known]
    lows = [r.value if r.low is None else r.low for r in known]
    chart = Chart(
        "intervals",
        "How sure the differences are",
        f"Median and 99th percentile of response times in units of those of “{names[0]}” with the "
        "same seed: mean over the seeds, bar: its 95 % interval.",
        Scale("linear", 0.0, len(names), "case"),
        Scale(
            "linear",
            min(0.98, *lows),
            1 + 1.05 * max(0.02, *(h - 1 for h in highs)),
            "times as long",
            "times",
        ),
        legend=["median", "99th percentile"],
        key="dot",
        css="sizes",
        wide=True,
    )
    cells: list[list[list[Any]]] = [[] for _ in names]
    for number, series in enumerate(found):
        for place, ratio in series:
            if ratio is None:
                continue
            at = place + 0.43 + 0.14 * number
            low, high = (e if e is not None else ratio.value for e in (ratio.low, ratio.high))
            x, y = chart.points([at] * 3, [low, ratio.value, high])
            chart.add(f"whisker s{number}", f"M{x[0]:.0f} {y[0]:.1f}V{y[2]:.1f}", number)
            chart.dots([at], [ratio.value], number, "dots big")
            cells[place].append([chart.legend[number], _change(ratio), number])
    heads = list(names)
    chart.data = {
        "type": "cells",
        "categories": [shown(name, 14) for name in names]
        if len(names) <= 12
        else [""] * len(names),
        "heads": heads,
        "cells": cells,
    }
    return chart


def _response(names: Sequence[str], cases: Sequence[Shown]) -> Chart | None:
    curves = [
        (
            name,
            np.concatenate([r.transactions["response_us"].to_numpy() for r in case.results]) / 1e6,
        )
        for name, case in zip(names, cases, strict=True)
    ]
    chart = spread.curves_of("response-times", curves, "response time", "transactions done")
    if chart is not None:
        chart.title = "How long transactions take"
        chart.note = "Share of transactions that take at most so long."
        chart.height = 260
    return chart


def _slowdown_chart(names: Sequence[str], cases: Sequence[Shown]) -> Chart | None:
    """Return a chart of the slowdown of each transaction against the first case, by seed."""
    base = _recorded_means(cases[0])
    curves = []
    for name, case in zip(names[1:], cases[1:], strict=True):
        on = ["run", "workload", "recorded"]
        pairs = base.join(_recorded_means(case), on=on, how="inner", suffix="_now")
        if pairs.height:
            ratio = (pairs["response_us_now"] / pairs["response_us"]).to_numpy()
            curves.append((name, np.sort(ratio[np.isfinite(ratio)])))
    curves = [(name, ratio) for name, ratio in curves if ratio.size][: spread.MOST_CURVES - 1]
    if not curves:
        return None
    top = max(float(np.quantile(ratio, 0.99)) for _, ratio in curves)
    low = min(float(ratio[0]) for _, ratio in curves)
    high = max(1.05, top * 1.02)
    chart = Chart(
        "slower",
        "How much longer each transaction takes than the same one in the first case",
        "Share of transactions whose response time is at most so many times that of the same "
        f"transaction in “{names[0]}”. Left of 1 it is faster.",
        Scale("linear", min(0.98, low), high, "times as long", "times"),
        Scale("linear", 0.0, 1.02, "transactions", "percent"),
        legend=[names[0], *(name for name, _ in curves)],
        height=260,
    )
    chart.line([1.0, 1.0], [0.0, 1.0], 0)
    for number, (_, ratio) in enumerate(curves, 1):
        share = np.arange(1, ratio.size + 1) / ratio.size
        keep = np.unique(np.linspace(0, ratio.size - 1, 600).astype(int))
        chart.line(ratio[keep], share[keep], number, step=True)
    chart.table = (
        ["", "transactions", "50 %", "90 %", "99 %"],
        [
            [
                name,
                units.count(ratio.size),
                *(f"× {float(np.quantile(ratio, s)):.4g}" for s in (0.5, 0.9, 0.99)),
            ]
            for name, ratio in curves
        ],
    )
    return chart


def _recorded_means(case: Shown) -> pl.DataFrame:
    """Return the mean response time of each recorded transaction in every run."""
    return pl.concat(
        result.transactions.group_by("workload", "recorded")
        .agg(pl.col("response_us").mean())
        .filter(pl.col("response_us") > 0)
        .sort("workload", "recorded")
        .with_columns(pl.lit(number).alias("run"))
        for number, result in enumerate(case.results)
    )


def _by_service(result: Result) -> dict[str, float]:
    """Return mean seconds on the critical path of a transaction, by service; the network apart."""
    calls = result.calls
    count = max(1, result.transactions.height)
    name = pl.when(pl.col("service") == "").then("component").otherwise("service").alias("name")
    sums = (
        calls.group_by(name)
        .agg(pl.col("compute_us").sum())
        .sort("compute_us", "name", descending=[True, False])
    )
    found = {NETWORK: float(calls["network_us"].sum()) / 1e6 / count}
    for service, compute in sums.iter_rows():
        found[str(service)] = compute / 1e6 / count
    return found


def _mean_by_service(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return means over runs, with services in the order of the first run."""
    order = dict.fromkeys(name for found in runs for name in found)
    return {name: math.fsum(found.get(name, 0.0) for found in runs) / len(runs) for name in order}


def _time_chart(names: Sequence[str], by_service: Sequence[dict[str, float]]) -> Chart:
    """Return a chart of the time of an average transaction by service: one bar for each case."""
    services = [name for name in by_service[0] if name != NETWORK][:_MOST_SERVICES]
    parts = [NETWORK, *services, OTHERS]
    values = []
    for found in by_service:
        known = [found.get(name, 0.0) for name in parts[:-1]]
        values.append([*known, max(0.0, sum(found.values()) - sum(known))])
    if all(row[-1] <= 0 for row in values):
        parts, values = parts[:-1], [row[:-1] for row in values]
    top = max(sum(row) for row in values)
    chart = Chart(
        "where",
        "Where the time of a transaction goes",
        "Mean time on the critical path: what was waited for last, by the service that computed, "
        "and the network in which requests and responses were on their way.",
        linear([top], "time on the critical path", "span"),
        Scale("linear", 0.0, 1.0, "", "percent"),
        wide=True,
        height=(_BAR + _GAP) * len(names),
        rows=list(names),
        legend=[shown(part, 40) for part in parts],
        key="piece",
    )
    for row, amounts in enumerate(values):
        across, _ = chart.points(np.append(0.0, np.cumsum(amounts)), np.zeros(len(amounts) + 1))
        down = row * (_BAR + _GAP) + _GAP / 2
        for part, (left, right) in enumerate(itertools.pairwise(np.rint(across).tolist())):
            if min(right, WIDTH) > left:
                d = f"M{left:.0f} {down:g}H{min(right, WIDTH):.0f}v{_BAR}H{left:.0f}z"
                chart.add(f"piece s{part % SHADES}", d, part)
    chart.table = (
        ["case", *(shown(part, 40) for part in parts)],
        [
            [name, *(units.span(amount) for amount in amounts)]
            for name, amounts in zip(names, values, strict=True)
        ],
    )
    return chart


def _services(
    by_service: Sequence[Sequence[dict[str, float]]],
) -> list[tuple[str, list[Cell]]]:
    """Return rows of mean time on the critical path of a transaction, one for each service."""
    order = list(dict.fromkeys(name for runs in by_service for found in runs for name in found))
    return [
        (shown(name, 60), _cells(_each(by_service, name), units.span))
        for name in order[:_MOST_ROWS]
    ]


def _each(runs: Sequence[Sequence[dict[str, float]]], name: str) -> list[Values]:
    """Return a number of every case, one for each seed; None where a run lacks it."""
    found: list[Values] = []
    for case in runs:
        values = [one[name] for one in case if name in one]
        found.append(values if len(values) == len(case) else None)
    return found


def _operations(cases: Sequence[Shown]) -> list[tuple[str, list[Cell]]]:
    """Return rows of the 99th percentile of times of calls between components, by service."""
    found = [[_call_times(result) for result in case.results] for case in cases]
    order = sorted(found[0][0], key=lambda name: (-found[0][0][name], name))
    return [
        (shown(name, 60), _cells(_each(found, name), units.span)) for name in order[:_MOST_ROWS]
    ]


def _call_times(result: Result) -> dict[str, float]:
    """Return the 99th percentile of times of calls between components in s, by service."""
    length = ((pl.col("done_s") - pl.col("sent_s")).quantile(0.99, "higher")).alias("p99")
    name = pl.when(pl.col("service") == "").then("component").otherwise("service").alias("name")
    called = result.calls.filter(pl.col("parent") >= 0)
    rows = called.group_by(name).agg(length, pl.len()).sort("name")
    return {str(service): float(p99) for service, p99, _ in rows.iter_rows()}


def _settings(rows: list[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    """Return rows without most settings of workloads that the first case does not have."""
    own = {_WORKLOAD.sub(r"\1", path) for path, values in rows if values[0] != ABSENT}
    return [
        (path, values)
        for path, values in rows
        if not _WORKLOAD.match(path)
        or _WORKLOAD.sub(r"\1", path) in own
        or path.rsplit(".", 1)[-1] in _TELLING
    ]


def _fabric(result: Result) -> str:
    return shown(" ".join(words.fabric(result)), 300)
