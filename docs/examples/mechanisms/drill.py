"""DRILL (Ghorbani et al., SIGCOMM 2017) as a sketch: the shortest of a few queues, for each packet.

A switch looks at two random paths and at the best one of the last packet to the same receiver, and
takes the one with the fewest bytes in its queue.
"""

import eastwest as ew


class Drill(ew.Routing):
    """The shortest of a few queues, for each packet."""

    samples: int = 2

    def __init__(self) -> None:
        #: Link with the shortest queue at the last packet, by receiver.
        self.best: dict[int, int] = {}

    def choose(self, choice: ew.Choice) -> int:
        """Return the path with the shortest queue among the sampled ones."""
        paths = [self.random.below(choice.paths) for _ in range(self.samples)]
        remembered = self.best.get(choice.receiver)
        if remembered in choice.ports:
            paths.append(choice.ports.index(remembered))
        path = min(paths, key=choice.queued_bytes.__getitem__)
        self.best[choice.receiver] = choice.ports[path]
        return path
