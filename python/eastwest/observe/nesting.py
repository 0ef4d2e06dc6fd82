"""Nesting: which request a node was serving when it sent another, inferred from times alone.

Aguilera, Mogul, Wiener, Reynolds, Muthitacharoen, *Performance Debugging for Distributed Systems of
Black Boxes* (SOSP 2003), section 4. A call B→C may have the parent A→B if B→C lies within A→B in
time. Of several candidates the most typical is chosen: a *scoreboard* counts, for each A, B, C, how
often each delay between the two requests is possible (each of n candidates counts 1/n), and the
candidate with the highest count wins; a candidate that already has a child at C counts less.
Buckets of delay (a ratio of ``RATIO``) and the weight of earlier children (1 / (1 + number)) are
our choice.

The published algorithm uses only the delay since the parent's request, which is little information
where a node sends many requests one after the other. ``follow`` is our own extension: nodes mostly
send the next request shortly after the last response. Within a parent, events follow each other:
its request, requests to others, their responses, its own response. With the current assignment, the
hazard

    h(C, g | s) = (requests to C with gap g after the last event, in state s) /
                  (times without an event until gap g, in state s) / width of bucket g

is estimated for every state s: the node, the last event, whether a response is awaited, and up to
``HISTORY`` previous destinations. An estimate is smoothed by the estimate for one destination less.
A request is assigned to the candidate with the highest hazard: the candidate for which a request is
most likely at this time, given that none came earlier. Assignment and estimate are repeated. Only
nodes and times are used.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from eastwest.observe.calls import Calls, Integers

#: Ratio of the upper limits of two consecutive buckets of delay on the scoreboard.
RATIO = 1.3
#: Default number of rounds; a round estimates the hazards and assigns the parents again.
ROUNDS = 6
#: Maximum number of previous destinations, within one call, on which a hazard depends.
HISTORY = 3
#: Weight, as a number of observations, of the hazard for a history that is one destination shorter.
_SMOOTH = 2.0
#: Hazard that is assumed before any observation; it has the weight ``_SMOOTH``.
_LEAST = 1e-3
#: Maximum number of possible parents of a call; of more, those that started last are considered.
MOST_CANDIDATES = 256

Told = Callable[[str, float], None]
#: Events within a call: a response arrives, the call's request arrives, a request is sent, the
#: call's response is sent. The numbers order events at equal times.
_ANSWER, _BEGIN, _SEND, _END = 0, 1, 2, 3
#: State of a node within a call: (node, last event, other node of this event, whether a response is
#: awaited, previous destinations …).
State = tuple[int, ...]


def nest(calls: Calls, rounds: int = ROUNDS, told: Told | None = None) -> Integers:
    """Return an array: for each call the row of its inferred parent, or −1.

    ``rounds`` is the maximum number of rounds of estimate and assignment; with 0, the published
    algorithm gives the result. ``told`` is called with the word ``nesting`` and the share of the
    rounds done.
    """
    found = candidates(calls)
    parents = scoreboard(calls, found)
    for turn in range(rounds):
        if told is not None:
            told("nesting", turn / rounds)
        table = _Hazards.of(calls, parents, HISTORY if turn else 0)
        after = follow(calls, found, table)
        if (after == parents).all():
            break
        parents = after
    return parents


def candidates(calls: Calls) -> list[list[int]]:
    """Return for each call the rows of its possible parents, in the order of their starts.

    A possible parent is a call that the calling node had received before the request was sent, and
    that it answered after the response had arrived. Of more than ``MOST_CANDIDATES``, those that
    started last are listed. The list of a call from outside is empty.
    """
    by_node: dict[int, list[int]] = defaultdict(list)
    order = np.argsort(calls.received_ns, kind="stable")
    received, answered = calls.received_ns.tolist(), calls.answered_ns.tolist()
    for row in order.tolist():
        by_node[int(calls.callee[row])].append(row)
    starts = {node: [received[row] for row in rows] for node, rows in by_node.items()}
    longest = {
        node: max(answered[row] - received[row] for row in rows) for node, rows in by_node.items()
    }
    found: list[list[int]] = []
    columns = (calls.caller.tolist(), calls.sent_ns.tolist(), calls.returned_ns.tolist())
    for row, (node, sent, returned) in enumerate(zip(*columns, strict=True)):
        rows = by_node.get(node)
        if node == 0 or rows is None:
            found.append([])
            continue
        first = bisect_left(starts[node], sent - longest[node])
        last = bisect_left(starts[node], sent + 1)
        inside = [r for r in rows[first:last] if answered[r] >= returned and r != row]
        found.append(inside[-MOST_CANDIDATES:])
    return found


def scoreboard(calls: Calls, found: list[list[int]]) -> Integers:
    """Return an array: for each call the row of its parent by the published algorithm, or −1.

    The algorithm is that of Aguilera et al. 2003. ``found`` has the possible parents of each call
    (see ``candidates``).
    """
    caller, callee, sent, received = _lists(calls)
    log = math.log(RATIO)

    def cell(parent: int, child: int) -> tuple[int, int, int, int]:
        delay = max(1, sent[child] - received[parent])
        bucket = int(math.log(delay) / log)
        return caller[parent], caller[child], callee[child], bucket

    board: defaultdict[tuple[int, int, int, int], float] = defaultdict(float)
    for child, parents in enumerate(found):
        for parent in parents:
            board[cell(parent, child)] += 1 / len(parents)
    chosen = np.full(len(calls), -1, np.int64)
    children: Counter[tuple[int, int]] = Counter()
    for child, parents in enumerate(found):
        best = 0.0
        for parent in parents:
            score = board[cell(parent, child)] / (1 + children[parent, callee[child]])
            if score > best:
                best, chosen[child] = score, parent
        if parents:
            children[int(chosen[child]), callee[child]] += 1
    return chosen


def _lists(calls: Calls) -> tuple[list[int], list[int], list[int], list[int]]:
    return (
        calls.caller.tolist(),
        calls.callee.tolist(),
        calls.sent_ns.tolist(),
        calls.received_ns.tolist(),
    )


def _bucket(gap_ns: int) -> int:
    """Return the bucket of a gap in ns: 0 below 1 µs, then b for gaps from 2^(b−1) to 2^b µs."""
    return (gap_ns // 1000).bit_length() if gap_ns > 0 else 0


@dataclass
class _Hazards:
    """Counts from which hazards are estimated: how likely a request is after a state and a gap."""

    history: int
    #: Number of requests, by state and then by (destination, bucket of the gap).
    events: dict[State, dict[tuple[int, int], int]]
    #: For each state, a list by bucket: how often no event had happened before this bucket.
    risks: dict[State, list[int]]

    @classmethod
    def of(cls, calls: Calls, parents: Integers, history: int) -> _Hazards:
        """Return the hazards that follow from an assignment of parents.

        ``parents`` has the row of each call's parent, or −1; ``history`` is the number of previous
        destinations on which a hazard may depend.
        """
        events: dict[State, dict[tuple[int, int], int]] = {}
        risks: dict[State, list[int]] = {}
        for states, (kind, to), bucket in _steps(calls, parents, history):
            for state in states:
                risk = risks.setdefault(state, [0] * 64)
                risk[bucket] += 1
                if kind == _SEND:
                    seen = events.setdefault(state, {})
                    seen[to, bucket] = seen.get((to, bucket), 0) + 1
        for risk in risks.values():
            for place in range(62, -1, -1):
                risk[place] += risk[place + 1]
        return cls(history, events, risks)

    def rate(self, state: State, past: tuple[int, ...], to: int, gap: int) -> float:
        """Return the hazard of a request to node ``to``, divided by 2^(bucket of the gap).

        The divisor stands for the width of the bucket. ``state`` is the state without previous
        destinations; ``past`` has the last destinations within the parent; ``gap`` is the time
        since the last event in ns.
        """
        bucket = _bucket(gap)
        hazard = _LEAST
        none: dict[tuple[int, int], int] = {}
        for depth in range(min(self.history, len(past)) + 1):
            key = (*state, *past[len(past) - depth :])
            risk = self.risks.get(key)
            if risk is None:
                break
            seen = self.events.get(key, none).get((to, bucket), 0)
            hazard = (seen + _SMOOTH * hazard) / (risk[bucket] + _SMOOTH)
        return math.ldexp(hazard, -bucket)


def _steps(
    calls: Calls, parents: Integers, history: int
) -> Iterator[tuple[list[State], tuple[int, int], int]]:
    """Yield for each event within a call: (states, (kind, other node), bucket of the gap).

    The states are those before the event; they differ in the number of previous destinations, and
    the state without previous destinations comes first. The gap is the time since the previous
    event of the call.
    """
    children: dict[int, list[int]] = defaultdict(list)
    for child, parent in enumerate(parents.tolist()):
        if parent >= 0:
            children[parent].append(child)
    callee, sent = calls.callee.tolist(), calls.sent_ns.tolist()
    received, answered = calls.received_ns.tolist(), calls.answered_ns.tolist()
    returned = calls.returned_ns.tolist()
    for parent in range(len(calls)):
        node = callee[parent]
        events = [(received[parent], _BEGIN, 0)]
        for child in children.get(parent, ()):
            events.append((sent[child], _SEND, callee[child]))
            events.append((returned[child], _ANSWER, callee[child]))
        events.append((answered[parent], _END, 0))
        events.sort()
        waiting = 0
        past: tuple[int, ...] = ()
        for (time, kind, to), (after, next_kind, next_to) in pairwise(events):
            if kind == _SEND:
                waiting += 1
                past = (*past, to)[-HISTORY:]
            elif kind == _ANSWER:
                waiting -= 1
            state = (node, kind, to, waiting > 0)
            deepest = min(history, len(past))
            states: list[State] = [
                (*state, *past[len(past) - depth :]) for depth in range(deepest + 1)
            ]
            yield states, (next_kind, next_to), _bucket(after - time)


def follow(calls: Calls, found: list[list[int]], table: _Hazards) -> Integers:
    """Return an array: for each call the candidate with the highest hazard, or −1.

    ``found`` has the candidates of each call, as rows (see ``candidates``); ``table`` has the
    hazards from the previous assignment.
    """
    caller, callee, sent, received = _lists(calls)
    returned = calls.returned_ns.tolist()
    chosen = np.full(len(calls), -1, np.int64)
    # For each parent: last event (time, kind, node), awaited responses, last destinations.
    past: dict[int, tuple[int, int, int, tuple[tuple[int, int], ...], tuple[int, ...]]] = {}
    for child, parents in enumerate(found):
        if not parents:
            continue
        now, to = sent[child], callee[child]
        best = -1.0
        for parent in parents:
            time, kind, of, awaited, gone = past.get(parent) or (
                received[parent],
                _BEGIN,
                0,
                (),
                (),
            )
            if awaited and awaited[0][0] <= now:
                while awaited and awaited[0][0] <= now:
                    time, kind, of = awaited[0][0], _ANSWER, awaited[0][1]
                    awaited = awaited[1:]
                past[parent] = (time, kind, of, awaited, gone)
            state = (caller[child], kind, of, bool(awaited))
            rate = table.rate(state, gone, to, now - time)
            if rate > best:
                best, chosen[child] = rate, parent
        parent = int(chosen[child])
        *_, awaited, gone = past.get(parent) or (0, 0, 0, (), ())
        awaited = tuple(sorted((*awaited, (returned[child], to))))
        past[parent] = (now, _SEND, to, awaited, (*gone, to)[-HISTORY:])
    return chosen
