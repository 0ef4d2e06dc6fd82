"""Fluid model of DCTCP with step marking.

M. Alizadeh, A. Javanmard and B. Prabhakar, *Analysis of DCTCP: Stability, Convergence, and
Fairness*, SIGMETRICS 2011. N flows share a link of C packets per second; a packet that finds more
than K packets waiting is marked, p = 1{q > K}:

    Ẇ = 1/R − W α p(t − R*) / (2R),   α̇ = g/R (p(t − R*) − α),   q̇ = N W/R − C,

with R = T + q/C, and R* = T + K/C for the delay of marks. With step marking there is no
equilibrium: the queue oscillates around K in a limit cycle, which is found by integration. The
describing function of a relay gives an estimate of the cycle around the mean marking p̄ = √(2/W̄).
At the frequency ω of the cycle, the phase of the linear part G(jω) is −180°. At the amplitude A of
the cycle, the relay's gain, 2/(πA) √(1 − (b/A)²) for an offset b of the mean queue from K, is
1/|G(jω)|. Not in the model: windows of whole segments of at least two, slow start, bursts of
packets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eastwest.models.delay import Linear, Numbers, integrate, positive


@dataclass(frozen=True)
class Cycle:
    """Limit cycle of the queue around the marking threshold, in packets and seconds."""

    mean: float
    least: float
    most: float
    period_s: float
    #: Share of time with an empty queue, in which the link is not full.
    empty: float

    @property
    def amplitude(self) -> float:
        """Difference between the highest and the lowest queue, in packets."""
        return self.most - self.least


@dataclass(frozen=True)
class Dctcp:
    """DCTCP flows at a queue that marks above a threshold; units are packets and seconds."""

    flows: float
    capacity_pps: float
    base_rtt_s: float
    threshold: float
    gain: float = 1 / 16

    def __post_init__(self) -> None:
        positive(
            the_number_of_flows=self.flows, the_capacity=self.capacity_pps,
            the_round_trip=self.base_rtt_s, the_threshold=self.threshold, the_gain=self.gain,
        )  # fmt: skip

    @property
    def rtt_s(self) -> float:
        """Round trip in seconds with a queue at the threshold."""
        return self.base_rtt_s + self.threshold / self.capacity_pps

    def equilibrium(self) -> tuple[float, float]:
        """Return (mean window W = R C/N in packets, mean share of marked packets p = √(2/W))."""
        window = self.rtt_s * self.capacity_pps / self.flows
        return window, min(1.0, math.sqrt(2 / window))

    def linear(self) -> Linear:
        """Return the linear model with the states queue, window and α.

        Instead of step marking, the share of marks is the deviation of the queue (gain 1).
        """
        window, mark = self.equilibrium()
        rtt, n = self.rtt_s, self.flows
        now = np.array(
            [
                [-1 / rtt, n / rtt, 0],
                [0, -(mark**2) / (2 * rtt), -window * mark / (2 * rtt)],
                [0, 0, -self.gain / rtt],
            ]
        )
        feedback = np.array([0, -window * mark / (2 * rtt), self.gain / rtt])
        return Linear(
            ("queue", "window", "alpha"), now, np.zeros((3, 3)), feedback,
            np.array([1.0, 0, 0]), np.array([1.0, 0, 0]), rtt,
        )  # fmt: skip

    def described(self) -> tuple[float, float]:
        """Return (amplitude from peak to peak in packets, period in s) by the describing function.

        Without an oscillation, the result is (0, NaN).
        """
        loop = self.linear()
        omega = np.geomspace(1e-3 / self.rtt_s, 10 / self.rtt_s, 20_000)
        gain = loop.gain(omega)
        turned = np.unwrap(np.angle(gain))
        turned -= 2 * math.pi * round(turned[0] / (2 * math.pi))
        place = int(np.argmax(turned <= -math.pi))
        if turned[place] > -math.pi:
            return 0.0, math.nan
        _, mark = self.equilibrium()
        # The mean marking p̄ gives b/A = sin(π (p̄ − 1/2)), so that √(1 − (b/A)²) = sin(π p̄).
        amplitude = 2 / math.pi * math.sin(math.pi * mark) * abs(gain[place])
        return 2 * float(amplitude), 2 * math.pi / float(omega[place])

    def play(self, end_s: float) -> tuple[Numbers, Numbers]:
        """Return times in s, and states, array (times, 3), of an integration until ``end_s``.

        The states are queue and window (packets), and α. The queue begins at the threshold, window
        and α at their means.
        """
        window, mark = self.equilibrium()
        n, c, base, g, k = (
            self.flows, self.capacity_pps, self.base_rtt_s, self.gain, self.threshold,
        )  # fmt: skip
        delay_s = self.rtt_s

        def flow(now: list[float], late: list[float]) -> list[float]:
            trip, marked = base + now[0] / c, 1.0 if late[0] > k else 0.0
            shrink = now[1] * now[2] * marked / 2
            return [n * now[1] / trip - c, (1 - shrink) / trip, g * (marked - now[2]) / trip]

        start = [k, window, mark]
        return integrate(flow, start, lambda _: delay_s, end_s, delay_s / 100, [0.0, 1.0, 0.0])

    def cycle(self, rounds: float = 300.0) -> Cycle:
        """Return the limit cycle, from the second half of an integration.

        The integration has a length of ``rounds`` round trips.
        """
        times, states = self.play(rounds * self.rtt_s)
        half = len(times) // 2
        queue = states[half:, 0]
        above = queue > self.threshold
        rises = np.flatnonzero(above[1:] & ~above[:-1])
        span = times[half:]
        period = float(np.diff(span[rises]).mean()) if len(rises) > 1 else math.nan
        return Cycle(
            float(queue.mean()), float(queue.min()), float(queue.max()), period,
            float((queue <= 0).mean()),
        )  # fmt: skip
