"""Writer of tables into the page of a study, between two marks.

The scripts ``papers/*/tables.py`` use this module to write tables of stored results. The marks are
comments: ``<!-- table of NAME -->`` and ``<!-- end of NAME -->``. Text outside of them does not
change.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

#: Lines of each table in Markdown, by the NAME of the table in its marks.
Tables = Mapping[str, Iterable[str]]


def filled(text: str, tables: Tables) -> str:
    """Return the text of a page with new tables between the marks.

    Raises ``ValueError`` unless the page has the marks of each table exactly once.
    """
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
    """Return the rows of a CSV file as texts by the name of the column."""
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))
