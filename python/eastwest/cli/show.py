"""Output of commands on a terminal: problems of a scenario, and the summary of a run."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from eastwest.cli.lines import cut, grid, room_of, wrapped
from eastwest.core import Problem
from eastwest.errors import counted, pieces
from eastwest.results import Result
from eastwest.units import clean
from eastwest.views import summary

#: Maximum number of notes in a summary, and minimum number of lines for a long note.
_MOST_NOTES, _LEAST_LINES = 2, 2
#: Maximum number of lines of a summary.
_SCREEN = 23
#: Styles of the pieces of a printed line about a problem of an input file.
_STYLES = {"": "", "path": "bold red", "value": "yellow", "hint": "green"}


def problem_lines(problems: list[Problem], otherwise: str = "") -> Iterator[Text]:
    """Yield a heading, and a line for each problem: path, value, message, nearest name.

    Without problems, the only line is ``otherwise``.
    """
    if not problems:
        yield Text(f"eastwest: {clean(otherwise or 'the scenario is wrong', 2000)}")
        return
    yield Text(f"eastwest: {counted(problems)}", style="bold")
    for problem in problems:
        yield Text.assemble(*((text, _STYLES[role]) for role, text in pieces(problem)))


def summary_table(result: Result, width: int) -> Table:
    """Return a table of the main results of a run; with few goals, it fits on 80 × 24 characters.

    All goals are in the table. Notes are cut where the screen has no room for them; summary.json
    has all notes in full. Lines have at most ``width`` characters, and numbers stay beside their
    units.
    """
    notes = summary.notes(result)
    more = len(notes) - _MOST_NOTES
    shown = [
        *((name, text, "") for name, text in summary.rows(result)),
        *_goals(result),
        *((name, text, "yellow") for name, text in summary.warnings(result)),
    ]
    last = [
        *([("", f"and {more} more in summary.json", "")] if more > 0 else []),
        ("digest", clean(result.digest), ""),
        ("result", clean(str(result.path), 400), "bold green"),
    ]
    room = room_of((name for name, *_ in [*shown, *last]), width)
    used = sum(len(wrapped(text, room).split("\n")) for _, text, _ in [*shown, *last])
    lines = max(_LEAST_LINES, (_SCREEN - used) // max(1, min(len(notes), _MOST_NOTES)))
    shown += [("note", cut(note, room, lines), "yellow") for note in notes[:_MOST_NOTES]]
    shown += last
    return grid(shown, width)


def _goals(result: Result) -> Iterator[tuple[str, str, str]]:
    """Yield (name, text, style) of the goals of a run, missed goals first."""
    if not result.summary.get("goals"):
        return
    from eastwest.views import goals  # noqa: PLC0415  few runs have goals

    style = {"bad": "red", "look": "", "good": "green"}
    found = sorted(goals.entries(result.summary), key=lambda e: [*style].index(goals.mark(e)))
    for number, entry in enumerate(found):
        yield "" if number else "goal", goals.line(entry), style[goals.mark(entry)]


def print_summary(console: Console, result: Result) -> None:
    """Print the title and the main results of a run."""
    console.print(Text(summary.title(result), style="bold underline"))
    console.print(summary_table(result, console.width))
