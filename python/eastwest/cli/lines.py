"""Lines of text that fit a terminal and do not break between a number and its unit."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

#: Blank at which no line is broken; the texts themselves contain no such blank.
_FIXED = "\N{NO-BREAK SPACE}"
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=\S)")
#: Number of blank columns between the names and the texts of a grid.
_GAP = 2


def grid(rows: Iterable[tuple[str, str, str]], width: int) -> Table:
    """Return a table of two columns, names and texts, for a terminal of ``width`` characters.

    Each row is (name, text, style of the text); texts are wrapped.
    """
    shown = list(rows)
    room = room_of((name for name, _, _ in shown), width)
    table = Table.grid(padding=(0, _GAP))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text, style in shown:
        table.add_row(name, Text(wrapped(text, room), style=style))
    return table


def room_of(names: Iterable[str], width: int) -> int:
    """Return the number of characters in a line that the longest name leaves for a text."""
    return width - max(map(len, names), default=0) - _GAP


def cut(text: str, width: int, most: int) -> str:
    """Return the part of a text that fits ``most`` lines of ``width`` characters; "…" if cut."""
    lines = wrapped(text, width).splitlines()
    if len(lines) <= most:
        return text
    last = lines[most - 1]
    if len(last) > width - 2:
        last = last.rpartition(" ")[0] or last[: width - 2]
    return " ".join([*lines[: most - 1], last, "…"])


def wrapped(text: str, width: int) -> str:
    """Return a text in lines of at most ``width`` characters.

    Short items between commas are not broken, and a line does not end between a number and the
    word after it.
    """
    items = (
        item.replace(" ", _FIXED) if 2 * len(item) <= width else _BEFORE_UNIT.sub(_FIXED, item)
        for item in text.split(", ")
    )
    lines = textwrap.wrap(
        ", ".join(items), max(10, width), break_on_hyphens=False, replace_whitespace=False
    )
    return "\n".join(lines).replace(_FIXED, " ")
