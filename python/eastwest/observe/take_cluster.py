"""Reads files of spans on the workers of a Dask cluster.

A worker reads a file as ``take`` does, and returns the spans as Parquet. The calling process
numbers the attributes that spans share, in the order of the files, so that the output equals that
of one machine, byte for byte. Files must be under the same paths on all workers. To limit memory on
both sides, the number of files in progress is a small multiple of the number of threads.
"""

from __future__ import annotations

import io
import secrets
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from eastwest.account import Account
from eastwest.errors import InputError
from eastwest.observe.gather import Gathering
from eastwest.sweep.cluster import ask_builds, connected, disconnect, in_plain_words
from eastwest.traces.source import Told
from eastwest.units import clean, size

#: Maximum size in bytes of the spans of one file, as compressed Parquet in a worker's memory.
MOST_PACKED = 1 << 30
#: Maximum number of files in progress for each thread of the workers.
_FOR_EACH = 2


@dataclass(frozen=True)
class FileRead:
    """Spans that a worker has read from a file; ``said`` is the file's entry for ``spans.json``."""

    said: dict[str, Any]
    #: Tables of spans, each as the bytes of a Parquet file.
    parts: tuple[bytes, ...]
    #: Sets of attributes that spans share, as JSON texts in the order of their numbers in this
    #: file.
    resources: tuple[str, ...]
    problems: Account


class _Packed(Gathering):
    """Buffer for the spans of a file: keeps them in memory as compressed Parquet."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.parts: list[bytes] = []
        self._name = name
        self._bytes = 0

    def part(self, frame: pl.DataFrame) -> None:
        into = io.BytesIO()
        frame.write_parquet(into, compression="lz4")
        self.parts.append(into.getvalue())
        self._bytes += len(self.parts[-1])
        if self._bytes > MOST_PACKED:
            raise InputError(
                f"{self._name}: the spans of this file take more than {size(MOST_PACKED)} in "
                "memory, the limit for one worker: divide the file, or read it "
                "without --dask"
            )


def read_files(
    files: Sequence[str | Path],
    source_format: str,
    into: Gathering,
    problems: Account,
    address: str,
    told: Told | None = None,
) -> list[dict[str, Any]]:
    """Add the spans of ``files`` to ``into``; return the entry of each file for ``spans.json``.

    ``address`` is the address of the scheduler. Raises ``InputError`` if the scheduler does not
    answer, if workers have another build or lack a file, and in all cases in which
    ``take.read_file`` raises it.
    """
    client = connected(address, f"eastwest-{secrets.token_hex(6)}")
    said: list[dict[str, Any]] = []
    try:
        ask_builds(client)
        waiting = deque(files)
        under_way: deque[Any] = deque()
        while waiting or under_way:
            with in_plain_words(address, f"reading {files[len(said)]}"):
                most = _FOR_EACH * max(1, sum(client.nthreads().values()))
                while waiting and len(under_way) < most:
                    path = waiting.popleft()
                    order = (str(Path(path).absolute()), str(path), source_format)
                    rules = (problems.stop, problems.lossy)
                    under_way.append(client.submit(_read, *order, *rules, pure=False))
                found: FileRead = under_way.popleft().result()
            _take(found, into, problems)
            said.append(found.said)
            if told is not None:
                told(f"{len(said)} of {len(files)} files", len(said) / len(files))
    finally:
        disconnect(client)
    return said


def _take(found: FileRead, into: Gathering, problems: Account) -> None:
    """Add the spans of a file to ``into``, and the account of its import to ``problems``.

    The shared attributes get numbers that are unique in all files.
    """
    numbers = pl.Series([into.numbered(text) for text in found.resources], dtype=pl.UInt32)
    for part in found.parts:
        frame = pl.read_parquet(io.BytesIO(part))
        if len(numbers):
            frame = frame.with_columns(resource=numbers.gather(frame["resource"]))
        into.add_frame(frame)
    problems.take(found.problems)


# Functions that run on the workers of the Dask cluster.


def _read(path: str, name: str, source_format: str, stop: bool, lossy: bool = False) -> FileRead:
    from eastwest.observe.take import read_file  # noqa: PLC0415  every reader: where needed

    if not Path(path).exists():
        from distributed import get_worker  # noqa: PLC0415  only where Dask is

        raise InputError(
            f"{clean(path, 300)}: this file does not exist on worker "
            f"{get_worker().address}: every worker must find the files under the "
            "same paths"
        )
    into, problems = _Packed(name), Account(stop, lossy)
    said = read_file(path, source_format, into, problems, name=name)
    into.flush()
    return FileRead(said, tuple(into.parts), tuple(into.resources), problems)
