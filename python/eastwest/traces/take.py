"""Import of recorded files into the normal form of a trace (``import_trace``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from eastwest.account import Account
from eastwest.errors import InputError
from eastwest.traces import companions, jhist, mrv1, rumen, spark, swim, table
from eastwest.traces.form import SOURCES
from eastwest.traces.hadoop import Confs
from eastwest.traces.made import START, Imported, check_format, entry, unusable
from eastwest.traces.sniff import COMPANIONS, sniff
from eastwest.traces.source import Source, Told
from eastwest.traces.write import FLUSH_ROWS, Writer

Reader = Callable[[Source, Writer, Account, Confs], None]
#: Function that reads files of each format, by the name of the format.
READERS: dict[str, Reader] = {
    "swim": swim.read,
    "rumen": rumen.read,
    "mrv1": mrv1.read,
    "jhist": jhist.read,
    "spark": spark.read,
    "table": table.read,
}
_TOLD_AS = {"topology": "a topology of racks and hosts", "conf": "a job's configuration"}


def import_trace(
    files: Sequence[str | Path],
    out: str | Path,
    *,
    source_format: str = "auto",
    on_bad_row: str = "stop",
    lossy: bool = False,
    force: bool = False,
    told: Told | None = None,
    flush_rows: int = FLUSH_ROWS,
    lasting: bool = True,
) -> Imported:
    """Import recorded files of one format into the folder ``out``, in the normal form.

    Topologies and configurations of jobs may be among ``files``. ``told``, for progress, is called
    with a file's name and the share that was read, 0 to 1. ``flush_rows`` is the number of rows per
    table in memory. Without ``lasting``, the folder is not synchronised to disk and has no file for
    the simulator (``jobs.tsv``).

    Raises ``InputError`` if a file is not usable; if a row is not usable, unless ``on_bad_row`` is
    ``skip``; and if the meaning of a row would change, unless ``lossy``.
    """
    with Writer(Path(out), force, flush_rows, lasting) as writer:
        beside, traces, found = _sorted(files, source_format)
        account = Account(stop=on_bad_row == "stop", lossy=lossy)
        confs = Confs()
        read: list[dict[str, Any]] = []
        for path, kind in beside:
            with Source(path) as source:
                if kind == "topology":
                    companions.read_topology(source, writer)
                else:
                    companions.read_conf(source, confs)
                read.append(entry(source, kind))
        for path in traces:
            with Source(path, told) as source:
                READERS[found](source, writer, account, confs)
                read.append(entry(source, found))
        if not writer.jobs and found != "spark":
            raise unusable(traces[0], "job", account)
        for file in confs.left():
            account.note(file, 0, "configuration of a job that is not in the trace")
        about = writer.finish({"source": found, "files": read}, account)
        return Imported(writer.out, found, about, account)


def _sorted(
    files: Sequence[str | Path], source_format: str
) -> tuple[list[tuple[Path, str]], list[Path], str]:
    """Return ((path, kind) of each companion file, paths of the traces, format of the traces).

    Raises ``InputError`` if the traces have different formats, or if there is no trace.
    """
    check_format(source_format, SOURCES)
    beside: list[tuple[Path, str]] = []
    traces: list[Path] = []
    formats: dict[str, Path] = {}
    for path in map(Path, files):
        with Source(path) as source:
            kind = _kind(source, source_format)
        if kind in COMPANIONS:
            beside.append((path, kind))
        else:
            traces.append(path)
            formats.setdefault(kind, path)
    if len(formats) > 1:
        shown = ", ".join(f"{path} of {kind}" for kind, path in formats.items())
        raise InputError(f"the files are of different formats ({shown}): import them separately")
    if not traces:
        what = f"{beside[0][0]} is {_TOLD_AS[beside[0][1]]}" if beside else "no file was given"
        raise InputError(f"{what}: name a trace" + (" beside it" if beside else ""))
    return beside, traces, next(iter(formats))


def _kind(source: Source, source_format: str) -> str:
    if source_format == "auto":
        return sniff(source)
    if not source.peek(1):
        raise InputError(f"{source.name}: is empty")
    kind, _ = companions.kind_of(source.peek(START))
    return kind or source_format
