"""Keeps traces that were made: as a folder in the normal form, or as a SWIM trace.

What made a trace is kept with it in ``trace.json``, under ``synthesized`` or ``scaled``, and a
synthetic one's distances to its source under ``quality``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import polars as pl

from eastwest.errors import FolderError
from eastwest.files import write_whole
from eastwest.traces.form import schema
from eastwest.traces.write import Writer
from eastwest.units import clean
from eastwest.workload.describe import as_json
from eastwest.workload.quality import Quality, Row
from eastwest.workload.to_swim import text_of

#: Rows of a table of distances that are believed of a folder.
_MOST_ROWS = 100


class Form(StrEnum):
    """The file format in which a trace is kept."""

    NORMAL = "normal"
    SWIM = "swim"


def check_free(out: Path, form: Form, force: bool) -> None:
    """Refuse a place that cannot be written to, before time is spent on a trace."""
    if form == Form.NORMAL:
        Writer(out, force)
    elif out.exists() and not force:
        raise FolderError(f"{out} already exists: name another file, or add --force")


def keep(
    jobs: pl.DataFrame,
    out: Path,
    form: Form,
    about: Mapping[str, Any],
    files: pl.LazyFrame | None = None,
    force: bool = False,
) -> int:
    """Write a trace, and return how many sizes of its jobs were not known and became 0."""
    if form == Form.SWIM:
        text, unknown = text_of(jobs)
        check_free(out, form, force)
        write_whole(out, text)
        return unknown
    with Writer(out, force) as writer:
        writer.next_job(jobs.height)
        writer.add_frame("jobs", jobs.select(c for c in schema("jobs") if c in jobs.columns))
        if files is not None:
            writer.add_frame("files", files.collect(engine="streaming"))
        writer.finish(about)
    return 0


def quality_of(about: Mapping[str, Any]) -> Quality | None:
    """The distances that a folder's ``trace.json`` has; nothing where it has no sound ones."""
    kept = about.get("quality")
    try:
        rows = [
            Row(
                clean(str(row["quantity"]), 60),
                clean(str(row["measure"]), 60),
                _number(row["value"]),
                _number(row["typical"]),
                _number(row["limit"]),
                _number(row["value"]) <= _number(row["limit"]),
            )
            for row in kept["rows"][:_MOST_ROWS]  # type: ignore[index]
        ]
        return Quality(
            tuple(rows),
            _number(kept["window_s"]),  # type: ignore[index]
            int(_number(kept["windows"])),  # type: ignore[index]
            int(_number(kept["drawn"])),  # type: ignore[index]
            _number(kept["own_share"]),  # type: ignore[index]
            int(_number(kept["seed"])),  # type: ignore[index]
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError("no number")
    return float(value)


def as_kept(quality: Quality) -> Any:
    """Distances as ``trace.json`` has them."""
    return as_json(quality)
