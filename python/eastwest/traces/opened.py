"""Parts shared by open traces and open spans: the folder, its description, and its removal.

Folders can come from untrusted people: links, files that are too large or damaged, and other
formats are refused with a message that has the folder's name.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

import polars as pl

from eastwest.errors import InputError
from eastwest.partial import Partial
from eastwest.units import clean

#: Maximum size in bytes of the JSON file that describes a folder.
_MOST_ABOUT = 4 << 20


@dataclass
class Opened:
    """Open folder; close it by ``with`` or ``close``, because it may be temporary."""

    path: Path
    #: Content of ``trace.json`` or ``spans.json``.
    about: dict[str, Any]
    #: Name for messages and pages: the folder or file that the user gave.
    name: str
    #: Function that ``close`` calls; it removes a temporary folder.
    closing: Callable[[], None] = field(default=lambda: None, repr=False, kw_only=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the temporary folder, if there is one."""
        self.closing()


Kind = TypeVar("Kind", bound=Opened)


def open_imported(read: Callable[[Path], Kind]) -> Kind:
    """Return the opened result of ``read``, which imports into a temporary folder.

    The folder is removed when the result is closed.
    """
    scratch = Partial.scratch()
    try:
        opened = read(scratch.path / "imported")
    except BaseException:
        scratch.close()
        raise
    opened.closing = scratch.close
    return opened


def read_about(file: Path, name: str, what: str, version: int | str) -> dict[str, Any]:
    """Return the JSON description in a folder; ``what`` is its content ("a trace", "spans").

    Raises ``InputError`` if the file is missing, damaged, or not of format ``version``; ``name`` is
    the folder's name in the message.
    """
    if file.is_symlink() or not file.is_file():
        raise InputError(f"{name} is not a folder with {what}: it has no {file.name}")
    if file.stat().st_size > _MOST_ABOUT:
        raise InputError(f"{name}: {file.name} is larger than {_MOST_ABOUT:,} bytes, the maximum")
    try:
        about = json.loads(file.read_bytes())
        found = about["format"]
    except (ValueError, RecursionError, TypeError, KeyError):
        raise InputError(f"{name}: {file.name} is damaged, or does not describe {what}") from None
    if found != version:
        raise InputError(
            f"{name}: has format {clean(str(found), 20)}, but this version of "
            f"Eastwest reads format {version}"
        )
    return dict(about)


@contextlib.contextmanager
def sound(name: str) -> Iterator[None]:
    """Convert exceptions of polars on damaged files into ``InputError``, within the context."""
    try:
        yield
    # PanicException of polars is not derived from Exception, so it is named here.
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        said = clean(str(error).partition("\n")[0], 120)
        raise InputError(f"{name}: a table is damaged: {said}") from None
