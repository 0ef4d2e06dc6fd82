"""The page of what-if: the same transactions under several circumstances, side by side."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from eastwest import core, units
from eastwest.report import spread, words
from eastwest.report.compare import ABSENT, change, differences
from eastwest.report.draw import SHADES, WIDTH, Chart, Scale, linear
from eastwest.report.page import render
from eastwest.report.tables import shown
from eastwest.results import Result, pick

_BAR = 22
_GAP = 12
#: Services with a colour of their own, the network beside them.
_MOST_SERVICES = SHADES - 2
_MOST_ROWS = 40
_WORKLOAD = re.compile(r"(workload\.\d+)\..*", re.DOTALL)
#: Settings of a workload that say what it does.
_TELLING = {"name", "kind", "input", "shuffle", "output", "load", "bytes", "file"}
NETWORK = "(network)"
OTHERS = "others"


@dataclass(frozen=True)
class Shown:
    """A case with its result."""

    name: str
    result: Result


@dataclass(frozen=True)
class Row:
    """A number of the comparison: where the summary has it, and whether less is better."""

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
    Row("Transactions per second", ("transactions", "per_second"), _per_watt),
    Row("Transactions per second and watt", ("transactions", "per_second_per_watt"), _per_watt),
    Row("Energy of links and switches", ("energy_j", "with_switches", "total"), units.joules),
    Row("Packet latency, p99", ("latency_us", "p99"), units.span, 1e-6),
    Row("Packets dropped", ("packets", "dropped"), units.count),
    Row("TCP timeouts", ("tcp", "timeouts"), units.count),
)


def page(cases: Sequence[Shown], title: str) -> str:
    """Give the page. The first case is what the others are compared with."""
    results = [case.result for case in cases]
    names = [shown(case.name, 60) for case in cases]
    by_service = [_by_service(result) for result in results]
    charts = [chart for chart in (_response(names, results), _slower(names, results)) if chart]
    if len(charts) == 1:
        charts[0].wide = True
    where = _where(names, by_service)
    return render(
        "what_if.html.j2",
        {"charts": {c.name: c.script() for c in [*charts, where]}, "topology": None},
        title=shown(title, 100),
        about=" · ".join(
            (
                f"{len(cases)} cases",
                f"{units.count(results[0].transactions.height)} transactions in the first",
                f"Eastwest {core.version()}",
            )
        ),
        names=names,
        sentences=_sentences(names, results),
        metrics=_metrics(results),
        charts=charts,
        where=where,
        services=_services(by_service),
        operations=_operations(results),
        differences=_settings(differences(results)),
        folder_rows=[
            [name, shown(result.path, 300), shown(result.digest, 64)[:12]]
            for name, result in zip(names, results, strict=True)
        ],
        fabrics=[[name, _fabric(result)] for name, result in zip(names, results, strict=True)],
    )


def _value(result: Result, row: Row) -> float | None:
    value = pick(result.summary, *row.path)
    return None if value is None else value * row.factor


def _metrics(results: Sequence[Result]) -> list[tuple[str, list[tuple[str, str]]]]:
    rows = []
    for row in ROWS:
        values = [_value(result, row) for result in results]
        if all(value is None for value in values):
            continue
        rows.append((row.title, _cells(values, row.write)))
    return rows


def _cells(
    values: Sequence[float | None], write: Callable[[float | None], str]
) -> list[tuple[str, str]]:
    """Write values, each with its change against the first."""
    first = values[0]
    cells = []
    for place, value in enumerate(values):
        text = ""
        if place and value is not None and first and value != first:
            text = change(value / first)
        cells.append((write(value), text))
    return cells


def _sentences(names: Sequence[str], results: Sequence[Result]) -> list[str]:
    median, tail = ROWS[2], ROWS[4]
    said = [
        f"“{names[0]}”: half of the transactions take up to "
        f"{units.span(_value(results[0], median))}, 99 % up to "
        f"{units.span(_value(results[0], tail))}; "
        f"{units.percent(_network_share(results[0]))} of the time is the network's."
    ]
    base = [_value(results[0], row) for row in (median, tail)]
    for name, result in zip(names[1:], results[1:], strict=True):
        now = [_value(result, row) for row in (median, tail)]
        changes = [
            change(value / before) if value is not None and before else "–"
            for value, before in zip(now, base, strict=True)
        ]
        said.append(
            f"“{name}”: the median is {units.span(now[0])} ({changes[0]}), the 99th percentile "
            f"{units.span(now[1])} ({changes[1]}); "
            f"{units.percent(_network_share(result))} is the network's."
        )
    return said


def _network_share(result: Result) -> float | None:
    network = pick(result.summary, "transactions", "network_us", "mean")
    whole = pick(result.summary, "transactions", "response_us", "mean")
    return None if network is None or not whole else network / whole


def _response(names: Sequence[str], results: Sequence[Result]) -> Chart | None:
    curves = [
        (name, result.transactions["response_us"].to_numpy() / 1e6)
        for name, result in zip(names, results, strict=True)
    ]
    chart = spread.curves_of("response-times", curves, "response time", "transactions done")
    if chart is not None:
        chart.title = "How long transactions take"
        chart.note = "Share of transactions that take at most so long."
        chart.height = 260
    return chart


def _slower(names: Sequence[str], results: Sequence[Result]) -> Chart | None:
    """How much slower each transaction is than the same one in the first case."""
    base = _once(results[0])
    curves = []
    for name, result in zip(names[1:], results[1:], strict=True):
        pairs = base.join(_once(result), on=["workload", "recorded"], how="inner", suffix="_now")
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


def _once(result: Result) -> pl.DataFrame:
    """The mean response time of each recorded transaction."""
    return (
        result.transactions.group_by("workload", "recorded")
        .agg(pl.col("response_us").mean())
        .filter(pl.col("response_us") > 0)
        .sort("workload", "recorded")
    )


def _by_service(result: Result) -> dict[str, float]:
    """Mean seconds on the critical path of a transaction, by service; the network apart."""
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


def _where(names: Sequence[str], by_service: Sequence[dict[str, float]]) -> Chart:
    """Where the time of an average transaction goes: a bar per case."""
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
    by_service: Sequence[dict[str, float]],
) -> list[tuple[str, list[tuple[str, str]]]]:
    """Mean time on the critical path of a transaction, a row a service."""
    order = list(dict.fromkeys(name for found in by_service for name in found))
    return [
        (shown(name, 60), _cells([found.get(name) for found in by_service], units.span))
        for name in order[:_MOST_ROWS]
    ]


def _operations(results: Sequence[Result]) -> list[tuple[str, list[tuple[str, str]]]]:
    """99th percentile of the time that calls between components take, a row a service."""
    found = []
    for result in results:
        length = ((pl.col("done_s") - pl.col("sent_s")).quantile(0.99, "higher")).alias("p99")
        name = pl.when(pl.col("service") == "").then("component").otherwise("service").alias("name")
        called = result.calls.filter(pl.col("parent") >= 0)
        rows = called.group_by(name).agg(length, pl.len()).sort("name")
        found.append({str(name): float(p99) for name, p99, _ in rows.iter_rows()})
    order = sorted(found[0], key=lambda name: (-found[0][name], name))
    return [
        (shown(name, 60), _cells([each.get(name) for each in found], units.span))
        for name in order[:_MOST_ROWS]
    ]


def _settings(rows: list[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    """Leave out most settings of workloads that the first case does not have."""
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
