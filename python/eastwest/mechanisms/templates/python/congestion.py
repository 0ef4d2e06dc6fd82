"""``@NAME@``: a congestion control with an increase and a decrease of its own (AIMD), as a sketch.

Run it with ``eastwest run scenario.toml --with @FILE@``. The guide of Eastwest lists what a window
and an ACK know ("Your own mechanism").
"""

import eastwest as ew


class MyMechanism(ew.Congestion):
    """AIMD with constants of its own."""

    name = "@NAME@"

    # Parameters, which the scenario may set in [tcp.parameters].
    increase: float = 2.0
    keep: float = 0.7

    def __init__(self) -> None:
        self.credit = 0.0

    def on_ack(self, window: ew.Window, ack: ew.Ack) -> int:
        """Return the new window in bytes. Every sender has an object of its own."""
        if ack.in_slow_start:
            return window.cwnd + min(ack.acked, 2 * self.segment)
        self.credit += self.increase * self.segment * ack.acked / window.cwnd
        whole = int(self.credit / self.segment) * self.segment
        self.credit -= whole
        return window.cwnd + whole

    def after_loss(self, window: ew.Window, flight: int) -> int:
        """Return the threshold, which the window follows."""
        return int(flight * self.keep)
