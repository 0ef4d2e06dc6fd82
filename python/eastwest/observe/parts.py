"""Tables of metrics in many files with the same columns; the rows of the files are put together.

An example is a Parquet or CSV file for each day. Only the requested columns are read, so a table
may be larger than memory. The order of columns may differ between files, but every file must have
all columns.
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eastwest.errors import InputError
from eastwest.observe.metrics import (
    Metrics,
    columns_of,
    frame_of,
    left_out,
    of_frame,
    place_of,
    room,
)
from eastwest.units import clean

#: Maximum number of files of one table of metrics.
MOST_FILES = 100_000
#: Number of first rows of each file from which the types of its columns are inferred.
_LOOKED_AT = 10_000
_ENDINGS = (".parquet", ".csv", ".csv.gz")


@dataclass(frozen=True)
class Parts:
    """Table of metrics in several files; ``names`` are in the order of the first file."""

    files: tuple[Path, ...]
    names: tuple[str, ...]
    #: Name of the column of times; None if the files have none.
    time: str | None
    #: Remarks on columns that are left out because they do not hold numbers.
    notes: tuple[str, ...] = ()

    def place(self, name: str) -> int:
        """Return the column number of the metric ``name``.

        Raises ``InputError``, which names the nearest metric, if there is no such metric.
        """
        return place_of(self.names, name)

    def read(self, names: Sequence[str] | None = None) -> Metrics:
        """Return the metrics ``names`` (None: all) from all files, with rows in the order of time.

        Raises ``InputError`` if they have more values than memory may hold.
        """
        names = self.names if names is None else names
        wanted = [*([] if self.time is None else [self.time]), *names]
        parts, rows = [], 0
        for path in self.files:
            frame = frame_of(path, wanted)
            rows += frame.height
            room(rows, len(names), f"{self.files[0].parent}")
            if not frame.height:
                continue
            parts.append(_part(of_frame(frame, self.time, path), names, path))
        if not parts:
            raise InputError(
                f"{self.files[0]}: neither this file nor the other files of the table have rows"
            )
        values = np.concatenate([part.values for part in parts])
        times = [part.times_s for part in parts if part.times_s is not None]
        found = [*self.notes, *(note for part in parts for note in part.notes)]
        notes = tuple(dict.fromkeys(found))
        if not times:
            return Metrics(tuple(names), values, None, notes)
        times_s = np.concatenate(times)
        order = np.argsort(times_s, kind="stable")
        return Metrics(tuple(names), values[order], times_s[order], notes)


def find(source: str | Path) -> list[Path]:
    """Return the files of a table, sorted by name.

    ``source`` is a folder, a glob or one file. Raises ``InputError`` if no file is found, or too
    many.
    """
    path = Path(source)
    if path.is_dir():
        found = [each for each in path.iterdir() if each.name.endswith(_ENDINGS)]
    elif path.is_file():
        found = [path]
    else:
        fitting = glob.iglob(str(source))  # noqa: PTH207  any folder of it may be a pattern
        found = [Path(each) for each in fitting if Path(each).is_file()]
    if not found:
        raise InputError(
            f"{clean(str(source), 200)}: is neither a file, nor a folder with files that end in "
            f"{', '.join(_ENDINGS)}, nor a glob that matches a file"
        )
    if len(found) > MOST_FILES:
        raise InputError(
            f"{clean(str(source), 200)}: there are more than {MOST_FILES:,} files, which "
            "is the maximum"
        )
    return sorted(path.absolute() for path in found)


def look(files: Sequence[Path], time: str | None = None) -> Parts:
    """Return ``files`` as one table; raise ``InputError`` if their columns differ.

    ``time`` is the name that the user gave for the column of times; None: it is recognised.
    """
    first = files[0]
    frame = frame_of(first, rows=_LOOKED_AT)
    column, numeric = columns_of(frame, time, first)
    if not numeric:
        raise InputError(
            f"{first}: has no metrics: a table needs at least one column of numbers and one row"
        )
    for path in files[1:]:
        own, names = columns_of(frame_of(path, rows=_LOOKED_AT), time, path)
        if own != column:
            raise InputError(
                f"{path}: the column of times is {own!r}, but in {first.name} it is {column!r}"
            )
        for lacks, has, of in ((set(numeric) - set(names), first, path),
                               (set(names) - set(numeric), path, first)):  # fmt: skip
            if lacks:
                raise InputError(
                    f"{of}: there is no metric {clean(min(lacks), 80)!r}, which "
                    f"{has.name} has: all files of a table must have the same metrics"
                )
    return Parts(tuple(files), tuple(numeric), column, left_out(frame, column, numeric))


def _part(metrics: Metrics, names: Sequence[str], path: Path) -> Metrics:
    """Return the metrics of one file, with the columns in the order of ``names``.

    Raises ``InputError`` if a column does not hold numbers; ``path`` is the file's name in the
    message.
    """
    for name in names:
        if name not in metrics.names:
            raise InputError(
                f"{path}: the column {clean(name, 80)} does not hold numbers in this file"
            )
    order = [metrics.names.index(name) for name in names]
    return Metrics(tuple(names), metrics.values[:, order], metrics.times_s, metrics.notes)
