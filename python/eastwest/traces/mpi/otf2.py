"""Reader of OTF2 traces, for instance of Score-P; it needs the optional library ``otf2``.

A location group that is a process becomes a rank; only the first location of the group is read.
Time between MPI calls is computing; time within MPI calls is left out, because the simulation
determines it. Blocking sends and receives are read from the message events. ``MPI_Isend``,
``MPI_Irecv`` and their completions are read from the request events; the completion of a request
becomes a wait. Collectives are read from their end events, which have the root and the bytes.
Non-blocking collectives begin at their request events, and waits for them follow the call that
completes them. A communicator becomes a group of ranks; the first one with all ranks in their order
is group 0. Collectives of inter-communicators, one-sided operations and other calls that a replay
cannot express are refused; with ``lossy`` they are left out and counted. Events without messages
are counted in a note.
"""

from __future__ import annotations

import importlib
from collections import deque
from dataclasses import dataclass
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
_BEYOND = ("Rma", "NonBlockingCollective", "MpiRequestCancelled")


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
        # Two passes are needed: what a request transfers is known only at its completion.
        with otf2.reader.open(str(path)) as trace:
            posted = _Reading(path.name, trace, into).operations()
        with otf2.reader.open(str(path)) as trace:
            return _Reading(path.name, trace, into).all(posted)
    except otf2.error.TraceReaderError as error:
        raise InputError(f"{path}: cannot be read: {clean(str(error), 200)}") from None


def _is_process(group: Any) -> bool:
    """Whether a location group is a process and not, for example, an accelerator."""
    return str(getattr(group, "location_group_type", "PROCESS")).endswith("PROCESS")


@dataclass(frozen=True)
class _Group:
    """A communicator in the rank files."""

    #: Number of the group in the rank files; group 0 has all ranks.
    number: int
    #: Ranks of the program, in the order of their numbers in the group.
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class _Operation:
    """A receive or collective that a rank has posted, as its completion describes it."""

    #: Name of the call.
    call: str
    #: Communicator of the operation; None: it is not known, or cannot be replayed.
    group: _Group | None
    #: Sender or root, as a rank of the group.
    other: int
    #: Tag of a message.
    tag: int = 0
    #: Bytes of a message, or that the rank sends in a collective.
    sent: int = 0
    #: Bytes that the rank receives in a collective.
    received: int = 0
    #: Number of ranks of the communicator of a collective; −1: an inter-communicator, None: the
    #: trace does not state it.
    members: int | None = None


#: Operations by (rank, number of a request), in the order of their completion.
_Posted = dict[tuple[int, int], deque[_Operation]]


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
        #: Receives that are not complete yet.
        self.receives = 0
        #: Non-blocking collectives that are not complete yet, in the order of their beginnings:
        #: name of the call and number of the group, by the number of their request.
        self.collectives: dict[int, tuple[str, int]] = {}
        #: Those of them that the current MPI call has completed, in the same order.
        self.completed: set[int] = set()
        #: Numbers of the groups that the file of the rank defines.
        self.groups: set[int] = set()
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
        self.posted: _Posted = {}
        #: Group of each communicator; None: its ranks are not known.
        self.groups: dict[Any, _Group | None] = {}
        for location in locations:
            if location.group in self.rank_of:
                self.first.setdefault(location.group, location)
        # In the order of their definitions, so that both passes give them the same numbers; other
        # paradigms, such as threads, have communicators, too.
        for communicator in getattr(trace.definitions, "comms", ()):
            paradigm = getattr(getattr(communicator, "group", None), "paradigm", "MPI")
            if str(paradigm).endswith("MPI"):
                self._group(communicator)

    def _is_first(self, location: Any) -> bool:
        """Whether a location is the first one of its process; only first locations are read."""
        return bool(self.first.get(location.group) is location)

    def _group(self, communicator: Any) -> _Group | None:
        """Return the group of a communicator; None if its ranks are not known."""
        if communicator not in self.groups:
            members = getattr(getattr(communicator, "group", None), "members", None)
            if getattr(communicator, "groupA", None) is not None:
                members = None  # an inter-communicator: its members are those of two groups
            ranks = tuple(
                self.rank_of.get(getattr(each, "group", None), -1) for each in members or ()
            )
            everyone = tuple(range(len(self.ranks)))
            used = [group.number for group in self.groups.values() if group]
            if not ranks or min(ranks) < 0 or len(set(ranks)) < len(ranks):
                self.groups[communicator] = None
            elif ranks == everyone and 0 not in used:
                self.groups[communicator] = _Group(0, ranks)
            else:
                self.groups[communicator] = _Group(max(used, default=0) + 1, ranks)
        return self.groups[communicator]

    def all(self, posted: _Posted) -> int:
        """Read all events and write the calls of all ranks; return the number of ranks.

        ``posted`` has the operations of requests, as the method ``operations`` returns them.
        """
        if not self.ranks:
            raise InputError(f"{self.name}: has no location group that is a process")
        self.posted = posted
        for rank in range(len(self.ranks)):
            self.into.put(rank, "init")
        for location, event in self.trace.events:
            self.into.records += 1
            if self._is_first(location):
                self._take(self.rank_of[location.group], event)
            else:
                self._other_location(event)
        for rank in range(len(self.ranks)):
            self._end(rank, self.ranks[rank])
            self.into.put(rank, "finalize")
        return len(self.ranks)

    def operations(self) -> _Posted:
        """Return the completed receives and non-blocking collectives, by (rank, request number).

        A request number can be used again, so the value is a queue in the order of completion.
        """
        found: _Posted = {}
        for location, event in self.trace.events:
            kind = type(event).__name__
            if kind not in {"MpiIrecv", "NonBlockingCollectiveComplete"}:
                continue
            if not self._is_first(location):
                continue
            rank = self.rank_of[location.group]
            if kind == "MpiIrecv":
                group, sender = self._partner(rank, event, event.sender)
                made = _Operation("irecv", group, sender, int(event.msg_tag), int(event.msg_length))
            else:
                made = self._operation(event)
            found.setdefault((rank, int(event.request_id)), deque()).append(made)
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
            if r.completed and r.depth == 0:
                self._wait(rank, r)
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

    def _end(self, rank: int, r: _Rank) -> None:
        """Report operations of a rank, with state ``r``, that are open at the trace's end."""
        self._wait(rank, r)
        if r.sends:
            then = "nothing waits for the send"
            self._note("immediate send that is never complete", then, rows=len(r.sends))

    def _wait(self, rank: int, r: _Rank) -> None:
        """Write the waits for completed non-blocking collectives of a rank with state ``r``.

        A wait names the call and the group; it is for the first of these that is open.
        """
        earlier: set[tuple[str, int]] = set()
        for request, (call, group) in list(r.collectives.items()):
            if request not in r.completed:
                earlier.add((call, group))
                continue
            if (call, group) in earlier:
                reason = "completion of a non-blocking collective before an earlier one of its kind"
                self._leave_out(reason, "the rank waits for the earlier one")
            del r.collectives[request]
            self.into.wait_for(rank, call, group)
        r.completed.clear()

    def _call(self, rank: int, r: _Rank, kind: str, event: Any) -> bool:
        """Write the MPI call of an event of a message or collective; return False for other events.

        ``r`` is the state of the rank ``rank``; ``kind`` is the name of the event's class in
        ``otf2``.
        """
        put = self.into.put
        if kind in {"MpiSend", "MpiIsend"}:
            group, to = self._partner(rank, event, event.receiver)
            at_once = kind == "MpiIsend" or r.exchange is not None
            message = to, int(event.msg_tag), int(event.msg_length), BYTE
            put(rank, "isend" if at_once else "send", *message, group=self._define(rank, group))
            sent = rank, group.ranks[to] if group else to, int(event.msg_tag)
            if kind == "MpiIsend":
                r.sends[event.request_id] = sent
            elif r.exchange is not None:
                r.exchange.append(sent)
        elif kind == "MpiRecv":
            group, sender = self._partner(rank, event, event.sender)
            message = sender, int(event.msg_tag), int(event.msg_length), BYTE
            put(rank, "recv", *message, group=self._define(rank, group))
        elif kind == "MpiIrecvRequest":
            self._receive(rank, r, int(event.request_id))
        elif kind == "MpiIrecv":
            group, sender = self._partner(rank, event, event.sender)
            r.receives = max(0, r.receives - 1)
            put(rank, "wait", group.ranks[sender] if group else sender, rank, int(event.msg_tag))
        elif kind == "MpiIsendComplete":
            self._sent(rank, r.sends.pop(event.request_id, None))
        elif kind == "MpiRequestTest":
            self._note(
                "test of a request that was not complete", "it is left out: it transfers nothing"
            )
        elif kind == "MpiCollectiveEnd":
            self._collective(rank, self._operation(event), "")
        elif kind == "NonBlockingCollectiveRequest":
            self._begin(rank, r, event)
        elif kind == "NonBlockingCollectiveComplete":
            r.completed |= {event.request_id} & r.collectives.keys()
        else:
            return False
        return True

    def _receive(self, rank: int, r: _Rank, request: int) -> None:
        if coming := self.posted.get((rank, request)):
            message = coming.popleft()
            numbers = message.other, message.tag, message.sent, BYTE
            r.receives += 1
            self.into.put(rank, "irecv", *numbers, group=self._define(rank, message.group))
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

    def _define(self, rank: int, group: _Group | None) -> int:
        """Return the number of a group; the file of the rank defines it before its first use."""
        number = group.number if group else 0
        if group and number and number not in self.ranks[rank].groups:
            self.ranks[rank].groups.add(number)
            self.into.put(rank, "group", number, *group.ranks)
        return number

    def _partner(self, rank: int, event: Any, member: int) -> tuple[_Group | None, int]:
        """Return the group of a message of ``rank``, and the number of the other rank in it.

        ``member`` is the number of the other rank in the communicator of the event. The group is
        None if the number is a rank of the program. Raises ``InputError`` if the communicator has
        no such member.
        """
        communicator = event.communicator
        group = self._group(communicator)
        if group is not None:
            self._check(member, len(group.ranks))
            return group, int(member)
        sides = [getattr(communicator, side, None) for side in ("groupA", "groupB")]
        if None not in sides:
            groups: list[Any] = sides
            ranks = [[self.rank_of.get(each.group, -1) for each in side.members] for side in groups]
            remote = ranks[1] if rank in ranks[0] else ranks[0]
            self._check(member, len(remote))
            return None, remote[member]
        members = getattr(getattr(communicator, "group", None), "members", None)
        if members is not None and not members:  # MPI_COMM_SELF
            return None, rank
        then = "its member numbers are used as ranks"
        self._note("message in a communicator without a group", then)
        return None, int(member)

    def _check(self, member: int, members: int) -> None:
        if not 0 <= member < members:
            raise InputError(
                f"{self.name}: a message names member {member} of a communicator whose members are "
                f"0 to {members - 1}"
            )

    def _operation(self, event: Any) -> _Operation:
        """Return the collective of an event."""
        name = str(event.collective_op).rsplit(".", 1)[-1].upper()
        communicator = event.communicator
        members = getattr(getattr(communicator, "group", None), "members", None)
        sides = [getattr(communicator, side, None) for side in ("groupA", "groupB")]
        count = -1 if any(sides) else None if members is None else len(members)
        group, sizes = self._group(communicator), (int(event.size_sent), int(event.size_received))
        return _Operation(name, group, int(event.root), 0, *sizes, count)

    def _begin(self, rank: int, r: _Rank, event: Any) -> None:
        """Write a non-blocking collective of a rank with state ``r``, from its request event."""
        coming = self.posted.get((rank, int(event.request_id)))
        if not coming:
            reason = "non-blocking collective that is never completed: its kind is not known"
            self._leave_out(reason, "it is left out: its bytes are not sent")
        elif begun := self._collective(rank, coming.popleft(), "i"):
            r.collectives[event.request_id] = begun

    def _collective(self, rank: int, made: _Operation, prefix: str) -> tuple[str, int] | None:
        """Write a collective, with ``prefix`` before its name; return its name and group.

        None: it was not written, and the reason is reported. Raises ``InputError`` if this changes
        the meaning, unless ``lossy``.
        """
        call = _COLLECTIVES.get(made.call)
        shown = clean(made.call, 40).lower()
        then = "it is left out: its ranks do not wait for each other, and its bytes are not sent"
        if made.call in _WITHOUT_DATA:
            self._note(f"collective {shown}", "it is left out: it transfers no data")
            return None
        if call is None:
            self._leave_out(f"collective {shown}, which a replay cannot express", then)
            return None
        group = made.group
        if group is None:
            if made.members == 0:
                then = "it is left out: it sends nothing"
                self._note(f"{call} of one rank (MPI_COMM_SELF)", then)
                return None
            if made.members is not None:
                self._leave_out(f"{call} of a communicator whose ranks are not processes", then)
                return None
            then = "it is assumed to have all ranks"
            self._note("collective in a communicator without a group", then)
            group = _Group(0, tuple(range(len(self.ranks))))
        elif rank not in group.ranks:
            self._leave_out(f"{call} of a communicator that does not have the rank", then)
            return None
        if made.call in _VECTORS:
            self._note(f"{shown}: OTF2 has no sizes for single ranks", "all ranks get equal parts")
        numbers = _arguments(call, made, len(group.ranks))
        number = self._define(rank, group)
        self.into.put(rank, prefix + call, *numbers, group=number)
        return call, number


def _arguments(call: str, made: _Operation, n: int) -> tuple[int, ...]:
    """Return the arguments of a collective of ``n`` ranks."""
    root = made.other if 0 <= made.other < n else 0
    sent, received = made.sent, made.received
    part = sent if call == "gather" else received
    known: dict[str, tuple[int, ...]] = {
        "barrier": (),
        "bcast": (received or sent // n, root, BYTE),
        "reduce": (sent, 0, root, BYTE),
        "allreduce": (sent, 0, BYTE),
        "scan": (sent, 0, BYTE),
        "exscan": (sent, 0, BYTE),
        "gather": (part, part, root, BYTE, BYTE),
        "scatter": (part, part, root, BYTE, BYTE),
        "allgather": (received // n, received // n, BYTE, BYTE),
        "alltoall": (sent // n, received // n, BYTE, BYTE),
    }
    return known.get(call, (*[max(sent, received) // n] * n, 0, BYTE))
