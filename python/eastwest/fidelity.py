"""Remarks on the accuracy of flow-level results, for every place that shows such a result.

The core writes the sentences (``flow_mode`` of the summary): how far off the mode is where it was
compared with packet mode, and whether this run loses more than flows can tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Longest sentence that is shown; a result folder may come from anyone.
_LONGEST = 400


def is_flow(summary: Mapping[str, Any]) -> bool:
    """Whether no packets were simulated."""
    return summary.get("fidelity") == "flow"


def error(summary: Mapping[str, Any]) -> str:
    """How far off the mode is; empty for packet mode."""
    return _text(summary, "error") or "flow-level: approximate" if is_flow(summary) else ""


def warning(summary: Mapping[str, Any]) -> str:
    """Why this run is not one that flows can tell of; empty if it is."""
    return _text(summary, "warning") if is_flow(summary) else ""


def _text(summary: Mapping[str, Any], key: str) -> str:
    mode = summary.get("flow_mode")
    value = mode.get(key) if isinstance(mode, Mapping) else None
    return value[:_LONGEST] if isinstance(value, str) else ""
