"""Parts shared by open traces and open spans: a folder, deleted on closing, and its facts.

Folders come from anywhere: what is no file of its own, too large, damaged or of another format is
refused with the folder's name.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import polars as pl

from eastwest.errors import InputError
from eastwest.units import clean

#: Most bytes of the file of facts.
_MOST_ABOUT = 4 << 20


@dataclass
class Opened:
    """An open folder; leave it with ``with`` or ``close``, as it may be a temporary one."""

    path: Path
    #: What ``trace.json`` or ``spans.json`` says.
    about: dict[str, Any]
    #: What messages and pages call it: the folder or file that was named.
    name: str
    closing: Callable[[], None] = field(default=lambda: None, repr=False, kw_only=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the temporary folder, where there is one."""
        self.closing()


def read_about(file: Path, name: str, what: str, version: int | str) -> dict[str, Any]:
    """Facts of the folder ``name``, which is said to hold ``what`` ("a trace", "spans").

    Raises ``InputError`` where the file is missing, damaged, or not of format ``version``.
    """
    if file.is_symlink() or not file.is_file():
        raise InputError(f"{name} does not hold {what}: it has no {file.name}")
    if file.stat().st_size > _MOST_ABOUT:
        raise InputError(f"{name}: {file.name} is too large")
    try:
        about = json.loads(file.read_bytes())
        found = about["format"]
    except (ValueError, RecursionError, TypeError, KeyError):
        raise InputError(f"{name}: {file.name} is damaged, or not that of {what}") from None
    if found != version:
        raise InputError(
            f"{name}: is of format {clean(str(found), 20)}, this version reads {version}"
        )
    return dict(about)


@contextlib.contextmanager
def sound(name: str) -> Iterator[None]:
    """Turn what polars raises on damaged files into ``InputError``."""
    try:
        yield
    # a panic of polars is no Exception
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        said = clean(str(error).partition("\n")[0], 120)
        raise InputError(f"{name}: a table is damaged: {said}") from None
