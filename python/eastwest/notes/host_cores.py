"""Notes on runs whose throughput is limited by hosts and not by the network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eastwest.results import pick
from eastwest.units import plural

#: Share of time from which a core counts as saturated.
_SATURATED = 0.9


def of_run(summary: Mapping[str, Any]) -> list[str]:
    """Return notes on saturated cores of hosts, and on frames lost in full rings of hosts.

    ``summary`` is the summary of a run; without ``[hosts]`` in the scenario there are no notes.
    """
    busy, lost = pick(summary, "hosts", "busy_max"), pick(summary, "hosts", "ring_drops")
    notes = []
    if busy is not None and busy >= _SATURATED:
        notes.append(
            f"the busiest core of a host works {busy:.0%} of the time: this host, not the "
            "network, limits what it sends or receives ([hosts])"
        )
    if lost:
        notes.append(
            f"{plural(lost, 'frame was', 'frames were')} lost in full rings of hosts "
            "(hosts.ring_drops); drops of "
            "the network do not include them"
        )
    return notes
