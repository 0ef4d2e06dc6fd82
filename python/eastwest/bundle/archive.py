"""The archive of a bundle: a ZIP file with one folder, whose bytes depend on its content alone.

Writing: entries are sorted by name, and have one time (1 January 1980) and one mode, so that equal
files make equal archives (with one version of zlib). Reading: an archive, or the folder into which
it was unpacked, may come from anyone. Names that lead out of the folder, links, devices, names that
clash, encrypted entries, and archives that expand too much are refused before anything is read;
nothing is written outside a folder that the caller names.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from eastwest.bundle.form import (
    LARGEST_MANIFEST,
    MANIFEST,
    MOST_FILES,
    Manifest,
    clash,
    name_problem,
    read,
)
from eastwest.errors import InputError
from eastwest.files import sync_file
from eastwest.partial import Partial
from eastwest.units import clean, size

#: Content of a file: its bytes, or the path of a file with this content.
Content = bytes | Path

_TIME = (1980, 1, 1, 0, 0, 0)
_MODE = stat.S_IFREG | 0o644
_UNIX = 3
#: Endings of files that are compressed already, which are stored as they are.
_COMPRESSED = {".bz2", ".gz", ".parquet", ".png", ".whl", ".xz", ".zip", ".zst"}
_CHUNK = 1 << 20
#: Maximum number of bytes of all files of an archive of up to 10 MB; a larger archive may expand
#: to 100 times its size.
_ALWAYS_BYTES = 1 << 30
_MOST_RATIO = 100
#: Maximum number of bytes of the list of entries of an archive.
_LARGEST_LIST = 100 * 1024 * 1024
#: The end of an archive without a comment: signature, and offset and size of fields (APPNOTE.TXT of
#: PKWARE, sections 4.3.14 to 4.3.16).
_END, _END_BYTES = b"PK\x05\x06", 22
_LOCATOR, _LOCATOR_BYTES = b"PK\x06\x07", 20
_END64, _END64_BYTES = b"PK\x06\x06", 56
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_ENCRYPTED = 1
#: Exceptions of reading a damaged archive.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)


def hashed(content: Content) -> tuple[int, str]:
    """Return (size in bytes, SHA-256) of the content of a file."""
    if isinstance(content, bytes):
        return len(content), hashlib.sha256(content).hexdigest()
    with content.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), digest


def write(out: Path, top: str, files: Mapping[str, Content], known: Mapping[str, str]) -> None:
    """Write an archive at once: under a temporary name, forced to disk, and then renamed.

    ``top`` is the name of the folder in the archive, ``files`` the content of each file by its
    path in this folder, and ``known`` the SHA-256 of files whose content must not have changed.
    """
    try:
        with Partial.file(out.absolute().parent) as partial:
            with zipfile.ZipFile(partial.path, "w", compresslevel=9) as archive:
                for name in sorted(files):
                    _add(archive, f"{top}/{name}", files[name], known.get(name))
            sync_file(partial.path)
            partial.path.replace(out)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(out)) from error


def _add(archive: zipfile.ZipFile, name: str, content: Content, known: str | None) -> None:
    entry = zipfile.ZipInfo(name, _TIME)
    stored = PurePosixPath(name).suffix in _COMPRESSED
    entry.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
    entry.create_system = _UNIX
    entry.external_attr = _MODE << 16
    digest = hashlib.sha256()
    if isinstance(content, bytes):
        archive.writestr(entry, content, compresslevel=None if stored else 9)
        digest.update(content)
    else:
        entry.file_size = content.stat().st_size
        with content.open("rb") as source, archive.open(entry, "w") as target:
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
                target.write(chunk)
    if known is not None and digest.hexdigest() != known:
        raise InputError(
            f"{content!s:.200} was changed while the bundle was written: repeat the command"
        )


@dataclass(frozen=True)
class Opened:
    """An open bundle: its label in messages, and the sizes of its files by path.

    ``stream`` opens a file for reading.
    """

    label: str
    sizes: Mapping[str, int]
    stream: Callable[[str], BinaryIO]

    def chunks(self, path: str) -> Iterator[bytes]:
        """Yield the content of a file, up to the size that the archive states for it."""
        left = self.sizes[path]
        try:
            with self.stream(path) as file:
                while left > 0 and (chunk := file.read(min(_CHUNK, left))):
                    left -= len(chunk)
                    yield chunk
        except _DAMAGE as error:
            raise InputError(f"{self.label}: {clean(path, 200)} is damaged: {error}") from None

    def read(self, path: str, most: int) -> bytes:
        """Return the content of a file; raise ``InputError`` if it has more than ``most`` bytes."""
        if self.sizes[path] > most:
            raise InputError(
                f"{self.label}: {clean(path, 200)} has {size(self.sizes[path])}, above the maximum "
                f"of {size(most)}"
            )
        return b"".join(self.chunks(path))

    def sha256(self, path: str) -> str:
        """Return the SHA-256 of a file."""
        digest = hashlib.sha256()
        for chunk in self.chunks(path):
            digest.update(chunk)
        return digest.hexdigest()

    def manifest(self) -> Manifest:
        """Return the checked content of ``bundle.json``."""
        return read(self.read(MANIFEST, LARGEST_MANIFEST), self.label)

    def extract(self, path: str, folder: Path, known: str) -> None:
        """Write a file below ``folder``; raise ``InputError`` if its SHA-256 is not ``known``."""
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        with target.open("xb") as file:
            for chunk in self.chunks(path):
                digest.update(chunk)
                file.write(chunk)
        if digest.hexdigest() != known:
            raise InputError(
                f"{self.label}: {clean(path, 200)} is not the file that {MANIFEST} describes: its "
                f"SHA-256 is {digest.hexdigest()}, not {known}"
            )


@contextmanager
def opened(path: Path) -> Iterator[Opened]:
    """Open a bundle for reading: an archive, or the folder into which it was unpacked.

    Raises ``InputError`` for anything else, and for an archive that is not safe to read.
    """
    label = clean(str(path), 400)
    if path.is_dir():
        yield _folder(path, label)
        return
    if not path.is_file():
        raise InputError(f"{label}: there is no such file or folder")
    with path.open("rb") as file:
        _check_end(file, label)
        try:
            archive = zipfile.ZipFile(file)
        except _DAMAGE as error:
            raise InputError(f"{label} is not a bundle: {error}") from None
        with archive:
            yield _archive(archive, label, path.stat().st_size)


def _check_end(file: BinaryIO, label: str) -> None:
    """Raise ``InputError`` unless a file ends as an archive with a list of entries of usual size.

    The list is read into memory as a whole, so its size is checked first.
    """
    length = file.seek(0, os.SEEK_END)
    file.seek(max(0, length - _END_BYTES - _LOCATOR_BYTES))
    tail = file.read()
    end = tail[-_END_BYTES:]
    if len(end) < _END_BYTES or end[:4] != _END:
        raise InputError(f"{label} is not a bundle: it is no ZIP file, or it is incomplete")
    (listed,) = struct.unpack_from("<L", end, 12)
    locator = tail[:-_END_BYTES]
    if locator[:4] == _LOCATOR:
        (place,) = struct.unpack_from("<Q", locator, 8)
        # zipfile does not read this place, but the bytes before the locator.
        before = length - _END_BYTES - _LOCATOR_BYTES - _END64_BYTES
        file.seek(max(0, before))
        end64 = file.read(_END64_BYTES)
        if place != before or end64[:4] != _END64:
            raise InputError(f"{label} is not a bundle: its end is damaged")
        (listed,) = struct.unpack_from("<Q", end64, 40)
    if listed > _LARGEST_LIST:
        raise InputError(
            f"{label} is not a bundle: its list of files has {size(listed)}, above the maximum of "
            f"{size(_LARGEST_LIST)}"
        )
    file.seek(0)


def _archive(archive: zipfile.ZipFile, label: str, packed: int) -> Opened:
    """Return an archive as an open bundle; raise ``InputError`` where it is not safe to read."""
    entries: dict[str, zipfile.ZipInfo] = {}
    for entry in archive.infolist():
        if entry.orig_filename != entry.filename:
            raise InputError(f"{label}: a name of a file has control characters")
        if entry.is_dir() and entry.file_size == 0:
            continue
        if entry.filename in entries:
            raise InputError(f"{label}: two files have the name {clean(entry.filename)!r}")
        _check_entry(entry, label)
        entries[entry.filename] = entry
    _check_sizes(sum(entry.file_size for entry in entries.values()), len(entries), packed, label)
    tops = {name.partition("/")[0] for name in entries}
    if len(tops) != 1 or f"{(top := tops.pop())}/{MANIFEST}" not in entries:
        raise InputError(f"{label} is not a bundle: it is not one folder with a {MANIFEST}")
    _check_clash(entries, label)
    skipped = len(top) + 1

    def stream(path: str) -> BinaryIO:
        return archive.open(entries[f"{top}/{path}"])  # type: ignore[return-value]

    return Opened(label, {name[skipped:]: e.file_size for name, e in entries.items()}, stream)


def _check_entry(entry: zipfile.ZipInfo, label: str) -> None:
    """Raise ``InputError`` for an entry that is not a regular file with a safe name."""
    shown = clean(entry.filename)
    if problem := name_problem(entry.filename):
        raise InputError(f"{label}: the name of a file, {shown!r}, {problem}")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in {0, stat.S_IFREG}:
        raise InputError(f"{label}: {shown} is a link or a device, not a file")
    if entry.flag_bits & _ENCRYPTED:
        raise InputError(f"{label}: {shown} is encrypted")
    if entry.compress_type not in _METHODS:
        raise InputError(f"{label}: {shown} is compressed by another method than deflate")


def _check_sizes(whole: int, count: int, packed: int, label: str) -> None:
    """Raise ``InputError`` for a bundle with too many files, or one that expands too much."""
    if count > MOST_FILES:
        raise InputError(f"{label} has {count:,} files; at most {MOST_FILES:,} are allowed")
    if whole > max(_ALWAYS_BYTES, _MOST_RATIO * packed):
        raise InputError(
            f"{label} has {size(packed)} and would expand to {size(whole)}; a bundle expands to at "
            f"most {_MOST_RATIO} times its size"
        )


def _check_clash(names: Mapping[str, object], label: str) -> None:
    if found := clash(names):
        first, second = (clean(name, 100) for name in found)
        raise InputError(f"{label}: {first!r} and {second!r} are one name in some file systems")


def _folder(path: Path, label: str) -> Opened:
    """Return an unpacked bundle; raise ``InputError`` if it has links, devices or unsafe names."""
    if not (path / MANIFEST).is_file():
        raise InputError(f"{label} is not an unpacked bundle: it has no {MANIFEST}")
    sizes: dict[str, int] = {}
    for above, folders, names in os.walk(path):
        for name in (*folders, *names):
            whole = Path(above, name)
            mode = whole.lstat().st_mode
            below = whole.relative_to(path).as_posix()
            if stat.S_ISREG(mode):
                if problem := name_problem(below):
                    raise InputError(f"{label}: the name of a file, {clean(below)!r}, {problem}")
                sizes[below] = whole.lstat().st_size
            elif not stat.S_ISDIR(mode):
                raise InputError(f"{label}: {clean(below)} is a link or a device, not a file")
        if len(sizes) > MOST_FILES:
            raise InputError(f"{label} has more than {MOST_FILES:,} files")
    _check_clash(sizes, label)
    return Opened(label, sizes, lambda name: (path / name).open("rb"))
