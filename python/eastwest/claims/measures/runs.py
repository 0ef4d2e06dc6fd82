"""Values of one run that are computed from several numbers of the run."""

from __future__ import annotations

from eastwest.claims.measures.base import MeasureError, run_value
from eastwest.results import Result, pick


@run_value("first-map-to-last-task-s")
def first_map_to_last_task_s(result: Result) -> float:
    """Return the time from the start of the first map to the end of the last task, in s.

    This time is over all jobs of the run: from the first start of a task to the last end of a task.
    The E-EON studies name it total runtime. The time excludes the submission and set-up of jobs,
    and the heartbeat that reports the last end.
    """
    started, finished = result.tasks["started_s"].min(), result.tasks["finished_s"].max()
    if not isinstance(started, float) or not isinstance(finished, float):
        raise MeasureError(f"{result.path} has no tasks")
    return finished - started


@run_value("shuffle-s")
def shuffle_s(result: Result) -> float:
    """Return the time from the end of the last map to the end of the last fetch, in s.

    This is the part of the shuffle phase after all maps have ended; 0 where all fetches end before
    the last map.
    """
    tasks = result.tasks
    mapped = tasks.filter(tasks["kind"] == "map")["finished_s"].max()
    fetched = tasks.filter(tasks["kind"] == "reduce")["input_done_s"].max()
    if not isinstance(mapped, float) or not isinstance(fetched, float):
        raise MeasureError(f"{result.path} has no maps or no reduces")
    return max(0.0, fetched - mapped)


@run_value("job-throughput-bps")
def job_throughput_bps(result: Result) -> float:
    """Return the mean throughput per host, in bit/s of payload, while tasks run.

    This is the payload of all flows, divided by the number of hosts and by the time from the start
    of the first task to the end of the last. The E-EON studies report this throughput per node.
    """
    summary = result.summary
    tasks_s = pick(summary, "jobs", "tasks_s")
    if not tasks_s:
        raise MeasureError(f"{result.path} has no tasks")
    return float(summary["throughput_bps"]) * float(summary["simulated_s"]) / tasks_s
