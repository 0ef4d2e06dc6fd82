"""Equations (1) to (5) of the incast study: goodput, onset and overhead.

G. Manoj Someswar and Ch. Dhanunjaya Rao, *Workload-Driven Design and Evaluation – TCP Incast*, IJR
5(11), 2018, after Y. Chen, R. Griffith, D. Zats, A. D. Joseph and R. Katz, *Understanding TCP
Incast and Its Implications for Big Data Workloads*, 2012. One client reads a block from N servers;
each server sends ``block_bytes`` through one port of rate ``link_bps``.

Bytes are payload, times are seconds, goodput is bits per second. Arguments outside the domain of an
equation (no servers, or no timeout in an equation with a timeout) raise ``ValueError``.
"""

from __future__ import annotations

import math

#: Round-trip time of the incast study in s, used by default.
RTT_S = 1e-3
#: Link rate of the incast study in bit/s, used by default.
LINK_BPS = 1e9
#: Minimum retransmission timeout of the incast study in s, used by default.
RTO_S = 0.2
#: First window of a sender in table 1 of the study: payload bytes of one packet with timestamps.
INITIAL_BYTES = 1448


def goodput_before(
    senders: float, block_bytes: float, rtt_s: float = RTT_S, link_bps: float = LINK_BPS
) -> float:
    """Return goodput in bit/s before incast, equation (1): no timeouts, limited by RTT and link."""
    return 8 * block_bytes * senders / _busy_s(senders, block_bytes, rtt_s, link_bps)


def goodput_after(
    senders: float,
    block_bytes: float,
    rto_s: float = RTO_S,
    rtt_s: float = RTT_S,
    link_bps: float = LINK_BPS,
) -> float:
    """Return goodput in bit/s with incast, equation (2): each block waits for one timeout."""
    return goodput_partial(senders, block_bytes, 1.0, rto_s, rtt_s, link_bps)


def slow_start_windows(block_bytes: int, initial_bytes: int = INITIAL_BYTES) -> list[int]:
    """Return the payload bytes that each round trip of slow start sends of a block, as in table 1.

    The window doubles in each round trip; the last round trip sends the rest of the block.
    """
    _positive("the block", block_bytes)
    _positive("the initial window", initial_bytes)
    windows = []
    window, left = initial_bytes, block_bytes
    while left > 0:
        windows.append(min(window, left))
        left -= windows[-1]
        window *= 2
    return windows


def onset(buffer_bytes: float, largest_window_bytes: float) -> float:
    """Return the number of senders at which incast begins, equation (3), not rounded.

    The result, rounded up, is the least number of senders with losses. ``buffer_bytes`` is the
    buffer of the port to the client, ``largest_window_bytes`` the largest window of a sender.
    """
    _positive("the buffer", buffer_bytes)
    _positive("the largest window", largest_window_bytes)
    return buffer_bytes / largest_window_bytes + 1


def onset_senders(buffer_bytes: float, block_bytes: int, initial_bytes: int = INITIAL_BYTES) -> int:
    """Return the least number of senders with losses: equation (3) with windows of table 1."""
    return math.ceil(onset(buffer_bytes, max(slow_start_windows(block_bytes, initial_bytes))))


def goodput_partial(
    senders: float,
    block_bytes: float,
    alpha: float,
    rto_s: float = RTO_S,
    rtt_s: float = RTT_S,
    link_bps: float = LINK_BPS,
) -> float:
    """Return goodput in bit/s for large blocks after the onset, equation (4).

    ``alpha`` is the mean number of timeouts per block. The study has 0.8 for 512 KB, 0.6 for
    1024 KB, and more (1.0, 1.5) for many senders.
    """
    _positive("the retransmission timeout", rto_s)
    if not (math.isfinite(alpha) and alpha >= 0):
        raise ValueError(f"alpha must be a finite number, 0 or more, not {alpha}")
    busy_s = _busy_s(senders, block_bytes, rtt_s, link_bps)
    return 8 * block_bytes * senders / (alpha * rto_s + busy_s)


def alpha_of(
    goodput_bps: float,
    senders: float,
    block_bytes: float,
    rto_s: float = RTO_S,
    rtt_s: float = RTT_S,
    link_bps: float = LINK_BPS,
) -> float:
    """Return α, the mean number of timeouts per block that equation (4) gives for a goodput."""
    _positive("the goodput", goodput_bps)
    _positive("the retransmission timeout", rto_s)
    took_s = 8 * senders * block_bytes / goodput_bps
    return (took_s - _busy_s(senders, block_bytes, rtt_s, link_bps)) / rto_s


def overhead(default_s: float, fixed_s: float) -> float:
    """Return the incast overhead of a job, equation (5), as a share of ``fixed_s``.

    ``default_s`` is the time of the job with the default timeout, ``fixed_s`` its time with a
    minimum timeout of 1 ms.
    """
    _positive("the time with the default timeout", default_s)
    _positive("the time with the short timeout", fixed_s)
    return (default_s - fixed_s) / fixed_s


def goodput(
    senders: int,
    block_bytes: int,
    *,
    buffer_bytes: float = 65536,
    alpha: float = 1.0,
    rto_s: float = RTO_S,
    rtt_s: float = RTT_S,
    link_bps: float = LINK_BPS,
) -> float:
    """Return goodput in bit/s: equation (1) below the onset of incast, otherwise equation (4).

    Equation (3) gives the onset. With ``alpha`` 1, equation (4) is equation (2).
    """
    if senders < onset_senders(buffer_bytes, block_bytes):
        return goodput_before(senders, block_bytes, rtt_s, link_bps)
    return goodput_partial(senders, block_bytes, alpha, rto_s, rtt_s, link_bps)


def _busy_s(senders: float, block_bytes: float, rtt_s: float, link_bps: float) -> float:
    """Return the time in s to read a block without losses: round trip plus transmission time.

    All ``senders`` send ``block_bytes`` through one link.
    """
    if not (math.isfinite(senders) and senders >= 1):
        raise ValueError(f"at least one sender is needed, not {senders}")
    _positive("the block", block_bytes)
    _positive("the link's rate", link_bps)
    if not (math.isfinite(rtt_s) and rtt_s >= 0):
        raise ValueError(f"the round trip must be 0 s or more, not {rtt_s}")
    return rtt_s + 8 * block_bytes * senders / link_bps


def _positive(what: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{what} must be a finite number above 0, not {value}")
