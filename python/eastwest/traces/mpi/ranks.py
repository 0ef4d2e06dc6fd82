"""Writes time-independent traces: a folder with a file of calls for each rank.

Computing is written as a number of operations at ``FLOPS_PER_S``: a second is 10⁹ operations, so a
replay with the default ``flops_per_s = 1e9`` takes the recorded times. Sizes are in bytes: data
type 6, ``MPI_BYTE``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from eastwest import core
from eastwest.account import Account
from eastwest.errors import InputError
from eastwest.files import sync_folder, write_whole
from eastwest.traces.made import FolderWriter

#: Number of operations that represent a second of computing.
FLOPS_PER_S = 10**9
#: Name of the file that describes a trace of ranks.
ABOUT = "trace.json"
#: Value of ``format`` in the file that describes a trace of ranks.
FORMAT = "time-independent trace"
#: Maximum number of ranks of a trace.
MOST_RANKS = 65_536
#: Number of the data type ``MPI_BYTE``, with which sizes are in bytes.
BYTE = 6
_FLUSH = 1 << 20
#: Maximum number of distinct names of MPI calls that are counted for ``trace.json``.
_MOST_CALLS = 200


class RankFiles(FolderWriter):
    """Writer of rank files in a folder that appears when it is complete: a context manager.

    With ``lossy``, records whose meaning changes are accepted too; ``account`` counts them.
    """

    def __init__(self, out: Path, force: bool = False, lossy: bool = False) -> None:
        super().__init__(out, force, "a trace", ABOUT)
        self._lines: dict[int, list[str]] = {}
        self._waiting = 0
        #: Number of calls written so far, by name.
        self.calls: dict[str, int] = {}
        #: Number of records of the source that its reader has read.
        self.records = 0
        #: Records that were left out, changed or noted, by reason.
        self.account = Account(lossy=lossy)

    def put(self, rank: int, call: str, *numbers: int | float) -> None:
        """Add a call of a rank; ``numbers`` are its arguments, in the order of the format."""
        if not 0 <= rank < MOST_RANKS:
            raise InputError(f"the trace has a rank {rank}; allowed: 0 to {MOST_RANKS - 1}")
        self.add(rank, [str(rank), call, *(f"{number:.17g}" for number in numbers)])

    def add(self, rank: int, words: list[str]) -> None:
        """Add a line to the file of a rank; ``words`` are the words of the line."""
        line = " ".join(words)
        self._lines.setdefault(rank, []).append(line)
        call = words[1].lower()
        if call in self.calls or len(self.calls) < _MOST_CALLS:
            self.calls[call] = self.calls.get(call, 0) + 1
        self._waiting += len(line)
        if self._waiting > _FLUSH:
            self._flush()

    def compute(self, rank: int, seconds: float) -> None:
        """Add a computation of ``seconds`` by a rank."""
        if seconds > 0:
            self.put(rank, "compute", round(seconds * FLOPS_PER_S))

    def _flush(self) -> None:
        for rank, lines in self._lines.items():
            with self._file(rank).open("a", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
        self._lines.clear()
        self._waiting = 0

    def check(self, ranks: int) -> None:
        """Check the files of all ``ranks`` ranks with the simulator's own reader.

        Raises ``InputError`` with the reasons for which a run would refuse the files.
        """
        if ranks < 1:
            raise InputError("the trace has no ranks")
        self._flush()
        files = [(f"rank-{rank:05}.txt", self._file(rank)) for rank in range(ranks)]
        for _, file in files:
            file.touch()
        wrong = core.mpi_check(files)
        if wrong:
            more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
            raise InputError("a run would refuse the trace: " + "; ".join(wrong[:3]) + more)

    def _file(self, rank: int) -> Path:
        return self._partial / f"rank-{rank:05}.txt"

    def finish(self, ranks: int, about: dict[str, Any]) -> dict[str, Any]:
        """Rename the folder to its final name; return the content of ``trace.json``."""
        self._flush()
        said = {
            "format": FORMAT,
            "ranks": ranks,
            "calls": dict(sorted(self.calls.items())),
            "records": self.records,
            **self.account.as_json(),
            **about,
        }
        write_whole(self._partial / ABOUT, (json.dumps(said, indent=2) + "\n").encode())
        sync_folder(self._partial)
        self._place.place(self._made)
        return said
