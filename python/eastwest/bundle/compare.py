"""Comparison of a repeated run with the run in the bundle: digest, summary and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eastwest import formats
from eastwest.errors import InputError
from eastwest.sweep.metrics import scalars

if TYPE_CHECKING:
    import polars as pl

#: Numbers of a summary that depend on the machine, besides those that sweeps leave out.
_OF_MACHINE = {"sketch_s", "sketch_calls"}


@dataclass(frozen=True)
class Field:
    """A number of a summary that differs: its path, and its values before and now."""

    path: str
    was: float
    now: float

    @property
    def relative(self) -> float | None:
        """Difference relative to the value before; None if that is 0."""
        return None if self.was == 0 else (self.now - self.was) / abs(self.was)


@dataclass(frozen=True)
class Table:
    """A table of a result that differs, and how."""

    name: str
    message: str


def summaries(was: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[list[Field], int]:
    """Return (numbers that differ, number of those that only one summary has).

    The largest relative difference is first. Numbers that depend on the machine, such as times of
    computation, are not compared.
    """
    before, after = (
        {path: value for path, value in scalars(each) if path not in _OF_MACHINE}
        for each in (was, now)
    )
    differing = [
        Field(name, value, after[name])
        for name, value in before.items()
        if after.get(name, value) != value
    ]
    return sorted(differing, key=_weight), len(before.keys() ^ after.keys())


def _weight(field: Field) -> tuple[int, float]:
    """Return the key by which fields are sorted: relative differences first, by their size."""
    if field.relative is None:
        return 1, 0.0
    return 0, -abs(field.relative)


def tables(was: Path, written: int, now: Path) -> list[Table]:
    """Return the tables that differ between two result folders.

    ``written`` is the result format of the first folder. Tables that it lacks are not compared.
    """
    found = []
    for name in formats.TABLES:
        if not (was / f"{name}.parquet").is_file():
            continue
        try:
            first = formats.read_table(was, name, written)
            second = formats.read_table(now, name, formats.RESULT_FORMAT)
        except (InputError, FileNotFoundError) as error:
            found.append(Table(name, str(error)))
            continue
        if message := _table(first, second):
            found.append(Table(name, message))
    return found


def _table(first: pl.DataFrame, second: pl.DataFrame) -> str:
    """Return how a table differs from another; empty if both are equal."""
    if first.height != second.height:
        return f"{first.height:,} rows, now {second.height:,}"
    said = []
    for column in first.columns:
        before, after = first[column], second[column]
        count = int((before.ne_missing(after)).sum())
        if count:
            said.append(f"{column} in {count:,} of {first.height:,} rows")
    return "; ".join(said)
