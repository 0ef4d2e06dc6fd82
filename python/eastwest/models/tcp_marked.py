"""Model of TCP flows at a queue whose controller sets the share of marked packets.

The model is the plant of a control loop: the model of ``tcp_red`` without RED (V. Misra, W. Gong
and D. Towsley, SIGCOMM 2000). Its states are the queue and the rate of all flows, Λ = N W/R, with
the round trip R at the set point:

    q̇ = Λ + w − C,   Λ̇ = N/R² − μ(t − R),   μ = Λ² p/(2N).

Without marks the rate grows by N/R² per second; a share p of marks reduces this growth by μ. The
model is linear in μ, as the receding horizon needs it. Linearised in p near the equilibrium it is
the model of C. Hollot, V. Misra, D. Towsley and W. Gong (*On designing improved controllers for AQM
routers supporting TCP flows*, INFOCOM 2001), with poles 2N/(R²C) and 1/R.
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
    """TCP flows at a queue whose set point is held by marks; units are packets and seconds."""

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
        """Round trip time in seconds with the queue at its set point."""
        return self.base_rtt_s + self.set_point / self.capacity_pps

    @property
    def window(self) -> float:
        """Window of each flow at the equilibrium, in packets."""
        return self.rtt_s * self.capacity_pps / self.flows

    @property
    def share(self) -> float:
        """Share of marked packets at the equilibrium: 2/W²."""
        return min(1.0, 2 / self.window**2)

    @property
    def growth(self) -> float:
        """Growth of the rate of all flows without marks, in packets per second per second."""
        return self.flows / self.rtt_s**2

    @property
    def most_pps(self) -> float:
        """Maximum rate of all flows together, in packets per second: twice the capacity."""
        return 2 * self.capacity_pps

    def taken(self, rate_pps: float, share: float) -> float:
        """Return the reduction μ = Λ² p/(2N) of the growth of the rate by marks, in packets/s².

        ``rate_pps`` is Λ, the rate of all flows; ``share`` is p, the share of marked packets.
        """
        return rate_pps**2 * share / (2 * self.flows)

    def share_for(self, rate_pps: float, taken: float) -> float:
        """Return the share of marks (0 to 1) that reduces the growth of the rate by ``taken``.

        ``taken`` is in packets/s²; ``rate_pps`` is the rate of all flows.
        """
        return min(1.0, max(0.0, 2 * self.flows * taken / max(1.0, rate_pps) ** 2))

    def linear(self) -> Delayed:
        """Return the linear plant near its equilibrium: input share of marks, output queue."""
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
        """Return units for H∞ synthesis: bandwidth-delay product (queue), 2/W (share of marks).

        The unit of the load is the capacity.
        """
        one = self.capacity_pps * self.rtt_s
        return Scales(np.array([one]), np.array([2 / self.window]), np.array([self.capacity_pps]))

    def network(self, interval_s: float) -> Network:
        """Return the model as a network of one queue and one flow, for a receding horizon.

        The flow represents all flows. Its rate decreases by at most a half per round trip.
        """
        fall = self.capacity_pps / (2 * self.rtt_s)
        return Network(
            (Queue("queue", self.capacity_pps, self.set_point),),
            (
                Flow(
                    "flows",
                    ("queue",),
                    (0.0,),
                    self.rtt_s,
                    most_pps=self.most_pps,
                    grows=self.growth,
                    falls=fall,
                ),
            ),
            interval_s,
        )
