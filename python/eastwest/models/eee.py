"""Energy-Efficient Ethernet (IEEE 802.3az) under Poisson arrivals: power and mean wait.

One direction of a link sends frames of one length, in ``frame_s`` each, that arrive as a Poisson
process. When no frame is left, the link takes ``sleep_s`` (Ts) to fall asleep; before it sends
again, it takes ``wake_s`` (Tw) to wake. Both phases take full power; sleep takes the share
``sleep_share`` (φ) of full power.

**Power** follows from a renewal argument (S. Herrería-Alonso, M. Rodríguez-Pérez,
M. Fernández-Veiga and C. López-García, *A GI/G/1 model for 10 Gb/s energy efficient Ethernet
links*, IEEE Trans. Commun. 60(11), 2012). With load ρ and the mean time asleep in a cycle E[Toff],

    P / Pmax = 1 − (1 − φ) (1 − ρ) E[Toff] / E[V],

where V is the time of a cycle without sending: Toff + Ts + Tw where the link sleeps at once.

**Mean wait** follows from the number of frames A that wait when sending starts (decomposition of
S. Fuhrmann and R. Cooper, Oper. Res. 33(5), 1985):

    W = λ s² / (2 (1 − ρ)) + E[A (A − 1)] / (2 λ E[A]).

**Holding.** Frames that find the link asleep are held until ``trigger`` frames wait or the first
frame has waited for ``timer_s``, whichever is sooner (``trigger`` 1: the standard, which wakes for
the first frame). Frames that arrive during Ts are held, too. Let F(x) be the probability that a
Poisson variable of mean x is below ``trigger``, and T the timer. At the time t after the last
frame, waking has not begun with probability F(λt) for t ≤ T, and exp(−λ (t − T)) F(λT) later;
E[Toff] is the integral of this probability from Ts on. Arrivals are counted up to a stopping time,
so the number N of frames when waking begins has E[N] = λ (Ts + E[Toff]) and
E[N (N − 1)] = 2λ ∫ E[N(t); still asleep] dt; arrivals during Tw are added.

**Stall timer.** The link stays awake for ``stall_s`` after the last frame. With probability
1 − exp(−λ · stall) a frame arrives within this time and does not need to wake the link.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

#: Maximum number of held frames that may trigger the waking of a link.
MOST_FRAMES = 100_000
#: Pattern of labels of coalescing in the literature, such as 12us10: holding time and frames.
_LABEL = re.compile(r"(\d+(?:\.\d+)?)(us|ms)(\d+)")


@dataclass(frozen=True)
class Phy:
    """Ethernet transceiver: its rate in bit/s, and its times to wake and to fall asleep in s."""

    name: str
    rate_bps: float
    wake_s: float
    sleep_s: float


#: Transceivers by name, from table 2.1 of E-EON (IEEE 802.3az-2010, tables 78-2 and 78-4).
PHYS = {
    phy.name: phy
    for phy in (
        Phy("100BASE-TX", 100e6, 30.5e-6, 200e-6),
        Phy("1000BASE-T", 1e9, 16.5e-6, 182e-6),
        Phy("10GBASE-T", 10e9, 4.48e-6, 2.88e-6),
    )
}


@dataclass(frozen=True)
class Policy:
    """Rules for sleep and waking of a link: ``trigger`` frames, holding timer, stall timer (s)."""

    name: str
    trigger: int = 1
    timer_s: float = math.inf
    stall_s: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.trigger <= MOST_FRAMES:
            raise ValueError(f"the trigger must be 1 to {MOST_FRAMES} frames, not {self.trigger}")
        if not self.timer_s >= 0:
            raise ValueError(f"the holding timer must be 0 s or more, not {self.timer_s} s")
        if not (self.stall_s >= 0 and math.isfinite(self.stall_s)):
            raise ValueError(f"the stall timer must be 0 s or more, not {self.stall_s} s")
        if self.stall_s > 0 and self.trigger > 1:
            raise ValueError("a policy can have a trigger above 1 frame or a stall timer, not both")


@dataclass(frozen=True)
class Point:
    """Link at one load: power as a share of full power, mean waiting time of frames in s."""

    power: float
    wait_s: float
    #: Share of time in which the link sleeps.
    asleep: float


def labelled(label: str) -> Policy | None:
    """Return the policy of a label: ``standard``, or ``12us10`` (12 µs, 10 frames), or None."""
    if label == "standard":
        return Policy(label)
    found = _LABEL.fullmatch(label)
    if found is None:
        return None
    unit_s = {"us": 1e-6, "ms": 1e-3}[found[2]]
    return Policy(label, trigger=int(found[3]), timer_s=float(found[1]) * unit_s)


def efficiency(phy: Phy, frame_bytes: float) -> float:
    """Return the energy for sending as a share of all energy, for a single frame.

    The link wakes, sends the frame and falls asleep at full power: Tframe / (Tw + Tframe + Ts).
    """
    frame_s = frame_time_s(phy, frame_bytes)
    return frame_s / (phy.wake_s + frame_s + phy.sleep_s)


def frame_time_s(phy: Phy, frame_bytes: float) -> float:
    """Return the transmission time of a frame in s."""
    if not (frame_bytes > 0 and math.isfinite(frame_bytes)):
        raise ValueError(f"the length of a frame must be above 0 bytes, not {frame_bytes}")
    return frame_bytes * 8 / phy.rate_bps


def legacy(load: float, frame_s: float) -> Point:
    """Return power and mean wait of a link that never sleeps (an M/D/1 queue at full power)."""
    return Point(1.0, _sending_wait_s(load, frame_s), 0.0)


def ideal(load: float, frame_s: float, sleep_share: float = 0.1) -> Point:
    """Return power and mean wait of a link that sleeps whenever it does not send.

    A change of state takes no time, so the mean wait is that of an M/D/1 queue. ``sleep_share`` is
    the power asleep as a share of full power.
    """
    power = sleep_share + (1 - sleep_share) * load
    return Point(power, _sending_wait_s(load, frame_s), 1 - load)


def under_poisson(
    policy: Policy, load: float, frame_s: float, phy: Phy, sleep_share: float = 0.1
) -> Point:
    """Return power and mean wait of a link with this policy under Poisson arrivals.

    ``load`` is the share of time in which frames are sent, above 0 and below 1. ``frame_s`` is the
    transmission time of a frame. ``sleep_share`` is the power asleep as a share of full power, 0 to
    1. Raises ``ValueError`` for other values.
    """
    if not 0 < load < 1:
        raise ValueError(f"the load must be above 0 and below 1, not {load}")
    if not 0 <= sleep_share <= 1:
        raise ValueError(f"power asleep must be 0 to 1 times full power, not {sleep_share}")
    arrivals = load / frame_s
    off_s, held, held_pairs = _held(policy, arrivals, phy.sleep_s)
    in_wake = arrivals * phy.wake_s
    first, pairs = held + in_wake, held_pairs + 2 * held * in_wake + in_wake**2
    sleeps = math.exp(-arrivals * policy.stall_s)
    idle_s = (1 - sleeps) / arrivals + sleeps * (phy.sleep_s + off_s + phy.wake_s)
    asleep = (1 - load) * sleeps * off_s / idle_s
    first, pairs = (1 - sleeps) + sleeps * first, sleeps * pairs
    wait_s = _sending_wait_s(load, frame_s) + pairs / (2 * arrivals * first)
    return Point(1 - (1 - sleep_share) * asleep, wait_s, asleep)


def _sending_wait_s(load: float, frame_s: float) -> float:
    """Return the mean waiting time of an M/D/1 queue in seconds."""
    return load * frame_s / (2 * (1 - load))


def _held(policy: Policy, arrivals: float, sleep_s: float) -> tuple[float, float, float]:
    """Return (E[Toff], E[N], E[N (N − 1)]): mean time asleep in s, and moments of the held frames.

    N is the number of frames when waking begins, ``arrivals`` the arrival rate in frames/s.
    """
    from scipy.special import pdtr  # noqa: PLC0415  slow to load

    timer_s, most = policy.timer_s, policy.trigger - 1
    off_s, pairs = _sums(most, arrivals, sleep_s, timer_s)
    if math.isfinite(timer_s):
        # Later than timer_s, the link is still asleep only if no frame has started the timer.
        late = math.exp(-arrivals * max(0.0, sleep_s - timer_s)) / arrivals
        off_s += late * float(pdtr(most, arrivals * timer_s))
        if most > 0:
            pairs += late * arrivals * timer_s * float(pdtr(most - 1, arrivals * timer_s))
    held_pairs = (arrivals * sleep_s) ** 2 + 2 * arrivals * pairs
    return off_s, arrivals * (sleep_s + off_s), held_pairs


def _sums(most: int, arrivals: float, start_s: float, end_s: float) -> tuple[float, float]:
    """Return (∫ P[N(t) ≤ most] dt, ∫ E[N(t); N(t) ≤ most] dt) from ``start_s`` to ``end_s``.

    N(t) is the number of Poisson arrivals until t, at ``arrivals`` frames/s.
    """
    from scipy.special import gammainc  # noqa: PLC0415  slow to load

    if end_s <= start_s:
        return 0.0, 0.0
    low, high = arrivals * start_s, arrivals * end_s
    time = weighted = 0.0
    for k in range(most + 1):
        upper = 1.0 if math.isinf(high) else float(gammainc(k + 1, high))
        part = (upper - float(gammainc(k + 1, low))) / arrivals
        time += part
        weighted += k * part
    return time, weighted
