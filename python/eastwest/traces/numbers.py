"""New numbers of jobs by their old ones, on disk: for tables that name jobs which were sorted.

Four bytes a job in a file that is mapped a piece at a time, so that as many jobs as a trace may
have (2³², ``write.MOST_JOBS``) need no more memory than a piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

#: Jobs of a piece: 32 MB.
_PIECE = 1 << 23

_Array = npt.NDArray[np.uint32]


class Numbers:
    """The number of each of ``jobs`` jobs; the file ``path`` is made."""

    def __init__(self, path: Path, jobs: int) -> None:
        self._path = path
        self._jobs = jobs
        with path.open("xb") as file:
            file.truncate(4 * jobs)

    def put(self, old: _Array, first: int) -> None:
        """Number these jobs, named by their old numbers, from ``first`` on."""
        new = np.arange(first, first + len(old), dtype=np.uint32)
        for piece, within in self._pieces(old, "r+"):
            piece[old[within] % _PIECE] = new[within]

    def of(self, old: _Array) -> _Array:
        """New numbers of jobs."""
        new = np.zeros(len(old), np.uint32)
        for piece, within in self._pieces(old, "r"):
            new[within] = piece[old[within] % _PIECE]
        return new

    def _pieces(
        self, old: _Array, mode: str
    ) -> Iterator[tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_]]]:
        """The parts of the file in which these jobs are, and which of them."""
        parts = old // _PIECE
        for part in np.unique(parts):
            start = int(part) * _PIECE
            count = min(_PIECE, self._jobs - start)
            piece = np.memmap(self._path, np.uint32, mode, offset=4 * start, shape=(count,))  # type: ignore[call-overload]
            yield piece, parts == part
            del piece
