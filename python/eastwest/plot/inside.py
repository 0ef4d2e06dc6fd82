"""Pictures from inside a run: windows, losses over time, links as a heat map, tasks of a job.

Each function returns a figure with its title; where a result lacks the data, the figure says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from eastwest.errors import InputError
from eastwest.plot.style import (
    AMBER,
    BLUE,
    GREEN,
    INK,
    ORANGE,
    color,
    legend_above,
    log_axis,
    log_time_axis,
    nothing,
    percent_ticks,
    style,
    time_axis,
)
from eastwest.results import Result
from eastwest.units import clean, count, size, span, tier_words

_WIDE, _NARROW, _TALL = (10.9, 3.2), (5.3, 3.3), (10.9, 5.0)
_BINS = 300
_MOST_WINDOWS = 6
_MOST_LINKS = 400
_MOST_TASKS = 2000
#: Factor to seconds from the unit at the end of a column's name.
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}

Floats = npt.NDArray[np.float64]


def cdf(
    results: Result | Mapping[str, Result] | Sequence[Result],
    column: str = "fct_us",
    table: str = "flows",
    where: pl.Expr | None = None,
) -> Figure:
    """Draw the share of rows that do not exceed a value: one curve for each result.

    ``column`` is any column of numbers of ``table``, such as ``runtime_s`` of ``jobs``; ``where``
    selects rows, such as ``pl.col("purpose") == "shuffle"``. The keys of a mapping are the names of
    the curves.
    """
    with style():
        figure, axes = _sheet(_NARROW)
        curves = [(name, _values(r, table, column, where)) for name, r in _named(results)]
        drawn = [(name, values) for name, values in curves if values.size]
        if not drawn:
            axes.set_title(nothing(axes, f"No row of {table} to draw"))
            return figure
        unit = _SECONDS.get(column.rsplit("_", 1)[-1])
        for number, (name, values) in enumerate(drawn):
            share = np.arange(1, values.size + 1) / values.size
            at = values * (unit or 1.0)
            axes.step(at, share, where="post", color=color(number), label=name)
        low = min(float(v[0]) for _, v in drawn) * (unit or 1.0)
        high = max(float(v[-1]) for _, v in drawn) * (unit or 1.0)
        if unit is not None and 0 < low < high:
            log_time_axis(axes, "x")
        elif low > 0 and high > 20 * low:
            log_axis(axes, "x")
        axes.set_ylim(0, 1.02)
        percent_ticks(axes, "y")
        axes.set_xlabel(column.removesuffix("_us").removesuffix("_s").replace("_", " "))
        axes.set_ylabel(f"share of {table}")
        if len(drawn) > 1:
            axes.legend(loc="lower right")
        axes.set_title(f"{column} of {table}")
    return figure


def windows(result: Result, connections: Sequence[int] | None = None) -> Figure:
    """Draw congestion windows (solid) and slow-start thresholds (dotted) over time, in bytes.

    A mark shows each timeout of the sender.

    Needs ``measure.tcp_trace``. Without ``connections``, which are numbers of the column
    ``connection``, the six senders with the most changes of their windows are drawn.
    """
    trace = result.tcp_trace.drop_nulls().filter(pl.col("time_s").is_finite())
    if connections is not None:
        trace = trace.filter(pl.col("connection").is_in(list(connections)))
    with style():
        figure, axes = _sheet(_WIDE)
        if trace.height == 0:
            axes.set_title(nothing(axes, "No window was traced: name senders in measure.tcp_trace"))
            return figure
        counted = trace.group_by("connection", "src", "dst").len()
        shown = counted.sort(["len", "connection", "src"], descending=[True, False, False])
        shown = shown.head(_MOST_WINDOWS)
        timeouts = result.events.filter(
            (pl.col("what") == "timeout") & pl.col("time_s").is_finite()
        )
        end = float(np.max(trace["time_s"].to_numpy()))
        scale = time_axis(axes, end)
        for number, row in enumerate(shown.iter_rows(named=True)):
            _window(axes, (trace, timeouts), row, scale, color(number))
        axes.yaxis.set_major_formatter(lambda value, _: size(value))
        axes.set_ylim(0, None)
        axes.set_ylabel("congestion window")
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        more = counted.height - shown.height
        axes.set_title("Windows over time" + (f"; {count(more)} more not shown" if more else ""))
    return figure


def _window(
    axes: Axes,
    tables: tuple[pl.DataFrame, pl.DataFrame],
    row: Mapping[str, int],
    scale: float,
    shade: str,
) -> None:
    trace, events = tables
    one = trace.filter(
        (pl.col("connection") == row["connection"]) & (pl.col("src") == row["src"])
    ).sort("time_s", maintain_order=True)
    at = one["time_s"].to_numpy() * scale
    name = f"h{row['src']} → h{row['dst']} ({row['connection']})"
    axes.step(at, one["cwnd_bytes"].to_numpy(), where="post", color=shade, lw=1.2, label=name)
    threshold = one["ssthresh_bytes"].to_numpy().astype(np.float64)
    # Before the first loss the threshold is a very large number, which has no meaning in the
    # picture.
    most = float(one["cwnd_bytes"].to_numpy().max()) * 1.5
    threshold[(threshold < 0) | (threshold > most)] = np.nan
    axes.step(at, threshold, where="post", color=shade, lw=0.8, ls=":")
    timeouts = events.filter(
        (pl.col("connection") == row["connection"]) & (pl.col("src") == row["src"])
    )["time_s"].to_numpy()
    after = np.clip(np.searchsorted(at, timeouts * scale, side="right") - 1, 0, at.size - 1)
    axes.plot(timeouts * scale, one["cwnd_bytes"].to_numpy()[after], "v", color=shade, ms=4)


def losses(result: Result) -> Figure:
    """Draw dropped packets over time, by tier of the links, with timeouts of senders as marks.

    Drops are from the table ``link_samples``, timeouts from the table ``events``.
    """
    samples = _samples(result).filter(pl.col("drops") > 0)
    with style():
        figure, axes = _sheet(_WIDE)
        if samples.height == 0:
            lost = int(result.links["drops"].sum())
            why = "No packet was lost" if lost == 0 else "Losses were not recorded over time"
            axes.set_title(nothing(axes, why))
            return figure
        end = _end(result)
        bins = _bins(result, end)
        edges = np.linspace(0, end, bins + 1)
        scale = time_axis(axes, end)
        joined = samples.join(result.links.select("link", "tier"), on="link", how="left")
        base = np.zeros(bins)
        for number, tier in enumerate(joined["tier"].drop_nulls().unique().sort().to_list()):
            of_tier = joined.filter(pl.col("tier") == tier)
            place = _bin(of_tier["time_s"].to_numpy(), edges)
            lost_here = np.bincount(place, of_tier["drops"].to_numpy(), minlength=bins)
            axes.stairs(
                base + lost_here,
                edges * scale,
                baseline=base,
                fill=True,
                color=color(number),
                label=tier_words(tier),
            )
            base = base + lost_here
        timeouts = result.events.filter(pl.col("what") == "timeout")["time_s"].to_numpy()
        timeouts = timeouts[np.isfinite(timeouts)]
        if timeouts.size:
            level = np.full(timeouts.size, -0.04 * base.max())
            label = "timeouts" if timeouts.size > 1 else "timeout"
            label = f"{count(timeouts.size)} {label}"
            axes.plot(timeouts * scale, level, "|", color=INK, ms=6, label=label, clip_on=False)
        axes.set_xlim(0, end * scale)
        axes.set_ylabel(f"packets lost in {span(end / bins)}")
        legend_above(axes)
        axes.set_title(f"{count(float(base.sum()))} packets lost")
    return figure


def link_heat(result: Result, what: str = "utilisation") -> Figure:
    """Draw every link as a row over time, darker with higher utilisation or more drops.

    ``what`` is ``"utilisation"``, the share of its rate, or ``"drops"``, packets lost. From the
    table ``link_samples``; of more than 400 links those that carried or dropped most are drawn.
    """
    if what not in {"utilisation", "drops"}:
        raise InputError(f"what={what!r}: allowed are 'utilisation' and 'drops'")
    column = "bytes" if what == "utilisation" else "drops"
    samples = _samples(result).filter(pl.col(column) > 0)
    with style():
        figure, axes = _sheet(_TALL)
        if samples.height == 0:
            axes.set_title(nothing(axes, f"No {what} of links was recorded over time"))
            return figure
        rows = _busiest(result.links, samples, column)
        end = _end(result)
        bins = _bins(result, end)
        edges = np.linspace(0, end, bins + 1)
        heat = _heat(samples, rows, edges, column, _interval(result))
        if what == "utilisation":
            # The rate in a damaged folder may be missing or 0.
            rate = np.maximum(rows["rate_bps"].fill_null(1).to_numpy().astype(float), 1.0)
            heat = np.minimum(1.0, heat * 8 / (rate[:, None] * end / bins))
        scale = time_axis(axes, end)
        shade = ORANGE if what == "drops" else BLUE
        shades = LinearSegmentedColormap.from_list("heat", ["#ffffff00", shade])
        top = 1.0 if what == "utilisation" else max(1.0, float(heat.max()))
        image = axes.imshow(
            heat,
            aspect="auto",
            interpolation="nearest",
            cmap=shades,
            vmin=0,
            vmax=top,
            extent=(0, end * scale, rows.height, 0),
        )
        axes.grid(visible=False)
        step = max(1, -(-rows.height // 24))
        names = [clean(name, 24) for name in rows["name"].to_list()]
        ticks = np.arange(0, rows.height, step)
        axes.set_yticks(ticks + 0.5, [names[i] for i in ticks])
        bar = figure.colorbar(image, ax=axes, pad=0.01)
        bar.set_label("share of the rate used" if what == "utilisation" else "packets lost")
        axes.set_title(f"{'Use' if what == 'utilisation' else 'Losses'} of {rows.height} links")
    return figure


def job_tasks(result: Result, job: int, workload: str | None = None) -> Figure:
    """Draw the tasks of a job, one in each row, with their stages: starting, input, the rest.

    ``job`` is its number; ``workload`` selects one where several workloads have a job of this
    number. Raises ``InputError`` where there is no such job.
    """
    own = pl.col("job") == job
    if workload is not None:
        own &= pl.col("workload") == workload
    found = result.jobs.filter(own)
    if found.height != 1:
        several = "has several jobs" if found.height else "has no finished job"
        raise InputError(f"{result.path} {several} {job}; workload={workload!r}")
    row = found.row(0, named=True)
    if not all(np.isfinite([row["submitted_s"] or 0.0, row["runtime_s"] or np.nan])):
        raise InputError(f"{result.path / 'jobs.parquet'} is damaged: job {job} has no times")
    tasks = result.tasks.filter(own).sort("kind", "assigned_s", "task").head(_MOST_TASKS)
    begin = float(row["submitted_s"])
    with style():
        figure, axes = _sheet(_WIDE if tasks.height < 30 else _TALL)
        if tasks.height == 0:
            axes.set_title(nothing(axes, "No task of the job is in the result"))
            return figure
        scale = time_axis(axes, row["runtime_s"], "time since submission")
        for kind, shade, rest in (("map", BLUE, GREEN), ("reduce", ORANGE, AMBER)):
            words = ("read", "compute and spill") if kind == "map" else ("fetch", "reduce, write")
            stages = (
                ("assigned_s", "started_s", "#b8bdc7", "start" if kind == "map" else "_start"),
                ("started_s", "input_done_s", shade, f"{kind}: {words[0]}"),
                ("input_done_s", "finished_s", rest, f"{kind}: {words[1]}"),
            )
            for left, right, fill, label in stages:
                _stage(axes, tasks, kind, ((left, right), (begin, scale), (fill, label)))
        axes.set_xlim(0, row["runtime_s"] * scale)
        axes.set_ylim(tasks.height, 0)
        if tasks.height <= 30:
            names = [f"{kind} {task}" for kind, task in tasks.select("kind", "task").iter_rows()]
            axes.set_yticks(np.arange(tasks.height) + 0.5, names)
        else:
            axes.set_ylabel("tasks, maps first")
        axes.grid(visible=False, axis="y")
        legend_above(axes)
        axes.set_title(f"{clean(row['name'], 60)}: {tasks.height} tasks, {span(row['runtime_s'])}")
    return figure


def _stage(
    axes: Axes,
    tasks: pl.DataFrame,
    kind: str,
    how: tuple[tuple[str, str], tuple[float, float], tuple[str, str]],
) -> None:
    (left, right), (begin, scale), (fill, label) = how
    shapes = []
    columns = tasks.select("kind", left, right).iter_rows()
    for place, (of_kind, start, stop) in enumerate(columns):
        if of_kind == kind and stop > start:
            a, b = (start - begin) * scale, (stop - begin) * scale
            low, high = place + 0.1, place + 0.9
            shapes.append([(a, low), (b, low), (b, high), (a, high)])
    if shapes:
        axes.add_collection(PolyCollection(shapes, facecolors=fill, edgecolors="none", label=label))


def _sheet(figsize: tuple[float, float]) -> tuple[Figure, Axes]:
    figure = Figure(figsize=figsize, layout="constrained")
    return figure, figure.add_subplot()


def _named(
    results: Result | Mapping[str, Result] | Sequence[Result],
) -> list[tuple[str, Result]]:
    if isinstance(results, Result):
        return [("", results)]
    if isinstance(results, Mapping):
        return [(clean(str(name), 60), result) for name, result in results.items()]
    return [(clean(result.path.name, 60), result) for result in results]


def _values(result: Result, table: str, column: str, where: pl.Expr | None) -> Floats:
    rows = result.table(table)
    if column not in rows.columns or not rows.schema[column].is_numeric():
        numbers = [name for name, kind in rows.schema.items() if kind.is_numeric()]
        raise InputError(f"{table} has no numbers in a column {column!r}; it has {numbers}")
    if where is not None:
        rows = rows.filter(where)
    values = rows[column].cast(pl.Float64).drop_nulls().to_numpy()
    return np.sort(values[np.isfinite(values)])


def _end(result: Result) -> float:
    """Return the time of the last sample, in s."""
    times = _samples(result)["time_s"].to_numpy()
    return max(float(times.max()), 1e-9)


def _samples(result: Result) -> pl.DataFrame:
    """Return the samples of links that the result has, at times that a run can have."""
    sound = pl.col("time_s").is_finite() & (pl.col("time_s") > 0) & (pl.col("time_s") < 1e9)
    known = result.links.filter(pl.col("rate_bps") > 0).select("link").unique()
    return result.link_samples.filter(sound).join(known, on="link", how="semi")


def _interval(result: Result) -> float:
    """Return the time between two samples, in s."""
    times = result.traffic["time_s"].to_numpy()
    times = times[np.isfinite(times) & (times > 0)]
    return float(times.min()) if times.size else 0.0


def _bins(result: Result, end: float) -> int:
    """Return the number of bins of a time axis: no more than there are samples."""
    interval = _interval(result)
    return min(_BINS, max(1, round(end / interval))) if interval > 0 else _BINS


def _bin(times: Floats, edges: Floats) -> npt.NDArray[np.intp]:
    """Return the bin of each sample, whose time is the end of its interval."""
    # Ends of intervals may differ from edges in the last bit.
    late = edges * (1 + 1e-12)
    return np.clip(np.searchsorted(late, times, side="left") - 1, 0, edges.size - 2)


def _busiest(links: pl.DataFrame, samples: pl.DataFrame, column: str) -> pl.DataFrame:
    """Return the rows of ``links`` to draw, in the order of their tiers and numbers."""
    total = samples.group_by("link").agg(pl.col(column).sum().alias("_total"))
    joined = links.join(total, on="link", how="inner")
    kept = joined.sort(["_total", "link"], descending=[True, False]).head(_MOST_LINKS)
    return kept.sort("tier", "link")


def _heat(
    samples: pl.DataFrame, rows: pl.DataFrame, edges: Floats, column: str, width: float
) -> Floats:
    """Return the sums of a column, with the shape (rows, bins).

    The value of a sampling interval is spread evenly over the bins that it covers.
    """
    place = {link: row for row, link in enumerate(rows["link"].to_list())}
    kept = samples.filter(pl.col("link").is_in(list(place)))
    row = np.array([place[link] for link in kept["link"].to_list()])
    end = kept["time_s"].to_numpy()
    # The bin in which the sampling interval begins.
    first = _bin(np.maximum(end - width, 0) + 0.5 * min(width, edges[1]), edges)
    last = np.maximum(_bin(end, edges), first)
    value = kept[column].to_numpy().astype(np.float64) / (last - first + 1)
    heat = np.zeros((rows.height, edges.size - 1))
    for shift in range(int((last - first).max(initial=0)) + 1):
        covers = first + shift <= last
        np.add.at(heat, (row[covers], first[covers] + shift), value[covers])
    return heat
