"""Connection matrices of htsim (``.cm``): source, destination, size and start of flows.

The file has a header of lines ``Nodes n``, ``Connections n``, ``Triggers n`` and ``Failures n`` in
any order; the last two are optional. A line for each connection follows:
``SRC->DST [id N] [start N] size N [prio N] [trigger N] [send_done_trigger N]
[recv_done_trigger N]``. The file may also have lines for triggers and failures. ``#`` begins a
comment line. htsim reads starts in picoseconds, but files that htsim itself writes have starts in
microseconds.

The result is a list of flows for ``kind = "flow-list"``. A list of flows cannot have connections
that start when other connections end, or connections without end (``size 0``): files with these
connections are refused. Priorities, and triggers for which no connection waits, are left out and
noted. Failures change the outcome: they are refused, or with ``lossy`` left out and counted.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from eastwest.account import Account
from eastwest.errors import InputError
from eastwest.files import write_whole
from eastwest.units import clean

#: Maximum number of flows of a list (docs/mechanisms/open-loop.md).
_MOST_FLOWS = 5_000_000
_MOST_BYTES = 256 * 1024 * 1024
#: Maximum size of a flow in payload bytes.
_LARGEST = 10**15
#: Latest allowed start of a flow in seconds.
_LATEST_S = 480 * 3600
#: Number of units in a second, for each unit that start times may have.
START_UNITS = {"ps": 1e12, "us": 1e6}
_ENDS = re.compile(r"([0-9]{1,9})->([0-9]{1,9})")
_FIRST = re.compile(
    rb"^[ \t]*(?:(?:Nodes|Connections|Triggers|Failures)\s|[0-9]{1,9}->[0-9])", re.M
)
_WHOLE = re.compile(r"[0-9]{1,16}")
_HEAD = ("Nodes", "Connections", "Triggers", "Failures")
_WORDS = ("id", "start", "size", "prio", "trigger", "send_done_trigger", "recv_done_trigger")


@dataclass(frozen=True)
class Connection:
    """A connection as a flow: numbers of both hosts, payload bytes, and start in seconds."""

    src: int
    dst: int
    bytes: int
    start_s: float


@dataclass
class Matrix:
    """Contents of a connection matrix: number of hosts, and connections."""

    nodes: int
    connections: list[Connection]
    #: Content of the file that a list of flows cannot express, by reason, with line numbers.
    account: Account


def looks_like(start: bytes) -> bool:
    """Whether the first bytes of a file have a line of a connection matrix.

    A line of a connection matrix states a count of the header, or has SRC->DST.
    """
    return _FIRST.search(start) is not None


def read(path: Path, start_unit: str = "ps", lossy: bool = False) -> Matrix:
    """Return the content of a ``.cm`` file whose starts have the unit ``start_unit`` (ps or us).

    Raises ``InputError`` if the file is damaged, or if it has something that a list of flows cannot
    express; with ``lossy``, failures are left out and counted instead.
    """
    if start_unit not in START_UNITS:
        raise InputError(f"the unit of starts is {start_unit!r:.20}, but must be one of ps, us")
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(
                f"{path} is larger than {_MOST_BYTES:,} bytes, the limit for a connection matrix"
            )
        text = path.read_text("utf-8", "replace")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    try:
        account = Account(lossy=lossy)
        return _Reading(path.name, START_UNITS[start_unit], account).all(text)
    except InputError as error:
        raise InputError(f"{clean(str(path), 200)}: {error}") from None


def write(matrix: Matrix, out: Path) -> None:
    """Write the connections of a matrix as a list of flows (CSV) to ``out``.

    A failure leaves no partial file.
    """
    made = io.StringIO()
    rows = csv.writer(made, lineterminator="\n")
    rows.writerow(["src", "dst", "bytes", "start_s"])
    for each in matrix.connections:
        rows.writerow([each.src, each.dst, each.bytes, f"{each.start_s:.12f}"])
    write_whole(out, made.getvalue().encode())


class _Reading:
    def __init__(self, name: str, unit: float, account: Account) -> None:
        self.name = name
        self.unit = unit
        self.account = account
        self.head: dict[str, int] = {}
        self.found: list[Connection] = []

    def all(self, text: str) -> Matrix:
        for line, words in _lines(text):
            where = f"line {line}"
            if words[0] in _HEAD:
                self._header(where, words)
            elif words[0] == "trigger":
                then = "it is left out: no connection waits for it"
                self.account.note(self.name, line, "trigger", consequence=then)
            elif words[0] == "failure":
                reason = "a failure, which a list of flows cannot express"
                then = "it is left out: nothing fails (a scenario can have failures as [[fault]])"
                self.account.change(self.name, line, reason, then)
            elif len(self.found) == _MOST_FLOWS:
                raise InputError(
                    f"{where}: there are more than {_MOST_FLOWS:,} connections, which is "
                    "the maximum"
                )
            else:
                self.found.append(self._connection(line, words))
        for name, there in (("Nodes", None), ("Connections", len(self.found))):
            if name not in self.head:
                raise InputError(f"the line {name} is missing")
            if there is not None and self.head[name] != there:
                raise InputError(
                    f"the header states {name} {self.head[name]}, but the file has {there} lines "
                    "of connections"
                )
        if not self.found:
            raise InputError("has no connection")
        return Matrix(self.head["Nodes"], self.found, self.account)

    def _header(self, where: str, words: list[str]) -> None:
        if len(words) != 2 or not _WHOLE.fullmatch(words[1]):
            raise InputError(f"{where}: expected {words[0]} and a whole number")
        self.head[words[0]] = int(words[1])

    def _connection(self, line: int, words: list[str]) -> Connection:
        where = f"line {line}"
        ends = _ENDS.fullmatch(words[0])
        if ends is None:
            raise InputError(f"{where}: {clean(words[0], 40)!r} is not SRC->DST of two numbers")
        if "Nodes" not in self.head:
            raise InputError(f"{where}: a connection before the line Nodes, which must come first")
        said = self._pairs(where, words[1:])
        src, dst = int(ends[1]), int(ends[2])
        nodes = self.head["Nodes"]
        if max(src, dst) >= nodes:
            raise InputError(
                f"{where}: host {max(src, dst)} does not exist; allowed: 0 to {nodes - 1}"
            )
        if src == dst:
            raise InputError(f"{where}: the source and target are both host {src}")
        if "trigger" in said:
            raise InputError(
                f"{where}: the connection begins at a trigger, but a flow of a list "
                'begins at a time (kind = "transactions" has calls that wait for '
                "others)"
            )
        if not _WHOLE.fullmatch(said.get("size", "")):
            raise InputError(f"{where}: size must be a whole number of bytes")
        if not 0 < int(said["size"]) <= _LARGEST:
            raise InputError(
                f"{where}: size is {said['size']}; allowed: 1 to {_LARGEST} bytes (0 "
                "means a flow without end, which a list of flows cannot have)"
            )
        if "prio" in said:
            then = "it is left out: flows of a list have no priorities"
            self.account.note(self.name, line, "priority of a connection", consequence=then)
        return Connection(src, dst, int(said["size"]), self._start(where, said.get("start", "")))

    def _pairs(self, where: str, words: list[str]) -> dict[str, str]:
        said: dict[str, str] = {}
        for name, value in zip(words[::2], [*words[1::2], ""], strict=False):
            if name not in _WORDS:
                known = ", ".join(_WORDS)
                raise InputError(
                    f"{where}: {clean(name, 40)!r} is not a key of a connection; allowed: {known}"
                )
            if not value:
                raise InputError(f"{where}: {name} has no value")
            if name in said:
                raise InputError(f"{where}: {name} is given twice")
            said[name] = value
        return said

    def _start(self, where: str, text: str) -> float:
        try:
            start_s = float(text) / self.unit
        except ValueError:
            start_s = math.nan
        if not 0 <= start_s <= _LATEST_S:
            raise InputError(
                f"{where}: start is {clean(text, 40)!r}; allowed: a number that means 0 to 480 h"
            )
        return start_s


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(io.StringIO(text), 1):
        words = line.split()
        if words and not words[0].startswith("#"):
            yield number, words
