"""``@NAME@``: a congestion control in Python: AIMD with its own increase and decrease.

Run it with ``eastwest run scenario.toml --with @FILE@``. The guide of Eastwest ("Your own
mechanism") lists the attributes of a window and an ACK.
"""

import eastwest as ew


class MyMechanism(ew.Congestion):
    """Additive increase, multiplicative decrease (AIMD) with its own constants."""

    name = "@NAME@"

    # Parameters, which the scenario may set in [tcp.parameters].
    increase: float = 2.0
    keep: float = 0.7

    def __init__(self) -> None:
        self.credit = 0.0

    def on_ack(self, window: ew.Window, ack: ew.Ack) -> int:
        """Return the new window in bytes. Every sender has a separate object of this class."""
        if ack.in_slow_start:
            return window.cwnd + min(ack.acked, 2 * self.segment)
        self.credit += self.increase * self.segment * ack.acked / window.cwnd
        whole = int(self.credit / self.segment) * self.segment
        self.credit -= whole
        return window.cwnd + whole

    def after_loss(self, window: ew.Window, flight: int) -> int:
        """Return the slow start threshold in bytes after a loss; the window becomes equal to it."""
        return int(flight * self.keep)
