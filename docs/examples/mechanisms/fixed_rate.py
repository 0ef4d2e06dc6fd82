"""A rate-based congestion control as a sketch: it sends at a rate, not by a window.

The rate begins at ``rate_mbps``. With ``adapt`` it follows the largest delivery rate of the last
round trips, as the core of BBR does: 25 % more in every eighth round trip, to find free capacity.
"""

import eastwest as ew

_ROUNDS = 8


class FixedRate(ew.Congestion):
    """Sends at a rate, or at the largest rate that was delivered."""

    name = "fixed-rate"
    paces = True

    rate_mbps: float = 100.0
    adapt: bool = False

    def __init__(self) -> None:
        self.pacing_rate_bps = round(self.rate_mbps * 1e6)
        #: Largest delivery rate of each of the last round trips, in bit/s.
        self.rates: list[int] = [self.pacing_rate_bps]
        self.round_ends = 0
        self.rounds = 0
        self.smallest_rtt_ps = 0

    def observe(self, seen: ew.Seen) -> int | None:
        """Set the rate; the window only keeps two round trips of data in flight."""
        if seen.rtt_ps is not None:
            known = self.smallest_rtt_ps or seen.rtt_ps
            self.smallest_rtt_ps = min(known, seen.rtt_ps)
        if self.adapt:
            self._follow(seen)
        in_two_round_trips = 2 * self.pacing_rate_bps * self.smallest_rtt_ps // (8 * 10**12)
        return max(in_two_round_trips, 10 * self.segment)

    def _follow(self, seen: ew.Seen) -> None:
        """Set the rate by the delivery rates of the last round trips."""
        rate = seen.delivery_rate_bps
        if rate is not None and (not seen.app_limited or rate > max(self.rates)):
            self.rates[-1] = max(self.rates[-1], rate)
        if seen.acked_to >= self.round_ends:
            self.round_ends = seen.sent_to
            self.rounds += 1
            self.rates = [*self.rates[1 - _ROUNDS :], 0]
        probes = self.rounds % _ROUNDS == 0
        self.pacing_rate_bps = max(self.rates) * (5 if probes else 4) // 4

    def after_loss(self, window: ew.Window, flight: int) -> int:
        """Keep the window: losses do not change the rate."""
        return window.cwnd
