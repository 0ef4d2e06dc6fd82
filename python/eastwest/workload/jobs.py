"""The jobs of a trace as columns of numbers, and their division into windows of time.

Every analysis reads jobs through this module. Only the needed columns are read from the table of
jobs, so ten million jobs of a SWIM trace take 320 MB. A value that the trace does not state is NaN.

A *window* is ``[k·L, (k + 1)·L)`` seconds of the trace. A trace has the time of the last job, but
usually not the end of the recording. The last window counts as whole if the last job lies in the
last tenth of the window; otherwise the window is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from eastwest.errors import InputError
from eastwest.units import clean

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

#: Names of the quantities of a job in bytes, in the order of the transfers.
BYTES = ("input_bytes", "shuffle_bytes", "output_bytes")
#: Names of the other quantities of a job. ``wait_s`` is the time from submission to launch, and
#: ``run_s`` the time from submission to end.
WORK = ("map_output_bytes", "maps", "reduces", "map_s", "reduce_s", "wait_s", "run_s")
#: Word for each quantity in tables and figures, by the quantity's name.
WORDS = {
    "input_bytes": "input",
    "shuffle_bytes": "shuffle",
    "output_bytes": "output",
    "map_output_bytes": "map output",
    "maps": "maps",
    "reduces": "reduces",
    "map_s": "map time",
    "reduce_s": "reduce time",
    "wait_s": "wait",
    "run_s": "duration",
    "gap_s": "gap",
}
_DERIVED = {
    "wait_s": pl.col("launch_s") - pl.col("submit_s"),
    "run_s": pl.col("finish_s") - pl.col("submit_s"),
}
#: Latest accepted submission in seconds: 30,000 years.
_MOST_S = 1e12
#: The last window counts as whole if the last job comes after this share of the window.
_WHOLE = 0.9
#: Maximum number of windows; a larger number is taken for a wrong unit or a wrong length.
MOST_WINDOWS = 10_000_000


@dataclass(frozen=True)
class Jobs:
    """Jobs of a trace as arrays: submission times in s, ascending, and quantities of each job."""

    submit_s: Floats
    #: Values of each quantity in `BYTES` and `WORK` that at least one job has, by name; NaN means
    #: that a job has no value.
    known: Mapping[str, Floats]
    #: Length of the recording in seconds; None if it is not known.
    length_s: float | None = None
    #: Name of the trace for messages: its folder or file, or an empty text.
    name: str = ""

    @property
    def where(self) -> str:
        """Beginning of a message about the trace: ``name`` and a colon, or an empty text."""
        return f"{clean(self.name, 200)}: " if self.name else ""

    @classmethod
    def of(
        cls,
        table: pl.DataFrame | pl.LazyFrame,
        length_s: float | None = None,
        name: str = "",
    ) -> Jobs:
        """Return the jobs of a table ``jobs`` that have a time of submission.

        ``length_s`` is the length of the recording, if known; ``name`` is the trace's name for
        messages. Raises ``InputError`` if no job has a time of submission.
        """
        lazy = table.lazy()
        there = set(lazy.collect_schema().names())
        wanted = [
            _DERIVED.get(name, pl.col(name)).cast(pl.Float64).alias(name)
            for name in (*BYTES, *WORK)
            if (name in there or (name in _DERIVED and {"launch_s", "finish_s"} <= there))
        ]
        frame = lazy.select(pl.col("submit_s").cast(pl.Float64), *wanted)
        taken = usable(frame).collect()
        if not taken.height:
            where = f"{clean(name, 200)}: " if name else ""
            raise InputError(f"{where}the trace has no jobs with a time of submission")
        known = {}
        for quantity in taken.columns[1:]:
            column = taken[quantity]
            if column.null_count() < taken.height:
                values = np.array(column.to_numpy(), dtype=np.float64)
                # A negative duration comes from a clock that was set back; it counts as unknown.
                values[~(values >= 0) | np.isinf(values)] = np.nan
                if not np.isnan(values).all():
                    known[quantity] = values
        return cls(
            np.asarray(taken["submit_s"].to_numpy(), dtype=np.float64), known, length_s, name
        )

    def __len__(self) -> int:
        return int(self.submit_s.size)

    @cached_property
    def moved_bytes(self) -> Floats:
        """Input, shuffle and output bytes of each job together; unknown values count as 0."""
        total = np.zeros(len(self))
        for name in BYTES:
            if name in self.known:
                total += np.nan_to_num(self.known[name])
        return total

    @property
    def last_s(self) -> float:
        """Time of the last submission in seconds."""
        return float(self.submit_s[-1])

    @property
    def span_s(self) -> float:
        """Length of the recording in seconds, at least the time of the last submission.

        If the length is not known, it is the time of the last submission.
        """
        return self.last_s if self.length_s is None else max(self.length_s, self.last_s)

    def windows(self, length_s: float) -> int:
        """Return the number of whole windows of ``length_s`` seconds in the trace.

        Raises ``InputError`` if ``length_s`` is not above 0, or if there are too many windows.
        """
        if not (length_s > 0 and self.last_s / length_s < MOST_WINDOWS):
            raise InputError(
                f"windows of {length_s:g} s do not suit a trace of {self.last_s:g} s: a "
                "window must be longer than 0 s, and there may be at most "
                f"{MOST_WINDOWS:,} windows"
            )
        if self.length_s is not None:
            return int(self.length_s / length_s + 1e-9)
        full, rest = divmod(self.last_s, length_s)
        return int(full) + (rest >= _WHOLE * length_s)

    def window(self, length_s: float) -> Whole:
        """Return an array: number of the window, from 0, in which each job was submitted.

        ``length_s`` is the length of a window in seconds.
        """
        return np.asarray(np.floor_divide(self.submit_s, length_s), dtype=np.int64)

    def gaps(self, length_s: float) -> Floats:
        """Return an array: seconds between the previous submission and the submission of each job.

        For the first job of a window, the time since the start of the window counts instead.
        Windows have ``length_s`` seconds.
        """
        start = self.window(length_s) * length_s
        before = np.maximum(np.concatenate([[0.0], self.submit_s[:-1]]), start)
        return np.asarray(self.submit_s - before)


def usable(table: pl.LazyFrame) -> pl.LazyFrame:
    """Return the rows of a table of jobs that have a valid submission time, sorted by this time.

    A time is valid from 0 to 10¹² s.
    """
    return table.filter(pl.col("submit_s").is_between(0.0, _MOST_S)).sort(
        "submit_s", maintain_order=True
    )


def spread(values: Floats) -> Floats:
    """Return ``log10(1 + x)`` of each value x, so that small and large sizes have equal weight."""
    return np.asarray(np.log10(1.0 + values))


def evenly(count: int, most: int) -> Whole:
    """Return an array of evenly spaced indices from 0 to ``count`` − 1, at most ``most``."""
    if count <= most:
        return np.arange(count)
    return np.linspace(0, count - 1, most).round().astype(np.int64)
