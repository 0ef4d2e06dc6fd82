"""pFabric (Alizadeh et al., SIGCOMM 2013) as a sketch: packets go by what their flow has left.

The queue of every port, also those of hosts, is ``pfabric``. The rank of a packet is the number of
bytes that its sender had left when it sent the packet. A full queue drops the packet of the flow
with most left. The flow with the fewest bytes left sends the packet of it that arrived first
(section 4.2 of the paper), so that its earlier packets, with a larger rank, do not starve.

The congestion control ``line-rate`` is what the paper leaves of one: a sender begins with the
window ``tcp.initial_window``, which should be the product of rate and round-trip time, and never
has more in flight. Only a timeout lowers the window; then it grows by slow start.
"""

import eastwest as ew


class PFabric(ew.Queue):
    """The flow with the fewest bytes left goes first."""

    name = "pfabric"
    keeps_flow_order = True

    def rank(self, arrival: ew.Arrival) -> int:
        """Return the bytes that the flow of the packet has left; ACKs go before all data."""
        return arrival.remaining


class LineRate(ew.Congestion):
    """A window of constant size, but for timeouts."""

    name = "line-rate"

    def on_ack(self, window: ew.Window, ack: ew.Ack) -> int:
        """Return the window after an ACK: in slow start up to the initial window."""
        return min(window.cwnd + ack.acked, self.initial_window * self.segment)

    def after_loss(self, window: ew.Window, flight: int) -> int:
        """Keep the window: a loss says that other flows have fewer bytes left."""
        return window.cwnd
