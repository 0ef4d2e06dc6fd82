"""Convolution: which messages cause which at a node, and after what delay, from times alone.

Aguilera et al., *Performance Debugging for Distributed Systems of Black Boxes* (SOSP 2003), section
5. Messages from A to X are a signal s(t), messages from X to B a signal r(t): the number of
messages in each time step. If messages from A cause messages to B, the cross-correlation

    c(d) = Σ_t s(t) · r(t + d)

has a spike at the delay d. The cross-correlation is computed by fast Fourier transform for all d at
once. The maximum of c is a spike if it is at least ``DEVIATIONS`` standard deviations of c above
the mean of c, over all delays. The method needs no pairs of requests and responses, and finds no
single transactions: the result is a graph of messages that cause messages.

The result is compared with two truths. A message correlates with all messages that arrived earlier
at its node within the same call, so *precision* counts each of these pairs as right. The *direct*
cause is the last of these earlier messages; *recall* counts direct causes only. Both measures count
kinds of messages, not single messages.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import fft

from eastwest.observe.calls import Calls, Integers

#: Minimum height of a spike of the cross-correlation: standard deviations above the mean.
DEVIATIONS = 8.0
#: Default time step in ns; delays are multiples of it.
STEP_NS = 1_000_000
#: Longest delay between cause and effect that is considered, in time steps.
MOST_STEPS = 2000
#: Number of time steps of one Fourier transform. A longer recording is cut into overlapping pieces
#: of this length.
_PIECE = 1 << 16
#: Minimum number of messages from a source to a destination; a pair of nodes with fewer messages is
#: not analysed.
LEAST_MESSAGES = 8
#: Kind of a cause, as three numbers of nodes: source of the arriving message, node at which it
#: arrives, destination of the departing message.
Kind = tuple[int, int, int]
#: Maximum number of pieces of ``_PIECE`` time steps; a longer recording needs longer time steps.
_MOST_PIECES = 4096


@dataclass(frozen=True)
class Messages:
    """Messages between nodes: source, destination, and times on the clocks of both nodes."""

    nodes: tuple[str, ...]
    source: Integers
    target: Integers
    #: Departure in ns since 1970 on the source's clock.
    left_ns: Integers
    #: Arrival in ns since 1970 on the destination's clock.
    came_ns: Integers


@dataclass(frozen=True)
class Cause:
    """Inferred cause: messages ``origin`` → ``node`` cause messages ``node`` → ``target``."""

    origin: int
    node: int
    target: int
    delay_ns: int
    #: Height of the spike of the cross-correlation, in standard deviations above its mean.
    deviations: float


def messages_of(calls: Calls) -> Messages:
    """Return the requests and responses of ``calls`` as messages, in the order of departure."""
    left = np.concatenate([calls.sent_ns, calls.answered_ns])
    came = np.concatenate([calls.received_ns, calls.returned_ns])
    source = np.concatenate([calls.caller, calls.callee])
    target = np.concatenate([calls.callee, calls.caller])
    order = np.argsort(left, kind="stable")
    return Messages(calls.nodes, source[order], target[order], left[order], came[order])


def causes(
    messages: Messages, step_ns: int = STEP_NS, deviations: float = DEVIATIONS
) -> list[Cause]:
    """Return the inferred causes: after which arriving messages a node sends which messages.

    At each node, the messages from one source are correlated with the messages to one destination;
    if the correlation has a spike of at least ``deviations`` standard deviations, the arriving
    messages cause the departing messages. ``step_ns`` is the time step in ns. Raises ``ValueError``
    if the recording has too many time steps.
    """
    begin = int(min(messages.left_ns.min(), messages.came_ns.min()))
    length = int(max(messages.left_ns.max(), messages.came_ns.max()) - begin) // step_ns + 1
    if length > _PIECE * _MOST_PIECES:
        raise ValueError(
            f"the recording has {length:,} time steps of {step_ns} ns, more than the "
            f"maximum of {_PIECE * _MOST_PIECES:,}: set a longer step (--step)"
        )
    classes: dict[tuple[int, int], list[int]] = {}
    pairs = zip(messages.source.tolist(), messages.target.tolist(), strict=True)
    for row, pair in enumerate(pairs):
        classes.setdefault(pair, []).append(row)
    found = []
    for (origin, node), rows in sorted(classes.items()):
        if node == 0 or len(rows) < LEAST_MESSAGES:
            continue
        arrivals = (messages.came_ns[rows] - begin) // step_ns
        for (other, target), later in sorted(classes.items()):
            if other != node or len(later) < LEAST_MESSAGES:
                continue
            departures = (messages.left_ns[later] - begin) // step_ns
            spike = _spike(correlation(arrivals, departures, length), deviations)
            if spike is not None:
                at, height = spike
                found.append(Cause(origin, node, target, at * step_ns, round(height, 3)))
    return found


def correlation(arrivals: Integers, departures: Integers, length: int) -> npt.NDArray[np.float64]:
    """Return the cross-correlation of arrivals and departures: an array by delay in time steps.

    ``arrivals`` and ``departures`` have the number of a time step for each message; the recording
    has ``length`` time steps, numbered from 0. The array has at most ``MOST_STEPS`` values.
    """
    most = min(MOST_STEPS, length)
    total = np.zeros(most)
    for first in range(0, length, _PIECE):
        one = arrivals[(arrivals >= first) & (arrivals < first + _PIECE)] - first
        other = departures[(departures >= first) & (departures < first + _PIECE + most)] - first
        if not len(one) or not len(other):
            continue
        size = fft.next_fast_len(min(_PIECE, length - first) + 2 * most, real=True)
        spectrum = np.conj(fft.rfft(np.bincount(one, minlength=size)[:size].astype(float)))
        spectrum *= fft.rfft(np.bincount(other, minlength=size)[:size].astype(float))
        total += fft.irfft(spectrum, size)[:most]
    return np.rint(total)


def _spike(signal: npt.NDArray[np.float64], deviations: float) -> tuple[int, float] | None:
    """Return (delay, height) of the highest spike, or None if it is too low.

    ``signal`` is a cross-correlation by delay in time steps. The height is in standard deviations
    above the mean and must be at least ``deviations``.
    """
    spread = float(signal.std())
    if not spread:
        return None
    at = int(signal.argmax())
    height = (float(signal[at]) - float(signal.mean())) / spread
    return (at, height) if height >= deviations else None


def true_causes(calls: Calls) -> tuple[Counter[Kind], Counter[Kind]]:
    """Return two counters of true causes by kind: possible causes, and direct causes.

    Each departing message of a call counts once for each source from which a message of the call
    had arrived before (first counter), and once for the source of the last message that had arrived
    (second counter).
    """
    children: dict[int, list[int]] = {}
    for child, parent in enumerate(calls.parent.tolist()):
        if parent >= 0:
            children.setdefault(parent, []).append(child)
    belong: Counter[Kind] = Counter()
    direct: Counter[Kind] = Counter()
    for parent in range(len(calls)):
        origin, node = int(calls.caller[parent]), int(calls.callee[parent])
        events = [(int(calls.received_ns[parent]), 0, origin)]
        events.append((int(calls.answered_ns[parent]), 1, origin))
        for child in children.get(parent, ()):
            to = int(calls.callee[child])
            events.append((int(calls.sent_ns[child]), 1, to))
            events.append((int(calls.returned_ns[child]), 0, to))
        last = origin
        before: dict[int, None] = {}
        for _, leaves, other in sorted(events):
            if leaves:
                direct[last, node, other] += 1
                belong.update((each, node, other) for each in before)
            else:
                last = other
                before[other] = None
    return belong, direct


@dataclass(frozen=True)
class CauseAccuracy:
    """Accuracy of inferred causes, compared with the true causes that the spans state.

    A kind of true cause is used only if it occurs at least ``LEAST_MESSAGES`` times.
    """

    found: int
    #: Number of inferred causes whose arriving and departing messages belong to one call.
    right: int
    #: Number of kinds of direct causes. The direct cause of a departing message is the message of
    #: its call that arrived last before it.
    direct: int
    #: Number of kinds of direct causes that the method inferred.
    direct_found: int

    @property
    def precision(self) -> float:
        """Share of the inferred causes whose two messages belong to one call, 0 to 1."""
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        """Share of the kinds of direct causes that were inferred, 0 to 1."""
        return self.direct_found / self.direct if self.direct else 1.0


def compare(found: list[Cause], calls: Calls) -> CauseAccuracy:
    """Return the accuracy of the inferred causes ``found``, compared with the true causes."""
    belong, direct = (
        {kind for kind, times in counted.items() if times >= LEAST_MESSAGES}
        for counted in true_causes(calls)
    )
    said = {(each.origin, each.node, each.target) for each in found}
    return CauseAccuracy(len(said), len(said & belong), len(direct), len(said & direct))
