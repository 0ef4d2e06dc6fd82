"""Errors that a user can put right, apart from those of scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eastwest.core import Problem


class InputError(ValueError):
    """A file or folder is not what it was taken for."""


class ProblemsError(InputError):
    """A file has problems; ``problems`` lists all of them."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(f"{p['path']}: {p['message']}" for p in problems))
        self.problems = problems


class MechanismError(InputError):
    """A mechanism of the user's own went wrong; ``trace`` is the traceback of a Python one."""

    def __init__(self, message: str, trace: str = "") -> None:
        super().__init__(message)
        self.trace = trace


class FolderError(InputError):
    """The result folder cannot be written where it was asked for."""
