"""Cells of CSV and TSV tables that are safe to open in a spreadsheet: no cell becomes a formula.

A spreadsheet reads a cell of a CSV or TSV file that begins with ``=``, ``+``, ``-``, ``@``, a tab
or a carriage return as a formula, and evaluates it when the file is opened (OWASP, *CSV
Injection*). Names come from recordings, which anybody may have written. So a text that begins with
one of these signs is written with an apostrophe before it, which spreadsheets show as text.

No name is lost: a text that begins with apostrophes and then one of these signs gets one more
apostrophe, too, so that ``plain`` returns each original name. All other texts and all numbers are
unchanged. The simulator reads names of ``transactions.tsv`` by the same rule.

Tables of routes, demands and flows get no apostrophes: names of hosts and switches consist of
letters, digits, ``-``, ``_`` and ``.``, which cannot form the call of a function.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_GUARDED = re.compile(r"'+[=+\-@\t\r]")


def cell(value: object) -> object:
    """Return a value as a cell of a table: a text that begins like a formula gets an apostrophe."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def text_cell(text: str) -> str:
    """Return a text as a cell of a table: a text that begins like a formula gets an apostrophe."""
    return str(cell(text))


def plain(text: str) -> str:
    """Return the original text of a cell: without the apostrophe that ``cell`` has added."""
    return text[1:] if _GUARDED.match(text) else text


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV with safe cells; lines end with a line feed."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([cell(name) for name in head])
    writer.writerows([cell(value) for value in row] for row in rows)
    return stream.getvalue()
