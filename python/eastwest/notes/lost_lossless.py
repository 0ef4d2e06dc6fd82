"""Sentence on packets of lossless priorities that switches lost, for terminal, pages and notes.

With PFC, a lossless packet is lost only if the headroom of its input is full: because the headroom
or the headroom pool of the scenario is too small, or because a fault delays or slows a link.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eastwest.results import pick
from eastwest.units import plural


def of_run(summary: Mapping[str, Any]) -> list[str]:
    """Return a list with a sentence if switches lost lossless packets, otherwise an empty list."""
    lost = pick(summary, "dcb", "overflow_drops")
    if not lost:
        return []
    packets = plural(lost, "packet")
    return [
        f"switches lost {packets} of lossless priorities, because the headroom of their inputs was "
        "full (dcb.overflow_drops): see headroom, headroom_pool and over_subscribe in "
        "[fabric.pfc], and faults of kind delay or degrade"
    ]
