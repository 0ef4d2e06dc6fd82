"""Metrics of a run in the tables of a sweep, with or without a warm-up.

All numbers of a run's summary are metrics, named by their path: ``flows.fct_us.p99``. Values that
depend on the machine (``wall_s`` …) are not metrics, so that equal runs have equal metrics on all
machines.

With a warm-up of *w*, flows that started, jobs that were submitted and rounds that started before
*w* are left out of the metrics of flows, jobs and rounds, and of the measures of each workload.
These metrics are computed again from the tables by the definitions of the summary. All other
metrics (packets, drops, latency, TCP's counters) are counted over the whole run, because a run
stores only their totals.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from eastwest import core, fidelity
from eastwest.results import Result, frame
from eastwest.work_units import STATISTICS

if TYPE_CHECKING:
    import polars as pl

#: Numbers of a summary that are not metrics: they depend on the machine, or are settings.
_NOT_METRICS = {"wall_s", "cpu_s", "peak_rss_mb", "seed", "format"}
#: Keys of a summary whose metrics are computed again without the warm-up.
WARMED = ("flows", "jobs", "rounds", "workloads", "while")
#: For each table of which a warm-up excludes rows: the column with the start time of a row.
STARTS = {
    "flows": "start_s",
    "jobs": "submitted_s",
    "rounds": "started_s",
    "transactions": "arrived_s",
}
_PS_PER_S = 10**12


def scalars(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, float]]:
    """Yield (path, number) for all numbers of a summary that are metrics.

    ``above`` is the beginning of all paths, with its dot.
    """
    for key, value in tree.items():
        path = f"{above}{key}"
        if isinstance(value, Mapping):
            yield from scalars(value, f"{path}.")
        elif type(value) in {int, float} and math.isfinite(value) and path not in _NOT_METRICS:
            yield path, float(value)


def is_empty(name: str, metrics: Mapping[str, float]) -> bool:
    """Whether a metric is a statistic, such as a percentile, of no values."""
    stem, _, statistic = name.rpartition(".")
    return statistic in STATISTICS[1:] and metrics.get(f"{stem}.count") == 0


def warm_up_file(warm_up_ps: int) -> str:
    """Return the name of the file in a run's folder with the metrics after a warm-up."""
    return f"after-{warm_up_ps}ps.json"


def metrics_in(summary: Mapping[str, Any]) -> dict[str, float]:
    """Return all metrics of a run by name, from its summary.

    Statistics of no values, and numbers of packets in approximate modes, are not metrics. A run
    that was stopped early has no metrics.
    """
    if "stopped_early" in summary:
        return {}
    whole = dict(scalars(summary))
    left_out = fidelity.OF_PACKETS if fidelity.is_approximate(summary) else frozenset()
    whole = {
        name: value
        for name, value in whole.items()
        if name.partition(".")[0] not in left_out and not is_empty(name, whole)
    }
    if not whole.get("jobs.count"):
        # A run without jobs has no makespan.
        whole.pop("jobs.makespan_s", None)
    return whole


def metrics_of(result: Result, warm_up_ps: int) -> dict[str, float]:
    """Return all metrics of a run by path; metrics of the keys ``WARMED`` exclude the warm-up."""
    whole = metrics_in(result.summary)
    if warm_up_ps == 0 or "stopped_early" in result.summary:
        return whole
    path = result.path / warm_up_file(warm_up_ps)
    if path.is_file():
        after = json.loads(path.read_text(encoding="utf-8"))
    else:
        from eastwest import by_workload  # noqa: PLC0415  large: polars

        tables = {name: result.table(name) for name in by_workload.TABLES}
        after = after_warm_up(warm_up_ps, tables, result.summary)
    kept = {name: v for name, v in whole.items() if name.partition(".")[0] not in WARMED}
    return {**kept, **after}


def warm_up_bytes(raw: core.CoreResult, warm_up_ps: int) -> bytes:
    """Return the content of the file with a run's metrics after a warm-up (JSON)."""
    from eastwest import by_workload  # noqa: PLC0415  large: polars

    tables = {name: frame(raw["tables"][name]) for name in by_workload.TABLES}
    summary = json.loads(raw["summary_json"])
    return json.dumps(after_warm_up(warm_up_ps, tables, summary)).encode()


def after_warm_up(
    warm_up_ps: int, tables: Mapping[str, pl.DataFrame], summary: Mapping[str, Any]
) -> dict[str, float]:
    """Return the metrics of flows, jobs, rounds and workloads after a warm-up, by path.

    ``tables`` has the result tables that ``eastwest.by_workload.TABLES`` names; ``summary`` is the
    summary of the run.
    """
    import polars as pl  # noqa: PLC0415  large: not before the simulation has run

    from eastwest import by_workload  # noqa: PLC0415

    start_s = warm_up_ps / _PS_PER_S
    flows, jobs, rounds = (
        tables[name].filter(pl.col(STARTS[name]) >= start_s) for name in ("flows", "jobs", "rounds")
    )
    found: dict[str, float] = {
        "flows.completed": flows.height,
        "flows.bytes": float(flows["bytes"].sum()),
        "jobs.count": jobs.height,
        "rounds.count": rounds.height,
        **_spread("flows.fct_us", flows["fct_us"]),
        **_spread("jobs.runtime_s", jobs["runtime_s"]),
    }
    for (purpose,), part in flows.group_by("purpose"):
        stem = f"flows.by_purpose.{purpose}"
        found[f"{stem}.count"] = part.height
        found[f"{stem}.bytes"] = float(part["bytes"].sum())
        found.update(_spread(f"{stem}.fct_us", part["fct_us"]))
    if jobs.height:
        found["jobs.makespan_s"] = max(jobs["finished_s"]) - min(jobs["submitted_s"])
    if rounds.height:
        took_s = max(rounds["finished_s"]) - min(rounds["started_s"])
        found["rounds.goodput_bps"] = float(rounds["bytes"].sum()) * 8 / max(took_s, 1e-12)
    lazy = {name: table.lazy() for name, table in tables.items()}
    window = summary.get("window", {})
    own = by_workload.measured(lazy, float(summary["simulated_s"]), window, start_s)
    found.update(scalars(own))
    return {name: float(found[name]) for name in sorted(found)}


def _spread(stem: str, values: pl.Series) -> dict[str, float]:
    """Return mean, p50, p99 and maximum of values, by path: ``stem`` and the statistic.

    Percentiles are observed values. Without values, the result is empty.
    """
    from eastwest import by_workload  # noqa: PLC0415  large: polars

    if not values.len():
        return {}
    found = by_workload.spread(values)
    return {f"{stem}.{name}": found[name] for name in ("mean", "p50", "p99", "max")}
