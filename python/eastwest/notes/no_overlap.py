"""Notes on workloads whose flows hardly overlapped in time, so that neither affected the other.

The flows of a Hadoop job begin only after set-up, heartbeats and maps. A workload that starts with
the run can end before that; its measures then contain no effect of the job.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from eastwest.results import pick
from eastwest.units import clean, span

if TYPE_CHECKING:
    import polars as pl

#: Share (0 to 1) of the shorter of two times of activity: workloads that overlap for less have a
#: note.
_LITTLE = 0.05
#: Maximum number of pairs of workloads in notes of a run; one more note has the number of others.
_MOST_PAIRS = 3
#: Kind of workload with jobs, and purpose of the flows from maps to reduces.
_JOBS, _SHUFFLE = "mapreduce", "shuffle"


@dataclass(frozen=True)
class Activity:
    """Time from the start of a workload's first flow to the end of its last flow, in s."""

    name: str
    has_jobs: bool
    in_background: bool
    #: Whether the times are those of the shuffle only.
    is_shuffle: bool
    from_s: float
    until_s: float

    @property
    def words(self) -> str:
        """Text for the flows: ``the flows of search`` or ``the shuffle of hadoop``."""
        return f"the {_SHUFFLE if self.is_shuffle else 'flows'} of {clean(self.name, 40)}"

    @property
    def later(self) -> str:
        """Text that tells how to start the workload later."""
        name = clean(self.name, 40)
        return f"submit the jobs of {name} later" if self.has_jobs else f"start {name} later"


def of_run(flows: pl.LazyFrame, summary: Mapping[str, Any], scenario: str) -> list[str]:
    """Return notes on pairs of workloads whose flows hardly overlapped, and on jobs without flows.

    Two workloads hardly overlapped if they did for less than 5 % of the shorter time of the two. A
    pair is considered if one of them has jobs, or if a goal of the run names one of them. The time
    of jobs with a shuffle is the time of the shuffle. ``flows`` is the table of flows, ``summary``
    the summary of the run, and ``scenario`` its resolved scenario as TOML.
    """
    named = {*_named(summary)}
    if scenario.count("[[workload]]") < 2 or not (named or f'"{_JOBS}"' in scenario):
        return []
    try:
        tree = tomllib.loads(scenario)
    except ValueError:
        return []
    listed = tree.get("workload")
    given = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    given = [each for each in given if not each.get("off")]
    active = _activities(flows, given)
    incomplete = (pick(summary, "flows", "count") or 0) > (pick(summary, "flows", "completed") or 0)
    notes: list[str] = []
    for one, other in combinations(active, 2):
        if not (one.has_jobs or other.has_jobs or named & {one.name, other.name}):
            continue
        # Incomplete flows have no row in the table: they may have overlapped with other flows.
        if incomplete and ("duration" in tree or one.in_background or other.in_background):
            continue
        notes += _on_pair(one, other)
    if not incomplete and active:
        notes += _without_flows(given, active, pick(summary, "simulated_s"))
    omitted = len(notes) - _MOST_PAIRS
    if omitted > 0:
        more = f"{omitted} more pairs of workloads hardly had flows at the same time"
        notes[_MOST_PAIRS:] = [more]
    return notes


def _named(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parts of the names of measures with a goal; some of them are names of workloads."""
    goals = summary.get("goals")
    for goal in goals if isinstance(goals, list) else ():
        if isinstance(goal, Mapping):
            yield from re.split(r"[./]", str(goal.get("metric")))


def _activities(flows: pl.LazyFrame, given: list[dict[str, Any]]) -> list[Activity]:
    """Return the activity of each workload in ``given`` that has complete flows, in their order."""
    import polars as pl  # noqa: PLC0415  large: not before the simulation has run

    times = (
        flows.filter(pl.col("finish_s").is_finite())
        .group_by("workload", is_shuffle=pl.col("purpose") == _SHUFFLE)
        .agg(pl.col("start_s").min(), pl.col("finish_s").max())
        .collect()
    )
    spans = {(name, is_shuffle): (first, last) for name, is_shuffle, first, last in times.rows()}
    found = []
    for each in given:
        name, has_jobs = str(each.get("name")), each.get("kind") == _JOBS
        background = bool(each.get("background"))
        for is_shuffle in (has_jobs, False):
            if (name, is_shuffle) in spans:
                times_s = spans[name, is_shuffle]
                found.append(Activity(name, has_jobs, background, is_shuffle, *times_s))
                break
    return found


def _on_pair(one: Activity, other: Activity) -> Iterator[str]:
    """Yield a note if the flows of two workloads hardly overlapped in time."""
    first, second = sorted((one, other), key=lambda each: each.from_s)
    end_s = min(first.until_s, second.until_s)
    shorter_s = min(first.until_s - first.from_s, second.until_s - second.from_s)
    if second.from_s <= end_s and end_s - second.from_s >= _LITTLE * shorter_s:
        return
    overlap_s = end_s - second.from_s
    own, during = (second, first) if first.is_shuffle else (first, second)
    name = clean(own.name, 40)
    little = (
        f"no flow of {name} was in progress"
        if overlap_s < 0
        else f"flows of {name} were in progress for only {span(overlap_s)}"
    )
    yield (
        f"{little} during {during.words} ({span(during.from_s)} to {span(during.until_s)}): to "
        f"measure both together, {first.later}"
    )


def _without_flows(
    given: list[dict[str, Any]], active: list[Activity], simulated_s: float | None
) -> Iterator[str]:
    """Yield a note on each workload with jobs that sent no flow before the run ended."""
    there = {each.name for each in active}
    for each in given:
        if each.get("kind") != _JOBS or each.get("name") in there:
            continue
        name = clean(str(each.get("name")), 40)
        why = "; a run does not wait for a workload with background = true"
        yield (
            f"{name} had no flow before the run ended at {span(simulated_s)}"
            f"{why if each.get('background') else ''}"
        )
