"""``@NAME@``: a routing in Python: the path of the flow, or the path with the shortest queue.

Run it with ``eastwest run scenario.toml --with @FILE@``. The guide of Eastwest ("Your own
mechanism") lists the attributes of a choice.
"""

import eastwest as ew


class MyMechanism(ew.Routing):
    """The path of the flow's hash, unless its queue is much longer than the shortest queue."""

    name = "@NAME@"

    # A parameter, which the scenario may set in [fabric.routing_parameters].
    margin: int = 10

    def choose(self, choice: ew.Choice) -> int:
        """Return the number of a path. Every switch has a separate object of this class."""
        first = choice.flow_hash % choice.paths
        waiting = choice.queued_packets
        least = min(range(choice.paths), key=waiting.__getitem__)
        return least if waiting[first] > waiting[least] + self.margin else first
