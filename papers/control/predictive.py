"""A queue that is held at a set point by looking one round trip ahead.

The loop of the third study: a set point, a sensor (the mean queue of each interval), a decision
(a share of marks, by a PI controller as in Hollot et al., INFOCOM 2001, on the queue as it will be
when the decision is felt), actuation (marks). ``look_ahead = false`` decides on the queue as it is.
"""

from __future__ import annotations

import eastwest as ew
from eastwest.models.predict import Predictor

_PER_US = 1_000_000


class Predictive(ew.Queue):
    """Marks a share of packets that holds the queue at a set point."""

    set_point: int = 50
    interval_us: int = 500
    horizon_us: int = 4500
    look_ahead: bool = True
    #: Share of marks for a packet too much, and for one that is too much for a second.
    proportional: float = 1e-4
    integral: float = 1e-3

    def __init__(self) -> None:
        self.share = 0.0
        self.summed = 0.0
        self.next_ps = 0
        self.seen = 0
        self.waiting = 0
        steps = self.horizon_us // self.interval_us
        self.steps = steps
        self.predictor = Predictor(3, 2, max(0, steps - 2), scale=(float(self.set_point), 0.01))

    def at_enqueue(self, arrival: ew.Arrival) -> ew.Verdict:
        """Sense, decide once in each interval, and mark."""
        if not arrival.fits:
            return ew.Verdict.DROP
        self.seen += 1
        self.waiting += arrival.queued_packets
        if arrival.now_ps >= self.next_ps:
            self.decide(self.waiting / self.seen)
            self.seen = self.waiting = 0
            self.next_ps = arrival.now_ps + self.interval_us * _PER_US
        if self.share > 0 and self.random.unit() < self.share:
            return self.signal(arrival)
        return ew.Verdict.ENQUEUE

    def decide(self, queue: float) -> None:
        """Set the share of marks for the next interval."""
        if queue == 0 and self.share == 0:
            return  # a port that nothing waits at
        if self.look_ahead:
            self.predictor.see(queue, self.share)
            queue = self.predictor.ahead(self.steps)
        error = queue - self.set_point
        self.summed += self.integral * error * self.interval_us * 1e-6
        self.summed = min(1.0, max(0.0, self.summed))
        self.share = min(1.0, max(0.0, self.summed + self.proportional * error))
