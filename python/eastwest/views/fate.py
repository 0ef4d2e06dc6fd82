"""The history of one message: its losses, timeouts and recoveries, and the parts of its time.

A message is a range of payload positions of one stream; a stream is one direction of a connection.
The message's time is divided into parts that do not overlap and add up to it. Where several parts
apply, the first in this list counts:

1. *timer*: the first byte missing at the receiver waits for the sender's retransmission timer. The
   wait lasts from the loss of this byte (or from the previous timeout, if the byte was lost again)
   until the timeout. If the loss is not in the table, the wait is assumed to begin one minimum
   timeout before the timeout, so its length is a lower bound.
2. *behind*: earlier messages of the stream are not yet delivered; TCP keeps the order.
3. *recovery*: from a fast retransmit until everything outstanding at its start was acknowledged.
4. *unnoticed*: from the loss of a byte of the message, or of an earlier byte of the stream, until
   the sender reacts by fast recovery or a timeout. Without a recorded reaction, a probe has
   repaired the loss, and the part lasts until the end of the message. Meanwhile the receiver
   delivers no byte behind the lost byte.
5. *sending*: the remaining time: sending, queueing, sharing links with other flows, opening the
   connection and its congestion window.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from eastwest.views.evidence import Event
from eastwest.views.series import covered

TIMER, BEHIND, RECOVERY = "timer", "behind", "recovery"
UNNOTICED, SENDING = "unnoticed", "sending"
_ORDER = (TIMER, BEHIND, RECOVERY, UNNOTICED)
_HANDSHAKE = {"syn", "syn_ack"}


@dataclass(frozen=True)
class Message:
    """Message on a connection: host numbers, bytes, times, and its position in the TCP stream."""

    src: int
    dst: int
    bytes: int
    start_s: float
    finish_s: float
    #: Completion time of the message in µs.
    total_us: float
    #: Number of the connection; None if the table of messages lacks it.
    connection: int | None
    #: Position of the message's first byte in its stream, in bytes; None if it is not known.
    stream_start: int | None

    def position(self, event: Event) -> int:
        """Return the distance in bytes from the message's first byte to the event's first byte.

        The distance is negative if the event's first byte belongs to an earlier message.
        """
        return event.stream_start - (self.stream_start or 0)

    def sent_by(self, event: Event) -> bool:
        """Whether an event belongs to the direction of the connection in which the message goes.

        While the message is in flight, timeouts and recoveries of this direction concern the
        message or earlier messages: TCP repairs the earliest missing byte first.
        """
        return (event.src, event.dst) == (self.src, self.dst)

    def at_us(self, time_s: float) -> float:
        """Return the time in µs from the start of the message to ``time_s`` (simulated s)."""
        return (time_s - self.start_s) * 1e6


@dataclass(frozen=True)
class Silence:
    """Wait of a message for the retransmission timer of its sender."""

    #: Begin of the wait, in simulated s.
    begin_s: float
    #: Time at which the timer expired, in simulated s.
    timeout_s: float
    #: Drop of the packet that the timeout retransmits; None if the table of events lacks the drop.
    loss: Event | None
    #: Whether the wait follows an earlier timeout for the same byte.
    again: bool
    #: Whether an acknowledgement later showed that the timeout was needless.
    spurious: bool

    @property
    def lasts_s(self) -> float:
        """Seconds from the beginning of the wait to the timeout."""
        return self.timeout_s - self.begin_s

    @property
    def at_least(self) -> bool:
        """Whether ``lasts_s`` is a lower bound, because the loss before the wait is not known."""
        return self.loss is None and not self.again


@dataclass(frozen=True)
class Interval:
    """Interval of simulated time in s, with the part of the message time, such as ``recovery``."""

    label: str
    begin_s: float
    end_s: float


def silences(events: list[Event], message: Message, least_rto_s: float) -> list[Silence]:
    """Return a message's waits for the retransmission timer of its sender, in order of time.

    ``events`` are the events of both directions of the connection; ``least_rto_s`` is the minimum
    retransmission timeout in s, with which a wait begins if its loss is not in ``events``.
    """
    found: list[Silence] = []
    own = [e for e in events if message.sent_by(e)]
    back = [e for e in events if (e.src, e.dst) == (message.dst, message.src)]
    losses = [e for e in own if e.what == "drop"]
    losses += [e for e in back if e.what == "drop" and e.kind in _HANDSHAKE]
    previous: Event | None = None
    for event in own:
        if event.what != "timeout":
            continue
        since = previous.time_s if previous is not None else float("-inf")
        candidates = [e for e in losses if e.time_s <= event.time_s and _lost(e, event, message)]
        loss = max(candidates, key=lambda e: e.time_s, default=None)
        again = previous is not None and previous.stream_start == event.stream_start
        if again:
            begin = since
        elif loss is not None:
            begin = max(loss.time_s, since)
        else:
            begin = max(event.time_s - least_rto_s, since)
        spurious = any(
            e.what == "spurious" and e.time_s >= event.time_s and _until(own, event, e) for e in own
        )
        found.append(Silence(begin, event.time_s, loss, again, spurious))
        previous = event
    return found


def _lost(loss: Event, timeout: Event, message: Message) -> bool:
    """Whether ``timeout`` retransmits the packet whose drop is the event ``loss``."""
    if loss.kind in _HANDSHAKE:
        return is_handshake(timeout)
    return not is_handshake(timeout) and loss.covers(timeout.stream_start)


def is_handshake(timeout: Event) -> bool:
    """Whether a timeout retransmits a SYN or SYN-ACK: no payload is outstanding."""
    return timeout.stream_start == 0 and timeout.bytes == 0


def _until(own: list[Event], first: Event, last: Event) -> bool:
    """Whether the events ``own`` have no timeout after ``first`` up to ``last``."""
    return not any(e.what == "timeout" and first.time_s < e.time_s <= last.time_s for e in own)


def recoveries(events: list[Event], message: Message) -> list[tuple[float, float]]:
    """Return (start, end) in simulated s of each fast recovery of a message's sender.

    A recovery ends with an event ``recovered`` or ``failed``, with a timeout, or with the message.
    Retransmissions after a timeout are no fast recovery: their event ``recovered`` is ignored.
    """
    found: list[tuple[float, float]] = []
    begin: float | None = None
    for event in events:
        if not message.sent_by(event):
            continue
        if event.what == "recovery" and begin is None:
            begin = event.time_s
        elif event.what in {"recovered", "timeout", "failed"} and begin is not None:
            found.append((begin, event.time_s))
            begin = None
    if begin is not None:
        found.append((begin, message.finish_s))
    return found


def unnoticed(events: list[Event], message: Message) -> list[tuple[float, float]]:
    """Return (time of loss, time of reaction) in simulated s for each loss that delays a message.

    These are losses of payload of the message or of earlier bytes of the stream. The sender reacts
    by fast recovery or a timeout; without a reaction, the second time is the end of the message.
    """
    own = [event for event in events if message.sent_by(event)]
    reactions = [event.time_s for event in own if event.what in {"recovery", "timeout", "failed"}]
    return [
        (loss.time_s, min((t for t in reactions if t > loss.time_s), default=message.finish_s))
        for loss in own
        if loss.what == "drop" and loss.bytes and message.position(loss) < message.bytes
    ]


def divide(message: Message, intervals: Iterable[Interval]) -> dict[str, float]:
    """Return the parts of the time of a message in µs by label; they add up to ``total_us``.

    Where ``intervals`` overlap, the first of ``timer``, ``behind``, ``recovery`` and ``unnoticed``
    counts; time outside all intervals is ``sending``.
    """
    spans: dict[str, list[tuple[float, float]]] = {label: [] for label in _ORDER}
    for interval in intervals:
        begin = max(0.0, message.at_us(interval.begin_s))
        end = min(message.total_us, message.at_us(interval.end_s))
        if end > begin:
            spans[interval.label].append((begin, end))
    parts: dict[str, float] = {}
    taken: list[tuple[float, float]] = []
    for label in _ORDER:
        before = covered(taken)
        taken += spans[label]
        parts[label] = covered(taken) - before
    parts[SENDING] = max(0.0, message.total_us - sum(parts.values()))
    return parts


@dataclass(frozen=True)
class Burst:
    """Consecutive losses of packets of one kind at one port, with their number and bytes."""

    first: Event
    last: Event
    packets: int
    bytes: int


def bursts(events: list[Event]) -> Iterator[Burst | Event]:
    """Yield events in order; consecutive drops of one kind at one port become one ``Burst``."""

    def kind(event: Event) -> tuple[int, str, str, int] | None:
        return (event.link, event.kind, event.cause, event.src) if event.what == "drop" else None

    for of_losses, group in itertools.groupby(events, kind):
        found = list(group)
        if of_losses is None:
            yield from found
        else:
            yield Burst(found[0], found[-1], len(found), sum(event.bytes for event in found))
