"""Chakra execution traces (MLCommons): a graph of nodes per rank, in protobuf (``.et``) or JSON.

The nodes of a rank are scheduled: a node begins when all nodes whose data it needs have ended, and
takes its recorded time; communication takes no time. The time between two communications becomes
computing. So two computations that overlap in this schedule count only once, and computation that
overlapped with communication is not distinguished. Sends and receives block.

A collective is replayed if it has a type, a size, and all ranks. Calls of a processor that launch a
collective (``is_cpu_op`` without a size) count as computing. Collectives without a type or size,
and collectives of a process group with only some of the ranks, are refused; with ``lossy`` they are
counted and replaced by their recorded time. The types of nodes and attributes are those of
``et_def.proto`` of Chakra 0.0.4.
"""

from __future__ import annotations

import json
import math
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from eastwest.errors import InputError
from eastwest.traces.mpi.ranks import BYTE, RankFiles
from eastwest.traces.source import Source
from eastwest.units import clean

#: Numbers of the node types in ``et_def.proto``.
_MEMORY, _COMPUTE, _SEND, _RECEIVE, _COLLECTIVE = {2, 3}, 4, 5, 6, 7
_METADATA = 1
#: MPI call of a collective, by ``comm_type``: the position in this tuple.
_COLLECTIVES = (
    "allreduce", "reduce", "allgather", "gather", "scatter", "bcast", "alltoall", "reducescatter",
    "reducescatter", "barrier",
)  # fmt: skip
#: Collectives whose stated size is that of all ranks together: each rank has a part of it.
_PARTED = {"gather", "scatter", "allgather", "alltoall", "reducescatter"}
#: Collectives with a root: the single rank that sends or receives the data of the collective.
_ROOTED = {"reduce", "gather", "scatter", "bcast"}
#: Attributes that name the process group of a collective.
_GROUP_NAMES = (
    "pg_name", "pg_id", "process_group", "group", "group_name", "group_id", "comm_group",
    "comm_id", "communicator",
)  # fmt: skip
#: Attributes that list the ranks of a process group.
_GROUP_RANKS = ("ranks", "pg_ranks", "group_ranks", "comm_ranks", "members")
#: Attributes that state the number of ranks of a process group.
_GROUP_SIZES = ("pg_size", "group_size", "comm_group_size", "world_size")
#: Attribute that lists for each network dimension whether a collective uses it.
_DIMENSIONS = "involved_dim"
#: Text for the report: consequence of leaving out a communication that a replay cannot express.
_AS_TIME = "it is left out: its recorded time is computing, and its bytes are not sent"
_MOST_NODES = 10_000_000
#: Maximum size in bytes of a protobuf message, which has one node.
_MOST_MESSAGE = 16 << 20
_MOST_JSON = 1 << 30


@dataclass
class _Node:
    number: int
    kind: int
    #: Recorded time of the node, in µs.
    micros: float
    #: Numbers of the nodes whose data this node needs.
    needs: list[int]
    #: Attributes by name; values are whole numbers, texts, or lists of whole numbers.
    about: dict[str, Any] = field(default_factory=dict)
    #: Whether the node has control dependencies, which are ignored.
    controlled: bool = False
    #: Whether the file states no time for the node; the node then takes no time.
    timeless: bool = False

    def whole(self, name: str) -> int | None:
        """Return the value of the attribute ``name`` if it is a whole number, else None."""
        value = self.about.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None


@dataclass
class _Rank:
    """State while a file is read; the file has the trace of one rank, or of each rank."""

    name: str
    #: Number of ranks of the whole trace.
    ranks: int
    #: Names of process groups that are not known to have all ranks.
    partial: frozenset[str]
    into: RankFiles

    def note(self, reason: str, consequence: str, found: str = "", rows: int = 1) -> None:
        self.into.account.note(self.name, 0, reason, found, rows, consequence)

    def leave_out(self, reason: str, node: _Node, consequence: str = _AS_TIME) -> None:
        """Report a node that a replay cannot express; with ``lossy``, its recorded time remains.

        Raises ``InputError`` unless ``lossy``. ``reason`` and ``consequence`` are texts for the
        message or the report.
        """
        self.into.account.change(self.name, 0, reason, consequence, f"node {node.number}")


def looks_like(start: bytes, name: str) -> bool:
    """Whether a file is a Chakra trace, from its first bytes ``start`` and its file name."""
    if start.lstrip().startswith(b"{"):
        return b'"workload_graph"' in start
    return name.endswith(".et") and bool(start)


def read(sources: list[Source], ranks: int | None, into: RankFiles) -> int:
    """Read Chakra traces, write the files of all ranks to ``into``; return the number of ranks.

    If ``ranks`` is None, each source is the trace of one rank; otherwise all ``ranks`` ranks
    execute the trace of the only source.
    """
    if ranks is not None and len(sources) > 1:
        raise InputError(
            f"--ranks repeats the trace of one rank, but there are {len(sources)} files: "
            "give one file, or omit --ranks"
        )
    count = ranks or len(sources)
    partial = _partial_groups(sources, count)
    for number, source in enumerate(sources):
        reading = _Rank(source.name, count, partial, into)
        nodes = list(_nodes(source))
        into.records += len(nodes)
        calls = list(_calls(reading, nodes))
        for rank in range(count) if ranks else (number,):
            _write(rank, reading, calls)
    return count


def _nodes(source: Source) -> Iterator[_Node]:
    """Yield the nodes of a Chakra trace in JSON or protobuf.

    Raises ``InputError`` if the file is damaged or truncated.
    """
    yield from _json(source) if source.peek(64).lstrip()[:1] == b"{" else _protobuf(source)
    if source.cut:
        raise InputError(f"{source.name}: is damaged or truncated: {source.cut}")


def _partial_groups(sources: list[Source], count: int) -> frozenset[str]:
    """Return the names of the process groups that are not known to have all ranks.

    ``count`` is the number of ranks. A group has all ranks if the traces of all ranks use it. If
    one trace is executed by several ranks and names several groups, all groups are returned,
    because the trace does not show which of them has all ranks.
    """
    users: dict[str, int] = {}
    for source in sources:
        with Source(source.path, name=source.name) as again:
            groups = {_group(node) for node in _nodes(again) if node.kind == _COLLECTIVE}
        for group in groups - {""}:
            users[group] = users.get(group, 0) + 1
    if len(sources) == 1 and count > 1 and len(users) > 1:
        return frozenset(users)
    return frozenset(group for group, used in users.items() if used < len(sources))


def _group(node: _Node) -> str:
    """Return the name of a collective's process group; empty if the collective names none."""
    named = (node.about.get(name) for name in _GROUP_NAMES)
    return next((str(name) for name in named if isinstance(name, int | str) and name != ""), "")


def _of_some_ranks(reading: _Rank, node: _Node) -> str:
    """Return a text with the reason if a collective may not have all ranks, else an empty text.

    ``node`` is the node of the collective; ``reading`` has the number of all ranks.
    """
    if _group(node) in reading.partial:
        return "a collective of a process group that is not known to have all ranks"
    for name in _GROUP_RANKS:
        listed = node.about.get(name)
        if isinstance(listed, list) and listed and set(listed) != set(range(reading.ranks)):
            return f"a collective that does not have all ranks ({name})"
    for name in _GROUP_SIZES:
        if node.whole(name) not in {None, reading.ranks}:
            return f"a collective that does not have all ranks ({name})"
    dimensions = node.about.get(_DIMENSIONS)
    if isinstance(dimensions, list) and not all(dimensions):
        return "a collective over only some dimensions of the network (involved_dim)"
    return ""


def _write(rank: int, reading: _Rank, calls: list[tuple[float, _Node]]) -> None:
    into = reading.into
    into.put(rank, "init")
    done = 0.0
    for began, node in calls:
        into.compute(rank, (began - done) / 1e6)
        done = began
        _call(rank, reading.ranks, node, into)
    into.put(rank, "finalize")


def _calls(reading: _Rank, nodes: list[_Node]) -> Iterator[tuple[float, _Node]]:
    """Yield (start in µs, node) of each communication, in the order of starts.

    The last item is (end of the last node in µs, node that is no communication). Raises
    ``InputError`` if ids are not unique, or if dependencies form a loop.
    """
    by_number = {node.number: node for node in nodes}
    if len(by_number) < len(nodes):
        (twice, _), *_ = Counter(node.number for node in nodes).most_common(1)
        raise InputError(
            f"{reading.name}: several nodes of the trace have the id {twice}; ids must be unique"
        )
    talking = {node.number for node in nodes if _talks(reading, node)}
    controlled = sum(node.controlled for node in nodes)
    if controlled:
        then = "it waits only for its data dependencies"
        reading.note("node with control dependencies", then, rows=controlled)
    timeless = sum(node.timeless for node in nodes)
    if timeless:
        reading.note("node without a recorded time", "it takes no time", rows=timeless)
    missing = sum(need not in by_number for node in nodes for need in node.needs)
    if missing:
        then = "nodes do not wait for the missing node"
        reading.note("dependency on a node that is not in the file", then, rows=missing)
    needs = {node.number: {need for need in node.needs if need in by_number} for node in nodes}
    needed_by: dict[int, list[int]] = {}
    for number, others in needs.items():
        for other in others:
            needed_by.setdefault(other, []).append(number)
    begins = dict.fromkeys(by_number, 0.0)
    ended: dict[int, float] = {}
    found: list[tuple[float, int, _Node]] = []
    ready = deque(number for number, others in needs.items() if not others)
    while ready:
        number = ready.popleft()
        node, began = by_number[number], begins[number]
        talks = number in talking
        ended[number] = began + (0.0 if talks else node.micros)
        if talks:
            found.append((began, number, node))
        for other in needed_by.get(number, ()):
            begins[other] = max(begins[other], ended[number])
            needs[other].discard(number)
            if not needs[other]:
                ready.append(other)
    if len(ended) < len(by_number):
        stuck = next(number for number in by_number if number not in ended)
        raise InputError(
            f"{reading.name}: node {stuck} can never begin: its dependencies form a loop, or lead "
            "to a loop"
        )
    found.sort(key=lambda each: each[:2])
    yield from ((began, node) for began, _, node in found)
    yield max(ended.values(), default=0.0), _Node(-1, 0, 0.0, [])


def _talks(reading: _Rank, node: _Node) -> bool:
    """Whether a node becomes an MPI call; a node that neither does nor computes is reported."""
    if node.kind == _COMPUTE:
        return False
    if node.kind == _COLLECTIVE:
        return _meets(reading, node)
    if node.kind in {_SEND, _RECEIVE}:
        return _moves(reading, node)
    if node.kind in _MEMORY:
        reading.note("node that loads from or stores to memory", "its time counts as computing")
    elif node.kind == _METADATA:
        reading.note("node of metadata", "its time, if it has any, counts as computing")
    else:
        then = "its recorded time counts as computing"
        reading.leave_out(f"a node of the unknown type {node.kind}", node, then)
    return False


def _meets(reading: _Rank, node: _Node) -> bool:
    """Whether the node of a collective becomes an MPI call; if not, the reason is reported.

    Raises ``InputError`` for a collective that cannot be replayed, unless ``lossy``.
    """
    number, size = node.whole("comm_type"), node.whole("comm_size")
    if number is None and size is None and node.about.get("is_cpu_op"):
        reading.note("call that launches a collective", "its time counts as computing")
        return False
    if number is not None and not 0 <= number < len(_COLLECTIVES):
        reading.leave_out(f"a collective of the unknown type {number}", node)
        return False
    call = _COLLECTIVES[number] if number is not None else ""
    if not call or (size is None and call != "barrier"):
        lacks = "comm_size" if call else "comm_type" if size is not None else "type and size"
        reading.leave_out(f"a collective without {lacks}: its bytes are not known", node)
        return False
    some = _of_some_ranks(reading, node)
    if some:
        reading.leave_out(some, node)
        return False
    if call in _ROOTED and node.whole("root") is None:
        reading.note(f"{call} without a root", "rank 0 is used as its root")
    if call in _PARTED and size is not None and size % reading.ranks:
        what = f"{call}: bytes that are not a multiple of {reading.ranks} ranks"
        reading.note(what, "parts are rounded down")
    return True


def _moves(reading: _Rank, node: _Node) -> bool:
    """Whether a node that sends or receives becomes an MPI call; if not, the reason is reported.

    Raises ``InputError`` for a message that cannot be replayed, unless ``lossy``, and for a rank
    that does not exist.
    """
    other = "comm_dst" if node.kind == _SEND else "comm_src"
    if node.whole(other) is None:
        reading.leave_out(f"a message without {other}: its other rank is not known", node)
        return False
    if not 0 <= (node.whole(other) or 0) < reading.ranks:
        raise InputError(
            f"{reading.name}: node {node.number} communicates with rank "
            f"{node.whole(other)}; allowed: 0 to {reading.ranks - 1}"
        )
    if node.kind == _SEND and node.whole("comm_size") is None:
        reading.leave_out("a send without comm_size: its bytes are not known", node)
        return False
    if node.whole("comm_tag") is None:
        reading.note("message without comm_tag", "its tag is set to 0")
    return True


def _call(rank: int, count: int, node: _Node, into: RankFiles) -> None:
    put, size = into.put, node.whole("comm_size") or 0
    if node.kind == _COLLECTIVE:
        call, part = _COLLECTIVES[node.about["comm_type"]], size // count
        root = node.whole("root") or 0
        if call == "barrier":
            put(rank, call)
        elif call == "bcast":
            put(rank, call, size, root, BYTE)
        elif call == "allreduce":
            put(rank, call, size, 0, BYTE)
        elif call == "reduce":
            put(rank, call, size, 0, root, BYTE)
        elif call in {"gather", "scatter"}:
            put(rank, call, part, part, root, BYTE, BYTE)
        elif call in {"allgather", "alltoall"}:
            put(rank, call, part, part, BYTE, BYTE)
        else:
            put(rank, call, *[part] * count, 0, BYTE)
    elif node.kind in {_SEND, _RECEIVE}:
        call = "send" if node.kind == _SEND else "recv"
        other = node.about["comm_dst" if node.kind == _SEND else "comm_src"]
        put(rank, call, other, node.whole("comm_tag") or 0, size, BYTE)


def _node(name: str, number: Any, kind: Any, micros: Any, needs: Any, about: Any) -> _Node:
    whole = all(isinstance(each, int) and not isinstance(each, bool) for each in (number, kind))
    time = isinstance(micros, int | float) and math.isfinite(micros) and 0 <= micros < 1e15
    listed = isinstance(needs, list) and all(isinstance(need, int) for need in needs)
    if not (whole and time and listed):
        raise InputError(
            f"{name}: node {clean(str(number), 30)}: id, type and dependencies must be whole "
            "numbers, and the time a number of µs from 0 to 1e15"
        )
    return _Node(number, kind, float(micros), needs, about)


def _json(source: Source) -> Iterator[_Node]:
    parts: list[bytes] = []
    held = 0
    while part := source.read():
        parts.append(part)
        held += len(part)
        if held > _MOST_JSON:
            raise InputError(
                f"{source.name}: has more than {_MOST_JSON:,} bytes of JSON, which is the maximum"
            )
    try:
        graph = json.loads(b"".join(parts))["workload_graph"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"{source.name}: is not a workload graph: {clean(str(error), 80)}"
        ) from None
    if not isinstance(graph, list):
        raise InputError(f"{source.name}: workload_graph must be a list of nodes")
    if len(graph) > _MOST_NODES:
        raise _too_many(source)
    for node in graph:
        if not isinstance(node, dict):
            raise InputError(f"{source.name}: workload_graph: an entry is not an object")
        about = {key: node[key] for key in node if isinstance(node[key], int | str | list)}
        kind, time = node.get("NodeType"), node.get("runtime", 0)
        made = _node(source.name, node.get("Id"), kind, time, node.get("data_deps", []), about)
        made.controlled = bool(node.get("ctrlDeps") or node.get("ctrl_deps"))
        made.timeless = "runtime" not in node
        yield made


def _protobuf(source: Source) -> Iterator[_Node]:
    """Yield the nodes of a protobuf file, a sequence of messages with length prefixes.

    The first message has metadata and is skipped; each other message has one node.
    """
    seen = 0
    while (length := _length(source)) is not None:
        message = _exactly(source, length)
        seen += 1
        if seen > _MOST_NODES:
            raise _too_many(source)
        if seen == 1:
            continue
        try:
            yield _from_wire(source.name, message)
        except IndexError:
            raise InputError(f"{source.name}: message {seen} is damaged or cut off") from None


def _too_many(source: Source) -> InputError:
    """Return the error for a file with more than ``_MOST_NODES`` nodes."""
    return InputError(f"{source.name}: has more than {_MOST_NODES:,} nodes, which is the maximum")


def _length(source: Source) -> int | None:
    value = shift = 0
    while True:
        byte = source.read(1)
        if not byte:
            if shift:
                raise InputError(f"{source.name}: ends within the length of a message")
            return None
        value |= (byte[0] & 127) << shift
        shift += 7
        if value > _MOST_MESSAGE or shift > 63:
            raise InputError(
                f"{source.name}: has a message of more than {_MOST_MESSAGE:,} bytes, the maximum"
            )
        if byte[0] < 128:
            return value


def _exactly(source: Source, length: int) -> bytes:
    parts: list[bytes] = []
    while length > 0:
        part = source.read(length)
        if not part:
            raise InputError(f"{source.name}: ends within a message")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128 or shift > 63:
            return value, at


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield (number of the field, value) for each field of a protobuf message.

    The value is a whole number (varint) or bytes. Raises ``IndexError`` if the message is damaged.
    """
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        length = {1: 8, 5: 4}.get(kind)
        if length is None:
            if kind != 2:
                raise IndexError
            length, at = _varint(data, at)
        if at + length > len(data):
            raise IndexError
        yield key >> 3, data[at : at + length]
        at += length


#: Numbers of the fields of a node in ``et_def.proto``: id, type, control and data dependencies,
#: time in µs, attribute.
_ID, _TYPE, _CONTROL, _DATA_NEEDS, _MICROS, _ATTRIBUTE = 1, 3, 4, 5, 7, 10
#: Numbers of the fields of an attribute in ``et_def.proto``: name, and value that is a text.
_NAME, _TEXT = 1, 29
#: Numbers of the fields of an attribute for a value that is a number: varint, zigzag-coded varint,
#: unsigned and signed number of fixed length.
_VARINTS, _ZIGZAG, _FIXED, _SIGNED = {7, 9, 11, 13, 27}, {15, 17}, {19, 21}, {23, 25}
#: Numbers of the fields of an attribute for a value that is a list of varints.
_LISTS = {8, 10, 12, 14, 28}


def _from_wire(name: str, message: bytes) -> _Node:
    number = kind = micros = 0
    controlled = False
    needs: list[int] = []
    about: dict[str, Any] = {}
    for at, value in _fields(message):
        if at == _ID and isinstance(value, int):
            number = value
        elif at == _TYPE and isinstance(value, int):
            kind = value
        elif at == _MICROS and isinstance(value, int):
            micros = value
        elif at == _DATA_NEEDS:
            needs += _numbers(value)
        elif at == _CONTROL:
            controlled = True
        elif at == _ATTRIBUTE and isinstance(value, bytes):
            title, said = _attribute(value)
            about[title] = said
    node = _node(name, number, kind, micros, needs, about)
    node.controlled = controlled
    return node


def _attribute(message: bytes) -> tuple[str, Any]:
    """Return (name, value) of an attribute from its protobuf message.

    The value is a whole number, a text, a list of whole numbers, or None for other types.
    """
    name: str = ""
    said: int | str | list[int] | None = None
    for at, value in _fields(message):
        if at == _NAME and isinstance(value, bytes):
            name = value.decode(errors="replace")
        elif at in _VARINTS and isinstance(value, int):
            said = value - (1 << 64) if value >= 1 << 63 else value
        elif at in _ZIGZAG and isinstance(value, int):
            said = (value >> 1) ^ -(value & 1)
        elif at in _FIXED | _SIGNED and isinstance(value, bytes):
            said = int.from_bytes(value, "little", signed=at in _SIGNED)
        elif at == _TEXT and isinstance(value, bytes):
            said = value.decode(errors="replace")
        elif at in _LISTS and isinstance(value, bytes):
            said = [
                each for number, held in _fields(value) if number == 1 for each in _numbers(held)
            ]
    return name, said


def _numbers(value: int | bytes) -> list[int]:
    """Return the numbers in a repeated protobuf field: ``value`` is one number, or packed bytes."""
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        found.append(number)
    return found
