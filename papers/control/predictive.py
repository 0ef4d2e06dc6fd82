"""A queue that is held at a set point by looking one round trip ahead.

The loop of the third study, from ``eastwest.models.loop``, under the name that scenarios of this
folder use. With ``look_ahead = false`` the decision uses the present queue.
"""

from __future__ import annotations

from eastwest.models.loop import Loop


class Predictive(Loop):
    """Marks a share of packets that holds the queue at a set point."""

    name = "predictive"
