"""The complete analysis of one trace: access, shapes, task times, arrivals."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from eastwest.account import Entry, entries
from eastwest.traces.load import Trace
from eastwest.workload.access import Access, access
from eastwest.workload.arrival import Arrival, arrival
from eastwest.workload.jobs import Jobs
from eastwest.workload.shapes import Shapes, shapes
from eastwest.workload.tasks import Durations, durations

Told = Callable[[str, float], None]


@dataclass(frozen=True)
class Description:
    """Analyses of a trace: data access, shapes of jobs, arrivals and task times."""

    name: str
    #: Name of the format in which the trace was recorded.
    source: str
    #: Columns (``jobs.user``) and tables for which the source of the trace states nothing.
    lacks: tuple[str, ...]
    access: Access
    shapes: Shapes
    arrival: Arrival
    #: Durations of task attempts, by kind of task (``map``, ``reduce`` …).
    tasks: Mapping[str, Durations]
    #: Rows and values that the import left out, changed or noted, by reason.
    account: tuple[Entry, ...] = ()


def describe(trace: Trace, seed: int = 1, told: Told | None = None) -> Description:
    """Return all analyses of a trace.

    ``seed`` is for all random numbers. ``told``, for progress, is called with the name of each step
    and the share of the work before this step, 0 to 1.
    """
    tell = told or (lambda what, share: None)
    tell("jobs", 0.0)
    jobs = jobs_of(trace)
    files = trace.table("files") if "files" in trace.tables else None
    attempts = trace.table("attempts") if "attempts" in trace.tables else None
    tell("access to data", 0.2)
    used = access(jobs, files, trace.jobs)
    tell("shapes of jobs", 0.4)
    groups = shapes(jobs, seed)
    tell("arrivals", 0.7)
    came = arrival(jobs, seed)
    tell("task times", 0.9)
    took = durations(attempts) if attempts is not None else {}
    lacks = tuple(trace.about["lacks"])
    return Description(
        trace.name,
        str(trace.about.get("source", "")),
        lacks,
        used,
        groups,
        came,
        took,
        entries(trace.about),
    )


def jobs_of(trace: Trace) -> Jobs:
    """Return the jobs of an open trace as columns of numbers.

    The length of the recording is set only for a synthetic trace, because only ``trace.json`` of a
    synthetic trace states it.
    """
    made = trace.about.get("synthesized")
    length = made.get("length_s") if isinstance(made, Mapping) else None
    number = isinstance(length, (int, float)) and not isinstance(length, bool)
    if not number or not (math.isfinite(length) and length > 0):  # type: ignore[arg-type, operator]
        length = None
    return Jobs.of(trace.jobs, length, trace.name)


def as_json(value: Any) -> Any:
    """Return a value of the analyses as lists, objects and numbers for JSON.

    Dataclasses become objects, arrays become lists, and infinite numbers and NaN become null.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): as_json(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (tuple, list)):
        return [as_json(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
