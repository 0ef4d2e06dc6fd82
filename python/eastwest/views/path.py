"""The critical path of a job: consecutive intervals that add up to its runtime.

The path is followed backwards from the end: clean-up, the task that finished last, the last event
for which this task waited, and so on up to the submission. If a reduce was still fetching when the
last map of the job finished, the path goes through this map; otherwise it goes through the
assignment of the reduce.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl


@dataclass(frozen=True)
class Stretch:
    """Interval of a job's critical path in simulated s; ``what`` is its activity in words."""

    what: str
    begin_s: float
    end_s: float


@dataclass(frozen=True)
class CriticalPath:
    """Critical path of a job: intervals in order of time, and the rows of the tasks on the path.

    ``last_map`` is the map on the path, or None; ``last_reduce`` is the reduce on the path, or
    None.
    """

    stretches: list[Stretch]
    last_map: dict[str, Any] | None
    last_reduce: dict[str, Any] | None


def critical_path(
    job: dict[str, Any], tasks: pl.DataFrame, wrote_from_s: float | None = None
) -> CriticalPath:
    """Return the critical path of a job; ``job`` is its row, ``tasks`` are the rows of its tasks.

    ``wrote_from_s`` is the time (simulated s) at which the task that finished last began to send
    its output to replicas; None if it did not.
    """
    maps = _by_end(tasks.filter(pl.col("kind") == "map"))
    reduces = _by_end(tasks.filter(pl.col("kind") == "reduce"))
    last_map = maps.row(-1, named=True) if maps.height else None
    last_reduce = reduces.row(-1, named=True) if reduces.height else None
    last = last_reduce or last_map
    if last is None:
        whole = Stretch("no task of the job is in the table", job["submitted_s"], job["finished_s"])
        return CriticalPath([whole], None, None)
    way = [Stretch("report of the last task, and clean-up", last["finished_s"], job["finished_s"])]
    through: dict[str, Any] | None = last_map
    if last_reduce is not None:
        name = f"reduce {last_reduce['task']}"
        way += _ending(name, "merging, reducing", "writing its output", last_reduce, wrote_from_s)
        through = _shuffle(way, last_reduce, last_map)
    if through is not None:
        _map(way, through, wrote_from_s if last_reduce is None else None, last_reduce is None)
    way += _waiting(job, maps, way[-1].begin_s)
    ordered = [s for s in reversed(way) if s.end_s > s.begin_s]
    return CriticalPath(ordered, through, last_reduce)


def _waiting(job: dict[str, Any], maps: pl.DataFrame, until_s: float) -> list[Stretch]:
    """Return the intervals from the submission of a job to the assignment of a task, latest first.

    ``maps`` are the maps of the job; the task, the first on the path, was assigned at ``until_s``.
    """
    before = maps.filter(pl.col("assigned_s") < until_s).sort("assigned_s")
    if before.height == 0:
        return [Stretch("set-up, heartbeats, waiting for a slot", job["submitted_s"], until_s)]
    first_s = float(before["assigned_s"][0])
    own = f"{before.height} map{'s' if before.height > 1 else ''} of the job assigned before it"
    return [
        Stretch(f"heartbeats and waiting for a slot, with {own}", first_s, until_s),
        Stretch("set-up, heartbeats, waiting for a first slot", job["submitted_s"], first_s),
    ]


def _by_end(tasks: pl.DataFrame) -> pl.DataFrame:
    return tasks.sort("finished_s", "task")


def _shuffle(
    way: list[Stretch], reduce: dict[str, Any], last_map: dict[str, Any] | None
) -> dict[str, Any] | None:
    """Add the intervals of a reduce to ``way``, latest first, and return ``last_map``.

    The intervals reach from the end of ``last_map``, the map of the job that finished last, to the
    time at which the reduce had its input. Without a map, they begin with the reduce's assignment.
    """
    name = f"reduce {reduce['task']}"
    if last_map is not None and last_map["finished_s"] > reduce["assigned_s"]:
        words = f"{name}: notice of the last map's end, and fetching"
        if last_map["finished_s"] < reduce["started_s"]:
            words = f"{name}: starting, notice of the last map's end, and fetching"
        way.append(Stretch(words, last_map["finished_s"], reduce["input_done_s"]))
        return last_map
    way.append(Stretch(f"{name}: fetching", reduce["started_s"], reduce["input_done_s"]))
    way.append(Stretch(f"{name}: starting", reduce["assigned_s"], reduce["started_s"]))
    if last_map is None:
        return None
    way.append(
        Stretch(
            f"map {last_map['task']} reported, heartbeats, {name} waiting for a slot",
            last_map["finished_s"],
            reduce["assigned_s"],
        )
    )
    return last_map


def _ending(
    name: str, work: str, write: str, task: dict[str, Any], wrote_from_s: float | None
) -> list[Stretch]:
    """Return the intervals of a task from the time at which it had its input, latest first.

    ``name`` is the name of the task; ``work`` and ``write`` are its activities in words;
    ``wrote_from_s`` is the time at which the task began to send its output to replicas, or None.
    """
    begin, end = task["input_done_s"], task["finished_s"]
    if wrote_from_s is None or not begin <= wrote_from_s <= end:
        return [Stretch(f"{name}: {work}, {write}", begin, end)]
    return [
        Stretch(f"{name}: {write}, from the first chunk sent to a replica on", wrote_from_s, end),
        Stretch(f"{name}: {work}", begin, wrote_from_s),
    ]


def _map(
    way: list[Stretch], task: dict[str, Any], wrote_from_s: float | None, writes: bool
) -> None:
    """Add the intervals of the map ``task``, from assignment to end, to ``way``, latest first.

    ``writes`` is true if the map writes the output of a job without reduces; ``wrote_from_s`` is
    the time at which the map began to send this output to replicas, or None.
    """
    name = f"map {task['task']}"
    write = "writing its output" if writes else "spilling"
    way += _ending(name, "computing the rest", write, task, wrote_from_s)
    where = {"node": " from its own disk", "rack": " from its rack", "remote": " from another rack"}
    read = f"{name}: reading{where.get(task['locality'], '')}, computing meanwhile"
    way.append(Stretch(read, task["started_s"], task["input_done_s"]))
    way.append(Stretch(f"{name}: starting", task["assigned_s"], task["started_s"]))
