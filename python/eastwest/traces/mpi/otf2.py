"""OTF2 traces, such as Score-P writes: read through the ``otf2`` library, which is optional.

A location group of MPI processes is a rank; its first location is read. Time between MPI calls is
computing; time within them is not, as the simulation says what that takes. Sends and receives come
from the message events; ``MPI_Isend`` and ``MPI_Irecv`` and their completions from the request
events, and the completion of a request is a wait for it. Collectives come from their end events,
with the root and the bytes these name, and must be of all ranks.
"""

from __future__ import annotations

import importlib
from collections import deque
from pathlib import Path
from typing import Any

from eastwest.errors import InputError
from eastwest.traces.mpi.ranks import BYTE, RankFiles
from eastwest.units import clean

#: Collectives by the end of their names in OTF2.
_COLLECTIVES = {
    "BARRIER": "barrier",
    "BCAST": "bcast",
    "GATHER": "gather",
    "GATHERV": "gather",
    "SCATTER": "scatter",
    "SCATTERV": "scatter",
    "ALLGATHER": "allgather",
    "ALLGATHERV": "allgather",
    "ALLTOALL": "alltoall",
    "ALLTOALLV": "alltoall",
    "ALLREDUCE": "allreduce",
    "REDUCE": "reduce",
    "REDUCE_SCATTER": "reducescatter",
    "REDUCE_SCATTER_BLOCK": "reducescatter",
    "SCAN": "scan",
    "EXSCAN": "exscan",
}


def looks_like(path: Path) -> bool:
    """Tell whether a file is the anchor of such a trace."""
    return path.suffix == ".otf2"


def library() -> Any:
    """Return the library. Raises ``InputError`` where it is not installed."""
    try:
        return importlib.import_module("otf2")
    except ImportError:
        raise InputError(
            "OTF2 traces are read through the otf2 library, which is not installed: "
            "pip install 'eastwest[otf2]', or pip install otf2"
        ) from None


def read(path: Path, into: RankFiles) -> int:
    """Read the trace of an anchor file; return its number of ranks."""
    otf2 = library()
    try:
        # twice: what a posted receive gets is said when it is complete
        with otf2.reader.open(str(path)) as trace:
            receives = _Reading(path.name, trace, into).receives()
        with otf2.reader.open(str(path)) as trace:
            return _Reading(path.name, trace, into).all(receives)
    except otf2.error.TraceReaderError as error:
        raise InputError(f"{path}: cannot be read: {clean(str(error), 200)}") from None


#: Source, tag, size and type of receives, by rank and request.
_Receives = dict[tuple[int, int], deque[tuple[int, int, int, int]]]


class _Rank:
    """Where a rank is."""

    def __init__(self) -> None:
        self.depth = 0
        #: When its last MPI call ended, in ticks; ``None`` before the first.
        self.since: int | None = None
        #: Sends that are not complete, by the number of their request: sender, receiver, tag.
        self.sends: dict[int, tuple[int, int, int]] = {}
        #: The sends of the MPI_Sendrecv it is in, and whether it is in one.
        self.exchange: list[tuple[int, int, int]] | None = None


class _Reading:
    def __init__(self, name: str, trace: Any, into: RankFiles) -> None:
        self.name = name
        self.trace = trace
        self.into = into
        self.ticks_per_s = float(trace.timer_resolution)
        groups = list(dict.fromkeys(location.group for location in trace.definitions.locations))
        self.rank_of = {group: number for number, group in enumerate(groups)}
        self.ranks = [_Rank() for _ in groups]
        self.first: dict[Any, Any] = {}
        self.coming: _Receives = {}
        for location in trace.definitions.locations:
            self.first.setdefault(location.group, location)

    def all(self, receives: _Receives) -> int:
        """Read all events; return the number of ranks."""
        if not self.ranks:
            raise InputError(f"{self.name}: holds no process")
        self.coming = receives
        for rank in range(len(self.ranks)):
            self.into.put(rank, "init")
        for location, event in self.trace.events:
            if self.first[location.group] is location:
                self._take(self.rank_of[location.group], event)
        for rank in range(len(self.ranks)):
            self.into.put(rank, "finalize")
        return len(self.ranks)

    def receives(self) -> _Receives:
        """Return what posted receives get, in the order of their posting."""
        found: _Receives = {}
        for location, event in self.trace.events:
            if type(event).__name__ == "MpiIrecv" and self.first[location.group] is location:
                key = self.rank_of[location.group], int(event.request_id)
                got = self._world(event, event.sender), *self._size(event)
                found.setdefault(key, deque()).append(got)
        return found

    def _take(self, rank: int, event: Any) -> None:
        kind, r = type(event).__name__, self.ranks[rank]
        name = str(getattr(getattr(event, "region", None), "name", ""))
        in_mpi = name.startswith("MPI_")
        if kind == "Enter" and in_mpi:
            if r.depth == 0 and r.since is not None:
                self.into.compute(rank, (event.time - r.since) / self.ticks_per_s)
            r.depth += 1
            if name.startswith("MPI_Sendrecv"):
                r.exchange = []
        elif kind == "Leave" and in_mpi:
            for sent in r.exchange or ():
                self.into.put(rank, "wait", *sent)
            r.exchange = None
            r.depth = max(0, r.depth - 1)
            r.since = event.time
        elif kind.startswith("Mpi"):
            self._call(rank, r, kind, event)

    def _call(self, rank: int, r: _Rank, kind: str, event: Any) -> None:
        put = self.into.put
        if kind == "MpiSend" and r.exchange is not None:
            to = self._world(event, event.receiver)
            put(rank, "isend", to, *self._size(event))
            r.exchange.append((rank, to, int(event.msg_tag)))
        elif kind == "MpiSend":
            put(rank, "send", self._world(event, event.receiver), *self._size(event))
        elif kind == "MpiRecv":
            put(rank, "recv", self._world(event, event.sender), *self._size(event))
        elif kind == "MpiIsend":
            to, tag = self._world(event, event.receiver), event.msg_tag
            put(rank, "isend", to, *self._size(event))
            r.sends[event.request_id] = (rank, to, tag)
        elif kind == "MpiIrecvRequest":
            if coming := self.coming.get((rank, int(event.request_id))):
                put(rank, "irecv", *coming.popleft())
        elif kind == "MpiIrecv":
            put(rank, "wait", self._world(event, event.sender), rank, int(event.msg_tag))
        elif kind == "MpiIsendComplete":
            if known := r.sends.pop(event.request_id, None):
                put(rank, "wait", *known)
        elif kind == "MpiCollectiveEnd":
            self._collective(rank, event)

    def _size(self, event: Any) -> tuple[int, int, int]:
        return int(event.msg_tag), int(event.msg_length), BYTE

    def _world(self, event: Any, member: int) -> int:
        """Give the rank of a member of a communicator."""
        members = getattr(getattr(event.communicator, "group", None), "members", None)
        if members is None:
            return int(member)
        if not 0 <= member < len(members):
            raise InputError(f"{self.name}: a message names member {member} of {len(members)}")
        found = members[member]
        group = getattr(found, "group", None)
        return self.rank_of[group] if group in self.rank_of else int(member)

    def _collective(self, rank: int, event: Any) -> None:
        name = str(event.collective_op).rsplit(".", 1)[-1].upper()
        call = _COLLECTIVES.get(name)
        if call is None:
            self.into.note(f"collectives {clean(name, 40).lower()} move no data and are left out")
            return
        members = getattr(getattr(event.communicator, "group", None), "members", None)
        n = len(self.ranks)
        if members is not None and len(members) != n:
            raise InputError(
                f"{self.name}: {call} of {len(members)} of {n} ranks: only collectives of all "
                "ranks can be replayed"
            )
        sent, received = int(event.size_sent), int(event.size_received)
        root = int(event.root) if 0 <= int(event.root) < n else 0
        put = self.into.put
        if call == "barrier":
            put(rank, call)
        elif call == "bcast":
            put(rank, call, received or sent // n, root, BYTE)
        elif call == "reduce":
            put(rank, call, sent, 0, root, BYTE)
        elif call in {"allreduce", "scan", "exscan"}:
            put(rank, call, sent, 0, BYTE)
        elif call in {"gather", "scatter"}:
            part = sent if call == "gather" else received
            put(rank, call, part, part, root, BYTE, BYTE)
        elif call == "allgather":
            put(rank, call, received // n, received // n, BYTE, BYTE)
        elif call == "alltoall":
            put(rank, call, sent // n, received // n, BYTE, BYTE)
        else:
            put(rank, call, *[max(sent, received) // n] * n, 0, BYTE)
