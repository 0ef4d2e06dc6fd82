"""Page of ``eastwest what-if``: the transactions of a trace in several cases, side by side.

A case may have several seeds, common to all cases. The numbers of a case are then means over the
seeds with their 95 % confidence intervals (Student t). Changes against the first case compare runs
with the same seed in pairs.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from eastwest import core, stats, units
from eastwest.report import spread, words
from eastwest.report.draw import SHADES, Chart, Scale, fill_lines, linear
from eastwest.report.page import render
from eastwest.results import Result
from eastwest.views.labels import plural, shown
from eastwest.views.metrics import Metric, change
from eastwest.views.series import cumulative
from eastwest.views.settings import ABSENT, differences
from eastwest.views.what_if import (
    MEDIAN,
    METRICS,
    NETWORK,
    TAIL,
    Shown,
    Values,
    call_times,
    means,
    of_each,
    ratio,
    recorded_means,
    time_by_service,
)

_BAR = 22
_GAP = 12
#: Maximum number of services with separate colours; the network and all other services have one
#: colour each.
_MOST_SERVICES = SHADES - 2
_MOST_ROWS = 40
#: Maximum number of runs in the table of folders.
_MOST_FOLDERS = 400
_WORKLOAD = re.compile(r"(workload\.\d+)\..*", re.DOTALL)
#: Keys of a workload's settings that show the purpose of the workload.
_TELLING = {"name", "kind", "input", "shuffle", "output", "load", "bytes", "file"}
OTHERS = "others"


def page(cases: Sequence[Shown], title: str) -> str:
    """Return the HTML page that compares cases; the first case is the base of all comparisons."""
    first = [case.results[0] for case in cases]
    runs = len(cases[0].results)
    names = [shown(case.name, 60) for case in cases]
    by_service = [[time_by_service(result) for result in case.results] for case in cases]
    drawn = (_response(names, cases), _slowdown_chart(names, cases), _intervals_chart(names, cases))
    charts = [chart for chart in drawn if chart]
    fill_lines(charts)
    services = dict.fromkeys(name for case in by_service for one in case for name in one)
    where = _time_chart(names, [means(found) for found in by_service])
    seeds = [str(result.summary.get("seed", "?")) for result in cases[0].results]
    return render(
        "what_if.html.j2",
        [*charts, where],
        title=shown(title, 100),
        about=" · ".join(
            (
                plural(len(cases), "case") + f" with {runs} seeds each" * (runs > 1),
                f"{plural(first[0].transactions.height, 'transaction')} in the first",
                f"Eastwest {core.version()}",
            )
        ),
        seeds=runs,
        names=names,
        sentences=_sentences(names, cases),
        metrics=_metrics(cases),
        charts=charts,
        where=where,
        services=_services(by_service, services),
        operations=_operations(cases),
        differences=_settings(differences(first)),
        folder_rows=[
            [name, seed, shown(result.path, 300), shown(result.digest, 64)[:12]]
            for name, case in zip(names, cases, strict=True)
            for seed, result in zip(seeds, case.results, strict=True)
        ][:_MOST_FOLDERS],
        fabrics=[[name, _fabric(result)] for name, result in zip(names, first, strict=True)],
    )


def _metrics(cases: Sequence[Shown]) -> list[tuple[str, list[Cell]]]:
    rows = []
    for row in METRICS:
        values = [case.values(row) for case in cases]
        if any(value is not None for value in values):
            rows.append((row.title, _cells(values, row.write)))
    return rows


#: (value, confidence interval, change against the first case) as texts.
Cell = tuple[str, str, str]


def _cells(all_values: Sequence[Values], write: Callable[[float | None], str]) -> list[Cell]:
    """Return a cell for each case: mean over the seeds, interval, change against the first case.

    ``all_values`` has the values of each case, one for each seed.
    """
    cells = []
    for place, values in enumerate(all_values):
        if values is None:
            cells.append((write(None), "", ""))
            continue
        mean = stats.mean_interval(values)
        text = ""
        if place and values != all_values[0] and (by := ratio(values, all_values[0])):
            text = _change(by)
        cells.append((write(mean.value), _between(mean, write), text))
    return cells


def _between(interval: stats.Interval, write: Callable[[float | None], str]) -> str:
    """Return an interval as text: ``1 ms to 2 ms``; empty if it is missing or has equal ends."""
    if interval.low is None or interval.high is None:
        return ""
    low, high = write(max(0.0, interval.low)), write(interval.high)
    return "" if low == high else f"{low} to {high}"


def _change(by: stats.Interval) -> str:
    """Return a ratio and its confidence interval as changes: ``+12 % (+3 % to +20 %)``."""
    between = _between(by, lambda value: change(value or 0.0))
    return change(by.value) + (f" ({between})" if between else "")


def _sentences(names: Sequence[str], cases: Sequence[Shown]) -> list[str]:
    def mean(case: Shown, row: Metric) -> float | None:
        values = case.values(row)
        return None if values is None else math.fsum(values) / len(values)

    said = [
        f"“{names[0]}”: half of the transactions take up to "
        f"{units.span(mean(cases[0], MEDIAN))}, 99 % up to "
        f"{units.span(mean(cases[0], TAIL))}; "
        f"{units.percent(cases[0].share('network_us'))} of the time is spent in the "
        f"network{_waiting(cases[0])}."
    ]
    for name, case in zip(names[1:], cases[1:], strict=True):
        changes = []
        for row in (MEDIAN, TAIL):
            by = ratio(case.values(row), cases[0].values(row))
            changes.append("–" if by is None else _change(by))
        said.append(
            f"“{name}”: the median is {units.span(mean(case, MEDIAN))} "
            f"({changes[0]}), the 99th percentile {units.span(mean(case, TAIL))} "
            f"({changes[1]}); {units.percent(case.share('network_us'))} of the time "
            f"is spent in the network{_waiting(case)}."
        )
    if len(cases[0].results) > 1:
        said.append(
            f"Numbers are means over {len(cases[0].results)} seeds with their 95 % confidence "
            "intervals; changes compare runs of the same seed."
        )
    return said


def _waiting(case: Shown) -> str:
    share = case.share("queued_us")
    return f", {units.percent(share)} waiting for processors" if share else ""


def _intervals_chart(names: Sequence[str], cases: Sequence[Shown]) -> Chart | None:
    """Return a chart of response times as multiples of those in the first case, with intervals.

    The chart has the median and the 99th percentile of each case. Returns None for a single seed.
    """
    if len(cases[0].results) < 2:
        return None
    found = []
    for number, metric in enumerate((MEDIAN, TAIL)):
        for place, case in enumerate(cases):
            by = ratio(case.values(metric), cases[0].values(metric))
            if by is not None:
                low, high = (by.value if end is None else end for end in (by.low, by.high))
                found.append((number, place, low, by, high))
    if not found:
        return None
    chart = Chart(
        "intervals",
        "How certain the differences are",
        "Median and 99th percentile of response times as multiples of those of "
        f"“{names[0]}” with the same seed: mean over the seeds; a bar is its 95 % "
        "interval.",
        Scale("linear", 0.0, len(names), "case"),
        Scale(
            "linear",
            min(0.98, *(low for _, _, low, _, _ in found)),
            1 + 1.05 * max(0.02, *(high - 1 for *_, high in found)),
            "times as long",
            "times",
        ),
        legend=["median", "99th percentile"],
        key="dot",
        css="sizes",
        wide=True,
    )
    few = len(names) <= 12
    chart.intervals(
        names,
        [shown(name, 14) if few else "" for name in names],
        (
            ((place, 0.14 * number - 0.07, number), (low, by.value, high), _change(by))
            for number, place, low, by, high in found
        ),
    )
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
        chart.note = "Share of transactions that take at most this time."
        chart.height = 260
    return chart


def _slowdown_chart(names: Sequence[str], cases: Sequence[Shown]) -> Chart | None:
    """Return a chart of the distribution of slowdown against the first case, for each other case.

    Slowdown is the response time of a recorded transaction divided by its response time in the
    first case with the same seed. Returns None if the two cases have no transaction in common.
    """
    base = recorded_means(cases[0])
    curves = []
    for name, case in zip(names[1:], cases[1:], strict=True):
        on = ["run", "workload", "recorded"]
        pairs = base.join(recorded_means(case), on=on, how="inner", suffix="_now")
        if pairs.height:
            times = (pairs["response_us_now"] / pairs["response_us"]).to_numpy()
            curves.append((name, *cumulative(times)))
    curves = [curve for curve in curves if curve[1].size][: spread.MOST_CURVES - 1]
    if not curves:
        return None
    top = max(float(np.quantile(times, 0.99)) for _, times, _ in curves)
    low = min(float(times[0]) for _, times, _ in curves)
    high = max(1.05, top * 1.02)
    chart = Chart(
        "slower",
        "How much longer each transaction takes than the same one in the first case",
        "Share of transactions with at most this ratio of their response time to "
        f"that of the same transaction in “{names[0]}”. A ratio below 1 means that "
        "it is faster.",
        Scale("linear", min(0.98, low), high, "times as long", "times"),
        Scale("linear", 0.0, 1.02, "transactions", "percent"),
        legend=[names[0], *(name for name, *_ in curves)],
        height=260,
    )
    chart.line([1.0, 1.0], [0.0, 1.0], 0)
    for number, (_, times, share) in enumerate(curves, 1):
        keep = np.unique(np.linspace(0, times.size - 1, 600).astype(int))
        chart.line(times[keep], share[keep], number, step=True)
    chart.table = (
        ["", "transactions", "50 %", "90 %", "99 %"],
        [
            [
                name,
                units.count(times.size),
                *(f"× {float(np.quantile(times, s)):.4g}" for s in (0.5, 0.9, 0.99)),
            ]
            for name, times, _ in curves
        ],
    )
    return chart


def _time_chart(names: Sequence[str], by_service: Sequence[dict[str, float]]) -> Chart:
    """Return a chart of mean time on the critical path of a transaction, with a bar for each case.

    ``by_service`` has, for each case, the mean time in s by service and for the network.
    """
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
        "Mean time on the critical path of a transaction: computing, by service, "
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
        chart.bars(row, _BAR, _GAP, np.rint(across).tolist(), "piece")
    chart.table = (
        ["case", *(shown(part, 40) for part in parts)],
        [
            [name, *(units.span(amount) for amount in amounts)]
            for name, amounts in zip(names, values, strict=True)
        ],
    )
    return chart


def _services(
    runs: Sequence[Sequence[dict[str, float]]], order: Iterable[str]
) -> list[tuple[str, list[Cell]]]:
    """Return (service, cells) for at most 40 services; there is a cell for each case.

    ``runs`` has the time in s by service for each run of each case, ``order`` the services.
    """
    return [
        (shown(name, 60), _cells(of_each(runs, name), units.span))
        for name in itertools.islice(order, _MOST_ROWS)
    ]


def _operations(cases: Sequence[Shown]) -> list[tuple[str, list[Cell]]]:
    """Return (called service, cells); the cell of a case has the 99th percentile of call times."""
    found = [[call_times(result) for result in case.results] for case in cases]
    first = found[0][0]
    return _services(found, sorted(first, key=lambda name: (-first[name], name)))


def _settings(rows: list[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    """Return the rows of settings without details of workloads that the first case lacks.

    ``rows`` has the path of each setting that differs and its values in the cases. Of a workload
    that the first case lacks, only settings with keys in ``_TELLING`` are returned.
    """
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
