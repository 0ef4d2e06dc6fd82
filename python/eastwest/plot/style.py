"""Style of pictures: colours that colour-blind readers can distinguish, thin axes, plain text.

The series colours are those of Okabe and Ito's palette (2008), with its lighter colours darkened so
that they are visible on white.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from eastwest import units
from eastwest.units import span
from eastwest.views.series import Floats, cumulative

INK, MUTED, GRID = "#1f2430", "#646b78", "#d9dde3"
BLUE, ORANGE, GREEN, PURPLE, AMBER, SKY = (
    "#0b62a4",
    "#d1530a",
    "#0a8a66",
    "#a8518a",
    "#c68a00",
    "#4a9fd8",
)
SERIES = (BLUE, ORANGE, GREEN, PURPLE, AMBER, SKY)
#: Sizes (width, height) of pictures in inches, for the full and for half the width of a page.
WIDE, NARROW = (10.9, 3.2), (5.3, 3.3)

_SETTINGS: Any = {
    "font.family": ["DejaVu Sans"],
    "font.size": 8.5,
    "text.color": INK,
    # Names from scenarios are plain text, not formulas, even if they contain $ or \.
    "text.parse_math": False,
    "text.usetex": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "axes.titlecolor": INK,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.use_mathtext": False,
    "axes.unicode_minus": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
    "svg.fonttype": "none",
    "svg.hashsalt": "eastwest",
    "path.simplify": True,
    "path.simplify_threshold": 0.4,
    "savefig.dpi": 160,
    "figure.dpi": 100,
}


@contextmanager
def style() -> Iterator[None]:
    """Within a ``with`` block, use Eastwest's style in place of the user's matplotlib style."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        yield


@contextmanager
def sheet(
    size: tuple[float, float] = WIDE, rows: int = 1, columns: int = 1, **how: Any
) -> Iterator[tuple[Figure, Any]]:
    """Yield a new figure in the style of Eastwest, and its axes (an array if there are several).

    ``size`` is the width and height in inches; ``how`` are further arguments of ``subplots``.
    """
    with style():
        figure = Figure(figsize=size, layout="constrained")
        yield figure, figure.subplots(rows, columns, **how)


def empty(why: str, size: tuple[float, float] = WIDE) -> Figure:
    """Return a figure that shows only a text: the reason why there is no picture."""
    with sheet(size) as (figure, axes):
        axes.set_title(nothing(axes, why))
    return figure


def color(index: int) -> str:
    """Return the colour of the series with the number ``index``, from 0; colours repeat."""
    return SERIES[index % len(SERIES)]


def _ticks(text: Any) -> FuncFormatter:
    return FuncFormatter(lambda value, _: text(value))


def time_axis(axes: Axes, seconds: float, label: str = "simulated time") -> float:
    """Label the x axis with a time unit that suits the length ``seconds`` of the axis.

    Returns the number of units in a second, by which the caller multiplies times in s.
    """
    choices = ((3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
    unit, name = next((c for c in choices if seconds >= 3 * c[0]), choices[-1])
    axes.set_xlabel(f"{label} ({name})")
    return 1 / unit


def log_axis(axes: Axes, which: str) -> None:
    """Make the axis ``which`` (``x`` or ``y``) logarithmic, with ticks at powers of 10.

    An axis of less than three decades also has ticks at 2 and 5 times the powers.
    """
    getattr(axes, f"set_{which}scale")("log")
    axis = getattr(axes, f"{which}axis")
    low, high = getattr(axes, f"get_{which}lim")()
    steps = (1.0, 2.0, 5.0) if high < 1000 * low else (1.0,)
    axis.set_major_locator(LogLocator(subs=steps, numticks=12))
    # matplotlib writes powers as formulas, which this style would show as unformatted text.
    axis.set_major_formatter(_ticks(lambda value: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


def span_ticks(axes: Axes, which: str) -> None:
    """Label the ticks of an axis (``x`` or ``y``) of durations in s with units: ``10 ms``."""
    getattr(axes, f"{which}axis").set_major_formatter(_ticks(units.span))


#: Round durations of a minute or more, in s, for the ticks of axes.
_LONG_TICKS = (60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 18_000.0, 36_000.0, 86_400.0)
_MOST_TICKS = 7


def log_time_axis(axes: Axes, which: str) -> None:
    """Make an axis (``x`` or ``y``) of durations in s logarithmic, with ticks at round values."""
    getattr(axes, f"set_{which}scale")("log")
    low, high = getattr(axes, f"get_{which}lim")()
    short = [step * 10.0**power for power in range(-12, 2) for step in (1, 2, 5)]
    every = [tick for tick in short if tick < 45]
    decades = [10.0**power for power in range(-12, 2)]
    long = [*_LONG_TICKS, *(86_400.0 * 10**power for power in range(1, 9))]
    hours = [60.0, 600.0, 3600.0, 36_000.0, *long[len(_LONG_TICKS) :]]
    for candidates in (every + long, decades + hours):
        ticks = [tick for tick in candidates if low <= tick <= high]
        if len(ticks) <= _MOST_TICKS:
            break
    else:
        ticks = ticks[:: -(-len(ticks) // _MOST_TICKS)]
    axis = getattr(axes, f"{which}axis")
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(_ticks(lambda seconds: "1 min" if seconds == 60 else span(seconds)))
    axis.set_minor_locator(NullLocator())


def rate_ticks(axes: Axes) -> None:
    """Label the ticks of a y axis of rates in bit/s with units, such as ``1 Gbit/s``."""
    axes.yaxis.set_major_formatter(_ticks(units.rate))


def percent_ticks(axes: Axes, which: str) -> None:
    """Label the ticks of an axis (``x`` or ``y``) of shares (0 to 1) as percentages."""
    getattr(axes, f"{which}axis").set_major_formatter(_ticks(units.percent))


def share_axis(axes: Axes, what: str) -> None:
    """Make the y axis an axis of shares, from 0 % to a little above 100 %, labelled ``what``."""
    axes.set_ylim(0, 1.02)
    percent_ticks(axes, "y")
    axes.set_ylabel(what)


def share_curve(axes: Axes, values: Floats, number: int, label: str) -> Floats:
    """Draw the cumulative distribution of values; return the finite values in ascending order.

    ``number`` is the number of the series, which determines the colour.
    """
    ordered, share = cumulative(values)
    axes.step(ordered, share, where="post", color=color(number), label=label)
    return ordered


def heat(
    axes: Axes, values: Floats, end: float, shade: str, *, top: float = 1.0, pale: str = "#ffffff00"
) -> AxesImage:
    """Draw an array (rows, time bins) as colours, from ``pale`` for 0 to ``shade`` for ``top``.

    The x axis reaches from 0 to ``end``; the first row is at the top.
    """
    return axes.imshow(
        values,
        aspect="auto",
        interpolation="nearest",
        cmap=LinearSegmentedColormap.from_list("heat", [pale, shade]),
        vmin=0,
        vmax=top,
        extent=(0, end, len(values), 0),
    )


def boxes(axes: Axes, places: Sequence[Sequence[float]], shade: str, label: str) -> None:
    """Draw rectangles in one colour; ``places`` are (left, right, bottom, top) of each.

    ``label`` is the name of all rectangles in the legend.
    """
    shapes = [np.array([(a, low), (b, low), (b, top), (a, top)]) for a, b, low, top in places]
    if shapes:
        drawn = PolyCollection(shapes, facecolors=shade, edgecolors="none", label=label)
        axes.add_collection(drawn)


def legend_above(axes: Axes) -> None:
    """Put the legend above the right end of a wide picture, where it covers nothing."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1, ncols=6)


def nothing(axes: Axes, why: str) -> str:
    """Hide the axes, write ``why`` (the reason why there is no picture), and return ``why``."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, why, ha="center", va="center", color=MUTED, transform=axes.transAxes)
    return why
