"""Versions of the result format: the tables of each version, and the reading of old results.

Only this module reads older versions. ``TABLES`` are the tables that this version writes and
``SINCE`` the format that added each table or column, both as the simulator declares them. A folder
of an older format is read as a folder of the current format: missing tables are empty, missing
columns are null, or filled where their value is known. A folder of a newer format is refused,
because the meaning of its data is not known. docs/reference/formats.md has the history of formats
and the promise of compatibility.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eastwest import core
from eastwest.errors import InputError, nearest

if TYPE_CHECKING:
    import polars as pl

#: Format of the folders that this version writes: ``format`` in ``summary.json``.
RESULT_FORMAT = 12

#: Tables that this version writes: their columns, in order, with their types.
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


#: First result format of which every folder has a table (``table``) or a column
#: (``table.column``); tables and columns of format 1 have no entry. Before version 0.1.0, tables
#: and columns were added without a new format, so that some older folders have them, too.
SINCE: dict[str, int] = _since()

#: Columns that identify a stream in the table ``flow_samples``.
STREAM = ("workload", "connection", "stream", "src", "dst")

_LARGEST_SUMMARY = 64 * 1024 * 1024
#: Maximum number of rows of a table that are read: a file of some 100 KB can expand to more than
#: the memory of a machine.
_MOST_ROWS = 20_000_000


def stamped(summary: dict[str, Any]) -> dict[str, Any]:
    """Return ``summary`` with the key ``format`` (``RESULT_FORMAT``) before its other keys."""
    return {"format": RESULT_FORMAT, **summary}


def read_summary(folder: Path) -> dict[str, Any]:
    """Return ``summary.json`` of a folder, always with a ``format`` that this version reads.

    Raises ``InputError`` where the file is damaged or of a newer format.
    """
    path = folder / "summary.json"
    if path.stat().st_size > _LARGEST_SUMMARY:
        raise InputError(f"{path} is damaged: it is larger than any summary, above 64 MiB")
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
        raise InputError(
            f"{path} is damaged: its format is {found!r:.40}, not a whole number above 0"
        )
    if found > RESULT_FORMAT:
        raise InputError(_newer(folder, summary))
    if found == 1:
        _add_missing_counts(summary)
    return summary


def _add_missing_counts(summary: dict[str, Any]) -> None:
    """Add to a summary of format 1 the counts of losses and marks that it lacks: all are 0."""
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
        "Read the result with that version or a newer one, or simulate it again with this version: "
        f"eastwest run {folder / 'scenario.toml'}"
    )


def writer(summary: Mapping[str, Any]) -> str:
    """Return as text the version of Eastwest that wrote a result, and the result's format."""
    return f"Eastwest {summary.get('version', '?')!s:.40}, format {summary.get('format', 1)!s:.20}"


def empty(name: str) -> pl.DataFrame:
    """Return an empty table ``name`` with the columns that this version writes."""
    import polars as pl  # noqa: PLC0415  large: not before the simulation has run

    return pl.DataFrame(schema={column: polars_type(kind) for column, kind in TABLES[name].items()})


def read_table(folder: Path, name: str, written: int) -> pl.DataFrame:
    """Return table ``name`` of a result folder whose format number is ``written``.

    The table has the columns of ``RESULT_FORMAT``; a table that was added after format ``written``
    is empty. Raises ``FileNotFoundError`` where there is no table of this name and ``InputError``
    where the table is damaged.
    """
    import polars as pl  # noqa: PLC0415  large: not before the simulation has run

    if name not in TABLES:
        near = nearest(name, TABLES)
        hint = f"did you mean {near!r}?" if near else f"tables: {', '.join(TABLES)}"
        raise FileNotFoundError(f"{folder} has no table {name!r:.60}; {hint}")
    path = folder / f"{name}.parquet"
    if not path.is_file():
        if SINCE.get(name, 1) > written:
            return empty(name)
        raise FileNotFoundError(f"{folder} has no table {name!r}: {path.name} is missing")
    try:
        rows = int(pl.scan_parquet(path).select(pl.len()).collect().item())
        if rows > _MOST_ROWS:
            raise InputError(f"{path} has {rows:,} rows; at most {_MOST_ROWS:,} are allowed")
        found = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise InputError(f"{path} is damaged: {error}") from None
    return _migrated(found, name, written, path)


def _migrated(found: pl.DataFrame, name: str, written: int, path: Path) -> pl.DataFrame:
    """Return table ``found`` of format ``written`` with the columns of ``RESULT_FORMAT``, in order.

    Raises ``InputError``, with ``path`` in the message, where a column is missing or has a wrong
    type.
    """
    import polars as pl  # noqa: PLC0415

    columns = []
    for column, kind in TABLES[name].items():
        dtype = polars_type(kind)
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
    """Return a polars expression for a column that tables of format ``written`` do not have.

    The value is null, except for counts of drops and marks that are known: 0, or ``drops``.
    """
    import polars as pl  # noqa: PLC0415

    if name == "links" and (written == 1 or column in {"drops_early", "marks"}):
        # Runs in formats without the column dropped packets only at full queues and marked none.
        return pl.col("drops") if column == "drops_queue_full" else pl.lit(0)
    return pl.lit(None)


def polars_type(kind: str) -> type[pl.DataType]:
    """Return the polars type for ``kind``, a type of columns in the core such as ``u32``."""
    import polars as pl  # noqa: PLC0415

    kinds: dict[str, type[pl.DataType]] = {
        "u8": pl.UInt8,
        "u32": pl.UInt32,
        "u64": pl.UInt64,
        "i64": pl.Int64,
        "f64": pl.Float64,
        "str": pl.String,
    }
    return kinds[kind]
