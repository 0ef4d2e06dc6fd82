"""Charts as data for the page's template: scales with their ticks, and paths in plot units.

A plot is an SVG that stretches with the page: x is from 0 to `WIDTH` at any width of the screen, y
is in CSS pixels. Labels have a fixed size and are outside the SVG; their positions are in per cent.
A page therefore fits any screen even without scripts, and zooming changes only the view box of the
SVG.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eastwest import units
from eastwest.views.metrics import times
from eastwest.views.series import Bins, Floats

#: Width of every plot in plot units; they are fine enough for a magnification of 2000.
WIDTH = 1_000_000
#: Number of different colours and dashes of series; series ``n`` looks like series ``n - SHADES``.
SHADES = 6

#: Approximate widths of a plot in CSS pixels: in half the page, in the whole page, on a phone.
_NARROW, _WIDE, _PHONE = 440, 1030, 240
#: Approximate width of a character of a label in CSS pixels, and the gap between two labels.
_CHARACTER, _BETWEEN = 6.6, 8.0
#: Minimum distance of the labels of rows in CSS pixels.
_ROW_LABEL = 13
#: Half the width of an arrow in plot units, and its height in CSS pixels.
_ARROW = (9000, 6)

#: Functions that format the numbers of an axis, by name; the page's script has the same functions.
WRITERS: dict[str, Callable[[float | None], str]] = {
    "count": units.count,
    "percent": units.percent,
    "rate": units.rate,
    "size": units.size,
    "span": units.span,
    "energy": units.joules,
    "power": units.watts,
    "times": times,
    "nines": lambda value: "–" if value is None else f"{100 * value:.7g} %",
}

#: Name of each function in ``WRITERS``, by the function.
UNITS = {write: name for name, write in WRITERS.items()}

_LONG_STEPS = (
    *(1.0, 2.0, 5.0, 10.0, 15.0, 30.0),
    *(60.0, 120.0, 300.0, 600.0, 900.0, 1800.0),
    *(3600.0, 7200.0, 10_800.0, 21_600.0, 43_200.0),
)
_DAY = 86_400.0


def clock(seconds: float, end: float) -> str:
    """Return a time as text for an axis from 0 to ``end`` s: ``20 ms``, or ``2 h 5 min``.

    All labels of an axis of less than three minutes have the same unit.
    """
    if end < 180:
        unit, name = next((u for u in ((1.0, "s"), (1e-3, "ms")) if end >= 2 * u[0]), (1e-6, "µs"))
        return f"{float(f'{seconds / unit:.9g}'):g} {name}" if seconds else "0"
    whole = round(seconds * 1000) / 1000
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "min"), (round(left, 3), "s"))
    return " ".join(f"{value:g} {name}" for value, name in parts if value) or "0"


def nice_step(span: float, most: int) -> float:
    """Return the least round step that divides ``span`` into at most ``most`` intervals.

    Round steps are 1, 2 and 5 times a power of 10.
    """
    raw = span / most
    if not (raw > 0 and math.isfinite(raw)):
        return 1.0
    power = 10.0 ** math.floor(math.log10(raw))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= raw * 0.999999)


def time_step(span: float, most: int) -> float:
    """Return the least round step that divides ``span`` s of time into at most ``most`` intervals.

    Above 1 s, round steps are those of clocks, such as 15 s, 30 min and 6 h.
    """
    raw = span / most
    if raw <= 1:
        return nice_step(span, most)
    for step in _LONG_STEPS:
        if step >= raw * 0.999999:
            return step
    return _DAY * max(1.0, nice_step(span / _DAY, most))


@dataclass(frozen=True)
class Tick:
    """A tick of an axis: its position in per cent of the length, and its label."""

    at: float
    text: str


@dataclass(frozen=True)
class Label:
    """A text below or in a plot: its position in per cent of the width, and its CSS classes.

    A label of the class ``minor`` is hidden on a phone. A label below the plot is centred at its
    position, but a label of the class ``end`` ends there.
    """

    at: float
    text: str
    css: str = ""
    #: For a text in the plot: distance from the upper edge of the plot in CSS pixels.
    down: float = 0.0


def characters(wide: bool) -> int:
    """Return the number of characters that fit into one line of labels below a plot."""
    return int((_WIDE if wide else _NARROW) / _CHARACTER)


def labels(ticks: Sequence[Tick], wide: bool) -> list[Label]:
    """Return labels for ticks, without labels that would overlap in a ``wide`` or narrow plot.

    Labels without room on a phone have the class ``minor``.
    """
    wanted = [(tick.at, tick.text) for tick in ticks]
    kept = _fitting(wanted, _WIDE if wide else _NARROW)
    small = _fitting(wanted, _PHONE)
    found = []
    for place in kept:
        tick = ticks[place]
        words = ["minor"] * (place not in small) + ["end"] * _ends_there(tick.at, tick.text)
        found.append(Label(tick.at, tick.text, " ".join(words)))
    return found


def _fitting(wanted: Sequence[tuple[float, str]], width: float) -> list[int]:
    """Return the indices of texts that do not overlap in a plot of ``width`` CSS pixels.

    ``wanted`` has (position in per cent, text). A text is centred at its position; at the right
    edge, it ends there. Of two texts that overlap, the left text is used.
    """
    kept: list[int] = []
    until = -math.inf
    for place in sorted(range(len(wanted)), key=lambda i: wanted[i][0]):
        at, text = wanted[place]
        long = len(text) * _CHARACTER
        left = at / 100 * width - (long if _ends_there(at, text) else long / 2)
        if left >= until:
            kept.append(place)
            until = left + long + _BETWEEN
    return kept


def _ends_there(at: float, text: str) -> bool:
    """Whether a text centred at ``at`` (per cent) would reach beyond the right edge of the plot."""
    return at > 97 and len(text) > 4


def beside(spots: Sequence[tuple[Sequence[float], str]], height: float) -> list[Label]:
    """Return texts beside dots in a wide plot, without texts that would cover dots or other texts.

    ``spots`` has for each dot its place and its text; the place is the share of the width (0 to 1)
    and the distance from the upper edge in CSS pixels. ``height`` is that of the plot. Texts that
    have no room on a phone have the class ``minor``.
    """
    found: list[Label] = []
    boxes: dict[float, list[tuple[float, float, float, float]]] = {_WIDE: [], _PHONE: []}
    for width, own in boxes.items():
        own += [(x * width - 6, y - 6, x * width + 6, y + 6) for (x, y), _ in spots]
    for (x, y), text in spots:
        long = len(text) * _CHARACTER
        for down, ends in ((y - 8, False), (y - 8, True), (y + 17, False), (y + 17, True)):
            places = {}
            for width in boxes:
                left = x * width - 8 - long if ends else x * width + 8
                places[width] = (left, down - 11, left + long, down + 3)
            fits = {
                width: box[0] >= 0
                and box[2] <= width
                and 0 <= box[1] <= height - 14
                and not any(_cross(box, other) for other in boxes[width])
                for width, box in places.items()
            }
            if fits[_WIDE]:
                for width, box in places.items():
                    boxes[width] += [box] * fits[width]
                css = ["end"] * ends + ["minor"] * (not fits[_PHONE])
                found.append(Label(round(100 * x, 2), text, " ".join(css), round(down, 1)))
                break
    return found


def _cross(
    one: tuple[float, float, float, float], other: tuple[float, float, float, float]
) -> bool:
    """Whether two boxes (left, top, right, bottom) overlap."""
    return not (one[2] < other[0] or other[2] < one[0] or one[3] < other[1] or other[3] < one[1])


@dataclass(frozen=True)
class Scale:
    """An axis: its range, its scale, and the format of its values.

    ``kind`` is ``linear``, ``log``, ``time`` (linear, in seconds of simulated time) or ``nines``
    (shares, with 99 % and 99.9 % as far apart as 90 % and 99 %).
    """

    kind: str
    low: float
    high: float
    label: str
    unit: str = "count"

    def place(self, values: Any) -> Floats:
        """Return the positions of values on the axis, from 0 to 1."""
        given = np.asarray(values, dtype=np.float64)
        low, high = (float(v) for v in self._spread(np.array([self.low, self.high])))
        return np.asarray((self._spread(given) - low) / ((high - low) or 1.0))

    def _spread(self, values: Floats) -> Floats:
        if self.kind == "log":
            return np.log10(np.maximum(values, 1e-300))
        if self.kind == "nines":
            return -np.log10(np.maximum(1 - values, 1e-12))
        return values

    def write(self, value: float) -> str:
        """Return a value as text in the format of the axis."""
        return clock(value, self.high) if self.kind == "time" else WRITERS[self.unit](value)

    def ticks(self, most: int = 6) -> list[Tick]:
        """Return about ``most`` ticks or fewer at round values of the axis."""
        values = self._values(most)
        return [
            Tick(round(100 * float(at), 3), self.write(value))
            for value, at in zip(values, self.place(values), strict=True)
        ]

    def _values(self, most: int) -> list[float]:
        if self.kind == "nines":
            nines = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
            return [v for v in nines if self.low <= v <= self.high + 1e-12]
        if self.kind == "log":
            return self._log_values(most)
        choose = time_step if self.kind == "time" else nice_step
        step = choose(self.high - self.low, most)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [n * step for n in range(first, last + 1)]

    def _log_values(self, most: int) -> list[float]:
        """Return at most ``most`` round values of a logarithmic axis.

        The values are powers of 10. If there is room, 2 and 5 times (or else 3 times) each power
        are added. On an axis of times that ends above 1 min, values above 30 s are round times,
        such as 10 min.
        """
        low, high = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        candidates: list[Sequence[float]] = [(1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)]
        for steps in candidates:
            values = [s * 10.0**p for p in range(low, high + 1) for s in steps]
            if self.unit == "span" and self.high > 60:
                values = [v for v in values if v < 30]
                values += [60.0, 600.0, 3600.0, 36_000.0, *(_DAY * 10**n for n in range(6))]
            inside = [v for v in values if self.low * 0.999 <= v <= self.high * 1.001]
            if len(inside) <= most:
                return inside
        return inside[:: -(-len(inside) // most)]

    def data(self) -> dict[str, Any]:
        """Return kind, range and unit of the axis, for the page's script."""
        return {"kind": self.kind, "low": self.low, "high": self.high, "unit": self.unit}


def linear(values: Any, label: str, unit: str = "count", least: float = 0.0) -> Scale:
    """Return a linear axis from 0 to a little above the largest value, or above ``least``."""
    top = max(least, float(np.max(values, initial=0.0))) or 1.0
    return Scale("linear", 0.0, top * 1.04, label, unit)


def logarithmic(low: float, high: float, label: str, unit: str = "span") -> Scale:
    """Return a logarithmic axis from a little below ``low`` to a little above ``high``.

    The axis spans a factor of at least four.
    """
    low = max(low, 1e-12)
    high = max(high, low)
    if high < 4 * low:
        middle = math.sqrt(low * high)
        low, high = middle / 2.2, middle * 2.2
    return Scale("log", low * 0.92, high * 1.08, label, unit)


def time(end: float, label: str = "simulated time") -> Scale:
    """Return an axis of simulated time from zero to ``end`` seconds."""
    return Scale("time", 0.0, max(end, 1e-9), label, "span")


@dataclass(frozen=True)
class Path:
    """A shape of a series: CSS class, SVG path, and number of the series."""

    css: str
    d: str
    series: int


@dataclass
class Chart:
    """A chart of an HTML page: axes, shapes, legend, and data for the JavaScript of the page.

    Shapes are SVG paths: x from 0 to ``WIDTH``, y in CSS pixels from the top.
    """

    name: str
    #: Title: a sentence on what the chart shows.
    title: str
    #: Note below the title: the drawn quantity, and how to read the chart.
    note: str
    x: Scale
    y: Scale
    height: int = 220
    wide: bool = False
    paths: list[Path] = field(default_factory=list)
    #: Names of the series, in the order of their numbers; empty for a single series.
    legend: list[str] = field(default_factory=list)
    #: Symbol in the legend: ``line``, ``area``, ``dot``, ``bar``, ``piece`` or ``state``.
    key: str = "line"
    #: Symbol of each series in the legend; empty if all have the symbol ``key``.
    keys: list[str] = field(default_factory=list)
    #: Values of the chart with which the page's script shows numbers at the pointer, and zooms.
    data: dict[str, Any] = field(default_factory=dict)
    #: Values of the chart as text: headings and rows.
    table: tuple[list[str], list[list[str]]] | None = None
    #: Labels of rows from top to bottom, for charts without a vertical axis; otherwise empty.
    rows: list[str] = field(default_factory=list)
    #: CSS class of the figure, for pictures with their own colours.
    css: str = ""
    #: Positions of columns on a linear horizontal axis; empty for columns at equal distances.
    places: list[float] = field(default_factory=list)
    #: Texts inside the plot, with their positions.
    texts: list[Label] = field(default_factory=list)

    def script(self) -> dict[str, Any]:
        """Return the axes and ``data`` of this chart for the page's script."""
        return {"x": self.x.data(), "y": self.y.data(), **self.data}

    @property
    def ticks(self) -> list[Tick]:
        """Ticks of the horizontal axis."""
        if "categories" not in self.data:
            return self.x.ticks(7 if self.wide else 5)
        names = self.data["categories"]
        places = self.places or [i + 0.5 for i in range(len(names))]
        return [
            Tick(round(100 * float(at), 3), name)
            for at, name in zip(self.x.place(places), names, strict=True)
        ]

    @property
    def labels(self) -> list[Label]:
        """Labels of the horizontal axis that do not overlap."""
        return labels([tick for tick in self.ticks if tick.text], self.wide)

    @property
    def row_labels(self) -> list[str]:
        """Label of each row; empty texts for rows whose label has no room."""
        every = max(1, math.ceil(_ROW_LABEL * len(self.rows) / max(self.height, 1) - 1e-9))
        return [name if i % every == 0 else "" for i, name in enumerate(self.rows)]

    def add(self, css: str, d: str, series: int = 0) -> None:
        """Add a shape with CSS classes ``css`` and SVG path ``d``, unless ``d`` is empty."""
        if d:
            self.paths.append(Path(css, d, series))

    def points(self, x: Any, y: Any) -> tuple[Floats, Floats]:
        """Return x and y of points in plot units; arguments are values on the axes."""
        across = np.clip(self.x.place(x), -0.2, 1.2) * WIDTH
        down = (1 - np.clip(self.y.place(y), -0.2, 1.2)) * self.height
        return across, down

    def line(self, x: Any, y: Any, series: int, *, step: bool = False) -> None:
        """Draw a line through points; with ``step``, each value holds until the next point."""
        across, down = self.points(x, y)
        self.add(f"line s{series % SHADES}", polyline(across, down, step=step), series)

    def band(self, x: Any, low: Any, high: Any, series: int) -> None:
        """Fill the area between two step curves; ``x`` has the borders of the steps."""
        across, top = self.points(x, np.append(high, high[-1:]))
        _, bottom = self.points(x, np.append(low, low[-1:]))
        if not len(high):
            return
        up = polyline(across, top, step=True)
        back = polyline(across[::-1], bottom[::-1], step=True, before=True)
        self.add(f"area s{series % SHADES}", f"{up}L{back[1:]}Z", series)

    def dots(self, x: Any, y: Any, series: int, css: str = "dots") -> None:
        """Draw a dot at each point of a series."""
        across, down = self.points(x, y)
        d = "".join(f"M{a} {b}h0" for a, b in zip(whole(across), tenths(down), strict=True))
        self.add(f"{css} s{series % SHADES}", d, series)

    def steps(self, edges: Floats, values: Floats, series: int) -> None:
        """Draw a step curve with one value for each interval between ``edges``; NaN is a gap."""
        known = np.flatnonzero(np.isfinite(values))
        for piece in np.split(known, np.flatnonzero(np.diff(known) > 1) + 1):
            if piece.size:
                held = np.append(values[piece], values[piece[-1]])
                self.line(edges[piece[0] : piece[-1] + 2], held, series, step=True)

    def stack(self, edges: Floats, layers: Sequence[Floats]) -> None:
        """Draw step curves as areas stacked on each other, the first layer at the bottom.

        Each layer has one value for each interval between ``edges``.
        """
        below = np.zeros(edges.size - 1)
        for number, values in enumerate(layers):
            self.band(edges, below, below + values, number)
            below = below + values

    def over_time(
        self,
        bins: Bins,
        values: Sequence[Floats],
        heads: Sequence[str],
        write: Callable[[float], str] | None = None,
        *,
        digits: int = 4,
        every: bool = False,
    ) -> None:
        """Set ``data`` and ``table`` of the chart from values in bins: one array for each series.

        The table has a column with the heading in ``heads`` for each series. Without ``every``, it
        has only bins in which a value is above 0. ``write`` formats the values (default: as the
        vertical axis does); data for the script have ``digits`` significant digits.
        """
        self.data = {
            "type": "bins",
            "step": bins.step,
            "values": [rounded(v, digits) for v in values],
        }
        write = write or self.y.write
        plain = np.nan_to_num(np.array(values))
        some = np.arange(bins.count) if every else np.flatnonzero(plain.sum(axis=0) > 0)
        until = bins.edges[1:]
        rows = [[self.x.write(float(until[i])), *(write(float(v[i])) for v in plain)] for i in some]
        self.table = (["until", *heads], thin_rows(rows))

    def shares(self, curves: Sequence[tuple[Floats, Floats]]) -> None:
        """Draw cumulative shares as step curves from 0, and set ``data`` for the script.

        Each curve has two arrays: values in ascending order, and the share up to each value.

        Values of 0 are drawn at the lower end of a logarithmic axis.
        """
        for number, (x, y) in enumerate(curves):
            drawn = np.maximum(x, self.x.low) if self.x.kind == "log" else x
            self.line(np.insert(drawn, 0, drawn[0]), np.insert(y, 0, 0.0), number, step=True)
        self.data = {"type": "curve", "curves": [[rounded(x), rounded(y)] for x, y in curves]}

    def interval(
        self, at: float, low: float, middle: float, high: float, series: int, *, tip: bool = False
    ) -> None:
        """Draw a dot at (``at``, ``middle``), and a vertical bar from ``low`` to ``high``.

        A bar that reaches beyond the axis ends in an arrow. With ``tip``, the upper end is marked.
        """
        beyond = high > self.y.high, low < self.y.low
        ends = [max(low, self.y.low), min(high, self.y.high)]
        (x, *_), (bottom, top) = self.points([at] * 2, ends)
        end = f"M{x:.0f} {top:.1f}h0" if tip else ""
        half, tall = _ARROW
        arrows = "".join(
            f"M{x - half:.0f} {edge + turn * tall:.1f}L{x:.0f} {edge:.1f}"
            f"L{x + half:.0f} {edge + turn * tall:.1f}"
            for there, edge, turn in zip(beyond, (top + 1, bottom - 1), (1, -1), strict=True)
            if there
        )
        self.add(f"arrow s{series}", arrows, series)
        self.add(f"whisker s{series}", f"M{x:.0f} {bottom:.1f}V{top:.1f}{end}", series)
        self.dots([at], [middle], series, "dots big")

    def intervals(
        self,
        columns: Sequence[str],
        categories: Sequence[str],
        found: Iterable[tuple[tuple[int, float, int], tuple[float, float, float], str]],
    ) -> None:
        """Draw values with intervals in columns, and set the texts that the page shows for them.

        An entry of ``found`` has (column, shift from the middle of the column, series), (lower end,
        value, upper end), and a text. ``columns`` are the full names of the columns, and
        ``categories`` the labels below them.
        """
        cells: list[list[list[Any]]] = [[] for _ in columns]
        for (column, shift, series), values, text in found:
            middle = self.places[column] if self.places else column + 0.5
            self.interval(middle + shift, *values, series)
            name = self.legend[series] if self.legend else "mean"
            cells[column].append([name, text, series])
        self.cells(categories, columns, cells)

    def cells(
        self, categories: Sequence[str], heads: Sequence[str], cells: list[list[list[Any]]]
    ) -> None:
        """Set the texts that the page's script shows for each column.

        ``cells`` has for each column lists of [name, value as text, series]; ``categories`` are the
        labels below the columns, ``heads`` their full names.
        """
        self.data = {
            "type": "cells",
            "categories": list(categories),
            "heads": list(heads),
            "cells": cells,
            **({"places": rounded(self.places)} if self.places else {}),
        }

    def bars(self, row: int, height: int, gap: int, parts: Sequence[float], css: str) -> None:
        """Draw the parts of a row side by side, each in the colour of its number.

        ``parts`` has the borders of the parts in plot units; ``height`` of the row and ``gap``
        between rows are in CSS pixels.
        """
        top = row * (height + gap) + gap / 2
        for part, (left, right) in enumerate(itertools.pairwise(parts)):
            if min(right, WIDTH) > left:
                d = f"M{left:.0f} {top:g}H{min(right, WIDTH):.0f}v{height}H{left:.0f}z"
                self.add(f"{css} s{part % SHADES}", d, part)


def fill_lines(charts: Sequence[Chart], keep: str = "") -> None:
    """Make the last narrow chart wide, to fill its line, if the number of narrow charts is odd.

    If this is the chart with the name ``keep``, nothing changes.
    """
    narrow = [chart for chart in charts if not chart.wide]
    if len(narrow) % 2 and narrow[-1].name != keep:
        narrow[-1].wide = True


def whole(values: Floats) -> list[int]:
    """Return x positions in plot units as whole numbers, for SVG paths."""
    return [int(v) for v in np.rint(values)]


def tenths(values: Floats) -> list[str]:
    """Return y positions in CSS pixels as texts with one decimal, for SVG paths."""
    return [f"{v:.1f}".removesuffix(".0") for v in values]


def polyline(across: Floats, down: Floats, *, step: bool, before: bool = False) -> str:
    """Return the SVG path through points in plot units, as straight lines or as steps.

    With ``step``, the line stays at the height of a point until the next point. With ``step`` and
    ``before``, for a path from right to left, the line between two points has the height of the
    later point.
    """
    if not len(across):
        return ""
    xs, ys = whole(across), tenths(down)
    parts = [f"M{xs[0]} {ys[0]}"]
    for place in range(1, len(xs)):
        if not step:
            parts.append(f"L{xs[place]} {ys[place]}")
            continue
        if before:
            if ys[place] != ys[place - 1]:
                parts.append(f"V{ys[place]}")
            parts.append(f"H{xs[place]}")
        else:
            parts.append(f"H{xs[place]}")
            if ys[place] != ys[place - 1]:
                parts.append(f"V{ys[place]}")
    return "".join(parts)


def rounded(values: Any, digits: int = 4) -> list[float | None]:
    """Return values with ``digits`` significant digits, for the page's script; None for NaN."""
    return [
        (float(f"{v:.{digits}g}") if math.isfinite(v) else None)
        for v in np.asarray(values, dtype=np.float64).tolist()
    ]


def thin_curve(x: Floats, y: Floats, most: int = 600) -> tuple[Floats, Floats]:
    """Return x and y of at most ``most`` points of an increasing curve, dense at its end."""
    if x.size <= most:
        return x, y
    body = np.linspace(0, x.size - 1, most - 120).astype(int)
    tail = x.size - 1 - np.unique(np.geomspace(1, x.size, 120).astype(int) - 1)
    keep = np.unique(np.concatenate([body, tail]))
    return x[keep], y[keep]


def thin_rows(rows: list[list[str]], most: int = 24) -> list[list[str]]:
    """Return at most ``most`` rows at equal distances, for the table beside a chart."""
    if len(rows) <= most:
        return rows
    return [rows[i] for i in np.unique(np.linspace(0, len(rows) - 1, most).astype(int))]
