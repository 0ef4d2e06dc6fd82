"""Explanation of one task: its stages, and its rank among the tasks of its job."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from eastwest.errors import InputError
from eastwest.explain import job as jobs
from eastwest.explain.story import Part, Story
from eastwest.units import clean, percent, size, span
from eastwest.views.evidence import Evidence
from eastwest.views.labels import plural

_ID = re.compile(r"(.+)/(map|reduce)/([0-9]{1,9})")


def story(evidence: Evidence, which: str, workload: str | None = None) -> Story:
    """Return the explanation of one task, named as ``JOB/map/3`` or ``JOB/reduce/0``."""
    found = _ID.fullmatch(which)
    if found is None:
        raise InputError(
            f"{clean(which, 60)!r} is not the id of a task: write JOB/map/3 or JOB/reduce/0"
        )
    job = jobs.find(evidence, found[1], workload)
    kind, number = found[2], int(found[3])
    tasks = jobs.own(evidence, "tasks", job).filter(pl.col("kind") == kind)
    rows = tasks.filter(pl.col("task") == number)
    if rows.height == 0:
        raise InputError(
            f"job {job['job']} has no {kind} {number}; it has {plural(tasks.height, kind)}"
        )
    task = rows.row(0, named=True)
    evidence.sound("tasks", task)
    result = _opening(evidence, job, task)
    _stages(result, task)
    _compare(result, tasks, task)
    _input(evidence, result, job, task)
    result.lacks(jobs.UNKNOWN_FLOWS)
    return result


def _opening(evidence: Evidence, job: dict[str, Any], task: dict[str, Any]) -> Story:
    host = evidence.host(task["host"])
    took = task["finished_s"] - task["assigned_s"]
    name = clean(job["name"], 80)
    which = f"{task['kind'].capitalize()} {task['task']}"
    title = f"{which} of job {job['job']} ({name}): {span(took)}"
    done = ("read", "spilled") if task["kind"] == "map" else ("fetched", "wrote")
    place = {
        "node": ", from its own disk",
        "rack": ", from its rack",
        "remote": ", from another rack",
    }
    summary = (
        f"It ran on {host}, assigned at {task['assigned_s']:.3f} s, "
        f"{span(task['assigned_s'] - job['submitted_s'])} after the job was submitted. It "
        f"{done[0]} {size(task['bytes_in'])}{place.get(task['locality'], '')} and {done[1]} "
        f"{size(task['bytes_out'])}."
    )
    id_ = f"{job['job']}/{task['kind']}/{task['task']}"
    return Story("task", id_, title, summary, {**task, "host": host})


def _stages(result: Story, task: dict[str, Any]) -> None:
    maps = task["kind"] == "map"
    stages = (
        ("answer of the master, and start", "assigned_s", "started_s"),
        ("reading, computing meanwhile" if maps else "fetching", "started_s", "input_done_s"),
        (
            "computing the rest, and spill" if maps else "merging, reducing, writing",
            "input_done_s",
            "finished_s",
        ),
    )
    result.total_us = (task["finished_s"] - task["assigned_s"]) * 1e6
    result.parts = [
        Part(words, (task[end] - task[begin]) * 1e6)
        for words, begin, end in stages
        if task[end] > task[begin]
    ]


def _compare(result: Story, tasks: pl.DataFrame, task: dict[str, Any]) -> None:
    if tasks.height < 2:
        return
    took = (tasks["finished_s"] - tasks["started_s"]).to_numpy()
    own = task["finished_s"] - task["started_s"]
    slower = int((took > own).sum())
    faster = int((took < own).sum())
    result.facts["alike"] = {"count": tasks.height, "rank": slower + 1}
    result.add(
        f"Among the {task['kind']}s of its job",
        f"Number {slower + 1:,} of {tasks.height:,} from the slowest, from start to end; slower "
        f"than {percent(faster / (tasks.height - 1))} of the others.",
    )


def _input(evidence: Evidence, result: Story, job: dict[str, Any], task: dict[str, Any]) -> None:
    """Add a section on the flows that may have carried the task's input."""
    purpose = "map-input" if task["kind"] == "map" else "shuffle"
    flows = jobs.own(evidence, "flows", job).filter(
        (pl.col("purpose") == purpose)
        & (pl.col("dst") == task["host"])
        & (pl.col("start_s") >= task["started_s"])
        & (pl.col("finish_s") <= task["input_done_s"] + 1e-9)
    )
    if flows.height == 0:
        return
    lines = [
        f"{plural(flows.height, 'flow')} with {size(int(flows['bytes'].sum()))} of its job reached "
        f"its host while it waited for input; the slowest:"
    ]
    for row in flows.sort("fct_us", descending=True).head(3).iter_rows(named=True):
        lines.append(
            f"– flow {row['flow']} from {evidence.host(row['src'])}: {size(row['bytes'])} in "
            f"{span(row['fct_us'] / 1e6)}, {plural(row['timeouts'], 'timeout')}"
        )
    result.add("Its input over the network", *lines)
