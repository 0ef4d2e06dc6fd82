"""Import of traces of MPI programs: recognises the format and writes a folder of rank files."""

from __future__ import annotations

import tarfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from eastwest.errors import InputError
from eastwest.files import is_folder
from eastwest.traces.made import START, Imported
from eastwest.traces.mpi import chakra, dimemas, goal, otf2, ti
from eastwest.traces.mpi.form import FORMATS
from eastwest.traces.mpi.ranks import RankFiles
from eastwest.traces.source import Source


def find(files: Sequence[Path]) -> str | None:
    """Return the format of traces of MPI programs, from the first of ``files``; else None."""
    first = files[0]
    if is_folder(first):
        inside = [path for path in first.iterdir() if ti.rank_of(path.name) is not None]
        return "ti" if inside and ti.looks_like(_start(sorted(inside)[0])) else None
    if not first.is_file():
        return None
    if otf2.looks_like(first):
        return "otf2"
    start = _start(first)
    looks = {
        "ti": tarfile.is_tarfile(first) or ti.looks_like(start) or ti.is_list(first, start),
        "dimemas": dimemas.looks_like(start),
        "goal": goal.looks_like(start),
        "chakra": chakra.looks_like(start, first.name),
    }
    return next((name for name, like in looks.items() if like), None)


def import_mpi(
    files: Sequence[str | Path],
    out: str | Path,
    *,
    source_format: str = "auto",
    ranks: int | None = None,
    force: bool = False,
    lossy: bool = False,
) -> Imported:
    """Read traces of one format, and write the folder ``out`` with a file for each rank.

    ``ranks``, only for Chakra, is the number of ranks that all execute the trace of one file; None
    means that each file is one rank. Raises ``InputError`` if a file is not usable, if a run would
    refuse the result, or, unless ``lossy``, if a replay cannot express a record.
    """
    paths = [Path(file) for file in files]
    found = find(paths) if source_format == "auto" else source_format
    if found not in FORMATS:
        raise InputError(f"{paths[0]}: has no known format of traces of MPI programs")
    if ranks is not None and found != "chakra":
        raise InputError(
            "--ranks can be used only with Chakra traces: other formats state the number of ranks"
        )
    with RankFiles(Path(out), force, lossy) as into:
        count = _read(found, paths, ranks, into)
        into.check(count)
        names = [path.name for path in paths]
        about = into.finish(count, {"source": found, "files": names})
        return Imported(Path(out), found, about, into.account)


def _read(found: str, paths: list[Path], ranks: int | None, into: RankFiles) -> int:
    if found == "ti":
        return _read_ti(paths, into)
    if found == "chakra":
        with ExitStack() as stack:
            ordered = sorted(paths, key=lambda path: (ti.rank_of(path.name) or 0, path.name))
            sources = [stack.enter_context(Source(path)) for path in ordered]
            return chakra.read(sources, ranks, into)
    if len(paths) > 1:
        raise InputError(
            f"{paths[1]}: a trace in the format {found} is a single file, but "
            f"{len(paths)} files are given"
        )
    if found == "otf2":
        return otf2.read(paths[0], into)
    with Source(paths[0]) as source:
        return goal.read(source, into) if found == "goal" else dimemas.read(source, into)


def _read_ti(paths: list[Path], into: RankFiles) -> int:
    first = paths[0]
    if len(paths) == 1 and is_folder(first):
        return ti.read_folder(first, into)
    if len(paths) == 1 and first.is_file():
        if tarfile.is_tarfile(first):
            return ti.read_archive(first, into)
        start = _start(first)
        if not ti.looks_like(start) and ti.is_list(first, start):
            return ti.read_list(first, into)
        return ti.read_merged(first, into)
    return ti.read_files(paths, into)


def _start(path: Path) -> bytes:
    with Source(path) as source:
        return source.peek(START)
