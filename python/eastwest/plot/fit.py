"""Fits a figure to a column of a paper: series, titles, legends, labels and ticks.

Series differ in colour and also in marker, dashes or hatching, so that grey prints show them. The
title of a figure is hidden, because a paper has a caption; titles of several panels stay.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import Collection, LineCollection
from matplotlib.colors import to_hex, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, StepPatch
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter, FixedLocator
from matplotlib.transforms import BboxBase

from eastwest.plot import latex
from eastwest.plot.style import PAPER, SERIES, Look

#: Marker, dashes and hatching of each series colour.
_MARKERS = ("o", "s", "^", "D", "v", "P")
_DASHES: tuple[Any, ...] = (
    "-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)),
)  # fmt: skip
_HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "----")
#: Factor from widths of lines on a screen to those in a paper, and size of markers in points.
_THINNER, _MARK, _LEAST_MARK = 0.65, 3.0, 2.5
#: Number of markers on a curve of many points.
_MARKS = 8
#: Opacity up to which an area is a band around a line, and has no hatching.
_BAND = 0.5
#: Greatest share of the width of a figure for the labels of the rows of a panel.
_LABELS = 0.4
#: Share of the width of a figure from which a panel has no neighbour.
_HALF = 0.6
#: Space in points between neighbouring tick labels, and at the edges of a figure.
_GAP, _EDGE = 2.0, 2.0
_POINTS = 72.0
#: Size of texts in a panel, in points.
_SMALL = 6.5
#: Most rounds of layout, in which texts are broken and axes extended.
_ROUNDS = 5
_NUMBERS = {to_hex(colour): number for number, colour in enumerate(SERIES)}


def fit(figure: Figure, look: Look) -> None:
    """Fit a figure for a paper to its width; a figure for a screen is unchanged."""
    if not look.is_paper:
        return
    for axes in figure.axes:
        _distinguish(axes)
    titled = _titles(figure)
    below = list(figure.legends)
    own = [axes for axes in figure.axes if axes.get_legend() is not None]
    if len(own) == 1 and _share(own[0]) < _HALF:
        # The only legend of panels side by side is for all of them.
        below += [legend for axes in own if (legend := axes.get_legend()) is not None]
        own = []
    grown = sum([_legend_of(axes) for axes in own])
    grown += sum([_legend_below(figure, legend) for legend in below])
    for axes in titled:
        _wrap_title(axes)
    figure.set_figheight(figure.get_figheight() + grown / _POINTS)
    for axes in figure.axes:
        _cut_names(axes)
    for _ in range(_ROUNDS):
        figure.draw_without_rendering()
        changed = [_fit_labels(axes) | _fit_texts(axes) for axes in figure.axes]
        if not any(changed):
            break
    figure.draw_without_rendering()
    for axis in _axis_of(figure):
        _thin(axis)
    if look.latex:
        latex.set_by_latex(figure)


def _axis_of(figure: Figure) -> Iterator[Axis]:
    for axes in figure.axes:
        if axes.axison:
            yield from (axes.xaxis, axes.yaxis)


def _points(figure: Any, pixels: float) -> float:
    return float(pixels / figure.dpi * _POINTS)


# Series


def _number(colour: Any) -> int | None:
    """Return the number of a series colour; None for other colours."""
    found = to_rgba_array(colour)
    return _NUMBERS.get(to_hex(found[0])) if len(found) == 1 else None


def _paper(colour: Any) -> Any:
    """Return colours in which the colours of series are replaced by those for a paper."""
    found = to_rgba_array(colour)
    for row in found:
        number = _NUMBERS.get(to_hex(row))
        if number is not None:
            row[:3] = to_rgba_array(PAPER[number])[0, :3]
    return found[0] if len(found) == 1 else found


def _distinguish(axes: Axes) -> None:
    """Give the series of a panel the colours for a paper, and differences that grey prints show."""
    lines = [line for line in axes.lines if _number(line.get_color()) is not None]
    several = len({_number(line.get_color()) for line in lines}) > 1
    for line in axes.lines:
        _line(line, several)
    steps = [p for p in axes.patches if isinstance(p, StepPatch) and not p.get_fill()]
    edges = len({_number(step.get_edgecolor()) for step in steps}) > 1
    for step in steps:
        number = _number(step.get_edgecolor())
        step.set_edgecolor(_paper(step.get_edgecolor()))
        step.set_linewidth(step.get_linewidth() * _THINNER)
        if edges and number is not None:
            step.set_linestyle(_DASHES[number])
    for text in axes.texts:
        text.set_fontsize(min(text.get_fontsize(), _SMALL))
        if text.get_transform() == axes.transData:
            # Texts at points make the range of an axis longer, and not the panel smaller.
            text.set_in_layout(False)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_color("black")
    areas: list[Patch | Collection] = [p for p in axes.patches if p.get_fill()]
    areas += [c for c in axes.collections if not isinstance(c, LineCollection)]
    filled = {_number(area.get_facecolor()) for area in areas if len(area.get_facecolor())}
    for area in areas:
        _area(area, len(filled - {None}) > 1)
    for each in axes.collections:
        if isinstance(each, LineCollection):
            each.set_color(_paper(each.get_color()))
            each.set_linewidth((np.asarray(each.get_linewidth()) * _THINNER).tolist())


def _line(line: Line2D, several: bool) -> None:
    number = _number(line.get_color())
    line.set_linewidth(line.get_linewidth() * _THINNER)
    face, edge = line.get_markerfacecolor(), line.get_markeredgecolor()
    drawn = line.get_marker() not in ("None", None, "", " ")
    for colour, setter in ((line.get_color(), line.set_color), (face, line.set_markerfacecolor),
                           (edge, line.set_markeredgecolor)):  # fmt: skip
        if isinstance(colour, str) and colour not in ("none", "auto"):
            cast("Callable[[Any], None]", setter)(_paper(colour))
    if drawn:
        line.set_markersize(max(_LEAST_MARK, line.get_markersize() * _THINNER))
        line.set_markeredgewidth(line.get_markeredgewidth() * _THINNER)
    if number is None or not several:
        return
    if line.get_marker() in ("o", "."):
        line.set_marker(_MARKERS[number])
    elif not drawn and np.size(line.get_xdata()) > 2:
        step = max(1, np.size(line.get_xdata()) // _MARKS)
        line.set_marker(_MARKERS[number])
        line.set_markersize(_MARK)
        # Markers of curves that are close to each other are at different points.
        line.set_markevery((step * number // len(_MARKERS), step))


def _area(area: Patch | Collection, several: bool) -> None:
    number = _number(area.get_facecolor()) if len(area.get_facecolor()) else None
    if number is None:
        return
    area.set_facecolor(_paper(area.get_facecolor()))
    if several and (area.get_alpha() or 1.0) > _BAND:
        area.set_hatch(_HATCHES[number])
        area.set_edgecolor("white")
        area.set_linewidth(0)


# Titles and legends


def _titles(figure: Figure) -> list[Axes]:
    """Hide the title of the figure; return the panels with titles, if there are several."""
    if figure.get_suptitle():
        figure.suptitle(figure.get_suptitle(), visible=False, in_layout=False)
    titled = [axes for axes in figure.axes if axes.get_title(loc="left")]
    if len(titled) > 1:
        return titled
    for axes in titled:
        axes.set_title(axes.get_title(loc="left"), visible=False)
    return []


def _share(axes: Axes) -> float:
    """Return the width of the place of a panel as a share of the width of its figure."""
    place = axes.get_subplotspec()
    return 1.0 if place is None else float(place.get_position(axes.figure).width)  # type: ignore[arg-type]


def _wrap_title(axes: Axes) -> None:
    """Break the title of a panel into lines, and place it above a legend that is above the axes."""
    title = axes.get_title(loc="left")
    legend = axes.get_legend()
    pad = 3.0
    if legend is not None:
        pad += _points(axes.figure, legend.get_window_extent().height)
    made = axes.set_title(title, pad=pad)
    _wrap(made, 0.85 * _share(axes) * axes.figure.bbox.width)


def _legend_of(axes: Axes) -> float:
    """Put the legend of a panel above it; return its height in points."""
    old = axes.get_legend()
    assert old is not None
    handles, labels = axes.get_legend_handles_labels()
    title = old.get_title().get_text() or None
    old.remove()

    def made(columns: int) -> Legend:
        return axes.legend(
            handles, labels, ncols=columns, title=title, loc="lower right",
            bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2, borderpad=0.2,
        )  # fmt: skip

    return _narrow(made, labels, _share(axes) * axes.figure.bbox.width)


def _legend_below(figure: Figure, old: Legend) -> float:
    """Put the legend of a figure below its panels; return its height in points."""
    found = {
        label: handle
        for axes in reversed(figure.axes)
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    labels = [text.get_text() for text in old.get_texts() if text.get_text() in found]
    legends = [old]

    def made(columns: int) -> Legend:
        legends.pop().remove()
        drawn = figure.legend(
            [found[label] for label in labels], labels, ncols=columns,
            loc="outside lower center", borderpad=0.2,
        )  # fmt: skip
        legends.append(drawn)
        return drawn

    return _narrow(made, labels, figure.bbox.width)


def _narrow(made: Callable[[int], Legend], labels: list[str], width: float) -> float:
    """Make a legend with the most columns that fit in ``width`` pixels; return its height.

    ``made`` makes a legend with a number of columns. Labels that are wider than ``width`` are cut.
    """
    for columns in range(min(6, max(1, len(labels))), 0, -1):
        legend = made(columns)
        room = width - 2 * _EDGE / _POINTS * legend.figure.dpi
        if legend.get_window_extent().width <= room:
            break
    over = legend.get_window_extent().width - room
    if over > 0:
        widest = max(text.get_window_extent().width for text in legend.get_texts())
        for text in legend.get_texts():
            _cut(text, widest - over)
    return _points(legend.figure, legend.get_window_extent().height)


# Labels, texts and ticks


def _cut(text: Text, width: float) -> bool:
    """Replace the middle of a text by ``…`` if the text is wider than ``width`` pixels."""
    whole = text.get_text()
    have = _width(text)
    if have <= width or len(whole) < 4:
        return False
    left = max(2, int(len(whole) * width / have) - 1)
    text.set_text(f"{whole[: left - left // 2]}…{whole[len(whole) - left // 2 :]}")
    return True


def _width(text: Text) -> float:
    """Return the length of a text in pixels along its lines."""
    box = text.get_window_extent()
    return float(box.height if text.get_rotation() == 90 else box.width)


def _wrap(text: Text, width: float) -> bool:
    """Break a text into lines of at most ``width`` pixels; return whether this changed it."""
    whole = " ".join(text.get_text().split())
    have = _width(text)
    if have <= width or not whole:
        return False
    lines = text.get_text().count("\n") + 1
    letters = max(8, int(max(map(len, text.get_text().split("\n"))) * width / have))
    before = text.get_text()
    text.set_text(textwrap.fill(whole, letters))
    return text.get_text() != before and text.get_text().count("\n") + 1 >= lines


def _cut_names(axes: Axes) -> None:
    """Cut the labels of the rows of a panel to a part of the width of the figure."""
    places, labels = axes.get_yticks(), axes.get_yticklabels()
    room = _LABELS * axes.figure.bbox.width
    if axes.axison and sum(_cut(label, room) for label in labels):
        axes.set_yticks(places, [label.get_text() for label in labels])


def _fit_labels(axes: Axes) -> bool:
    """Break the labels of both axes of a panel into lines; return whether any changed."""
    box = axes.get_window_extent()
    across = _wrap(axes.xaxis.label, _inside(axes.figure, box))
    return _wrap(axes.yaxis.label, box.height) or across


def _inside(figure: Any, box: BboxBase) -> float:
    """Return the width in pixels of the widest text that is centred on ``box`` in the figure."""
    edge = _EDGE / _POINTS * figure.dpi
    middle = (box.x0 + box.x1) / 2
    return float(2 * min(middle - edge, figure.bbox.width - edge - middle))


def _fit_texts(axes: Axes) -> bool:
    """Fit texts in a panel: break those that are too wide, and extend the axes to the others.

    Returns whether anything changed.
    """
    box = axes.get_window_extent()
    free = [text for text in axes.texts if text.get_transform() == axes.transData]
    rows: dict[float, list[Text]] = {}
    for text in free:
        rows.setdefault(round(text.get_window_extent().y0), []).append(text)
    changed = [_wrap(text, box.width) for text in axes.texts]
    for row in rows.values():
        spans = sorted(_ends(text.get_window_extent(), "x") for text in row)
        gap = 2 * _GAP / _POINTS * axes.figure.dpi
        if any(later[0] < earlier[1] + gap for earlier, later in pairwise(spans)):
            middles = sorted((low + high) / 2 for low, high in spans)
            least = min(later - earlier for earlier, later in pairwise(middles))
            changed += [_wrap(text, least - gap) for text in row]
    for which in ("x", "y"):
        changed += [_extend(axes, which, text) for text in free if text.get_text()]
    return any(changed)


def _extend(axes: Axes, which: str, text: Text) -> bool:
    """Move the end of a linear axis so that a text is inside the panel; return whether it moved."""
    low, high = getattr(axes, f"get_{which}lim")()
    inside = _ends(axes.get_window_extent(), which)
    begin, end = _ends(text.get_window_extent(), which)
    room = inside[1] - end + begin - inside[0]
    if end <= inside[1] + 1 or low > high or room <= 0.3 * (inside[1] - inside[0]):
        return False
    if getattr(axes, f"get_{which}scale")() != "linear":
        return False
    at = low + (begin - inside[0]) / (inside[1] - inside[0]) * (high - low)
    getattr(axes, f"set_{which}lim")(low, low + (at - low) * (inside[1] - inside[0]) / room)
    return True


def _thin(axis: Any) -> None:
    """Remove tick labels of an axis until none is closer than 2 points to another one."""
    labels, places = axis.get_majorticklabels(), axis.get_majorticklocs()
    if len(labels) != len(places) or any(label.get_rotation() % 90 for label in labels):
        return
    low, high = sorted(axis.get_view_interval())
    slack = 1e-9 * (high - low)
    shown = [
        (float(place), label.get_text(), _ends(label.get_window_extent(), axis.axis_name))
        for place, label in zip(places, labels, strict=True)
        if label.get_text() and low - slack <= place <= high + slack
    ]
    gap = _GAP / _POINTS * axis.figure.dpi if axis.axis_name == "x" else 0.0

    def collide(step: int) -> bool:
        ends = sorted(each[2] for each in shown[::step])
        return any(later[0] < earlier[1] + gap for earlier, later in pairwise(ends))

    step = next((step for step in range(1, len(shown) + 1) if not collide(step)), 1)
    if step > 1:
        axis.set_major_locator(FixedLocator([place for place, _, _ in shown[::step]]))
        axis.set_major_formatter(FixedFormatter([label for _, label, _ in shown[::step]]))


def _ends(box: BboxBase, which: str) -> tuple[float, float]:
    """Return the ends of a box along an axis, ``x`` or ``y``."""
    return (box.x0, box.x1) if which == "x" else (box.y0, box.y1)
