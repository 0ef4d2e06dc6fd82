"""Nesting: which request a node was serving when it sent another, inferred from times alone.

Aguilera, Mogul, Wiener, Reynolds, Muthitacharoen, *Performance Debugging for Distributed Systems of
Black Boxes* (SOSP 2003), section 4. A call B→C may have the parent A→B if B→C lies within A→B in
time. Of several candidates the most typical is chosen: a *scoreboard* counts, for each A, B, C, how
often each delay between the two requests is possible (each of n candidates counts 1/n), and the
candidate with the highest count wins; a candidate that already has a child at C counts less.
Buckets of delay (a ratio of ``RATIO``) and the weight of earlier children (1 / (1 + number)) are
our choice.

This uses only the delay since the parent's request, which is little information where a node sends
many requests one after the other. ``follow`` is our own extension: nodes mostly send the next
request shortly after the last response. Within a parent, events follow each other: its request,
requests to others, their responses, its own response. With the current assignment, the hazard

    h(C, g | s) = (requests to C with gap g after the last event, in state s) /
                  (times without an event until gap g, in state s) / width of bucket g

is estimated for every state s: the node, the last event, whether a response is awaited, and the
last up to ``HISTORY`` destinations, each smoothed by the estimate for one destination less. A
request is assigned to the candidate with the highest hazard, which is the most likely of the events
that can happen at this time and had not happened before. Assignment and estimate are repeated. Only
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
#: Default number of rounds in which parents are assigned and hazards are estimated again.
ROUNDS = 6
#: Maximum number of earlier destinations in a call on which a hazard may depend.
HISTORY = 3
#: Weight of the estimate from a history that is one destination shorter, as a number of
#: observations.
_SMOOTH = 2.0
#: Lower bound of a hazard, used for an event that was never observed.
_LEAST = 1e-3
#: Maximum number of possible parents of one call that are considered: those that started last.
MOST_CANDIDATES = 256

Told = Callable[[str, float], None]
#: Events within a call. Their numbers order events at equal times: responses come first.
_ANSWER, _BEGIN, _SEND, _END = 0, 1, 2, 3
#: State of a node in a call: (node, last event, node of that event, whether a response is awaited,
#: earlier destinations …).
State = tuple[int, ...]


def nest(calls: Calls, rounds: int = ROUNDS, told: Told | None = None) -> Integers:
    """Return the inferred parent of each call: its row, or −1.

    ``rounds`` is the maximum number of rounds of assignment and estimate; with 0 the result is that
    of the published algorithm. ``told`` is called with the share of the rounds done.
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
    """Return for each call its possible parents: the rows of calls that contain it in time.

    A possible parent of a call is a call that the caller was serving from the request to the
    response. At most the ``MOST_CANDIDATES`` that started last are listed, in the order of their
    starts. The list of a call from outside is empty.
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
    """Return each call's parent (row, or −1) by the published algorithm (Aguilera et al. 2003).

    ``found`` has the possible parents of each call (``candidates``).
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
    """Return the number of a gap's bucket: 0 up to a microsecond, then doubling widths."""
    return (gap_ns // 1000).bit_length() if gap_ns > 0 else 0


@dataclass
class _Hazards:
    """Hazards: how likely a request to a destination is after a state and a gap, from counts."""

    history: int
    #: Number of requests, by state, then by (destination, bucket of the gap).
    events: dict[State, dict[tuple[int, int], int]]
    #: For each state and bucket: number of times that no event had happened up to this bucket.
    risks: dict[State, list[int]]

    @classmethod
    def of(cls, calls: Calls, parents: Integers, history: int) -> _Hazards:
        """Return the hazards estimated from an assignment of parents.

        ``parents`` has the row of each call's parent, or −1; ``history`` is the number of earlier
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
        """Return the hazard of a request to node ``to`` in a state, per ns, up to a common factor.

        ``past``: last destinations within the parent; ``gap``: ns since the last event.
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
    """Yield for each event: the states before it, its (kind, node), and the bucket of its gap.

    The gap is the time since the previous event. The states of an event differ in the length of
    their history; the shortest comes first.
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
    """Return each call's parent (row, or −1): the candidate with the highest hazard.

    ``found`` has the candidates of each call (``candidates``); ``table`` the hazards from the
    previous assignment.
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
