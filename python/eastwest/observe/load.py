"""Opens spans: a folder in the normal form, or a recorded file of any known format.

A file is imported into a temporary folder first. Folders come from anywhere: format version and
columns are checked before anything is handed out.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import polars as pl

from eastwest.errors import InputError
from eastwest.observe.form import ABOUT, NEEDED, SPANS_FORMAT, schema
from eastwest.units import clean

T = TypeVar("T")

#: Most bytes of ``spans.json``.
_MOST_ABOUT = 4 << 20


@dataclass
class Spans:
    """Open spans; leave them with ``with`` or ``close``, as they may lie in a temporary folder."""

    path: Path
    #: What ``spans.json`` says.
    about: dict[str, Any]
    #: What messages and pages call it: the folder or file that was named.
    name: str
    _closing: Callable[[], None] = field(default=lambda: None, repr=False)

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
        self._closing()

    def scan(self) -> pl.LazyFrame:
        """The table of spans."""
        return pl.scan_parquet(self.path / "spans.parquet", glob=False)

    def frame(self, *columns: str) -> pl.DataFrame:
        """Some columns of all spans; raises ``InputError`` where the table is damaged."""
        return _sound(self.name, lambda: self.scan().select(*columns).collect(engine="streaming"))


def open_spans(path: str | Path, *, source_format: str = "auto") -> Spans:
    """Open a folder in the normal form, or a file of a known format.

    Raises ``InputError`` where it is neither, or damaged.
    """
    path = Path(path)
    if path.is_dir():
        return _open_folder(path, str(path))
    from eastwest.observe.take import import_spans  # noqa: PLC0415  every reader: where needed

    folder = Path(tempfile.mkdtemp(prefix="eastwest-spans-"))
    try:
        out = folder / "spans"
        import_spans([path], out, source_format=source_format, lasting=False)
        spans = _open_folder(out, str(path))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    spans._closing = lambda: shutil.rmtree(folder, ignore_errors=True)
    return spans


def _open_folder(path: Path, name: str) -> Spans:
    about = _about(path, name)
    file = path / "spans.parquet"
    if file.is_symlink() or not file.is_file():
        raise InputError(f"{name} has no table of spans (spans.parquet)")
    spans = Spans(path, about, name)

    def facts() -> tuple[int, ...]:
        found = dict(pl.read_parquet_schema(file))
        wanted = schema("spans")
        wrong = next((c for c in wanted if found.get(c) != wanted[c]), None)
        if wrong is not None:
            has = f"is {found[wrong]}" if wrong in found else "is missing"
            raise InputError(
                f"{name}: spans.parquet: column {wrong!r} {has}, expected {wanted[wrong]}"
            )
        nulls = [pl.col(column).null_count().alias(f"no_{column}") for column in NEEDED]
        double = pl.struct("trace_id", "span_id").is_duplicated().any().alias("double")
        return spans.scan().select(pl.len(), *nulls, double).collect(engine="streaming").row(0)

    rows, *nulls, double = _sound(name, facts)
    if not rows:
        raise InputError(f"{name}: has no span: there is nothing to look at")
    for column, missing in zip(NEEDED, nulls, strict=True):
        if missing:
            raise InputError(f"{name}: spans.parquet: {column} is missing in {missing} rows")
    if double:
        raise InputError(f"{name}: spans.parquet: two spans of a trace have one span_id")
    about["spans"] = rows
    return spans


def _about(path: Path, name: str) -> dict[str, Any]:
    file = path / ABOUT
    if file.is_symlink() or not file.is_file():
        raise InputError(f"{name} holds no spans: it has no {ABOUT}")
    if file.stat().st_size > _MOST_ABOUT:
        raise InputError(f"{name}: {ABOUT} is too large")
    try:
        about = json.loads(file.read_bytes())
        version = about["format"]
    except (ValueError, RecursionError, TypeError, KeyError):
        raise InputError(f"{name}: {ABOUT} is damaged, or not that of spans") from None
    if version != SPANS_FORMAT:
        raise InputError(
            f"{name}: is of format {clean(str(version), 20)}, this version reads {SPANS_FORMAT}"
        )
    return dict(about)


def _sound(name: str, work: Callable[[], T]) -> T:
    """Turn what polars raises on damaged files into ``InputError``."""
    try:
        return work()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        said = clean(str(error).partition("\n")[0], 120)
        raise InputError(f"{name}: a table is damaged: {said}") from None
