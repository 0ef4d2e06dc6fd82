"""Decisions for the control loop in a queue: a receding horizon, and an H∞ controller.

Both are ``loop.Loop`` with another decision unit; sensor and actuation stay. They know how many TCP
flows there are and how long their round trip is (``tcp_marked``). ``horizon_us`` is that round
trip, set point included: the time until a decision is felt.
"""

from __future__ import annotations

import numpy as np

from eastwest.models.horizon import Costs, Programme
from eastwest.models.loop import Loop
from eastwest.models.network import Load
from eastwest.models.tcp_marked import TcpMarked

#: Bytes of a frame beside the MTU: preamble, header, check sequence and gap.
_FRAMING_BYTES = 38
#: How much of the difference between what came and what was expected is taken for the rate, and for
#: its growth: counts of an interval vary by some tenths, the rate itself by hundredths.
_OF_RATE = 0.05
_OF_GROWTH = 0.0006


class _OfFlows(Loop):
    """What both decisions know."""

    #: Flows that are marked.
    flows: int = 8

    def plant(self) -> TcpMarked:
        """The model of the flows at this queue."""
        capacity_pps = self.rate_bps / 8 / (self.mtu + _FRAMING_BYTES)
        base_s = self.horizon_us * 1e-6 - self.set_point / capacity_pps
        return TcpMarked(float(self.flows), capacity_pps, base_s, float(self.set_point))


class HinfLoop(_OfFlows):
    """Marks a share of packets by an H-infinity controller."""

    name = "hinf-loop"
    look_ahead: bool = False
    #: How fast an error is removed, as a part of one over the round trip.
    bandwidth: float = 0.1
    #: What a rough measurement counts.
    noise: float = 1.0

    def __init__(self) -> None:
        super().__init__()
        from eastwest.models import hinf  # noqa: PLC0415  slow to load

        plant = self.plant()
        weights = hinf.Weights(bandwidth=self.bandwidth, noise=self.noise)
        self.design = hinf.synthesise(plant.linear(), plant.scales(), weights)
        self.rest = plant.share
        limits = np.array([-self.rest]), np.array([1 - self.rest])
        self.controller = hinf.Sampled(self.design.controller, self.interval_us * 1e-6, *limits)

    def decide(self, sensed: float) -> float:
        """The share of packets to mark."""
        done = self.controller.decide(np.array([sensed - self.set_point]))
        return self.rest + float(done[0])


class HorizonLoop(_OfFlows):
    """Marks a share of packets so that queues to come are near the set point."""

    name = "horizon-loop"
    look_ahead: bool = False
    #: How far the programme looks.
    ahead_us: int = 20_000
    #: What a change of rates costs, beside a queue that is off by its set point.
    changing: float = 1.0
    #: A load that comes besides, known before: its rate as a share of the link, when it first
    #: comes, for how long, and how often again (0: once).
    declared_share: float = 0.0
    declared_from_us: int = 0
    declared_for_us: int = 0
    declared_every_us: int = 0

    def __init__(self) -> None:
        super().__init__()
        self.model = self.plant()
        self.interval_s = self.interval_us * 1e-6
        steps = max(2, round(self.ahead_us / self.interval_us))
        network = self.model.network(self.interval_s)
        self.programme = Programme(network, steps, Costs(changing=self.changing))
        self.rate_pps = 0.0
        self.growth = self.model.growth
        self.taken = [0.0] * self.programme.past
        self.now_s = 0.0

    def declared_pps(self, begin_s: float, end_s: float) -> float:
        """Mean rate of what was declared, from one time to another."""
        every_s = self.declared_every_us * 1e-6
        first_s, long_s = self.declared_from_us * 1e-6, self.declared_for_us * 1e-6
        rate = self.declared_share * self.model.capacity_pps
        if rate == 0 or end_s <= first_s:
            return 0.0
        number = (begin_s - first_s) // every_s if every_s > 0 else 0
        begins = {first_s + max(0.0, k) * every_s for k in (number, number + 1)}
        return sum(Load("", rate, at, at + long_s).mean(begin_s, end_s) for at in begins)

    def decide(self, sensed: float) -> float:
        """The share of packets to mark in the next interval."""
        model, h = self.model, self.interval_s
        self.now_s = self.began_ps * 1e-12
        passed_s = max(h, self.passed_ps * 1e-12)
        # what the marks of the last interval will take, and those whose effect comes now
        cut = self.marked * self.rate_pps / (2 * model.flows)
        self.taken = [*self.taken[1:], cut / h]
        comes = self.arrived / passed_s - self.declared_pps(self.now_s - passed_s, self.now_s)
        expected = self.rate_pps + h * (self.growth - self.taken[0])
        besides = comes - expected
        self.rate_pps = min(model.capacity_pps, max(0.0, expected + _OF_RATE * besides))
        self.growth += _OF_GROWTH * besides / h
        self.growth = min(3 * model.growth, max(0.3 * model.growth, self.growth))
        # rates on their way: the oldest decision is what comes now
        decided = self.rate_pps + h * np.cumsum(self.growth - np.array(self.taken))
        decided = np.clip(np.concatenate(([self.rate_pps], decided[1:])), 0, model.capacity_pps)
        steps = self.programme.steps
        loads = [
            self.declared_pps(self.now_s + t * h, self.now_s + (t + 1) * h) for t in range(steps)
        ]
        rates = self.programme.solve(
            np.array([sensed]),
            decided[None, :],
            np.array([loads]),
            grows=np.array([self.growth]),
        )
        slope = (rates[0, 0] - decided[-1]) / h
        return model.share_for(float(decided[-1]), self.growth - slope)
