"""Pictures of the jobs and tasks of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from eastwest.plot.numbers import record
from eastwest.plot.style import (
    BLUE,
    ORANGE,
    boxes,
    color,
    heat,
    legend_above,
    log_time_axis,
    nothing,
    share_axis,
    share_curve,
    span_ticks,
    time_axis,
)
from eastwest.results import Result
from eastwest.units import plural, span
from eastwest.views.jobs import KINDS, at_once, concurrency
from eastwest.views.series import Lanes

#: Maximum number of tasks that are drawn as single bars; for more tasks, the number of running
#: tasks of each host is drawn.
_MOST_BARS = 400
_BINS = 600
_SHADES = dict(zip(KINDS, (BLUE, ORANGE), strict=True))


def runtimes(axes: Axes, results: Sequence[tuple[str, Result]]) -> str:
    """Draw the cumulative share of jobs over the time since submission; return the title."""
    title = ""
    shortest, longest = np.inf, 0.0
    for number, (label, result) in enumerate(results):
        runtime = result.jobs["runtime_s"].to_numpy()
        runtime = runtime[np.isfinite(runtime)]
        if runtime.size == 0:
            continue
        shortest, longest = min(shortest, runtime.min()), max(longest, runtime.max())
        columns = ("runtime_s", "share_of_jobs")
        share_curve(axes, np.maximum(runtime, 1e-6), number, label, columns)
        half, most = np.quantile(runtime, [0.5, 0.95])
        title = title or f"Half of the jobs finish within {span(half)}, 95 % within {span(most)}"
        if len(results) == 1:
            axes.plot([half, most], [0.5, 0.95], "o", color=color(number), markersize=4)
    if not title:
        return nothing(axes, "No job has finished")
    if shortest > 0 and longest > 5 * shortest:
        log_time_axis(axes, "x")
    else:
        span_ticks(axes, "x")
    share_axis(axes, "jobs finished")
    axes.set_xlabel("time since submission")
    if len(results) > 1:
        axes.legend(loc="lower right")
        return "How long jobs take"
    return title


def running_tasks(axes: Axes, results: Sequence[tuple[str, Result]]) -> str:
    """Draw the number of running maps and reduces of one result over time; return the title."""
    tasks = results[0][1].tasks
    end = float(np.nanmax(tasks["finished_s"].to_numpy()))
    edges = np.linspace(0, max(end, 1e-9), _BINS + 1)
    scale = time_axis(axes, end)
    base = np.zeros(_BINS)
    at = edges * scale
    for kind, shade in _SHADES.items():
        running = concurrency(tasks.filter(pl.col("kind") == kind), edges)
        top = base + running
        times = {"time_s": edges[:-1], "until_s": edges[1:]}
        record(axes, f"{kind}s", {**times, "running_tasks": running})
        low, high = (np.append(curve, curve[-1]) for curve in (base, top))
        look: dict[str, Any] = {"color": shade, "linewidth": 0, "alpha": 0.85}
        axes.fill_between(at, low, high, step="post", label=f"{kind}s", **look)
        base = top
    label = f"tasks, mean over {span(end / _BINS)}"
    axes.set(xlim=(0, at[-1]), ylim=(0, None), ylabel=label)
    legend_above(axes)
    mean = float((tasks["finished_s"] - tasks["started_s"]).sum()) / end if end > 0 else 0.0
    return (
        f"{plural(tasks.height, 'task')}: at most {plural(at_once(tasks), 'runs', 'run')} at once, "
        f"{mean:.1f} on average"
    )


def timeline(axes: Axes, results: Sequence[tuple[str, Result]]) -> str:
    """Draw the tasks of each host over time, one row for each host; return the title.

    Up to 400 tasks are bars; of more tasks, the colour shows how many run at once.
    """
    tasks = results[0][1].tasks.sort("started_s", "finished_s", "job", "task")
    end = float(np.nanmax(tasks["finished_s"].to_numpy()))
    scale = time_axis(axes, end)
    rows = {host: row for row, host in enumerate(sorted(set(tasks["host"].to_list())))}
    if tasks.height <= _MOST_BARS:
        _bars(axes, tasks, rows, scale)
        title = f"Every task on the host that ran it ({plural(len(rows), 'host')})"
    else:
        edges = np.linspace(0, end, _BINS + 1)
        busy = np.zeros((len(rows), _BINS))
        for (host,), part in tasks.group_by("host", maintain_order=True):
            busy[rows[int(str(host))]] = concurrency(part, edges)
        for host, row in rows.items():
            times = {"host": host, "time_s": edges[:-1], "until_s": edges[1:]}
            record(axes, f"host {host}", {**times, "running_tasks": busy[row]})
        most = max(1.0, float(busy.max()))
        # The colour of 0 tasks is transparent, so that the picture suits light and dark pages.
        heat(axes, busy, end * scale, ORANGE, top=most, pale=f"{ORANGE}00")
        hosts = "the host" if len(rows) == 1 else f"each of the {len(rows)} hosts"
        title = (
            f"How many tasks {hosts} runs: from none to {most:.0f} where the colour is strongest"
        )
    axes.set(xlim=(0, max(end, 1e-9) * scale), ylim=(len(rows), 0), ylabel="host")
    axes.grid(visible=False, axis="y")
    shown = list(rows)[:: max(1, -(-len(rows) // 10))]
    axes.set_yticks([rows[host] + 0.5 for host in shown], [str(host) for host in shown])
    return title


def _bars(axes: Axes, tasks: pl.DataFrame, rows: dict[int, int], scale: float) -> None:
    """Draw one bar for each task; tasks of a host that overlap in time are in different lanes.

    ``rows`` has the row of each host; ``scale`` converts s to units of the time axis.
    """
    lanes = {host: Lanes() for host in rows}
    columns = tasks.select("host", "kind", "started_s", "finished_s").iter_rows()
    placed = [(*row, lanes[row[0]].place(row[2], row[3])) for row in columns]
    for kind, shade in _SHADES.items():
        places = []
        for host, of_kind, start, end, lane in placed:
            if of_kind == kind:
                height = 0.9 / lanes[host].count
                low = rows[host] + 0.05 + lane * height
                places.append((start * scale, end * scale, low, low + 0.9 * height))
        boxes(axes, places, shade, f"{kind}s")
        own = tasks.filter(pl.col("kind") == kind)
        record(axes, f"{kind}s", own.select("host", "started_s", "finished_s").to_dict())
    legend_above(axes)
