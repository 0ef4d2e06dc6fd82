"""PIE (RFC 8033) as a sketch: a controller that runs at every period of a timer.

It does what the built-in discipline ``pie`` does, with ``mark_up_to = 1``, and a test compares the
two: their runs have equal digests.
"""

import eastwest as ew

_PS_PER_US = 1_000_000


class Pie(ew.Queue):
    """A controller keeps the queueing delay near a target."""

    name = "my-pie"
    stream = "pie"

    target_us: int = 15_000
    update_us: int = 15_000
    burst_us: int = 150_000
    alpha: float = 0.125
    beta: float = 1.25

    def __init__(self) -> None:
        self.update_period_ps = self.update_us * _PS_PER_US
        self.target = self.target_us * _PS_PER_US
        self.burst_left = self.burst_us * _PS_PER_US
        self.probability = 0.0
        #: Sum of the probabilities since the last signal.
        self.accumulated = 0.0
        #: Queueing delay at the last update, in ps.
        self.delay = 0

    def at_timer(self, timer: ew.Timer) -> bool:
        """Update the probability of a signal."""
        new, old, target = (1e-12 * ps for ps in (timer.delay_ps, self.delay, self.target))
        step = self._scale() * (self.alpha * (new - target) + self.beta * (new - old))
        if self.probability >= 0.1 and step > 0.02:
            step = 0.02
        if timer.delay_ps > 250_000 * _PS_PER_US:
            step = 0.02
        p = self.probability + step
        if timer.delay_ps == 0 and self.delay == 0:
            p *= 0.98
        p = min(max(p, 0.0), 1.0)
        self.probability = 0.0 if p < 1e-12 else p
        burst = self.burst_us * _PS_PER_US
        self.burst_left = max(0, self.burst_left - self.update_us * _PS_PER_US)
        half = self.target // 2
        if self.probability == 0.0 and timer.delay_ps < half and self.delay < half:
            self.burst_left = burst
        self.delay = timer.delay_ps
        return self.probability == 0.0 and self.delay == 0 and self.burst_left == burst

    def _scale(self) -> float:
        """Return the factor of a step: small while the probability is small."""
        steps = ((1e-6, 2048), (1e-5, 512), (1e-4, 128), (1e-3, 32), (1e-2, 8), (1e-1, 2))
        return next((1 / divisor for below, divisor in steps if self.probability < below), 1.0)

    def at_enqueue(self, arrival: ew.Arrival) -> ew.Verdict:
        """Signal congestion with the probability, and spread the signals."""
        if not arrival.fits:
            return ew.Verdict.DROP
        calm = self.delay < self.target // 2 and self.probability < 0.2
        if self.burst_left > 0 or calm or arrival.queued_bytes <= 2 * self.mtu:
            return ew.Verdict.ENQUEUE
        if self.probability == 0.0:
            self.accumulated = 0.0
            return ew.Verdict.ENQUEUE
        self.accumulated += self.probability
        if self.accumulated < 0.85:
            return ew.Verdict.ENQUEUE
        if self.accumulated < 8.5 and self.random.unit() >= self.probability:
            return ew.Verdict.ENQUEUE
        self.accumulated = 0.0
        return self.signal(arrival)
