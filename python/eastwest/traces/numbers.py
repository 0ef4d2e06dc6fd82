"""Map from old to new numbers of jobs, on disk, to renumber tables after the jobs were sorted.

The file has four bytes per job and is mapped into memory one piece at a time. So even the maximum
number of jobs (2³², ``write.MOST_JOBS``) needs no more memory than one piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

#: Number of jobs in a piece of the file that is mapped into memory at once: 32 MB.
_PIECE = 1 << 23

_Array = npt.NDArray[np.uint32]


class Numbers:
    """Map from the old numbers of ``jobs`` jobs to their new numbers, in a new file ``path``."""

    def __init__(self, path: Path, jobs: int) -> None:
        self._path = path
        self._jobs = jobs
        with path.open("xb") as file:
            file.truncate(4 * jobs)

    def put(self, old: _Array, first: int) -> None:
        """Set the new numbers of the jobs ``old`` to ``first``, ``first`` + 1, …."""
        new = np.arange(first, first + len(old), dtype=np.uint32)
        for piece, within in self._pieces(old, "r+"):
            piece[old[within] % _PIECE] = new[within]

    def of(self, old: _Array) -> _Array:
        """Return the new numbers of the jobs ``old``."""
        new = np.zeros(len(old), np.uint32)
        for piece, within in self._pieces(old, "r"):
            new[within] = piece[old[within] % _PIECE]
        return new

    def _pieces(
        self, old: _Array, mode: str
    ) -> Iterator[tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_]]]:
        """Yield the pieces of the file that contain some jobs, each with a mask of its jobs.

        ``old`` are the old numbers of the jobs; ``mode`` is the mode of ``np.memmap``, for example
        ``r``.
        """
        parts = old // _PIECE
        for part in np.unique(parts):
            start = int(part) * _PIECE
            count = min(_PIECE, self._jobs - start)
            piece = np.memmap(self._path, np.uint32, mode, offset=4 * start, shape=(count,))  # type: ignore[call-overload]
            yield piece, parts == part
            del piece
