"""Parts shared by open traces and open spans: the folder, its description, and its removal.

A folder can come from an untrusted source: symbolic links, files that are too large or damaged, and
other formats are refused with a message that has the folder's name.
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
    """Open folder; use ``with`` or ``close``, which remove the folder if it is temporary."""

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
    """Return the result of ``read``, called with the path of a new temporary folder.

    ``read`` imports into this folder and opens it. The folder is removed when the result is closed,
    or if ``read`` fails.
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
    """Return the content of ``file``, the JSON description of a folder.

    Raises ``InputError`` if the file is missing, damaged, or not of format ``version``. ``name`` is
    the folder's name in the message, ``what`` the folder's content ("a trace", "spans").
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
    """Context manager: exceptions of polars for damaged tables become ``InputError``.

    ``name`` is the name of the folder in the message.
    """
    try:
        yield
    # PanicException of polars is not derived from Exception, so it is named here.
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        said = clean(str(error).partition("\n")[0], 120)
        raise InputError(f"{name}: a table is damaged: {said}") from None
