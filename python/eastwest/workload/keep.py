"""Writes synthetic and scaled traces: as a folder in the normal form, or as a SWIM trace.

In the folder, ``trace.json`` states how the trace was made under ``synthesized`` or ``scaled``. For
a synthetic trace, it also has the distances to the source under ``quality``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import polars as pl

from eastwest.files import check_outputs, write_whole
from eastwest.traces.form import schema
from eastwest.traces.write import Writer
from eastwest.units import clean
from eastwest.workload.describe import as_json
from eastwest.workload.quality import Quality, Row
from eastwest.workload.to_swim import text_of

#: Maximum number of distances that are read from ``quality`` in a ``trace.json``.
_MOST_ROWS = 100


class Form(StrEnum):
    """Format in which a trace is written: a folder in the normal form, or a SWIM file."""

    NORMAL = "normal"
    SWIM = "swim"


def check_free(out: Path, form: Form, force: bool, inputs: Sequence[Path] = ()) -> None:
    """Raise ``InputError`` if ``out`` cannot be written; called before the trace is computed.

    ``inputs`` are files that the command reads, which ``out`` must not replace.
    """
    if form == Form.NORMAL:
        Writer(out, force)
    else:
        check_outputs([out], inputs, force)


def keep(
    jobs: pl.DataFrame,
    out: Path,
    form: Form,
    about: Mapping[str, Any],
    files: pl.LazyFrame | None = None,
    force: bool = False,
) -> int:
    """Write a trace to ``out``; return the number of unknown sizes that were written as 0.

    The number is 0 for a folder, because only SWIM cannot express unknown sizes. ``jobs`` is the
    table of jobs, ``files`` the table of files or None, ``about`` additional content of
    ``trace.json``.
    """
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
    """Return the distances that ``about``, the content of a ``trace.json``, has under ``quality``.

    The result is None if they are missing or not valid.
    """
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
        raise ValueError("the value is not a finite number")
    return float(value)


def as_kept(quality: Quality) -> Any:
    """Return the distances between a trace and its source as JSON values for ``quality``."""
    return as_json(quality)
