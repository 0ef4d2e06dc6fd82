"""Lines of text that fit a terminal and do not break between a number and its unit."""

from __future__ import annotations

import re
import textwrap

#: Blank at which no line is broken; texts for terminals have none of their own.
_FIXED = "\N{NO-BREAK SPACE}"
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=\S)")


def wrapped(text: str, width: int) -> str:
    """Return a text in lines of at most ``width`` characters.

    Lines are broken after a comma where the items between commas are short, and not between a
    number and the word after it.
    """
    items = (
        item.replace(" ", _FIXED) if 2 * len(item) <= width else _BEFORE_UNIT.sub(_FIXED, item)
        for item in text.split(", ")
    )
    lines = textwrap.wrap(
        ", ".join(items), max(10, width), break_on_hyphens=False, replace_whitespace=False
    )
    return "\n".join(lines).replace(_FIXED, " ")
