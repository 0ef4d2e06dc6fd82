"""Explanation of one job: its phases, its critical path, and jobs at the same time."""

from __future__ import annotations

from typing import Any

import polars as pl

from eastwest.errors import InputError
from eastwest.explain import flow as flows
from eastwest.explain.neighbours import port_line
from eastwest.explain.story import Moment, Part, Story
from eastwest.units import clean, percent, size, span
from eastwest.views.evidence import Evidence, number, pick_setting
from eastwest.views.labels import plural
from eastwest.views.path import CriticalPath, critical_path

#: Minimum ratio of a straggler's duration to the median duration of the job's tasks of its kind.
_STRAGGLES = 1.5
_MOST_LISTED = 3
UNKNOWN_FLOWS = "Which flow belongs to which task: flows name only their job and their hosts."


def find(evidence: Evidence, which: str, workload: str | None = None) -> dict[str, Any]:
    """Return the row, in the table ``jobs``, of the job with the number or name ``which``.

    Raises ``InputError`` if there is no such job, or if there are several.
    """
    path = evidence.result.path
    jobs = evidence.result.jobs
    if workload is not None:
        jobs = jobs.filter(pl.col("workload") == workload)
    found = jobs.filter(pl.col("job") == int(which)) if which.isdecimal() else jobs.head(0)
    if found.height == 0:
        found = jobs.filter(pl.col("name") == which)
    if found.height == 0:
        raise InputError(
            f"{path} has no finished job {clean(which, 60)!r}"
            + (f" of workload {clean(workload, 60)!r}" if workload is not None else "")
            + f"; it has {plural(evidence.result.jobs.height, 'job')}, see: "
            f"eastwest explain {path} slowest"
        )
    if found.height > 1:
        ways = ", ".join(
            f"{row['job']} of {clean(row['workload'], 40)!r}" for row in found.head(5).to_dicts()
        )
        raise InputError(f"{path} has several jobs {clean(which, 60)!r}: {ways}; add --workload")
    row = found.row(0, named=True)
    evidence.sound("jobs", row)
    return row


def _is_of(job: dict[str, Any]) -> pl.Expr:
    """Return the polars condition that a row of a table belongs to ``job``, a row of ``jobs``."""
    return pl.col("job").eq(job["job"]) & pl.col("workload").eq(job["workload"])


def own(evidence: Evidence, table: str, job: dict[str, Any]) -> pl.DataFrame:
    """Return the rows of ``table`` that belong to ``job``, a row of the table ``jobs``."""
    return evidence.result.table(table).filter(_is_of(job))


def story(evidence: Evidence, which: str, workload: str | None = None) -> Story:
    """Return the explanation of the job with the number or name ``which``."""
    job = find(evidence, which, workload)
    tasks = own(evidence, "tasks", job)
    for row in tasks.iter_rows(named=True):
        evidence.sound("tasks", row)
    written = _replicas(evidence, job, tasks)
    began = written["start_s"].min() if written.height else None
    way = critical_path(job, tasks, began if isinstance(began, float) else None)
    result = _opening(job)
    result.total_us = job["runtime_s"] * 1e6
    result.parts = [Part(s.what, (s.end_s - s.begin_s) * 1e6) for s in way.stretches]
    result.facts["path"] = [
        {"what": s.what, "begin_s": s.begin_s, "end_s": s.end_s} for s in way.stretches
    ]
    result.moments = _moments(job, tasks)
    _settings(evidence, result, job)
    _fetch(evidence, result, job, way)
    _output(evidence, result, written)
    _compare(evidence, result, job)
    _locality(result, tasks)
    _stragglers(evidence, result, tasks)
    _others(evidence, result, job)
    _unknown(evidence, result, job)
    return result


def _opening(job: dict[str, Any]) -> Story:
    name = clean(job["name"], 80)
    title = f"Job {job['job']} ({name}): {span(job['runtime_s'])}"
    summary = (
        f"{name} of workload {job['workload']!r} ({job['kind']}) was submitted at "
        f"{job['submitted_s']:.3f} s and done {span(job['runtime_s'])} later: "
        f"{plural(job['maps'], 'map')} read {size(job['input_bytes'])}, "
        f"{plural(job['reduces'], 'reduce')} fetched {size(job['shuffle_bytes'])} "
        f"({size(job['shuffle_local_bytes'])} of it on their own hosts) and "
        f"{size(job['output_bytes'])} were written."
    )
    return Story("job", str(job["job"]), title, summary, dict(job))


def _moments(job: dict[str, Any], tasks: pl.DataFrame) -> list[Moment]:
    """Return the begin and end of the job's phases, with the times since its submission."""
    begin = job["submitted_s"]
    found: list[tuple[float, str]] = []
    for kind, done in (("map", "read its input"), ("reduce", "fetched its input")):
        of_kind = tasks.filter(pl.col("kind") == kind)
        if of_kind.height == 0:
            continue
        for column, words in (
            ("assigned_s", "given to a host"),
            ("input_done_s", f"has {done}"),
            ("finished_s", "finished"),
        ):
            low, high = of_kind[column].to_numpy().min(), of_kind[column].to_numpy().max()
            if of_kind.height == 1:
                found.append((float(low), f"the only {kind} {words}"))
            else:
                found.append((float(low), f"first {kind} {words}"))
                found.append((float(high), f"last {kind} {words}"))
    found.append((job["finished_s"], "the job is done"))
    return [Moment((at - begin) * 1e6, text) for at, text in sorted(found)]


def _settings(evidence: Evidence, result: Story, job: dict[str, Any]) -> None:
    """Add a section on the settings of the cluster that make tasks wait."""
    given = evidence.workloads.get(job["workload"], {})
    lines = []
    for path, words in (
        (("control", "job_setup"), "set-up before its maps can be assigned"),
        (
            ("control", "heartbeat"),
            "between two heartbeats of a worker, each of which can assign tasks",
        ),
        (("costs", "task_start"), "for each task to start"),
        (("control", "job_cleanup"), "clean-up"),
    ):
        value = pick_setting(given, *path)
        if value is not None:
            lines.append(f"{clean(str(value), 20)} {words} ({'.'.join(path)})")
    result.add("Fixed by the scenario", *lines)


def _fetch(evidence: Evidence, result: Story, job: dict[str, Any], way: CriticalPath) -> None:
    """Add sections on the shuffle of the last reduce to finish: all fetches, the slowest fetch.

    ``way`` is the critical path of the job, which names the last reduce.
    """
    reduce = way.last_reduce
    if reduce is None or way.last_map is None:
        return
    fetched = own(evidence, "flows", job).filter(
        (pl.col("purpose") == "shuffle")
        & (pl.col("dst") == reduce["host"])
        & (pl.col("start_s") >= reduce["started_s"])
        & (pl.col("finish_s") <= reduce["input_done_s"] + 1e-9)
    )
    host = evidence.host(reduce["host"])
    title = f"The shuffle of reduce {reduce['task']}, the last to finish, on {host}"
    if fetched.height == 0:
        result.add(title, "No data crossed the network: all input of the reduce was on its host.")
        return
    several = own(evidence, "tasks", job).filter(
        (pl.col("kind") == "reduce") & (pl.col("host") == reduce["host"])
    )
    shared = several.height > 1
    lines = [
        f"{plural(fetched.height, 'fetch', 'fetches')} brought "
        f"{size(int(fetched['bytes'].sum()))} to {host} while it ran"
        + (f", for the {several.height} reduces of the job there." if shared else ".")
    ]
    last = fetched.sort("finish_s", "flow").row(-1, named=True)
    slowest = fetched.sort("fct_us", "flow").row(-1, named=True)
    before_s = max(0.0, reduce["input_done_s"] - last["finish_s"])
    when = (
        "ended the shuffle"
        if before_s < 1e-9
        else f"ended {span(before_s)} before the end of the shuffle"
    )
    lines.append(f"The last fetch {when}: {_one(evidence, last)}")
    if slowest["flow"] != last["flow"]:
        lines.append(f"The slowest was {_one(evidence, slowest)}")
    result.facts["last_fetch"], result.facts["slowest_fetch"] = last["flow"], slowest["flow"]
    lines += [
        line
        for port in evidence.ports_to(reduce["host"]).iter_rows(named=True)
        if (line := port_line(evidence, port, reduce["started_s"], reduce["input_done_s"]))
    ]
    rivals = evidence.flows.filter(
        (pl.col("dst") == reduce["host"])
        & (pl.col("start_s") < reduce["input_done_s"])
        & (pl.col("finish_s") > reduce["started_s"])
        & ~_is_of(job)
    )
    if rivals.height:
        carried = size(int(rivals["bytes"].sum()))
        lines.append(
            f"Meanwhile {plural(rivals.height, 'flow')} outside the job ({carried}) went to {host}."
        )
    else:
        lines.append(f"No flow outside the job went to {host} meanwhile.")
    result.add(title, *lines)
    inner = flows.story(evidence, int(slowest["flow"]))
    told = [f"{span(p.us / 1e6)}: {p.what}" for p in inner.parts]
    beside = inner.facts["flows_beside_dst"]
    told.append(f"{plural(beside, 'other flow')} to {host} in progress meanwhile")
    result.add(f"Its slowest fetch, flow {slowest['flow']}", inner.summary, *told)


def _replicas(evidence: Evidence, job: dict[str, Any], tasks: pl.DataFrame) -> pl.DataFrame:
    """Return the flows that wrote replicas of the last task's output; empty if not identifiable.

    Flows name only their job and hosts. So these flows are identifiable only where no other task
    of the last task's kind ran on its host after the last task had its input.
    """
    flows = own(evidence, "flows", job).filter(pl.col("purpose") == "replica")
    kind = "reduce" if (tasks["kind"] == "reduce").any() else "map"
    of_kind = tasks.filter(pl.col("kind") == kind).sort("finished_s", "task")
    if of_kind.height == 0:
        return flows.head(0)
    last = of_kind.row(-1, named=True)
    beside = of_kind.filter(
        (pl.col("host") == last["host"]) & (pl.col("finished_s") > last["input_done_s"])
    )
    if beside.height > 1:
        return flows.head(0)
    return flows.filter(
        (pl.col("src") == last["host"])
        & (pl.col("start_s") >= last["input_done_s"])
        & (pl.col("finish_s") <= last["finished_s"] + 1e-9)
    )


def _output(evidence: Evidence, result: Story, written: pl.DataFrame) -> None:
    """Add a section on the transfer of the last task's output to its first replicas."""
    if written.height == 0:
        return
    slowest = written.sort("fct_us", "flow").row(-1, named=True)
    targets = written["dst"].unique().sort().to_list()
    result.facts["slowest_chunk"] = slowest["flow"]
    result.add(
        f"The output of the last task, from {evidence.host(slowest['src'])}",
        f"{plural(written.height, 'chunk')}, {size(int(written['bytes'].sum()))} in all, went to "
        f"{', '.join(evidence.host(t) for t in targets[:6])}{' …' if len(targets) > 6 else ''}, "
        "which pass them on to further replicas.",
        f"The slowest of them was {_one(evidence, slowest)}",
    )


def _one(evidence: Evidence, row: dict[str, Any]) -> str:
    lost = f", {plural(row['timeouts'], 'timeout')}" if row["timeouts"] else ""
    return (
        f"flow {row['flow']} from {evidence.host(row['src'])}: {size(row['bytes'])} in "
        f"{span(row['fct_us'] / 1e6)}, slowdown {row['slowdown']:,.3g}{lost}."
    )


def _compare(evidence: Evidence, result: Story, job: dict[str, Any]) -> None:
    jobs = evidence.result.jobs.filter(pl.col("workload") == job["workload"])
    if jobs.height < 2:
        return
    slower = jobs.filter(pl.col("runtime_s") > job["runtime_s"]).height
    median_s = number(jobs["runtime_s"].median())
    result.facts["alike"] = {"count": jobs.height, "rank": slower + 1, "runtime_s_p50": median_s}
    result.add(
        f"Among the jobs of workload {job['workload']!r}",
        f"Number {slower + 1:,} of {jobs.height:,} from the slowest; half of the jobs take at most "
        f"{span(median_s)}.",
    )


def _locality(result: Story, tasks: pl.DataFrame) -> None:
    maps = tasks.filter((pl.col("kind") == "map") & (pl.col("locality") != "none"))
    if maps.height == 0:
        return
    words = {"node": "on their own host", "rack": "in their rack", "remote": "in another rack"}
    every = {place: maps.filter(pl.col("locality") == place).height for place in words}
    counted = {place: some for place, some in every.items() if some}
    result.facts["locality"] = counted
    parts = [
        f"{some:,} of {maps.height:,} ({percent(some / maps.height)}) {words[place]}"
        for place, some in counted.items()
    ]
    result.add("Where maps found their splits", "; ".join(parts) + ".")


def _stragglers(evidence: Evidence, result: Story, tasks: pl.DataFrame) -> None:
    lines = []
    listed: list[dict[str, Any]] = []
    for kind in ("map", "reduce"):
        of_kind = tasks.filter(pl.col("kind") == kind).with_columns(
            took=pl.col("finished_s") - pl.col("started_s")
        )
        if of_kind.height < 3:
            continue
        median_s = number(of_kind["took"].median())
        late = of_kind.filter(pl.col("took") > _STRAGGLES * median_s).sort("took", descending=True)
        if late.height == 0:
            lines.append(f"No {kind} took more than {_STRAGGLES} × the median of {span(median_s)}.")
            continue
        lines.append(
            f"{plural(late.height, kind)} of {of_kind.height} took more than {_STRAGGLES} × the "
            f"median of {span(median_s)}:"
        )
        for task in late.head(_MOST_LISTED).iter_rows(named=True):
            listed.append({"kind": kind, "task": task["task"], "took_s": task["took"]})
            fetching = task["input_done_s"] - task["started_s"]
            place = f", its split {task['locality']}" if kind == "map" else ""
            lines.append(
                f"– {kind} {task['task']} on {evidence.host(task['host'])}: {span(task['took'])}, "
                f"{span(fetching)} of it until its input was complete{place}"
            )
        if late.height > _MOST_LISTED:
            lines.append(f"– and {late.height - _MOST_LISTED} more")
    result.facts["stragglers"] = listed
    result.add("Tasks that lagged behind", *lines)


def _others(evidence: Evidence, result: Story, job: dict[str, Any]) -> None:
    beside = ~_is_of(job) & (pl.col("finished_s") > job["submitted_s"])
    jobs, running = (
        evidence.result.table(table).filter(beside & (pl.col(begin) < job["finished_s"]))
        for table, begin in (("jobs", "submitted_s"), ("tasks", "assigned_s"))
    )
    result.facts["jobs_beside"] = jobs.height
    text = "No other job was in the cluster."
    if jobs.height:
        others, tasks = plural(jobs.height, "other job"), plural(running.height, "task")
        text = f"{others} in the cluster meanwhile, with {tasks}."
    result.add("At the same time", text)


def _unknown(evidence: Evidence, result: Story, job: dict[str, Any]) -> None:
    result.lacks(
        UNKNOWN_FLOWS,
        "Jobs that had not finished when the run ended: the tables have no row for them.",
        evidence.events_note(job["finished_s"]),
    )
