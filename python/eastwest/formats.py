"""Versions of the result format: what each one holds, and how old results are read.

The one place that knows how to read older versions. ``TABLES`` is what this version writes and
``SINCE`` what a version has added, both as the simulator declares them. A folder of an older
format reads as one of today's: its missing tables are empty, its missing columns are null, or
filled where their value is known. A newer one is refused: what it means is not known here.
docs/reference/formats.md has the history and the promise.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eastwest import core
from eastwest.errors import InputError

if TYPE_CHECKING:
    import polars as pl

#: Format of the folders this version writes: ``format`` in ``summary.json``.
RESULT_FORMAT = 7

#: Tables this version writes: their columns, in order, with their types.
TABLES: dict[str, dict[str, str]] = {
    table["name"]: {column["name"]: column["kind"] for column in table["columns"]}
    for table in core.tables()
}


def _since() -> dict[str, int]:
    found = {}
    for table in core.tables():
        found[table["name"]] = table["since"]
        found |= {f"{table['name']}.{c['name']}": c["since"] for c in table["columns"]}
    return {name: since for name, since in found.items() if since > 1}


#: What came with a later format than the first: tables, and columns as ``table.column``. The number
#: is the first format of which every folder has it: before version 0.1.0 was released, tables and
#: columns came while a format was current, and its first folders lack them.
SINCE: dict[str, int] = _since()

#: What tells the streams of the table ``flow_samples`` apart.
STREAM = ("workload", "connection", "stream", "src", "dst")

_LARGEST_SUMMARY = 64 * 1024 * 1024
#: Rows of a table that are read: a file of some hundred kilobytes can hold more than memory does.
_MOST_ROWS = 20_000_000


def stamped(summary: dict[str, Any]) -> dict[str, Any]:
    """Put the format that this version writes at the head of a summary."""
    return {"format": RESULT_FORMAT, **summary}


def read_summary(folder: Path) -> dict[str, Any]:
    """Read ``summary.json``; its ``format`` is always there and one that this version reads.

    Raises ``InputError`` where the file is damaged or of a newer format.
    """
    path = folder / "summary.json"
    if path.stat().st_size > _LARGEST_SUMMARY:
        raise InputError(f"{path} is damaged: larger than any summary")
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is damaged: {error}") from None
    except (RecursionError, ValueError) as error:
        raise InputError(f"{path} is damaged: {type(error).__name__}") from None
    if not isinstance(summary, dict):
        raise InputError(f"{path} is damaged: not a JSON object")
    summary.setdefault("format", 1)
    found = summary["format"]
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise InputError(f"{path} is damaged: its format is {found!r:.40}, not a whole number")
    if found > RESULT_FORMAT:
        raise InputError(_newer(folder, summary))
    if found == 1:
        _count_what_was_not_there(summary)
    return summary


def _count_what_was_not_there(summary: dict[str, Any]) -> None:
    """Add the losses and marks that a run of format 1 cannot have had."""
    drops = summary.get("drops")
    full = drops.get("full") if isinstance(drops, dict) else None
    if isinstance(drops, dict) and isinstance(full, dict):
        for cause in ("loss", "link_down", "no_route", "early"):
            drops.setdefault(cause, dict.fromkeys(full, 0))
        summary.setdefault("marks", dict.fromkeys(full, 0))


def _newer(folder: Path, summary: dict[str, Any]) -> str:
    writer = str(summary.get("version", "of unknown version"))
    return (
        f"{folder} has result format {summary['format']:d}, written by Eastwest {writer:.40}; "
        f"this is Eastwest {core.version()}, which reads formats 1 to {RESULT_FORMAT}. "
        f"Read it with that version or a newer one, or simulate it again with this one: "
        f"eastwest run {folder / 'scenario.toml'}"
    )


def writer(summary: Mapping[str, Any]) -> str:
    """Say which version wrote a result, in which format."""
    return f"Eastwest {summary.get('version', '?')!s:.40}, format {summary.get('format', 1)!s:.20}"


def empty(name: str) -> pl.DataFrame:
    """Give a table of this version without rows."""
    import polars as pl  # noqa: PLC0415  large: not before the simulation has run

    return pl.DataFrame(schema={column: _polars(kind) for column, kind in TABLES[name].items()})


def read_table(folder: Path, name: str, written: int) -> pl.DataFrame:
    """Read a table of a folder whose summary says format ``written``, as this version has it.

    Raises ``FileNotFoundError`` where there is no such table and ``InputError`` where it is
    damaged.
    """
    import polars as pl  # noqa: PLC0415  large: not before the simulation has run

    if name not in TABLES:
        near = difflib.get_close_matches(name, TABLES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"tables: {', '.join(TABLES)}"
        raise FileNotFoundError(f"{folder} has no table {name!r:.60}; {hint}")
    path = folder / f"{name}.parquet"
    if not path.is_file():
        if SINCE.get(name, 1) > written:
            return empty(name)
        raise FileNotFoundError(f"{folder} has no table {name!r}: {path.name} is missing")
    try:
        rows = int(pl.scan_parquet(path).select(pl.len()).collect().item())
        if rows > _MOST_ROWS:
            raise InputError(f"{path} has {rows:,} rows; tables of up to {_MOST_ROWS:,} are read")
        found = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise InputError(f"{path} is damaged: {error}") from None
    return _migrated(found, name, written, path)


def _migrated(found: pl.DataFrame, name: str, written: int, path: Path) -> pl.DataFrame:
    """Give a table the columns of today, in today's order."""
    import polars as pl  # noqa: PLC0415

    columns = []
    for column, kind in TABLES[name].items():
        dtype = _polars(kind)
        if column in found.columns:
            if found.schema[column] != dtype:
                raise InputError(
                    f"{path} is damaged: column {column} is {found.schema[column]}, not {dtype}"
                )
            columns.append(pl.col(column))
        elif SINCE.get(f"{name}.{column}", 1) > written:
            columns.append(_known(name, column, written).cast(dtype).alias(column))
        else:
            raise InputError(f"{path} is damaged: it has no column {column}")
    return found.select(columns)


def _known(name: str, column: str, written: int) -> pl.Expr:
    """Value of a column that a format did not have yet."""
    import polars as pl  # noqa: PLC0415

    if name == "links" and (written == 1 or column in {"drops_early", "marks"}):
        # Only a full queue lost packets then, and none was marked.
        return pl.col("drops") if column == "drops_queue_full" else pl.lit(0)
    return pl.lit(None)


def _polars(kind: str) -> type[pl.DataType]:
    import polars as pl  # noqa: PLC0415

    kinds: dict[str, type[pl.DataType]] = {
        "u32": pl.UInt32,
        "u64": pl.UInt64,
        "i64": pl.Int64,
        "f64": pl.Float64,
        "str": pl.String,
    }
    return kinds[kind]
