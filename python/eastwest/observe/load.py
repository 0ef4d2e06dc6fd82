"""Opens spans: a folder in the normal form, or a recorded file of any known format.

A file is imported into a temporary folder first. Folders can come from untrusted people: format
version and columns are checked before the spans are read.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from eastwest.errors import InputError
from eastwest.observe.form import ABOUT, LATER, NEEDED, SPANS_FORMAT, schema
from eastwest.traces.opened import Opened, open_imported, read_about, sound


class Spans(Opened):
    """Open folder of spans; must be closed (``with`` or ``close``), because it may be temporary."""

    def scan(self) -> pl.LazyFrame:
        """Return the lazy table of spans; columns that older versions did not write are null."""
        scan = pl.scan_parquet(self.path / "spans.parquet", glob=False)
        there, kinds = set(scan.collect_schema()), schema("spans")
        missing = [name for name in LATER if name not in there]
        return scan.with_columns(pl.lit(None, kinds[name]).alias(name) for name in missing)

    def resources(self) -> list[str]:
        """Return the sets of attributes that spans share, as JSON texts by number from 0.

        Raises ``InputError`` if the table ``resources.parquet`` is missing or damaged.
        """
        file = self.path / "resources.parquet"
        if file.is_symlink() or not file.is_file():
            raise InputError(f"{self.name} has no table of resources (resources.parquet)")
        with sound(self.name):
            found = pl.read_parquet(file, glob=False).select(*schema("resources"))
        if not found["resource"].equals(pl.arange(found.height, dtype=pl.UInt32, eager=True)):
            raise InputError(
                f"{self.name}: resources.parquet: column resource must number the rows 0, 1, 2, …"
            )
        return list(found["attributes"])

    def frame(self, *columns: str) -> pl.DataFrame:
        """Return the given columns of all spans; raise ``InputError`` if the table is damaged."""
        with sound(self.name):
            return self.scan().select(*columns).collect(engine="streaming")


def open_spans(path: str | Path, *, source_format: str = "auto", lossy: bool = False) -> Spans:
    """Open a folder in the normal form, or a file of spans in a known format.

    A file is imported first. A file whose import would change the meaning of spans is refused
    unless ``lossy``. Raises ``InputError`` if the path is neither a folder of spans nor a known
    file, or is damaged.
    """
    path = Path(path)
    if path.is_dir():
        return _open_folder(path, str(path))
    from eastwest.observe.take import import_spans  # noqa: PLC0415  every reader: where needed

    def read(out: Path) -> Spans:
        import_spans([path], out, source_format=source_format, lasting=False, lossy=lossy)
        return _open_folder(out, str(path))

    return open_imported(read)


def _open_folder(path: Path, name: str) -> Spans:
    about = read_about(path / ABOUT, name, "spans", SPANS_FORMAT)
    file = path / "spans.parquet"
    if file.is_symlink() or not file.is_file():
        raise InputError(f"{name} has no table of spans (spans.parquet)")
    spans = Spans(path, about, name)

    with sound(name):
        _check_columns(file, name)
        nulls = [pl.col(column).null_count().alias(f"no_{column}") for column in NEEDED]
        double = pl.struct("trace_id", "span_id").is_duplicated().any().alias("double")
        found = spans.scan().select(pl.len(), *nulls, double).collect(engine="streaming")
    rows, *missing, twice = found.row(0)
    if not rows:
        raise InputError(f"{name}: has no spans to analyse")
    for column, count in zip(NEEDED, missing, strict=True):
        if count:
            raise InputError(
                f"{name}: spans.parquet: column {column} has no value in {count:,} rows"
            )
    if twice:
        raise InputError(f"{name}: spans.parquet: two spans of a trace have the same span_id")
    about["spans"] = rows
    return spans


def _check_columns(file: Path, name: str) -> None:
    found = dict(pl.read_parquet_schema(file))
    wanted = schema("spans")
    later = {name for name in LATER if name not in found}
    wrong = next((c for c in wanted if c not in later and found.get(c) != wanted[c]), None)
    if wrong is not None:
        has = f"is {found[wrong]}" if wrong in found else "is missing"
        raise InputError(f"{name}: spans.parquet: column {wrong!r} {has}, expected {wanted[wrong]}")
