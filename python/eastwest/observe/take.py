"""Imports recorded spans into their normal form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from eastwest.account import Account
from eastwest.errors import InputError
from eastwest.observe import csv_spans, jaeger, otlp_json, otlp_proto, zipkin
from eastwest.observe.form import SOURCES
from eastwest.observe.gather import Gathering
from eastwest.observe.write import MEND_ROWS, SpanWriter
from eastwest.traces.made import Imported, check_format, entry, start_of, unknown, unusable
from eastwest.traces.source import Source, Told

Reader = Callable[[Source, Gathering, Account], None]
#: Functions that read a file of spans, by the name of the file's format.
READERS: dict[str, Reader] = {
    "otlp-json": otlp_json.read,
    "otlp-proto": otlp_proto.read,
    "jaeger": jaeger.read,
    "zipkin": zipkin.read,
    "csv": csv_spans.read,
}


def import_spans(
    files: Sequence[str | Path],
    out: str | Path,
    *,
    source_format: str = "auto",
    on_bad_row: str = "stop",
    force: bool = False,
    told: Told | None = None,
    lasting: bool = True,
    mend_rows: int = MEND_ROWS,
    dask: str | None = None,
    lossy: bool = False,
) -> Imported:
    """Read ``files`` of spans, of any known formats, and write the folder ``out``.

    ``dask`` is the address of a scheduler, whose workers then read the files under the same paths.
    ``mend_rows`` is the approximate number of spans that are repaired at once. Without ``lasting``,
    the folder is not synchronised to disk. ``told`` is called with a text and the share read.

    Raises ``InputError`` if a file is not usable; if a span is not usable, unless ``on_bad_row`` is
    ``skip``; and if the meaning of a span would change, unless ``lossy``.
    """
    if not files:
        raise InputError("no file was given: give at least one file of spans")
    check_format(source_format, SOURCES)
    problems = Account(stop=on_bad_row == "stop", lossy=lossy)
    with SpanWriter(Path(out), force, lasting, mend_rows) as writer:
        if dask is None:
            read = [read_file(path, source_format, writer, problems, told) for path in files]
        else:
            from eastwest.observe.take_cluster import read_files  # noqa: PLC0415  an extra

            read = read_files(files, source_format, writer, problems, dask, told)
        if not writer.spans:
            raise unusable(files[0], "span", problems)
        kinds = list(dict.fromkeys(each["kind"] for each in read))
        name = str(files[0]) if len(files) == 1 else f"{len(files):,} files"
        about = writer.finish({"sources": kinds, "files": read}, problems, name)
        return Imported(writer.out, " and ".join(kinds), about, problems)


def read_file(
    path: str | Path,
    source_format: str,
    into: Gathering,
    problems: Account,
    told: Told | None = None,
    name: str | None = None,
) -> dict[str, Any]:
    """Add the spans of a file to ``into``; return the file's entry for ``spans.json``.

    ``name`` is the name of the file in messages (None: its path). Raises ``InputError`` in the
    cases in which ``import_spans`` raises it.
    """
    before = into.spans
    with Source(path, told, name) as source:
        kind = sniff(source) if source_format == "auto" else source_format
        READERS[kind](source, into, problems)
        return entry(source, kind, spans=into.spans - before)


def sniff(source: Source) -> str:
    """Return the name of the format of ``source``, a key of ``form.SOURCES``.

    No bytes are consumed. Raises ``InputError`` if the file is empty or has no known format.
    """
    start = start_of(source)
    if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        if otlp_json.looks_like(start):
            return "otlp-json"
        if zipkin.looks_like(start):
            return "zipkin"
        if jaeger.looks_like(start):
            return "jaeger"
    elif otlp_proto.looks_like(start):
        return "otlp-proto"
    elif csv_spans.looks_like(start):
        return "csv"
    raise unknown(source, "holds spans of no known format")
