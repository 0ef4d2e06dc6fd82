"""Sentence on a run that a PFC deadlock ended; reports, terminal and notebooks show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eastwest.results import pick
from eastwest.units import clean, span

#: Maximum number of ports that the sentence on a deadlock names.
_MOST = 12


def deadlock(summary: Mapping[str, Any]) -> str | None:
    """Return a sentence on the PFC deadlock that ended a run; None without a deadlock.

    The sentence has the time, the priority, and the ports that wait for each other.
    """
    bridging = summary.get("dcb")
    found = bridging.get("deadlock") if isinstance(bridging, Mapping) else None
    if not isinstance(found, Mapping) or not isinstance(found.get("cycle"), list):
        return None
    ports = [clean(str(port), 60) for port in found["cycle"]]
    more = f" and {len(ports) - _MOST} more" if len(ports) > _MOST else ""
    priority = clean(str(found.get("priority")), 10)
    return (
        f"ended by a PFC deadlock at {span(pick(found, 'at_s'))}: in priority {priority} "
        f"these ports wait for each other: {', '.join(ports[:_MOST])}{more}"
    )
