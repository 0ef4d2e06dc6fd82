"""Nodes of Chakra execution traces in protobuf (``.et``) or JSON.

The types of nodes and attributes are those of ``et_def.proto`` of Chakra 0.0.4. Only the parts of a
node that a replay needs are read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eastwest.errors import InputError
from eastwest.traces.source import Source
from eastwest.units import clean

#: Numbers of the node types in ``et_def.proto``.
METADATA, MEMORY, COMPUTE, SEND, RECEIVE, COLLECTIVE = 1, {2, 3}, 4, 5, 6, 7
#: Attributes that name the process group of a collective.
GROUP_NAMES = (
    "pg_name", "pg_id", "process_group", "group", "group_name", "group_id", "comm_group",
    "comm_id", "communicator",
)  # fmt: skip
#: Attributes that list the ranks of a process group.
GROUP_RANKS = ("ranks", "pg_ranks", "group_ranks", "comm_ranks", "members")
#: Attributes that state the number of ranks of a process group.
GROUP_SIZES = ("pg_size", "group_size", "comm_group_size", "world_size")
#: Attribute that lists for each network dimension whether a collective uses it.
DIMENSIONS = "involved_dim"
#: Attributes that are read.
_READ = frozenset((
    "comm_type", "comm_size", "comm_src", "comm_dst", "comm_tag", "root", "is_cpu_op", "stream",
    "tid", DIMENSIONS, *GROUP_NAMES, *GROUP_RANKS, *GROUP_SIZES,
))  # fmt: skip
#: Keys of a node in JSON that are read, and the key of the list of nodes.
_KEYS = _READ | {
    "workload_graph", "Id", "Name", "NodeType", "runtime", "data_deps", "ctrlDeps", "ctrl_deps",
    "inputs", "values", "schema",
}  # fmt: skip
#: Part of the name of a node whose input describes process groups.
_DESCRIBES = "process_group:init"
_MOST_NODES = 10_000_000
#: Maximum size in bytes of a protobuf message, which has one node.
_MOST_MESSAGE = 16 << 20
_MOST_JSON = 1 << 30
_MOST_ID = (1 << 64) - 1


@dataclass(slots=True)
class Node:
    """A node of the graph of a rank."""

    number: int
    kind: int
    #: Recorded time of the node, in µs.
    micros: float
    #: Numbers of the nodes whose data this node needs.
    data: list[int]
    #: Numbers of the nodes that control this node: its callers, or nodes that are to end before.
    control: list[int]
    #: Attributes by name; values are whole numbers, texts, or lists of whole numbers.
    about: dict[str, Any]
    #: Whether the file states no time for the node; the node then takes no time.
    timeless: bool
    #: Input of a node of metadata; it may describe process groups.
    described: str

    def whole(self, name: str) -> int | None:
        """Return the value of the attribute ``name`` if it is a whole number, else None."""
        value = self.about.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def group(self) -> str:
        """Return the name of the process group of a collective; empty if it names none."""
        named = (self.about.get(name) for name in GROUP_NAMES)
        return next((str(name) for name in named if isinstance(name, int | str) and name != ""), "")


def nodes(source: Source, groups_only: bool = False) -> Iterator[Node]:
    """Yield the nodes of a Chakra trace in JSON or protobuf.

    If ``groups_only``, nodes that neither are collectives nor describe process groups are left out.
    Raises ``InputError`` if the file is damaged or truncated.
    """
    in_json = source.peek(64).lstrip()[:1] == b"{"
    found = _json(source) if in_json else _protobuf(source, groups_only)
    yield from (n for n in found if n.kind == COLLECTIVE or n.described) if groups_only else found
    if source.cut:
        raise InputError(f"{source.name}: is damaged or truncated: {source.cut}")


def _checked(name: str, node: Node) -> Node:
    """Return a node with valid numbers; raise ``InputError`` if it has others."""
    whole = all(isinstance(n, int) and not isinstance(n, bool) for n in (node.number, node.kind))
    time = isinstance(node.micros, int | float) and math.isfinite(node.micros)
    lists = all(isinstance(needs, list) for needs in (node.data, node.control))
    if not (whole and 0 <= node.number <= _MOST_ID and time and 0 <= node.micros < 1e15 and lists):
        raise _damaged(name, node)
    for needs in (node.data, node.control):
        if not all(isinstance(need, int) and 0 <= need <= _MOST_ID for need in needs):
            raise _damaged(name, node)
    return node


def _damaged(name: str, node: Node) -> InputError:
    """Return the error for a node without valid numbers."""
    return InputError(
        f"{name}: node {clean(str(node.number), 30)}: id, type and dependencies must be whole "
        "numbers, and the time a number of µs from 0 to 1e15"
    )


def _too_many(source: Source) -> InputError:
    """Return the error for a file with more than ``_MOST_NODES`` nodes."""
    return InputError(f"{source.name}: has more than {_MOST_NODES:,} nodes, which is the maximum")


def _json(source: Source) -> Iterator[Node]:
    for node in _graph(source):
        if not isinstance(node, dict):
            raise InputError(f"{source.name}: workload_graph: an entry is not an object")
        about = {
            key: node[key]
            for key in node
            if key in _READ and isinstance(node[key], int | str | list)
        }
        control = node.get("ctrlDeps") or node.get("ctrl_deps") or []
        made = Node(
            node.get("Id", -1),
            node.get("NodeType", None),  # type: ignore[arg-type]  # checked below
            node.get("runtime", 0),
            node.get("data_deps", []),
            [control] if isinstance(control, int) else control,
            about,
            "runtime" not in node,
            "",
        )
        inputs = node.get("inputs")
        if made.kind == METADATA or _DESCRIBES in str(node.get("Name")):
            values = inputs.get("values") if isinstance(inputs, dict) else inputs
            texts = values if isinstance(values, list) else [values]
            made.described = "".join(text for text in texts if isinstance(text, str))
        yield _checked(source.name, made)


def _graph(source: Source) -> Iterator[Any]:
    """Yield the entries of ``workload_graph`` of a file in JSON, with the keys that are read."""
    parts: list[bytes] = []
    held = 0
    while part := source.read():
        parts.append(part)
        held += len(part)
        if held > _MOST_JSON:
            raise InputError(
                f"{source.name}: has more than {_MOST_JSON:,} bytes of JSON, which is the maximum"
            )
    text = b"".join(parts)
    parts.clear()
    try:
        whole = json.loads(text, object_hook=_pruned)
        graph = None if _of_pytorch(whole) else whole["workload_graph"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"{source.name}: is not a workload graph: {clean(str(error), 80)}"
        ) from None
    del text
    if graph is None and _of_pytorch(whole):
        raise InputError(
            f"{source.name}: is a trace of PyTorch, whose nodes call each other: convert it with "
            "chakra_converter of MLCommons, which makes a graph that can be replayed"
        )
    del whole
    if not isinstance(graph, list):
        raise InputError(f"{source.name}: workload_graph must be a list of nodes")
    if len(graph) > _MOST_NODES:
        raise _too_many(source)
    graph.reverse()
    while graph:
        yield graph.pop()  # so that each entry needs memory only until it is read


def _of_pytorch(whole: Any) -> bool:
    """Whether the content of a file in JSON is a trace of PyTorch before its conversion."""
    return isinstance(whole, dict) and "schema" in whole and "workload_graph" not in whole


def _pruned(made: dict[str, Any]) -> dict[str, Any]:
    return {key: made[key] for key in made if key in _KEYS}


def _protobuf(source: Source, groups_only: bool) -> Iterator[Node]:
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
            if groups_only and not _may_have_groups(message):
                continue
            yield _checked(source.name, _from_wire(message))
        except IndexError:
            raise InputError(f"{source.name}: message {seen} is damaged or cut off") from None


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
    at, end = 0, len(data)
    while at < end:
        key, at = (data[at], at + 1) if data[at] < 128 else _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = (data[at], at + 1) if data[at] < 128 else _varint(data, at)
            yield key >> 3, value
            continue
        if kind == 2:
            length, at = (data[at], at + 1) if data[at] < 128 else _varint(data, at)
        elif kind in {1, 5}:
            length = 8 if kind == 1 else 4
        else:
            raise IndexError
        if at + length > end:
            raise IndexError
        yield key >> 3, data[at : at + length]
        at += length


#: Numbers of the fields of a node in ``et_def.proto``: id, name, type, control and data
#: dependencies, time in µs, inputs, attribute.
_ID, _TITLE, _TYPE, _CONTROL, _DATA, _MICROS, _INPUTS, _ATTRIBUTE = 1, 2, 3, 4, 5, 7, 8, 10
#: Numbers of the fields of an attribute in ``et_def.proto``: name, and value that is a text.
_NAME, _TEXT = 1, 29
#: Numbers of the fields of an attribute for a value that is a number: varint, zigzag-coded varint,
#: unsigned and signed number of fixed length.
_VARINTS, _ZIGZAG, _FIXED, _SIGNED = {7, 9, 11, 13, 27}, {15, 17}, {19, 21}, {23, 25}
#: Numbers of the fields of an attribute for a value that is a list of varints.
_LISTS = {8, 10, 12, 14, 28}


def _may_have_groups(message: bytes) -> bool:
    """Whether the message of a node may be of a collective, or may describe process groups."""
    for at, value in _fields(message):
        if at == _TYPE:
            return value in {COLLECTIVE, METADATA} or _DESCRIBES.encode() in message
        if at > _TYPE:
            break
    return True


def _from_wire(message: bytes) -> Node:
    node = Node(0, 0, 0, [], [], {}, False, "")
    title = inputs = b""
    for at, value in _fields(message):
        if at == _ATTRIBUTE and isinstance(value, bytes):
            _attribute(value, node.about)
        elif at == _DATA:
            node.data += _numbers(value)
        elif at == _CONTROL:
            node.control += _numbers(value)
        elif at == _ID and isinstance(value, int):
            node.number = value
        elif at == _TYPE and isinstance(value, int):
            node.kind = value
        elif at == _MICROS and isinstance(value, int):
            node.micros = value
        elif at == _TITLE and isinstance(value, bytes):
            title = value
        elif at == _INPUTS and isinstance(value, bytes):
            inputs = value
    if inputs and (node.kind == METADATA or _DESCRIBES.encode() in title):
        texts = [value for at, value in _fields(inputs) if at == 1 and isinstance(value, bytes)]
        node.described = b"".join(texts).decode(errors="replace")
    return node


def _attribute(message: bytes, about: dict[str, Any]) -> None:
    """Add an attribute of a node, from its protobuf message, to ``about`` if it is read.

    The value is a whole number, a text, a list of whole numbers, or None for other types.
    """
    name = ""
    said: int | str | list[int] | None = None
    for at, value in _fields(message):
        if at == _NAME and isinstance(value, bytes):
            name = value.decode(errors="replace")
            if name not in _READ:
                return
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
    if name in _READ:
        about[name] = said


def _numbers(value: int | bytes) -> list[int]:
    """Return the numbers in a repeated protobuf field: ``value`` is one number, or packed bytes."""
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        found.append(number)
    return found
