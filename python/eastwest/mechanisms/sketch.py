"""Mechanisms in Python (sketches): base classes, and the arguments of their methods.

Every port, sender or switch gets an object of the class. Annotated attributes with a default
(``int``, ``float`` or ``bool``) are its parameters, which the scenario may set. Parameters are set
before ``__init__`` is called, which has no arguments. Times are whole picoseconds, as in the
simulator.
"""

from __future__ import annotations

import inspect
import math
import re
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar, Protocol

from eastwest.errors import InputError
from eastwest.mechanisms.application import HOOKS, Application
from eastwest.mechanisms.base import Base, Duration


class Verdict(IntEnum):
    """Decision of a queue discipline on a packet."""

    ENQUEUE = 0
    """The packet is enqueued; at the head of a queue: the packet is sent."""
    MARK = 1
    """The packet is enqueued or sent, with an ECN mark if its transport allows it (RFC 3168)."""
    DROP = 2
    """The packet is dropped because the queue is full."""
    DROP_EARLY = 3
    """The packet is dropped early: the queue has room for it."""
    TRIM = 4
    """The header is queued without the payload; a packet that cannot be trimmed is dropped.

    Only ``at_enqueue`` of a class with ``trims = True`` may return it.
    """


_VERDICTS = tuple(Verdict)


class Packet(Protocol):
    """The properties of a packet that a queue discipline can read."""

    @property
    def kind(self) -> str:
        """Kind: data, retransmission, ack, syn, syn_ack, fin or datagram."""

    @property
    def understands_marks(self) -> bool:
        """Whether the packet's transport understands ECN marks: it carries ECT or CE."""

    @property
    def trimmable(self) -> bool:
        """Whether the receiver can use the header without the payload: data packets of RoCEv2."""

    @property
    def has_payload(self) -> bool:
        """Whether the packet carries payload."""

    @property
    def has_ece(self) -> bool:
        """Whether the ECE bit of the packet's TCP header is set."""

    @property
    def dscp(self) -> int:
        """Differentiated services codepoint, 0 to 63; priority p has codepoint 8 p."""

    @property
    def ip_bytes(self) -> int:
        """Length of the IP packet in bytes."""

    @property
    def flow(self) -> int:
        """Number of the packet's flow: equal for all packets of a connection in one direction."""

    @property
    def receiver(self) -> int:
        """Number of the receiving host."""

    @property
    def position(self) -> int:
        """Bytes that the connection sent before this packet in the same direction, modulo 2**32."""

    @property
    def signal_verdict(self) -> int:
        """Verdict of ``Queue.signal`` on the packet, as the number of a ``Verdict``."""


class Arrival(Packet, Protocol):
    """Arrival of a packet at a port."""

    @property
    def now_ps(self) -> int:
        """Time of the arrival in ps."""

    @property
    def queued_packets(self) -> int:
        """Packets in the queue, without the arriving packet and the packet in transmission."""

    @property
    def queued_bytes(self) -> int:
        """IP bytes in the queue, without the arriving packet and the packet in transmission."""

    @property
    def idle(self) -> bool:
        """Whether the port is idle: the packet will be sent at once."""

    @property
    def fits(self) -> bool:
        """Whether the queue has room for the packet; if not, this or another packet is dropped."""

    @property
    def remaining(self) -> int:
        """Payload bytes of the connection that were not acknowledged when the packet was sent.

        The bytes include the payload of the packet, and bytes that are written and not yet sent; 0
        for a packet without payload.
        """


class Head(Packet, Protocol):
    """Packet at the head of the queue when the port is about to send it."""

    @property
    def now_ps(self) -> int:
        """Time of the departure in ps."""

    @property
    def rank(self) -> int:
        """Rank of the packet, as ``Queue.rank`` has returned it; 0 in a queue without ranks."""

    @property
    def waited_ps(self) -> int:
        """Time that the packet has waited in the queue, in ps."""

    @property
    def left_packets(self) -> int:
        """Number of packets left in the queue behind this packet."""

    @property
    def left_bytes(self) -> int:
        """IP bytes left in the queue behind this packet."""


class Timer(Protocol):
    """State of a port at the end of a period of a queue's timer."""

    @property
    def now_ps(self) -> int:
        """Time of the end of the period in ps."""

    @property
    def delay_ps(self) -> int:
        """Queueing delay in ps: time until all packets that are at the port now have been sent."""


class Window(Protocol):
    """Congestion window of a sender."""

    @property
    def cwnd(self) -> int:
        """Congestion window in bytes."""

    @property
    def ssthresh(self) -> int:
        """Slow start threshold in bytes, very large before the first loss."""


class Ack(Protocol):
    """ACK that is passed to ``Congestion.on_ack``: the congestion window may grow at this ACK."""

    @property
    def now_ps(self) -> int:
        """Time of the ACK's arrival in ps."""

    @property
    def acked(self) -> int:
        """Number of bytes that the ACK acknowledges for the first time."""

    @property
    def srtt_ps(self) -> int:
        """Smoothed round-trip time in ps."""

    @property
    def after_timeout(self) -> bool:
        """Whether the sender is in recovery after a timeout."""

    @property
    def in_slow_start(self) -> bool:
        """Whether the window is below the slow start threshold."""


class Seen(Protocol):
    """ACK that is passed to ``Congestion.observe``, which is called for every ACK."""

    @property
    def now_ps(self) -> int:
        """Time of the ACK's arrival in ps."""

    @property
    def delivered(self) -> int:
        """Number of bytes that the ACK reports as delivered for the first time."""

    @property
    def marked(self) -> bool:
        """Whether the ACK echoes a mark (ECE)."""

    @property
    def acked_to(self) -> int:
        """Position in the stream of bytes before which all bytes are acknowledged."""

    @property
    def sent_to(self) -> int:
        """Position in the stream of bytes of the next new byte to send."""

    @property
    def rtt_ps(self) -> int | None:
        """Sample of the round-trip time in ps, or None where the ACK has no sample."""

    @property
    def delivery_rate_bps(self) -> int | None:
        """Sample of the delivery rate in bit/s of payload, or None where the ACK has no sample."""

    @property
    def app_limited(self) -> bool:
        """Whether the application limited the rate: ``delivery_rate_bps`` is a lower bound."""

    @property
    def cwnd(self) -> int:
        """Congestion window in bytes, before the ACK."""

    @property
    def telemetry(self) -> Sequence[HopTelemetry]:
        """Records of the switch ports on the path of a data packet, in the order of the path.

        The data packet is the last that arrived before the receiver sent the ACK. The sequence is
        empty if an earlier ACK has brought these records, or without ``reads_telemetry``.
        """


class HopTelemetry(Protocol):
    """State of a switch port when it began to send a packet: a record of in-band telemetry."""

    @property
    def time_ps(self) -> int:
        """Start of the transmission of the packet, in ps."""

    @property
    def queued_bytes(self) -> int:
        """IP bytes in the queues of the port behind the packet."""

    @property
    def sent_bytes(self) -> int:
        """Bytes on the link, framing included, that the port had sent before the packet."""

    @property
    def rate_bps(self) -> int:
        """Rate of the link in bit/s."""


class Choice(Protocol):
    """Packet at a switch from which several equal paths lead to the receiver, and these paths."""

    @property
    def now_ps(self) -> int:
        """Time in ps at which the switch chooses a path."""

    @property
    def paths(self) -> int:
        """Number of equal paths, at least two."""

    @property
    def flow_hash(self) -> int:
        """15-bit hash, equal for all packets of a connection in one direction."""

    @property
    def receiver(self) -> int:
        """Number of the receiving host."""

    @property
    def kind(self) -> str:
        """Kind of the packet: data, retransmission, ack, syn, syn_ack, fin or datagram."""

    @property
    def queued_packets(self) -> list[int]:
        """Number of packets in the queue of each path's port."""

    @property
    def queued_bytes(self) -> list[int]:
        """IP bytes in the queue of each path's port."""

    @property
    def ports(self) -> list[int]:
        """Number of each path's link; the number does not change if another path fails."""

    @property
    def rates_bps(self) -> list[int]:
        """Present rate of each path's link in bit/s; a fault can lower this rate."""

    @property
    def delivered_bytes(self) -> list[int]:
        """Bytes, framing included, that each path's link has delivered since the start."""

    @property
    def ingress(self) -> int:
        """Number of the link on which the packet has entered the switch."""

    @property
    def edge(self) -> int:
        """Number of the switch to which the receiving host is attached."""

    @property
    def tag(self) -> int:
        """Tag that the previous switch has returned from ``forward``; 0 at the first switch."""


class Transit(Protocol):
    """Packet that a switch is about to enqueue at a port."""

    @property
    def now_ps(self) -> int:
        """Simulated time in ps."""

    @property
    def flow_hash(self) -> int:
        """15-bit hash, equal for all packets of a connection in one direction."""

    @property
    def receiver(self) -> int:
        """Number of the receiving host."""

    @property
    def kind(self) -> str:
        """Kind of the packet: data, retransmission, ack, syn, syn_ack, fin or datagram."""

    @property
    def wire_bytes(self) -> int:
        """Bytes of the packet on the link, framing included."""

    @property
    def queued_packets(self) -> int:
        """Packets in the queue of the port, without this packet and the packet in transmission."""

    @property
    def queued_bytes(self) -> int:
        """IP bytes in the queue of the port, without this packet and the packet in transmission."""

    @property
    def port(self) -> int:
        """Number of the link on which the packet leaves the switch."""

    @property
    def rate_bps(self) -> int:
        """Present rate of the egress link in bit/s; a fault can lower this rate."""

    @property
    def ingress(self) -> int:
        """Number of the link on which the packet has entered the switch."""

    @property
    def edge(self) -> int:
        """Number of the switch to which the receiving host is attached."""

    @property
    def from_host(self) -> bool:
        """Whether the packet comes from a host: this switch is the first on the path."""

    @property
    def to_host(self) -> bool:
        """Whether the packet leaves to the receiving host: this switch is the last on the path."""

    @property
    def tag(self) -> int:
        """Tag that the previous switch has returned from ``forward``; 0 at the first switch."""


class Queue(Base):
    """Base class of queue disciplines: override ``at_enqueue``, ``at_dequeue`` or ``rank``.

    The simulator sets ``rate_bps``, ``mtu`` (bytes), ``limit_packets`` and ``limit_bytes``.
    """

    #: With ``rank``: whether the packets of a flow leave in the order of their arrival. The
    #: smallest rank then selects the flow, and the first packet of this flow is sent.
    keeps_flow_order: ClassVar[bool] = False
    #: Whether ``at_enqueue`` may return ``Verdict.TRIM``; not together with ``rank``.
    trims: ClassVar[bool] = False

    update_period_ps: int | None = None
    """Period of ``at_timer`` in ps, at least 100 ns; it may be set in ``__init__``."""

    if typing.TYPE_CHECKING:
        rate_bps: int
        mtu: int
        limit_packets: int | None
        limit_bytes: int | None

    def at_enqueue(self, arrival: Arrival) -> Verdict:
        """Return the verdict on an arriving packet."""
        return Verdict.ENQUEUE if arrival.fits else Verdict.DROP

    def at_dequeue(self, head: Head) -> Verdict:
        """Return the verdict on the packet at the head of the queue, which is about to be sent.

        After a drop, this method is called for the next packet.
        """
        return Verdict.ENQUEUE

    def rank(self, arrival: Arrival) -> int:
        """Return the rank of an admitted packet, 0 to 2**64 - 1; the smallest rank is sent first.

        Of packets with equal ranks, the packet that arrived first is sent first. A full queue drops
        the packet with the largest rank, which may be the arriving packet.
        """
        raise NotImplementedError

    def at_push_out(self, packet: Head) -> None:
        """Update the state of the object after a full queue with ranks has dropped ``packet``."""

    def at_timer(self, timer: Timer) -> bool | None:
        """Update the state of the object at the end of each ``update_period_ps``.

        Return True if further calls would change nothing until the next packet arrives at the idle
        port. The simulator may then skip these calls.
        """
        raise NotImplementedError

    @staticmethod
    def signal(packet: Packet) -> Verdict:
        """Return the verdict with which a packet signals congestion to its sender.

        The settings ``ecn`` and ``protection`` of the queue apply.

        A packet whose transport understands marks is marked, a protected packet is enqueued, and
        any other packet is dropped early.
        """
        return _VERDICTS[packet.signal_verdict]


class Congestion(Base):
    """Base class of congestion controls; methods that are not overridden follow RFC 5681.

    The simulator sets ``segment`` and ``initial_window`` in bytes.
    """

    #: Whether receivers echo each ECN mark separately, as with DCTCP.
    echoes_each_mark: ClassVar[bool] = False
    #: Whether the sender paces its segments at ``pacing_rate_bps``.
    paces: ClassVar[bool] = False
    #: Whether ``observe`` gets telemetry of the switches on the path, in ``Seen.telemetry``.
    reads_telemetry: ClassVar[bool] = False

    pacing_rate_bps: int | None = None
    """Pacing rate in bit/s of payload, read after each call; None: derived from the window."""

    if typing.TYPE_CHECKING:
        segment: int
        initial_window: int

    def on_ack(self, window: Window, ack: Ack) -> int:
        """Return the new window in bytes; called for ACKs while the window limits the sender."""
        raise NotImplementedError

    def after_loss(self, window: Window, flight: int) -> int:
        """Return the slow start threshold in bytes after a loss; ``flight`` bytes are in flight."""
        raise NotImplementedError

    def after_marks(self, window: Window, flight: int) -> int:
        """Return the slow start threshold in bytes after ECN marks; called once per window."""
        raise NotImplementedError

    def observe(self, seen: Seen) -> int | None:
        """Return the new window in bytes, or None for no change; called for every ACK.

        TCP ignores the returned window during recovery from a loss, and while it reduces the window
        after marks. If the class has no ``on_ack``, the window grows as in RFC 5681 at the ACKs for
        which this method returns None.
        """

    def after_timeout(self) -> None:
        """Update the state of the object after a retransmission timeout."""

    def after_idle(self, now_ps: int, idle_ps: int) -> None:
        """Update the state of the object before the first packet after an idle time, in ps."""


class Routing(Base):
    """Base class of routings: override ``choose``, and ``forward`` to see all packets.

    The simulator sets ``switch``, the number of the switch.
    """

    if typing.TYPE_CHECKING:
        switch: int

    def choose(self, choice: Choice) -> int:
        """Return the number of the chosen path, from 0 to ``choice.paths`` - 1."""
        raise NotImplementedError

    def forward(self, transit: Transit) -> int | None:
        """Return the tag with which a packet leaves this switch, or None to keep the present tag.

        Called for every packet at every switch, after ``choose`` if the packet has several paths.
        The tag is a whole number from 0 to 2**64 - 1 that the packet carries to the next switch.
        """


KINDS: dict[str, type[Base]] = {
    "queue": Queue,
    "congestion": Congestion,
    "routing": Routing,
    "application": Application,
}
#: For each kind of mechanism: methods of which a user's class must override at least one.
_NEEDED = {
    "queue": ("at_enqueue", "at_dequeue", "rank"),
    "congestion": ("on_ack", "after_loss", "after_marks", "observe"),
    "routing": ("choose",),
    "application": ("on_start",),
}
#: Attributes that have no effect alone: for each, the attribute that must also be defined.
_NEEDS = {
    "at_push_out": "rank",
    "keeps_flow_order": "rank",
    "trims": "at_enqueue",
    "pacing_rate_bps": "paces",
    "reads_telemetry": "observe",
    "update_period_ps": "at_timer",
}
_TYPES = {int: "int", float: "float", bool: "bool", Duration: "duration"}
#: Names of settings that every queue has, so that parameters cannot have these names.
_TAKEN = frozenset({"kind", "limit", "ecn", "protection"})
#: Names of settings that every workload has; roles and parameters cannot have these names.
_TAKEN_ROLES = frozenset({"kind", "name", "class", "background", "off", "transport", "start"})
_ROLE = re.compile("[a-z][a-z0-9_]{0,39}")
_MOST_ROLES = 20
#: Pattern of names of counters and measures (crates/workload/src/application/tally.rs).
_STATISTIC = re.compile("[a-z0-9_]{1,64}")
#: Maximum number of declared counters of an application, and of declared measures.
_MOST_STATISTICS = 256
#: Attributes of objects that the simulator sets (crates/bindings/src/sketch), by kind.
_GIVEN = {
    "queue": {"random", "rate_bps", "mtu", "limit_packets", "limit_bytes"},
    "congestion": {"random", "segment", "initial_window"},
    "routing": {"random", "switch"},
    "application": {"random", "number", "role", "hosts", "members", "now_ps"},
}
#: Names of the base classes, for messages.
BASES = "eastwest.Queue, Congestion, Routing or Application"
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Sketch:
    """Description of a user's mechanism class, for the simulator (crates/bindings/src/sketch)."""

    kind: str
    name: str
    doc: str
    stream: str
    parameters: list[tuple[str, str, str]]
    """(name, type, default) of each parameter, all as texts of a scenario."""
    methods: list[str]
    """Names of the methods of the base class that the class overrides."""
    class_: type
    roles: list[tuple[str, str]] = field(default_factory=list)
    """Name and meaning of each role of an application."""
    counters: list[tuple[str, str]] | None = None
    """Name and meaning of each counter of an application; None: not declared."""
    measures: list[tuple[str, str]] | None = None
    """Name and meaning of each measure of an application; None: not declared."""


def is_sketch(thing: object) -> bool:
    """Whether an object is a class derived from one of the base classes."""
    return (
        isinstance(thing, type)
        and issubclass(thing, tuple(KINDS.values()))
        and thing not in KINDS.values()
    )


def describe(class_: type) -> Sketch:
    """Return the description of a user's class; raise ``InputError`` if it cannot be used."""
    kind = next((kind for kind, base in KINDS.items() if issubclass(class_, base)), None)
    if kind is None:
        raise InputError(f"{class_.__name__} is not derived from {BASES}")
    base = KINDS[kind]
    public = [name for name in vars(base) if not name.startswith("_")]
    methods = [name for name in public if getattr(class_, name) is not getattr(base, name)]
    if not set(methods) & set(_NEEDED[kind]):
        needed = _NEEDED[kind]
        which = "at least one of the methods" if len(needed) > 1 else "the method"
        raise InputError(f"{class_.__name__} must define {which} {_listed(needed)}")
    for name, other in _NEEDS.items():
        if name in methods and other not in methods:
            raise InputError(
                f"{class_.__name__}.{name} has no effect without {other}: define {other} as well"
            )
    if "trims" in methods and "rank" in methods:
        raise InputError(
            f"{class_.__name__}: a queue with ranks cannot trim packets; remove rank or trims"
        )
    name = getattr(class_, "name", "") or _kebab(class_.__name__)
    if not isinstance(name, str):
        raise InputError(
            f"{class_.__name__}.name is {name!r:.60}, but must be a string, the name by which "
            f'scenarios select the class, such as "{_kebab(class_.__name__)}"'
        )
    lines = (inspect.getdoc(class_) or "").splitlines() if class_.__doc__ else []
    doc = lines[0] if lines else "a sketch in Python"
    stream = getattr(class_, "stream", "") or name
    if not isinstance(stream, str):
        raise InputError(f"{class_.__name__}.stream must be a text, not {stream!r:.60}")
    roles = _roles(class_) if issubclass(class_, Application) else []
    if issubclass(class_, Application):
        _check_hooks(class_)
    parameters = _parameters(class_, base)
    declared = [_declared(class_, each) for each in ("counters", "measures")]
    return Sketch(kind, name, doc, stream, parameters, methods, class_, roles, *declared)


def _check_hooks(class_: type[Application]) -> None:
    """Raise ``InputError`` for a method ``on_…`` that is not a hook, and for a wrong hook.

    A hook is wrong if it is not callable, is async, or contains ``yield``.
    """
    for unknown in (each for each in vars(class_) if each.startswith("on_")):
        if unknown not in HOOKS:
            raise InputError(
                f"{class_.__name__}.{unknown} is not a hook; allowed: {_listed(HOOKS)}"
            )
    for name in HOOKS:
        hook = getattr(class_, name)
        if not callable(hook):
            raise InputError(f"{class_.__name__}.{name} is {hook!r:.60}, but must be a method")
        if inspect.iscoroutinefunction(hook) or inspect.isasyncgenfunction(hook):
            raise InputError(
                f"{class_.__name__}.{name} is async, so that a call would do nothing: remove "
                "async; hooks request actions, and do not wait for them"
            )
        if inspect.isgeneratorfunction(hook):
            raise InputError(
                f"{class_.__name__}.{name} contains yield, so that a call would do nothing: use "
                "self.timer() and on_timer to wait"
            )


def _roles(class_: type[Application]) -> list[tuple[str, str]]:
    """Return (name, meaning) of each role; raise ``InputError`` for names that are not allowed."""
    roles = getattr(class_, "roles", None)
    where = f"{class_.__name__}.roles"
    if not isinstance(roles, Mapping) or not 1 <= len(roles) <= _MOST_ROLES:
        raise InputError(
            f"{where}: must be a mapping of 1 to {_MOST_ROLES} names to their meanings, such as "
            '{"clients": "Hosts that ask."}'
        )
    for name in roles:
        if not isinstance(name, str) or not _ROLE.fullmatch(name):
            raise InputError(
                f"{where}: {name!r} cannot be a name: use 1 to 40 of a to z, 0 to 9 and _, and "
                "begin with a letter"
            )
        if name in _TAKEN_ROLES:
            raise InputError(
                f"{where}: every workload has a setting {name}: use another name for the role"
            )
    return [(name, str(meaning)) for name, meaning in roles.items()]


def _declared(class_: type, attribute: str) -> list[tuple[str, str]] | None:
    """Return (name, meaning) of each declared counter or measure; None if none is declared.

    ``attribute`` is ``counters`` or ``measures``. Raises ``InputError`` for a name that cannot be
    used.
    """
    declared = getattr(class_, attribute, None) if issubclass(class_, Application) else None
    if declared is None:
        return None
    where = f"{class_.__name__}.{attribute}"
    if not isinstance(declared, Mapping) or len(declared) > _MOST_STATISTICS:
        raise InputError(
            f"{where}: must be a mapping of at most {_MOST_STATISTICS} names to meanings, such as "
            '{"missed": "Queries without a complete answer."}'
        )
    for name in declared:
        if not isinstance(name, str) or not _STATISTIC.fullmatch(name):
            raise InputError(
                f"{where}: {name!r} cannot be a name: use at most 64 of a to z, 0 to 9 and _"
            )
    return [(name, str(meaning)) for name, meaning in declared.items()]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()


def _parameters(class_: type, base: type) -> list[tuple[str, str, str]]:
    """Return (name, type, default) of each parameter of a user's class, as texts of a scenario.

    Parameters of parent classes come first. ``base`` is the base class, such as ``Queue``. Raises
    ``InputError`` for parameters that are not allowed.
    """
    try:
        hints = typing.get_type_hints(class_)
    except Exception as error:
        raise InputError(f"the annotations of {class_.__name__} cannot be read: {error}") from None
    inherited = {*typing.get_type_hints(base), *dir(base)}
    found = []
    given = next(_GIVEN[kind] for kind, each in KINDS.items() if each is base)
    for name, hint in hints.items():
        if name in given or callable(getattr(base, name, None)):
            raise InputError(
                f"{class_.__name__}.{name}: {base.__name__} has an attribute of this name; use "
                "another name"
            )
        if name in inherited or name.startswith("_") or typing.get_origin(hint) is ClassVar:
            continue
        if base is Queue and name in _TAKEN:
            raise InputError(
                f"{class_.__name__}.{name}: every queue has a setting of this name; use another "
                "name"
            )
        if base is Application and name in _TAKEN_ROLES:
            raise InputError(
                f"{class_.__name__}.{name}: every workload has a setting of this name; use another "
                "name"
            )
        if issubclass(class_, Application) and name in class_.roles:
            raise InputError(f"{class_.__name__}.{name}: a role has this name; use another name")
        found.append((name, *_parameter(f"{class_.__name__}.{name}", name, hint, class_)))
    return found


def _parameter(where: str, name: str, hint: object, class_: type) -> tuple[str, str]:
    """Return (type, default) of a parameter; raise ``InputError`` if the parameter is not valid."""
    if hint not in _TYPES:
        raise InputError(
            f"{where}: a parameter must be an int, a float, a bool or a Duration; for another type "
            "use ClassVar"
        )
    if not hasattr(class_, name):
        raise InputError(f"{where}: a parameter needs a default, such as {name}: int = 5")
    value = getattr(class_, name)
    if hint is bool and isinstance(value, bool):
        return "bool", "true" if value else "false"
    if hint is Duration:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InputError(
                f'{where}: the default {value!r} is not a time such as ew.Duration("100 us")'
            )
        return "duration", f"{int(value)} ps"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{where}: the default {value!r} does not have the annotated type")
    if hint is int:
        if not isinstance(value, int) or not 0 <= value <= _LARGEST:
            raise InputError(
                f"{where}: the default {value!r} is not a whole number from 0 to {_LARGEST}"
            )
        return "int", str(value)
    if not math.isfinite(value):
        raise InputError(f"{where}: the default {value!r} is not a finite number")
    return "float", repr(float(value))
