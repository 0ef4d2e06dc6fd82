"""Chakra execution traces (MLCommons): a graph of nodes per rank, in protobuf (``.et``) or JSON.

Each node of a trace becomes a node of a graph in the file of its rank. It begins when the nodes
that it needs have ended: those of its data dependencies, and those of its control dependencies
unless these form loops together (where they are the callers of a node, which run before and after
it). A computation takes its recorded time and occupies a stream: a thread of the processor
(``is_cpu_op`` and ``tid``), or a stream of the device (``stream``, or else ``tid``). Collectives
and messages overlap with computations. A receive waits only for the start of the sends that it
needs, since sends in Chakra need no receive. A collective occupies the stream that its trace names,
and the collectives of a stream keep their order; other collectives and all messages occupy none.

A collective is replayed if it has a type, a size, and ranks that are known (``chakra_groups``).
Calls of a processor that launch a collective (``is_cpu_op`` without a size) count as computing.
Other collectives and messages are refused; with ``lossy`` they are counted and replaced by their
recorded time.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterable, Iterator

from eastwest.errors import InputError
from eastwest.traces.mpi.chakra_groups import Group, Groups, Stated, is_file_of_groups, stated
from eastwest.traces.mpi.chakra_nodes import (
    COLLECTIVE,
    COMPUTE,
    MEMORY,
    METADATA,
    RECEIVE,
    SEND,
    Node,
    nodes,
)
from eastwest.traces.mpi.ranks import BYTE, RankFiles
from eastwest.traces.source import Source

#: MPI call of a collective, by ``comm_type``: the position in this tuple.
_COLLECTIVES = (
    "allreduce", "reduce", "allgather", "gather", "scatter", "bcast", "alltoall", "reducescatter",
    "reducescatter", "barrier",
)  # fmt: skip
#: Collectives whose stated size is that of all ranks together: each rank has a part of it.
_PARTED = {"gather", "scatter", "allgather", "alltoall", "reducescatter"}
#: Collectives with a root: the single rank that sends or receives the data of the collective.
_ROOTED = {"reduce", "gather", "scatter", "bcast"}
#: Text for the report: consequence of leaving out a communication that a replay cannot express.
_AS_TIME = "it is left out: its recorded time is computing, and its bytes are not sent"
_MOST_STREAMS = 65_536
#: Streams of nodes for which the trace names no stream.
_UNNAMED = {"computing", "communication", "memory"}
#: Place of a stream of a rank, and its name.
_Stream = tuple[str, str]


def looks_like(start: bytes, name: str) -> bool:
    """Whether a file is a Chakra trace, from its first bytes ``start`` and its file name."""
    if start.lstrip().startswith(b"{"):
        of_pytorch = b'"schema"' in start[:100] and b"-chakra." in start[:100]
        return b'"workload_graph"' in start or of_pytorch
    return name.endswith(".et") and bool(start)


def read(sources: list[Source], ranks: int | None, into: RankFiles) -> int:
    """Read Chakra traces, write the files of all ranks to ``into``; return the number of ranks.

    If ``ranks`` is None, each source is the trace of one rank; otherwise all ``ranks`` ranks
    execute the trace of the only source. A source may also be a file of process groups.
    """
    traces = [source for source in sources if not is_file_of_groups(source)]
    if ranks is not None and len(traces) > 1:
        raise InputError(
            f"--ranks repeats the trace of one rank, but there are {len(traces)} files: "
            "give one file, or omit --ranks"
        )
    count = ranks or len(traces)
    groups = Groups(count, ranks is not None)
    for source in sources:
        if source not in traces:
            groups.take_file(source)
    for number, source in enumerate(traces):
        with Source(source.path, name=source.name) as again:
            groups.take_trace(number, again)
    for number, source in enumerate(traces):
        graph = _Graph(source.name, number, groups, into)
        for node in nodes(source):
            into.records += 1
            graph.add(node)
        graph.write(range(count) if ranks else (number,))
    return count


class _Needs:
    """Dependencies of each node of a graph, as ids."""

    def __init__(self) -> None:
        self.ids = array("Q")
        #: Position behind the dependencies of each node.
        self.ends = array("q")

    def add(self, ids: list[int]) -> None:
        """Add the dependencies of the next node."""
        self.ids.extend(ids)
        self.ends.append(len(self.ids))

    def of(self, node: int) -> array[int]:
        """Return the ids that a node needs; ``node`` is its position."""
        return self.ids[self.ends[node - 1] if node else 0 : self.ends[node]]


class _Graph:
    """Nodes of the trace of one rank, by their positions in the file.

    A trace may have millions of nodes: they are in arrays, and their records are texts.
    """

    def __init__(self, name: str, number: int, groups: Groups, into: RankFiles) -> None:
        self.name = name
        self.number = number
        self.groups = groups
        self.into = into
        self.ids = array("Q")
        self.data = _Needs()
        self.control = _Needs()
        #: Call and arguments of each node.
        self.records: list[str] = []
        #: For each node, the position in ``stated`` of what it states about its ranks; -1: no
        #: collective.
        self.meets = array("i")
        #: Stream that each node occupies, by its number in ``numbers``; -1: none.
        self.streams = array("i")
        self.stated: dict[Stated, int] = {}
        self.known: list[Group | str] = []
        self.numbers: dict[_Stream, int] = {}

    def add(self, node: Node) -> None:
        """Add the next node of the file; a node that cannot be replayed is reported.

        Raises ``InputError`` for such a node unless ``lossy``.
        """
        meets, stream = -1, self._stream(node)
        if node.kind == COLLECTIVE:
            call, meets = self._collective(node)
        elif node.kind in {SEND, RECEIVE}:
            call = self._message(node)
        else:
            call = ""
            self._computes(node)
        occupies = not call or (meets >= 0 and stream[1] not in _UNNAMED)
        if not call:
            call = f"compute {round(node.micros * 1000)}"
            if node.timeless:
                self._note("node without a recorded time", "it takes no time")
        self.ids.append(node.number)
        self.data.add(node.data)
        self.control.add(node.control)
        self.records.append(call)
        self.meets.append(meets)
        self.streams.append(self._number(stream) if occupies else -1)

    def _note(self, reason: str, consequence: str, rows: int = 1) -> None:
        self.into.account.note(self.name, 0, reason, "", rows, consequence)

    def _leave_out(self, reason: str, node: Node, consequence: str = _AS_TIME) -> str:
        """Report a node that a replay cannot express; with ``lossy``, its recorded time remains.

        Raises ``InputError`` unless ``lossy``. ``reason`` and ``consequence`` are texts for the
        message or the report. The result is empty: the node becomes no call.
        """
        self.into.account.change(self.name, 0, reason, consequence, f"node {node.number}")
        return ""

    @staticmethod
    def _stream(node: Node) -> _Stream:
        """Return the stream of a node: that of the trace, or one for each kind of operation."""
        about, thread = node.about, node.about.get("tid")
        if about.get("is_cpu_op"):
            return "processor", "computing" if thread is None else f"thread {thread}"
        name = about.get("stream", thread)
        if name is not None:
            return "device", f"stream {name}"
        if node.kind in {COLLECTIVE, SEND, RECEIVE}:
            return "device", "communication"
        return "device", "memory" if node.kind in MEMORY else "computing"

    def _number(self, stream: _Stream) -> int:
        number = self.numbers.setdefault(stream, len(self.numbers))
        if number >= _MOST_STREAMS:
            raise InputError(f"{self.name}: has more than {_MOST_STREAMS:,} streams, the maximum")
        return number

    def _computes(self, node: Node) -> None:
        """Report a node that neither communicates nor computes."""
        if node.kind in MEMORY:
            self._note("node that loads from or stores to memory", "its time counts as computing")
        elif node.kind == METADATA:
            self._note("node of metadata", "its time, if it has any, counts as computing")
        elif node.kind != COMPUTE:
            then = "its recorded time counts as computing"
            self._leave_out(f"a node of the unknown type {node.kind}", node, then)

    def _collective(self, node: Node) -> tuple[str, int]:
        """Return the call of a collective, and the position of what it states about its ranks.

        The call is empty if the collective cannot be replayed; the reason is then reported.
        """
        number, size = node.whole("comm_type"), node.whole("comm_size")
        if number is None and size is None and node.about.get("is_cpu_op"):
            self._note("call that launches a collective", "its time counts as computing")
            return "", -1
        if number is not None and not 0 <= number < len(_COLLECTIVES):
            return self._leave_out(f"a collective of the unknown type {number}", node), -1
        call = _COLLECTIVES[number] if number is not None else ""
        if not call or (size is None and call != "barrier"):
            lacks = "comm_size" if call else "comm_type" if size is not None else "type and size"
            return self._leave_out(
                f"a collective without {lacks}: its bytes are not known", node
            ), -1
        try:
            what = stated(node)
        except ValueError:
            return self._leave_out("a collective whose list of ranks is damaged", node), -1
        at = self.stated.setdefault(what, len(self.stated))
        if at == len(self.known):
            self.known.append(self.groups.of(self.number, self.number, what))
        group = self.known[at]
        if isinstance(group, str):
            return self._leave_out(group, node), -1
        ranks, root = len(group.members), node.whole("root")
        if call in _ROOTED and root is None:
            self._note(f"{call} without a root", "rank 0 of its ranks is used as its root")
        if call in _PARTED and size is not None and size % ranks:
            what_of = f"{call}: bytes that are not a multiple of {ranks} ranks"
            self._note(what_of, "parts are rounded down")
        return _call(call, size or 0, root or 0, ranks), at

    def _message(self, node: Node) -> str:
        """Return the call of a node that sends or receives; empty if it cannot be replayed.

        The reason is then reported. Raises ``InputError`` for a rank that does not exist.
        """
        key, call = ("comm_dst", "send") if node.kind == SEND else ("comm_src", "recv")
        other, size = node.whole(key), node.whole("comm_size")
        if other is None:
            return self._leave_out(f"a message without {key}: its other rank is not known", node)
        if not 0 <= other < self.groups.ranks:
            raise InputError(
                f"{self.name}: node {node.number} communicates with rank "
                f"{other}; allowed: 0 to {self.groups.ranks - 1}"
            )
        if node.kind == SEND and size is None:
            return self._leave_out("a send without comm_size: its bytes are not known", node)
        tag = node.whole("comm_tag")
        if tag is None:
            self._note("message without comm_tag", "its tag is set to 0")
        return f"{call} {other} {tag or 0} {size or 0} {BYTE}"

    def write(self, ranks: Iterable[int]) -> None:
        """Write the files of the ranks that execute the trace.

        Raises ``InputError`` if ids are not unique, or if dependencies form a loop.
        """
        needs, order = self._in_order()
        tails: list[str] = []
        first = -1
        for rank in ranks:
            groups = [self.groups.of(self.number, rank, what) for what in self.stated]
            numbers = [0 if isinstance(group, str) else group.number for group in groups]
            self.into.add(rank, [str(rank), "graph"])
            listed = dict(zip(numbers, groups, strict=True))
            listed.pop(0, None)
            for number, group in listed.items():
                members = () if isinstance(group, str) else group.members
                self.into.put(rank, "group", number, *members)
            if len(listed) != first:
                first = len(listed)
                tails = list(self._tails(needs, order, first))
            for node, tail in zip(order, tails, strict=True):
                call, _, rest = self.records[node].partition(" ")
                group_number = numbers[self.meets[node]] if self.meets[node] >= 0 else 0
                within = f" in {group_number}" if group_number else ""
                words = [str(rank), call, f"{rest}{within}{tail}".strip()]
                self.into.add(rank, words if words[2] else words[:2])

    def _tails(self, needs: _Needs, order: array[int], first: int) -> Iterator[str]:
        """Yield the end of each record, in the order of the records: dependencies and stream.

        ``first`` is the number of the first node in the file of the rank. The collectives of a
        stream wait for each other, because streams take no notice of the order of other nodes. A
        receive waits only for the start of sends: a long send ends when the other rank receives,
        and ranks that all send first would wait for each other.
        """
        place = array("q", bytes(8 * len(order)))
        last: dict[int, int] = {}
        # A message may take time on stream 0: this is a thread of the processor if there is one.
        by_place = sorted(self.numbers, key=lambda stream: stream[0] != "processor")
        number_of = {self.numbers[stream]: number for number, stream in enumerate(by_place)}
        for at, node in enumerate(order, first):
            place[node] = at
            after = {place[need] for need in needs.of(node)}
            begun: set[int] = set()
            if self.records[node].startswith("recv "):
                sends = (need for need in needs.of(node) if self.records[need].startswith("send "))
                begun = {place[need] for need in sends}
            stream = number_of.get(self.streams[node], -1)
            if self.meets[node] >= 0 and stream >= 0:
                if stream in last:
                    after.add(last[stream])
                last[stream] = at
            words = [f"~{need}" if need in begun else str(need) for need in sorted(after)]
            waits = " ".join([" after", *words]) if words else ""
            by_default = 0 if self.records[node].startswith("compute") else -1
            yield waits if stream == by_default else f"{waits} on {stream}"

    def _in_order(self) -> tuple[_Needs, array[int]]:
        """Return the dependencies as positions, and the positions in an order of execution."""
        place = {number: at for at, number in enumerate(self.ids)}
        if len(place) < len(self.ids):
            raise InputError(
                f"{self.name}: several nodes of the trace have the id {self._twice()}; ids must be "
                "unique"
            )
        needs = self._positions(place, with_control=True)
        order = _order(self.ids, place, needs)
        used = [self.data, self.control]
        if len(order) < len(self.ids) and self.control.ids:
            used = [self.data]
            needs = self._positions(place, with_control=False)
            order = _order(self.ids, place, needs)
            then = "the nodes wait only for data: control dependencies of the trace form loops"
            self._note("control dependency", then, len(self.control.ids))
        missing = sum(number not in place for each in used for number in each.ids)
        if missing:
            then = "nodes do not wait for the missing node"
            self._note("dependency on a node that is not in the file", then, missing)
        if len(order) < len(self.ids):
            done = set(order)
            stuck = next(self.ids[at] for at in range(len(self.ids)) if at not in done)
            raise InputError(
                f"{self.name}: node {stuck} can never begin: its dependencies form a loop, or lead "
                "to a loop"
            )
        return needs, order

    def _twice(self) -> int:
        seen: set[int] = set()
        for number in self.ids:
            if number in seen:
                return number
            seen.add(number)
        return 0

    def _positions(self, place: dict[int, int], with_control: bool) -> _Needs:
        """Return the dependencies on nodes of the file, as positions of these nodes."""
        found = _Needs()
        for at in range(len(self.ids)):
            ids = self.data.of(at) + self.control.of(at) if with_control else self.data.of(at)
            found.add([place[number] for number in dict.fromkeys(ids) if number in place])
        return found


def _order(ids: array[int], place: dict[int, int], needs: _Needs) -> array[int]:
    """Return the positions of nodes so that each node is behind all nodes that it needs.

    Of the nodes that can be next, the one with the smallest id is next, so that traces of several
    ranks with the same ids have the same order. Nodes in loops, and behind them, are left out.
    """
    none = array("q", [-1])
    #: Number of dependencies of each node that are not in the order yet.
    open_needs = array("q", bytes(8 * len(ids)))
    #: The nodes that need a node, as a chain: the first entry of each node, and the next of each.
    first, following, owner = none * len(ids), none * len(needs.ids), none * len(needs.ids)
    entry = 0
    for node in range(len(ids)):
        for need in needs.of(node):
            owner[entry], following[entry], first[need] = node, first[need], entry
            entry += 1
            open_needs[node] += 1
    ready = [ids[node] for node in range(len(ids)) if not open_needs[node]]
    heapq.heapify(ready)
    order = array("q")
    while ready:
        node = place[heapq.heappop(ready)]
        order.append(node)
        entry = first[node]
        while entry >= 0:
            open_needs[owner[entry]] -= 1
            if not open_needs[owner[entry]]:
                heapq.heappush(ready, ids[owner[entry]])
            entry = following[entry]
    return order


def _call(call: str, size: int, root: int, ranks: int) -> str:
    """Return the record of a collective of ``ranks`` ranks."""
    part = size // ranks
    arguments: tuple[int, ...] = {
        "barrier": (),
        "bcast": (size, root, BYTE),
        "allreduce": (size, 0, BYTE),
        "reduce": (size, 0, root, BYTE),
        "gather": (part, part, root, BYTE, BYTE),
        "scatter": (part, part, root, BYTE, BYTE),
        "allgather": (part, part, BYTE, BYTE),
        "alltoall": (part, part, BYTE, BYTE),
    }.get(call, (*[part] * ranks, 0, BYTE))
    return " ".join([call, *map(str, arguments)])
