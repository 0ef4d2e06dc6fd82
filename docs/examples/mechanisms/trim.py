"""Trimming as a sketch: a packet without room loses its payload, and its header goes on.

The idea of NDP (Handley et al., SIGCOMM 2017) in a few lines; NDP also sends headers before data.
The receiver learns of the loss from the header and asks for the payload at once, so that no sender
waits for a timer. Only data packets of RoCEv2 are cut; a full queue drops all others.
"""

import eastwest as ew


class Trim(ew.Queue):
    """Cuts the payload of packets that do not fit."""

    trims = True

    def at_enqueue(self, arrival: ew.Arrival) -> ew.Verdict:
        """Return the verdict on an arriving packet."""
        return ew.Verdict.ENQUEUE if arrival.fits else ew.Verdict.TRIM
