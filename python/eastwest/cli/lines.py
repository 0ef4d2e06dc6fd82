"""Lines of text that fit a terminal and do not break between a number and its unit."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

#: Blank at which no line is broken; texts for terminals have none of their own.
_FIXED = "\N{NO-BREAK SPACE}"
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=\S)")
#: Columns between names and texts.
_GAP = 2


def grid(rows: Iterable[tuple[str, str, str]], width: int) -> Table:
    """Return a table of names and texts, with the style of each text, for ``width`` columns."""
    shown = list(rows)
    room = width - max((len(name) for name, _, _ in shown), default=0) - _GAP
    table = Table.grid(padding=(0, _GAP))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text, style in shown:
        table.add_row(name, Text(wrapped(text, room), style=style))
    return table


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
