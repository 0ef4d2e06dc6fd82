"""Two queues with a control loop: with receding-horizon control, and with an H∞ controller.

Both classes are subclasses of ``loop.Loop`` with another decision; sensor and actuation are
unchanged. The decision uses the model ``tcp_marked``, which needs the number of TCP flows that
share the queue; ``horizon_us`` is the round trip time of these flows with the queue at its set
point.
"""

from __future__ import annotations

import numpy as np

from eastwest.models.delayed import Numbers
from eastwest.models.horizon import Costs, Programme
from eastwest.models.loop import Loop
from eastwest.models.network import Load
from eastwest.models.tcp_marked import TcpMarked

#: Bytes of a frame on the link in addition to the MTU: preamble, header, check sequence and gap.
_FRAMING_BYTES = 38
#: Gain of the observer that corrects the estimated rate of the flows by the difference between
#: counted and expected packets of an interval. The gain is small because the count varies by some
#: 10 % by chance, while the rate itself varies by a few percent.
_OF_RATE = 0.05
#: Gain of the observer that corrects the estimated growth of the rate of the flows; it is small
#: because the counted packets of an interval vary by some 10 % by chance.
_OF_GROWTH = 0.0006
#: Gain, per interval, of the integrator that removes the mean difference of queue and set point.
_OF_AIM = 0.002
#: Maximum of the set point in the quadratic programme, as a multiple of the set point of the queue.
#: An integrator raises the set point in the programme until the mean queue is right.
_MOST_AIM = 4


class _OfFlows(Loop):
    """Control loop in a queue that knows how many TCP flows share the queue."""

    #: Number of TCP flows that share the queue.
    flows: int = 8

    def plant(self) -> TcpMarked:
        """Return the model of the TCP flows that share this queue."""
        capacity_pps = self.rate_bps / 8 / (self.mtu + _FRAMING_BYTES)
        base_s = self.horizon_us * 1e-6 - self.set_point / capacity_pps
        return TcpMarked(float(self.flows), capacity_pps, base_s, float(self.set_point))


class HinfLoop(_OfFlows):
    """Queue with a control loop in which an H-infinity controller sets the share of marks."""

    name = "hinf-loop"
    look_ahead: bool = False
    #: Rate ω_b at which the integrator removes an error, in units of 1/(longest delay).
    bandwidth: float = 0.1
    #: Weight of noise in the H-infinity synthesis, see ``hinf.Weights``.
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
        """Return the share of packets to mark in the next interval.

        ``sensed`` is the mean queue of the last interval in packets.
        """
        done = self.controller.decide(np.array([sensed - self.set_point]))
        return self.rest + float(done[0])


class HorizonLoop(_OfFlows):
    """Queue with a control loop in which receding-horizon control sets the share of marks."""

    name = "horizon-loop"
    look_ahead: bool = False
    #: Length of the prediction horizon in µs.
    ahead_us: int = 20_000
    #: Weight ρ of changes of the rate, see ``horizon.Costs``.
    changing: float = 1.0
    #: Rate of a load that is declared in advance, as a share of the link's rate.
    declared_share: float = 0.0
    #: Time of the first start of the declared load, in µs.
    declared_from_us: int = 0
    #: Duration of the declared load, in µs.
    declared_for_us: int = 0
    #: Time between two starts of the declared load, in µs; 0: it starts once.
    declared_every_us: int = 0

    def __init__(self) -> None:
        super().__init__()
        self.model = self.plant()
        self.interval_s = self.interval_us * 1e-6
        steps = max(2, round(self.ahead_us / self.interval_us))
        network = self.model.network(self.interval_s)
        self.programme = Programme(network, steps, Costs(changing=self.changing))
        #: Estimated rate of all flows together, in packets/s.
        self.rate_pps = 0.0
        #: Estimated increase of the rate without marks, in packets/s².
        self.growth = self.model.growth
        #: Reductions of the growth (packets/s²) by marks to which the flows have not reacted yet;
        #: one number for each interval, the newest last.
        self.taken = [0.0] * self.programme.past
        #: Set point in packets for the quadratic programme, raised until the mean queue is right.
        self.aim = float(self.set_point)

    def declared_pps(self, begin_s: float, end_s: float) -> float:
        """Return the mean rate of the declared load between two times, in packets per second."""
        every_s = self.declared_every_us * 1e-6
        first_s, long_s = self.declared_from_us * 1e-6, self.declared_for_us * 1e-6
        rate = self.declared_share * self.model.capacity_pps
        if rate == 0 or end_s <= first_s:
            return 0.0
        number = (begin_s - first_s) // every_s if every_s > 0 else 0
        begins = {first_s + max(0.0, k) * every_s for k in (number, number + 1)}
        return sum(Load("", rate, at, at + long_s).mean(begin_s, end_s) for at in begins)

    def decide(self, sensed: float) -> float:
        """Return the share of packets to mark in the next interval.

        ``sensed`` is the mean queue of the last interval in packets.
        """
        h, now_s = self.interval_s, self.began_ps * 1e-12
        decided = self._estimated(now_s)
        # Reductions of whole windows keep the mean queue below the set point of the programme, so
        # this set point is raised until the mean queue is right.
        self.aim += _OF_AIM * (self.set_point - sensed)
        self.aim = min(_MOST_AIM * self.set_point, max(self.set_point, self.aim))
        loads = [
            self.declared_pps(now_s + t * h, now_s + (t + 1) * h)
            for t in range(self.programme.steps)
        ]
        rates = self.programme.solve(
            np.array([sensed]),
            decided[None, :],
            np.array([loads]),
            grows=np.array([self.growth]),
            set_points=np.array([self.aim]),
        )
        newest = float(decided[-1])
        return self.model.share_for(newest, self.growth - (rates[0, 0] - newest) / h)

    def _estimated(self, now_s: float) -> Numbers:
        """Return the expected rates of all flows together (packets/s), one for each interval.

        The first rate is that of the present interval, the last that of the interval in which the
        next decision acts. The estimates of rate and growth are updated with the number of packets
        that arrived in the last interval.
        """
        model, h = self.model, self.interval_s
        passed_s = max(h, self.passed_ps * 1e-12)
        self.taken = [*self.taken[1:], self.marked * self.rate_pps / (2 * model.flows) / h]
        counted = self.arrived / passed_s - self.declared_pps(now_s - passed_s, now_s)
        expected = self.rate_pps + h * (self.growth - self.taken[0])
        besides = counted - expected
        self.rate_pps = min(model.most_pps, max(0.0, expected + _OF_RATE * besides))
        self.growth += _OF_GROWTH * besides / h
        self.growth = min(3 * model.growth, max(0.3 * model.growth, self.growth))
        coming = self.rate_pps + h * np.cumsum(self.growth - np.array(self.taken))
        rates: Numbers = np.concatenate(([self.rate_pps], coming[1:]))
        return np.clip(rates, 0.0, model.most_pps)
