"""Pictures of workload traces: bytes per job, arrivals of jobs, shapes of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from eastwest.plot.numbers import record
from eastwest.plot.sheet import mosaic, sheet
from eastwest.plot.style import MUTED, color, legend_above, nothing, share_axis, time_axis
from eastwest.units import clean, percent, plural, size, span
from eastwest.workload.access import Access
from eastwest.workload.arrival import Arrival
from eastwest.workload.describe import Description
from eastwest.workload.jobs import BYTES, WORDS
from eastwest.workload.shapes import Shapes

#: Position of jobs without bytes at the left end of a logarithmic axis of bytes, below 1 byte.
_ZERO_AT = 0.03
_DASHES = ("-", (0, (5, 1.6)), (0, (1.4, 1.4)), (0, (6, 1.6, 1.4, 1.6)))


def access_cdfs(traces: Sequence[tuple[str, Access]]) -> Figure:
    """Draw cumulative distributions of input, shuffle and output bytes per job, in three panels.

    Each panel has a curve for each trace, as in figure 7 of the incast study.
    """
    with sheet((10.9, 3.3), columns=len(BYTES), sharey=True) as (figure, panels):
        for axes, name in zip(panels, BYTES, strict=True):
            axes.set_label(WORDS[name])
            _cdf(axes, [(label, access, name) for label, access in traces])
            axes.set_title(f"{WORDS[name]} per job".capitalize())
            if not axes.get_subplotspec().is_first_col():
                axes.tick_params(labelleft=False)
                axes.set_ylabel("")
        panels[-1].legend(loc="lower right")
    return figure


def overview(described: Description) -> Figure:
    """Return a figure of one trace with bytes per job, arrivals of jobs and shapes of jobs."""
    access = described.access
    with mosaic((10.9, 6.6), [["bytes", "shapes"], ["arrivals", "arrivals"]]) as (figure, panels):
        name = clean(Path(described.name).name.removesuffix(".tsv"), 90)
        figure.suptitle(name, x=0.01, ha="left", fontsize=11)
        axes = panels["bytes"]
        _cdf(axes, [(WORDS[name], access, name) for name in access.sizes])
        axes.legend(loc="lower right")
        axes.set_title(_cdf_title(access))
        _rate(panels["arrivals"], described.arrival)
        _shapes(panels["shapes"], described.shapes)
    return figure


def _cdf(axes: Axes, curves: Sequence[tuple[str, Access, str]]) -> None:
    """Draw cumulative distributions of bytes per job; jobs without bytes are at the left end.

    A curve is (label, access of the trace, kind of bytes such as ``input_bytes``).
    """
    most = 10.0
    drawn = 0
    for number, (label, access, name) in enumerate(curves):
        sizes = access.sizes.get(name)
        if sizes is None:
            continue
        drawn += 1
        values, shares = sizes.curve
        most = max(most, sizes.most)
        x = np.concatenate([[_ZERO_AT], np.maximum(values, _ZERO_AT)])
        y = np.concatenate([[sizes.zero_share], shares])
        reach = {"bytes": np.append(0.0, values), "share_of_jobs": y}
        record(axes, label, reach)
        axes.step(x, y, where="post", color=color(number), ls=_DASHES[number % 4], label=label)
    if not drawn:
        nothing(axes, "the trace does not have these sizes")
        return
    axes.set_xscale("log")
    axes.set_xlim(_ZERO_AT, most * 2)
    decades = [10.0**power for power in range(0, 19, 3) if 10.0**power <= most * 2]
    axes.xaxis.set_major_locator(FixedLocator([_ZERO_AT, *decades]))
    axes.xaxis.set_major_formatter(lambda value, _: "0" if value < 1 else size(value))
    axes.xaxis.set_minor_locator(NullLocator())
    share_axis(axes, "share of jobs")


def _cdf_title(access: Access) -> str:
    word, ten, _ = next(row for row in access.under if row[0] == "1 GB")
    return f"{percent(round(ten, 3))} of the jobs move less than {word}"


def _rate(axes: Axes, arrival: Arrival) -> None:
    """Draw the number of jobs submitted in each interval of time."""
    unit = time_axis(axes, arrival.step_s * arrival.counts.size, "time")
    edges = np.arange(arrival.counts.size + 1) * arrival.step_s * unit
    axes.stairs(arrival.counts, edges, color=color(0), fill=True, alpha=0.85)
    times = {"time_s": edges[:-1] / unit, "until_s": edges[1:] / unit}
    record(axes, "", {**times, "jobs": arrival.counts})
    axes.set_xlim(0, edges[-1])
    if unit == 1 / 3600:
        axes.xaxis.set_major_locator(MaxNLocator(9, steps=[1, 2, 3, 6, 10]))
    axes.set_ylim(0)
    axes.set_ylabel(f"jobs in {span(arrival.step_s)}")
    axes.set_title(rate_title(arrival))


def rate_title(arrival: Arrival) -> str:
    """Return a title: number of jobs, and jobs in the busiest and in the median interval."""
    known = [burst for burst in arrival.bursts if burst.ratio is not None]
    jobs = f"{plural(arrival.jobs, 'job')} in {span(arrival.span_s)}"
    if not known:
        return jobs
    burst = known[-1]
    return (
        f"{jobs}; the busiest {span(burst.interval_s)} has {burst.ratio:.2g} × "
        "the jobs of the median one"
    )


def _shapes(axes: Axes, shapes: Shapes) -> None:
    """Draw two bars for each shape of jobs: its share of all jobs, and of all bytes.

    A shape is a class of similar jobs.
    """
    if not shapes.shapes:
        axes.set_title(nothing(axes, "no shapes: no property is known for all jobs"))
        return
    place = np.arange(len(shapes.shapes))
    both = {
        "jobs": [100 * shape.share for shape in shapes.shapes],
        "bytes": [100 * shape.bytes_share for shape in shapes.shapes],
    }
    shares = {"share_of_jobs": [s.share for s in shapes.shapes]}
    shares["share_of_bytes"] = [s.bytes_share for s in shapes.shapes]
    record(axes, "", {"shape": [s.word for s in shapes.shapes], **shares})
    for number, (label, values) in enumerate(both.items()):
        bars = axes.barh(place + 0.2 * (2 * number - 1), values, 0.36, color=color(number))
        bars.set_label(f"share of {label}")
        labels = [f"{v:.2g} %" if v >= 0.01 else "< 0.01 %" for v in values]
        axes.bar_label(bars, labels, padding=3, fontsize=7.5, color=MUTED)
    axes.set_yticks(place, [shape.word for shape in shapes.shapes])
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set_xlim(0, 112)
    axes.set_xticks(range(0, 101, 25), [f"{tick} %" for tick in range(0, 101, 25)])
    axes.grid(False, axis="y")
    legend_above(axes)
    axes.set_title("Shapes of jobs")
