"""Opens a trace: a folder in the normal form, or a recorded file of any known format.

A file is first imported into a temporary folder. A folder can come from an untrusted source:
therefore format version, columns, order of the jobs and references between tables are checked
before the tables are used.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from eastwest.errors import InputError
from eastwest.files import is_folder
from eastwest.traces.form import ABOUT, NEEDED, TABLES, TRACE_FORMAT, schema
from eastwest.traces.opened import Opened, open_imported, read_about, sound
from eastwest.units import clean


@dataclass
class Trace(Opened):
    """Open trace; use ``with`` or ``close``, which remove the folder if it is temporary."""

    #: Names of the tables in the folder of the trace, such as ``jobs``.
    tables: tuple[str, ...]

    @property
    def jobs(self) -> pl.LazyFrame:
        """Table of jobs of the trace."""
        return self.table("jobs")

    def table(self, name: str) -> pl.LazyFrame:
        """Return the table ``name`` of ``form.TABLES``; empty if the trace does not have it."""
        if name in self.tables:
            return pl.scan_parquet(self.path / f"{name}.parquet", glob=False)
        return pl.LazyFrame(schema=schema(name))

    def lacks(self, table: str, column: str = "") -> bool:
        """Whether the source of the trace states nothing for a column of a table.

        If ``column`` is empty, whether the source states nothing for the whole table.
        """
        if table not in self.tables:
            return True
        return bool(column) and f"{table}.{column}" in self.about["lacks"]

    def collect(self, frame: pl.LazyFrame) -> pl.DataFrame:
        """Return the result of ``frame``, a query on the tables of the trace.

        Raises ``InputError`` if a table is damaged.
        """
        with sound(self.name):
            return frame.collect(engine="streaming")


def open_trace(
    path: str | Path,
    *,
    source_format: str = "auto",
    on_bad_row: str = "stop",
    lossy: bool = False,
) -> Trace:
    """Open a folder in the normal form, or import and open a file of a known format.

    For a file, the arguments are those of ``import_trace``. Raises ``InputError`` if the path is
    neither a trace folder nor a known file, if it is damaged, or for the reasons of
    ``import_trace``.
    """
    path = Path(path)
    if is_folder(path):
        return _open_folder(path, str(path))
    from eastwest.traces.take import import_trace  # noqa: PLC0415  every reader: only where needed

    def read(out: Path) -> Trace:
        import_trace(
            [path],
            out,
            source_format=source_format,
            on_bad_row=on_bad_row,
            lossy=lossy,
            lasting=False,
        )
        return _open_folder(out, str(path))

    return open_imported(read)


def _open_folder(path: Path, name: str) -> Trace:
    about = _about(path, name)
    tables = tuple(table for table in TABLES if _there(path, table, name))
    if "jobs" not in tables:
        raise InputError(f"{name} has no table of jobs (jobs.parquet)")
    trace = Trace(path, about, name, tables)
    with sound(name):
        for table in tables:
            _check_columns(path, table, name)
        _check_jobs(trace)
        for table in tables:
            if table not in {"jobs", "hosts"}:
                _check_numbers(trace, table)
    return trace


def _about(path: Path, name: str) -> dict[str, Any]:
    about = read_about(path / ABOUT, name, "a trace", TRACE_FORMAT)
    lacks = about.setdefault("lacks", [])
    if not isinstance(lacks, list) or not all(isinstance(column, str) for column in lacks):
        raise InputError(f"{name}: {ABOUT} is damaged: the value of lacks is not a list of names")
    return about


def _there(path: Path, table: str, name: str) -> bool:
    file = path / f"{table}.parquet"
    if file.is_symlink() or (file.exists() and not file.is_file()):
        raise InputError(f"{name}: {file.name} is not a regular file")
    return file.is_file()


def _check_columns(path: Path, table: str, name: str) -> None:
    found = dict(pl.read_parquet_schema(path / f"{table}.parquet"))
    wanted = schema(table)
    if found != wanted:
        wrong = next((c for c in wanted if found.get(c) != wanted[c]), None) or next(iter(found))
        has = f"is {found[wrong]}" if wrong in found else "is missing"
        raise InputError(
            f"{name}: {table}.parquet: column {clean(wrong, 60)!r} {has}, "
            f"expected {wanted.get(wrong, 'none of that name')}"
        )


def _check_jobs(trace: Trace) -> None:
    """Raise ``InputError`` unless jobs are numbered 0, 1, 2, … in the order of submission.

    Submission times must be finite. The number of jobs is stored in ``trace.about``.
    """
    submit = pl.col("submit_s")
    found = trace.jobs.select(
        pl.len().alias("rows"),
        (pl.col("job").cast(pl.Int64).diff().fill_null(1) == 1).all().alias("counted"),
        (pl.col("job").first() == 0).alias("from_zero"),
        (submit.is_finite().fill_null(False)).all().alias("finite"),
        (submit.diff().fill_null(0.0) >= 0).all().alias("ordered"),
        pl.col("job").null_count().alias("nulls"),
    ).collect(engine="streaming")
    row = found.row(0, named=True)
    if not row["rows"]:
        raise InputError(f"{trace.name}: has no jobs to analyse")
    if not (row["counted"] and row["from_zero"]) or row["nulls"]:
        raise InputError(f"{trace.name}: jobs.parquet: the column job must be 0, 1, 2, …")
    if not (row["finite"] and row["ordered"]):
        raise InputError(
            f"{trace.name}: jobs.parquet: the column submit_s must have finite numbers "
            "in ascending order"
        )
    trace.about["rows"] = {"jobs": row["rows"]}


def _check_numbers(trace: Trace, table: str) -> None:
    """Check a table whose rows belong to jobs; store its number of rows in ``trace.about``.

    Raises ``InputError`` if a row names a job that the trace does not have, or if a row has no
    value in a column of ``NEEDED``.
    """
    needed = [pl.col(name).null_count().alias(f"no_{name}") for name in NEEDED[table]]
    found = trace.table(table).select(pl.len(), pl.col("job").max(), *needed)
    rows, most, *nulls = found.collect(engine="streaming").row(0)
    if most is not None and most >= trace.about["rows"]["jobs"]:
        raise InputError(
            f"{trace.name}: {table}.parquet: has rows of a job that is not in jobs.parquet"
        )
    for name, missing in zip(NEEDED[table], nulls, strict=True):
        if missing:
            raise InputError(f"{trace.name}: {table}.parquet: {name} is missing in {missing} rows")
    trace.about["rows"][table] = rows
