"""Tables in the page of a study, which are written from stored results, between two marks.

``papers/*/tables.py`` use this module. The marks are comments: ``<!-- table of NAME -->`` and
``<!-- end of NAME -->``; the text before and after them does not change.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

#: Lines of each table in Markdown, by the NAME of the table in its marks.
Tables = Mapping[str, Iterable[str]]


def filled(text: str, tables: Tables) -> str:
    """Return a page with new tables; raise ``ValueError`` unless each has its marks once."""
    for name, lines in tables.items():
        begin, end = f"<!-- table of {name} -->", f"<!-- end of {name} -->"
        before, *rest = re.split(f"{re.escape(begin)}.*?{re.escape(end)}", text, flags=re.S)
        if len(rest) != 1:
            raise ValueError(
                f"found {len(rest)} pairs of marks for the table of {name}; exactly one is needed"
            )
        text = before + "\n".join((begin, "", *lines, "", end)) + rest[0]
    return text


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file; each row has its texts by the name of the column."""
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))
