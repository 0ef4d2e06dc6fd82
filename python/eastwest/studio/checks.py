"""Check of a scenario while it is edited: problems, memory, drawing of the fabric, numbers."""

from __future__ import annotations

import tomllib
from typing import Any

from eastwest import core, shipped
from eastwest.goals import form
from eastwest.run import Source
from eastwest.studio.fabric import fabric, is_small
from eastwest.studio.files import Folder, Text
from eastwest.studio.numbers import numbers


def source(text: Text) -> Source:
    """Return a scenario as functions of ``eastwest.run`` read it."""
    return Source(text.text, text.base, text.path or text.shipped or "scenario.toml")


def check(text: Text, overrides: core.Overrides, folder: Folder) -> dict[str, Any]:
    """Return problems, notes, memory, fabric and numbers of a scenario, for the page."""
    checked = core.check(text.text, str(text.base), str(shipped.DATA), overrides)
    problems = checked["problems"] or form.problems_of(source(text), overrides)
    notes = list(checked["notes"])
    drawn, found = None, []
    if not problems:
        if is_small(checked["memory"]):
            drawn = fabric(text, overrides, folder)
        if drawn is None:
            notes.append("the fabric has too many cables to be drawn")
        resolved = core.resolve(text.text, str(text.base), str(shipped.DATA), overrides, None)
        found = numbers(tomllib.loads(resolved["scenario_toml"]), text.text)
    return {
        "problems": [{"line": None, **problem} for problem in problems],
        "notes": notes,
        "memory_bytes": sum(part[1] for part in checked["memory"]),
        "fabric": drawn,
        "numbers": found,
    }
