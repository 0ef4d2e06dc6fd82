"""CSV and Parquet files whose columns have the names of the table of jobs in the normal form.

Users can convert traces in other formats to this form. A row is a job. The column ``submit_s`` is
required, in seconds from any time zero; all other columns of the table of jobs are optional.
Columns with other names are left out with a note. CSV has a header line, and commas, semicolons or
tabs between values; an empty value is unknown.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from typing import Any

import polars as pl

from eastwest.account import Account
from eastwest.errors import InputError, did_you_mean, nearest
from eastwest.traces.form import MOST_S, OUTCOMES, TABLES
from eastwest.traces.hadoop import Confs, text_of
from eastwest.traces.source import Source
from eastwest.traces.write import Writer
from eastwest.units import clean

#: Maximum length of a line of a CSV file, in bytes.
MOST_LINE_BYTES = 1 << 20
_COLUMNS = {name: kind for name, kind in TABLES["jobs"].items() if name != "job"}
_MOST = {"u32": (1 << 32) - 1, "u64": (1 << 63) - 1}
_BATCH = 1 << 14
#: Number of rows that every Parquet file may have; a larger number of rows must not exceed the
#: number of bytes of the file.
_FREE_ROWS = 1 << 20


def looks_like(start: bytes) -> bool:
    """Whether the first line of a file may be a CSV header with columns of the table of jobs.

    The header must have the column ``submit_s``, or several columns of which at least one is known.
    """
    names = _header(start.partition(b"\n")[0].decode(errors="replace"))[0]
    return "submit_s" in names or (len(names) > 1 and bool(set(names) & set(_COLUMNS)))


def read(source: Source, writer: Writer, account: Account, _: Confs) -> None:
    """Read the jobs of a CSV or Parquet file, and add them to the tables of ``writer``.

    Problems are reported to ``account``.
    """
    parquet = source.peek(4) == b"PAR1"
    rows = _parquet(source) if parquet else _csv(source, account)
    names: list[str] = []
    for number, row in rows:
        if not names:
            names = _names(source.name, list(row), account)
        try:
            found = {name: _value(name, row[name]) for name in names}
            if found["submit_s"] is None:
                raise ValueError("submit_s is missing")
        except ValueError as error:
            reason, text = [*str(error).split("\0"), ""][:2]
            account.bad(source.name, number, reason, text)
            continue
        writer.add("jobs", {**found, "job": writer.next_job()})
    account.end(source.name, 0, source.cut)


def _names(file: str, given: list[str], account: Account) -> list[str]:
    if "submit_s" not in given:
        near = nearest("submit_s", given)
        hint = f"; did you mean {clean(near, 40)!r}?" if near else ""
        raise InputError(f"{file}: has no column submit_s{hint}")
    for name in given:
        if name not in _COLUMNS and name != "job":
            hint = did_you_mean(name, _COLUMNS)
            account.note(file, 1, f"the column {clean(name, 40)!r} is not known: left out{hint}")
        elif name == "job":
            then = "jobs get new numbers in the order of their submission"
            account.note(file, 1, "column 'job'", consequence=then)
    return [name for name in given if name in _COLUMNS]


def _value(name: str, value: Any) -> Any:
    """Return ``value`` converted to the type of the column ``name``; None if it is empty.

    Raises ``ValueError`` for a wrong value; the text of the error has the reason, a NUL, and the
    value.
    """
    kind = _COLUMNS[name]
    if value is None or value == "":
        return None
    if kind == "str":
        text = text_of(str(value))
        if name == "outcome" and text not in OUTCOMES:
            raise ValueError(f"outcome must be one of {', '.join(OUTCOMES)}\0{text}")
        return text
    shown = str(value)[:60]
    try:
        number = float(value) if kind == "f64" or isinstance(value, float) else int(value)
    except (ValueError, TypeError, OverflowError):
        what = "a number" if kind == "f64" else "a whole number"
        raise ValueError(f"{name} must be {what}, without a unit\0{shown}") from None
    if isinstance(number, float) and not math.isfinite(number):
        raise ValueError(f"{name}: is not finite\0{shown}")
    if number < 0 and name not in {"launch_s", "finish_s"}:
        raise ValueError(f"{name}: is negative\0{shown}")
    if kind == "f64":
        if abs(number) > MOST_S:
            hint = "more than a hundred years in seconds: is it in another unit?"
            raise ValueError(f"{name}: is {hint}\0{shown}")
        return float(number)
    if number != int(number) or number > _MOST[kind]:
        raise ValueError(f"{name} must be a whole number up to {_MOST[kind]}\0{shown}")
    return int(number)


def _header(line: str) -> tuple[list[str], str]:
    """Return (names of the columns, separator) from the header line of a CSV file."""
    line = line.removeprefix("\ufeff").strip()
    separator = max(",;\t", key=line.count)
    try:
        names = next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        names = []
    return [name.strip() for name in names], separator


def _csv(source: Source, account: Account) -> Iterator[tuple[int, dict[str, Any]]]:
    lines = _Lines(source, account)
    names, separator = _header(next(lines, ""))
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise InputError(f"{source.name}:1: has the column {clean(double, 40)!r} twice")
    reader = csv.reader(lines, delimiter=separator)
    while True:
        began = lines.number + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            account.bad(source.name, began, "is not a row of CSV", str(error))
            reader = csv.reader(lines, delimiter=separator)
            continue
        if not row:
            account.note(source.name, began, "blank line", consequence="it is left out")
            continue
        if len(row) != len(names):
            reason = f"{len(names)} values are expected"
            account.bad(source.name, began, reason, str(len(row)))
            continue
        yield began, dict(zip(names, (value.strip() for value in row), strict=True))


class _Lines(Iterator[str]):
    """Iterator over the lines of a file as text; ``number`` is the number of the latest line."""

    def __init__(self, source: Source, account: Account) -> None:
        self._lines = source.lines(MOST_LINE_BYTES)
        self._name = source.name
        self._account = account
        self.number = 0

    def __next__(self) -> str:
        self.number, raw = next(self._lines)
        text = raw.decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
        if text.encode() != raw:
            reason = "line that is not text in UTF-8, or has a NUL"
            then = "bytes that are not text are replaced by \N{REPLACEMENT CHARACTER}"
            self._account.note(self._name, self.number, reason, consequence=then)
        return text + "\n"


def _parquet(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    if source.packed:
        raise InputError(
            f"{source.name}: is a compressed Parquet file: decompress it first, because "
            "Parquet has its own compression"
        )
    number = 0
    try:
        scan = pl.scan_parquet(source.path, glob=False)
        rows = scan.select(pl.len()).collect().item()
        if rows > max(_FREE_ROWS, source.bytes):
            raise InputError(
                f"{source.name}: has {rows:,} rows, more than one per byte; at most "
                f"{max(_FREE_ROWS, source.bytes):,} are allowed"
            )
        names = scan.collect_schema().names()
        for batch in scan.collect_batches(chunk_size=_BATCH, maintain_order=True):
            for row in batch.iter_rows():
                number += 1
                yield number, dict(zip(names, row, strict=True))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        said = clean(str(error).partition("\n")[0], 120)
        raise InputError(f"{source.name}: is not a valid Parquet file: {said}") from None
