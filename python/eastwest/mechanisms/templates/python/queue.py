"""``@NAME@``: a queue discipline in Python that signals congestion on a linear ramp.

Its scenario has ``tcp.ecn = "on"``: data packets are marked, and packets that are not ECN-capable,
such as ACKs, are dropped early.

Run it with ``eastwest run scenario.toml --with @FILE@``. The guide of Eastwest ("Your own
mechanism") lists the attributes of an arrival and a queue.
"""

import eastwest as ew


class MyMechanism(ew.Queue):
    """Marks packets, or drops them early, with a probability that grows with the queue."""

    name = "@NAME@"

    # Parameters, which the scenario may set in the table of the queue.
    min: int = 5
    max: int = 15
    max_probability: float = 1.0

    def at_enqueue(self, arrival: ew.Arrival) -> ew.Verdict:
        """Enqueue, mark or drop a packet. Every port has a separate object of this class."""
        if not arrival.fits:
            return ew.Verdict.DROP
        ramp = max(1, self.max - self.min)
        p = self.max_probability * (arrival.queued_packets - self.min) / ramp
        if arrival.queued_packets >= self.max or (p > 0 and self.random.unit() < p):
            return self.signal(arrival)  # marks or drops, by the settings `ecn` and `protection`
        return ew.Verdict.ENQUEUE
