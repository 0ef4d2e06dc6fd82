"""Time-independent traces from other tools: archives, folders, lists of files, one file.

Each line is read by the reader of the simulator (``core.mpi_record``), so that the import accepts
exactly the lines that a run accepts. The words of a line are written unchanged to the file of the
rank. Groups of ranks, and graphs with dependencies and streams, are checked with the whole trace.
Valid calls that cannot be replayed (communicators without their ranks, calls that the simulator
does not know) are refused, or with ``lossy`` left out.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable
from pathlib import Path

from eastwest import core
from eastwest.account import place
from eastwest.errors import InputError
from eastwest.traces.mpi.ranks import MOST_RANKS, RankFiles
from eastwest.traces.source import Source, most_unpacked, too_large
from eastwest.units import clean, size

_LINE = re.compile(rb"\s*\d+\s+[A-Za-z]\w*(\s|$)")
_RANK = re.compile(rb"\s*(\d{1,9})(?=\s|$)")
_LONGEST_LINE = 1 << 20
#: Calls with a number of operations as an argument. Only this argument may be −1 (not measured).
_REDUCTIONS = frozenset(("reduce", "allreduce", "reducescatter", "scan", "exscan"))
#: Words behind the arguments of a call: its group, dependencies, stream and priority.
_PLACES = frozenset(("in", "after", "on", "priority"))
#: Maximum size of an archive after decompression, in bytes.
_MOST_UNPACKED = 1 << 36
#: Maximum size in bytes of a file that lists the names of rank files.
_MOST_LIST = 16 << 20


def looks_like(start: bytes) -> bool:
    """Whether the first lines of a file are calls of ranks, such as ``0 send 1 7 4096``."""
    lines = [line for line in start.splitlines()[:20] if line.strip() and line[:1] != b"#"]
    return bool(lines) and all(_LINE.match(line) for line in lines[:10])


def is_list(path: Path, start: bytes) -> bool:
    """Whether a file lists names of rank files, one per line, as SimGrid's trace lists do.

    ``start`` are the first bytes of the file; the first three names must exist as files.
    """
    lines = [line.strip() for line in start.decode(errors="replace").splitlines() if line.strip()]
    return bool(lines) and all(_is_there(path.parent, line) for line in lines[:3])


def _is_there(folder: Path, name: str) -> bool:
    try:
        return (folder / name).is_file()
    # the text of the line is not a valid file name, or too long for one
    except (OSError, ValueError):
        return False


def read_archive(path: Path, into: RankFiles) -> int:
    """Copy the rank files of a tar archive to ``into``; return the number of ranks.

    The archive may be compressed. Raises ``InputError`` if it is damaged or too large.
    """
    try:
        with tarfile.open(path, "r:*") as archive:
            members = _members(path, archive, into)
        with tarfile.open(path, "r:*") as archive:
            calls = _Calls(len(members), into)
            for member in archive:
                inside = archive.extractfile(member) if member.name in members else None
                if inside is not None:
                    name = f"{path}:{member.name}"
                    calls.take(name, members[member.name], enumerate(inside, 1))
    except (tarfile.TarError, EOFError, OSError) as error:
        raise InputError(f"{path}: cannot be decompressed: {clean(str(error), 100)}") from None
    return len(members)


def _members(path: Path, archive: tarfile.TarFile, into: RankFiles) -> dict[str, int]:
    """Return the rank of each file in an archive, by the name of the file.

    ``path`` is the archive. Files whose names have no rank are reported to ``into.account``. Raises
    ``InputError`` if two files have one rank, if a rank has no file, or if the files are too large.
    """
    ranks: dict[int, str] = {}
    total = 0
    for member in archive:
        rank = rank_of(member.name)
        if not member.isfile():
            continue
        if rank is None:
            _pass_over(into, str(path), member.name)
            continue
        _once(ranks, rank, member.name, str(path))
        total += member.size
        if total > min(_MOST_UNPACKED, most_unpacked(path.stat().st_size)):
            raise too_large(str(path), path.stat().st_size)
    _all(ranks, str(path))
    return {name: rank for rank, name in ranks.items()}


def read_folder(folder: Path, into: RankFiles) -> int:
    """Copy the files of a folder whose names contain a rank to ``into``; return their number.

    Other files are reported to ``into.account``.
    """
    files = sorted(path for path in folder.iterdir() if path.is_file())
    for path in files:
        if rank_of(path.name) is None:
            _pass_over(into, str(folder), path.name)
    return read_files([path for path in files if rank_of(path.name) is not None], into)


def _pass_over(into: RankFiles, where: str, name: str) -> None:
    reason = "file whose name contains no rank"
    into.account.note(where, 0, reason, name, consequence="it is not read")


def read_list(path: Path, into: RankFiles) -> int:
    """Copy the rank files that the list ``path`` names to ``into``; return the number of ranks."""
    with Source(path) as source:
        lines = source.blocks(_MOST_LIST)
        text = b"".join(lines)
        if len(text) > _MOST_LIST:
            raise InputError(
                f"{path}: is a list of files that is larger than {size(_MOST_LIST)}, the maximum"
            )
    return read_files([path.parent / name for name in text.decode(errors="replace").split()], into)


def read_files(paths: Iterable[Path], into: RankFiles) -> int:
    """Copy one file for each rank to ``into``; return the number of ranks.

    The rank is the last number in the file's name. Raises ``InputError`` if a name has no rank, or
    if the ranks are not 0, 1, 2, ….
    """
    ranks: dict[int, str] = {}
    ordered = list(paths)
    for path in ordered:
        rank = rank_of(path.name)
        if rank is None:
            raise InputError(
                f"{path}: the name of a rank's file must contain the number of the rank"
            )
        _once(ranks, rank, path.name, str(path.parent))
    _all(ranks, "the trace")
    calls = _Calls(len(ranks), into)
    for path in ordered:
        with Source(path) as source:
            calls.take(source.name, rank_of(path.name), source.lines(_LONGEST_LINE))
            _whole(source)
    return len(ranks)


def read_merged(path: Path, into: RankFiles) -> int:
    """Copy one file with the lines of all ranks to the rank files in ``into``.

    The result is the number of ranks, which a first pass over the file finds.
    """
    most = -1
    with Source(path) as source:
        for number, line in source.lines(_LONGEST_LINE):
            rank = _RANK.match(line)
            if rank and int(rank[1]) >= MOST_RANKS:
                raise InputError(
                    f"{source.name}:{number}: the rank is {int(rank[1])}; allowed: 0 "
                    f"to {MOST_RANKS - 1}"
                )
            most = max(most, int(rank[1]) if rank else -1)
        _whole(source)
    if most < 0:
        raise InputError(f"{path}: has no line with a call of a rank")
    with Source(path) as source:
        _Calls(most + 1, into).take(source.name, None, source.lines(_LONGEST_LINE))
    return most + 1


def _whole(source: Source) -> None:
    if source.cut:
        raise InputError(f"{source.name}: is damaged or truncated: {source.cut}")


def rank_of(name: str) -> int | None:
    """Return the rank in the name of a file: the last number before the extension; None if none."""
    base = name.rsplit("/", 1)[-1]
    stem = base.rsplit(".", 1)[0] if "." in base else base
    found = re.findall(r"\d+", stem)
    if not found or base.startswith(".") or len(found[-1]) > 9:
        return None
    return int(found[-1])


class _Calls:
    """Checks each line with the reader of the simulator, and writes it to the file of its rank."""

    def __init__(self, ranks: int, into: RankFiles) -> None:
        self._ranks = ranks
        self._into = into
        #: Bytes per element for calls without a data type, by rank; 1 until the rank's ``init``
        #: sets it.
        self._elements: dict[int, int] = {}

    def take(self, name: str, rank: int | None, lines: Iterable[tuple[int, bytes]]) -> None:
        """Check and write lines of one rank, or of all ranks if ``rank`` is None.

        ``lines`` are (line number, line). ``name`` is the name of the file in messages.
        """
        for number, line in lines:
            if len(line) > _LONGEST_LINE:
                raise InputError(
                    f"{name}:{number}: the line has more than {_LONGEST_LINE:,} bytes, "
                    "which is the maximum"
                )
            self._line(name, number, line, rank)

    def _line(self, name: str, number: int, line: bytes, rank: int | None) -> None:
        begin = _RANK.match(line)
        own = int(begin[1]) if begin else -1
        said, wrong = core.mpi_record(line, self._ranks, self._elements.get(own, 1))
        if said is None and wrong is None:
            if line.strip() and not line.lstrip().startswith(b"#"):
                raise InputError(
                    f"{place(name, number)}: found {clean(line.decode(errors='replace'), 60)!r}, "
                    f"expected a rank from 0 to {self._ranks - 1}"
                )
            return
        if rank is not None and own not in {rank, -1}:
            raise InputError(
                f"{name}:{number}: the line is of rank {own}, but the file belongs to rank {rank}"
            )
        self._into.records += 1
        if said is not None:
            self._elements[said[0]] = said[1]
            words = line.decode(errors="replace").split()
            end = next((at for at, word in enumerate(words) if word in _PLACES), None)
            if words[1].lower() in _REDUCTIONS and any(word[0] == "-" for word in words[2:end]):
                reason = "reduction whose number of operations was not measured (-1)"
                self._into.account.note(
                    name, number, reason, consequence="its operations take no time"
                )
            self._into.add(said[0], words)
        elif wrong is not None:
            found, expected, left_out = wrong
            if left_out is None:
                raise InputError(f"{place(name, number)}: found {found}, expected {expected}")
            reason = f"found {found}, expected {expected}"
            self._into.account.change(name, number, reason, left_out)


def _once(ranks: dict[int, str], rank: int, name: str, where: str) -> None:
    if rank in ranks:
        shown = f"{clean(ranks[rank], 60)} and {clean(name, 60)}"
        raise InputError(f"{where}: {shown} are both for rank {rank}")
    ranks[rank] = name


def _all(ranks: dict[int, str], where: str) -> None:
    missing = next((rank for rank in range(len(ranks)) if rank not in ranks), None)
    if not ranks:
        raise InputError(f"{where}: has no file whose name contains the number of a rank")
    if missing is not None:
        raise InputError(
            f"{where}: has no file for rank {missing}, but a file for rank {max(ranks)}"
        )
    if len(ranks) > MOST_RANKS:
        raise InputError(f"{where}: has {len(ranks)} ranks; allowed: 1 to {MOST_RANKS}")
