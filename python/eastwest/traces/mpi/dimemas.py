"""Traces of Dimemas (``.dim``): computing and MPI calls of tasks; a task becomes a rank.

Both forms of records are read: numbered records (``2:0:0:1:-1:4096:7:0:0``) and older records with
names (``"NX send" { 0, 0, 1, 4096, 7, 0, 0 };;``). A CPU burst is computing. A send is immediate if
bit 1 of the field *synchronism* is set; bit 0 (rendezvous) is ignored, because the scenario's
``eager_limit`` decides. A receive is blocking (0), immediate (1), or the wait for an immediate
receive (2). Dimemas has no wait for sends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from eastwest.errors import InputError
from eastwest.traces.mpi.ranks import BYTE, MOST_RANKS, RankFiles
from eastwest.traces.source import Source
from eastwest.units import clean

_HEADER = re.compile(rb"#DIMEMAS:.*?:(\d{1,9})\(")
_NAMED = re.compile(r'"([^"]*)"\s*\{([^{}]*)(\{[^{}]*\})?\s*\}\s*;;')
#: Number of each kind of records, by the name of the kind in older traces.
_NAMES = {
    "CPU burst": "1",
    "NX send": "2",
    "NX recv": "3",
    "global OP": "10",
    "1sided OP": "30",
}
_PASSED = {"20", "40", "41", "block begin", "block end", "user event"}
#: MPI call of a collective, by the number of Dimemas's *global operation*: the position here.
_OPERATIONS = (
    "barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv",
    "alltoall", "alltoallv", "reduce", "allreduce", "reducescatter", "scan",
)  # fmt: skip
_LONGEST_LINE = 1 << 20


@dataclass
class _Reading:
    """State while a trace of Dimemas is read."""

    name: str
    ranks: int
    into: RankFiles
    line: int = 0
    #: Tasks of each defined communicator, by the number of the communicator.
    members: dict[int, frozenset[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.everyone = frozenset(range(self.ranks))

    def note(self, reason: str, consequence: str, found: str = "") -> None:
        self.into.account.note(self.name, self.line, reason, found, consequence=consequence)

    def leave_out(self, reason: str, consequence: str, found: str = "") -> None:
        """Raise ``InputError`` for a record that cannot be replayed; with ``lossy``, count it.

        ``reason`` and ``consequence`` are texts for the message or the report; ``found`` is the
        wrong value.
        """
        self.into.account.change(self.name, self.line, reason, consequence, found)

    def fail(self, what: str) -> InputError:
        return InputError(f"{self.name}:{self.line}: {what}")


def looks_like(start: bytes) -> bool:
    """Whether the first bytes of a file are those of a trace of Dimemas."""
    return start.startswith((b"#DIMEMAS", b"SDDFA"))


def read(source: Source, into: RankFiles) -> int:
    """Read a trace of Dimemas, write the files of all ranks to ``into``; return their number."""
    lines = source.lines(_LONGEST_LINE)
    _, header = next(lines, (0, b""))
    found = _HEADER.match(header)
    if found is None:
        shown = clean(header[:60].decode(errors="replace"), 60)
        raise InputError(
            f'{source.name}:1: found {shown!r}, expected #DIMEMAS:"name":1:TASKS(threads …)'
        )
    if not 0 < int(found[1]) <= MOST_RANKS:
        raise InputError(f"{source.name}:1: has {int(found[1])} tasks; allowed: 1 to {MOST_RANKS}")
    reading = _Reading(source.name, int(found[1]), into, 1)
    for rank in range(reading.ranks):
        into.put(rank, "init")
    for reading.line, raw in lines:
        text = raw.decode(errors="replace").strip()
        if not text or text.startswith(("#", "s:", "SDDFA", "}", "int", "double", "char", "//")):
            continue
        for kind, words in _records(reading, text):
            into.records += 1
            _take(reading, kind, words)
    if source.cut:
        raise reading.fail(f"is damaged or truncated: {source.cut}")
    for rank in range(reading.ranks):
        into.put(rank, "finalize")
    return reading.ranks


def _records(reading: _Reading, text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (kind, fields) for each record in the line ``text``; definitions have the kind ``d``.

    Raises ``InputError`` if the line has other text.
    """
    if text.startswith("d:"):
        yield "d", text.split(":")[1:]
    elif text[0].isdigit():
        kind, *words = text.split(":")
        if kind in {"2", "3"} and len(words) > 3:
            del words[3]  # the thread of the other task is not used
        yield kind, words
    elif text.startswith('"'):
        for name, fields, inner in _NAMED.findall(text):
            if name.endswith("definition"):
                if name == "communicator definition":
                    first = [word.strip() for word in fields.split(",")][:2]
                    members = inner.strip("{} ").split(",")
                    yield "d", ["1", *first, *(word.strip() for word in members)]
                else:
                    yield "d", [name]
                continue
            yield _NAMES.get(name, name), [word.strip() for word in fields.split(",")]
        rest = _NAMED.sub("", text).strip()
        if rest and not rest.endswith("{"):
            raise reading.fail(f"found {clean(rest, 60)!r}, expected a record")
    else:
        raise reading.fail(f"found {clean(text, 60)!r}, expected a record")


def _take(reading: _Reading, kind: str, words: list[str]) -> None:
    if kind in _PASSED:
        reading.note(
            f"event record ({clean(kind, 30)})", "events take no time and transfer nothing"
        )
        return
    if kind == "d":
        _define(reading, words)
        return
    if kind == "30":
        reading.leave_out(
            "a one-sided operation, which a replay cannot express",
            "it is left out: its bytes are not sent",
        )
        return
    if kind not in {"1", "2", "3", "10"}:
        reading.leave_out(
            f"a record of the kind {clean(kind, 30)!r}; expected are CPU bursts (1), "
            "sends (2), receives (3), global operations (10) and events (20)",
            "it is left out: it is not replayed",
        )
        return
    task, thread = _int(reading, words, 0, "a task"), _int(reading, words, 1, "a thread")
    if not 0 <= task < reading.ranks:
        raise reading.fail(f"found task {task}, expected 0 to {reading.ranks - 1}")
    if thread != 0:
        reading.leave_out(
            "a record of a thread other than the first: only thread 0 is replayed",
            "it is left out: that thread neither computes nor sends",
            f"thread {thread} of task {task}",
        )
        return
    if kind == "1":
        reading.into.compute(task, _seconds(reading, words))
    elif kind == "10":
        _collective(reading, task, words)
    else:
        _message(reading, task, kind, words)


def _message(reading: _Reading, task: int, kind: str, words: list[str]) -> None:
    other, size, tag, communicator, how = (
        _int(reading, words, at, what)
        for at, what in enumerate(("a task", "a size", "a tag", "a communicator", "a kind"), 2)
    )
    members = _members(reading, communicator)
    if not {task, other} <= members:
        raise reading.fail(f"task {task} or {other} is not in communicator {communicator}")
    if not 0 <= how < (4 if kind == "2" else 3):
        raise reading.fail(
            f"found kind {how} of a message, expected 0 to {3 if kind == '2' else 2}"
        )
    tag = _apart(reading, tag, communicator)
    if kind == "2":
        if how & 1:
            reading.note(
                "send with rendezvous", "eager_limit decides whether it waits for its receive"
            )
        call = "isend" if how & 2 else "send"
        reading.into.put(task, call, other, tag, size, BYTE)
    elif how == 2:
        reading.into.put(task, "wait", other, task, tag)
    else:
        call = "irecv" if how == 1 else "recv"
        reading.into.put(task, call, other, tag, size, BYTE)


def _apart(reading: _Reading, tag: int, communicator: int) -> int:
    """Return a tag made from ``tag`` and the communicator, unique among all communicators.

    So messages of different communicators never match. A negative (any) tag does not change.
    """
    if len(reading.members) <= 1 or tag < 0:
        return tag
    return tag + (communicator << 40)


def _collective(reading: _Reading, task: int, words: list[str]) -> None:
    number, communicator, root, _, sent, received = (
        _int(reading, words, at, what)
        for at, what in enumerate(
            ("an operation", "a communicator", "a root", "a thread", "bytes", "bytes"), 2
        )
    )
    if not 0 <= number < len(_OPERATIONS):
        raise reading.fail(f"found operation {number}, expected 0 to {len(_OPERATIONS) - 1}")
    members = _members(reading, communicator)
    if len(members) != reading.ranks:
        reading.leave_out(
            f"{_OPERATIONS[number]} of communicator {communicator}, which has "
            f"{len(members)} of {reading.ranks} tasks: only operations of all tasks "
            "can be replayed",
            "it is left out: its tasks do not wait for each other, and its bytes are not sent",
        )
        return
    put, call, n = reading.into.put, _OPERATIONS[number], reading.ranks
    if call == "barrier":
        put(task, call)
    elif call == "bcast":
        put(task, call, max(sent, received), root, BYTE)
    elif call in {"reduce", "allreduce", "scan"}:
        put(task, call, max(sent, received), 0, *([root] if call == "reduce" else []), BYTE)
    elif call in {"gather", "gatherv", "scatter", "scatterv"}:
        # Dimemas records no sizes for single ranks: each rank gets an equal part of the total.
        kind = call.removesuffix("v")
        part = sent if kind == "gather" else received
        put(task, kind, part, part, root, BYTE, BYTE)
    elif call in {"allgather", "allgatherv"}:
        put(task, "allgather", sent, sent, BYTE, BYTE)
    elif call in {"alltoall", "alltoallv"}:
        put(task, "alltoall", sent // n, received // n, BYTE, BYTE)
    else:
        put(task, "reducescatter", *[max(sent, received) // n] * n, 0, BYTE)
    if call.endswith("v"):
        reading.note(
            f"{call}: Dimemas records no sizes for single ranks", "all ranks get equal parts"
        )
    if call.startswith(("alltoall", "reducescatter")) and (sent % n or received % n):
        reading.note(
            f"{call}: bytes that are not a multiple of {n} ranks", "parts are rounded down"
        )


def _members(reading: _Reading, communicator: int) -> frozenset[int]:
    """Return the tasks of a communicator; without a definition, all tasks.

    A missing definition is noted. If other communicators have definitions, it changes the meaning,
    so ``InputError`` is raised unless ``lossy``.
    """
    found = reading.members.get(communicator)
    if found is not None:
        return found
    if reading.members:
        reason = "communicator without a definition, beside others that have one"
        then = "it is assumed to have all tasks"
        reading.into.account.change(reading.name, reading.line, reason, then, str(communicator))
    else:
        reading.note("communicator without a definition", "it is assumed to have all tasks")
    return reading.everyone


def _define(reading: _Reading, words: list[str]) -> None:
    """Store the tasks of a communicator in ``reading.members``.

    ``words`` are the fields of the definition: 1, number of the communicator, number of tasks,
    tasks. Definitions of anything else are noted and not used.
    """
    if words[:1] != ["1"]:
        what = clean(words[0] if words else "", 40)
        reading.note("definition of something other than a communicator", "it is not read", what)
        return
    number, count = _int(reading, words, 1, "a communicator"), _int(reading, words, 2, "a size")
    tasks = [_int(reading, words, at, "a task") for at in range(3, len(words))]
    if len(tasks) != count or any(not 0 <= task < reading.ranks for task in tasks):
        raise reading.fail(
            f"the definition of communicator {number} must list {count} tasks from 0 to "
            f"{reading.ranks - 1}"
        )
    reading.members[number] = frozenset(tasks)


def _int(reading: _Reading, words: list[str], at: int, what: str) -> int:
    word = words[at] if at < len(words) else ""
    try:
        number = int(word) if len(word) < 20 else None
    except ValueError:
        number = None
    if number is None:
        raise reading.fail(f"found {clean(word, 30)!r}, expected {what} as field {at + 1}")
    return number


def _seconds(reading: _Reading, words: list[str]) -> float:
    word = words[2] if len(words) > 2 else ""
    try:
        seconds = float(word)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e9:
        raise reading.fail(f"found {clean(word, 30)!r}, expected seconds of computing")
    return seconds
