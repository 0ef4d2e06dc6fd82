"""Charts of jobs and tasks over time: running tasks, jobs as bars, and tasks of each host."""

from __future__ import annotations

import numpy as np
import polars as pl

from eastwest import units
from eastwest.report.draw import Chart, Scale, clock, linear, rounded, time
from eastwest.report.heat import Heat
from eastwest.views.facts import Facts
from eastwest.views.jobs import KINDS, at_once, concurrency
from eastwest.views.labels import plural, shown
from eastwest.views.series import Bins, Lanes

#: Maximum number of jobs that are drawn one by one; if there are more, the shortest are left out.
MOST_JOBS = 1200
_MOST_ROWS = 48
_BINS = 900


def charts(facts: Facts) -> list[Chart]:
    """Return charts of jobs and tasks over time; none for a run without jobs and tasks."""
    drawn = []
    if facts.tasks.height:
        drawn.append(running(facts))
    if facts.jobs.height:
        drawn.append(jobs(facts))
    if facts.tasks.height:
        drawn.append(hosts(facts))
    return drawn


def running(facts: Facts) -> Chart:
    """Return a chart of the number of running maps, and of reduces on top, over time."""
    tasks = facts.tasks
    bins = Bins(facts.end / _BINS, _BINS)
    values = [concurrency(tasks.filter(pl.col("kind") == kind), bins.edges) for kind in KINDS]
    busy = float((tasks["finished_s"] - tasks["started_s"]).sum())
    chart = Chart(
        "running-tasks",
        f"At most {plural(at_once(tasks), 'task runs', 'tasks run')} at once, "
        f"{busy / facts.end:.3g} on average",
        f"Tasks running, maps below and reduces on top; means over {units.span(bins.step)}.",
        time(facts.end),
        linear(np.sum(values, axis=0), "tasks"),
        wide=True,
        legend=["maps", "reduces"],
        key="area",
        height=150,
    )
    chart.stack(bins.edges, values)
    chart.over_time(
        bins,
        values,
        [f"{kind}s running" for kind in KINDS],
        lambda tasks: units.count(round(tasks, 2)),
        digits=3,
        every=True,
    )
    return chart


def jobs(facts: Facts) -> Chart:
    """Return a chart with a bar for each job from submission to end; jobs side by side in lanes."""
    table = facts.jobs
    kept = table.sort("runtime_s", descending=True).head(MOST_JOBS)
    kept = kept.sort("submitted_s", "finished_s", "job")
    columns = ("submitted_s", "started_s", "finished_s", "name", "maps", "reduces")
    rows = kept.select(columns).rows()
    lanes = Lanes()
    placed = [(row, lanes.place(row[0], row[2])) for row in rows]
    left_out = table.height - kept.height
    longest = table.sort("runtime_s", descending=True).row(0, named=True)
    title = (
        f"The longest of {plural(table.height, 'job')}, {shown(longest['name'], 40)}, takes "
        f"{units.span(longest['runtime_s'])}"
        if table.height > 1
        else f"{shown(longest['name'], 40)} takes {units.span(longest['runtime_s'])}"
    )
    note = "A bar per job from submission to end; pale until its first task starts."
    if left_out:
        note += " The " + (
            "shortest job is left out."
            if left_out == 1
            else f"{units.count(left_out)} shortest jobs are left out."
        )
    thick = max(2.0, min(12.0, 220 / lanes.count))
    chart = Chart(
        "jobs",
        title,
        note,
        time(facts.end),
        Scale("linear", 0, lanes.count, ""),
        height=round(max(60.0, lanes.count * (thick + 1.5)) + 8),
        wide=True,
        legend=["waiting", "running"],
        key="bar",
        css="lanes",
    )
    waiting, work, items = [], [], []
    for (submitted, started, finished, name, maps, reduces), lane in placed:
        top = 4 + lane * (thick + 1.5)
        waiting.append(_bar(chart, submitted, started, top, thick))
        work.append(_bar(chart, started, finished, top, thick))
        text = (
            f"{shown(name, 40)}: {units.span(finished - submitted)}, {plural(maps, 'map')}, "
            f"{plural(reduces, 'reduce')}"
        )
        items.append([*rounded([submitted, finished], 7), round(top, 1), round(thick, 1), text])
    chart.add("bar pale s0", "".join(waiting), 0)
    chart.add("bar s0", "".join(work), 1)
    chart.data = {"type": "items", "items": items}
    chart.table = (
        ["job", "submitted", "first task", "finished", "runtime", "maps", "reduces"],
        [
            [
                shown(row["name"], 40),
                *(clock(row[k], facts.end) for k in ("submitted_s", "started_s", "finished_s")),
                units.span(row["runtime_s"]),
                units.count(row["maps"]),
                units.count(row["reduces"]),
            ]
            for row in table.sort("runtime_s", descending=True).head(15).iter_rows(named=True)
        ],
    )
    return chart


def _bar(chart: Chart, start: float, end: float, top: float, thick: float) -> str:
    """Return the SVG path of a bar from ``start`` to ``end`` in s; ``top``, ``thick`` in pixels."""
    left, right = (round(float(v)) for v in chart.points([start, end], [0, 0])[0])
    return f"M{left} {top:.1f}H{right}v{thick:.1f}H{left}z"


def hosts(facts: Facts) -> Chart:
    """Return a heat map of running tasks over time, with a row for each host or group of hosts.

    The row of a group shows the mean of its hosts.
    """
    tasks = facts.tasks
    numbers = sorted(set(tasks["host"].to_list()))
    group = -(-len(numbers) // _MOST_ROWS)
    bins = Bins(facts.end / 480, 480)
    names, rows = [], []
    for place in range(0, len(numbers), group):
        of_row = numbers[place : place + group]
        part = tasks.filter(pl.col("host").is_in(of_row))
        rows.append(concurrency(part, bins.edges) / len(of_row))
        first, last = facts.host(of_row[0]), facts.host(of_row[-1])
        names.append(first if len(of_row) == 1 else f"{first} … {last}")
    values = np.array(rows)
    busiest = int(values.mean(axis=1).argmax())
    per = "host" if group == 1 else f"{group} hosts"
    title = (
        f"{names[busiest]} is the busiest: {values[busiest].mean():.2g} tasks on average, "
        f"{values[busiest].max():.3g} at most"
    )
    note = f"Tasks running, a row per {per}; means over {units.span(bins.step)}."
    heat = Heat("tasks-by-host", title, note, names, bins, values, "tasks", "count")
    return heat.chart(facts.end)
