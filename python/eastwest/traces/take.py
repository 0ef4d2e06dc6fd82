"""Imports recorded files into the normal form of a trace."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eastwest.errors import InputError
from eastwest.traces import swim
from eastwest.traces.form import SOURCES
from eastwest.traces.problems import Problems
from eastwest.traces.sniff import sniff
from eastwest.traces.source import Source, Told
from eastwest.traces.write import FLUSH_ROWS, Writer

Reader = Callable[[Source, Writer, Problems], None]
_READERS: dict[str, Reader] = {"swim": swim.read}


@dataclass
class Imported:
    """An import that has ended: where the trace lies, and what is said of it."""

    path: Path
    source_format: str
    writer: Writer
    problems: Problems


def import_trace(
    files: Sequence[str | Path],
    out: str | Path,
    *,
    source_format: str = "auto",
    on_bad_row: str = "stop",
    force: bool = False,
    told: Told | None = None,
    flush_rows: int = FLUSH_ROWS,
) -> Imported:
    """Read ``files``, all of one format, and write the folder ``out``.

    Raises ``InputError`` where a file cannot be used, and, unless ``on_bad_row`` is ``skip``, where
    a row of it cannot.
    """
    if not files:
        raise InputError("no file was given")
    _known(source_format)
    problems = Problems(stop=on_bad_row == "stop")
    found = "" if source_format == "auto" else source_format
    read: list[dict[str, Any]] = []
    with Writer(Path(out), force, flush_rows) as writer:
        for path in files:
            with Source(path, told) as source:
                one = source_format if source_format != "auto" else sniff(source)
                if found and one != found:
                    raise InputError(
                        f"{path} is of format {one}, the files before it of {found}: "
                        "import them one format at a time"
                    )
                found = one
                _READERS[one](source, writer, problems)
                digest = source.drain()
                read.append({"name": source.path.name, "bytes": source.bytes, "sha256": digest})
        said = {"source": found, "files": read, **problems.as_json()}
        return Imported(writer.finish(said), found, writer, problems)


def _known(source_format: str) -> None:
    if source_format != "auto" and source_format not in _READERS:
        near = difflib.get_close_matches(source_format, SOURCES, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        allowed = ", ".join(["auto", *SOURCES])
        raise InputError(f"format {source_format!r:.60}: expected one of {allowed}{hint}")
