"""HPCC (Li et al., SIGCOMM 2019) as a sketch: the window follows telemetry of the switches.

Switches write their queue and their sent bytes into data packets, and ACKs return the records. The
sender computes the bytes in flight on each link, as a share U of the bytes that the link carries in
the base round-trip time, and sets its window so that the largest U is ``utilisation`` (algorithm 1
of the paper).
"""

from collections.abc import Sequence

import eastwest as ew


class Hpcc(ew.Congestion):
    """Keeps the bytes in flight of every link below its bandwidth-delay product."""

    name = "hpcc"
    paces = True
    reads_telemetry = True

    base_rtt: ew.Duration = ew.Duration("10 us")
    utilisation: float = 0.95
    #: Largest number of round trips with additive increase only.
    most_stages: int = 5
    #: Flows that share a link, at most; sets the additive increase.
    flows: int = 20

    def __init__(self) -> None:
        #: Records of the ACK before.
        self.before: Sequence[ew.HopTelemetry] = ()
        #: U, and the window of the last round trip in bytes (W^c of the paper); 0: not started.
        self.share, self.reference = 1.0, 0.0
        self.stage = 0
        #: Stream position whose ACK ends the round trip.
        self.round_ends = 0

    def observe(self, seen: ew.Seen) -> int | None:
        """Return the window of algorithm 1, and set the rate to one window for each base RTT."""
        hops, before = seen.telemetry, self.before
        if not hops:
            return None
        self.before = hops
        full = min(hop.rate_bps for hop in hops) * self.base_rtt / 8e12
        if len(before) != len(hops):
            # the first ACK: start at line rate
            self.reference = full
            return self._use(full)
        self._measure(before, hops)
        increase = full * (1 - self.utilisation) / self.flows
        reduces = self.share >= self.utilisation or self.stage >= self.most_stages
        window = self.reference + increase
        if reduces:
            window = self.reference * self.utilisation / self.share + increase
        if seen.acked_to > self.round_ends:
            self.stage = 0 if reduces else self.stage + 1
            self.reference = window
            self.round_ends = seen.sent_to
        return self._use(window)

    def _measure(self, before: Sequence[ew.HopTelemetry], hops: Sequence[ew.HopTelemetry]) -> None:
        """Update U, a moving average over the base round-trip time, by the fullest link."""
        most, over_ps = 0.0, 0
        for old, new in zip(before, hops, strict=True):
            apart_ps = new.time_ps - old.time_ps
            if apart_ps <= 0:
                continue
            carried = new.rate_bps / 8e12  # bytes in one ps
            queued = min(old.queued_bytes, new.queued_bytes) / (carried * self.base_rtt)
            share = queued + (new.sent_bytes - old.sent_bytes) / apart_ps / carried
            if share > most:
                most, over_ps = share, apart_ps
        weight = min(over_ps, self.base_rtt) / self.base_rtt
        self.share = (1 - weight) * self.share + weight * most

    def _use(self, window: float) -> int:
        self.pacing_rate_bps = max(1, int(window * 8e12 / self.base_rtt))
        return max(int(window), self.segment)

    def after_loss(self, window: ew.Window, flight: int) -> int:
        """Keep the window: only telemetry changes it."""
        return window.cwnd
