"""Measures of each workload, in its own unit: exchanges, flows, jobs, rounds, transactions, ranks.

Measures count what *starts* in a window of time. The windows are that of the scenario
(``[measure.window]``; without it the whole run), and, for each workload, the time while it is
active: from its first start to its last end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from eastwest.errors import InputError, did_you_mean
from eastwest.views.exchanges import exchanges

#: Tables from which the measures are computed.
TABLES = ("flows", "jobs", "rounds", "transactions", "mpi_ranks")

#: A workload that is active for at least this share of the run has no window of its own.
_WHOLE_RUN = 0.9

#: Percentiles of each measure, as the summary names them.
_QUANTILES = (("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0))


@dataclass(frozen=True)
class Unit:
    """What a workload does many times, and the time that each of them takes."""

    #: Name of the measure, with the unit of time, such as ``exchange_us``.
    name: str
    #: Noun of one of them, for texts.
    noun: str
    #: Columns with the times of start and end, and with the duration.
    start: str
    finish: str
    took: str


#: The units by their table, in the order in which texts show them.
UNITS: dict[str, Unit] = {
    "exchanges": Unit("exchange_us", "exchange", "start_s", "finish_s", "exchange_us"),
    "transactions": Unit("transaction_us", "transaction", "arrived_s", "finished_s", "response_us"),
    "rounds": Unit("round_s", "round", "started_s", "finished_s", "took_s"),
    "jobs": Unit("runtime_s", "job", "submitted_s", "finished_s", "runtime_s"),
    "ranks": Unit("rank_s", "rank", "start_s", "finished_s", "took_s"),
    "flows": Unit("fct_us", "flow", "start_s", "finish_s", "fct_us"),
}


@dataclass(frozen=True)
class Window:
    """A window of time: what starts in ``[from_s, until_s)`` is counted."""

    from_s: float = 0.0
    until_s: float = math.inf

    def both(self, other: Window) -> Window:
        """Return the time that is in both windows."""
        return Window(max(self.from_s, other.from_s), min(self.until_s, other.until_s))


def units(tables: Mapping[str, pl.LazyFrame]) -> dict[str, pl.DataFrame]:
    """Return the rows of each unit: ``workload``, ``purpose``, ``start_s``, ``finish_s``, ``took``.

    ``tables`` are those of :data:`TABLES`. ``took`` has the unit of the measure's name;
    ``purpose`` is empty but for flows.
    """
    started = tables["rounds"], tables["mpi_ranks"]
    sources = {
        "exchanges": exchanges(tables["flows"]),
        "transactions": tables["transactions"],
        "rounds": started[0].with_columns(took_s=pl.col("finished_s") - pl.col("started_s")),
        "jobs": tables["jobs"],
        # Ranks have no column for their start: they start with the run.
        "ranks": started[1].with_columns(start_s=0.0, took_s=pl.col("finished_s")),
        "flows": tables["flows"],
    }
    found = {}
    for name, unit in UNITS.items():
        purpose = pl.col("purpose") if name == "flows" else pl.lit("")
        found[name] = (
            sources[name]
            .select(
                "workload",
                purpose.alias("purpose"),
                pl.col(unit.start).alias("start_s"),
                pl.col(unit.finish).alias("finish_s"),
                pl.col(unit.took).alias("took"),
            )
            .collect()
        )
    return found


def measured(
    tables: Mapping[str, pl.LazyFrame],
    simulated_s: float,
    window: Mapping[str, Any],
    warm_up_s: float = 0.0,
) -> dict[str, Any]:
    """Return ``workloads`` and ``while`` of a summary.

    ``workloads.W`` has the measures of workload W in the scenario's window; ``while.X.W`` those in
    the part of this window in which workload X was active, for each X that was not active for the
    whole run, and each other workload W. Each measure has ``count``, ``mean`` and percentiles.
    ``window`` is the mapping of the core: ``from_s``, ``until_s``, ``cool_down_s``, ``while``.
    """
    rows = units(tables)
    active = _activity(rows)
    chosen = _chosen(window, active, rows, simulated_s).both(Window(warm_up_s))
    found: dict[str, Any] = {"workloads": {}, "while": {}}
    for name, (from_s, until_s) in active.items():
        own = _of_workload(rows, name, chosen)
        found["workloads"][name] = {"active_from_s": from_s, "active_until_s": until_s, **own}
    for other, (from_s, until_s) in active.items():
        if until_s - from_s >= _WHOLE_RUN * simulated_s or until_s <= from_s:
            continue
        during = chosen.both(Window(from_s, until_s))
        beside = {w: _of_workload(rows, w, during) for w in active if w != other}
        if any(beside.values()):
            found["while"][other] = {w: values for w, values in beside.items() if values}
    return found


def _activity(rows: Mapping[str, pl.DataFrame]) -> dict[str, tuple[float, float]]:
    """Return for each workload the time of its first start and of its last end, in s."""
    every = pl.concat([frame.select("workload", "start_s", "finish_s") for frame in rows.values()])
    spans = every.group_by("workload").agg(pl.col("start_s").min(), pl.col("finish_s").max())
    return {name: (first, last) for name, first, last in spans.sort("start_s", "workload").rows()}


def _chosen(
    window: Mapping[str, Any],
    active: Mapping[str, tuple[float, float]],
    rows: Mapping[str, pl.DataFrame],
    simulated_s: float,
) -> Window:
    """Return the window of a scenario as times."""
    until_s = min(window.get("until_s", math.inf), simulated_s - window.get("cool_down_s", 0.0))
    chosen = Window(window.get("from_s", 0.0), until_s if window else math.inf)
    during = window.get("while")
    if during is None:
        return chosen
    workload, _, purpose = during.partition("/")
    if not purpose:
        return chosen.both(Window(*active.get(workload, (0.0, 0.0))))
    flows = rows["flows"].filter(pl.col("workload") == workload)
    known = flows["purpose"].unique().to_list()
    if purpose not in known and flows.height:
        hint = did_you_mean(purpose, known)
        raise InputError(f"measure.window.while: {workload} has no flows of {purpose!r:.40}{hint}")
    inside = flows.filter(pl.col("purpose") == purpose)
    first, last = inside["start_s"].min(), inside["finish_s"].max()
    return chosen.both(Window(*((first, last) if inside.height else (0.0, 0.0))))  # type: ignore[arg-type]


def _of_workload(
    rows: Mapping[str, pl.DataFrame], workload: str, window: Window
) -> dict[str, dict[str, float]]:
    """Return the measures of one workload in a window, by name."""
    found: dict[str, dict[str, float]] = {}
    for name, unit in UNITS.items():
        frame = rows[name]
        inside = frame.filter(
            (pl.col("workload") == workload)
            & (pl.col("start_s") >= window.from_s)
            & (pl.col("start_s") < window.until_s)
        )
        if not inside.height:
            continue
        found[unit.name] = spread(inside["took"])
        if name == "flows":
            for (purpose,), part in sorted(inside.group_by("purpose"), key=lambda each: each[0]):
                if part.height < inside.height:
                    found[f"{purpose}_fct_us"] = spread(part["took"])
        if name == "jobs" or name == "rounds":
            span_s = float(inside["finish_s"].max()) - float(inside["start_s"].min())  # type: ignore[arg-type]
            found["makespan_s"] = {"all": span_s}
    return found


def spread(values: pl.Series) -> dict[str, float]:
    """Return count, mean and percentiles; a percentile is the least value with that share up to it."""
    ordered = values.sort().to_list()
    # An exact sum depends neither on its order nor on the machine.
    found: dict[str, float] = {
        "count": len(ordered),
        "mean": math.fsum(ordered) / len(ordered),
    }
    for name, q in _QUANTILES:
        place = min(max(math.ceil(q * len(ordered)), 1), len(ordered)) - 1
        found[name] = float(ordered[place])
    return found


def leaves(found: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of measures with their paths."""
    for key, value in found.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", float(value)
