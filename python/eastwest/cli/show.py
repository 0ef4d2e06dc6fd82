"""Output of commands on a terminal: problems of a scenario, and the summary of a run."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from eastwest.cli.lines import grid
from eastwest.core import Problem
from eastwest.errors import counted, pieces
from eastwest.results import Result
from eastwest.units import clean
from eastwest.views import summary

#: Maximum number of notes of a summary, and of lines of each note, so that the summary has fewer
#: than 24 lines.
_MOST_NOTES = 2
_MOST_GOALS = 4
#: Styles of the pieces of a printed line about a problem of an input file.
_STYLES = {"": "", "path": "bold red", "value": "yellow", "hint": "green"}


def problem_lines(problems: list[Problem], otherwise: str = "") -> Iterator[Text]:
    """Yield a line for each problem: path, value, allowed values, nearest name."""
    if not problems:
        yield Text(f"eastwest: {clean(otherwise or 'the scenario is wrong', 2000)}")
        return
    yield Text(f"eastwest: {counted(problems)}", style="bold")
    for problem in problems:
        yield Text.assemble(*((text, _STYLES[role]) for role, text in pieces(problem)))


def summary_table(result: Result, width: int) -> Table:
    """Return a table of the main results of a run, mostly smaller than a screen of 80 × 24.

    Notes are not cut. Lines have at most ``width`` characters, and numbers stay beside their units.
    """
    notes = summary.notes(result)
    more = len(notes) - _MOST_NOTES
    shown = [
        *((name, text, "") for name, text in summary.rows(result)),
        *_goals(result),
        *((name, text, "yellow") for name, text in summary.warnings(result)),
    ]
    shown += [
        *(("note", note, "yellow") for note in notes[:_MOST_NOTES]),
        *([("", f"and {more} more in summary.json", "")] if more > 0 else []),
        ("digest", clean(result.digest), ""),
        ("result", clean(str(result.path), 400), "bold green"),
    ]
    return grid(shown, width)


def _goals(result: Result) -> Iterator[tuple[str, str, str]]:
    """Yield (name, text, style) of the first few goals of a run, and a line on further goals."""
    if not result.summary.get("goals"):
        return
    from eastwest.views import goals  # noqa: PLC0415  few runs have goals

    found = goals.entries(result.summary)
    style = {"good": "green", "bad": "red", "look": ""}
    for number, entry in enumerate(found[:_MOST_GOALS]):
        yield "" if number else "goal", goals.line(entry), style[goals.mark(entry)]
    if len(found) > _MOST_GOALS:
        yield "", f"and {len(found) - _MOST_GOALS} more goals in summary.json", ""


def print_summary(console: Console, result: Result) -> None:
    """Print the title and the main results of a run."""
    console.print(Text(summary.title(result), style="bold underline"))
    console.print(summary_table(result, console.width))
