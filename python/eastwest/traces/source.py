"""A recorded file as readers see it: decompressed, limited in size, with a checksum.

Files compressed with gzip or bzip2 (and zstd, with Python 3.14 or later) are decompressed while
they are read; a whole file is never in memory. A file that decompresses to more than ``MOST_RATIO``
times its size, and to more than ``FREE_BYTES``, is refused: histories compress to a tenth or a
fiftieth of their size, a decompression bomb to a thousandth. As soon as more than ``WEIGH_BYTES``
have been read, the whole file is decompressed once only to measure its size: this takes far less
time than reading the records. Lines and records have separate limits.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import importlib
import io
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Self

from eastwest.errors import InputError
from eastwest.files import is_folder
from eastwest.units import clean, size

#: Maximum ratio of decompressed to compressed bytes, for files that decompress to more than
#: ``FREE_BYTES``.
MOST_RATIO = 200
#: Number of bytes to which every compressed file may decompress, however small the file is.
FREE_BYTES = 64 << 20
#: Number of decompressed bytes after which the decompressed size of the whole file is measured.
WEIGH_BYTES = 1 << 20
#: Maximum length of a line of a recorded file, in bytes; a reader may allow less.
MOST_LINE_BYTES = 16 << 20
_BLOCK = 1 << 20

#: Name of each compression, by the first bytes of a compressed file.
_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd"}

#: Function that is called with a file's name and the share of the file that was read, 0 to 1.
Told = Callable[[str, float], None]


class Source:
    """Recorded file that is decompressed while it is read; a context manager."""

    def __init__(self, path: str | Path, told: Told | None = None, name: str | None = None) -> None:
        self.path = Path(path)
        #: Name of the file for messages.
        self.name = str(path) if name is None else name
        #: Reason why the data ends early, as in a truncated file; empty if the data is complete.
        self.cut = ""
        #: Number of decompressed bytes read so far.
        self.unpacked = 0
        self.sha256 = hashlib.sha256()
        self._told = told
        self._kept = b""
        self._weighed = False
        if is_folder(self.path):
            raise InputError(
                f"{self.name} is a folder, but a file is expected: give the files in it"
            )
        if not self.path.is_file():
            what = "is not a file" if self.path.exists() else "the file does not exist"
            raise InputError(f"{self.name}: {what}")
        self._raw = self.path.open("rb")
        try:
            self._counted = _Counted(self._raw, self.sha256)
            self.bytes = self.path.stat().st_size
            self.packed = _packed(self._raw)
            self._stream = _unpacker(self.packed, self._counted, self.name)
            # The file is decompressed step by step: where a compressed file is truncated, a read
            # over many steps would lose the data of the earlier steps.
            self._step: Callable[[int], bytes] = getattr(self._stream, "read1", self._stream.read)
        except BaseException:
            self._raw.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.close()
        self._raw.close()

    def peek(self, length: int) -> bytes:
        """Return the next ``length`` bytes without consuming them; fewer at the end of the file."""
        while len(self._kept) < length:
            block = self._fetch(length - len(self._kept))
            if not block:
                break
            self._kept += block
        return self._kept[:length]

    def read(self, length: int = _BLOCK) -> bytes:
        """Return and consume the next bytes, 1 to ``length``; empty only at the end of the file."""
        if self._kept:
            block, self._kept = self._kept[:length], self._kept[length:]
            return block
        return self._fetch(length)

    def blocks(self, most_line: int = MOST_LINE_BYTES, block: int = _BLOCK) -> Iterator[bytes]:
        """Yield the rest of the file as blocks of whole lines; the last line may lack its line end.

        ``block`` is the number of bytes that are read at a time. Raises ``InputError`` if a line is
        longer than about ``most_line`` bytes.
        """
        rest: list[bytes] = []
        held = 0
        while True:
            piece = self._gathered(block)
            if not piece:
                break
            cut = piece.rfind(b"\n") + 1
            if cut:
                yield b"".join([*rest, piece[:cut]])
                rest, held = [], 0
            if cut < len(piece):
                rest.append(piece[cut:])
                held += len(piece) - cut
            if held > most_line:
                raise InputError(
                    f"{self.name}: has a line of more than {size(most_line)}, the maximum"
                )
        if rest:
            yield b"".join(rest)

    def _gathered(self, length: int) -> bytes:
        """Return and consume the next ``length`` bytes; fewer only at the end of the file."""
        pieces: list[bytes] = []
        while length > 0 and (piece := self.read(length)):
            pieces.append(piece)
            length -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def lines(self, most_line: int = MOST_LINE_BYTES) -> Iterator[tuple[int, bytes]]:
        """Yield (number, line) of each line: numbers from 1, lines as bytes without the line end.

        Raises ``InputError`` if a line is longer than about ``most_line`` bytes.
        """
        number = 0
        for block in self.blocks(most_line):
            lines = block.split(b"\n")
            if not lines[-1]:
                lines.pop()
            for line in lines:
                number += 1
                yield number, line.removesuffix(b"\r")

    def drain(self) -> str:
        """Read the rest of the file; return the SHA-256 of the file on disk (compressed bytes)."""
        while self._raw.closed is False and self._counted.read(_BLOCK):
            pass
        return self.sha256.hexdigest()

    def _fetch(self, length: int) -> bytes:
        if self.cut:
            return b""
        try:
            block = self._step(min(length, _BLOCK))
        except (EOFError, zlib.error, gzip.BadGzipFile, OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            self.cut = clean(str(error), 80)
            return b""
        self.unpacked += len(block)
        self._bounded()
        if self._told is not None:
            self._told(self.name, self._counted.seen / max(1, self.bytes))
        return block

    def _bounded(self) -> None:
        if self.packed and not self._weighed and self.unpacked > WEIGH_BYTES:
            self._weighed = True
            self._weigh()

    def _weigh(self) -> None:
        """Raise ``InputError`` if the decompressed file is too large; decompress it to find out."""
        most = most_unpacked(self.bytes)
        with self.path.open("rb") as raw:
            stream = _unpacker(self.packed, raw, self.name)
            found = 0
            # A truncated file is no error here: the reader reports it when it comes to that place.
            with contextlib.suppress(EOFError, zlib.error, OSError, ValueError):
                while found <= most and (block := stream.read(_BLOCK)):
                    found += len(block)
        if found > most:
            raise too_large(self.name, self.bytes)


def most_unpacked(packed: int) -> int:
    """Return the number of bytes to which a compressed file of ``packed`` bytes may decompress."""
    return max(FREE_BYTES, MOST_RATIO * packed)


def too_large(name: str, packed: int) -> InputError:
    """Return the error for a file that decompresses to more than is allowed; the caller raises it.

    ``name`` is the file's name in the message, ``packed`` the size of the file on disk in bytes.
    """
    return InputError(
        f"{name}: has {size(packed)}, but decompresses to more than "
        f"{size(most_unpacked(packed))}, the limit for a file of this size; if it is valid, "
        "decompress it first, and give the decompressed file"
    )


class _Counted(io.RawIOBase):
    """Raw stream that counts the bytes read from the file on disk, and computes the checksum."""

    def __init__(self, raw: IO[bytes], sha256: Any) -> None:
        self._raw = raw
        self._sha256 = sha256
        self.seen = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        block = self._raw.read(size)
        self.seen += len(block)
        self._sha256.update(block)
        return block

    def readinto(self, buffer: Any, /) -> int:
        block = self.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)


def _packed(raw: IO[bytes]) -> str:
    start = raw.read(4)
    raw.seek(0)
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), "")


def _unpacker(packed: str, counted: Any, name: str) -> Any:
    if packed == "gzip":
        return gzip.GzipFile(fileobj=counted, mode="rb")
    if packed == "bzip2":
        return bz2.BZ2File(counted, "rb")
    if packed == "zstd":
        try:
            zstd = importlib.import_module("compression.zstd")
        except ImportError:
            raise InputError(
                f"{name}: is compressed with zstd, which needs Python 3.14; decompress it first"
            ) from None
        return zstd.ZstdFile(counted, "rb")
    return counted
