"""Queues and injection rates of a small network, as the third study has them.

Gusat et al. 2009 write the network as a controlled system: the state z = [Q; Λ] has the queues and
the injection rates, ż = f(z, u), delays τ = g(z, u), with forward and reverse routing matrices,
0 ≤ λ_i ≤ Λmax and service rates below capacity. Here flow i is decided on by one unit, which hears
of queue j ``sensed`` later, and whose decision is at the source ``told`` later; what the source
sends is at queue j ``forward`` later:

    q̇_j(t) = Σ_i R_ji λ_i(t − forward_ji) + w_j(t) − s_j(t),   q_j ≥ 0,   0 ≤ s_j ≤ C_j,
    λ_i(t) = v_i(t − told_i),   0 ≤ v_i ≤ Λmax_i,   −falls_i ≤ v̇_i ≤ grows_i.

R is the forward routing matrix; the reverse one, from queues to those who decide about flows, is
its transpose with the delays ``sensed`` and ``told``. w is the load that nobody here decides on.
Each queue is taken to see what was sent, not what an earlier queue of the path lets through.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from eastwest.errors import InputError
from eastwest.models.delayed import Delayed, Numbers, Term

#: Steps of an interval in which a network is played.
_SUBSTEPS = 10
#: Most steps of playing.
_MOST_STEPS = 2_000_000


@dataclass(frozen=True)
class Queue:
    """A queue and the link that serves it: packets, seconds."""

    name: str
    capacity_pps: float
    set_point: float
    #: Packets that have room; what comes then is lost.
    room: float = math.inf
    #: How old the unit's knowledge of it is.
    sensed_s: float = 0.0


@dataclass(frozen=True)
class Flow:
    """A flow, or flows that are decided on together, and the queues it goes through."""

    name: str
    over: tuple[str, ...]
    #: From the source to each of the queues.
    forward_s: tuple[float, ...]
    #: From a decision to the source.
    told_s: float = 0.0
    most_pps: float = math.inf
    #: How fast its rate may change, packets per second in a second.
    grows: float = math.inf
    falls: float = math.inf


@dataclass(frozen=True)
class Load:
    """What comes to a queue besides, from and to a time."""

    queue: str
    rate_pps: float
    begin_s: float = 0.0
    end_s: float = math.inf
    #: Whether the unit knows of it before.
    declared: bool = False

    def mean(self, begin_s: float, end_s: float) -> float:
        """Its mean rate from one time to another."""
        within = min(end_s, self.end_s) - max(begin_s, self.begin_s)
        return self.rate_pps * max(0.0, within) / (end_s - begin_s)


@dataclass(frozen=True)
class Network:
    """Queues, flows and loads, and how often is decided."""

    queues: tuple[Queue, ...]
    flows: tuple[Flow, ...]
    interval_s: float
    loads: tuple[Load, ...] = ()

    def __post_init__(self) -> None:
        if not (math.isfinite(self.interval_s) and self.interval_s > 0):
            raise InputError("the interval must be more than 0")
        if not self.queues or not self.flows:
            raise InputError("a network has a queue and a flow at least")
        names = [queue.name for queue in self.queues]
        if len(set(names)) < len(names):
            raise InputError("two queues have the same name")
        for flow in self.flows:
            if not flow.over or len(flow.forward_s) != len(flow.over):
                raise InputError(f"{flow.name}: needs a queue at least, and a delay for each")
        for owner, wanted in (
            *((flow.name, name) for flow in self.flows for name in flow.over),
            *(("a load", load.queue) for load in self.loads),
        ):
            if wanted not in names:
                raise InputError(f"{owner}: there is no queue {wanted!r:.60}")
        if any(not np.any(row) for row in self.routing):
            lonely = names[int(np.argmin(self.routing.any(axis=1)))]
            raise InputError(f"{lonely}: no flow goes through it, so nothing can hold it")

    @property
    def routing(self) -> Numbers:
        """Forward routing matrix: 1 where a flow (column) goes through a queue (row)."""
        return np.array([[float(q.name in f.over) for f in self.flows] for q in self.queues])

    @property
    def forward_s(self) -> Numbers:
        """Delays from each source to each queue; 0 where the flow does not go."""
        return np.array(
            [
                [dict(zip(f.over, f.forward_s, strict=True)).get(q.name, 0.0) for f in self.flows]
                for q in self.queues
            ]
        )

    @property
    def capacity_pps(self) -> Numbers:
        """What each queue's link can serve."""
        return np.array([queue.capacity_pps for queue in self.queues])

    @property
    def most_pps(self) -> Numbers:
        """Greatest rate of each flow: its own, or that of the slowest link it goes over."""
        slowest = [min(q.capacity_pps for q in self.queues if q.name in f.over) for f in self.flows]
        return np.minimum([flow.most_pps for flow in self.flows], slowest)

    def loop_s(self, queues: Numbers | None = None) -> Numbers:
        """How old a decision is when the unit sees what it did, for each queue and flow.

        τ = g(z): sensing, telling, the way to the queue, and waiting in it; with the queues given,
        or at their set points. Not a number where the flow does not go.
        """
        waits = self.set_points if queues is None else queues
        total = self.forward_s + np.array([flow.told_s for flow in self.flows])
        total = total + np.array([queue.sensed_s for queue in self.queues])[:, None]
        total = total + (waits / self.capacity_pps)[:, None]
        return np.where(self.routing > 0, total, np.nan)

    @property
    def set_points(self) -> Numbers:
        """Packets that are to wait in each queue."""
        return np.array([queue.set_point for queue in self.queues])

    def load(self, begin_s: float, end_s: float, declared_only: bool = False) -> Numbers:
        """Mean load of each queue from one time to another."""
        found = np.zeros(len(self.queues))
        names = [queue.name for queue in self.queues]
        for load in self.loads:
            if load.declared or not declared_only:
                found[names.index(load.queue)] += load.mean(begin_s, end_s)
        return found

    def shares(self, capacity_pps: Numbers | None = None) -> tuple[Numbers, NDArrayBool]:
        """Max-min fair rates of the flows, and which queues they fill."""
        left = np.maximum(0.0, self.capacity_pps if capacity_pps is None else capacity_pps)
        routing, most = self.routing, self.most_pps
        rates = np.zeros(len(self.flows))
        full = np.zeros(len(self.queues), dtype=bool)
        growing = np.ones(len(self.flows), dtype=bool)
        while growing.any():
            users = routing @ growing
            room = left - routing @ rates
            with np.errstate(divide="ignore", invalid="ignore"):
                each = np.where(users > 0, room / users, np.inf)
            step = min(float(each.min()), float((most - rates)[growing].min()))
            rates = rates + step * growing
            full |= (users > 0) & (each <= step * (1 + 1e-9) + 1e-9)
            growing = growing & ~(routing[full].any(axis=0)) & (rates < most * (1 - 1e-9))
        return rates, full

    def linear(self) -> Delayed:
        """The network near its fair rates, as synthesis wants it.

        Sources take up what is decided within an interval, λ̇ = (v − λ)/interval. All delays of a
        path are counted on its way from the source to the queue; queues that are not full are left
        out, as nothing is to be held there.
        """
        _, full = self.shares()
        held = [place for place, is_full in enumerate(full) if is_full]
        if not held:
            raise InputError("no queue is ever full: the flows' greatest rates are too small")
        size, flows = len(held) + len(self.flows), len(self.flows)
        late: dict[float, Numbers] = {}
        waits = self.loop_s(np.zeros(len(self.queues)))
        for row, queue in enumerate(held):
            for column in range(flows):
                if self.routing[queue, column]:
                    delay_s = float(waits[queue, column])
                    a = late.setdefault(delay_s, np.zeros((size, size)))
                    a[row, len(held) + column] += 1
        own = np.zeros((size, size))
        inputs = np.zeros((size, flows))
        for column in range(flows):
            own[len(held) + column, len(held) + column] = -1 / self.interval_s
            inputs[len(held) + column, column] = 1 / self.interval_s
        terms = [Term(0.0, own + late.pop(0.0, 0 * own), inputs)]
        terms += [Term(delay_s, a, 0 * inputs) for delay_s, a in sorted(late.items())]
        queues = tuple(self.queues[place].name for place in held)
        names = tuple(flow.name for flow in self.flows)
        return Delayed(
            states=(*queues, *names),
            inputs=names,
            outputs=queues,
            terms=tuple(terms),
            c=np.eye(len(held), size),
            d=np.eye(size, len(held)),
        )


NDArrayBool = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
#: Takes the time and the queues as the unit knows them; returns a rate for each flow.
Decide = Callable[[float, Numbers], Numbers]


@dataclass(frozen=True)
class Played:
    """What a network did: a row for each interval."""

    times_s: Numbers
    queues: Numbers
    #: Rates that were decided.
    rates_pps: Numbers
    #: Packets lost for want of room, and the share of time that a link had nothing to send.
    lost: Numbers
    idle: Numbers


def play(network: Network, decide: Decide, end_s: float) -> Played:
    """Play the network's equations, with queues that are never below 0 nor above their room."""
    steps = math.ceil(end_s / network.interval_s)
    if steps * _SUBSTEPS > _MOST_STEPS:
        raise InputError(f"{steps:,} intervals are more than {_MOST_STEPS // _SUBSTEPS:,}")
    h = network.interval_s / _SUBSTEPS
    told = _in_steps([flow.told_s for flow in network.flows], h)
    forward = np.array([_in_steps(list(row), h) for row in network.forward_s])
    sensed = _in_steps([queue.sensed_s for queue in network.queues], h)
    falls = np.array([flow.falls for flow in network.flows]) * h
    grows = np.array([flow.grows for flow in network.flows]) * h
    room = np.array([queue.room for queue in network.queues])
    most, capacity, routing = network.most_pps, network.capacity_pps, network.routing
    rates, _ = network.shares()
    queue = np.zeros(len(network.queues))
    decided, sent, seen = [rates], [rates], [queue]
    columns, rows = np.arange(len(network.flows)), np.arange(len(network.queues))
    found = [np.zeros((steps, len(network.queues))) for _ in range(3)]
    commands = np.zeros((steps, len(network.flows)))
    for step in range(steps * _SUBSTEPS):
        interval, within = divmod(step, _SUBSTEPS)
        now_s = step * h
        if within == 0:
            known = np.array(seen)[np.maximum(0, len(seen) - 1 - sensed), rows]
            command = np.clip(decide(now_s, known), 0.0, most)
            commands[interval] = command
            found[0][interval] = queue
        decided.append(command)
        wanted = np.array([decided[max(0, len(decided) - 1 - d)][i] for i, d in enumerate(told)])
        sent.append(np.clip(wanted, sent[-1] - falls, sent[-1] + grows))
        comes = network.load(now_s, now_s + h)
        for row in rows:
            places = np.maximum(0, len(sent) - 1 - forward[row])
            arrived = np.array([sent[place][column] for place, column in zip(places, columns,
                                                                             strict=True)])  # fmt: skip
            comes[row] += routing[row] @ arrived
        change = queue + h * (comes - capacity)
        idle = np.maximum(0.0, -change) / (h * capacity)
        over = np.maximum(0.0, change - room)
        queue = np.clip(change, 0.0, room)
        seen.append(queue)
        found[1][interval] += over
        found[2][interval] += idle / _SUBSTEPS
    times = np.arange(steps) * network.interval_s
    return Played(times, found[0], commands, found[1], found[2])


def _in_steps(delays: Sequence[float], h: float) -> np.ndarray[tuple[int, ...], np.dtype[np.int_]]:
    """Delays in whole steps."""
    return np.array([round(delay / h) for delay in delays])
