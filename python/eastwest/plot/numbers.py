"""The numbers that a figure draws: tables with one row for each point, written as CSV.

A function that draws calls `record` for each series, with columns whose names end in a unit, such
as ``time_s`` and ``rate_bps``. The columns have the units of the tables of results, whatever the
unit of the axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eastwest import spreadsheet
from eastwest.errors import InputError

#: First columns of the table of a figure.
HEAD = ("panel", "series")


class Numbers:
    """Tables of the series of a figure, in the order in which they were drawn."""

    def __init__(self) -> None:
        self._parts: list[tuple[Axes, str, pl.DataFrame]] = []

    def add(self, axes: Axes, series: str, table: pl.DataFrame) -> None:
        """Add the table of a series; ``axes`` is the panel that shows it."""
        self._parts.append((axes, series, table))

    def table(self) -> pl.DataFrame:
        """Return all series in one table: ``panel``, ``series``, and the columns of the series.

        ``panel`` is the label of the axes. A column that a series lacks is null in its rows.
        """
        parts = [
            table.select(
                pl.lit(str(axes.get_label())).alias(HEAD[0]),
                pl.lit(series).alias(HEAD[1]),
                pl.all(),
            )
            for axes, series, table in self._parts
        ]
        if not parts:
            return pl.DataFrame(schema=dict.fromkeys(HEAD, pl.String))
        return pl.concat(parts, how="diagonal_relaxed")


def record(axes: Axes, series: str, columns: Mapping[str, Any]) -> None:
    """Add the points of a series to the numbers of the figure of ``axes``.

    ``columns`` has a list or an array by the name of its column, or one value for all rows. A
    figure that does not keep numbers is unchanged.
    """
    kept = getattr(axes.figure, "numbers", None)
    if isinstance(kept, Numbers):
        table = pl.DataFrame(dict(columns))
        floats = [name for name, kind in table.schema.items() if kind.is_float()]
        kept.add(axes, series, table.with_columns(pl.col(floats).fill_nan(None)))


def numbers(figure: Figure) -> pl.DataFrame:
    """Return the numbers that a figure draws: one row for each point.

    The columns are ``panel`` and ``series``, and those of the series, whose names end in a unit.
    Raises ``InputError`` for a figure that no function of `eastwest.plot` has drawn.
    """
    kept = getattr(figure, "numbers", None)
    if not isinstance(kept, Numbers):
        raise InputError("the figure has no numbers: only figures of eastwest.plot have them")
    return kept.table()


def as_csv(figure: Figure) -> bytes:
    """Return the table of `numbers` as a CSV file: numbers in full precision, null as no text."""
    table = numbers(figure)
    return spreadsheet.table(table.columns, table.iter_rows()).encode()


def is_ours(text: str) -> bool:
    """Whether a text begins like a file of `as_csv`."""
    return text.startswith(",".join(HEAD))
