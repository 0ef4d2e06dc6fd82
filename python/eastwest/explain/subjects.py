"""Choice of the explanation for an object of a result, by its kind and its id."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from eastwest.core import ProgressCallback
from eastwest.errors import InputError, did_you_mean
from eastwest.exchanges import exchanges
from eastwest.explain import (
    again,
    connection,
    division,
    exchange,
    flow,
    job,
    packet,
    program,
    task,
)
from eastwest.explain.story import Story
from eastwest.results import Result
from eastwest.units import clean, size, span
from eastwest.views.evidence import Evidence
from eastwest.views.labels import a, plural
from eastwest.views.settings import tree

#: Kinds of objects that ``eastwest explain`` can explain.
KINDS = ("flow", "exchange", "job", "task", "connection", "program", "packet")
_LARGEST = 2**63 - 1
#: Headings of the lists of slow flows, by their key in the facts.
_TITLES = {
    "flows_by_fct": "Flows that took longest",
    "flows_by_slowdown": "Flows that took longest compared with their ideal time",
    "flows_recovered": "Flows that lost most without a timeout",
}


def explain(
    result: Result | str | Path,
    kind: str,
    id: int | str,
    workload: str | None,
    rerun_s: float = 0,
    progress: ProgressCallback | None = None,
) -> Story:
    """Return the explanation of an object of a result; see ``eastwest.explain``.

    A run that took less than ``rerun_s`` seconds is simulated again if its folder lacks the
    division of the times of flows into parts.
    """
    evidence = Evidence(result if isinstance(result, Result) else Result(result))
    tellers: dict[str, Callable[[], Story]] = {
        "flow": lambda: flow.story(evidence, _number(kind, id)),
        "exchange": lambda: exchange.story(evidence, _number(kind, id)),
        "connection": lambda: connection.story(evidence, _number(kind, id)),
        "job": lambda: job.story(evidence, str(id), workload),
        "task": lambda: task.story(evidence, str(id), workload),
        "program": lambda: program.story(evidence, str(id)),
        "packet": lambda: packet.story(evidence, str(id), rerun_s, progress),
    }
    if kind not in tellers:
        raise InputError(f"cannot explain a {clean(kind, 40)!r}; allowed: {', '.join(KINDS)}")
    if workload is not None:
        _check_workload(evidence, kind, id, workload)
    why = None
    if again.seconds(evidence.result) < rerun_s and kind in {"flow", "exchange", "job"}:
        why = _record(evidence, kind, id, progress)
    story = tellers[kind]()
    story.lacks(f"The division of the times of flows: {why}." if why else None)
    return story


def _check_workload(evidence: Evidence, kind: str, id: int | str, workload: str) -> None:
    """Raise ``InputError`` if a result lacks the workload, or if a flow has another workload."""
    result = evidence.result
    tables = (evidence.flows, result.jobs)
    known = sorted({name for table in tables for name in table["workload"].unique().to_list()})
    listed = tree(result).get("workload")
    names = [
        str(each["name"]) for each in listed or [] if isinstance(each, dict) and "name" in each
    ]
    names = [*dict.fromkeys([*names, *known])]
    if workload not in names:
        raise InputError(
            f"{result.path} has no workload {clean(workload, 60)!r}; it has "
            f"{clean(', '.join(names), 300)}{did_you_mean(workload, names)}"
        )
    if kind in {"flow", "exchange"}:
        own = flow.find(evidence, _number(kind, id))["workload"]
        if own != workload:
            raise InputError(f"flow {id} is of workload {own!r}, not of {workload!r}")


def _record(
    evidence: Evidence, kind: str, id: int | str, progress: ProgressCallback | None
) -> str | None:
    """Record the critical paths that an explanation needs; return why this failed, or None.

    The run is simulated again, and its ``flow_parts`` are added to ``evidence``.
    """
    if kind == "job":
        recorded = evidence.result.flow_parts.height
        return None if recorded else again.record(evidence, "measure.flow_parts", ["*"], progress)
    row = flow.find(evidence, _number(kind, id))
    if not evidence.divides(row["workload"]) or division.of_flow(evidence, row["flow"]):
        return None
    ends = [evidence.host(row["src"]), evidence.host(row["dst"])]
    pairs = ["->".join(ends)] if kind == "flow" else ["->".join(ends), "->".join(ends[::-1])]
    return again.record(evidence, "measure.flow_parts", pairs, progress)


def _number(kind: str, id: int | str) -> int:
    text = str(id)
    if not text.isdecimal() or int(text) > _LARGEST:
        raise InputError(
            f"{clean(text, 60)!r} is not an id: {a(kind)} is named by its number, from 0 on; "
            "eastwest explain RUN slowest lists the slowest ones with their numbers"
        )
    return int(text)


def slowest(result: Result | str | Path, top: int) -> Story:
    """Return a story that lists the slowest objects; see ``eastwest.explain.slowest``."""
    evidence = Evidence(result if isinstance(result, Result) else Result(result))
    flows, jobs = evidence.flows, evidence.result.jobs
    told = Story(
        "slowest",
        "",
        f"Slow flows and jobs of {evidence.result.path}",
        f"{plural(flows.height, 'flow')} and {plural(jobs.height, 'job')} have finished. "
        "To explain one of them: eastwest explain RUN flow|exchange|job|task|connection|program ID"
        ". To explain a packet of a flow: eastwest explain RUN packet FLOW@BYTE",
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
    pairs = exchanges(flows.lazy()).sort(["exchange_us", "request"], descending=[True, False])
    slow = pairs.head(top).collect().to_dicts()
    told.facts["exchanges_by_time"] = [row["request"] for row in slow]
    told.add("Exchanges that took longest", *(exchange.line(evidence, row) for row in slow))
    programs = evidence.result.mpi_ranks["workload"].unique().sort().to_list()
    told.facts["programs"] = programs
    told.add("MPI programs", *(f"program {clean(name, 60)}" for name in programs))
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
