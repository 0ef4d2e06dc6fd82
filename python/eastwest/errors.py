"""Errors that a user can correct, apart from those of scenarios."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eastwest.core import Problem


def nearest(name: object, among: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the name most similar to ``name``; None if no similarity (0 to 1) is ``cutoff``."""
    return next(iter(difflib.get_close_matches(str(name), [*among], 1, cutoff)), None)


def did_you_mean(given: str, names: Iterable[str]) -> str:
    """Return ``; did you mean NAME?`` with the name nearest to ``given``; empty if none is near."""
    near = nearest(given, names)
    return f"; did you mean {near}?" if near else ""


class InputError(ValueError):
    """Error of a file, folder or argument of the user: missing, damaged or not valid."""


class ProblemsError(InputError):
    """Error of an input file with one or more problems; ``problems`` lists all of them."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(f"{p['path']}: {p['message']}" for p in problems))
        self.problems = problems


class MechanismError(InputError):
    """Error in a user's own mechanism; ``trace`` is the traceback of one in Python."""

    def __init__(self, message: str, trace: str = "") -> None:
        super().__init__(message)
        self.trace = trace


class FolderError(InputError):
    """Error where the result folder cannot be written at its path."""
