"""TCP flows whose packets are marked as a controller says: the plant of a queue's control loop.

The model is that of ``tcp_red`` without RED (V. Misra, W. Gong and D. Towsley, SIGCOMM 2000), in
queue and rate in the place of queue and window, Λ = N W/R with the round trip R of the set point:

    q̇ = Λ + w − C,   Λ̇ = N/R² − μ(t − R),   μ = Λ² p/(2N).

Without marks rates grow by N/R² in a second; a share p of marks takes μ of that. In μ the model is
linear, which is what a receding horizon needs; in p its linear form near the equilibrium is that of
C. Hollot, V. Misra, D. Towsley and W. Gong (*On designing improved controllers for AQM routers
supporting TCP flows*, INFOCOM 2001), with poles 2N/(R²C) and 1/R.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eastwest.models.delay import positive
from eastwest.models.delayed import Delayed, Term
from eastwest.models.hinf import Scales
from eastwest.models.network import Flow, Network, Queue


@dataclass(frozen=True)
class TcpMarked:
    """N flows at a queue that is to be held: packets per second, seconds, packets."""

    flows: float
    capacity_pps: float
    base_rtt_s: float
    set_point: float

    def __post_init__(self) -> None:
        positive(
            the_number_of_flows=self.flows, the_capacity=self.capacity_pps,
            the_round_trip=self.base_rtt_s, the_set_point=self.set_point,
        )  # fmt: skip

    @property
    def rtt_s(self) -> float:
        """Round trip with the queue at its set point."""
        return self.base_rtt_s + self.set_point / self.capacity_pps

    @property
    def window(self) -> float:
        """Window of each flow at the equilibrium."""
        return self.rtt_s * self.capacity_pps / self.flows

    @property
    def share(self) -> float:
        """Share of packets that is marked at the equilibrium: 2/W²."""
        return min(1.0, 2 / self.window**2)

    @property
    def growth(self) -> float:
        """What all rates together gain in a second without marks, packets per second."""
        return self.flows / self.rtt_s**2

    def taken(self, rate_pps: float, share: float) -> float:
        """What a share of marks takes from the growth: μ = Λ² p/(2N)."""
        return rate_pps**2 * share / (2 * self.flows)

    def share_for(self, rate_pps: float, taken: float) -> float:
        """The share of marks that takes so much from the growth."""
        return min(1.0, max(0.0, 2 * self.flows * taken / max(1.0, rate_pps) ** 2))

    def linear(self) -> Delayed:
        """The plant near its equilibrium, from a share of marks to the queue."""
        rtt, n, c = self.rtt_s, self.flows, self.capacity_pps
        now = np.array([[-1 / rtt, 1.0], [0.0, -2 * n / (rtt**2 * c)]])
        marks = np.array([[0.0], [-(c**2) / (2 * n)]])
        nothing = np.zeros((2, 1))
        return Delayed(
            states=("queue", "rate"),
            inputs=("marks",),
            outputs=("queue",),
            terms=(Term(0.0, now, nothing), Term(rtt, np.zeros((2, 2)), marks)),
            c=np.array([[1.0, 0.0]]),
            d=np.array([[1.0], [0.0]]),
        )

    def scales(self) -> Scales:
        """What synthesis takes for 1: a bandwidth-delay product, 2/W of marks, the capacity."""
        one = self.capacity_pps * self.rtt_s
        return Scales(np.array([one]), np.array([2 / self.window]), np.array([self.capacity_pps]))

    def network(self, interval_s: float) -> Network:
        """The same as one flow of all rates through one queue, for a receding horizon.

        The flow falls at most by half a window in each round trip.
        """
        fall = self.capacity_pps / (2 * self.rtt_s)
        return Network(
            (Queue("queue", self.capacity_pps, self.set_point),),
            (Flow("flows", ("queue",), (0.0,), self.rtt_s, grows=self.growth, falls=fall),),
            interval_s,
        )
