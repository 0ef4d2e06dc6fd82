"""Folders of sweeps and optimisations: a summary with a kind and a format, and tables.

A folder may come from anyone: an invalid file is refused with an error that names it.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eastwest.errors import InputError
from eastwest.files import sync_folder

if TYPE_CHECKING:
    import polars as pl

_LARGEST_SUMMARY = 256 * 1024 * 1024


def read_summary(folder: Path, kind: str, newest: int) -> dict[str, Any] | None:
    """Return ``summary.json`` of a folder; None if it is missing or if its kind is not ``kind``.

    Raises ``InputError`` where the summary is damaged, or of a format above ``newest``.
    """
    path = folder / "summary.json"
    if not path.is_file():
        return None
    if path.stat().st_size > _LARGEST_SUMMARY:
        raise InputError(f"{path} is damaged: it is larger than any summary, above 256 MiB")
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is damaged: {error}") from None
    if not isinstance(summary, dict) or summary.get("kind") != kind:
        return None
    found = summary.get("format")
    if not isinstance(found, int) or found > newest:
        raise InputError(
            f"{folder} has {kind} format {found!r:.20}, written by Eastwest "
            f"{summary.get('version')!r:.40}; this version reads formats up to {newest}"
        )
    return summary


def read_table(folder: Path, name: str) -> pl.DataFrame:
    """Return table ``name`` of a folder. Raises ``InputError`` if it is missing or damaged."""
    import polars as pl  # noqa: PLC0415  large

    path = folder / f"{name}.parquet"
    try:
        return pl.read_parquet(path)
    except FileNotFoundError:
        raise InputError(f"{folder} is damaged: {path.name} is missing") from None
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{path} is damaged: {error}") from None


def fill(folder: Path, texts: Mapping[str, str], tables: Mapping[str, pl.DataFrame]) -> None:
    """Write ``texts`` and ``tables`` into a folder, and force the folder to disk.

    The keys of ``texts`` are names of files; table ``NAME`` becomes ``NAME.parquet``.
    """
    for name, content in texts.items():
        (folder / name).write_text(content, encoding="utf-8")
    for name, table in tables.items():
        # The table is made in memory first, so that a full disk raises an OSError with an error
        # number, and not an exception of polars.
        stream = io.BytesIO()
        table.write_parquet(stream)
        (folder / f"{name}.parquet").write_bytes(stream.getbuffer())
    sync_folder(folder)


@contextlib.contextmanager
def writing(out: Path) -> Iterator[None]:
    """Create the parent folder of ``out`` before a ``with`` block that writes to ``out``.

    An ``OSError`` of the block without a path gets the path ``out``.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(out)
        raise
