"""Fluid model of queues and injection rates of a network, after Gusat et al. 2009.

The publication describes the network as a controlled system: the state z = [Q; Λ] has the queues
and the injection rates, ż = f(z, u), with delays τ = g(z, u), forward and reverse routing matrices,
0 ≤ λ_i ≤ Λmax and service rates below capacity. In this module, one decision unit sets the rates of
all flows. This unit learns the length of queue j after the delay ``sensed``; a decision reaches
source i after the delay ``told``; packets of source i reach queue j after the delay ``forward``:

    q̇_j(t) = Σ_i R_ji λ_i(t − forward_ji) + w_j(t) − s_j(t),   q_j ≥ 0,   0 ≤ s_j ≤ C_j,
    λ_i(t) = v_i(t − told_i),   0 ≤ v_i ≤ Λmax_i,   −falls_i ≤ v̇_i ≤ grows_i.

R is the forward routing matrix. The reverse routing matrix, from queues to sources, is its
transpose with the delays ``sensed`` and ``told``. w is load that the decision unit does not
control. Each queue receives the rate at which the source sends; delays of these packets in earlier
queues of the path are not modelled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from eastwest.errors import InputError
from eastwest.models.delayed import Delayed, Numbers, Term

#: Number of integration steps per decision interval.
_SUBSTEPS = 10
#: Maximum number of integration steps of one simulation of the model.
_MOST_STEPS = 2_000_000


@dataclass(frozen=True)
class Queue:
    """A queue and the link that serves it; units are packets and seconds."""

    name: str
    capacity_pps: float
    set_point: float
    #: Maximum number of waiting packets; packets beyond it are lost.
    room: float = math.inf
    #: Delay in s after which the decision unit learns the length of the queue.
    sensed_s: float = 0.0


@dataclass(frozen=True)
class Flow:
    """Flow, or group of flows with one rate; ``over`` has the names of the queues on the path."""

    name: str
    over: tuple[str, ...]
    #: Delay from the source to each queue in ``over``, in s.
    forward_s: tuple[float, ...]
    #: Delay from a decision until the source uses it, in s.
    told_s: float = 0.0
    #: Maximum rate in packets/s; infinite: the capacity of the slowest link on the path.
    most_pps: float = math.inf
    #: Maximum increase of the rate, in packets per second per second.
    grows: float = math.inf
    #: Maximum decrease of the rate, in packets per second per second.
    falls: float = math.inf


@dataclass(frozen=True)
class Load:
    """Load at a queue, from ``begin_s`` to ``end_s``, that the decision unit does not control."""

    queue: str
    rate_pps: float
    begin_s: float = 0.0
    end_s: float = math.inf
    #: Whether the decision unit knows this load in advance.
    declared: bool = False

    def mean(self, begin_s: float, end_s: float) -> float:
        """Return the mean rate of this load from ``begin_s`` to ``end_s``, in packets/s."""
        within = min(end_s, self.end_s) - max(begin_s, self.begin_s)
        return self.rate_pps * max(0.0, within) / (end_s - begin_s)


@dataclass(frozen=True)
class Network:
    """Network of queues and flows with uncontrolled loads, and the time between two decisions."""

    queues: tuple[Queue, ...]
    flows: tuple[Flow, ...]
    interval_s: float
    loads: tuple[Load, ...] = ()

    def __post_init__(self) -> None:
        if not (math.isfinite(self.interval_s) and self.interval_s > 0):
            raise InputError(
                f"the interval between decisions must be above 0 s, not {self.interval_s}"
            )
        if not self.queues or not self.flows:
            raise InputError("a network needs at least one queue and one flow")
        for queue in self.queues:
            if not (math.isfinite(queue.capacity_pps) and queue.capacity_pps > 0):
                raise InputError(
                    f"{queue.name}: the capacity must be above 0 packets/s, not "
                    f"{queue.capacity_pps:g}"
                )
            if not 0 <= queue.set_point <= queue.room:
                raise InputError(
                    f"{queue.name}: the set point must be from 0 to the maximum, {queue.room:g}, "
                    f"not {queue.set_point:g}"
                )
        delays = [d for f in self.flows for d in (f.told_s, *f.forward_s)]
        delays += [queue.sensed_s for queue in self.queues]
        if not all(math.isfinite(delay_s) and delay_s >= 0 for delay_s in delays):
            raise InputError("all delays of flows and queues must be 0 s or more")
        names = [queue.name for queue in self.queues]
        if len(set(names)) < len(names):
            raise InputError(f"two queues have the same name; the names are {', '.join(names)}")
        for flow in self.flows:
            if not flow.over or len(flow.forward_s) != len(flow.over):
                raise InputError(
                    f"{flow.name}: the flow needs at least one queue, and one delay for each queue"
                )
        for owner, wanted in (
            *((flow.name, name) for flow in self.flows for name in flow.over),
            *(("load", load.queue) for load in self.loads),
        ):
            if wanted not in names:
                raise InputError(
                    f"{owner}: there is no queue {wanted!r:.60}; queues are {', '.join(names)}"
                )
        if any(not np.any(row) for row in self.routing):
            lonely = names[int(np.argmin(self.routing.any(axis=1)))]
            raise InputError(f"{lonely}: no flow passes this queue, so it cannot be controlled")

    @property
    def routing(self) -> Numbers:
        """Forward routing matrix: 1 where a flow (column) passes a queue (row), else 0."""
        return np.array([[float(q.name in f.over) for f in self.flows] for q in self.queues])

    @property
    def forward_s(self) -> Numbers:
        """Delay in s from each source (column) to each queue (row); 0 where no packets pass."""
        return np.array(
            [
                [dict(zip(f.over, f.forward_s, strict=True)).get(q.name, 0.0) for f in self.flows]
                for q in self.queues
            ]
        )

    @property
    def capacity_pps(self) -> Numbers:
        """Capacity of the link of each queue, in packets per second."""
        return np.array([queue.capacity_pps for queue in self.queues])

    @property
    def most_pps(self) -> Numbers:
        """Maximum rate of each flow in packets/s: its limit, or the rate of its slowest link."""
        slowest = [min(q.capacity_pps for q in self.queues if q.name in f.over) for f in self.flows]
        own = np.array([flow.most_pps for flow in self.flows])
        return np.where(np.isfinite(own), own, slowest)

    def loop_s(self, queues: Numbers | None = None) -> Numbers:
        """Return the delay of the control loop in s for each queue (row) and flow (column).

        The delay τ = g(z) is the sum of four delays: sensing, sending the decision to the source,
        the path to the queue, and waiting in the queue. ``queues`` are the queues in packets
        (default: the set points). The delay is NaN where the flow does not pass the queue.
        """
        waits = self.set_points if queues is None else queues
        total = self.forward_s + np.array([flow.told_s for flow in self.flows])
        total = total + np.array([queue.sensed_s for queue in self.queues])[:, None]
        total = total + (waits / self.capacity_pps)[:, None]
        return np.where(self.routing > 0, total, np.nan)

    @property
    def set_points(self) -> Numbers:
        """Set point of each queue in packets."""
        return np.array([queue.set_point for queue in self.queues])

    def load(self, begin_s: float, end_s: float, declared_only: bool = False) -> Numbers:
        """Return the mean uncontrolled load of each queue between two times, in packets/s.

        With ``declared_only``, only loads that were declared in advance are added.
        """
        found = np.zeros(len(self.queues))
        names = [queue.name for queue in self.queues]
        for load in self.loads:
            if load.declared or not declared_only:
                found[names.index(load.queue)] += load.mean(begin_s, end_s)
        return found

    def shares(self, capacity_pps: Numbers | None = None) -> tuple[Numbers, NDArrayBool]:
        """Return (max-min fair rates of the flows in packets/s, whether each link is full).

        ``capacity_pps`` replaces the capacities of the links.
        """
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
        """Return the linear model of the network near its fair rates, for H∞ synthesis.

        The rate of a source follows the decision within about one interval, λ̇ = (v − λ)/interval.
        All delays of a loop are added to the delay from the source to the queue. Queues whose link
        the fair rates do not fill are left out, because no rate can hold them above 0.
        """
        _, full = self.shares()
        held = [place for place, is_full in enumerate(full) if is_full]
        if not held:
            raise InputError(
                "the maximum rates of the flows fill no link, so no queue can be controlled"
            )
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
#: Decision unit: function (time in s, sensed queues in packets) that returns the rate of each flow.
Decide = Callable[[float, Numbers], Numbers]


@dataclass(frozen=True)
class Played:
    """Queues (packets) and rates of a network over time: arrays (intervals, queues or flows)."""

    times_s: Numbers
    queues: Numbers
    #: Rates of the flows that the decision unit set, in packets/s.
    rates_pps: Numbers
    #: Packets that each queue lost in the interval because it was full.
    lost: Numbers
    #: Share of the capacity that each link did not use in the interval.
    idle: Numbers


def play(network: Network, decide: Decide, end_s: float) -> Played:
    """Return queues and rates until ``end_s``, by integration of the equations of the network.

    The queues begin empty, the rates at the fair rates. Queues stay between 0 and their maximum
    (``room``). Raises ``InputError`` for more than 200,000 intervals.
    """
    steps = math.ceil(end_s / network.interval_s)
    if steps * _SUBSTEPS > _MOST_STEPS:
        raise InputError(
            f"the model would have {steps:,} intervals; at most {_MOST_STEPS // _SUBSTEPS:,} are "
            "allowed: use a longer interval or a shorter duration"
        )
    h = network.interval_s / _SUBSTEPS
    told = _in_steps(np.array([flow.told_s for flow in network.flows]), h)
    forward = _in_steps(network.forward_s, h)
    sensed = _in_steps(np.array([queue.sensed_s for queue in network.queues]), h)
    falls = np.array([flow.falls for flow in network.flows]) * h
    grows = np.array([flow.grows for flow in network.flows]) * h
    room = np.array([queue.room for queue in network.queues])
    most, capacity, routing = network.most_pps, network.capacity_pps, network.routing
    rates, _ = network.shares()
    # Values of each step. The first rows are the past, which equals the state at the beginning.
    past = int(max(told.max(), forward.max(), sensed.max()))
    decided = np.tile(rates, (past + steps * _SUBSTEPS + 1, 1))
    sent, queue = decided.copy(), np.zeros((len(decided), len(network.queues)))
    lost, idle = np.zeros((2, steps, len(network.queues)))
    flow, row = np.arange(len(network.flows)), np.arange(len(network.queues))
    command = rates
    for step in range(steps * _SUBSTEPS):
        now, interval = past + step, step // _SUBSTEPS
        if step % _SUBSTEPS == 0:
            command = np.clip(decide(step * h, queue[now - sensed, row]), 0.0, most)
        decided[now + 1] = command
        wanted = decided[now + 1 - told, flow]
        sent[now + 1] = np.clip(wanted, sent[now] - falls, sent[now] + grows)
        arrives = (routing * sent[now + 1 - forward, flow]).sum(axis=1)
        arrives += network.load(step * h, (step + 1) * h)
        after = queue[now] + h * (arrives - capacity)
        lost[interval] += np.maximum(0.0, after - room)
        idle[interval] += np.maximum(0.0, -after) / (h * capacity * _SUBSTEPS)
        queue[now + 1] = np.clip(after, 0.0, room)
    starts = past + _SUBSTEPS * np.arange(steps)
    times = np.arange(steps) * network.interval_s
    return Played(np.asarray(times), queue[starts], decided[starts + 1], lost, idle)


def _in_steps(delays_s: Numbers, h: float) -> np.ndarray[tuple[int, ...], np.dtype[np.int_]]:
    """Return delays as whole numbers of steps of ``h`` seconds."""
    return np.rint(delays_s / h).astype(int)
