"""Notes on runs whose throughput is limited by hosts and not by the network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from eastwest.results import pick
from eastwest.units import count, percent, plural

if TYPE_CHECKING:
    import polars as pl

#: Share of time from which a core counts as saturated.
_SATURATED = 0.9
#: Utilisation from which a link of a host may limit what the host sends or receives.
_FULL = 0.9


def of_run(summary: Mapping[str, Any], links: pl.DataFrame) -> list[str]:
    """Return notes on saturated cores of hosts, and on frames lost in full rings of hosts.

    ``summary`` and ``links`` are the summary and the table ``links`` of a run. Without ``[hosts]``
    in the scenario there are no notes. If a link of a host was busy, too, or the network dropped
    packets, the cores are named as one of several possible limits.
    """
    busy, lost = pick(summary, "hosts", "busy_max"), pick(summary, "hosts", "ring_drops")
    notes = []
    if busy is not None and busy >= _SATURATED:
        core = f"the busiest core of a host works {busy:.0%} of the time"
        others = [*_network(summary, links)]
        notes.append(
            f"{core}, but {' and '.join(others)}: the network may limit what hosts send or receive "
            "as much as their cores do ([hosts])"
            if others
            else f"{core}: the host, not the network, limits its throughput ([hosts])"
        )
    if lost:
        notes.append(
            f"{plural(lost, 'frame was', 'frames were')} lost in full rings of hosts "
            "(hosts.ring_drops); the counts of drops in the network do not include these frames"
        )
    return notes


def _network(summary: Mapping[str, Any], links: pl.DataFrame) -> list[str]:
    """Return signs that the network limits the throughput of hosts, as parts of a sentence."""
    found = []
    used = links.filter(links["tier"].str.starts_with("host") & links["utilisation"].is_finite())
    most = used["utilisation"].max()
    if isinstance(most, float) and most >= _FULL:
        found.append(f"the busiest link of a host sends {percent(most)} of the time")
    dropped = pick(summary, "packets", "dropped")
    if dropped:
        packets = "1 packet" if dropped == 1 else f"{count(dropped)} packets"
        found.append(f"the network dropped {packets}")
    return found
