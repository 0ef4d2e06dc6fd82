"""Mechanisms sketched in Python: the classes to derive from, and what they are handed.

Every port, sender or switch gets an object of the class. Annotated attributes with a default
(``int``, ``float`` or ``bool``) are its parameters: the scenario may set them, with the same
messages as for built-in mechanisms. They are set before ``__init__`` is called, which takes no
arguments. Times are whole picoseconds, as within the simulator.
"""

from __future__ import annotations

import inspect
import math
import re
import typing
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Protocol

from eastwest.errors import InputError


class Verdict(IntEnum):
    """The decision on a packet."""

    ENQUEUE = 0
    """It waits; at the head of a queue: it is sent."""
    MARK = 1
    """It waits or is sent, marked if its transport understands marks (RFC 3168)."""
    DROP = 2
    """It is lost because it does not fit."""
    DROP_EARLY = 3
    """It is lost though there was room."""


class Random(Protocol):
    """Random numbers that depend on the seed of the run alone."""

    def unit(self) -> float:
        """Uniform in [0, 1)."""

    def below(self, n: int) -> int:
        """A whole number from 0 to n - 1."""


class Packet(Protocol):
    """The properties of a packet that a queue discipline can read."""

    @property
    def kind(self) -> str:
        """One of data, retransmission, ack, syn, syn_ack, fin, datagram."""

    @property
    def understands_marks(self) -> bool:
        """Whether its transport understands marks: it carries ECT or CE."""

    @property
    def has_payload(self) -> bool:
        """Whether it carries data."""

    @property
    def has_ece(self) -> bool:
        """Whether the ECE bit of its TCP header is set."""

    @property
    def dscp(self) -> int:
        """The packet's differentiated services codepoint, 0 to 63; priority p has codepoint 8 p."""


class Arrival(Packet, Protocol):
    """A packet that comes to a port."""

    @property
    def now_ps(self) -> int:
        """When."""

    @property
    def ip_bytes(self) -> int:
        """The length of the IP packet in bytes."""

    @property
    def queued_packets(self) -> int:
        """Packets that wait before it; the one being sent does not count."""

    @property
    def queued_bytes(self) -> int:
        """Their IP bytes."""

    @property
    def idle(self) -> bool:
        """Whether the port is idle: the packet will be sent at once."""

    @property
    def fits(self) -> bool:
        """Whether the limit of the queue has room for it. Where not, it is lost in any case."""


class Head(Packet, Protocol):
    """A packet whose turn it is to be sent."""

    @property
    def now_ps(self) -> int:
        """When."""

    @property
    def waited_ps(self) -> int:
        """How long it has waited."""

    @property
    def left_packets(self) -> int:
        """Packets behind it."""

    @property
    def left_bytes(self) -> int:
        """Their IP bytes."""


class Window(Protocol):
    """The window of a sender."""

    @property
    def cwnd(self) -> int:
        """Congestion window in bytes."""

    @property
    def ssthresh(self) -> int:
        """Slow start threshold in bytes, very large before the first loss."""


class Ack(Protocol):
    """An ACK that may let the window grow."""

    @property
    def now_ps(self) -> int:
        """When it came."""

    @property
    def acked(self) -> int:
        """Bytes that it acknowledges."""

    @property
    def srtt_ps(self) -> int:
        """Smoothed round-trip time."""

    @property
    def after_timeout(self) -> bool:
        """Whether a timeout is being recovered from."""

    @property
    def in_slow_start(self) -> bool:
        """Whether the window is below the threshold."""


class Seen(Protocol):
    """The values that every ACK reports."""

    @property
    def now_ps(self) -> int:
        """When it came."""

    @property
    def delivered(self) -> int:
        """Bytes that it reports as arrived for the first time."""

    @property
    def marked(self) -> bool:
        """Whether it echoes a mark."""

    @property
    def acked_to(self) -> int:
        """All before this position of the stream is acknowledged."""

    @property
    def sent_to(self) -> int:
        """The position that is sent next."""

    @property
    def rtt_ps(self) -> int | None:
        """A round-trip time, where the ACK gives one."""


class Choice(Protocol):
    """A packet with several shortest paths."""

    @property
    def now_ps(self) -> int:
        """When."""

    @property
    def paths(self) -> int:
        """The number of equal paths, at least two."""

    @property
    def flow_hash(self) -> int:
        """15 bits of a hash: the same for all packets of a connection in this direction."""

    @property
    def receiver(self) -> int:
        """Number of the receiving host."""

    @property
    def kind(self) -> str:
        """See ``Packet.kind``."""

    @property
    def queued_packets(self) -> list[int]:
        """Packets that wait at the port of each path."""

    @property
    def queued_bytes(self) -> list[int]:
        """Their IP bytes."""


class _Base:
    """The common part of all sketches."""

    name: ClassVar[str] = ""
    """Name in scenarios; by default that of the class, ``MyQueue`` as ``my-queue``."""
    stream: ClassVar[str] = ""
    """Name of its random numbers, by default the name of the sketch."""

    if typing.TYPE_CHECKING:
        random: Random


class Queue(_Base):
    """A queue discipline: override ``at_enqueue``, ``at_dequeue`` or both."""

    if typing.TYPE_CHECKING:
        rate_bps: int
        mtu: int
        limit_packets: int | None
        limit_bytes: int | None

    def at_enqueue(self, arrival: Arrival) -> Verdict:
        """Decide about a packet that comes."""
        return Verdict.ENQUEUE if arrival.fits else Verdict.DROP

    def at_dequeue(self, head: Head) -> Verdict:
        """Decide about the packet that is next; after a dropped one, about the one behind it."""
        return Verdict.ENQUEUE

    @staticmethod
    def signal(packet: Packet) -> Verdict:
        """Mark a packet whose transport understands marks, drop any other."""
        return Verdict.MARK if packet.understands_marks else Verdict.DROP_EARLY


class Congestion(_Base):
    """A congestion control. What a class does not override is done as in RFC 5681."""

    #: Whether receivers answer each mark, as with DCTCP.
    echoes_each_mark: ClassVar[bool] = False

    if typing.TYPE_CHECKING:
        segment: int
        initial_window: int

    def on_ack(self, window: Window, ack: Ack) -> int:
        """Return the new window in bytes. Asked while the window limits the sender."""
        raise NotImplementedError

    def after_loss(self, window: Window, flight: int) -> int:
        """Return the threshold after a loss with ``flight`` bytes outstanding."""
        raise NotImplementedError

    def after_marks(self, window: Window, flight: int) -> int:
        """Return the threshold after marks, which come once per window of data at most."""
        raise NotImplementedError

    def observe(self, seen: Seen) -> None:
        """See every ACK."""

    def after_timeout(self) -> None:
        """Hear of a timeout."""

    def after_idle(self, now_ps: int, idle_ps: int) -> None:
        """Hear that something is sent after nothing was under way for this time."""


class Routing(_Base):
    """A choice among equal paths: override ``choose``."""

    if typing.TYPE_CHECKING:
        switch: int

    def choose(self, choice: Choice) -> int:
        """Return the number of the path, below ``choice.paths``."""
        raise NotImplementedError


KINDS: dict[str, type[_Base]] = {"queue": Queue, "congestion": Congestion, "routing": Routing}
#: Methods of which a class must have one of its own.
_NEEDED = {
    "queue": ("at_enqueue", "at_dequeue"),
    "congestion": ("on_ack", "after_loss", "after_marks"),
    "routing": ("choose",),
}
_TYPES = {int: "int", float: "float", bool: "bool"}
_TAKEN = frozenset({"kind", "limit"})
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Sketch:
    """A class as the simulator takes it (crates/bindings/src/sketch)."""

    kind: str
    name: str
    doc: str
    stream: str
    parameters: list[tuple[str, str, str]]
    """Name, type and default, as written in a scenario."""
    methods: list[str]
    """The methods that the class itself defines."""
    class_: type


def is_sketch(thing: object) -> bool:
    """Whether this is a class that was derived from one of the three."""
    return (
        isinstance(thing, type)
        and issubclass(thing, tuple(KINDS.values()))
        and thing not in KINDS.values()
    )


def describe(class_: type) -> Sketch:
    """Describe a class to the simulator. Raises ``InputError`` where it cannot be used."""
    kind = next((kind for kind, base in KINDS.items() if issubclass(class_, base)), None)
    if kind is None:
        raise InputError(f"{class_.__name__} is no eastwest.Queue, Congestion or Routing")
    base = KINDS[kind]
    public = [name for name in vars(base) if not name.startswith("_")]
    methods = [name for name in public if getattr(class_, name) is not getattr(base, name)]
    if not set(methods) & set(_NEEDED[kind]):
        needed = " or ".join(_NEEDED[kind])
        raise InputError(f"{class_.__name__} has no method {needed} of its own")
    name = getattr(class_, "name", "") or _kebab(class_.__name__)
    lines = (inspect.getdoc(class_) or "").splitlines() if class_.__doc__ else []
    doc = lines[0] if lines else "a sketch in Python"
    stream = getattr(class_, "stream", "") or name
    return Sketch(kind, name, doc, stream, _parameters(class_, base), methods, class_)


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()


def _parameters(class_: type, base: type) -> list[tuple[str, str, str]]:
    """Annotated attributes of a class, those of its ancestors first."""
    try:
        hints = typing.get_type_hints(class_)
    except Exception as error:
        raise InputError(f"{class_.__name__}: its annotations cannot be read: {error}") from None
    inherited = {*typing.get_type_hints(base), *dir(base)}
    found = []
    for name, hint in hints.items():
        if name in inherited or name.startswith("_") or typing.get_origin(hint) is ClassVar:
            continue
        found.append((name, *_parameter(f"{class_.__name__}.{name}", name, hint, class_)))
    return found


def _parameter(where: str, name: str, hint: object, class_: type) -> tuple[str, str]:
    """Return the type and the default of a parameter, or say what is wrong with it."""
    if hint not in _TYPES:
        raise InputError(f"{where}: a parameter is an int, a float or a bool (or a ClassVar)")
    if name in _TAKEN:
        raise InputError(f"{where}: every queue has a setting of this name")
    if not hasattr(class_, name):
        raise InputError(f"{where}: a parameter needs a default, such as {name}: int = 5")
    value = getattr(class_, name)
    if hint is bool and isinstance(value, bool):
        return "bool", "true" if value else "false"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{where}: its default {value!r} is not of its type")
    if hint is int:
        if not isinstance(value, int) or not 0 <= value <= _LARGEST:
            raise InputError(f"{where}: its default {value!r} is not a whole number from 0 on")
        return "int", str(value)
    if not math.isfinite(value):
        raise InputError(f"{where}: its default {value!r} is not finite")
    return "float", repr(float(value))
