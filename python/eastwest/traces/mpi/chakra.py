"""Chakra execution traces (MLCommons): a graph of nodes a rank, in protobuf (``.et``) or JSON.

The nodes of a rank are put in order: each begins when those it depends on by data have ended, and
takes its recorded time, communication none. Between two communications lies the computing that this
leaves. So what overlapped in the recording is not added up, and what overlaps with communication is
not told apart. Of collectives those are taken that name a size (the processes on devices, not the
calls that launch them); sends and receives block.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from eastwest.errors import InputError
from eastwest.traces.mpi.ranks import BYTE, RankFiles
from eastwest.traces.source import Source
from eastwest.units import clean

#: Numbers of the nodes that communicate.
_SEND, _RECEIVE, _COLLECTIVE = 5, 6, 7
#: Collectives by their number; all-to-all and the rest name the bytes of the whole.
_COLLECTIVES = (
    "allreduce", "reduce", "allgather", "gather", "scatter", "bcast", "alltoall", "reducescatter",
    "reducescatter", "barrier",
)  # fmt: skip
_MOST_NODES = 10_000_000
_MOST_MESSAGE = 16 << 20
_MOST_JSON = 1 << 30


@dataclass
class _Node:
    number: int
    kind: int
    micros: float
    needs: list[int]
    about: dict[str, int] = field(default_factory=dict)


def looks_like(start: bytes, name: str) -> bool:
    """Tell whether a file begins as such a trace."""
    if start.lstrip().startswith(b"{"):
        return b'"workload_graph"' in start
    return name.endswith(".et") and bool(start)


def read(sources: list[Source], ranks: int | None, into: RankFiles) -> int:
    """Read the traces of ranks, or one for ``ranks`` ranks alike; return their number."""
    if ranks is not None and len(sources) > 1:
        raise InputError("--ranks repeats the trace of one rank; there is a file for each")
    count = ranks or len(sources)
    for number, source in enumerate(sources):
        nodes = list(_json(source) if source.peek(64).lstrip()[:1] == b"{" else _protobuf(source))
        calls = list(_calls(source.name, nodes))
        for rank in range(count) if ranks else (number,):
            _write(source.name, rank, count, calls, into)
    return count


def _write(
    name: str, rank: int, count: int, calls: list[tuple[float, _Node]], into: RankFiles
) -> None:
    into.put(rank, "init")
    done = 0.0
    for began, node in calls:
        into.compute(rank, (began - done) / 1e6)
        done = began
        _call(name, rank, count, node, into)
    into.put(rank, "finalize")


def _calls(name: str, nodes: list[_Node]) -> Iterator[tuple[float, _Node]]:
    """Give communications with the time they begin at, in that order, and the end as a last one."""
    by_number = {node.number: node for node in nodes}
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
        talks = _talks(node)
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
        raise InputError(f"{name}: node {stuck} depends on itself through others")
    found.sort(key=lambda each: each[:2])
    yield from ((began, node) for began, _, node in found)
    yield max(ended.values(), default=0.0), _Node(-1, 0, 0.0, [])


def _talks(node: _Node) -> bool:
    return node.kind in {_SEND, _RECEIVE} or (
        node.kind == _COLLECTIVE and "comm_type" in node.about and "comm_size" in node.about
    )


def _call(name: str, rank: int, count: int, node: _Node, into: RankFiles) -> None:
    about, put = node.about, into.put
    size = about.get("comm_size", 0)
    if node.kind == _COLLECTIVE:
        number = about["comm_type"]
        if not 0 <= number < len(_COLLECTIVES):
            raise InputError(f"{name}: node {node.number} is of no known collective: {number}")
        call, part = _COLLECTIVES[number], size // count
        root = about.get("root", 0)
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
        other = about.get("comm_dst" if node.kind == _SEND else "comm_src", -1)
        if not 0 <= other < count:
            raise InputError(f"{name}: node {node.number} talks to rank {other} of {count}")
        call = "send" if node.kind == _SEND else "recv"
        put(rank, call, other, about.get("comm_tag", 0), size, BYTE)


def _node(name: str, number: Any, kind: Any, micros: Any, needs: Any, about: Any) -> _Node:
    whole = isinstance(number, int) and isinstance(kind, int)
    time = micros if isinstance(micros, int | float) else 0
    good = whole and isinstance(needs, list) and math.isfinite(time) and 0 <= time < 1e15
    if not good or any(not isinstance(need, int) for need in needs):
        raise InputError(f"{name}: node {clean(str(number), 30)}: expected numbers and a time")
    return _Node(number, kind, float(time), needs, about)


def _json(source: Source) -> Iterator[_Node]:
    parts: list[bytes] = []
    held = 0
    while held <= _MOST_JSON and (part := source.read()):
        parts.append(part)
        held += len(part)
    try:
        graph = json.loads(b"".join(parts))["workload_graph"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{source.name}: is no workload graph: {clean(str(error), 80)}") from None
    if not isinstance(graph, list):
        raise InputError(f"{source.name}: workload_graph: expected a list of nodes")
    for node in graph:
        if not isinstance(node, dict):
            raise InputError(f"{source.name}: workload_graph: expected nodes")
        about = {key: node[key] for key in node if isinstance(node[key], int)}
        kind, time = node.get("NodeType"), node.get("runtime", 0)
        yield _node(source.name, node.get("Id"), kind, time, node.get("data_deps", []), about)


def _protobuf(source: Source) -> Iterator[_Node]:
    """Give the nodes of messages that each have their length before them; the first is no node."""
    seen = 0
    while (length := _length(source)) is not None:
        message = _exactly(source, length)
        seen += 1
        if seen > _MOST_NODES:
            raise InputError(f"{source.name}: more than {_MOST_NODES:,} nodes")
        if seen == 1:
            continue
        try:
            yield _from_wire(source.name, message)
        except IndexError:
            raise InputError(f"{source.name}: message {seen} is cut off") from None


def _length(source: Source) -> int | None:
    value = shift = 0
    while True:
        byte = source.read(1)
        if not byte:
            if shift:
                raise InputError(f"{source.name}: ends within a length")
            return None
        value |= (byte[0] & 127) << shift
        shift += 7
        if value > _MOST_MESSAGE or shift > 63:
            raise InputError(f"{source.name}: a message of more than {_MOST_MESSAGE} bytes")
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
    """Give the fields of a message: number, and whole number or bytes."""
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


#: Fields of a node.
_ID, _TYPE, _DATA_NEEDS, _MICROS, _ATTRIBUTE = 1, 3, 5, 7, 10


def _from_wire(name: str, message: bytes) -> _Node:
    number = kind = micros = 0
    needs: list[int] = []
    about: dict[str, int] = {}
    for at, value in _fields(message):
        if at == _ID and isinstance(value, int):
            number = value
        elif at == _TYPE and isinstance(value, int):
            kind = value
        elif at == _MICROS and isinstance(value, int):
            micros = value
        elif at == _DATA_NEEDS:
            needs += _numbers(value)
        elif at == _ATTRIBUTE and isinstance(value, bytes):
            inner = dict(_fields(value))
            title = inner.pop(1, b"")
            numbers = [each for each in inner.values() if isinstance(each, int)]
            if isinstance(title, bytes) and numbers:
                about[title.decode(errors="replace")] = numbers[0]
    return _node(name, number, kind, micros, needs, about)


def _numbers(value: int | bytes) -> list[int]:
    """Give the numbers of a repeated field: one, or several packed."""
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        found.append(number)
    return found
