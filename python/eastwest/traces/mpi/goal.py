"""GOAL schedules: sends, receives and computing of ranks with dependencies, as text or binary.

GOAL is the *Group Operation Assembly Language* (Hoefler, Siebert, Lumsdaine, *Group Operation
Assembly Language – A Flexible Way to Express Collective Communication*, ICPP 2009). The text is
that which ``txt2bin`` of LogGOPSim reads, the binary form that which LogGOPSim reads; a file has
all ranks. The operations of a rank become the nodes of a graph, in the order of the file, except
that an operation comes after all operations for which it waits. Computing of *n* ns has *n*
operations, and its processor becomes a stream.

Differences from LogGOPSim: a label may be used before the operation that it names; an operation on
another processor waits until computing has ended, where LogGOPSim lets it begin at once.
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from eastwest.errors import InputError
from eastwest.traces.mpi.ranks import BYTE, MOST_RANKS, RankFiles
from eastwest.traces.source import Source
from eastwest.units import clean

#: Kinds of operations, with their numbers in the binary form.
SEND, RECEIVE, COMPUTE = 1, 2, 3
#: Number that stands for any rank or any tag.
ANY = 0xFFFF_FFFF
#: Number at the beginning of a binary file.
MAGIC = 4223
#: Number at the beginning of a binary file that LogGOPSim has changed (``--save-mem``).
_USED = 2342
#: Binary form: number at the beginning; number of ranks, largest processor, largest interface;
#: first and last byte of a rank; numbers of its operations and of those that wait for nothing.
START, HEAD, SPAN, COUNTS = (struct.Struct(form) for form in ("<Q", "<IBB", "<QQ", "<II"))
#: Binary form of an operation: number of operations for which it waits, kind, other rank, size,
#: tag, processor, interface; number and first place of the operations that wait for its end, and
#: of those that wait for its start.
OPERATION = struct.Struct("<IBIQIBBIIII")
_NUMBER = struct.Struct("<I")
_LONGEST_LINE = 1 << 20
_BLOCK = 1 << 16
#: Limits of a file: ns of computing, operations, dependencies of a rank, bytes of a message.
MOST_NS = 10**15
_MOST_OPERATIONS = 20_000_000
_MOST_NEEDS = 100_000_000
_MOST_BYTES = 10**15
#: Maximum number of operations that a message about a loop names.
_MOST_NAMED = 6

_LABEL = rb"([A-Za-z][A-Za-z0-9_]{0,254})"
_COMPUTING = re.compile(rb"(?:%b\s*:\s*)?calc\s*(\d{1,20})(?:\s*cpu\s*(\d{1,20}))?" % _LABEL)
_MESSAGE = re.compile(
    rb"(?:%b\s*:\s*)?(send|recv)\s*(\d{1,20})\s*b\s*(to|from)\s*(-1|\d{1,20})"
    rb"(?:\s*tag\s*(-1|\d{1,20}))?(?:\s*cpu\s*(\d{1,20}))?(?:\s*nic\s*(\d{1,20}))?" % _LABEL
)
_NEED = re.compile(rb"%b\s+(i?)requires\s+%b" % (_LABEL, _LABEL))
_SHAPE = re.compile(rb"(?:num_ranks\s*(\d{1,20})|rank\s*(\d{1,20})\s*\{|\})\s*")
_COMMENT = re.compile(rb"//.*|/\*")
#: Text before the first word of a file: white space and comments.
_BEFORE = re.compile(rb"(?:\s|//[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*")


def looks_like(start: bytes) -> bool:
    """Whether the first bytes of a file are those of a GOAL schedule, as text or binary."""
    if len(start) >= START.size and START.unpack_from(start)[0] in {MAGIC, _USED}:
        return True
    before = _BEFORE.match(start)
    return before is not None and start.startswith(b"num_ranks", before.end())


def read(source: Source, into: RankFiles) -> int:
    """Read a GOAL schedule, write the files of all ranks, and return the number of ranks."""
    first = source.peek(START.size)
    binary = len(first) == START.size and START.unpack(first)[0] in {MAGIC, _USED}
    return _Binary(source, into).read() if binary else _Text(source, into).read()


@dataclass
class _Rank:
    """Operations of one rank in the order of the file; arrays have an element per operation."""

    number: int
    kinds: bytearray = field(default_factory=bytearray)
    #: Bytes of a message, or ns of computing.
    sizes: array[int] = field(default_factory=lambda: array("Q"))
    peers: array[int] = field(default_factory=lambda: array("I"))
    tags: array[int] = field(default_factory=lambda: array("I"))
    processors: bytearray = field(default_factory=bytearray)
    #: An element per dependency: the operation that waits, and twice the operation for which it
    #: waits, plus 1 if it waits for the start and not for the end.
    waiting: array[int] = field(default_factory=lambda: array("I"))
    needs: array[int] = field(default_factory=lambda: array("I"))

    def add(self, kind: int, size: int, peer: int, tag: int, processor: int) -> None:
        self.kinds.append(kind)
        self.sizes.append(size)
        self.peers.append(peer)
        self.tags.append(tag)
        self.processors.append(processor)

    def wait(self, waiting: int, need: int, start: bool) -> None:
        self.waiting.append(waiting)
        self.needs.append(2 * need + start)


class _Reading:
    """State while a schedule is read."""

    def __init__(self, source: Source, into: RankFiles) -> None:
        self.source = source
        self.into = into
        self.ranks = 0
        #: Number of the current line; 0 in a binary file.
        self.line = 0

    def fail(self, what: str) -> InputError:
        place = f"{self.source.name}:{self.line}" if self.line else self.source.name
        return InputError(f"{place}: {what}")

    def count(self, ranks: int) -> None:
        if not 1 <= ranks <= MOST_RANKS:
            raise self.fail(f"has {ranks} ranks; allowed: 1 to {MOST_RANKS}")
        self.ranks = ranks

    def add(
        self, rank: _Rank, kind: int, size: int, peer: int, tag: int, processor: int, interface: int
    ) -> None:
        """Check an operation and add it to its rank."""
        own = self.into
        own.records += 1
        if own.records > _MOST_OPERATIONS:
            raise self.fail(f"has more than {_MOST_OPERATIONS:,} operations, the maximum")
        if kind == COMPUTE:
            peer = tag = 0
            if size > MOST_NS:
                raise self.fail(f"computing of {size:,} ns; allowed: 0 to {MOST_NS:,}")
        else:
            self._message(kind, size, peer, tag)
            if processor:
                reason = "message of a processor other than 0"
                then = "its overheads are those of processor 0"
                own.account.note(self.source.name, self.line, reason, str(processor), 1, then)
        if processor > 255:
            raise self.fail(f"the processor is {processor}; allowed: 0 to 255")
        if interface:
            reason = "operation of a network interface other than 0"
            then = "its interface is left out: a rank has one"
            own.account.change(self.source.name, self.line, reason, then, f"nic {interface}")
        rank.add(kind, size, peer, tag, processor)

    def _message(self, kind: int, size: int, peer: int, tag: int) -> None:
        if size > _MOST_BYTES:
            raise self.fail(f"a message of {size:,} bytes; allowed: 0 to {_MOST_BYTES:,}")
        if peer >= self.ranks and (kind == SEND or peer != ANY):
            raise self.fail(f"a message with rank {peer}; allowed: 0 to {self.ranks - 1}")
        if tag > ANY or (kind == SEND and tag == ANY):
            raise self.fail(f"a message with tag {tag}; allowed: 0 to {ANY - 1}")

    def write(self, rank: _Rank, labels: dict[bytes, int] | None = None) -> None:
        """Write the operations of a rank as a graph; ``labels`` name them in messages."""
        add, own = self.into.add, str(rank.number)
        add(rank.number, [own, "graph"])
        first, needs = _grouped(rank)
        order = _order(rank, first, needs)
        if isinstance(order, list):
            raise self.fail(_loop(rank.number, order, labels))
        place: array[int] | range = range(len(rank.kinds))
        if isinstance(order, array):
            place = array("I", bytes(4 * len(order)))
            for at, operation in enumerate(order):
                place[operation] = at
        for operation in order:
            words = _words(own, rank, operation)
            after = needs[first[operation] : first[operation + 1]]
            if after:
                words.append("after")
                words += [f"~{place[n >> 1]}" if n & 1 else str(place[n >> 1]) for n in after]
            if rank.kinds[operation] == COMPUTE and rank.processors[operation]:
                words += ["on", str(rank.processors[operation])]
            add(rank.number, words)


def _words(own: str, rank: _Rank, operation: int) -> list[str]:
    """Return the rank, the call and the arguments of an operation as words of a line."""
    kind, size = rank.kinds[operation], str(rank.sizes[operation])
    if kind == COMPUTE:
        return [own, "compute", size]
    peer, tag = (
        "-1" if number == ANY else str(number)
        for number in (rank.peers[operation], rank.tags[operation])
    )
    return [own, "send" if kind == SEND else "recv", peer, tag, size, str(BYTE)]


def _grouped(rank: _Rank) -> tuple[array[int], array[int]]:
    """Return the dependencies of a rank, grouped by the operation that waits.

    The first array has the place of the first dependency of each operation in the second array,
    and at its end the number of all dependencies.
    """
    waiting = np.frombuffer(rank.waiting, np.uint32) if rank.waiting else np.empty(0, np.uint32)
    needs = np.frombuffer(rank.needs, np.uint32) if rank.needs else np.empty(0, np.uint32)
    first = np.zeros(len(rank.kinds) + 1, np.uint32)
    first[1:] = np.cumsum(np.bincount(waiting, minlength=len(rank.kinds)))
    grouped = needs[np.argsort(waiting, kind="stable")]
    return array("I", first.tobytes()), array("I", grouped.tobytes())


def _order(rank: _Rank, first: array[int], needs: array[int]) -> range | array[int] | list[int]:
    """Return all operations in an order in which each comes after those for which it waits.

    Operations otherwise keep the order of the file: a ``range`` if all do, else an array. If
    dependencies form a loop, the result is a list of the operations of a loop.
    """
    count = len(rank.kinds)
    if all(need >> 1 < waits for need, waits in zip(rank.needs, rank.waiting, strict=True)):
        return range(count)
    order, seen, at = array("I"), bytearray(count), array("I", first)
    for root in range(count):
        path = [] if seen[root] else [root]
        seen[root] = seen[root] or 1
        while path:
            operation = path[-1]
            if at[operation] == first[operation + 1]:
                seen[operation] = 2
                order.append(path.pop())
                continue
            need = needs[at[operation]] >> 1
            at[operation] += 1
            if seen[need] == 0:
                seen[need] = 1
                path.append(need)
            elif seen[need] == 1:
                return path[path.index(need) :]
    return order


def _loop(rank: int, loop: list[int], labels: dict[bytes, int] | None) -> str:
    """Return the message about operations of a rank that wait for each other in a loop."""
    wanted = set(loop[:_MOST_NAMED])
    names = {number: f"operation {number}" for number in wanted}
    for label, number in (labels or {}).items():
        if number in wanted:
            names[number] = clean(label.decode(), 40)
    named = [names[number] for number in loop[:_MOST_NAMED]]
    named += ["…"] if len(loop) > _MOST_NAMED else []
    return f"rank {rank}: dependencies form a loop: {' requires '.join([*named, named[0]])}"


class _Text(_Reading):
    """Reader of the text form."""

    def read(self) -> int:
        self._rank: _Rank | None = None
        self._seen = bytearray()
        #: Whether a comment has begun and not ended.
        self._commented = False
        for line, raw in self.source.lines(_LONGEST_LINE):
            self.line = line
            text = self._uncommented(raw) if b"/" in raw or self._commented else raw
            text = text.strip()
            if text:
                self._statement(text)
        if self.source.cut:
            raise self.fail(f"is damaged or truncated: {self.source.cut}")
        if self._rank is not None or self._commented:
            within = f"the block of rank {self._rank.number}" if self._rank else "a comment"
            raise self.fail(f"the file ends within {within}: it is truncated, or lacks an end")
        self.line = 0
        if not self.ranks:
            raise self.fail("has no line num_ranks, as num_ranks 4")
        missing = self._seen.find(0)
        if missing >= 0:
            raise self.fail(f"has no block of rank {missing}, but num_ranks is {self.ranks}")
        return self.ranks

    def _uncommented(self, text: bytes) -> bytes:
        """Return a line without comments; a comment between ``/*`` and ``*/`` may have lines."""
        parts, at = [], 0
        while at < len(text):
            if self._commented:
                end = text.find(b"*/", at)
                self._commented = end < 0
                at = end + 2 if end >= 0 else len(text)
                continue
            begin = _COMMENT.search(text, at)
            parts.append(text[at : begin.start() if begin else len(text)])
            self._commented = begin is not None and begin[0] == b"/*"
            at = begin.end() if begin else len(text)
        return b" ".join(parts)

    def _statement(self, text: bytes) -> None:
        """Read a line without comments and without white space at its ends."""
        at = 0
        while at < len(text):
            if self._rank is not None and self._operation(self._rank, text, at):
                return
            shape = _SHAPE.match(text, at)
            if shape is None:
                found = clean(text[at : at + 100].decode(errors="replace"), 60)
                raise self.fail(f"found {found!r}, {self._allowed()}")
            at = shape.end()
            if shape[1]:
                if self.ranks:
                    raise self.fail("num_ranks is given twice")
                self.count(int(shape[1]))
                self._seen = bytearray(self.ranks)
            elif shape[2]:
                self._begin(int(shape[2]))
            else:
                self._end()

    def _operation(self, rank: _Rank, text: bytes, at: int) -> bool:
        """Read an operation or dependency from the place ``at`` of a line; whether it is one."""
        if message := _MESSAGE.fullmatch(text, at):
            self._message_of(rank, message)
        elif computing := _COMPUTING.fullmatch(text, at):
            label, size, processor = computing.groups()
            self._name(label)
            self.add(rank, COMPUTE, int(size), 0, 0, int(processor or 0), 0)
        elif need := _NEED.fullmatch(text, at):
            self._need(rank, need)
        else:
            return False
        return True

    def _allowed(self) -> str:
        if self._rank is None:
            return "expected num_ranks, rank NUMBER { or a comment"
        return (
            "expected an operation (calc NS, send BYTESb to RANK, recv BYTESb from RANK), a "
            "dependency (LABEL requires LABEL, LABEL irequires LABEL) or }"
        )

    def _begin(self, number: int) -> None:
        if not self.ranks:
            raise self.fail("the block of a rank is before the line num_ranks")
        if self._rank is not None:
            raise self.fail(f"a block begins within the block of rank {self._rank.number}")
        if number >= self.ranks or self._seen[number]:
            what = "is given twice" if number < self.ranks else "does not exist"
            raise self.fail(f"rank {number} {what}; allowed: 0 to {self.ranks - 1}, each once")
        self._seen[number] = 1
        self._rank = _Rank(number)
        self._labels: dict[bytes, int] = {}
        #: Line, two labels and ``i`` or nothing of dependencies on labels of later lines.
        self._later: list[tuple[int, bytes, bytes, bytes]] = []

    def _end(self) -> None:
        rank, labels = self._rank, self._labels if self._rank else {}
        if rank is None:
            raise self.fail("found } outside of a block")
        for line, waiting, need, start in self._later:
            unknown = next((each for each in (waiting, need) if each not in labels), None)
            if unknown is not None:
                self.line = line
                name = clean(unknown.decode(), 60)
                raise self.fail(f"rank {rank.number} has no operation with the label {name}")
            rank.wait(labels[waiting], labels[need], bool(start))
        self.write(rank, labels)
        self._rank = None

    def _name(self, label: bytes | None) -> None:
        """Remember the label of the operation that is added next."""
        if label is None or self._rank is None:
            return
        if label in self._labels:
            raise self.fail(f"the label {clean(label.decode(), 60)} is given twice")
        self._labels[label] = len(self._rank.kinds)

    def _message_of(self, rank: _Rank, message: re.Match[bytes]) -> None:
        label, call, size, way, peer, tag, processor, interface = message.groups()
        if (call == b"send") != (way == b"to"):
            raise self.fail("expected send BYTESb to RANK, or recv BYTESb from RANK")
        kind = SEND if call == b"send" else RECEIVE
        self._name(label)
        peers, tags = (ANY if number == b"-1" else int(number or 0) for number in (peer, tag))
        self.add(rank, kind, int(size), peers, tags, int(processor or 0), int(interface or 0))

    def _need(self, rank: _Rank, need: re.Match[bytes]) -> None:
        waiting, start, needed = need.groups()
        if len(rank.needs) + len(self._later) >= _MOST_NEEDS:
            raise self.fail(f"rank {rank.number} has more than {_MOST_NEEDS:,} dependencies")
        one, other = self._labels.get(waiting), self._labels.get(needed)
        if one is None or other is None:
            self._later.append((self.line, waiting, needed, start))
        else:
            rank.wait(one, other, bool(start))


class _Binary(_Reading):
    """Reader of the binary form."""

    def read(self) -> int:
        (first,) = START.unpack(self._exactly(START.size))
        if first == _USED:
            raise self.fail(
                "was changed by a run of LogGOPSim with --save-mem, which counts its dependencies "
                "down; make it again with txt2bin"
            )
        self.count(HEAD.unpack(self._exactly(HEAD.size))[0])
        ranks = self.ranks
        spans = list(SPAN.iter_unpack(self._exactly(SPAN.size * ranks)))
        self._at = HEAD.size + SPAN.size * ranks
        for number, (begin, end) in enumerate(spans):
            if begin != self._at or end < begin + COUNTS.size:
                raise self.fail(
                    f"rank {number} has bytes {begin:,} to {end:,}, but the bytes before it end "
                    f"at {self._at:,}: the file is damaged"
                )
            self._one(number, end - begin)
            self._at = end
        if self.source.read(1):
            raise self.fail(f"has bytes after those of rank {ranks - 1}: the file is damaged")
        return ranks

    def _one(self, number: int, length: int) -> None:
        """Read and write the operations of a rank, which have ``length`` bytes in the file."""
        count, roots = COUNTS.unpack(self._exactly(COUNTS.size))
        rest, odd = divmod(length - COUNTS.size - 4 * roots - OPERATION.size * count, 4)
        if rest < 0 or odd or rest > _MOST_NEEDS or roots > count:
            raise self.fail(
                f"rank {number} has {length:,} bytes, but {count:,} operations, {roots:,} of them "
                "without dependencies: the file is damaged"
            )
        begun = [start for (start,) in self._each(_NUMBER, roots)]
        rank, waits = _Rank(number), array("I")
        #: Operation, number of operations that wait for its end, and for its start, one by one.
        needed = array("I")
        place = 0
        for operation, values in enumerate(self._each(OPERATION, count)):
            wait, kind, peer, size, tag, processor, interface, ends, first, starts, second = values
            if not SEND <= kind <= COMPUTE:
                raise self.fail(f"rank {number}: operation {operation} has the unknown kind {kind}")
            if (ends and first != place) or (starts and second != place + ends):
                raise self._odd(number, operation)
            self.add(rank, kind, size, peer, tag, processor, interface)
            waits.append(wait)
            if ends or starts:
                needed.extend((operation, ends, starts))
            place += ends + starts
        if place != rest:
            raise self.fail(
                f"rank {number} has {rest:,} dependencies, but its operations name {place:,}: the "
                "file is damaged"
            )
        followers = (follower for (follower,) in self._each(_NUMBER, rest))
        for operation, ends, starts in zip(needed[::3], needed[1::3], needed[2::3], strict=True):
            for at in range(ends + starts):
                follower = next(followers)
                if follower >= count:
                    raise self._odd(number, operation)
                rank.wait(follower, operation, at >= ends)
        self._compare(rank, waits, begun)
        self.write(rank)

    def _compare(self, rank: _Rank, waits: array[int], begun: list[int]) -> None:
        """Check numbers of a rank that follow from its dependencies: the file has them twice.

        ``waits`` has the number of dependencies of each operation, ``begun`` the operations
        without dependencies.
        """
        counted = array("I", bytes(4 * len(waits)))
        for waiting in rank.waiting:
            counted[waiting] += 1
        if counted != waits:
            wrong = next(at for at, wait in enumerate(waits) if counted[at] != wait)
            raise self._odd(rank.number, wrong)
        if sorted(begun) != [at for at, wait in enumerate(waits) if not wait]:
            raise self.fail(
                f"rank {rank.number}: the list of operations without dependencies is wrong: the "
                "file is damaged"
            )

    def _odd(self, number: int, operation: int) -> InputError:
        return self.fail(
            f"rank {number}: the dependencies of operation {operation} contradict each other: the "
            "file is damaged"
        )

    def _each(self, form: struct.Struct, count: int) -> Iterator[tuple[int, ...]]:
        """Yield the values of ``count`` structures of a form."""
        while count > 0:
            part = min(count, _BLOCK)
            yield from form.iter_unpack(self._exactly(form.size * part))
            count -= part

    def _exactly(self, length: int) -> bytes:
        """Return the next ``length`` bytes; raise ``InputError`` at the end of the file."""
        parts = []
        while length > 0:
            part = self.source.read(length)
            if not part:
                why = f": {self.source.cut}" if self.source.cut else ""
                raise self.fail(f"is damaged or truncated: {length:,} bytes are missing{why}")
            parts.append(part)
            length -= len(part)
        return b"".join(parts)
