"""Styles of pictures: on a screen, and in one or both columns of a paper.

The series colours on a screen are those of Okabe and Ito's palette (2008), with its lighter colours
darkened so that they are visible on white. The colours in a paper have larger differences: at least
30 (CIE 1976 ΔE) between any two, also for readers without one of the three kinds of cones
(simulated as by Machado et al. 2009). On a screen the least difference is 10, between orange and
amber for readers without M cones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.font_manager import fontManager
from matplotlib.image import AxesImage
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from eastwest import units
from eastwest.errors import InputError, did_you_mean
from eastwest.plot import latex as tex
from eastwest.plot.numbers import record
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
#: Series colours in a paper, in the order of ``SERIES``.
PAPER = ("#3236c9", "#a74c0c", "#008762", "#7e327a", "#e6a207", "#20c7fc")
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


#: Font of both styles for papers. It resembles Times, and matplotlib includes it.
_PAPER_FONT = "STIXGeneral"
#: Settings of both styles for papers: text of 7 and 8 points, and fonts in PDF files as TrueType
#: (42), because publishers reject Type 3 fonts.
_PAPER_SETTINGS: Any = {
    **_SETTINGS,
    "font.family": [_PAPER_FONT, "DejaVu Sans"],
    "font.size": 8,
    "text.color": "black",
    "axes.labelcolor": "black",
    "axes.labelpad": 2.0,
    "axes.titlesize": 8,
    "axes.titleweight": "normal",
    "axes.linewidth": 0.5,
    "grid.linewidth": 0.4,
    "hatch.linewidth": 0.5,
    "xtick.color": "black",
    "ytick.color": "black",
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.major.pad": 2.0,
    "ytick.major.pad": 2.0,
    "legend.fontsize": 7,
    "legend.title_fontsize": 7,
    "legend.columnspacing": 1.2,
    "legend.handletextpad": 0.5,
    "legend.labelspacing": 0.25,
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "figure.dpi": 200,
    "savefig.dpi": 300,
}
_LATEX_SETTINGS: Any = {
    "text.usetex": True,
    "font.family": ["serif"],
    "font.serif": ["Times"],
    "text.latex.preamble": tex.PREAMBLE,
}

#: Names of the styles.
STYLES = ("screen", "one-column", "two-columns")
#: Widths in inches of one column and of both columns, by publisher. IEEE: *Size Requirements for
#: Graphics* of the IEEE Author Center. ACM: acmart, format sigconf (241.1 and 506.3 TeX points).
#: USENIX: usenix2019_v3.sty (a text of 7 inches, with 0.33 inches between the columns).
WIDTHS = {"ieee": (3.5, 7.16), "acm": (3.33, 7.0), "usenix": (3.33, 7.0)}
_LEAST_WIDTH, _MOST_WIDTH = 1.5, 20.0


@dataclass(frozen=True)
class Look:
    """A style with its parameters: name, width of figures in inches, and whether LaTeX sets text.

    Figures for a screen have the width that their function chooses.
    """

    name: str = "screen"
    width: float = 0.0
    latex: bool = False

    @property
    def is_paper(self) -> bool:
        """Whether figures are for a paper."""
        return self.name != "screen"

    @property
    def is_narrow(self) -> bool:
        """Whether panels stand one below the other."""
        return self.name == "one-column"

    @property
    def settings(self) -> Any:
        """Settings of matplotlib with which functions draw.

        Text is never LaTeX in this step, because names from scenarios are not escaped yet.
        """
        return dict(_PAPER_SETTINGS if self.is_paper else _SETTINGS)

    @property
    def final(self) -> Any:
        """Settings of matplotlib for a finished figure, and for figures and additions of users."""
        if not self.is_paper:
            return self.settings
        of_users: dict[str, Any] = {"figure.figsize": (self.width, 0.6 * self.width)}
        of_users |= {"axes.prop_cycle": cycler(color=PAPER)}
        return {**self.settings, **of_users, **(_LATEX_SETTINGS if self.latex else {})}


_SCREEN = Look()
_LOOK: ContextVar[Look] = ContextVar("look", default=_SCREEN)


def look() -> Look:
    """Return the style in force: that of the innermost ``with style(…)`` block."""
    return _LOOK.get()


@contextmanager
def style(
    name: str = "screen", *, width: str | float = "ieee", latex: bool = False
) -> Iterator[None]:
    """Within a ``with`` block, draw figures in a style for a screen or for a paper.

    ``name`` is ``screen`` (the style outside of all blocks), ``one-column`` or ``two-columns``.
    ``width`` is the publisher of the paper (``ieee``, ``acm``, ``usenix``), or the width of figures
    in inches; a figure for a screen has its own width. With ``latex``, LaTeX sets all text, in the
    font Times; this needs an installed LaTeX. A figure keeps its style after the block. Raises
    ``InputError`` for a wrong name or width, or if LaTeX is missing or does not work.
    """
    wanted = _wanted(name, width, latex)
    if wanted.is_paper:
        _provide_paper_font()
    token = _LOOK.set(wanted)
    try:
        with drawing(wanted.final):
            if latex:
                tex.check()
            yield
    finally:
        _LOOK.reset(token)


def _provide_paper_font() -> None:
    """Give matplotlib the font for papers if its list of fonts lacks this font.

    matplotlib makes the list once and keeps it in a file of the user. It leaves out font files that
    it could not read at that time, and then draws with a wider font, whose text does not fit.
    """
    if any(entry.name == _PAPER_FONT for entry in fontManager.ttflist):
        return
    for file in sorted(Path(mpl.get_data_path(), "fonts", "ttf").glob(f"{_PAPER_FONT}*.ttf")):
        fontManager.addfont(file)


def _wanted(name: str, width: str | float, latex: bool) -> Look:
    """Return the look with these parameters; raise ``InputError`` if one is wrong."""
    if name not in STYLES:
        allowed = f"{', '.join(STYLES[:-1])} or {STYLES[-1]}"
        raise InputError(f"style {name!r:.60}: must be {allowed}{did_you_mean(str(name), STYLES)}")
    if isinstance(width, str):
        if width not in WIDTHS:
            raise InputError(
                f"width {width!r:.60}: must be {', '.join(WIDTHS)}, or a number of inches"
                f"{did_you_mean(width, WIDTHS)}"
            )
        inches = WIDTHS[width][name == "two-columns"]
    else:
        inches = float(width)
        if not (math.isfinite(inches) and _LEAST_WIDTH <= inches <= _MOST_WIDTH):
            raise InputError(
                f"width {width!r:.60}: must be {', '.join(WIDTHS)}, or from {_LEAST_WIDTH:g} to "
                f"{_MOST_WIDTH:g} inches"
            )
    if name == "screen":
        if latex:
            raise InputError(
                "text by LaTeX is for the styles one-column and two-columns; the style screen has "
                "no LaTeX"
            )
        return Look()
    return Look(name, inches, latex)


@contextmanager
def drawing(settings: Any) -> Iterator[None]:
    """Within a ``with`` block, use these settings of matplotlib in place of the user's."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(settings)
        yield


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


def share_curve(
    axes: Axes,
    values: Floats,
    number: int,
    label: str,
    columns: tuple[str, str],
    factor: float = 1.0,
) -> Floats:
    """Draw the cumulative distribution of values; return the drawn values in ascending order.

    ``number`` is the number of the series, which determines the colour. ``columns`` are the names
    of the values and of their cumulative share in the numbers of the figure. The values are drawn
    multiplied by ``factor``; values that are not finite are left out.
    """
    ordered, share = cumulative(values)
    record(axes, label, dict(zip(columns, (ordered, share), strict=True)))
    ordered = ordered * factor
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
