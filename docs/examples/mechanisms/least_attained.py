"""Least attained service (LAS) as a sketch: the packets of the flow that has sent least go first.

pFabric (Alizadeh et al., SIGCOMM 2013) ranks packets by the bytes that their flow has left, which
needs the length of the flow. The bytes that a flow has sent before a packet need not be known by
the sender's application: they are the position of the packet in its stream (PIAS, Bai et al., NSDI
2015, uses them in steps). So short flows overtake long ones, and a full queue drops packets of the
flow that has sent most.
"""

import eastwest as ew


class LeastAttained(ew.Queue):
    """The packets of the flow that has sent least go first."""

    name = "least-attained"

    def rank(self, arrival: ew.Arrival) -> int:
        """Return the bytes that the flow has sent before."""
        return arrival.position
