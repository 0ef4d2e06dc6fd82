"""Map from old to new numbers of jobs, in a file, to renumber tables after the jobs were sorted.

The file has four bytes per job. Only one piece of the file, 32 MB, is mapped into memory at a time,
even for the maximum number of jobs (2³², ``write.MOST_JOBS``).
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
    """Map from old to new numbers of ``jobs`` jobs, stored in the new file ``path``."""

    def __init__(self, path: Path, jobs: int) -> None:
        self._path = path
        self._jobs = jobs
        with path.open("xb") as file:
            file.truncate(4 * jobs)

    def put(self, old: _Array, first: int) -> None:
        """Set the new numbers of the jobs ``old`` (old numbers) to ``first``, ``first`` + 1, …."""
        new = np.arange(first, first + len(old), dtype=np.uint32)
        for piece, within in self._pieces(old, "r+"):
            piece[old[within] % _PIECE] = new[within]

    def of(self, old: _Array) -> _Array:
        """Return an array: new number of each job whose old number is in ``old``."""
        new = np.zeros(len(old), np.uint32)
        for piece, within in self._pieces(old, "r"):
            new[within] = piece[old[within] % _PIECE]
        return new

    def _pieces(
        self, old: _Array, mode: str
    ) -> Iterator[tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_]]]:
        """Yield (piece of the file as an array, mask of the jobs in it) for each needed piece.

        ``old`` has the old numbers of the jobs; the mask is an array over ``old``. ``mode`` is the
        mode of ``np.memmap``, ``r`` or ``r+``.
        """
        parts = old // _PIECE
        for part in np.unique(parts):
            start = int(part) * _PIECE
            count = min(_PIECE, self._jobs - start)
            piece = np.memmap(self._path, np.uint32, mode, offset=4 * start, shape=(count,))  # type: ignore[call-overload]
            yield piece, parts == part
            del piece
