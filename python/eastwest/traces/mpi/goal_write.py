"""Writes programs in the normal form as GOAL schedules: text for ``txt2bin``, or binary.

The records of a sequence become operations with dependencies. A non-blocking call waits for the
start of the call before it; a wait is a dependency on the operation whose request it finds.
Collective calls become the sends and receives of their algorithm. GOAL has no communicators: if
there are groups or collective calls, tags below 2³⁰ of messages in the group of all ranks stay as
they are, other tags and those of groups become tags from 2³⁰, and collective calls have tags from
2³¹. What depends on the times of a run (``test``), and what GOAL cannot express (priorities,
dependencies between ranks), is refused, or with ``lossy`` left out.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from eastwest import core
from eastwest.account import Account
from eastwest.errors import InputError
from eastwest.files import is_folder, sync_file
from eastwest.partial import Partial
from eastwest.traces.mpi import ti
from eastwest.traces.mpi.goal import (
    ANY,
    COMPUTE,
    COUNTS,
    HEAD,
    MAGIC,
    MOST_NS,
    RECEIVE,
    SEND,
    SPAN,
    START,
)
from eastwest.traces.mpi.ranks import FLOPS_PER_S

#: Forms of a schedule, with their descriptions.
FORMS = {
    "goal": "GOAL schedule as text, for txt2bin of LogGOPSim",
    "goal-binary": "GOAL schedule in the binary form, for LogGOPSim",
}
#: First tag of messages of groups and of tags that GOAL lacks; first tag of collective calls.
_OTHER_TAGS, _COLLECTIVE_TAGS = 1 << 30, 1 << 31
_MOST_OTHER_TAGS = 1 << 20
#: Maximum number of streams of messages (source, destination, tag) whose largest size is known.
_MOST_STREAMS = 1_000_000
#: Largest number of dependencies between two steps of a collective call without an operation that
#: joins them.
_MOST_DIRECT = 64
_FLUSH = 1 << 20
#: Fields of an operation in the binary form, in the order of ``goal.OPERATION``.
_FIELDS = np.dtype(
    [
        ("waits", "<u4"), ("kind", "u1"), ("peer", "<u4"), ("size", "<u8"), ("tag", "<u4"),
        ("processor", "u1"), ("interface", "u1"), ("ends", "<u4"), ("first", "<u4"),
        ("starts", "<u4"), ("second", "<u4"),
    ]
)  # fmt: skip

#: Dependency: twice the number of an operation, plus 1 if its start is sufficient.
Need = int


@dataclass
class Exported:
    """Result of an export: number of ranks and operations, and the account."""

    ranks: int
    operations: int
    account: Account


def export(
    folder: Path,
    out: Path,
    form: str = "goal",
    *,
    collectives: Sequence[tuple[str, str]] = (),
    flops_per_s: float = FLOPS_PER_S,
    lossy: bool = False,
) -> Exported:
    """Write the program in the rank files of ``folder`` as a GOAL schedule to the file ``out``.

    ``form`` is a key of ``FORMS``; ``collectives`` has calls and the names of their algorithms, as
    in scenarios. Raises ``InputError`` if a run would refuse the program, or, unless ``lossy``, if
    GOAL cannot express a record.
    """
    files = _files(folder)
    account = Account(lossy=lossy)

    def pass_to(each: Any) -> None:
        try:
            core.mpi_nodes(files, collectives, each)
        except ValueError as error:
            raise InputError(f"{folder}: {error}") from None

    survey = _Survey()
    pass_to(survey)
    if not out.parent.is_dir() or is_folder(out):
        raise InputError(f"{out}: name a file in an existing folder")
    with Partial.file(out.parent) as partial:
        with partial.path.open("r+b") as file:
            sink = (_Text if form == "goal" else _Binary)(file, len(files))
            writer = _Writer(sink, survey, account, [name for name, _ in files], flops_per_s)
            pass_to(writer)
            sink.move_to(len(files))
        sync_file(partial.path)
        partial.path.replace(out)
    return Exported(len(files), sink.operations, account)


def _files(folder: Path) -> list[tuple[str, Path]]:
    """Return the name and path of each rank's file, in the order of ranks."""
    if not is_folder(folder):
        raise InputError(
            f"{folder}: is not a folder with a file for each rank, which eastwest trace import "
            "makes"
        )
    found = {rank: path for path in folder.iterdir() if (rank := ti.rank_of(path.name)) is not None}
    missing = next((rank for rank in range(len(found)) if rank not in found), None)
    if not found or missing is not None:
        raise InputError(f"{folder}: has no file for rank {missing or 0}")
    return [(found[rank].name, found[rank]) for rank in range(len(found))]


class _Survey:
    """First pass over a program: facts of all ranks that the operations of each rank need."""

    def __init__(self) -> None:
        self.groups = 1
        #: Largest number of lanes of a collective call: independent sequences of steps.
        self.lanes = 1
        #: Whether each message is one of a send in the group of all ranks, with a tag of GOAL.
        self.plain = True
        #: Largest message by source, destination, group, collective call (0: none) and tag; None if
        #: there are too many streams.
        self._largest: dict[tuple[int, int, int, int, int], int] | None = {}

    def __call__(
        self, rank: int, is_graph: bool, needs: Any, stream: Any, priority: int, group: int,
        call: str, arguments: Any,
    ) -> None:  # fmt: skip
        self.groups = max(self.groups, group + 1)
        if call == "send":
            to, tag, size, _ = arguments
            self.plain = self.plain and group == 0 and 0 <= tag < ANY
            self._sent((rank, to, group, 0, tag), size)
        elif call == "collective":
            number, _, lanes, *_ = arguments
            self.plain = False
            self.lanes = max(self.lanes, len(lanes))
            for lane, steps in enumerate(lanes):
                for _, sends in steps:
                    for to, size in sends:
                        self._sent((rank, to, group, number, lane), size)

    def _sent(self, stream: tuple[int, int, int, int, int], size: int) -> None:
        if self._largest is not None:
            self._largest[stream] = max(size, self._largest.get(stream, 0))
            if len(self._largest) > _MOST_STREAMS:
                self._largest = None

    def largest(self, stream: tuple[int, int, int, int, int]) -> int | None:
        """Return the size of the largest message of a stream; None if it is not known."""
        return None if self._largest is None else self._largest.get(stream)


@dataclass
class _Request:
    """Open request of a non-blocking call: its ranks and tag (None: any), and what ends it."""

    group: int
    source: int | None
    target: int | None
    tag: int | None
    ends: list[Need]
    #: Name of the collective call; None for a message.
    call: str | None = None


class _Writer:
    """Second pass over a program: turns its records into operations."""

    def __init__(
        self,
        sink: _Sink,
        survey: _Survey,
        account: Account,
        names: list[str],
        flops_per_s: float,
    ) -> None:
        self._sink = sink
        self._survey = survey
        self._account = account
        self._names = names
        self._ns_per_flop = 1e9 / flops_per_s
        self._rank = -1
        #: Tags of messages in groups, and of messages whose tags GOAL does not have.
        self._tags: dict[tuple[int, int], int] = {}

    def __call__(
        self, rank: int, is_graph: bool, needs: Any, stream: int | None, priority: int, group: int,
        call: str, arguments: Any,
    ) -> None:  # fmt: skip
        if rank != self._rank:
            self._sink.move_to(rank)
            self._rank = rank
            #: Node that is written, from 0.
            self._node = -1
            #: Of a graph: what its nodes wait for that wait for the start and for the end of each
            #: node; one number stands for an operation.
            self._nodes: list[int | tuple[list[Need], list[Need]]] = []
            #: Of a graph: the operation of the last waitall, or −1, and all operations after it for
            #: whose ends no operation waits.
            self._fence = -1
            self._loose: dict[int, None] = {}
            #: Of a sequence: what the next record waits for, and its open requests.
            self._last: list[Need] = []
            self._open: list[_Request] = []
        self._node += 1
        self._group, self._is_graph = group, is_graph
        if is_graph:
            self._of_graph(self._resolved(needs), stream, priority, call, arguments)
        else:
            self._of_sequence(call, arguments)

    def _change(self, reason: str, then: str) -> None:
        """Raise ``InputError`` for a record that GOAL cannot express; with ``lossy``, count it."""
        self._account.change(self._names[self._rank], 0, reason, then, f"record {self._node}")

    def _resolved(self, needs: list[tuple[int, int, bool]]) -> list[Need]:
        """Return the operations for which a node of a graph waits."""
        found: dict[Need, None] = {}
        for rank, node, start in needs:
            if rank != self._rank:
                reason = "node that waits for a node of another rank"
                self._change(reason, "it does not wait for it")
                continue
            place = self._nodes[node]
            parts = [2 * place + start] if isinstance(place, int) else place[0 if start else 1]
            found.update(dict.fromkeys(part for part in parts if part >> 1 >= self._fence))
        return list(found) if found or self._fence < 0 else [2 * self._fence]

    def _add(
        self, kind: int, size: int, peer: int, tag: int, processor: int, needs: list[Need]
    ) -> int:
        """Write an operation and return its number."""
        operation = self._sink.add(kind, size, peer, tag, processor, needs)
        if self._is_graph:
            for need in needs:
                if need % 2 == 0:
                    self._loose.pop(need >> 1, None)
            self._loose[operation] = None
        return operation

    def _of_graph(
        self, needs: list[Need], stream: int | None, priority: int, call: str, arguments: Any
    ) -> None:
        if priority:
            self._change("node with a priority", "its priority is left out")
        if call in {"compute", "sleep"}:
            self._nodes.append(self._compute(needs, call, arguments[0], stream or 0))
            return
        if stream is not None:
            then = "it occupies its processor only for its overheads"
            self._change("message or call that occupies a stream until its end", then)
        if call == "waitall":
            ends = [2 * operation for operation in self._loose]
            self._fence = self._add(COMPUTE, 0, 0, 0, 0, ends or needs)
            self._nodes.append(self._fence)
        elif call == "send":
            self._nodes.append(self._send(needs, *arguments[:3]))
        elif call == "recv":
            self._nodes.append(self._receive(needs, *arguments[:3]))
        elif call == "collective":
            number, _, lanes, flops, _ = arguments
            self._nodes.append(self._collective(needs, number, lanes, flops))
        else:
            self._nodes.append((needs, needs))

    def _of_sequence(self, call: str, arguments: Any) -> None:
        last = self._last
        if call in {"compute", "sleep"}:
            if arguments[0] > 0:
                self._last = [2 * self._compute(last, call, arguments[0], 0)]
        elif call in {"send", "recv"}:
            peer, tag, size, blocking = arguments
            act = self._send if call == "send" else self._receive
            operation = act(last, peer, tag, size)
            self._last = [2 * operation + (not blocking)]
            if not blocking:
                source, target = (self._rank, peer) if call == "send" else (peer, self._rank)
                self._open.append(_Request(self._group, source, target, tag, [2 * operation]))
        elif call == "collective":
            number, name, lanes, flops, blocking = arguments
            starts, ends = self._collective(last, number, lanes, flops)
            self._last = ends if blocking else starts
            if not blocking:
                self._open.append(_Request(self._group, None, None, None, ends, name))
        elif call == "wait":
            self._wait(*arguments)
        elif call == "waitall":
            ended = [need for request in self._open for need in request.ends]
            self._last = list(dict.fromkeys([*last, *ended]))
            self._open = []
        elif call == "test":
            then = "the request stays open until a wait finds it"
            self._change("test, whose outcome depends on the times of a run", then)

    def _wait(
        self, source: int | None, target: int | None, tag: int | None, call: str | None
    ) -> None:
        """Make the next record wait for the first open request that fits, if there is one."""
        for at, request in enumerate(self._open):
            # a wait for a message without a group finds the messages of all groups
            in_any = call is None and self._group == 0
            if request.call != call or not (in_any or request.group == self._group):
                continue
            wanted = (source, target, tag)
            are = (request.source, request.target, request.tag)
            pairs = list(zip(wanted, are, strict=True))
            if any(None not in pair and pair[0] != pair[1] for pair in pairs):
                continue
            if any(want is not None and is_ is None for want, is_ in pairs):
                self._change(
                    "wait that names the rank or tag of a receive from any rank or with any tag",
                    "it waits for the first receive that can have matched",
                )
            self._last = list(dict.fromkeys([*self._last, *request.ends]))
            del self._open[at]
            return

    def _compute(self, needs: list[Need], call: str, amount: float, stream: int) -> int:
        """Write computing or a sleep; return its operation."""
        if call == "sleep":
            self._note("sleep", "it is computing")
        exact = amount * (1e9 if call == "sleep" else self._ns_per_flop)
        if exact > MOST_NS:
            raise InputError(
                f"{self._names[self._rank]}: record {self._node} computes {exact:.3g} ns; allowed: "
                f"0 to {MOST_NS:,}"
            )
        size = round(exact)
        if abs(exact - size) > 1e-6 * max(exact, 1.0):
            self._note("computing of a part of a nanosecond", "it is rounded")
        if stream > 255:
            raise InputError(
                f"{self._names[self._rank]}: record {self._node} is on stream {stream}; GOAL has "
                "processors 0 to 255"
            )
        return self._add(COMPUTE, size, 0, 0, stream, needs)

    def _note(self, reason: str, then: str) -> None:
        found = f"record {self._node}"
        self._account.note(self._names[self._rank], 0, reason, found, consequence=then)

    def _send(self, needs: list[Need], to: int, tag: int, size: int) -> int:
        return self._add(SEND, size, to, self._tag(tag), 0, needs)

    def _receive(
        self, needs: list[Need], source: int | None, tag: int | None, most: int | None
    ) -> int:
        """Write a receive. Its size is that of the largest message that it can match, if known."""
        if tag is None and not self._survey.plain:
            raise InputError(
                f"{self._names[self._rank]}: record {self._node} receives any tag, but the program "
                "has groups, collective calls or tags that GOAL does not have"
            )
        size = most
        if source is not None and tag is not None:
            largest = self._survey.largest((source, self._rank, self._group, 0, tag))
            if largest is not None:
                size = largest if most is None else min(most, largest)
        if size is None:
            self._note("receive whose size is not known", "its size is 0 bytes")
        own = ANY if tag is None else self._tag(tag)
        return self._add(RECEIVE, size or 0, ANY if source is None else source, own, 0, needs)

    def _tag(self, tag: int) -> int:
        """Return the tag of a send or receive in the current group."""
        if self._group == 0 and 0 <= tag < (ANY if self._survey.plain else _OTHER_TAGS):
            return tag
        if len(self._tags) >= _MOST_OTHER_TAGS:
            raise InputError(
                f"{self._names[self._rank]}: the program has more than {_MOST_OTHER_TAGS:,} tags "
                "in groups, or tags that GOAL does not have"
            )
        return self._tags.setdefault((self._group, tag), _OTHER_TAGS + len(self._tags))

    def _collective(
        self, needs: list[Need], number: int, lanes: Any, flops: float
    ) -> tuple[list[Need], list[Need]]:
        """Write a collective call; return what waits for its start, and for its end, waits for."""
        starts: list[Need] = []
        ends: list[Need] = []
        for lane, steps in enumerate(lanes):
            first, last = self._lane(needs, number, lane, steps)
            starts += first
            ends += last
        # A call without messages starts and ends when its dependencies have ended.
        last = list(dict.fromkeys(ends)) or needs
        if flops > 0:
            if self._is_graph:
                self._note("operations of a reduction in a graph", "they occupy processor 0")
            operation = self._compute(last, "compute", flops, 0)
            starts = starts or [2 * operation + 1]
            last = [2 * operation]
        return starts or needs, last

    def _lane(
        self, needs: list[Need], number: int, lane: int, steps: Any
    ) -> tuple[list[Need], list[Need]]:
        """Write a lane of a collective call; return its first starts and last ends, if any."""
        survey, group = self._survey, self._group
        place = (number * survey.groups + group) * survey.lanes + lane
        tag = _COLLECTIVE_TAGS + place % (_COLLECTIVE_TAGS - 1)
        starts: list[Need] = []
        last = needs
        for sources, sends in steps:
            if len(last) > 1 and len(last) * (len(sources) + len(sends)) > _MOST_DIRECT:
                last = [2 * self._add(COMPUTE, 0, 0, 0, 0, last)]
            step = []
            for source in sources:
                size = survey.largest((source, self._rank, group, number, lane))
                step.append(self._add(RECEIVE, size or 0, source, tag, 0, last))
            for to, size in sends:
                step.append(self._add(SEND, size, to, tag, 0, last))
            if step:
                starts = starts or [2 * each + 1 for each in step]
                last = [2 * each for each in step]
        return starts, last if starts else []


class _Sink:
    """File to which the operations of the ranks are written in turn."""

    def __init__(self, file: IO[bytes], ranks: int) -> None:
        self._file = file
        self._ranks = ranks
        #: Next rank to begin; the rank before it is being written.
        self._next = 0
        #: Number of operations of all ranks.
        self.operations = 0

    def move_to(self, rank: int) -> None:
        """End the current rank, and begin all ranks up to ``rank``, which may be their number."""
        while self._next <= rank:
            if self._next > 0:
                self._end()
            if self._next == self._ranks:
                self._finish()
            else:
                self._begin(self._next)
            self._count = 0
            self._next += 1

    def add(
        self, kind: int, size: int, peer: int, tag: int, processor: int, needs: list[Need]
    ) -> int:
        """Add an operation of the current rank and return its number, from 0."""
        self._put(self._count, kind, size, peer, tag, processor, needs)
        self._count += 1
        self.operations += 1
        return self._count - 1

    def _begin(self, rank: int) -> None:
        raise NotImplementedError

    def _put(
        self, number: int, kind: int, size: int, peer: int, tag: int, processor: int,
        needs: list[Need],
    ) -> None:  # fmt: skip
        raise NotImplementedError

    def _end(self) -> None:
        raise NotImplementedError

    def _finish(self) -> None:
        raise NotImplementedError


class _Text(_Sink):
    """Schedule as text: each operation, and then its dependencies on earlier operations."""

    def __init__(self, file: IO[bytes], ranks: int) -> None:
        super().__init__(file, ranks)
        self._lines = [f"num_ranks {ranks}\n"]
        self._held = 0

    def _begin(self, rank: int) -> None:
        self._lines.append(f"rank {rank} {{\n")

    def _put(
        self, number: int, kind: int, size: int, peer: int, tag: int, processor: int,
        needs: list[Need],
    ) -> None:  # fmt: skip
        cpu = f" cpu {processor}" if processor else ""
        if kind == COMPUTE:
            line = f"l{number}: calc {size}{cpu}\n"
        else:
            call, way = ("send", "to") if kind == SEND else ("recv", "from")
            ends = ["-1" if each == ANY else str(each) for each in (peer, tag)]
            line = f"l{number}: {call} {size}b {way} {ends[0]} tag {ends[1]}{cpu}\n"
        waits = [f"l{number} {'i' * (n & 1)}requires l{n >> 1}\n" for n in needs]
        self._lines += [line, *waits]
        self._held += len(line) + 32 * len(waits)
        if self._held > _FLUSH:
            self._flush()

    def _flush(self) -> None:
        self._file.write("".join(self._lines).encode())
        self._lines, self._held = [], 0

    def _end(self) -> None:
        self._lines.append("}\n")

    def _finish(self) -> None:
        self._flush()


class _Binary(_Sink):
    """Schedule in the binary form: operations of a rank, then those that wait for each of them."""

    def __init__(self, file: IO[bytes], ranks: int) -> None:
        super().__init__(file, ranks)
        file.write(bytes(START.size + HEAD.size + SPAN.size * ranks))
        self._spans: list[tuple[int, int]] = []
        self._largest = 0

    def _begin(self, rank: int) -> None:
        self._operations: list[tuple[int, ...]] = []
        self._parts: list[np.ndarray[Any, Any]] = []
        self._waiting, self._needs = array("I"), array("I")

    def _put(
        self, number: int, kind: int, size: int, peer: int, tag: int, processor: int,
        needs: list[Need],
    ) -> None:  # fmt: skip
        fields = (len(needs), kind, peer, size, tag, processor, 0, 0, 0, 0, 0)
        self._operations.append(fields)
        self._waiting.extend([number] * len(needs))
        self._needs.extend(needs)
        self._largest = max(self._largest, processor)
        if len(self._operations) >= _FLUSH >> 5:
            self._pack()

    def _pack(self) -> None:
        self._parts.append(np.array(self._operations, _FIELDS))
        self._operations = []

    def _end(self) -> None:
        self._pack()
        table = np.concatenate(self._parts)
        waiting, needs = np.array(self._waiting, "<u4"), np.array(self._needs, "<u4")
        counts = np.bincount(needs, minlength=2 * len(table)).astype("<u4")
        places = np.cumsum(counts, dtype=np.uint64) - counts
        table["ends"], table["starts"] = counts[0::2], counts[1::2]
        table["first"], table["second"] = places[0::2], places[1::2]
        begun = np.flatnonzero(table["waits"] == 0).astype("<u4")
        followers = waiting[np.argsort(needs, kind="stable")]
        counted = COUNTS.pack(len(table), len(begun))
        first = self._file.tell() - START.size
        for part in (counted, begun.tobytes(), table.tobytes(), followers.tobytes()):
            self._file.write(part)
        self._spans.append((first, self._file.tell() - START.size))

    def _finish(self) -> None:
        self._file.seek(0)
        self._file.write(START.pack(MAGIC) + HEAD.pack(self._ranks, self._largest, 0))
        self._file.write(b"".join(SPAN.pack(*span) for span in self._spans))
