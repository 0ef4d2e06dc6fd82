"""The jobs of a trace as columns of numbers, and their division into windows of time.

Every analysis reads jobs through this module. Only the columns that it uses are read from the
table, so ten million jobs of a SWIM trace take 320 MB. A value that the trace does not state is
NaN.

A *window* is ``[k·L, (k + 1)·L)`` seconds of the trace. A trace has the time of its last job, but
not the end of its recording. Its last window counts as whole if this job lies in the last tenth of
the window; otherwise the window is left out.
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

#: Bytes per job, in the order in which they are transferred.
BYTES = ("input_bytes", "shuffle_bytes", "output_bytes")
#: Other quantities of a job. ``wait_s`` and ``run_s`` are computed from its times of launch and
#: end.
WORK = ("map_output_bytes", "maps", "reduces", "map_s", "reduce_s", "wait_s", "run_s")
#: Names of the quantities in tables and figures.
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
#: Share of the last window after which the last job must come, so that the window counts as whole.
_WHOLE = 0.9
#: Maximum number of windows; more would come from a wrong unit or a wrong length.
MOST_WINDOWS = 10_000_000


@dataclass(frozen=True)
class Jobs:
    """Submission times in order, and the known quantities of each job."""

    submit_s: Floats
    #: Quantities named in `BYTES` and `WORK` for which at least one job has a value.
    known: Mapping[str, Floats]
    #: Length of the recording in seconds; None if it is not known.
    length_s: float | None = None
    #: Name of the trace for messages: its folder or file, or an empty text.
    name: str = ""

    @property
    def where(self) -> str:
        """Beginning of a message about the trace: its name, if it has one."""
        return f"{clean(self.name, 200)}: " if self.name else ""

    @classmethod
    def of(
        cls,
        table: pl.DataFrame | pl.LazyFrame,
        length_s: float | None = None,
        name: str = "",
    ) -> Jobs:
        """Return the jobs of a ``jobs`` table; raise ``InputError`` if none has a submission."""
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
        """Length of the recording in seconds.

        If it is not known, the time of the last submission.
        """
        return self.last_s if self.length_s is None else max(self.length_s, self.last_s)

    def windows(self, length_s: float) -> int:
        """Return the number of whole windows of ``length_s`` seconds in the trace.

        Raises ``InputError`` for a length for which there would be too many windows.
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
        """Return for each job the number of the window in which it was submitted, from 0.

        ``length_s`` is the length of a window in seconds.
        """
        return np.asarray(np.floor_divide(self.submit_s, length_s), dtype=np.int64)

    def gaps(self, length_s: float) -> Floats:
        """Return each job's seconds since the previous submission, or since its window began.

        The later of both counts; windows have ``length_s`` seconds.
        """
        start = self.window(length_s) * length_s
        before = np.maximum(np.concatenate([[0.0], self.submit_s[:-1]]), start)
        return np.asarray(self.submit_s - before)


def usable(table: pl.LazyFrame) -> pl.LazyFrame:
    """Return the rows of a table of jobs with a time of submission, ordered by this time."""
    return table.filter(pl.col("submit_s").is_between(0.0, _MOST_S)).sort(
        "submit_s", maintain_order=True
    )


def spread(values: Floats) -> Floats:
    """Return ``log10(1 + x)``, which gives equal weight to sizes from a byte to petabytes."""
    return np.asarray(np.log10(1.0 + values))


def evenly(count: int, most: int) -> Whole:
    """Return the indices of at most ``most`` of ``count`` items, evenly spaced."""
    if count <= most:
        return np.arange(count)
    return np.linspace(0, count - 1, most).round().astype(np.int64)
