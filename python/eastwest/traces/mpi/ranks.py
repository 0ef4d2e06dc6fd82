"""Writes time-independent traces: a folder with a file of calls for each rank.

Computing is written as a number of operations, 10⁹ for each second, so a replay with the default
``flops_per_s = 1e9`` takes the recorded times. Sizes are in bytes: data type 6, ``MPI_BYTE``.
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
#: Name of the JSON file that describes a folder of rank files.
ABOUT = "trace.json"
#: Value of ``format`` in the JSON file that describes a folder of rank files.
FORMAT = "time-independent trace"
#: Maximum number of ranks of a trace.
MOST_RANKS = 65_536
#: Number of the data type ``MPI_BYTE`` in rank files: sizes with this type are in bytes.
BYTE = 6
_FLUSH = 1 << 20
#: Maximum number of distinct names of MPI calls that are counted for ``trace.json``.
_MOST_CALLS = 200


class RankFiles(FolderWriter):
    """Writer of a folder of rank files, a context manager; ``finish`` completes the folder.

    With ``lossy``, readers may leave out records that a replay cannot express; ``account`` counts
    them.
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

    def put(self, rank: int, call: str, *numbers: int | float, group: int = 0) -> None:
        """Add a call to the file of a rank; ``numbers`` are the arguments in their order.

        ``group`` is the number of the group of ranks in which the call communicates; 0: all ranks.
        """
        self._put(rank, call, [f"{number:.17g}" for number in numbers], group)

    def wait_for(self, rank: int, call: str, group: int) -> None:
        """Add a wait for the first open non-blocking collective ``call`` of a rank in a group."""
        self._put(rank, "wait", [f"i{call}"], group)

    def _put(self, rank: int, call: str, arguments: list[str], group: int) -> None:
        if not 0 <= rank < MOST_RANKS:
            raise InputError(f"the trace has a rank {rank}; allowed: 0 to {MOST_RANKS - 1}")
        within = ["in", str(group)] if group else []
        self.add(rank, [str(rank), call, *arguments, *within])

    def add(self, rank: int, words: list[str]) -> None:
        """Add a line to the file of a rank; ``words`` are rank, call and arguments."""
        line = " ".join(words)
        self._lines.setdefault(rank, []).append(line)
        call = words[1].lower()
        if call in self.calls or len(self.calls) < _MOST_CALLS:
            self.calls[call] = self.calls.get(call, 0) + 1
        self._waiting += len(line)
        if self._waiting > _FLUSH:
            self._flush()

    def compute(self, rank: int, seconds: float) -> None:
        """Add a computation of ``seconds`` to the file of a rank; none if it is not above 0."""
        if seconds > 0:
            self.put(rank, "compute", round(seconds * FLOPS_PER_S))

    def _flush(self) -> None:
        for rank, lines in self._lines.items():
            with self._file(rank).open("a", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
        self._lines.clear()
        self._waiting = 0

    def check(self, ranks: int) -> None:
        """Check the files of ranks 0 to ``ranks`` − 1 with the reader of the simulator.

        Ranks without calls get an empty file. Raises ``InputError`` with the reasons if a run would
        refuse the files.
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
        """Write ``trace.json``, rename the folder, and return the content of ``trace.json``.

        ``ranks`` is the number of ranks, ``about`` additional content of ``trace.json``.
        """
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
