"""Fluid model of QCN (802.1Qau) in the state-space form of Gusat et al. 2009.

M. Alizadeh, B. Atikoglu, A. Kabbani, A. Lakshmikantha, R. Pan, B. Prabhakar and M. Seaman, *Data
center transport mechanisms: congestion control theory and IEEE standardization*, Allerton 2008.
The state is z = [Q; Λ]: a queue of q packets, and the current rate λ and target rate θ of each of N
equal sources, in packets per second. One packet in 1/s is sampled (s = 1/100: 150 KB of 1,500 B).
After the delay τ, the queue reports to the source of the sampled packet, only if positive,

    F = q − Q_eq + w q̇/(s C),

and the source decreases its rate by the share G F. After each 1/s packets without a report, λ moves
half of the way to θ; from the sixth time on, θ grows by R_AI. With π = s while F > 0, otherwise 0:

    q̇ = N λ − C + w
    λ̇ = −G F(t − τ) λ π λ(t − τ) + (θ − λ)/2 · λ(t − τ) π / ((1 − π)^(−1/s) − 1)
    θ̇ = −(θ − λ) π λ(t − τ) + (1 − π)^(5/s) R_AI s λ(t − τ).

Defaults are those of Gusat et al.: 10 Gbit/s, Q_eq 33,000 B, W_d 2, G_d 1/128 of a feedback of 6
bits (the largest feedback, (2 w + 1) Q_eq, decreases the rate by 63/128), and R_AI 5 Mb/s. Not in
the model: the timer, hyperactive increase, quantisation, pauses. papers/control compares the model
with packet-level simulations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eastwest.models.delay import Linear, Numbers, integrate, positive

#: Number of levels of the quantised QCN feedback, and number of cycles of fast recovery.
_LEVELS, _RECOVERY = 63, 5


@dataclass(frozen=True)
class Qcn:
    """Equal QCN sources at one congestion point; units are packets and seconds."""

    flows: float
    capacity_pps: float
    delay_s: float
    set_point: float = 22.0
    weight: float = 2.0
    gain_per_level: float = 1 / 128
    sampled: float = 1 / 100
    increase_pps: float = 5e6 / 12_000

    def __post_init__(self) -> None:
        positive(
            the_number_of_flows=self.flows, the_capacity=self.capacity_pps,
            the_delay=self.delay_s, the_set_point=self.set_point, the_weight=self.weight,
            the_gain=self.gain_per_level, the_increase=self.increase_pps,
        )  # fmt: skip
        if not 0 < self.sampled <= 0.5:
            raise ValueError(
                f"the sampled share must be above 0 and at most 0.5, not {self.sampled}"
            )

    @property
    def gain(self) -> float:
        """Share by which a source decreases its rate, per packet of feedback F."""
        return self.gain_per_level * _LEVELS / ((2 * self.weight + 1) * self.set_point)

    @property
    def _recovering(self) -> float:
        """Mean number of steps of λ towards θ (half of the way) per packet sent, while F > 0."""
        return float(self.sampled / ((1 - self.sampled) ** (-1 / self.sampled) - 1))

    @property
    def _growing(self) -> float:
        """Mean increase of the target rate, in packets/s, per packet sent, while F > 0."""
        share = (1 - self.sampled) ** (_RECOVERY / self.sampled)
        return float(share * self.increase_pps * self.sampled)

    def equilibrium(self) -> tuple[float, float, float]:
        """Return the equilibrium (queue, current rate, target rate), in packets and packets/s."""
        rate = self.capacity_pps / self.flows
        above = self._growing / self.sampled
        feedback = above / 2 * self._recovering / (self.gain * rate * self.sampled)
        return self.set_point + feedback, rate, rate + above

    def linear(self) -> Linear:
        """Return the linear model with the states queue, current rate and target rate.

        The loop is opened at the feedback.
        """
        queue, rate, _ = self.equilibrium()
        cut, s, recover = self.gain, self.sampled, self._recovering
        feedback = queue - self.set_point
        back = recover * rate / 2
        now = np.array(
            [
                [0, self.flows, 0],
                [0, -cut * feedback * s * rate - back, back],
                [0, s * rate, -s * rate],
            ]
        )
        # In both rate equations the factor of λ(t − τ) is 0 at the equilibrium.
        late = np.zeros((3, 3))
        report = np.array([1.0, self.weight * self.flows / (s * self.capacity_pps), 0])
        reaction = np.array([0, -cut * rate * s * rate, 0])
        return Linear(
            ("queue", "current rate", "target rate"), now, late, reaction, report,
            np.array([1.0, 0, 0]), self.delay_s,
        )  # fmt: skip

    def play(self, end_s: float, start: float = 2.0) -> tuple[Numbers, Numbers]:
        """Return times in s, and states, array (times, 3), of an integration until ``end_s``.

        The states are the queue (packets), and current and target rate of a source (packets/s).
        Both rates begin at ``start`` times the fair rate; the queue begins empty.
        """
        rate = start * self.capacity_pps / self.flows
        n, c, s, cut = self.flows, self.capacity_pps, self.sampled, self.gain
        most, recover, grow = (
            (2 * self.weight + 1) * self.set_point,
            self._recovering,
            self._growing,
        )
        plain = s * self.increase_pps
        line = self.capacity_pps

        def flow(now: list[float], late: list[float]) -> list[float]:
            feedback = late[0] - self.set_point + self.weight * (n * late[1] - c) / (s * c)
            told = feedback > 0
            lowered = cut * min(feedback, most) * now[1] * s * late[1] if told else 0.0
            apart = now[2] - now[1]
            risen = apart / 2 * late[1] * (recover if told else s)
            aim = (grow - apart * s if told else plain) * late[1]
            held = now[2] >= line and aim > 0
            return [n * now[1] - c, risen - lowered, 0.0 if held else aim]

        step_s = min(self.delay_s / 20, 0.05 / (s * c))
        low = [0.0, 1.0, 1.0]
        return integrate(flow, [0.0, rate, rate], lambda _: self.delay_s, end_s, step_s, low)
