"""Values of one run that are made of several of its numbers."""

from __future__ import annotations

from eastwest.claims.measures.base import MeasureError, run_value
from eastwest.results import Result, pick


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


@run_value("shuffle-s")
def shuffle_s(result: Result) -> float:
    """Seconds from the end of the last map to the end of the last fetch: the phase of shuffle.

    What is fetched while maps still run is not in it. 0 where all was fetched before.
    """
    tasks = result.tasks
    mapped = tasks.filter(tasks["kind"] == "map")["finished_s"].max()
    fetched = tasks.filter(tasks["kind"] == "reduce")["input_done_s"].max()
    if not isinstance(mapped, float) or not isinstance(fetched, float):
        raise MeasureError(f"{result.path} has no maps or no reduces")
    return max(0.0, fetched - mapped)


@run_value("job-throughput-bps")
def job_throughput_bps(result: Result) -> float:
    """Payload of all flows over the number of hosts and the time from the first to the last task.

    The mean throughput per node of the E-EON studies, whose total runtime is that time.
    """
    summary = result.summary
    tasks_s = pick(summary, "jobs", "tasks_s")
    if not tasks_s:
        raise MeasureError(f"{result.path} has no tasks")
    return float(summary["throughput_bps"]) * float(summary["simulated_s"]) / tasks_s


@run_value("loss-of-acks")
def loss_of_acks(result: Result) -> float:
    """Share of packets without payload among the lost, over their share among the sent.

    1 is in proportion; where ACKs are a third of all packets, 3 is that nothing else is lost.
    """
    acks = sum(
        float(count)
        for kinds in result.summary["drops"].values()
        for kind, count in kinds.items()
        if kind not in {"data", "retransmission", "datagram"}
    )
    latency = result.summary["latency_us"]
    dropped = float(result.summary["packets"]["dropped"])
    if not dropped:
        raise MeasureError(f"{result.path} has lost nothing")
    sent = float(latency["count"]) + dropped
    return acks / dropped / ((float(latency["ack"]["count"]) + acks) / sent)
