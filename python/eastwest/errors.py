"""Exceptions for errors that a user can correct, and texts of errors.

The exceptions ``ScenarioError`` and ``RunError`` are in ``eastwest._core``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from eastwest.units import clean

if TYPE_CHECKING:
    from eastwest.core import Problem


def nearest(name: object, among: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the name in ``among`` that is most similar to ``name``; None if none is similar.

    A name is similar if its similarity (``difflib``, 0 to 1) is at least ``cutoff``.
    """
    return next(iter(difflib.get_close_matches(str(name), [*among], 1, cutoff)), None)


def did_you_mean(given: str, names: Iterable[str]) -> str:
    """Return ``; did you mean NAME?`` with the name nearest to ``given``; empty if none is near."""
    near = nearest(given, names)
    return f"; did you mean {near}?" if near else ""


class InputError(ValueError):
    """Error of a file, folder or argument of the user: missing, damaged or not valid."""


def pieces(problem: Problem) -> Iterator[tuple[str, str]]:
    """Yield the line of text about a problem in pieces: (role, text).

    The role, by which a piece can be coloured, is ``path``, ``value``, ``hint`` or empty.
    """
    yield "", f"  line {problem['line']}: " if problem.get("line") else "  "
    yield "path", clean(problem["path"]) or "(whole file)"
    if problem.get("value") is not None:
        yield "", " = "
        yield "value", clean(str(problem["value"]))
    yield "", f": {clean(problem['message'], 1000)}"
    if problem.get("hint"):
        yield "hint", f"; did you mean {clean(str(problem['hint']))}?"


def counted(problems: Sequence[Problem]) -> str:
    """Return the number of problems with its noun: ``1 problem``, ``2 problems``."""
    return f"{len(problems)} problem{'s' * (len(problems) != 1)}"


def problems_text(problems: Sequence[Problem]) -> str:
    """Return the text of the command line about problems: their number, then a line for each."""
    lines = ("".join(text for _, text in pieces(problem)) for problem in problems)
    return "\n".join([counted(problems), *lines])


def in_one_line(error: Exception, most: int = 5) -> str:
    """Return an error as one line of text: up to ``most`` of its problems, or its message."""
    problems: Sequence[Problem] = getattr(error, "problems", [])
    lines = ["".join(text for _, text in pieces(p)).strip() for p in problems[:most]]
    return "; ".join(lines) or str(error)


class ProblemsError(InputError):
    """Error of an input file with one or more problems; ``problems`` lists all of them."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        return problems_text(self.problems)


class MechanismError(InputError):
    """Error in a user's own mechanism; ``trace`` is its traceback or stack; empty if unknown."""

    def __init__(self, message: str, trace: str = "") -> None:
        super().__init__(message)
        self.trace = trace


class FolderError(InputError):
    """Error of a result folder, run store or other folder that cannot be written at its path."""
