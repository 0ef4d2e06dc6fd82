"""Measures of each workload, in its own unit: exchanges, flows, jobs, rounds, transactions, ranks.

Measures count the units that *start* in a window of time. The first window is ``[measure.window]``
of the scenario, or else the whole run. Further windows are the times in which another workload is
active: while one of its jobs, rounds, ranks or flows is in progress.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import polars as pl

from eastwest.exchanges import exchanges
from eastwest.stats import percentile_of_ordered
from eastwest.work_units import UNITS

#: A result table in memory, or one whose rows are read when they are needed.
Table = pl.DataFrame | pl.LazyFrame

#: Names of the result tables from which the measures of workloads are computed.
TABLES = ("flows", "jobs", "rounds", "transactions", "mpi_ranks")
#: Columns of the table ``flows`` from which the measures are computed.
FLOW_COLUMNS = frozenset(
    (
        "flow", "workload", "purpose", "connection", "tag", "src", "dst", "bytes",
        "start_s", "finish_s", "fct_us", "retransmits", "timeouts",
    )
)  # fmt: skip

#: Share of a run (0 to 1). A workload that is active for this share or more counts as active for
#: the whole run, and there is no separate window for the time of its activity.
_WHOLE_RUN = 0.9

#: Percentiles of each measure: name in the summary, and share (0 to 1).
_QUANTILES = (("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0))


#: Kinds of units that define when a workload is active, in order of preference: the first kind that
#: the workload has is used.
#: Exchanges and transactions are too short and too many to define a window for other workloads.
_ACTIVITY = ("jobs", "ranks", "rounds", "flows")


@dataclass(frozen=True)
class Window:
    """Part of a run: units that start in ``[from_s, until_s)`` and within ``busy`` are counted."""

    from_s: float = 0.0
    until_s: float = math.inf
    #: Intervals ``from_s`` to ``to_s``, in order of time, without overlaps; None: the whole run.
    busy: pl.DataFrame | None = None

    def of(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of ``frame`` whose ``start_s`` is in the window."""
        start = frame["start_s"]
        inside = _rows(frame, (start >= self.from_s) & (start < self.until_s))
        if self.busy is None:
            return inside
        at = inside.sort("start_s").join_asof(
            self.busy, left_on="start_s", right_on="from_s", strategy="backward"
        )
        return at.filter(pl.col("start_s") < pl.col("to_s"))


def _rows(frame: pl.DataFrame, chosen: pl.Series) -> pl.DataFrame:
    """Return the rows of ``frame`` at which ``chosen`` is true; all rows without a query."""
    return frame if chosen.all(ignore_nulls=False) else frame.filter(chosen)


def busy(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame of the intervals in which at least one unit of ``frame`` is in progress.

    ``frame`` has a row for each unit of work, with the columns ``start_s`` and ``finish_s``; the
    result has the columns ``from_s`` and ``to_s``. The intervals are in order of time and do not
    overlap.
    """
    ordered = frame.select("start_s", "finish_s").sort("start_s")
    before = pl.col("finish_s").cum_max().shift(1)
    number = (pl.col("start_s") > before).fill_null(value=True).cum_sum()
    merged = ordered.group_by(number.alias("number"), maintain_order=True)
    spans = merged.agg(from_s=pl.col("start_s").min(), to_s=pl.col("finish_s").max())
    return spans.drop("number")


#: Columns of the frames that ``units`` returns.
_COLUMNS = {
    "workload": pl.String,
    "purpose": pl.String,
    "start_s": pl.Float64,
    "finish_s": pl.Float64,
    "took": pl.Float64,
}


_NO_UNITS = pl.DataFrame(schema=_COLUMNS)

#: Columns of the table of each kind of unit from which ``units`` makes its frame.
_NEEDED = {
    "transactions": ("workload", "arrived_s", "finished_s", "response_us"),
    "rounds": ("workload", "started_s", "finished_s"),
    "jobs": ("workload", "submitted_s", "finished_s", "runtime_s"),
    "ranks": ("workload", "finished_s"),
    "flows": ("workload", "purpose", "start_s", "finish_s", "fct_us"),
}


def units(tables: Mapping[str, Table]) -> dict[str, pl.DataFrame]:
    """Return a frame for each kind of unit of work in ``UNITS``, by name: a row per finished unit.

    Columns: ``workload``, ``purpose`` (empty except for flows), ``start_s``, ``finish_s``, and
    ``took``: the duration, in µs where the measure of the unit has a name that ends with ``_us``,
    and in s for ``_s``. ``tables`` are the result tables that :data:`TABLES` names.
    """
    return {name: _units_of(name, tables) for name in UNITS}


def _units_of(name: str, tables: Mapping[str, Table]) -> pl.DataFrame:
    """Return the frame of one kind of unit of work, see ``units``."""
    table = tables[{"exchanges": "flows", "ranks": "mpi_ranks"}.get(name, name)]
    # A query of polars takes 0.1 to 0.3 ms. Most runs have one kind of unit, and a sweep has
    # thousands of short runs, so tables in memory are read column by column, without a query.
    if isinstance(table, pl.DataFrame) and (
        table.is_empty() or (name == "exchanges" and not _has_requests(table))
    ):
        return _NO_UNITS.clone()
    if name == "exchanges":
        table = exchanges(table.lazy()).collect()
    elif isinstance(table, pl.LazyFrame):
        table = table.select(_NEEDED[name]).collect()
    unit, count = UNITS[name], table.height
    # Ranks have no column for their start: they start with the run.
    start = pl.repeat(0.0, count, eager=True) if name == "ranks" else table[unit.start]
    finish = table[unit.finish]
    took = finish - start if name in {"rounds", "ranks"} else table[unit.took]
    purpose = table["purpose"] if name == "flows" else pl.repeat("", count, eager=True)
    columns_of = zip(_COLUMNS, (table["workload"], purpose, start, finish, took), strict=True)
    found = pl.DataFrame([values.alias(column) for column, values in columns_of])
    # In result folders of old formats, flows that did not end have rows, too.
    return _rows(found, found["took"].is_finite())


def _has_requests(flows: pl.DataFrame) -> bool:
    """Whether some flow is a request: only then can there be exchanges."""
    return bool((flows["purpose"] == "request").any())


def measured(
    tables: Mapping[str, Table],
    simulated_s: float,
    window: Mapping[str, Any],
    warm_up_s: float = 0.0,
) -> dict[str, Any]:
    """Return the entries ``workloads`` and ``while`` of a summary: measures of each workload.

    ``workloads.W`` has the measures of workload W in the scenario's window, and the times of its
    first start and last end. ``while.X.W`` has the measures of W in the part of this window in
    which workload X was active. ``while.X/P.W`` has the measures of W while flows of X with purpose
    P were in progress. X is each workload with jobs, ranks, rounds or single flows that was not
    active for the whole run. W is any workload except X. Each measure has ``count``, ``mean`` and
    percentiles. ``window`` is ``[measure.window]`` of the scenario: ``from_s``, ``until_s``,
    ``cool_down_s``, ``while``, ``purpose``. Units that start before ``warm_up_s`` do not count.
    """
    rows = units(tables)
    own = _by_workload(rows)
    active = _activity(own)
    chosen = _chosen(window, rows, simulated_s, warm_up_s)
    found: dict[str, Any] = {"workloads": {}, "while": {}}
    for name, (from_s, until_s) in active.items():
        found["workloads"][name] = {
            "active_from_s": from_s,
            "active_until_s": until_s,
            **_of_workload(own[name], chosen),
        }
    if len(active) < 2 or chosen.busy is not None:
        return found
    for other in active:
        for label, times in _times_of(rows, other).items():
            in_progress_s = float((times["to_s"] - times["from_s"]).sum())
            if not 0 < in_progress_s < _WHOLE_RUN * simulated_s:
                continue
            during = replace(chosen, busy=times)
            beside = {w: _of_workload(own[w], during) for w in active if w != other}
            if any(beside.values()):
                found["while"][label] = {w: values for w, values in beside.items() if values}
    return found


def _by_workload(rows: Mapping[str, pl.DataFrame]) -> dict[str, dict[str, pl.DataFrame]]:
    """Return the frames of each workload that has rows, by its name and the kind of unit."""
    found: dict[str, dict[str, pl.DataFrame]] = {}
    for kind, frame in rows.items():
        if not frame.height:
            continue
        names = frame["workload"].unique().to_list()
        for name in names:
            part = frame if len(names) == 1 else frame.filter(pl.col("workload") == name)
            found.setdefault(str(name), {})[kind] = part
    return found


def _activity(own: Mapping[str, Mapping[str, pl.DataFrame]]) -> dict[str, tuple[float, float]]:
    """Return by workload (time of its first start, time of its last end), in s.

    The workloads are in order of their first start. ``own`` has the frames of each workload.
    """
    found = {name: _span(frames.values()) for name, frames in own.items()}
    return dict(sorted(found.items(), key=lambda each: (each[1][0], each[0])))


def _span(frames: Collection[pl.DataFrame]) -> tuple[float, float]:
    """Return the first start and the last end of the units in ``frames``, in s."""
    return (
        min(float(cast(float, frame["start_s"].min())) for frame in frames),
        max(float(cast(float, frame["finish_s"].max())) for frame in frames),
    )


def _times_of(rows: Mapping[str, pl.DataFrame], workload: str) -> dict[str, pl.DataFrame]:
    """Return frames of the intervals (``from_s``, ``to_s``) in which a workload is active, by name.

    The names are ``W`` for workload W and, if its flows belong to jobs, ranks or rounds, ``W/P``
    for the time while its flows of purpose P are in progress. The result is empty for a workload
    with exchanges or transactions. ``rows`` are the frames that ``units`` returns.
    """
    own = {name: frame.filter(pl.col("workload") == workload) for name, frame in rows.items()}
    if own["exchanges"].height or own["transactions"].height:
        return {}
    unit = next((name for name in _ACTIVITY if own[name].height), None)
    if unit is None:
        return {}
    found = {workload: busy(own[unit])}
    for (purpose,), flows in sorted(own["flows"].group_by("purpose"), key=lambda each: each[0]):
        # Flows of other purposes than "flow" belong to a job, round or rank, also if none is
        # complete.
        if unit != "flows" or purpose != "flow":
            found[f"{workload}/{purpose}"] = busy(flows)
    return found


def _chosen(
    window: Mapping[str, Any],
    rows: Mapping[str, pl.DataFrame],
    simulated_s: float,
    warm_up_s: float,
) -> Window:
    """Return the window of time that the table ``[measure.window]`` chooses, without the warm-up.

    ``window`` is this table of the scenario, ``rows`` are the frames that ``units`` returns.
    """
    until_s = math.inf
    if "cool_down_s" in window:
        until_s = simulated_s - window["cool_down_s"]
    chosen = Window(
        max(window.get("from_s", 0.0), warm_up_s), min(until_s, window.get("until_s", math.inf))
    )
    during = window.get("while")
    if during is None:
        return chosen
    own = {name: frame.filter(pl.col("workload") == during) for name, frame in rows.items()}
    if "purpose" in window:
        in_progress = own["flows"].filter(pl.col("purpose") == window["purpose"])
    else:
        every = (own[name] for name in (*_ACTIVITY, "exchanges") if own[name].height)
        in_progress = next(every, own["flows"])
    return replace(chosen, busy=busy(in_progress))


def _of_workload(own: Mapping[str, pl.DataFrame], window: Window) -> dict[str, Any]:
    """Return the statistics of one workload in a window of time, by measure; empty without units.

    ``own`` has the workload's frames by kind of unit. For jobs and rounds, the result also has
    ``makespan_s``, the time from the first start to the last end.
    """
    found: dict[str, Any] = {}
    for name, unit in UNITS.items():
        if name not in own:
            continue
        inside = window.of(own[name])
        if not inside.height:
            continue
        found[unit.name] = spread(inside["took"])
        if name == "flows":
            for purpose in sorted(inside["purpose"].unique()):
                part = inside["took"].filter(inside["purpose"] == purpose)
                if len(part) < inside.height:
                    found[f"{purpose}_fct_us"] = spread(part)
        if name in ("jobs", "rounds"):
            first, last = _span([inside])
            found["makespan_s"] = last - first
    return found


def spread(values: pl.Series) -> dict[str, float]:
    """Return ``count``, ``mean``, ``p50``, ``p99``, ``p999`` and ``max`` of values."""
    ordered = values.sort()
    # An exact sum depends neither on its order nor on the machine.
    found: dict[str, float] = {
        "count": len(ordered),
        "mean": math.fsum(ordered) / len(ordered),
    }
    for name, q in _QUANTILES:
        found[name] = percentile_of_ordered(ordered, q)
    return found
