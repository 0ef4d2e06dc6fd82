"""Start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996) as a sketch.

Each flow gets an equal share of the link. The rank of a packet is its start tag: the virtual time
at which the link would begin to send it if all flows that wait were served bit by bit, in turn.
The virtual time is the start tag of the packet that is sent.
"""

import eastwest as ew


class StartTimeFair(ew.Queue):
    """Start-time fair queueing: an equal share for each flow."""

    name = "start-time-fair"

    def __init__(self) -> None:
        self.virtual_time = 0
        #: Finish tag of the last packet of each flow, in bytes.
        self.finish: dict[int, int] = {}

    def rank(self, arrival: ew.Arrival) -> int:
        """Return the start tag of a packet."""
        if arrival.idle:
            self.finish.clear()  # no packet waits: all flows start again
        start = max(self.virtual_time, self.finish.get(arrival.flow, 0))
        self.finish[arrival.flow] = start + arrival.ip_bytes
        return start

    def at_dequeue(self, head: ew.Head) -> ew.Verdict:
        """Update the virtual time."""
        self.virtual_time = head.rank
        return ew.Verdict.ENQUEUE

    def at_push_out(self, packet: ew.Head) -> None:
        """Take back the tags of a packet that the full queue drops: the last one of its flow."""
        self.finish[packet.flow] = packet.rank
