"""Pictures of jobs and tasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap

from eastwest.plot.style import (
    BLUE,
    ORANGE,
    color,
    legend_above,
    log_time_axis,
    nothing,
    span_ticks,
    time_axis,
)
from eastwest.results import Result
from eastwest.units import count, span

#: Most tasks that are drawn as bars; more are drawn as occupancy.
_MOST_BARS = 400
_BINS = 600
KINDS = (("map", BLUE), ("reduce", ORANGE))

Floats = npt.NDArray[np.float64]


def several_jobs(result: Result) -> bool:
    """Whether the run had enough jobs for a distribution."""
    return result.jobs.height > 1


def any_tasks(result: Result) -> bool:
    """Whether the run had tasks."""
    return result.tasks.height > 0


def runtimes(axes: Axes, results: Sequence[tuple[str, Result]]) -> str:
    """Draw the share of jobs that finish within a time since submission."""
    title = ""
    shortest, longest = np.inf, 0.0
    for number, (label, result) in enumerate(results):
        runtime = np.sort(result.jobs["runtime_s"].to_numpy())
        runtime = runtime[np.isfinite(runtime)]
        if runtime.size == 0:
            continue
        shortest, longest = min(shortest, runtime[0]), max(longest, runtime[-1])
        share = np.arange(1, runtime.size + 1) / runtime.size
        axes.step(np.maximum(runtime, 1e-6), share, where="post", color=color(number), label=label)
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
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.set_ylabel("jobs finished")
    axes.set_xlabel("time since submission")
    if len(results) > 1:
        axes.legend(loc="lower right")
        return "How long jobs take"
    return title


def concurrency(tasks: pl.DataFrame, edges: Floats) -> Floats:
    """Return the mean number of running tasks between each two of ``edges`` (s)."""
    start, end = tasks["started_s"].to_numpy(), tasks["finished_s"].to_numpy()
    # Task-seconds before each edge; the differences are those of the intervals.
    before = np.zeros(edges.size)
    for times, sign in ((start, 1.0), (end, -1.0)):
        ordered = np.sort(times)
        total = np.concatenate([[0.0], np.cumsum(ordered)])
        number = np.searchsorted(ordered, edges)
        before += sign * (number * edges - total[number])
    widths = np.diff(edges)
    return np.asarray(np.diff(before) / np.where(widths > 0, widths, 1.0))


def at_once(tasks: pl.DataFrame) -> int:
    """Return the largest number of tasks that run at the same time."""
    times = np.concatenate([tasks["started_s"].to_numpy(), tasks["finished_s"].to_numpy()])
    steps = np.repeat([1, -1], tasks.height)
    # At one time ends come before starts: a slot that one task leaves to another has one task.
    running = np.cumsum(steps[np.lexsort((steps, times))])
    return int(running.max(initial=0))


def running_tasks(axes: Axes, results: Sequence[tuple[str, Result]]) -> str:
    """Draw the number of running maps and reduces over time."""
    tasks = results[0][1].tasks
    end = float(np.nanmax(tasks["finished_s"].to_numpy()))
    edges = np.linspace(0, max(end, 1e-9), _BINS + 1)
    scale = time_axis(axes, end)
    base = np.zeros(_BINS)
    at = edges * scale
    for kind, shade in KINDS:
        running = concurrency(tasks.filter(pl.col("kind") == kind), edges)
        top = base + running
        axes.fill_between(
            at,
            np.append(base, base[-1]),
            np.append(top, top[-1]),
            step="post",
            color=shade,
            linewidth=0,
            alpha=0.85,
            label=f"{kind}s",
        )
        base = top
    axes.set_xlim(0, at[-1])
    axes.set_ylim(0, None)
    axes.set_ylabel(f"tasks, mean over {span(end / _BINS)}")
    legend_above(axes)
    mean = float((tasks["finished_s"] - tasks["started_s"]).sum()) / end if end > 0 else 0.0
    return (
        f"{count(tasks.height)} tasks: at most {at_once(tasks)} run at once, {mean:.1f} on average"
    )


def timeline(axes: Axes, results: Sequence[tuple[str, Result]]) -> str:
    """Draw the tasks of each host over time: single bars, or if there are many their number."""
    tasks = results[0][1].tasks.sort("started_s", "finished_s", "job", "task")
    end = float(np.nanmax(tasks["finished_s"].to_numpy()))
    scale = time_axis(axes, end)
    hosts = int(tasks["host"].n_unique())
    rows = {host: row for row, host in enumerate(sorted(set(tasks["host"].to_list())))}
    if tasks.height <= _MOST_BARS:
        _bars(axes, tasks, rows, scale)
        title = f"Every task on the host that ran it ({hosts} hosts)"
    else:
        most = _occupancy(axes, tasks, rows, end, scale)
        title = (
            f"How many tasks each of the {hosts} hosts runs: from none to {most:.0f} "
            "where the colour is strongest"
        )
    axes.set_xlim(0, max(end, 1e-9) * scale)
    axes.set_ylim(len(rows), 0)
    axes.set_ylabel("host")
    axes.grid(visible=False, axis="y")
    step = max(1, -(-len(rows) // 10))
    shown = list(rows)[::step]
    axes.set_yticks([rows[host] + 0.5 for host in shown], [str(host) for host in shown])
    return title


def _bars(axes: Axes, tasks: pl.DataFrame, rows: dict[int, int], scale: float) -> None:
    """Draw one bar for each task; tasks of a host that overlap are in lanes."""
    lanes: dict[int, list[float]] = {host: [] for host in rows}
    placed: list[tuple[int, int, str, float, float]] = []
    columns = tasks.select("host", "kind", "started_s", "finished_s").iter_rows()
    for host, kind, start, end in columns:
        free = next((i for i, until in enumerate(lanes[host]) if until <= start), None)
        if free is None:
            lanes[host].append(end)
            free = len(lanes[host]) - 1
        else:
            lanes[host][free] = end
        placed.append((host, free, kind, start, end))
    for kind, shade in KINDS:
        shapes = []
        for host, lane, of_kind, start, end in placed:
            if of_kind != kind:
                continue
            height = 0.9 / len(lanes[host])
            low = rows[host] + 0.05 + lane * height
            left, right = start * scale, end * scale
            top = low + 0.9 * height
            shapes.append([(left, low), (right, low), (right, top), (left, top)])
        if shapes:
            axes.add_collection(
                PolyCollection(shapes, facecolors=shade, edgecolors="none", label=f"{kind}s")
            )
    legend_above(axes)


def _occupancy(
    axes: Axes, tasks: pl.DataFrame, rows: dict[int, int], end: float, scale: float
) -> float:
    """Colour each host's row by the number of tasks it runs; return the highest number."""
    edges = np.linspace(0, end, _BINS + 1)
    busy = np.zeros((len(rows), _BINS))
    for (host,), part in tasks.group_by("host"):
        busy[rows[int(str(host))]] = concurrency(part, edges)
    # From transparent to strong, so that it suits a light and a dark page.
    shades = LinearSegmentedColormap.from_list("busy", [(*_rgb(ORANGE), 0.0), (*_rgb(ORANGE), 1.0)])
    most = max(1.0, float(busy.max()))
    axes.imshow(
        busy,
        aspect="auto",
        interpolation="nearest",
        cmap=shades,
        vmin=0,
        vmax=most,
        extent=(0, end * scale, len(rows), 0),
    )
    return most


def _rgb(value: str) -> tuple[float, float, float]:
    red, green, blue = (int(value[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue
