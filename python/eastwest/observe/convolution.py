"""Convolution: which messages follow which at a node, and after how long, from times alone.

Aguilera et al., *Performance Debugging for Distributed Systems of Black Boxes* (SOSP 2003), section
5. Messages from A to X are a signal s(t), those from X to B another, r(t): the number of messages
in each step of time. If A's messages cause X's, their cross-correlation

    c(d) = Σ_t s(t) · r(t + d)

has a spike at the delay d. It is computed by fast Fourier transform for all d at once. A spike is a
local maximum above mean + ``DEVIATIONS`` standard deviations of c over all delays looked at.
Neither pairs of requests and answers nor single transactions are needed or found: the result is a
graph of messages that cause messages.

It is compared with two truths. A message *belongs to* another that came to its node before, within
the same call: what correlates, so that precision counts it as right. The *direct* cause is the last
of these: recall counts direct causes only. Both are counted by kinds of messages, not one by one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import fft

from eastwest.observe.calls import Calls, Integers

#: How far above the mean a spike must be, in standard deviations.
DEVIATIONS = 8.0
#: A step of time, in nanoseconds: a delay is told no finer.
STEP_NS = 1_000_000
#: Longest delay that is looked for, in steps.
MOST_STEPS = 2000
#: Steps of one transform; longer recordings are cut into pieces that overlap.
_PIECE = 1 << 16
#: A message class with fewer messages is not looked at.
LEAST_MESSAGES = 8
#: Nodes: of a message that comes, the node it comes to, where the message that leaves goes.
Kind = tuple[int, int, int]
#: Most pieces: a recording that lasts longer has too fine a step.
_MOST_PIECES = 4096


@dataclass(frozen=True)
class Messages:
    """Messages: when, from where, to where; times of the node that causes or is caused."""

    nodes: tuple[str, ...]
    source: Integers
    target: Integers
    #: When it left its source, on that node's clock; and when it reached its target.
    left_ns: Integers
    came_ns: Integers


@dataclass(frozen=True)
class Cause:
    """Messages from ``origin`` to ``node`` cause messages from there to ``target``."""

    origin: int
    node: int
    target: int
    delay_ns: int
    #: Height of the spike, in standard deviations above the mean.
    deviations: float


def messages_of(calls: Calls) -> Messages:
    """Requests and answers as messages, in the order of their sending."""
    left = np.concatenate([calls.sent_ns, calls.answered_ns])
    came = np.concatenate([calls.received_ns, calls.returned_ns])
    source = np.concatenate([calls.caller, calls.callee])
    target = np.concatenate([calls.callee, calls.caller])
    order = np.argsort(left, kind="stable")
    return Messages(calls.nodes, source[order], target[order], left[order], came[order])


def causes(
    messages: Messages, step_ns: int = STEP_NS, deviations: float = DEVIATIONS
) -> list[Cause]:
    """Find which messages cause which."""
    begin = int(min(messages.left_ns.min(), messages.came_ns.min()))
    length = int(max(messages.left_ns.max(), messages.came_ns.max()) - begin) // step_ns + 1
    if length > _PIECE * _MOST_PIECES:
        raise ValueError(f"{length:,} steps of {step_ns} ns are too many: take longer steps")
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
    """Cross-correlation of two sets of times, in steps, for delays from 0 to ``MOST_STEPS``."""
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
    """The highest spike and its height, where there is one."""
    spread = float(signal.std())
    if not spread:
        return None
    at = int(signal.argmax())
    height = (float(signal[at]) - float(signal.mean())) / spread
    return (at, height) if height >= deviations else None


def true_causes(calls: Calls) -> tuple[Counter[Kind], Counter[Kind]]:
    """How often messages from one node to another belong to those to a third, and cause them."""
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
    """How right the causes found are; only kinds with ``LEAST_MESSAGES`` messages count as true."""

    found: int
    #: Of those found, the kinds that belong together.
    right: int
    #: True direct causes, and how many of them were found.
    direct: int
    direct_found: int

    @property
    def precision(self) -> float:
        """Share of what was found that belongs together."""
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        """Share of the direct causes that was found."""
        return self.direct_found / self.direct if self.direct else 1.0


def compare(found: list[Cause], calls: Calls) -> CauseAccuracy:
    """Compare causes with the true ones."""
    belong, direct = (
        {kind for kind, times in counted.items() if times >= LEAST_MESSAGES}
        for counted in true_causes(calls)
    )
    said = {(each.origin, each.node, each.target) for each in found}
    return CauseAccuracy(len(said), len(said & belong), len(direct), len(said & direct))
