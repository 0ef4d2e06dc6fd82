"""Charts of the page about a trace: bytes per job, uses of files, task times, arrivals of jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eastwest import units
from eastwest.report.draw import (
    Chart,
    Scale,
    fill_lines,
    linear,
    logarithmic,
    rounded,
    thin_rows,
    time,
)
from eastwest.views.labels import plural, shown
from eastwest.views.series import Floats
from eastwest.workload.access import Access, Files
from eastwest.workload.arrival import Arrival
from eastwest.workload.describe import Description
from eastwest.workload.jobs import BYTES, WORDS
from eastwest.workload.tasks import Durations

_SHARES = (0.25, 0.5, 0.75, 0.9, 0.99)
_BYTES_OF_JOBS = ("bytes", "size", "share of jobs")


def access_charts(access: Access) -> list[Chart]:
    """Return charts of bytes per job, of uses of files by rank, and of times between uses.

    The charts of files are left out if the trace does not name files.
    """
    found = []
    if access.sizes:
        curves = [(WORDS[name], sizes.curve) for name, sizes in access.sizes.items()]
        note = (
            "Share of jobs with at most this number of bytes; curves begin at the "
            "share of jobs with 0 bytes."
        )
        chart = _curves("bytes", "Bytes per job", note, curves, _BYTES_OF_JOBS)
        chart.wide = access.files is None
        found.append(chart)
    if access.files is not None:
        found.append(_popularity(access.files))
        if access.files.again:
            note = "Share of repeated uses that follow the previous use within this time."
            axes = ("time since the previous use", "span", "share of repeated uses")
            again = list(access.files.again.items())
            found.append(_curves("again", "How soon data is used again", note, again, axes))
    return found


def side_by_side(pair: Sequence[tuple[str, Description]]) -> list[Chart]:
    """Return up to three charts that compare traces: input, shuffle and output bytes per job.

    ``pair`` has each trace with its name.
    """
    found = []
    for name in BYTES:
        known = [(label, d.access.sizes[name]) for label, d in pair if name in d.access.sizes]
        curves = [(label, sizes.curve) for label, sizes in known]
        if curves:
            title = f"{WORDS[name]} per job".capitalize()
            note = "Share of jobs with at most this number of bytes."
            found.append(_curves(f"bytes-{WORDS[name]}", title, note, curves, _BYTES_OF_JOBS))
    fill_lines(found)
    return found


def task_times(tasks: Mapping[str, Durations]) -> Chart:
    """Return a chart of the durations of task attempts, with a curve for each kind of task."""
    curves = [(shown(kind, 20), each.curve) for kind, each in list(tasks.items())[:6]]
    note = "Share of successful attempts that take at most this time."
    axes = ("duration", "span", "share of attempts")
    chart = _curves("task-times", "Task times", note, curves, axes)
    chart.wide = True
    return chart


def _curves(
    name: str,
    title: str,
    note: str,
    curves: Sequence[tuple[str, tuple[Floats, Floats]]],
    axes: tuple[str, str, str],
) -> Chart:
    """Return a chart of cumulative shares of values on a logarithmic axis.

    ``curves`` has (name, (values in ascending order, share up to each value)); values of 0 are at
    the left end of the axis. ``axes`` has the label of the values, the name of their format, and
    the label of the shares.
    """
    label, unit, what = axes
    positive = np.concatenate([v[v > 0] for _, (v, _) in curves] or [np.ones(1)])
    low = float(positive.min(initial=np.inf)) if positive.size else 1.0
    high = float(positive.max(initial=1.0))
    chart = Chart(
        name,
        title,
        note,
        logarithmic(low, high, label, unit),
        Scale("linear", 0.0, 1.02, what, "percent"),
        legend=[key for key, _ in curves],
    )
    data, rows = [], []
    for number, (key, (values, shares)) in enumerate(curves):
        x = np.maximum(values, chart.x.low)
        zero = float(shares[values <= 0].max(initial=0.0))
        chart.line(np.insert(x, 0, chart.x.low), np.insert(shares, 0, zero), number, step=True)
        data.append([rounded(x), rounded(shares)])
        places = np.searchsorted(shares, np.asarray(_SHARES) - 1e-12)
        at = values[np.minimum(places, values.size - 1)]
        rows.append([key, units.percent(zero), *(chart.x.write(float(v)) for v in at)])
    chart.data = {"type": "curve", "curves": data}
    chart.table = (["", "none", *(units.percent(s) for s in _SHARES)], rows)
    return chart


def _popularity(files: Files) -> Chart:
    """Return a chart of the number of uses of each file, against the rank of the file."""
    ranks, uses = files.ranks
    zipf = "" if files.zipf is None else f", about as rank to the power −{files.zipf:.2f}"
    chart = Chart(
        "popularity",
        f"The most used of {plural(files.files, 'file')} is used {plural(float(uses[0]), 'time')}",
        f"Uses of each file, the most used first{zipf}.",
        logarithmic(1.0, float(ranks[-1]), "rank", "count"),
        logarithmic(1.0, float(uses[0]), "uses", "count"),
    )
    chart.dots(ranks, uses, 0)
    chart.data = {"type": "curve", "curves": [[rounded(ranks), rounded(uses)]]}
    rows = [[units.count(r), units.count(u)] for r, u in zip(ranks, uses, strict=True)]
    chart.table = (["rank", "uses"], thin_rows(rows))
    return chart


def arrival_charts(arrival: Arrival) -> list[Chart]:
    """Return charts of jobs over time, of bytes over time, and of the autocorrelation of jobs."""
    found = [
        _over_time(arrival, "jobs", arrival.counts, "count", "Jobs submitted"),
        _over_time(arrival, "moved", arrival.moved_bytes, "size", "Bytes of the jobs submitted"),
    ]
    lags, correlation = arrival.correlation
    if lags.size > 1:
        chart = Chart(
            "correlation",
            "Autocorrelation of the number of jobs per interval",
            "Correlation with the number of jobs after this time; of independent "
            f"jobs, 95 % of the values lie within ±{arrival.correlation_noise:.2g}.",
            logarithmic(float(lags[0]), float(lags[-1]), "later", "span"),
            Scale("linear", min(-0.2, float(correlation.min())), 1.0, "correlation", "count"),
            wide=True,
            height=150,
        )
        chart.line(lags, correlation, 0)
        chart.data = {"type": "curve", "curves": [[rounded(lags), rounded(correlation, 3)]]}
        rows = [[units.span(lag), f"{c:.3f}"] for lag, c in zip(lags, correlation, strict=True)]
        chart.table = (["later", "correlation"], thin_rows(rows))
        found.append(chart)
    return found


def _over_time(arrival: Arrival, name: str, values: Floats, unit: str, what: str) -> Chart:
    """Return a chart of ``values``, one for each interval of ``arrival.step_s`` seconds.

    ``unit`` is ``count`` for jobs or ``size`` for bytes; ``what`` begins the title.
    """
    step = arrival.step_s
    chart = Chart(
        f"over-time-{name}",
        f"{what} in {units.span(step)}",
        f"By time of submission; a bar covers {units.span(step)}.",
        time(step * values.size, "time of the trace"),
        linear(values, "jobs" if unit == "count" else "bytes", unit),
        wide=True,
        height=150,
    )
    edges = np.arange(values.size + 1) * step
    chart.band(edges, np.zeros(values.size), values, 0)
    chart.data = {"type": "bins", "step": step, "values": [rounded(values)]}
    pairs = zip(edges[1:], values, strict=True)
    rows = [[units.span(float(end)), chart.y.write(float(value))] for end, value in pairs]
    chart.table = (["until", chart.y.label], thin_rows(rows))
    return chart
