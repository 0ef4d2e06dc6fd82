"""A control loop in a queue: set point, sensor, decision and actuation, one horizon ahead.

The control loop of Gusat et al. (2009) has a set point, a sensor, a decision and an actuation. In
this module, the sensor is the mean queue of each interval. The decision is a share of packets,
computed by a PI controller (Hollot, Misra, Towsley and Gong, *On designing improved controllers for
AQM routers supporting TCP flows*, INFOCOM 2001),

    share = k_p e + k_i ∫ e dt,   e = queue − set point,

from the queue predicted for the time when the decision takes effect (``predict``), or from the
present queue. The actuation is an ECN mark, or an early drop of packets without ECN. A class
derived from ``Loop`` may override ``sense``, ``decide`` and ``actuate``.
"""

from __future__ import annotations

from eastwest.mechanisms.sketch import Arrival, Queue, Verdict
from eastwest.models.predict import Predictor

_PER_US = 1_000_000
#: Unit in which the predictor gets shares of marked packets: a few percent become about 1.
_SHARE_SCALE = 0.01
#: A decision begins to take effect this number of intervals before the end of the horizon.
_FELT_BEFORE = 2


class Loop(Queue):
    """Queue discipline that marks a share of packets to hold the queue length at a set point."""

    name = "closed-loop"
    #: Set point of the queue length in packets.
    set_point: int = 50
    #: Time between two decisions, in µs.
    interval_us: int = 500
    #: Time from a decision until it has an effect on the queue, in µs.
    horizon_us: int = 4500
    #: Whether a decision uses the predicted queue one horizon ahead instead of the present queue.
    look_ahead: bool = True
    #: Proportional gain of the PI controller: share of marks per packet above the set point.
    proportional: float = 1e-4
    #: Integral gain of the PI controller: share of marks per packet above the set point and second.
    integral: float = 1e-3

    def __init__(self) -> None:
        self.share = 0.0
        self.summed = 0.0
        self.next_ps = 0
        self.seen = 0
        self.sensed = 0.0
        #: Last interval: packets that arrived, packets that were marked, length in ps.
        self.arrived, self.marked, self.passed_ps = 0, 0, 0
        self.marks = 0
        self.began_ps = 0
        self.steps = self.horizon_us // max(1, self.interval_us)
        dead = max(0, self.steps - _FELT_BEFORE)
        scale = (float(max(1, self.set_point)), _SHARE_SCALE)
        self.predictor = Predictor(3, 2, dead, scale=scale)

    def at_enqueue(self, arrival: Arrival) -> Verdict:
        """Sense the queue, decide once in each interval, and return the verdict on the arrival.

        The verdict is to drop, mark or enqueue the packet.
        """
        if not arrival.fits:
            return Verdict.DROP
        self.seen += 1
        self.sensed += self.sense(arrival)
        if arrival.now_ps >= self.next_ps:
            self.arrived, self.marked = self.seen, self.marks
            self.passed_ps, self.began_ps = arrival.now_ps - self.began_ps, arrival.now_ps
            self.share = self._foreseen_and_decided(self.sensed / self.seen)
            self.seen, self.sensed, self.marks = 0, 0.0, 0
            self.next_ps = arrival.now_ps + self.interval_us * _PER_US
        verdict = self.actuate(arrival)
        self.marks += verdict is not Verdict.ENQUEUE
        return verdict

    def sense(self, arrival: Arrival) -> float:
        """Return the value that the loop controls, at an arrival: here the queue in packets.

        The mean of the value over an interval is the argument of ``decide``.
        """
        return arrival.queued_packets

    def decide(self, sensed: float) -> float:
        """Return the share of packets to mark, 0 to 1, by a PI controller.

        ``sensed`` is the mean of ``sense`` over an interval, or its prediction.
        """
        error = sensed - self.set_point
        self.summed += self.integral * error * self.interval_us * 1e-6
        self.summed = min(1.0, max(0.0, self.summed))
        return min(1.0, max(0.0, self.summed + self.proportional * error))

    def actuate(self, arrival: Arrival) -> Verdict:
        """Return the verdict on an arriving packet: mark it with the probability ``self.share``.

        A packet without ECN is dropped instead of marked.
        """
        if self.share > 0 and self.random.unit() < self.share:
            return self.signal(arrival)
        return Verdict.ENQUEUE

    def _foreseen_and_decided(self, sensed: float) -> float:
        if sensed == 0 and self.share == 0:
            return 0.0  # no queue, so no marks, and the predictor is not trained
        if self.look_ahead:
            self.predictor.see(sensed, self.share)
            sensed = self.predictor.ahead(self.steps)
        return self.decide(sensed)
