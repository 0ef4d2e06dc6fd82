"""Reader of OTF2 traces, for instance of Score-P; it needs the optional library ``otf2``.

A location group that is a process becomes a rank; only the first location of the group is read.
Time between MPI calls is computing; time within MPI calls is left out, because the simulation
determines it. Blocking sends and receives are read from the message events. ``MPI_Isend``,
``MPI_Irecv`` and their completions are read from the request events; the completion of a request
becomes a wait. Collectives are read from their end events, which have the root and the bytes.
Collectives of some ranks, one-sided operations and other calls that a replay cannot express are
refused; with ``lossy`` they are left out and counted. Events without messages are counted in a
note.
"""

from __future__ import annotations

import importlib
from collections import deque
from pathlib import Path
from typing import Any

from eastwest.errors import InputError
from eastwest.traces.mpi.ranks import BYTE, RankFiles
from eastwest.units import clean

#: MPI call for each collective, by the last part of its name in OTF2.
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

#: Collectives that create or remove handles and transfer no data.
_WITHOUT_DATA = {
    "CREATE_HANDLE", "DESTROY_HANDLE", "ALLOCATE", "DEALLOCATE", "CREATE_HANDLE_AND_ALLOCATE",
    "DESTROY_HANDLE_AND_DEALLOCATE",
}  # fmt: skip
#: Collectives with a different size for each rank. Their events only have sums, so all ranks get
#: equal parts.
_VECTORS = {"GATHERV", "SCATTERV", "ALLGATHERV", "ALLTOALLV", "REDUCE_SCATTER"}
#: Events at which a rank enters or leaves a region of code; outside of MPI they only show that the
#: rank computes.
_TIMES = {"Enter", "Leave"}
#: Events that are not read, because a later event of the same operation has all information.
_OPENINGS = {"MpiCollectiveBegin"}
#: Prefixes of communication events that a replay cannot express.
_BEYOND = ("Rma", "NonBlockingCollective", "CommCreate", "CommDestroy", "MpiRequestCancelled")


def looks_like(path: Path) -> bool:
    """Whether a file is the anchor file (``.otf2``) of an OTF2 trace."""
    return path.suffix == ".otf2"


def library() -> Any:
    """Return the ``otf2`` library; raise ``InputError`` if it is not installed."""
    try:
        return importlib.import_module("otf2")
    except ImportError:
        raise InputError(
            "OTF2 traces are read through the otf2 library, which is not installed: "
            "pip install 'eastwest[otf2]', or pip install otf2"
        ) from None


def read(path: Path, into: RankFiles) -> int:
    """Read an OTF2 trace, write the files of all ranks to ``into``; return the number of ranks.

    ``path`` is the anchor file of the trace.
    """
    otf2 = library()
    try:
        # Two passes are needed: what a posted receive will get is known only at its completion.
        with otf2.reader.open(str(path)) as trace:
            receives = _Reading(path.name, trace, into).receives()
        with otf2.reader.open(str(path)) as trace:
            return _Reading(path.name, trace, into).all(receives)
    except otf2.error.TraceReaderError as error:
        raise InputError(f"{path}: cannot be read: {clean(str(error), 200)}") from None


def _is_process(group: Any) -> bool:
    """Whether a location group is a process and not, for example, an accelerator."""
    return str(getattr(group, "location_group_type", "PROCESS")).endswith("PROCESS")


#: Queue of messages by (rank, number of a request); a message is (source, tag, size in bytes, data
#: type).
_Receives = dict[tuple[int, int], deque[tuple[int, int, int, int]]]


class _Rank:
    """State of a rank while its events are read."""

    def __init__(self) -> None:
        #: Number of MPI regions that the rank has entered and not left.
        self.depth = 0
        #: Time of the first event outside of MPI, in ticks of the trace's timer; None before this
        #: event.
        self.began: int | None = None
        #: Time at which the rank left its last MPI call, in ticks of the trace's timer; None before
        #: the first call has ended.
        self.since: int | None = None
        #: Sends that are not complete yet, by the number of their request: (sender, receiver, tag).
        self.sends: dict[int, tuple[int, int, int]] = {}
        #: Sends of the current MPI_Sendrecv as (sender, receiver, tag); None outside of
        #: MPI_Sendrecv.
        self.exchange: list[tuple[int, int, int]] | None = None


class _Reading:
    def __init__(self, name: str, trace: Any, into: RankFiles) -> None:
        self.name = name
        self.trace = trace
        self.into = into
        self.ticks_per_s = float(trace.timer_resolution)
        locations = trace.definitions.locations
        groups = list(dict.fromkeys(each.group for each in locations if _is_process(each.group)))
        self.rank_of = {group: number for number, group in enumerate(groups)}
        self.ranks = [_Rank() for _ in groups]
        self.first: dict[Any, Any] = {}
        self.coming: _Receives = {}
        for location in locations:
            if location.group in self.rank_of:
                self.first.setdefault(location.group, location)

    def _is_first(self, location: Any) -> bool:
        """Whether a location is the first one of its process; only first locations are read."""
        return bool(self.first.get(location.group) is location)

    def all(self, receives: _Receives) -> int:
        """Read all events and write the calls of all ranks; return the number of ranks.

        ``receives`` has the messages of posted receives, as the method ``receives`` returns them.
        """
        if not self.ranks:
            raise InputError(f"{self.name}: has no location group that is a process")
        self.coming = receives
        for rank in range(len(self.ranks)):
            self.into.put(rank, "init")
        for location, event in self.trace.events:
            self.into.records += 1
            if self._is_first(location):
                self._take(self.rank_of[location.group], event)
            else:
                self._other_location(event)
        for rank in range(len(self.ranks)):
            self._end(self.ranks[rank])
            self.into.put(rank, "finalize")
        return len(self.ranks)

    def receives(self) -> _Receives:
        """Return the messages of completed receives (``MPI_Irecv``), by (rank, request number).

        A request number can be used again, so the value is a queue of messages in the order of
        completion. A message is (source, tag, size in bytes, data type).
        """
        found: _Receives = {}
        for location, event in self.trace.events:
            if type(event).__name__ == "MpiIrecv" and self._is_first(location):
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
            elif r.depth == 0 and r.began is not None and event.time > r.began:
                self._note(
                    "time before a rank's first MPI call",
                    "it is left out: a rank's replay begins at its first MPI call",
                )
            r.depth += 1
            if name.startswith("MPI_Sendrecv"):
                r.exchange = []
        elif kind == "Leave" and in_mpi:
            for sent in r.exchange or ():
                self.into.put(rank, "wait", *sent)
            r.exchange = None
            r.depth = max(0, r.depth - 1)
            r.since = event.time
        elif kind in _TIMES:
            r.began = event.time if r.began is None else r.began
            self._note("entry or exit of a region outside MPI", "its time counts as computing")
        elif not self._call(rank, r, kind, event):
            self._unread(kind)

    def _note(self, reason: str, consequence: str, found: str = "", rows: int = 1) -> None:
        self.into.account.note(self.name, 0, reason, found, rows, consequence)

    def _leave_out(self, reason: str, consequence: str, found: str = "") -> None:
        """Raise ``InputError`` for an event that cannot be replayed; with ``lossy``, count it.

        ``reason`` and ``consequence`` are texts for the message or the report; ``found`` is the
        wrong value, or empty.
        """
        self.into.account.change(self.name, 0, reason, consequence, found)

    def _other_location(self, event: Any) -> None:
        """Report an event of another location than the first of a process; it is not read.

        Raises ``InputError`` for communication events, unless ``lossy``.
        """
        kind = type(event).__name__
        if kind.startswith(("Mpi", *_BEYOND)):
            reason = "communication of a location other than the first one of its process"
            self._leave_out(reason, "it is left out: its bytes are not sent", clean(kind, 40))
        else:
            reason = "event of a location other than the first one of its process"
            self._note(
                reason, "it is left out: computing of threads and devices is not distinguished"
            )

    def _unread(self, kind: str) -> None:
        """Report an event that was not read; ``kind`` is the name of its class in ``otf2``.

        Raises ``InputError`` for events that transfer data, unless ``lossy``.
        """
        shown = clean(kind, 40)
        if kind in _OPENINGS:
            self._note(
                f"event {shown}", "the event at the end of the operation has what a replay needs"
            )
        elif kind.startswith(("Mpi", *_BEYOND)):
            then = "it is left out: the data that it transfers, or the wait, is not replayed"
            self._leave_out(f"event {shown}, which a replay cannot express", then)
        else:
            self._note(f"event {shown}", "it has no information on computing or messages")

    def _end(self, r: _Rank) -> None:
        """Report sends of a rank, with state ``r``, that are not complete at the trace's end."""
        if r.sends:
            then = "nothing waits for the send"
            self._note("immediate send that is never complete", then, rows=len(r.sends))

    def _call(self, rank: int, r: _Rank, kind: str, event: Any) -> bool:
        """Write the MPI call of an event of a message or collective; return False for other events.

        ``r`` is the state of the rank ``rank``; ``kind`` is the name of the event's class in
        ``otf2``.
        """
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
            self._posted(rank, int(event.request_id))
        elif kind == "MpiIrecv":
            put(rank, "wait", self._world(event, event.sender), rank, int(event.msg_tag))
        elif kind == "MpiIsendComplete":
            self._sent(rank, r.sends.pop(event.request_id, None))
        elif kind == "MpiRequestTest":
            self._note(
                "test of a request that was not complete", "it is left out: it transfers nothing"
            )
        elif kind == "MpiCollectiveEnd":
            self._collective(rank, event)
        else:
            return False
        return True

    def _posted(self, rank: int, request: int) -> None:
        if coming := self.coming.get((rank, request)):
            self.into.put(rank, "irecv", *coming.popleft())
        else:
            reason = "receive that is posted but never completed: its message is not known"
            self._leave_out(reason, "it is left out: the rank does not receive it")

    def _sent(self, rank: int, known: tuple[int, int, int] | None) -> None:
        if known:
            self.into.put(rank, "wait", *known)
        else:
            self._leave_out(
                "completion of a send that did not begin", "it is left out: no wait is replayed"
            )

    def _size(self, event: Any) -> tuple[int, int, int]:
        """Return (tag, size in bytes, data type ``MPI_BYTE``) of an event's message."""
        return int(event.msg_tag), int(event.msg_length), BYTE

    def _world(self, event: Any, member: int) -> int:
        """Return the rank of a process from its number ``member`` in the communicator of ``event``.

        Raises ``InputError`` if the communicator has no such member.
        """
        members = getattr(getattr(event.communicator, "group", None), "members", None)
        if members is None:
            then = "its member numbers are used as ranks"
            self._note("message in a communicator without a group", then)
            return int(member)
        if not 0 <= member < len(members):
            raise InputError(
                f"{self.name}: a message names member {member} of a communicator whose members are "
                f"0 to {len(members) - 1}"
            )
        found = members[member]
        group = getattr(found, "group", None)
        return self.rank_of[group] if group in self.rank_of else int(member)

    def _collective(self, rank: int, event: Any) -> None:
        name = str(event.collective_op).rsplit(".", 1)[-1].upper()
        call = _COLLECTIVES.get(name)
        shown = clean(name, 40).lower()
        if name in _WITHOUT_DATA:
            self._note(f"collective {shown}", "it is left out: it transfers no data")
            return
        if call is None:
            then = (
                "it is left out: its ranks do not wait for each other, and its bytes are not sent"
            )
            self._leave_out(f"collective {shown}, which a replay cannot express", then)
            return
        members = getattr(getattr(event.communicator, "group", None), "members", None)
        n = len(self.ranks)
        if members is None:
            then = "it is assumed to have all ranks"
            self._note("collective in a communicator without a group", then)
        elif len(members) != n:
            self._leave_out(
                f"{call} of {len(members)} of {n} ranks: only collectives of all ranks can be "
                "replayed",
                "it is left out: its ranks do not wait for each other, and its bytes are not sent",
            )
            return
        if name in _VECTORS:
            self._note(f"{shown}: OTF2 has no sizes for single ranks", "all ranks get equal parts")
        self._put_collective(rank, call, event)

    def _put_collective(self, rank: int, call: str, event: Any) -> None:
        n = len(self.ranks)
        sent, received = int(event.size_sent), int(event.size_received)
        root = self._world(event, int(event.root)) if 0 <= int(event.root) < n else 0
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
