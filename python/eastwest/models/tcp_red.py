"""Fluid model of TCP at a RED queue.

V. Misra, W. Gong and D. Towsley, *Fluid-based analysis of a network of AQM routers supporting TCP
flows with an application to RED*, SIGCOMM 2000; linearised by C. Hollot, V. Misra, D. Towsley and
W. Gong, *A control theoretic analysis of RED*, INFOCOM 2001. N flows share a link of C packets per
second; R = T + q/C is the round trip, p the probability of a mark or loss:

    Ẇ = 1/R − W W(t − R) p(t − R) / (2 R(t − R)),   q̇ = N W/R − C,   ẋ = K (q − x),   p = red(x),

with K = −C ln(1 − w): RED updates its average x at each packet. Equilibrium: W² p = 2, W = R C/N.
Difference from Hollot et al.: terms of W(t − R) and q(t − R) are kept, so the model is valid for
small windows, too. Not in the model: slow start, timeouts, the limit of one reduction per window,
losses of a full queue.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eastwest.models.delay import Linear, Numbers, integrate, positive


@dataclass(frozen=True)
class Red:
    """Parameters of RED (thresholds ``least`` and ``most`` in packets), as in the simulator."""

    least: float = 5.0
    most: float = 15.0
    probability: float = 0.1
    weight: float = 0.002
    gentle: bool = True
    #: Whether gaps between marks are uniform (default of the simulator), which nearly doubles the
    #: share of marked packets if it is small.
    even: bool = False

    def __post_init__(self) -> None:
        positive(the_upper_threshold=self.most, the_probability=self.probability)
        if not 0 <= self.least < self.most:
            raise ValueError(f"RED's min must be 0 or more and below max, not {self.least}")
        if not (0 < self.weight <= 1 and self.probability <= 1):
            raise ValueError("RED's weight and probability must be above 0 and at most 1")

    def of(self, average: float) -> float:
        """Return the marking probability at an average queue (packets).

        With uniform gaps (``even``), gaps between marks are 1 to 1/p, with a mean of (1/p + 1)/2.
        """
        share = self._drawn(average)
        return 2 * share / (1 + share) if self.even else share

    def _drawn(self, average: float) -> float:
        if average <= self.least:
            return 0.0
        if average <= self.most:
            return self.probability * (average - self.least) / (self.most - self.least)
        if self.gentle and average <= 2 * self.most:
            return self.probability + (1 - self.probability) * (average - self.most) / self.most
        return 1.0

    def slope(self, average: float) -> float:
        """Return the derivative of the marking probability with respect to the average queue.

        The unit is 1/packet.
        """
        share = self._drawn(average)
        return self._rise(average) * (2 / (1 + share) ** 2 if self.even else 1)

    def _rise(self, average: float) -> float:
        if self.least < average <= self.most:
            return self.probability / (self.most - self.least)
        if self.gentle and self.most < average <= 2 * self.most:
            return (1 - self.probability) / self.most
        return 0.0


@dataclass(frozen=True)
class TcpRed:
    """TCP flows at a RED queue; ``base_rtt_s`` is the round-trip time without a queue."""

    flows: float
    capacity_pps: float
    base_rtt_s: float
    red: Red

    def __post_init__(self) -> None:
        positive(
            the_number_of_flows=self.flows, the_capacity=self.capacity_pps,
            the_round_trip=self.base_rtt_s,
        )  # fmt: skip

    @property
    def _averaging(self) -> float:
        """Rate K in 1/s at which RED's average follows the queue.

        With a weight of 1 (no averaging), it is 100 times the link rate in packets/s.
        """
        if self.red.weight >= 1:
            return 100 * self.capacity_pps
        return -self.capacity_pps * math.log1p(-self.red.weight)

    def equilibrium(self) -> tuple[float, float, float, float]:
        """Return the equilibrium (queue, window, marking probability, round trip).

        Queue and window are in packets, the round trip in s. Raises ``ValueError`` if the flows
        need a higher marking probability than RED reaches.
        """
        red = self.red
        low, high = red.least, 2 * red.most if red.gentle else red.most
        if self._excess(high) < 0:
            raise ValueError(
                f"{self.flows:g} flows need a marking probability of "
                f"{self._needed(high):.2g} at {high:g} packets, where RED marks less"
            )
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (low, middle) if self._excess(middle) > 0 else (middle, high)
        rtt_s = self.base_rtt_s + high / self.capacity_pps
        return high, rtt_s * self.capacity_pps / self.flows, red.of(high), rtt_s

    def _needed(self, queue: float) -> float:
        """Return the marking probability 2/W² at which the flows hold the queue at ``queue``."""
        window = (self.base_rtt_s + queue / self.capacity_pps) * self.capacity_pps / self.flows
        return 2 / window**2

    def _excess(self, queue: float) -> float:
        return self.red.of(queue) - self._needed(queue)

    def linear(self) -> Linear:
        """Return the linear model with the states queue, window and RED's average.

        The loop is opened at the marking probability.
        """
        queue, window, _, rtt = self.equilibrium()
        n, c, k = self.flows, self.capacity_pps, self._averaging
        slow = n / (rtt**2 * c)
        now = np.array([[-1 / rtt, n / rtt, 0], [-1 / (rtt**2 * c), -slow, 0], [k, 0, -k]])
        late = np.array([[0.0, 0, 0], [1 / (rtt**2 * c), -slow, 0], [0, 0, 0]])
        feedback = np.array([0, -(window**2) / (2 * rtt), 0])
        slope = np.array([0, 0, self.red.slope(queue)])
        return Linear(
            ("queue", "window", "average"), now, late, feedback, slope, np.array([1.0, 0, 0]), rtt
        )

    def play(
        self, end_s: float, start: tuple[float, float] | None = None
    ) -> tuple[Numbers, Numbers]:
        """Return times in s, and states, array (times, 3), of an integration until ``end_s``.

        The states are queue, window and RED's average, in packets. ``start`` is (queue, window), by
        default 10 % above the equilibrium; the average begins at the queue.
        """
        queue, window, _, rtt = self.equilibrium()
        begin_queue, begin_window = start or (1.1 * queue, 1.1 * window)
        n, c, base, k, red = (
            self.flows, self.capacity_pps, self.base_rtt_s, self._averaging, self.red,
        )  # fmt: skip

        def flow(now: list[float], late: list[float]) -> list[float]:
            trip, was = base + now[0] / c, base + late[0] / c
            grow = 1 / trip - now[1] * late[1] * red.of(late[2]) / (2 * was)
            return [n * now[1] / trip - c, grow, k * (now[0] - now[2])]

        step_s = min(rtt / 50, 0.2 / k)
        start_at = [begin_queue, begin_window, begin_queue]
        return integrate(flow, start_at, lambda z: base + z[0] / c, end_s, step_s, [0.0, 1.0, 0.0])
