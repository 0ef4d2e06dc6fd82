"""Cells of the text tables that people open in spreadsheets, so that none becomes a formula.

A spreadsheet takes a cell of a CSV or TSV file that begins with ``=``, ``+``, ``-``, ``@``, a tab
or a carriage return for a formula, and evaluates it when the file is opened (OWASP, *CSV
Injection*). Names come from recordings, which anybody may have written. So a text that begins with
one of these signs is written with an apostrophe before it, which spreadsheets show as text.

Nothing is lost: a text that begins with apostrophes and then one of these signs gets one more
apostrophe, too, so that ``plain`` gives back each name. All other texts stay as they are, and
numbers are never changed. The simulator reads names of ``transactions.tsv`` in the same way.

Tables of routes, demands and flows do without: names of hosts and switches consist of letters,
digits, ``-``, ``_`` and ``.``, of which no call of a function can be made.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_GUARDED = re.compile(r"'+[=+\-@\t\r]")


def cell(value: object) -> object:
    """A value as it is written to a table: texts that look like formulas with an apostrophe."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def text_cell(text: str) -> str:
    """Return the cell of a text."""
    return str(cell(text))


def plain(text: str) -> str:
    """The text that a cell means: the one that ``cell`` was given."""
    return text[1:] if _GUARDED.match(text) else text


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in CSV, with lines that end in a line feed."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([cell(name) for name in head])
    writer.writerows([cell(value) for value in row] for row in rows)
    return stream.getvalue()
