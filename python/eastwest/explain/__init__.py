"""Explanations of the durations of flows, exchanges, jobs, tasks, connections and MPI programs.

>>> import eastwest as ew
>>> print(ew.explain(ew.load("results/a"), "flow", 17))          # doctest: +SKIP

Every number comes from the tables of the result folder; facts that the tables do not
contain are listed under *Not known*.
"""

from __future__ import annotations

from pathlib import Path

from eastwest.core import ProgressCallback
from eastwest.explain.story import Moment, Part, Section, Story
from eastwest.results import Result

__all__ = ["Moment", "Part", "Section", "Story", "difference", "explain", "slowest"]


def explain(
    result: Result | str | Path,
    kind: str,
    id: int | str,
    *,
    workload: str | None = None,
    rerun_s: float = 0,
    progress: ProgressCallback | None = None,
) -> Story:
    """Return an explanation why an object of a result took as long as it did.

    ``kind`` is ``"flow"``, ``"exchange"``, ``"job"``, ``"task"``, ``"connection"``, ``"packet"``,
    or ``"program"`` for an MPI program. ``id`` is the number in the column ``flow``, ``job`` or
    ``connection``. For a job it can also be its name; for an exchange it is the flow of its request
    or response; for a task ``"JOB/map/3"`` or ``"JOB/reduce/0"``; for an MPI program its workload;
    for a packet a flow and a byte of its message, such as ``"17@0"``. The times of flows are
    divided by their critical paths where the run recorded them (``measure.flow_parts``). If they,
    or the way of the packet (``measure.packet_hops``), are missing and the run took less than
    ``rerun_s`` seconds, the run is simulated again to record them, and ``progress`` is called
    meanwhile.

    ``workload`` selects the workload where several have a job with this id. The story prints as
    text; its ``facts`` has the numbers, with units in their names, and its ``parts`` add up to
    ``total_us`` microseconds. Raises ``InputError`` where the object does not exist or the folder
    is damaged.
    """
    from eastwest.explain import subjects  # noqa: PLC0415  loads polars

    return subjects.explain(result, kind, id, workload, rerun_s, progress)


def slowest(result: Result | str | Path, top: int = 5) -> Story:
    """Return a story that lists the slowest flows, exchanges and jobs, and all MPI programs.

    ``facts`` of the story has the ids: of flows under ``flows_by_fct``, ``flows_by_slowdown`` and
    ``flows_recovered`` (losses without a timeout), of requests of exchanges under
    ``exchanges_by_time``, and of jobs under ``jobs_by_runtime``; at most ``top`` each, the most
    extreme first. ``programs`` has the workloads of MPI programs.
    """
    from eastwest.explain import subjects  # noqa: PLC0415  loads polars

    return subjects.slowest(result, top)


def difference(first: Result | str | Path, second: Result | str | Path, top: int = 3) -> Story:
    """Return a story of the first difference of two results, and of the changes that followed.

    The story has the settings that differ, the first difference in simulated time, and the changes
    of workloads, goals, counts, flows and jobs (at most ``top`` flows and ``top`` jobs, the largest
    changes first). Results with equal digests are identical. Raises ``InputError`` where a folder
    is damaged, or where both are one folder.
    """
    from eastwest.explain import two_results  # noqa: PLC0415  loads polars

    first, second = (each if isinstance(each, Result) else Result(each) for each in (first, second))
    return two_results.story(first, second, top)
