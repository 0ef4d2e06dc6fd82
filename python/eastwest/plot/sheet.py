"""Figures of Eastwest: they keep their style and the numbers that they draw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eastwest.plot.fit import fit
from eastwest.plot.numbers import Numbers
from eastwest.plot.style import WIDE, Look, drawing, look, nothing

#: Font types of PDF and PostScript files: TrueType fonts in place of Type 3, in every style.
_FONTS: Any = {"pdf.fonttype": 42, "ps.fonttype": 42}
#: Height of a figure in a paper as a share of its height on a screen: in general, for each of
#: several panels that stand one below the other, and for a figure of different pictures.
_HEIGHT, _STACKED, _MOSAIC = 0.65, 0.52, 0.8


class Sheet(Figure):
    """A matplotlib figure with a style, and with the numbers of the series that it shows."""

    def __init__(self, size: tuple[float, float], share: float = _HEIGHT) -> None:
        """Make an empty figure in the style in force.

        ``size`` is the width and height on a screen in inches; ``share`` is the height in a paper
        as a share of the height on a screen.
        """
        self.look: Look = look()
        self.numbers = Numbers()
        if self.look.is_paper:
            size = (self.look.width, size[1] * share)
        super().__init__(figsize=size, layout="constrained")
        if self.look.is_paper:
            self.get_layout_engine().set(w_pad=0.04, h_pad=0.04)  # type: ignore[union-attr, call-arg]

    def draw(self, renderer: Any) -> None:
        """Draw the figure in its own style, also after the ``with`` block of the style."""
        if not self.look.is_paper:
            super().draw(renderer)
            return
        with mpl.rc_context(self.look.final):
            super().draw(renderer)

    def savefig(self, fname: Any, **how: Any) -> None:
        """Write the figure in its own style, with embedded fonts, to a file."""
        with mpl.rc_context(self.look.final if self.look.is_paper else _FONTS):
            super().savefig(fname, **how)


@contextmanager
def sheet(
    size: tuple[float, float] = WIDE, rows: int = 1, columns: int = 1, **how: Any
) -> Iterator[tuple[Sheet, Any]]:
    """Yield a new figure in the style in force, and its axes (an array if there are several).

    ``size`` is the width and height on a screen in inches; ``how`` are further arguments of
    ``subplots``. In a single column of a paper, the panels of a row stand one below the other. At
    the end of the block, text, lines and legends of a figure for a paper are fitted to its width.
    """
    with drawing(look().settings):
        if look().is_narrow and columns > 1:
            figure = Sheet(size, _STACKED * columns)
            grid = figure.subplots(rows * columns, 1, squeeze=False, **how)
            axes = np.squeeze(grid.reshape(rows, columns))
        else:
            figure = Sheet(size)
            axes = figure.subplots(rows, columns, **how)
        yield figure, axes
        fit(figure, figure.look)


@contextmanager
def mosaic(
    size: tuple[float, float], layout: Sequence[Sequence[str]]
) -> Iterator[tuple[Sheet, dict[str, Axes]]]:
    """Yield a new figure in the style in force, and its panels by name.

    ``layout`` has the names of the panels in each row of a screen; a name can cover several places.
    In a single column of a paper, all panels stand one below the other.
    """
    with drawing(look().settings):
        if look().is_narrow:
            names = list(dict.fromkeys(name for row in layout for name in row if name != "."))
            figure = Sheet(size, _MOSAIC * len(names) / len(layout))
            panels = figure.subplot_mosaic([[name] for name in names or ["."]])
        else:
            figure = Sheet(size, _MOSAIC)
            panels = figure.subplot_mosaic([list(row) for row in layout])
        yield figure, panels
        fit(figure, figure.look)


def empty(why: str, size: tuple[float, float] = WIDE) -> Figure:
    """Return a figure that shows only a text: the reason why there is no picture."""
    with sheet(size) as (figure, axes):
        axes.set_title(nothing(axes, why))
    return figure
