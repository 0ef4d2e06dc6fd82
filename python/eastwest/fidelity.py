"""Sentences on the accuracy of results of flow mode and link mode, for terminal, pages and notes.

The simulator writes the sentences (``flow_mode`` of the summary): the error of the mode where it
was compared with packet mode, and whether this run has more loss than the mode covers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Parts of a summary that have no numbers in flow mode and link mode, which do not simulate the
#: packets of the whole fabric.
OF_PACKETS = frozenset({"drops", "latency_us", "marks", "packets", "ports", "tcp"})
#: Longest sentence that is shown, in characters; a result folder may come from anyone.
_LONGEST = 400


def is_approximate(summary: Mapping[str, Any]) -> bool:
    """Whether a run did not simulate the packets of the whole fabric (flow mode, link mode)."""
    return summary.get("fidelity") in {"flow", "links"}


def error(summary: Mapping[str, Any]) -> str:
    """Return a sentence on the error of an approximate result; empty for a packet-level run."""
    return _text(summary, "error") or "approximate" if is_approximate(summary) else ""


def warning(summary: Mapping[str, Any]) -> str:
    """Return why the mode does not suit a run; empty if it suits the run, or in packet mode."""
    return _text(summary, "warning") if is_approximate(summary) else ""


def _text(summary: Mapping[str, Any], key: str) -> str:
    mode = summary.get("flow_mode")
    value = mode.get(key) if isinstance(mode, Mapping) else None
    return value[:_LONGEST] if isinstance(value, str) else ""
