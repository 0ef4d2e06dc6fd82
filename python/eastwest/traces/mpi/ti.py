"""Time-independent traces as others hand them on: archives, folders, lists of files, one file.

Lines are kept as they are; only calls are counted, and ranks put into a file each. What a record
means is checked when a scenario is read, by the simulator itself.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from eastwest.errors import InputError
from eastwest.traces.mpi.ranks import MOST_RANKS, RankFiles
from eastwest.traces.source import Source
from eastwest.units import clean

_LINE = re.compile(rb"\s*\d+\s+[A-Za-z]\w*(\s|$)")
_LONGEST_LINE = 1 << 20
#: Bytes that an archive may unpack to.
_MOST_UNPACKED = 1 << 36


def looks_like(start: bytes) -> bool:
    """Tell whether a file begins with calls of ranks, or names files that do."""
    lines = [line for line in start.splitlines()[:20] if line.strip() and line[:1] != b"#"]
    return bool(lines) and all(_LINE.match(line) for line in lines[:10])


def is_list(path: Path, start: bytes) -> bool:
    """Tell whether a file names trace files, one a line, as SimGrid takes them."""
    lines = [line.strip() for line in start.decode(errors="replace").splitlines() if line.strip()]
    return bool(lines) and all(
        len(line) < 500 and (path.parent / line).is_file() for line in lines[:3]
    )


def read_archive(path: Path, into: RankFiles) -> int:
    """Read the rank files of a tar archive, packed or not."""
    try:
        with tarfile.open(path, "r:*") as archive:
            ranks: dict[int, str] = {}
            total = 0
            for member in archive:
                rank = rank_of(member.name)
                if not member.isfile() or rank is None:
                    continue
                _once(ranks, rank, member.name, str(path))
                total += member.size
                if total > _MOST_UNPACKED:
                    raise InputError(f"{path}: unpacks to more than {_MOST_UNPACKED:,} bytes")
                inside = archive.extractfile(member)
                if inside is not None:
                    _copy(f"{path}:{member.name}", rank, iter(inside), into)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise InputError(f"{path}: cannot be unpacked: {clean(str(error), 100)}") from None
    return _all(ranks, str(path))


def read_files(paths: Iterable[Path], into: RankFiles) -> int:
    """Read a file for each rank."""
    ranks: dict[int, str] = {}
    for path in paths:
        rank = rank_of(path.name)
        if rank is None:
            raise InputError(f"{path}: the name of a rank's file ends with its number")
        _once(ranks, rank, path.name, str(path.parent))
        with Source(path) as source:
            lines = (line + b"\n" for _, line in source.lines(_LONGEST_LINE))
            _copy(source.name, rank, lines, into)
    return _all(ranks, "the trace")


def read_merged(source: Source, into: RankFiles) -> int:
    """Read a file with the lines of all ranks."""
    most = -1
    for number, line in source.lines(_LONGEST_LINE):
        if not line.strip() or line.lstrip().startswith(b"#"):
            continue
        words = _words(source.name, number, line)
        rank = int(words[0])
        if rank >= MOST_RANKS:
            raise InputError(f"{source.name}:{number}: there is a rank {rank}")
        into.add(rank, words)
        most = max(most, rank)
    if most < 0:
        raise InputError(f"{source.name}: has no call")
    return most + 1


def rank_of(name: str) -> int | None:
    """Return the last number of a file's name, its ending left out."""
    base = name.rsplit("/", 1)[-1]
    stem = base.rsplit(".", 1)[0] if "." in base else base
    found = re.findall(r"\d+", stem)
    if not found or base.startswith(".") or len(found[-1]) > 9:
        return None
    return int(found[-1])


def _copy(name: str, rank: int, lines: Iterator[bytes], into: RankFiles) -> None:
    for number, line in enumerate(lines, 1):
        if len(line) > _LONGEST_LINE:
            raise InputError(f"{name}:{number}: a line of more than {_LONGEST_LINE} bytes")
        if not line.strip() or line.lstrip().startswith(b"#"):
            continue
        words = _words(name, number, line)
        if int(words[0]) != rank:
            raise InputError(f"{name}:{number}: found rank {int(words[0])}, expected rank {rank}")
        into.add(rank, words)


def _words(name: str, number: int, line: bytes) -> list[str]:
    if not _LINE.match(line):
        shown = clean(line[:60].decode(errors="replace"), 60)
        raise InputError(f"{name}:{number}: found {shown!r}, expected a rank and a call")
    return line.decode(errors="replace").split()


def _once(ranks: dict[int, str], rank: int, name: str, where: str) -> None:
    if rank in ranks:
        shown = f"{clean(ranks[rank], 60)} and {clean(name, 60)}"
        raise InputError(f"{where}: {shown} are both for rank {rank}")
    ranks[rank] = name


def _all(ranks: dict[int, str], where: str) -> int:
    missing = next((rank for rank in range(len(ranks)) if rank not in ranks), None)
    if not ranks:
        raise InputError(f"{where}: holds no file whose name ends with the number of a rank")
    if missing is not None:
        raise InputError(f"{where}: has no file for rank {missing}, but one for {max(ranks)}")
    return len(ranks)
