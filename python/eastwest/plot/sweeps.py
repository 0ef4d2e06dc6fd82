"""Pictures of sweeps: a metric along a setting, and the changes against the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes as Drawn
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, NullLocator

from eastwest.plot.numbers import record
from eastwest.plot.sheet import empty, sheet
from eastwest.plot.style import INK, MUTED, color, percent_ticks
from eastwest.sweep.tables import SweepResult
from eastwest.units import clean
from eastwest.views.curves import Axis, Curve, Curves, curves, measured
from eastwest.views.labels import plural
from eastwest.views.metrics import made
from eastwest.views.sweep import Points

_SIZE = (7.4, 4.0)
#: Maximum number of curves in a picture, and of tick labels along an axis.
_MOST_CURVES, _MOST_LABELS = 12, 10
#: Ratio of largest to smallest value above which an axis is logarithmic, for the x and the y axis.
_LOG_X, _LOG_Y = 20, 30
_LINES = ("-", "--")


def sweep(
    result: SweepResult | str | Path,
    measure: str | None = None,
    x: str | Sequence[str] | None = None,
    by: str | Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
) -> Figure:
    """Draw a metric of a sweep along a setting: means over the seeds, with their intervals.

    ``result`` is the result of a sweep, or the path of its folder. ``measure`` is a metric such as
    ``flows.fct_us.p99`` or ``service.exchange_us.p99`` (default: the first metric of the sweep's
    table). ``x`` is the setting on the horizontal axis (default: the setting with the most values).
    ``by`` are the settings that have a curve for each value (default: all other settings).
    ``where`` selects points, such as ``{"tcp.min_rto": "1 ms"}``. A setting is named by its path,
    the last part of the path, the key of a table (``fabric.queue.kind``), or ``case`` for the names
    of cases. Values with units are numbers on the axis, so ``20 packets`` and ``200 packets`` are
    to scale. ``x`` may be a list, for example of the threshold settings of different queues: each
    point is at the value of the first setting in the list that it has; a point without any is not
    drawn. Raises ``InputError`` for names that the sweep does not have.
    """
    found = curves(_read(result), measure, x, by, where)
    shown = found.curves[:_MOST_CURVES]
    with sheet(_SIZE) as (figure, axes):
        for number, curve in enumerate(shown):
            _draw(axes, found.axis, curve, number, len(shown))
            _record(axes, found, curve)
        _across(axes, found.axis)
        _up(axes, found)
        if len(shown) > 1:
            axes.legend(loc="best", title=found.by)
        more = len(found.curves) - len(shown)
        said = f" ({plural(more, 'more curve is', 'more curves are')} not drawn)" if more else ""
        if found.left_out:
            points = plural(found.left_out, "point")
            said += f"\n{points} without {found.axis.label}: not drawn"
        axes.set_title(f"{clean(found.metric.title, 60)} by {found.axis.label}{said}")
    return figure


def _read(result: SweepResult | str | Path) -> SweepResult:
    """Return ``result``, read from its folder if it is a path."""
    return result if isinstance(result, SweepResult) else SweepResult(result)


def comparisons(result: SweepResult | str | Path, measure: str | None = None) -> Figure:
    """Draw the relative change of a metric against the sweep's baseline, one row for each point.

    Changes are means over the seeds, paired by seed, with their confidence intervals. A filled
    point differs clearly from the baseline: its interval does not contain 0. ``result`` and
    ``measure`` are those of :func:`sweep`.
    """
    result = _read(result)
    name = measured(result, measure)
    points = Points(result)
    compared = points.compared
    changes = [(p, compared[name, p]) for p in points.numbers if (name, p) in compared]
    if not changes:
        return empty("No point can be compared with the baseline", _SIZE)
    height = max(2.0, 1.0 + 0.26 * len(changes))
    with sheet((_SIZE[0], height)) as (figure, axes):
        for place, (_, change) in enumerate(changes):
            low, high = change.reach
            axes.plot([low, high], [place, place], color=color(0), linewidth=1.2)
            fill = color(0) if change.is_clear else "white"
            axes.plot(change.mean, place, "o", color=color(0), markerfacecolor=fill, markersize=5)
        reach = [change.reach for _, change in changes]
        record(axes, "", {
            "point": [points.name(p) for p, _ in changes],
            "relative_change": [change.mean for _, change in changes],
            "low": [low for low, _ in reach],
            "high": [high for _, high in reach],
        })  # fmt: skip
        axes.axvline(0, color=INK, linewidth=0.8)
        percent_ticks(axes, "x")
        axes.set_yticks(range(len(changes)), [clean(points.name(p), 60) for p, _ in changes])
        axes.set_ylim(len(changes) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        baseline = clean(points.name(points.baseline), 60)
        axes.set_xlabel(f"change against {baseline}")
        axes.set_title(clean(made(name).title, 60))
    return figure


def _draw(axes: Drawn, axis: Axis, curve: Curve, number: int, of: int) -> None:
    """Draw the means of a curve with their intervals; on an axis of names they are not connected.

    ``number`` is the index of the curve among the ``of`` curves of the picture.
    """
    if axis.numbers is None:
        aside = (number - (of - 1) / 2) * min(0.12, 0.7 / of)
        at = [place + aside for place in curve.places]
        line = "none"
    else:
        at = [axis.numbers[place] for place in curve.places]
        line = _LINES[number // 6 % len(_LINES)]
    drawn = sorted(zip(at, curve.estimates, strict=True), key=lambda each: each[0])
    across = [place for place, _ in drawn]
    means = [each.mean for _, each in drawn]
    ends = [each.reach for _, each in drawn]
    below = [max(0.0, mean - low) for mean, (low, _) in zip(means, ends, strict=True)]
    above = [max(0.0, high - mean) for mean, (_, high) in zip(means, ends, strict=True)]
    axes.errorbar(
        across, means, yerr=[below, above], marker="o", markersize=4, linestyle=line,
        color=color(number), elinewidth=0.9, capsize=2, label=curve.name,
    )  # fmt: skip


def _record(axes: Drawn, found: Curves, curve: Curve) -> None:
    """Record a curve in the units of the tables of sweeps."""
    axis, metric = found.axis, found.metric
    across = axis.names if axis.numbers is None else axis.numbers
    raw = [each.times(1 / metric.factor) for each in curve.estimates]
    name = ".".join(metric.path)
    drawn: dict[str, Any] = {name: [r.mean for r in raw]}
    drawn |= {f"{name}.low": [r.low for r in raw], f"{name}.high": [r.high for r in raw]}
    record(axes, curve.name, {axis.column: [across[place] for place in curve.places], **drawn})


def _across(axes: Drawn, axis: Axis) -> None:
    """Set label, scale and ticks of the horizontal axis: numbers, or names at equal distances."""
    axes.set_xlabel(axis.label)
    if axis.numbers is None:
        short = [clean(name, 24) for name in axis.names]
        names = short if len({*short}) == len(short) else [clean(name, 60) for name in axis.names]
        axes.set_xticks(range(len(names)), names)
        # On a screen, this is a row of 70 letters.
        if sum(map(len, names)) > 9.46 * axes.figure.get_figwidth():  # type: ignore[union-attr]
            axes.tick_params(axis="x", labelrotation=30)
            for label in axes.get_xticklabels():
                label.set_horizontalalignment("right")
        return
    values = sorted({*axis.numbers})
    if values[0] > 0 and values[-1] > _LOG_X * values[0]:
        axes.set_xscale("log")
    step = -(-len(values) // _MOST_LABELS)
    ticks = values[::step]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FixedFormatter([axis.write(tick) for tick in ticks]))


def _up(axes: Drawn, found: Curves) -> None:
    """Set label, scale and ticks of the vertical axis: linear from 0, or logarithmic.

    The scale is logarithmic if all intervals are above 0 and the means span more than a factor of
    30.
    """
    write = found.metric.write
    means = [each.mean for curve in found.curves for each in curve.estimates]
    lows = [each.reach[0] for curve in found.curves for each in curve.estimates]
    if min(lows, default=0.0) > 0 and max(means) > _LOG_Y * min(means):
        axes.set_yscale("log")
        axes.yaxis.set_minor_locator(NullLocator())
    elif min(lows, default=0.0) >= 0 or min(means, default=0.0) >= 0:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))
    axes.set_ylabel(clean(found.metric.title, 60), color=MUTED)
