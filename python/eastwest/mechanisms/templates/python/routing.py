"""``@NAME@``: each packet takes the path on which least waits, as a sketch in Python.

Run it with ``eastwest run scenario.toml --with @FILE@``. The guide of Eastwest lists what a choice
knows ("Your own mechanism").
"""

import eastwest as ew


class MyMechanism(ew.Routing):
    """The path of the flow, unless much more waits there than elsewhere."""

    name = "@NAME@"

    # A parameter, which the scenario may set in [fabric.routing_parameters].
    margin: int = 10

    def choose(self, choice: ew.Choice) -> int:
        """Return the number of a path. Every switch has an object of its own."""
        first = choice.flow_hash % choice.paths
        waiting = choice.queued_packets
        least = min(range(choice.paths), key=waiting.__getitem__)
        return least if waiting[first] > waiting[least] + self.margin else first
