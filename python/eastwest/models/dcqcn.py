"""Fixed point of the fluid model of DCQCN.

Y. Zhu et al., *Congestion control for large-scale RDMA deployments*, SIGCOMM 2015, section 5;
Y. Zhu, M. Ghobadi, V. Misra and J. Padhye, *ECN or delay*, CoNEXT 2016, section 3. N equal flows
share a link of C packets per second, each with the rate R = C/N. Where a packet is marked with
probability p, a flow gets a notification in an interval of τ seconds with probability
a = 1 − (1 − p)^(τR), and α is 1 − (1 − p)^(τ'R) at equilibrium, for the timer τ' of α. Cycles of
the byte counter (B packets) and of the timer (T seconds) that end without a mark have the rates

    b = R p / ((1 − p)^(−B) − 1),   d = R p / ((1 − p)^(−TR) − 1)

and shares (1 − p)^(FB) and (1 − p)^(FTR) of these cycles come after the F cycles of fast recovery.
At equilibrium the decreases and the increases of the target and of the rate cancel:

    (R_T − R) a/τ = R_AI ((1 − p)^(FB) b + (1 − p)^(FTR) d),   R α a/τ = (R_T − R) (b + d).

For small p the solution is p³ = R_AI/(τ' R²) (1/B + 1/(TR))². The queue at equilibrium has the
length at which RED marks with probability p.

Not in the model: hyper increase, rates above that of the link, and the minimum rate. The model also
uses the product of means for the mean of a product; without this approximation, the rules give a
rate that is a fifth higher at equal p (`docs/mechanisms/dcqcn.md`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

#: Default length of a packet on the link in bits: 1024 B payload, 44 B headers, 38 B framing.
PACKET_BITS = (1024 + 44 + 38) * 8


@dataclass(frozen=True)
class Dcqcn:
    """N flows at one congestion point; defaults as in Zhu et al. 2015, figure 14.

    Rates in bit/s on the link, times in seconds, the byte counter in bytes on the link, thresholds
    in IP bytes. Raises `ValueError` for values that are not above zero or not finite, a probability
    above 1, or ``max_bytes`` not above ``min_bytes``.
    """

    flows: float
    capacity_bps: float
    packet_bits: float = PACKET_BITS
    cnp_interval_s: float = 50e-6
    alpha_timer_s: float = 55e-6
    increase_timer_s: float = 55e-6
    byte_counter_bytes: float = 10e6
    fast_recovery: int = 5
    additive_increase_bps: float = 40e6
    min_bytes: float = 5e3
    max_bytes: float = 200e3
    max_probability: float = 0.01

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (value > 0 and math.isfinite(value)):
                raise ValueError(f"{name} must be above 0 and finite, not {value}")
        if self.max_probability > 1:
            raise ValueError(f"max_probability must be at most 1, not {self.max_probability}")
        if self.max_bytes <= self.min_bytes:
            raise ValueError(
                f"max_bytes must be above min_bytes ({self.min_bytes}), not {self.max_bytes}"
            )

    @property
    def share_pps(self) -> float:
        """Rate of one flow at equilibrium, in packets per second."""
        return self.capacity_bps / self.packet_bits / self.flows

    @property
    def _counter_packets(self) -> float:
        return self.byte_counter_bytes * 8 / self.packet_bits

    @property
    def _timer_packets(self) -> float:
        return self.increase_timer_s * self.share_pps

    @property
    def _increase_pps(self) -> float:
        return self.additive_increase_bps / self.packet_bits

    def _surplus(self, p: float) -> float:
        """Return a number that is above 0 if ``p`` is above the marking probability at equilibrium.

        The number is the decreases of the rate minus the increases, multiplied by (b + d).
        """
        unmarked, rate = math.log1p(-p), self.share_pps

        def cycles(packets: float) -> tuple[float, float]:
            exponent = min(-packets * unmarked, 700.0)
            ends = rate * p / math.expm1(exponent)
            return ends, ends * math.exp(max(self.fast_recovery * packets * unmarked, -700.0))

        b, past_b = cycles(self._counter_packets)
        d, past_d = cycles(self._timer_packets)
        told = -math.expm1(self.cnp_interval_s * rate * unmarked) / self.cnp_interval_s
        alpha = -math.expm1(self.alpha_timer_s * rate * unmarked)
        return rate * alpha * told * told - self._increase_pps * (past_b + past_d) * (b + d)

    def marking(self) -> float:
        """Return the marking probability p at equilibrium."""
        low, high = 1e-12, 1 - 1e-12
        while high - low > 1e-9 * high:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self._surplus(middle) > 0 else (middle, high)
        return high

    def marking_small(self) -> float:
        """Return the approximation for small p of the marking probability at equilibrium.

        See Zhu et al. 2016, section 3.
        """
        ends = 1 / self._counter_packets + 1 / self._timer_packets
        rate = self.share_pps
        return float((self._increase_pps * ends**2 / (self.alpha_timer_s * rate**2)) ** (1 / 3))

    def queue_bytes(self) -> float:
        """Return the queue at equilibrium in IP bytes, at which RED marks with probability p.

        The queue is infinite if p exceeds ``max_probability``.
        """
        p = self.marking()
        if p > self.max_probability:
            return math.inf
        return self.min_bytes + p / self.max_probability * (self.max_bytes - self.min_bytes)
