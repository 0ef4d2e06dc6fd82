"""Notes on queries that missed their deadline, because measured times do not show these queries.

The application ``fan-out`` answers a query at its deadline at the latest. An incomplete query has
the deadline as its time, so that a percentile of ``query_us`` hides how long its responses took. By
convention this holds for every application with the counter ``missed`` and the measure ``query``:
also for the template of ``eastwest new --kind application``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from eastwest.results import pick
from eastwest.units import clean, count, percent, plural

if TYPE_CHECKING:
    from eastwest.sweep.tables import SweepResult

#: Name of the measure that the deadline limits, and the counter of incomplete queries.
_MEASURE, _MISSED = "query_us", "counters.missed"


def of_run(summary: Mapping[str, Any]) -> list[str]:
    """Return a note on each application of a run with queries that missed their deadline."""
    applications = summary.get("applications")
    goals = summary.get("goals")
    measures = [g.get("metric") for g in goals if isinstance(g, Mapping)] if goals else []
    notes = []
    for workload, own in applications.items() if isinstance(applications, Mapping) else ():
        missed, longest = pick(own, "counters", "missed"), pick(own, _MEASURE, "max")
        answered = pick(own, _MEASURE, "count")
        if not missed or not answered or longest is None:
            continue
        share = missed / answered
        name = clean(str(workload), 40)
        hidden = f"percentiles above p{100 * (1 - share):.6g} do" if share < 1 else "it does"
        note = (
            f"{count(missed)} of {plural(answered, 'query', 'queries')} of {name} "
            f"({percent(share)}) missed the deadline; {_MEASURE} contains the deadline as "
            f"their time, so that {hidden} not show how long the responses took"
        )
        if any(str(each).startswith(f"applications.{workload}.{_MEASURE}.") for each in measures):
            other = clean(f"applications.{workload}.{_MISSED}", 60)
            note += f". A goal on {_MEASURE} also needs the goal {other} <= 0"
        notes.append(note)
    return notes


def of_sweep(sweep: SweepResult) -> list[str]:
    """Return a note on each application whose ``query_us`` is shown, or has a goal, in a sweep.

    There is no note if the queries of the application were complete in all runs.
    """
    import polars as pl  # noqa: PLC0415  large

    goals = sweep.summary.get("goals")
    named = [*(sweep.summary.get("show") or []), *(goals["goal"] if goals else [])]
    measures = [str(each).partition(f".{_MEASURE}.") for each in named]
    workloads = {before for before, found, _ in measures if found}
    notes = []
    for workload in sorted(workloads):
        rows = sweep.points.filter(pl.col("metric") == f"{workload}.{_MISSED}")
        points = rows.filter(pl.col("mean") > 0).height
        if points:
            name = clean(workload.removeprefix("applications."), 40)
            notes.append(
                f"at {count(points)} of {count(rows.height)} points of the sweep, some queries of "
                f"{name} missed the deadline; {_MEASURE} contains the deadline as their time: show "
                f"{clean(workload, 60)}.{_MISSED}, or set a longer deadline"
            )
    return notes
