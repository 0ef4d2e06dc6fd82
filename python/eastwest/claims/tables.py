"""Tables of a study's page, which are written from what is kept and stand between two marks.

``papers/*/tables.py`` use it. The marks are comments: ``<!-- table of NAME -->`` and ``<!-- end of
NAME -->``; the text around them stays as it is.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

#: Lines of a table in Markdown, by its name in the marks.
Tables = Mapping[str, Iterable[str]]


def filled(text: str, tables: Tables) -> str:
    """Return a page with these tables. Raises ``ValueError`` where it has no place for one."""
    for name, lines in tables.items():
        begin, end = f"<!-- table of {name} -->", f"<!-- end of {name} -->"
        before, *rest = re.split(f"{re.escape(begin)}.*?{re.escape(end)}", text, flags=re.S)
        if len(rest) != 1:
            raise ValueError(
                f"found {len(rest)} places for the table of {name}; exactly one is needed"
            )
        text = before + "\n".join((begin, "", *lines, "", end)) + rest[0]
    return text


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file as texts by column."""
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))
