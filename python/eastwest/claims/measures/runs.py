"""Values of one run that need its tables."""

from __future__ import annotations

from eastwest.claims.measures.base import MeasureError, run_value
from eastwest.results import Result


@run_value("first-map-to-last-task-s")
def first_map_to_last_task_s(result: Result) -> float:
    """Seconds from the start of the first map to the end of the last task, over all jobs.

    The total runtime of the E-EON studies: first start to last end, without the submission and the
    set-up of a job, and without the heartbeat that tells of its end.
    """
    started, finished = result.tasks["started_s"].min(), result.tasks["finished_s"].max()
    if not isinstance(started, float) or not isinstance(finished, float):
        raise MeasureError(f"{result.path} has no tasks")
    return finished - started
