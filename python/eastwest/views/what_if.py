"""Transactions of a trace in several cases: numbers over seeds, and time by service."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from eastwest import stats, units
from eastwest.results import Result, pick
from eastwest.views.metrics import Metric

#: Name under which the network is listed among the services.
NETWORK = "(network)"
#: Column ``name``: the service of a call, or its component if the component has no service (a
#: client).
_SERVICE = pl.when(pl.col("service") == "").then("component").otherwise("service").alias("name")

#: Values of a metric, one for each seed; None if a run lacks the metric.
Values = list[float] | None


@dataclass(frozen=True)
class Shown:
    """A case of a comparison: its name, and one result for each seed; seeds have a fixed order."""

    name: str
    results: tuple[Result, ...]

    def values(self, metric: Metric) -> Values:
        """Return the values of a metric in the case, one for each seed; None if a run lacks it."""
        values = [metric.of(result) for result in self.results]
        known = [value for value in values if value is not None]
        return known if len(known) == len(values) else None

    def share(self, part: str) -> float | None:
        """Return a part of the response time as a share (0 to 1) of it, as mean over the seeds.

        ``part`` is a key of ``transactions`` in the summary, such as ``network_us``. Returns None
        if a run lacks the part.
        """
        shares = []
        for result in self.results:
            found = pick(result.summary, "transactions", part, "mean")
            whole = pick(result.summary, "transactions", "response_us", "mean")
            if found is None or not whole:
                return None
            shares.append(found / whole)
        return math.fsum(shares) / len(shares)


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


MEDIAN = Metric("Response time, median", ("transactions", "response_us", "p50"), units.span, 1e-6)
TAIL = Metric("Response time, p99", ("transactions", "response_us", "p99"), units.span, 1e-6)
METRICS = (
    Metric("Transactions", ("transactions", "count"), units.count),
    Metric("Response time, mean", ("transactions", "response_us", "mean"), units.span, 1e-6),
    MEDIAN,
    Metric("Response time, p95", ("transactions", "response_us", "p95"), units.span, 1e-6),
    TAIL,
    Metric("… of it the network, mean", ("transactions", "network_us", "mean"), units.span, 1e-6),
    Metric("… of it computing, mean", ("transactions", "compute_us", "mean"), units.span, 1e-6),
    Metric(
        "… of computing, waiting for processors",
        ("transactions", "queued_us", "mean"),
        units.span,
        1e-6,
    ),
    Metric("Transactions per second", ("transactions", "per_second"), _plain),
    Metric("Transactions per second and watt", ("transactions", "per_second_per_watt"), _plain),
    Metric("Energy of links and switches", ("energy_j", "with_switches", "total"), units.joules),
    Metric("Packet latency, p99", ("latency_us", "p99"), units.span, 1e-6),
    Metric("Packets dropped", ("packets", "dropped"), units.count),
    Metric("TCP timeouts", ("tcp", "timeouts"), units.count),
)


def intervals(case: Shown, base: Shown) -> dict[str, dict[str, Any]]:
    """Return metrics of a case with their confidence intervals, by path in the summary.

    Each metric has ``n`` (number of seeds), ``mean``, ``low`` and ``high`` (ends of the interval,
    None for one seed), in units of the summary. ``of_first`` has ``mean``, ``low`` and ``high`` of
    the ratios to the metric of ``base`` with the same seed; it is None without ratios.
    """
    found = {}
    for metric in METRICS:
        values = case.values(metric)
        if values is None:
            continue
        interval = stats.mean_interval([value / metric.factor for value in values])
        by = ratio(values, base.values(metric))
        found[".".join(metric.path)] = {
            "n": interval.n,
            "mean": interval.value,
            "low": interval.low,
            "high": interval.high,
            "of_first": by and {"mean": by.value, "low": by.low, "high": by.high},
        }
    return found


def ratio(values: Values, base: Values) -> stats.Interval | None:
    """Return the mean of the ratios ``values`` / ``base``, paired by seed, with its interval.

    Returns None if an argument is None, or a value of ``base`` is 0.
    """
    if values is None or base is None or not all(base):
        return None
    return stats.mean_interval([v / b for v, b in zip(values, base, strict=True)])


def recorded_means(case: Shown) -> pl.DataFrame:
    """Return the mean response time of each transaction of the trace in each run of a case.

    A run replays a transaction of the trace any number of times. Columns: ``workload``,
    ``recorded`` (number in the trace), ``response_us`` (mean), and ``run``, the index of the run.
    """
    return pl.concat(
        result.transactions.group_by("workload", "recorded")
        .agg(pl.col("response_us").mean())
        .filter(pl.col("response_us") > 0)
        .sort("workload", "recorded")
        .with_columns(pl.lit(number).alias("run"))
        for number, result in enumerate(case.results)
    )


def time_by_service(result: Result) -> dict[str, float]:
    """Return mean s on the critical path of a transaction, by service and for ``NETWORK``."""
    count = max(1, result.transactions.height)
    sums = result.calls.group_by(_SERVICE).agg(pl.col("compute_us").sum())
    sums = sums.sort("compute_us", "name", descending=[True, False])
    found = {NETWORK: float(result.calls["network_us"].sum()) / 1e6 / count}
    return found | {str(service): compute / 1e6 / count for service, compute in sums.iter_rows()}


def means(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the mean over runs of each named number; a missing number counts as 0."""
    order = dict.fromkeys(name for found in runs for name in found)
    return {name: math.fsum(found.get(name, 0.0) for found in runs) / len(runs) for name in order}


def call_times(result: Result) -> dict[str, float]:
    """Return the 99th percentile in s of the duration of calls, by the called service.

    Calls from outside, with which transactions begin, are left out.
    """
    length = (pl.col("done_s") - pl.col("sent_s")).quantile(0.99, "higher")
    called = result.calls.filter(pl.col("parent") >= 0)
    rows = called.group_by(_SERVICE).agg(length.alias("p99")).sort("name")
    return {str(service): float(p99) for service, p99 in rows.iter_rows()}


def of_each(runs: Sequence[Sequence[dict[str, float]]], name: str) -> list[Values]:
    """Return the values of ``name`` in each case, one for each seed; None if a run lacks them.

    ``runs`` has a list for each case, and in it a mapping of names to numbers for each run.
    """
    values = [[one[name] for one in case if name in one] for case in runs]
    return [v if len(v) == len(case) else None for v, case in zip(values, runs, strict=True)]
