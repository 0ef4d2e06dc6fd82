"""Traces of Dimemas (``.dim``): computing and MPI calls of tasks; a task becomes a rank.

Both forms of records are read: numbered records (``2:0:0:1:-1:4096:7:0:0``) and older records with
names (``"NX send" { 0, 0, 1, 4096, 7, 0, 0 };;``). A CPU burst is computing. A send is immediate if
bit 1 of the field *synchronism* is set; bit 0 (rendezvous) is ignored, because the scenario's
``eager_limit`` decides. A receive is blocking (0), immediate (1), or the wait for an immediate
receive (2). Dimemas has no wait for sends. A global operation is non-blocking (0), blocking (1, or
no such field), or the wait for the first non-blocking one of its kind (2).

A communicator becomes a group of ranks; the first one with all tasks in their order is group 0. The
field *root* of a global operation is the number of the root task, which is equal in the records of
all tasks, or a 1 in the record of the root and a 0 in those of the others. A first pass over the
file finds out which.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from eastwest.errors import InputError
from eastwest.traces.mpi.ranks import BYTE, MOST_RANKS, RankFiles
from eastwest.traces.source import Source
from eastwest.units import clean

_HEADER = re.compile(rb"#DIMEMAS:.*?:(\d{1,9})\(")
_WHOLE = re.compile(r"\s*-?\d{1,19}\s*")
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
#: Operations with a root; in the others the field has no meaning.
_ROOTED = {"bcast", "gather", "gatherv", "scatter", "scatterv", "reduce"}
_LONGEST_LINE = 1 << 20


@dataclass
class _Root:
    """Values of the field *root* in the records of one operation."""

    least: int
    most: int
    #: Task whose record has the largest value, and the number of these records.
    task: int
    times: int = 1

    def see(self, task: int, value: int) -> None:
        """Take the record of another task."""
        self.least = min(self.least, value)
        if value >= self.most:
            self.times = self.times + 1 if value == self.most else 1
            self.most, self.task = value, task

    def root(self) -> int | None:
        """Return the task that is the root; None if the tasks contradict each other."""
        if self.least == self.most:
            return self.most
        return self.task if (self.least, self.most, self.times) == (0, 1, 1) else None


#: Roots by communicator, and number of the operation among those with a root in it.
_Roots = dict[tuple[int, int], _Root]


@dataclass
class _Communicator:
    """A communicator and its group in the rank files."""

    #: Number of the group in the rank files; group 0 has all tasks.
    number: int
    #: Tasks in the order of their numbers in the communicator.
    tasks: tuple[int, ...]

    def __post_init__(self) -> None:
        self.place = {task: at for at, task in enumerate(self.tasks)}


@dataclass
class _Task:
    """State of a task."""

    #: Immediate receives that are not complete yet.
    receives: int = 0
    #: Number of non-blocking operations that are not complete yet, by name and communicator.
    operations: Counter[tuple[str, int]] = field(default_factory=Counter)
    #: Numbers of the groups that the file of the rank defines.
    groups: set[int] = field(default_factory=set)
    #: Number of the operations with a root in each communicator.
    rooted: Counter[int] = field(default_factory=Counter)


@dataclass
class _Reading:
    """State while a trace of Dimemas is read."""

    name: str
    ranks: int
    into: RankFiles
    line: int = 0
    #: Communicators by their numbers.
    communicators: dict[int, _Communicator] = field(default_factory=dict)
    roots: _Roots = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.everyone = tuple(range(self.ranks))
        self.tasks = [_Task() for _ in self.everyone]
        #: Whether the trace defines a communicator; and communicators that it does not define.
        self.defines = False
        self.undefined: set[int] = set()

    def add(self, number: int, tasks: tuple[int, ...]) -> _Communicator:
        """Add a communicator of ``tasks``."""
        used = [communicator.number for communicator in self.communicators.values()]
        is_all = tasks == self.everyone and 0 not in used
        made = _Communicator(0 if is_all else max(used, default=0) + 1, tasks)
        return self.communicators.setdefault(number, made)

    def put(self, task: int, communicator: _Communicator, call: str, *numbers: int) -> None:
        """Write a call in a communicator; the file of the rank defines the group before."""
        number, groups = communicator.number, self.tasks[task].groups
        if number and number not in groups:
            groups.add(number)
            self.into.put(task, "group", number, *communicator.tasks)
        self.into.put(task, call, *numbers, group=number)

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
    with Source(source.path, name=source.name) as again:
        reading.roots = _roots(reading, again)
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


def _roots(reading: _Reading, source: Source) -> _Roots:
    """Return the roots of all operations; records that are damaged are left to the second pass."""
    roots: _Roots = {}
    seen: Counter[tuple[int, int]] = Counter()
    for reading.line, raw in source.lines(_LONGEST_LINE):
        if not raw.startswith(b"10:") and b'"global OP"' not in raw:
            continue
        for kind, words in _records(reading, raw.decode(errors="replace").strip()):
            whole = [word.strip() for word in words[:5] if _WHOLE.fullmatch(word)]
            if kind != "10" or len(whole) < 5:
                continue
            task, thread, number, communicator, value = map(int, whole)
            is_rooted = 0 <= number < len(_OPERATIONS) and _OPERATIONS[number] in _ROOTED
            if is_rooted and thread == 0 and words[8:9] != ["2"]:
                key = communicator, seen[task, communicator]
                seen[task, communicator] += 1
                if key in roots:
                    roots[key].see(task, value)
                else:
                    roots[key] = _Root(value, value, task)
    return roots


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
    if kind == "10":
        _collective(reading, task, words)
    elif kind == "1":
        reading.into.compute(task, _seconds(reading, words))
    else:
        _message(reading, task, kind, words)


def _message(reading: _Reading, task: int, kind: str, words: list[str]) -> None:
    other, size, tag, communicator, how = (
        _int(reading, words, at, what)
        for at, what in enumerate(("a task", "a size", "a tag", "a communicator", "a kind"), 2)
    )
    members = _communicator(reading, communicator)
    if not {task, other} <= members.place.keys():
        raise reading.fail(f"task {task} or {other} is not in communicator {communicator}")
    if not 0 <= how < (4 if kind == "2" else 3):
        raise reading.fail(
            f"found kind {how} of a message, expected 0 to {3 if kind == '2' else 2}"
        )
    state, partner = reading.tasks[task], members.place[other]
    if kind == "2":
        if how & 1:
            reading.note(
                "send with rendezvous", "eager_limit decides whether it waits for its receive"
            )
        call = "isend" if how & 2 else "send"
        reading.put(task, members, call, partner, tag, size, BYTE)
    elif how == 2:
        state.receives = max(0, state.receives - 1)
        reading.into.put(task, "wait", other, task, tag)
    else:
        state.receives += how
        reading.put(task, members, "irecv" if how else "recv", partner, tag, size, BYTE)


def _collective(reading: _Reading, task: int, words: list[str]) -> None:
    number, communicator, _, _, sent, received = (
        _int(reading, words, at, what)
        for at, what in enumerate(
            ("an operation", "a communicator", "a root", "a thread", "bytes", "bytes"), 2
        )
    )
    how = _int(reading, words, 8, "a kind") if len(words) > 8 else 1
    if not 0 <= number < len(_OPERATIONS):
        raise reading.fail(f"found operation {number}, expected 0 to {len(_OPERATIONS) - 1}")
    if not 0 <= how <= 3:
        raise reading.fail(f"found kind {how} of an operation, expected 0 to 3")
    members = _communicator(reading, communicator)
    if task not in members.place:
        raise reading.fail(f"task {task} is not in communicator {communicator}")
    call, n = _OPERATIONS[number], len(members.tasks)
    name = call if call == "barrier" else call.removesuffix("v")
    begun = reading.tasks[task].operations
    if how == 2:
        if begun[name, communicator] > 0:
            begun[name, communicator] -= 1
            reading.into.wait_for(task, name, members.number)
        else:
            reason = "wait for a non-blocking operation that did not begin"
            reading.leave_out(reason, "it is left out: no wait is replayed")
        return
    root = _root(reading, task, communicator, members) if call in _ROOTED else 0
    numbers = _arguments(call, n, root, sent, received)
    begun[name, communicator] += how == 0
    reading.put(task, members, f"i{name}" if how == 0 else name, *numbers)
    if how == 3:
        reading.note("operation that waits only for its root", "it waits for all its tasks")
    if call.endswith("v"):
        reading.note(
            f"{call}: Dimemas records no sizes for single ranks", "all ranks get equal parts"
        )
    if call.startswith(("alltoall", "reducescatter")) and (sent % n or received % n):
        reading.note(
            f"{call}: bytes that are not a multiple of {n} ranks", "parts are rounded down"
        )


def _root(reading: _Reading, task: int, communicator: int, members: _Communicator) -> int:
    """Return the root of the next operation of a task with a root, as its number in the group."""
    rooted = reading.tasks[task].rooted
    key = communicator, rooted[communicator]
    rooted[communicator] += 1
    root = reading.roots[key].root() if key in reading.roots else 0
    if root is None:
        raise reading.fail(f"the tasks name different roots of an operation of {communicator}")
    if len(members.tasks) == 1:
        return 0
    if root not in members.place:
        raise reading.fail(f"the root, task {root}, is not in communicator {communicator}")
    return members.place[root]


def _arguments(call: str, n: int, root: int, sent: int, received: int) -> tuple[int, ...]:
    """Return the arguments of an operation of ``n`` tasks.

    Dimemas records no sizes for single ranks: each rank gets an equal part of the total.
    """
    most = max(sent, received)
    known: dict[str, tuple[int, ...]] = {
        "barrier": (),
        "bcast": (most, root, BYTE),
        "reduce": (most, 0, root, BYTE),
        "allreduce": (most, 0, BYTE),
        "scan": (most, 0, BYTE),
        "gather": (sent, sent, root, BYTE, BYTE),
        "scatter": (received, received, root, BYTE, BYTE),
        "allgather": (sent, sent, BYTE, BYTE),
        "alltoall": (sent // n, received // n, BYTE, BYTE),
    }
    return known.get(call.removesuffix("v"), (*[most // n] * n, 0, BYTE))


def _communicator(reading: _Reading, number: int) -> _Communicator:
    """Return a communicator by its number; without a definition, it has all tasks.

    A missing definition is noted. If other communicators have definitions, it changes the meaning,
    so ``InputError`` is raised unless ``lossy``.
    """
    if number in reading.communicators and number not in reading.undefined:
        return reading.communicators[number]
    then = "it is assumed to have all tasks"
    if reading.defines:
        reason = "communicator without a definition, beside others that have one"
        reading.into.account.change(reading.name, reading.line, reason, then, str(number))
    else:
        reading.note("communicator without a definition", then)
    reading.undefined.add(number)
    return reading.add(number, reading.everyone)


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
    if len(set(tasks)) < count:
        raise reading.fail(f"the definition of communicator {number} lists a task twice")
    reading.defines = True
    reading.undefined.discard(number)
    if reading.add(number, tuple(tasks)).tasks != tuple(tasks):
        raise reading.fail(f"communicator {number} is defined twice, with different tasks")


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
