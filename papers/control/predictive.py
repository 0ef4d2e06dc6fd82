"""A queue that is held at a set point by looking one round trip ahead.

The loop of the third study as ``eastwest.models.loop`` has it, under the name that the scenario
here gives it. ``look_ahead = false`` decides on the queue as it is.
"""

from __future__ import annotations

from eastwest.models.loop import Loop


class Predictive(Loop):
    """Marks a share of packets that holds the queue at a set point."""

    name = "predictive"
