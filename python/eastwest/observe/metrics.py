"""Tables of monitored metrics: a column for each metric, a row for each time; read from files.

A value that is infinite or not a number counts as missing (NaN). Names are untrusted text: they are
compared and returned unchanged, and cleaned before they are shown.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eastwest.errors import InputError, nearest
from eastwest.units import clean

if TYPE_CHECKING:
    import polars as pl

Numbers = NDArray[np.float64]

#: Maximum number of values that a table may hold, of 8 bytes each.
MOST_VALUES = 400_000_000
#: Number of rows of a CSV file from which the types of its columns are inferred.
_INFERRED = 10_000
#: Maximum number of left-out columns that a remark names.
_MOST_TOLD = 3
#: Names, in lower case, of columns that hold times; used if the user names no column of times.
_TIME_NAMES = ("timestamp", "time", "time_s", "ts", "date", "datetime")


@dataclass(frozen=True)
class Metrics:
    """Metrics at common times: ``values`` has the shape (times, metrics); NaN: missing."""

    names: tuple[str, ...]
    values: Numbers
    #: Times in seconds, ascending; None if only the order of the rows is known.
    times_s: Numbers | None = None
    #: Remarks on data that the reader left out or changed, each a sentence without its full stop.
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] != len(self.names):
            raise InputError(
                f"metrics: {len(self.names)} names need values of the shape (times, "
                f"{len(self.names)}), but the shape is {self.values.shape}"
            )
        if self.times_s is not None and len(self.times_s) != len(self.values):
            raise InputError(
                f"metrics: {len(self.times_s)} times and {len(self.values)} rows of values are of "
                "unequal length"
            )
        if len(set(self.names)) != len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise InputError(f"two metrics have the same name: {clean(twice, 80)}")

    def place(self, name: str) -> int:
        """Return the column number of the metric ``name``.

        Raises ``InputError``, which names the nearest metric, if there is no such metric.
        """
        return place_of(self.names, name)

    def without(self, patterns: Sequence[str], keep: str) -> Metrics:
        """Return the metrics that match no glob in ``patterns``, and the metric ``keep``.

        Raises ``InputError`` if a glob matches no metric.
        """
        kept = without(self.names, patterns, keep)
        names = tuple(self.names[i] for i in kept)
        return Metrics(names, self.values[:, kept], self.times_s, self.notes)


def place_of(names: Sequence[str], name: str) -> int:
    """Return the index of ``name`` in ``names``.

    Raises ``InputError``, which names the nearest name, if there is no such name.
    """
    if name in names:
        return names.index(name)
    plain = {each.lower(): each for each in reversed(names)}
    near = nearest(name.lower(), plain, 0.4)
    some = ", ".join(clean(each, 60) for each in names[:8])
    more = f" and {len(names) - 8} others" if len(names) > 8 else ""
    hint = f"did you mean {clean(plain[near], 80)}?" if near else f"the metrics are {some}{more}"
    raise InputError(f"there is no metric {clean(name, 80)!r}; {hint}")


def without(names: Sequence[str], patterns: Sequence[str], keep: str) -> list[int]:
    """Return the indices of the names that match no glob in ``patterns``, and of the name ``keep``.

    Raises ``InputError`` if a glob matches no name.
    """
    gone: set[str] = set()
    for pattern in patterns:
        # Names of metrics often contain [ and ], so a whole name always matches itself.
        fitting = {n for n in names if n == pattern or fnmatch.fnmatchcase(n, pattern)}
        if not fitting:
            raise InputError(
                f"the pattern {clean(pattern, 80)!r} of excluded metrics matches no metric"
            )
        gone |= fitting
    return [i for i, name in enumerate(names) if name == keep or name not in gone]


def joined(
    series: Mapping[str, tuple[Sequence[float] | Numbers, Sequence[float] | Numbers]],
) -> Metrics:
    """Return one table from series at different times; values at other times are missing (NaN).

    ``series`` has a pair (times in s, values) for each metric, by the metric's name.
    """
    if not series:
        raise InputError("metrics: there are no series to join")
    repeated = 0
    for name, (times, values) in series.items():
        if len(times) != len(values):
            raise InputError(
                f"{clean(name, 80)}: {len(times)} times and {len(values)} values are "
                "of unequal length"
            )
        repeated += len(times) - len(np.unique(np.asarray(times, dtype=float)))
    grid = np.unique(np.concatenate([np.asarray(t, dtype=float) for t, _ in series.values()]))
    room(len(grid), len(series), "the series")
    table = np.full((len(grid), len(series)), np.nan)
    for column, (times, values) in enumerate(series.values()):
        table[np.searchsorted(grid, np.asarray(times, dtype=float)), column] = values
    notes = _infinite(tuple(series), table)
    if repeated:
        notes += (
            f"{repeated:,} values have the same time as another value of their series: "
            "the last one is used",
        )
    return Metrics(tuple(series), table, grid, notes)


def _infinite(names: Sequence[str], values: Numbers) -> tuple[str, ...]:
    """Return remarks on infinite values of ``values``, after their replacement by NaN in place."""
    infinite = np.isinf(values)
    if not infinite.any():
        return ()
    columns = np.flatnonzero(infinite.any(axis=0))
    values[infinite] = np.nan
    return (
        f"{int(infinite.sum()):,} infinite values in {len(columns):,} metrics, such as "
        f"{clean(names[columns[0]], 60)}, count as missing",
    )


def read(path: Path, time: str | None = None) -> Metrics:
    """Return the metrics of a CSV file (also gzipped) or a Parquet file, one for each column.

    ``time`` is the name of the column of times; None: it is recognised by its name. Columns of text
    are left out. Raises ``InputError`` if the file is not a table of metrics.
    """
    frame = frame_of(path)
    room(frame.height, frame.width, str(path))
    return of_frame(frame, time, path)


def frame_of(
    path: Path, columns: Sequence[str] | None = None, rows: int | None = None
) -> pl.DataFrame:
    """Return the table in a CSV or Parquet file.

    ``columns`` are the names of the columns to read (None: all), ``rows`` is the number of first
    rows to read (None: all). Raises ``InputError`` if the file is not a table, or if a Parquet file
    has more values than memory may hold, and ``FileNotFoundError`` if the file does not exist.
    """
    import polars as pl  # noqa: PLC0415  slow to load

    if not path.is_file():
        raise FileNotFoundError(2, "no such file", str(path))
    wanted = None if columns is None else list(columns)
    try:
        if not path.name.endswith(".parquet"):
            _refuse_doubles(path)
        if path.name.endswith(".parquet"):
            scan = pl.scan_parquet(path, glob=False)
            if rows is None:
                width = len(pl.read_parquet_schema(path)) if wanted is None else len(wanted)
                room(scan.select(pl.len()).collect().item(), width, str(path))
            return pl.read_parquet(path, columns=wanted, n_rows=rows, glob=False)
        return pl.read_csv(
            path,
            columns=wanted,
            n_rows=rows,
            infer_schema_length=_INFERRED,
            null_values=["", "NaN", "null"],
            glob=False,
        )
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        what = str(error).splitlines()[0] if str(error) else "unreadable"
        raise InputError(f"{path}: is not a table of metrics: {clean(what, 300)}") from None


def _refuse_doubles(path: Path) -> None:
    """Raise ``InputError`` if two columns of a CSV file have the same name."""
    import polars as pl  # noqa: PLC0415

    head = pl.read_csv(path, has_header=False, n_rows=1, infer_schema=False, glob=False)
    names = [name for name in head.row(0) if name] if head.height else []
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{path}: has the column {clean(twice, 80)!r} twice")


def room(rows: int, columns: int, where: str) -> None:
    """Raise ``InputError`` if a table would have more than ``MOST_VALUES`` values.

    ``where`` is the name of the file or server in the message.
    """
    if rows * columns > MOST_VALUES:
        raise InputError(
            f"{where}: {rows:,} rows of {columns:,} metrics are more than {MOST_VALUES:,} values; "
            "take fewer metrics, a longer step, or a cluster (--dask)"
        )


def columns_of(frame: pl.DataFrame, time: str | None, path: Path) -> tuple[str | None, list[str]]:
    """Return (name of the column of times or None, names of the columns of metrics).

    Columns of metrics hold numbers or truth values, or are empty. ``time`` is the name that the
    user gave for the column of times, or None.
    """
    import polars as pl  # noqa: PLC0415

    column = _time_column(frame.columns, time, path)
    return column, [
        name
        for name, kind in frame.schema.items()
        if name != column and (kind.is_numeric() or kind in {pl.Boolean, pl.Null})
    ]


def of_frame(frame: pl.DataFrame, time: str | None, path: Path) -> Metrics:
    """Return the columns of numbers of ``frame`` as metrics, with the rows in the order of time.

    ``time`` is the name that the user gave for the column of times, or None; ``path`` is the name
    of the file in messages.
    """
    import polars as pl  # noqa: PLC0415

    column, numeric = columns_of(frame, time, path)
    times_s = None if column is None else _seconds(frame[column], path)
    if not numeric or frame.height == 0:
        raise InputError(
            f"{path}: has no metrics: a table needs at least one column of numbers and one row"
        )
    values = np.column_stack(
        [
            frame[name].cast(pl.Float64, strict=False).fill_null(math.nan).to_numpy()
            for name in numeric
        ]
    ).astype(np.float64)
    notes = left_out(frame, column, numeric) + _infinite(numeric, values)
    if times_s is not None:
        order = np.argsort(times_s, kind="stable")
        times_s, values = times_s[order], values[order]
    return Metrics(tuple(numeric), values, times_s, notes)


def left_out(frame: pl.DataFrame, time: str | None, numeric: Sequence[str]) -> tuple[str, ...]:
    """Return a remark on the columns that do not hold numbers, or an empty tuple.

    The remark shows a value or the type of some of these columns. ``time`` is the column of times,
    ``numeric`` are the columns of numbers.
    """
    import polars as pl  # noqa: PLC0415

    others = [name for name in frame.columns if name != time and name not in numeric]
    if not others:
        return ()
    some = []
    for name in others[:_MOST_TOLD]:
        column = frame[name].cast(pl.String, strict=False).drop_nulls()
        lost = column.filter(column.cast(pl.Float64, strict=False).is_null())
        found = f" has {clean(lost[0], 30)!r}" if len(lost) else f" is {frame.schema[name]}"
        some.append(clean(name, 60) + found)
    more = f" and {len(others) - len(some)} more" if len(others) > len(some) else ""
    return (f"{len(others):,} columns are not numbers and are left out: {', '.join(some)}{more}",)


#: Regular expression: last part of a time as programs in Go print it, for example Nezha's
#: collector.
_GO = r" \+0000 UTC( m=[+-][0-9.]+)?$"


def _time_column(columns: Sequence[str], time: str | None, path: Path) -> str | None:
    if time is None:
        return next((name for name in columns if name.lower() in _TIME_NAMES), None)
    if time not in columns:
        near = nearest(time, columns)
        hint = f"; did you mean {clean(near, 80)}?" if near else ""
        raise InputError(f"{path}: there is no column {clean(time, 80)!r}{hint}")
    return time


def _seconds(column: pl.Series, path: Path) -> Numbers:
    """Return a column of times in seconds: numbers unchanged, dates as seconds since 1970.

    Dates may be texts. Raises ``InputError`` if a row has no valid time.
    """
    import polars as pl  # noqa: PLC0415

    found: Any = column
    if column.dtype == pl.String:
        try:
            found = column.str.replace(_GO, "").str.to_datetime(time_zone="UTC")
        except pl.exceptions.PolarsError:
            raise InputError(
                f"{path}: {clean(column.name, 80)}: times must be numbers, or dates "
                "such as 2026-01-31T12:00:00"
            ) from None
    if found.dtype in (pl.Date, pl.Datetime):
        found = found.cast(pl.Datetime("us")).dt.timestamp("us") / 1e6
    if not found.dtype.is_numeric() or found.null_count():
        raise InputError(
            f"{path}: {clean(column.name, 80)}: a row has no time; every row needs one"
        )
    seconds: Numbers = found.cast(pl.Float64).to_numpy()
    if not np.isfinite(seconds).all():
        raise InputError(
            f"{path}: {clean(column.name, 80)}: the time of a row is not a finite number"
        )
    return seconds
