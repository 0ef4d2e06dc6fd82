"""Pictures of details of a run: windows, losses over time, links as a heat map, tasks of a job.

Each function returns a figure with a title. If a result lacks the data, the figure shows only a
text with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eastwest.errors import InputError
from eastwest.plot.numbers import record
from eastwest.plot.sheet import empty, sheet
from eastwest.plot.style import (
    AMBER,
    BLUE,
    GREEN,
    INK,
    NARROW,
    ORANGE,
    WIDE,
    boxes,
    color,
    heat,
    legend_above,
    log_axis,
    log_time_axis,
    share_axis,
    share_curve,
    time_axis,
)
from eastwest.results import Result
from eastwest.units import clean, count, plural, size, span, tier_words
from eastwest.views.facts import Facts
from eastwest.views.links import Samples
from eastwest.views.series import Floats

_TALL = (10.9, 5.0)
_MOST_WINDOWS = 6
_MOST_LINKS = 400
_MOST_TASKS = 2000
#: Times of a task, in the order of its stages.
_TASK_TIMES = ("assigned_s", "started_s", "input_done_s", "finished_s")
#: Word for each column of numbers of packets in ``link_samples``.
_SAID = {"drops": "lost", "marks": "marked"}
#: Factor that converts a column to seconds, by the unit at the end of its name.
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def cdf(
    results: Result | Mapping[str, Result] | Sequence[Result],
    column: str = "fct_us",
    table: str = "flows",
    where: pl.Expr | None = None,
) -> Figure:
    """Draw the cumulative distribution of a column: one curve for each result.

    ``column`` is a column of numbers of ``table``, such as ``runtime_s`` of ``jobs``; ``where``
    selects rows, such as ``pl.col("purpose") == "shuffle"``. Curves have the names of the result
    folders; if ``results`` is a mapping, its keys are the names.
    """
    unit = _SECONDS.get(column.rsplit("_", 1)[-1])
    factor = unit or 1.0
    curves = [(name, _values(r, table, column, where)) for name, r in _named(results)]
    drawn = [(name, values) for name, values in curves if values.size]
    if not drawn:
        return empty(f"No row of {table} to draw", NARROW)
    with sheet(NARROW) as (figure, axes):
        for number, (name, values) in enumerate(drawn):
            share_curve(axes, values, number, name, (column, f"share_of_{table}"), factor)
        low = min(float(values.min()) for _, values in drawn) * factor
        high = max(float(values.max()) for _, values in drawn) * factor
        if unit is not None and 0 < low < high:
            log_time_axis(axes, "x")
        elif low > 0 and high > 20 * low:
            log_axis(axes, "x")
        share_axis(axes, f"share of {table}")
        axes.set_xlabel(column.removesuffix("_us").removesuffix("_s").replace("_", " "))
        if len(drawn) > 1:
            axes.legend(loc="lower right")
        axes.set_title(f"{column} of {table}")
    return figure


def windows(result: Result, connections: Sequence[int | str] | int | str | None = None) -> Figure:
    """Draw congestion windows (solid) and slow-start thresholds (dotted) over time, in bytes.

    A mark shows each timeout of a sender. The run must have recorded ``measure.tcp_trace``.
    ``connections`` has numbers of connections (column ``connection``) and names: ``h0`` for all
    windows of the sender h0, or ``h0->h3`` for those to the host h3. None: all windows. Of more
    than six windows, the six with the most changes are drawn. Lines end at the end of the run.

    Raises ``InputError`` if no window was traced for a number or name.
    """
    trace = result.tcp_trace.drop_nulls().filter(pl.col("time_s").is_finite())
    if trace.height == 0:
        return empty("No window was traced: name senders in measure.tcp_trace")
    if connections is not None:
        wanted = [connections] if isinstance(connections, int | str) else connections
        trace = pl.concat([_traced(result, trace, each) for each in wanted]).unique(
            maintain_order=True
        )
    counted = trace.group_by("connection", "src", "dst").len()
    shown = counted.sort(["len", "connection", "src"], descending=[True, False, False])
    shown = shown.head(_MOST_WINDOWS)
    with sheet() as (figure, axes):
        timeouts = _timeouts(result)
        end = max(float(np.max(trace["time_s"].to_numpy())), Facts(result).end)
        scale = time_axis(axes, end)
        for number, row in enumerate(shown.iter_rows(named=True)):
            _window(axes, (trace, timeouts), row, (scale, end), color(number))
        axes.yaxis.set_major_formatter(lambda value, _: size(value))
        axes.set(ylim=(0, None), ylabel="congestion window")
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        more = counted.height - shown.height
        axes.set_title("Windows over time" + (f"; {count(more)} more not shown" if more else ""))
    return figure


def _traced(result: Result, trace: pl.DataFrame, wanted: int | str) -> pl.DataFrame:
    """Return the rows of ``trace`` for ``wanted``: a connection's number, ``h0``, or ``h0->h3``."""
    if isinstance(wanted, int):
        rows = trace.filter(pl.col("connection") == wanted)
    else:
        names = Facts(result).hosts
        ends = [each.strip() for each in wanted.split("->", 1)]
        numbers = [names.index(each) if each in names else -1 for each in ends]
        rows = trace.filter(pl.col("src") == numbers[0])
        rows = rows.filter(pl.col("dst") == numbers[1]) if len(numbers) > 1 else rows
    if rows.height == 0:
        raise InputError(
            f"no window of {clean(str(wanted), 60)!r} was traced; allowed: a number from the "
            "column connection of tcp_trace, a sender such as h0, or two hosts such as h0->h3"
        )
    return rows


def _timeouts(result: Result) -> pl.DataFrame:
    """Return the rows of the table ``events`` that are timeouts of senders."""
    return result.events.filter((pl.col("what") == "timeout") & pl.col("time_s").is_finite())


def _window(
    axes: Axes,
    tables: tuple[pl.DataFrame, pl.DataFrame],
    row: Mapping[str, int],
    time: tuple[float, float],
    shade: str,
) -> None:
    own = (pl.col("connection") == row["connection"]) & (pl.col("src") == row["src"])
    trace, events = (table.filter(own) for table in tables)
    one = trace.sort("time_s", maintain_order=True)
    scale, end = time
    at = one["time_s"].to_numpy() * scale
    window = one["cwnd_bytes"].to_numpy()
    limits = one.select("time_s", "cwnd_bytes", "ssthresh_bytes")
    record(axes, _window_name(row), limits.to_dict())
    # The last window is drawn until the end of the run.
    at, window = np.append(at, end * scale), np.append(window, window[-1])
    axes.step(at, window, where="post", color=shade, lw=1.2, label=_window_name(row))
    threshold = one["ssthresh_bytes"].to_numpy().astype(np.float64)
    threshold = np.append(threshold, threshold[-1])
    # Before the first loss, the threshold is a very large number that would stretch the axis.
    most = float(window.max()) * 1.5
    threshold[(threshold < 0) | (threshold > most)] = np.nan
    axes.step(at, threshold, where="post", color=shade, lw=0.8, ls=":")
    timeouts = events["time_s"].to_numpy() * scale
    after = np.clip(np.searchsorted(at, timeouts, side="right") - 1, 0, at.size - 1)
    axes.plot(timeouts, window[after], "v", color=shade, ms=4)
    if timeouts.size:
        marked = {"time_s": events["time_s"], "cwnd_bytes": window[after]}
        record(axes, f"{_window_name(row)}: timeouts", marked)


def _window_name(row: Mapping[str, int]) -> str:
    return f"h{row['src']} → h{row['dst']} ({row['connection']})"


def losses(result: Result) -> Figure:
    """Draw dropped packets over time, stacked by tier of the links, and timeouts of senders.

    Drops are from the table ``link_samples``; timeouts, from the table ``events``, are marks below.
    """
    samples = Samples(result)
    if not (samples.rows["drops"] > 0).any():
        lost = int(result.links["drops"].sum())
        return empty("No packet was lost" if lost == 0 else "Losses were not recorded over time")
    with sheet() as (figure, axes):
        total = _stack(axes, samples, "drops")
        timeouts = _timeouts(result)["time_s"].to_numpy()
        if timeouts.size:
            level = np.full(timeouts.size, -0.04 * total.max())
            label = "timeouts" if timeouts.size > 1 else "timeout"
            label = f"{count(timeouts.size)} {label}"
            scale = time_axis(axes, samples.end)
            axes.plot(timeouts * scale, level, "|", color=INK, ms=6, label=label, clip_on=False)
            record(axes, "timeouts", {"time_s": timeouts})
        axes.set(ylabel=f"packets lost in {span(samples.width)}")
        legend_above(axes)
        later = int(result.links["drops"].sum()) - int(total.sum())
        more = f"; {count(later)} more after the last interval" if later > 0 else ""
        axes.set_title(f"{plural(float(total.sum()), 'packet')} lost{more}")
    return figure


def marks(result: Result) -> Figure:
    """Draw packets marked with CE (ECN) over time, stacked by tier of the links.

    Marks are in the table ``link_samples`` from result format 9 on.
    """
    samples = Samples(result)
    marked = samples.rows["marks"]
    if not (marked > 0).any():
        old = marked.null_count() > 0
        return empty("Marks were not recorded over time" if old else "No packet was marked")
    with sheet() as (figure, axes):
        total = _stack(axes, samples, "marks")
        axes.set(ylabel=f"packets marked in {span(samples.width)}")
        legend_above(axes)
        axes.set_title(f"{plural(float(total.sum()), 'packet')} marked (CE)")
    return figure


def _stack(axes: Axes, samples: Samples, column: str) -> Floats:
    """Draw numbers of packets over time, stacked by tier; return the sum over tiers of each bin.

    ``column`` is the drawn column of ``link_samples``: ``drops`` or ``marks``.
    """
    scale = time_axis(axes, samples.end)
    base = np.zeros(samples.edges.size - 1)
    for number, (tier, packets) in enumerate(samples.by_tier(column).items()):
        axes.stairs(
            base + packets,
            samples.edges * scale,
            baseline=base,
            fill=True,
            color=color(number),
            label=tier_words(tier),
        )
        times = {"time_s": samples.edges[:-1], "until_s": samples.edges[1:]}
        record(axes, tier_words(tier), {**times, f"packets_{_SAID[column]}": packets})
        base = base + packets
    axes.set(xlim=(0, samples.end * scale))
    return base


def link_heat(result: Result, what: str = "utilisation") -> Figure:
    """Draw every link as a row over time, darker with higher utilisation or more drops.

    ``what`` is ``"utilisation"`` (share of the link's rate) or ``"drops"`` (packets lost). The data
    are in the table ``link_samples``. Of more than 400 links, the 400 that carried the most bytes,
    or dropped the most packets, are drawn.
    """
    if what not in {"utilisation", "drops"}:
        raise InputError(f"what={what!r}: must be 'utilisation' or 'drops'")
    column = "bytes" if what == "utilisation" else "drops"
    samples = Samples(result)
    if not (samples.rows[column] > 0).any():
        return empty(f"No {what} of links was recorded over time", _TALL)
    rows, values = samples.by_link(column, _MOST_LINKS)
    shade, top = ORANGE, max(1.0, float(values.max()))
    if what == "utilisation":
        # The rate in a damaged folder may be missing or 0.
        rate = np.maximum(rows["rate_bps"].fill_null(1).to_numpy().astype(float), 1.0)
        values = np.minimum(1.0, values * 8 / (rate[:, None] * samples.width))
        shade, top = BLUE, 1.0
    with sheet(_TALL) as (figure, axes):
        scale = time_axis(axes, samples.end)
        image = heat(axes, values, samples.end * scale, shade, top=top)
        axes.grid(visible=False)
        ticks = np.arange(0, rows.height, max(1, -(-rows.height // 24)))
        names = rows["name"].to_list()
        axes.set_yticks(ticks + 0.5, [clean(names[i], 24) for i in ticks])
        of_bin = "utilisation" if what == "utilisation" else "packets_lost"
        times = {"time_s": samples.edges[:-1], "until_s": samples.edges[1:]}
        for name, drawn in zip(names, values, strict=True):
            record(axes, clean(name, 200), {**times, of_bin: drawn})
        bar = figure.colorbar(image, ax=axes, pad=0.01)
        bar.set_label("share of the rate used" if what == "utilisation" else "packets lost")
        axes.set_title(
            f"{'Use' if what == 'utilisation' else 'Losses'} of {plural(rows.height, 'link')}"
        )
    return figure


def job_tasks(result: Result, job: int, workload: str | None = None) -> Figure:
    """Draw the tasks of a job, one in each row, in three stages: start; input; compute and output.

    ``job`` is the number of the job; ``workload`` is its workload, needed if several workloads have
    a job with this number. Raises ``InputError`` if not exactly one finished job matches.
    """
    own = pl.col("job") == job
    if workload is not None:
        own &= pl.col("workload") == workload
    found = result.jobs.filter(own)
    if found.height != 1:
        several = "choose one of the workloads with a job" if found.height else "no finished job"
        raise InputError(f"{result.path}: {several} {job}; the argument workload is {workload!r}")
    row = found.row(0, named=True)
    if not all(np.isfinite([row["submitted_s"] or 0.0, row["runtime_s"] or np.nan])):
        raise InputError(f"{result.path / 'jobs.parquet'} is damaged: job {job} lacks its times")
    tasks = result.tasks.filter(own).sort("kind", "assigned_s", "task").head(_MOST_TASKS)
    begin = float(row["submitted_s"])
    if tasks.height == 0:
        return empty("No task of the job is in the result")
    with sheet(WIDE if tasks.height < 30 else _TALL) as (figure, axes):
        scale = time_axis(axes, row["runtime_s"], "time since submission")
        for kind, shade, rest in (("map", BLUE, GREEN), ("reduce", ORANGE, AMBER)):
            words = ("read", "compute and spill") if kind == "map" else ("fetch", "reduce, write")
            stages = (
                ("assigned_s", "started_s", "#b8bdc7", "start" if kind == "map" else "_start"),
                ("started_s", "input_done_s", shade, f"{kind}: {words[0]}"),
                ("input_done_s", "finished_s", rest, f"{kind}: {words[1]}"),
            )
            for left, right, fill, label in stages:
                places = [
                    ((a - begin) * scale, (b - begin) * scale, place + 0.1, place + 0.9)
                    for place, (of, a, b) in enumerate(tasks.select("kind", left, right).rows())
                    if of == kind and b > a
                ]
                boxes(axes, places, fill, label)
        for of_kind, part in tasks.group_by("kind", maintain_order=True):
            since = part.select(
                "task", (pl.col(_TASK_TIMES) - begin).name.suffix("_since_submission")
            )
            record(axes, str(of_kind[0]), since.to_dict())
        axes.set(xlim=(0, row["runtime_s"] * scale), ylim=(tasks.height, 0))
        if tasks.height <= 30:
            names = [f"{kind} {task}" for kind, task in tasks.select("kind", "task").iter_rows()]
            axes.set_yticks(np.arange(tasks.height) + 0.5, names)
        else:
            axes.set_ylabel("tasks, maps first")
        axes.grid(visible=False, axis="y")
        legend_above(axes)
        axes.set_title(
            f"{clean(row['name'], 60)}: {plural(tasks.height, 'task')}, {span(row['runtime_s'])}"
        )
    return figure


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
        raise InputError(
            f"the table {table} has no column {column!r} with numbers; columns with numbers: "
            f"{numbers}"
        )
    if where is not None:
        rows = rows.filter(where)
    values = rows[column].cast(pl.Float64).drop_nulls().to_numpy()
    return np.asarray(values[np.isfinite(values)])
