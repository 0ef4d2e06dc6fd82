"""Tables of monitored metrics: a column for each, a row for each time; read from files.

A value that is missing, infinite or not a number is missing (NaN). Names are untrusted text: they
are compared and returned as they are, and cleaned where they are shown.
"""

from __future__ import annotations

import difflib
import fnmatch
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eastwest.errors import InputError
from eastwest.units import clean

if TYPE_CHECKING:
    import polars as pl

Numbers = NDArray[np.float64]

#: Most values that a table may hold: 8 bytes each.
MOST_VALUES = 400_000_000
#: Columns that are taken for times where none is named, in small letters.
_TIME_NAMES = ("timestamp", "time", "time_s", "ts", "date", "datetime")


@dataclass(frozen=True)
class Metrics:
    """Time series on one grid of times: ``values`` has a row for each time, a column for each."""

    names: tuple[str, ...]
    values: Numbers
    #: Seconds; nothing where the rows are only in order.
    times_s: Numbers | None = None

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] != len(self.names):
            raise InputError("metrics: there must be a column of values for each name")
        if self.times_s is not None and len(self.times_s) != len(self.values):
            raise InputError(
                f"metrics: series of unequal length: {len(self.times_s)} times and "
                f"{len(self.values)} values"
            )
        if len(set(self.names)) != len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise InputError(f"two metrics have the same name: {clean(twice, 80)}")

    def place(self, name: str) -> int:
        """Number of the column of a metric. Raises ``InputError`` with the nearest name."""
        if name in self.names:
            return self.names.index(name)
        plain = {each.lower(): each for each in reversed(self.names)}
        near = [plain[n] for n in difflib.get_close_matches(name.lower(), plain, n=1, cutoff=0.4)]
        some = ", ".join(clean(each, 60) for each in self.names[:8])
        more = f" and {len(self.names) - 8} others" if len(self.names) > 8 else ""
        hint = f"did you mean {clean(near[0], 80)}?" if near else f"there are {some}{more}"
        raise InputError(f"there is no metric {clean(name, 80)!r}; {hint}")

    def without(self, patterns: Sequence[str], keep: str) -> Metrics:
        """Leave out metrics that fit a glob, but never ``keep``.

        Raises ``InputError`` where a pattern fits no metric.
        """
        gone: set[str] = set()
        for pattern in patterns:
            # [ and ] stand in many names of metrics, so a whole name is always itself
            fitting = {n for n in self.names if n == pattern or fnmatch.fnmatchcase(n, pattern)}
            if not fitting:
                raise InputError(f"no metric fits {clean(pattern, 80)!r}, which is to be left out")
            gone |= fitting
        kept = [i for i, name in enumerate(self.names) if name == keep or name not in gone]
        return Metrics(tuple(self.names[i] for i in kept), self.values[:, kept], self.times_s)


def joined(series: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> Metrics:
    """Put series of unequal length together by their times (seconds); what one lacks is missing."""
    if not series:
        raise InputError("there are no series")
    for name, (times, values) in series.items():
        if len(times) != len(values):
            raise InputError(
                f"{clean(name, 80)}: {len(times)} times and {len(values)} values: unequal length"
            )
    grid = np.unique(np.concatenate([np.asarray(t, dtype=float) for t, _ in series.values()]))
    _room(len(grid), len(series), "the series")
    table = np.full((len(grid), len(series)), np.nan)
    for column, (times, values) in enumerate(series.values()):
        table[np.searchsorted(grid, np.asarray(times, dtype=float)), column] = values
    table[~np.isfinite(table)] = np.nan
    return Metrics(tuple(series), table, grid)


def read(path: Path, time: str | None = None) -> Metrics:
    """Read a CSV file (also gzipped) or a Parquet file with a metric in each column.

    ``time`` names the column of times; without it, one that is called so is taken. Columns of text
    are left out. Raises ``InputError`` where the file is not such a table.
    """
    import polars as pl  # noqa: PLC0415  slow to load

    if not path.is_file():
        raise FileNotFoundError(2, "no such file", str(path))
    try:
        if path.name.endswith(".parquet"):
            rows = pl.scan_parquet(path).select(pl.len()).collect().item()
            _room(rows, len(pl.read_parquet_schema(path)), str(path))
            frame = pl.read_parquet(path)
        else:
            frame = pl.read_csv(path, infer_schema_length=10_000, null_values=["", "NaN", "null"])
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        what = str(error).splitlines()[0] if str(error) else "unreadable"
        raise InputError(f"{path}: not a table of metrics: {clean(what, 300)}") from None
    _room(frame.height, frame.width, str(path))
    return _of_frame(frame, time, path)


def _room(rows: int, columns: int, where: str) -> None:
    if rows * columns > MOST_VALUES:
        raise InputError(
            f"{where}: {rows:,} rows of {columns:,} metrics are more than {MOST_VALUES:,} values; "
            "take fewer metrics or a longer step"
        )


def _of_frame(frame: pl.DataFrame, time: str | None, path: Path) -> Metrics:
    import polars as pl  # noqa: PLC0415

    column = _time_column(frame.columns, time, path)
    times_s = None if column is None else _seconds(frame[column], path)
    numeric = [
        name
        for name, kind in frame.schema.items()
        if name != column and (kind.is_numeric() or kind in {pl.Boolean, pl.Null})
    ]
    if not numeric or frame.height == 0:
        raise InputError(f"{path}: has no metrics: a column of numbers for each, and rows of them")
    values = np.column_stack(
        [
            frame[name].cast(pl.Float64, strict=False).fill_null(math.nan).to_numpy()
            for name in numeric
        ]
    ).astype(np.float64)
    values[~np.isfinite(values)] = np.nan
    if times_s is not None:
        order = np.argsort(times_s, kind="stable")
        times_s, values = times_s[order], values[order]
    return Metrics(tuple(numeric), values, times_s)


def _time_column(columns: Sequence[str], time: str | None, path: Path) -> str | None:
    if time is None:
        return next((name for name in columns if name.lower() in _TIME_NAMES), None)
    if time not in columns:
        near = difflib.get_close_matches(time, columns, n=1)
        hint = f"; did you mean {clean(near[0], 80)}?" if near else ""
        raise InputError(f"{path}: there is no column {clean(time, 80)!r}{hint}")
    return time


def _seconds(column: pl.Series, path: Path) -> Numbers:
    """Times as seconds: numbers as they are, dates and texts of dates since 1970."""
    import polars as pl  # noqa: PLC0415

    found: Any = column
    if column.dtype == pl.String:
        try:
            found = column.str.to_datetime(time_zone="UTC")
        except pl.exceptions.PolarsError:
            raise InputError(
                f"{path}: {clean(column.name, 80)}: times must be numbers or such as "
                "2026-01-31T12:00:00"
            ) from None
    if found.dtype in (pl.Date, pl.Datetime):
        found = found.cast(pl.Datetime("us")).dt.timestamp("us") / 1e6
    if not found.dtype.is_numeric() or found.null_count():
        raise InputError(f"{path}: {clean(column.name, 80)}: every row needs a time")
    seconds: Numbers = found.cast(pl.Float64).to_numpy()
    return seconds
