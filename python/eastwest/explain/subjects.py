"""The objects that can be explained, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from eastwest.errors import InputError
from eastwest.explain import connection, flow, job, task
from eastwest.explain.story import Story
from eastwest.results import Result
from eastwest.units import clean, size, span
from eastwest.views.evidence import Evidence
from eastwest.views.labels import plural

#: Kinds of objects that can be explained.
KINDS = ("flow", "job", "task", "connection")
_LARGEST = 2**63 - 1
#: Headings of the lists of candidates among flows, by their key in the facts.
_TITLES = {
    "flows_by_fct": "Flows that took longest",
    "flows_by_slowdown": "Flows that took longest compared with their ideal time",
    "flows_recovered": "Flows that lost most without a timeout",
}


def explain(result: Result | str | Path, kind: str, id: int | str, workload: str | None) -> Story:
    """Return the story of a flow, job, task or connection; see ``eastwest.explain``."""
    evidence = Evidence(result if isinstance(result, Result) else Result(result))
    if kind == "flow":
        return flow.story(evidence, _number(kind, id))
    if kind == "connection":
        return connection.story(evidence, _number(kind, id))
    if kind == "job":
        return job.story(evidence, str(id), workload)
    if kind == "task":
        return task.story(evidence, str(id), workload)
    raise InputError(f"cannot explain a {clean(kind, 40)!r}; allowed: {', '.join(KINDS)}")


def _number(kind: str, id: int | str) -> int:
    text = str(id)
    if not text.isdecimal() or int(text) > _LARGEST:
        raise InputError(f"a {kind} is named by its number, from 0 on, not {clean(text, 60)!r}")
    return int(text)


def slowest(result: Result | str | Path, top: int) -> Story:
    """Return the list of candidates; see ``eastwest.explain.slowest``."""
    evidence = Evidence(result if isinstance(result, Result) else Result(result))
    flows, jobs = evidence.flows, evidence.result.jobs
    told = Story(
        "slowest",
        "",
        f"What is worth explaining in {evidence.result.path}",
        f"{plural(flows.height, 'flow')} and {plural(jobs.height, 'job')} have finished. "
        "For the story of one: eastwest explain RUN flow|job|task|connection ID",
    )
    recovered = flows.filter((pl.col("retransmits") > 0) & (pl.col("timeouts") == 0))
    found: dict[str, list[dict[str, Any]]] = {}
    for key, table, column in (
        ("flows_by_fct", flows, "fct_us"),
        ("flows_by_slowdown", flows, "slowdown"),
        ("flows_recovered", recovered, "retransmits"),
    ):
        found[key] = table.sort([column, "flow"], descending=[True, False]).head(top).to_dicts()
        told.facts[key] = [row["flow"] for row in found[key]]
    titles = dict(_TITLES)
    if told.facts["flows_by_fct"] == told.facts["flows_by_slowdown"]:
        del titles["flows_by_slowdown"]
        titles["flows_by_fct"] = "Flows that took longest, also compared with their ideal time"
    for key, title in titles.items():
        told.add(title, *(_flow_line(evidence, row) for row in found[key]))
    rows = jobs.sort(["runtime_s", "job"], descending=[True, False]).head(top).to_dicts()
    told.facts["jobs_by_runtime"] = [row["job"] for row in rows]
    told.add("Jobs that took longest", *(_job_line(row) for row in rows))
    return told


def _flow_line(evidence: Evidence, row: dict[str, Any]) -> str:
    evidence.sound("flows", row)
    lost = f"{row['retransmits']} sent again, {plural(row['timeouts'], 'timeout')}"
    return f"{flow.line(evidence, row)}, {lost}"


def _job_line(row: dict[str, Any]) -> str:
    return (
        f"job {row['job']} ({clean(row['name'], 60)}) of {clean(row['workload'], 40)!r}: "
        f"{span(row['runtime_s'])}, {plural(row['maps'], 'map')}, "
        f"{plural(row['reduces'], 'reduce')}, {size(row['shuffle_bytes'])} shuffled"
    )
