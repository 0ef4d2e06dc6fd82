"""Building blocks for pictures of studies: panels, and intervals over seeds.

The tables of studies have one row for each point and metric, with the columns ``n`` (number of
seeds), ``mean``, ``low`` and ``high`` (ends of the confidence interval).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eastwest.plot import picture
from eastwest.plot.style import style


def panels(
    rows: int, columns: int, size: tuple[float, float], title: str
) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure of equal panels with a title, and lists of axes, one for each row.

    ``size`` is the width and height of a panel in inches.
    """
    figure = Figure(figsize=(size[0] * columns, size[1] * rows + 0.5), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
    return figure, [list(row) for row in figure.subplots(rows, columns, squeeze=False)]


def seeds_of(table: pl.DataFrame) -> str:
    """Return the number of seeds in the column ``n`` of a table: ``5 seeds``, ``3 to 5 seeds``."""
    found: list[int] = table.filter(pl.col("n") > 0)["n"].to_list()
    if not found:
        return "no runs yet"
    least, most = min(found), max(found)
    if most == 1:
        return "one seed"
    return f"{least} seeds" if least == most else f"{least} to {most} seeds"


def error(part: pl.DataFrame) -> list[list[float]]:
    """Return two lists for error bars: distances from the means to the lower and upper ends.

    ``part`` has the columns ``mean``, ``low`` and ``high``; the distance to a missing end is 0.
    """
    below = [0.0 if low is None else mean - low for mean, low in part.select("mean", "low").rows()]
    above = [
        0.0 if high is None else high - mean for mean, high in part.select("mean", "high").rows()
    ]
    return [[max(0.0, each) for each in below], [max(0.0, each) for each in above]]


def keep(
    pictures: Mapping[str, Callable[[pl.DataFrame], Figure]], table: pl.DataFrame, folder: Path
) -> None:
    """Draw pictures of ``table``, and write them as SVG files ``NAME.svg`` in ``folder``.

    ``pictures`` has the function that draws each picture by name. If there is a README.md in a
    folder above ``folder``, only pictures that the nearest README.md shows are written.
    """
    pages = [above / "README.md" for above in folder.resolve().parents]
    page = next((path.read_text("utf-8") for path in pages if path.is_file()), None)
    for name, draw in pictures.items():
        if page is None or f"/{name}.svg" in page:
            with style():
                picture.save(draw(table), folder / f"{name}.svg")
