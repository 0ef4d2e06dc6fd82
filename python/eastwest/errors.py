"""Errors that a user can correct, apart from those of scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eastwest.core import Problem


class InputError(ValueError):
    """Error of a file, folder or argument that is not what it should be."""


class ProblemsError(InputError):
    """Error of a file with problems; ``problems`` lists all of them."""

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
