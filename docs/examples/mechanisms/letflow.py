"""LetFlow (Vanini et al., NSDI 2017) as a sketch: a random path for each burst of a flow.

It does what the built-in routing ``flowlet`` does, and a test compares the two: their runs have
equal digests.
"""

import eastwest as ew


class LetFlow(ew.Routing):
    """A random path for each burst of a flow."""

    name = "letflow"
    stream = "flowlet"

    gap_us: int = 500

    def __init__(self) -> None:
        #: Time of the last packet of each flow, in ps, and the link that it took.
        self.last: dict[tuple[int, int], tuple[int, int]] = {}

    def choose(self, choice: ew.Choice) -> int:
        """Return the path of the flow, or after a pause or a failure a random one."""
        flow = (choice.flow_hash, choice.receiver)
        then, port = self.last.get(flow, (0, -1))
        stays = choice.now_ps - then <= self.gap_us * 1_000_000 and port in choice.ports
        path = choice.ports.index(port) if stays else self.random.below(choice.paths)
        self.last[flow] = (choice.now_ps, choice.ports[path])
        return path
