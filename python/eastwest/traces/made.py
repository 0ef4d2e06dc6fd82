"""Parts shared by the imports of traces and of spans: checks, and writing of a new folder."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from eastwest import core
from eastwest.account import Account
from eastwest.errors import InputError, did_you_mean
from eastwest.files import sync_folder
from eastwest.folders import NewFolder
from eastwest.traces.source import Source
from eastwest.units import clean

#: Number of bytes at the start of a file from which its format is recognised.
START = 1 << 16


@dataclass
class Imported:
    """Result of an import: folder, format of the source, description, and account."""

    path: Path
    source_format: str
    #: Content of ``trace.json`` or ``spans.json``.
    about: dict[str, Any]
    account: Account


class FolderWriter:
    """Context manager that writes a new folder ``out``.

    The folder remains only if the method ``place`` was called; otherwise it is removed.

    ``what`` is the name of the content in messages ("a trace"), ``marker`` the file name of the
    JSON description. If ``lasting`` is false, because the folder is soon removed, it is not
    synchronised to disk.
    """

    def __init__(
        self, out: Path, force: bool, what: str, marker: str, lasting: bool = True
    ) -> None:
        self.out = out
        self._lasting = lasting
        self._marker = marker
        self._place = NewFolder(out, force, what, marker, parents=False)
        self._place.check()

    def __enter__(self) -> Self:
        self._made = self._place.begin()
        self._partial = self._made.path
        return self

    def __exit__(self, *error: object) -> None:
        self._made.close()

    def place(self, version: int | str, about: Mapping[str, Any]) -> dict[str, Any]:
        """Write the description, rename the folder to ``out``, and return the description.

        ``version`` is the version of the format, ``about`` the rest of the description.
        """
        text = {"format": version, "eastwest": core.version(), **about}
        data = json.dumps(text, indent=1, allow_nan=False, ensure_ascii=False)
        (self._partial / self._marker).write_text(data + "\n", "utf-8")
        if self._lasting:
            sync_folder(self._partial)
        self._place.place(self._made)
        return text


def check_format(given: str, known: Collection[str]) -> None:
    """Raise ``InputError`` unless ``given`` is ``auto`` or one of the formats ``known``."""
    if given != "auto" and given not in known:
        allowed = ", ".join(["auto", *known])
        near = did_you_mean(given, known)
        raise InputError(f"the format is {given!r:.60}, but must be one of {allowed}{near}")


def start_of(source: Source) -> bytes:
    """Return the first bytes of a file without consuming them.

    Raises ``InputError`` if the file is empty.
    """
    start = source.peek(START)
    if not start.strip():
        raise InputError(f"{source.name}: is empty" + (f" ({source.cut})" if source.cut else ""))
    return start


def unknown(source: Source, what: str = "has no known format") -> InputError:
    """Return the error for a file whose format is not known; the caller raises it.

    The message has the file's name, the text ``what``, and the first bytes of the file.
    """
    shown = repr(clean(source.peek(START)[:40].decode(errors="replace"), 30))
    return InputError(f"{source.name}: {what}; it starts with {shown}")


def unusable(file: str | Path, what: str, account: Account) -> InputError:
    """Return the error for a file without usable content; the caller raises it.

    ``what`` is a word for the missing content, such as ``job``. The message states the first reason
    in ``account`` why rows were left out.
    """
    why = next(account.lines(), "it is empty")
    return InputError(f"{file}: has no usable {what}: {why}")


def entry(source: Source, kind: str, **counts: int) -> dict[str, Any]:
    """Return the description of a file that was read: name, kind, bytes, ``counts``, SHA-256.

    ``kind`` is the name of the file's format; ``counts`` are numbers of the file's contents by
    name. The rest of the file is read for the checksum.
    """
    digest = source.drain()
    named = {"name": source.path.name, "kind": kind, "bytes": source.bytes}
    return {**named, **counts, "sha256": digest}
