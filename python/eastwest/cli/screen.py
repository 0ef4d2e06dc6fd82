"""Terminal output that commands share: consoles, tables, and notes on imported files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from eastwest.cli.guard import errors
from eastwest.cli.lines import wrapped
from eastwest.units import clean

#: Minimum width, in characters, of a wide table that is written to a file or a pipe.
_WIDE = 120
#: Number of blanks after the cells of a table of two columns.
_GAP = 2


def console(*, wide: bool = False) -> Console:
    """Return the console for results: standard output.

    With ``wide``, lines in a file or a pipe have at least 120 characters.
    """
    made = Console(highlight=False)
    if wide and not made.is_terminal:
        made.width = max(made.width, _WIDE)
    return made


def headed(*headings: str, left: int = 0, gap: int = 1, **style: Any) -> Table:
    """Return an empty table; the first ``left`` columns are aligned left, the others right.

    ``gap`` is the number of blanks between columns; ``style`` has further arguments of the class
    ``Table`` of the package rich.
    """
    table = Table(box=box.SIMPLE_HEAD, padding=(0, gap, 0, 0), **style)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number < left else "right", no_wrap=True)
    return table


def heading(path: str, width: int = 24) -> str:
    """Return a metric's path as a heading, broken after dots into lines of ``width`` characters."""
    lines = [""]
    for part in re.split(r"(?<=\.)", clean(path)):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def natural_width(screen: Console, table: Table) -> int:
    """Return the number of characters that a table needs so that no cell is folded or cut."""
    unbounded = screen.options.update(width=10_000)
    return Measurement.get(screen, unbounded, table).maximum


def print_table(screen: Console, table: Table) -> None:
    """Print a table; in a file or a pipe no cell is cut, because lines may have any length."""
    if not screen.is_terminal:
        screen.width = max(screen.width, natural_width(screen, table))
    screen.print(table)


def print_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Print rows of (name, text) as two columns; texts are wrapped to the width of the terminal."""
    shown = list(rows)
    screen = console()
    room = screen.width - max((len(name) for name, _ in shown), default=0) - 2 * _GAP
    table = Table(box=None, show_header=False, padding=(0, _GAP, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for name, text in shown:
        table.add_row(name, Text(wrapped(text, room)))
    screen.print(table)


def print_account(
    lines: Iterable[str],
    where: str = "the result as JSON (--json)",
    *,
    most: int = 12,
    longest: int = 400,
) -> None:
    """Print the first ``most`` of ``lines``, an import's remarks on records, to standard error.

    ``where`` says in the last line where all lines are; ``longest`` is the maximum length of a
    line.
    """
    said = list(lines)
    for line in said[:most]:
        errors().print(Text(f"eastwest: {clean(line, longest)}"))
    if len(said) > most:
        errors().print(f"eastwest: and {len(said) - most} more in {where}")
