"""Files and folders that are being made: they have a temporary name, and their maker a lock.

A temporary name is ``.partial-HOST-RANDOM``. The maker holds a lock on the file or folder itself
(``flock``). The kernel releases it when the process ends, however it ends. So a left-over of a
process that is gone is known by its name and by a lock that nobody holds. Whoever makes something
in the same place removes such left-overs first. HOST is in the name because a lock on a network
file system may be visible to one machine only: left-overs of other machines are not touched.
Where a file system has no locks, nothing is removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

#: More attempts than processes can be removing left-overs of one folder at the same moment.
_TRIES = 100


class Partial:
    """A file or folder with a temporary name; what still has this name at the end is removed."""

    def __init__(self, parent: Path, make: Callable[[Path], int | None]) -> None:
        """Remove left-overs in ``parent`` and make something there. Raises ``OSError``.

        ``make`` creates what has the path it is given and returns an open file descriptor, or
        nothing where somebody has removed it in between.
        """
        remove_abandoned(parent)
        for _ in range(_TRIES):
            self.path = temporary(parent)
            handle = make(self.path)
            if handle is not None and _claimed(handle, self.path):
                self._handle: int | None = handle
                return
        raise OSError(f"{parent}: another process removes what is made there")

    @classmethod
    def folder(cls, parent: Path) -> Self:
        """Make a folder. Raises ``OSError`` where ``parent`` is missing or cannot be written."""
        return cls(parent, _new_folder)

    @classmethod
    def file(cls, parent: Path) -> Self:
        """Make an empty file. Raises ``OSError`` where ``parent`` is missing or not writable."""
        return cls(parent, _new_file)

    @classmethod
    def scratch(cls, parent: Path | None = None) -> Self:
        """Make a folder that only this user can read and that never gets another name.

        Without ``parent`` it is in the system's folder of temporary files. Raises ``OSError``.
        """
        made = cls.folder(parent or Path(tempfile.gettempdir()))
        made.path.chmod(0o700)
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def write(self, data: bytes) -> None:
        """Write the content of a file and force it to disk."""
        if self._handle is None:
            raise ValueError(f"{self.path} is closed")
        with os.fdopen(self._handle, "wb", closefd=False) as file:
            file.write(data)
        os.fsync(self._handle)

    def close(self) -> None:
        """Remove what still has the temporary name, and release the lock."""
        handle, self._handle = self._handle, None
        if handle is not None:
            remove(self.path)
            os.close(handle)


def temporary(parent: Path) -> Path:
    """Return a temporary name. What gets it and has no lock may be removed by anyone."""
    return parent / f"{_mark()}{secrets.token_hex(8)}"


def remove_abandoned(parent: Path) -> None:
    """Remove what processes of this machine that are gone have left in a folder."""
    mark = _mark()
    with contextlib.suppress(OSError):
        for path in parent.iterdir():
            if path.name.startswith(mark):
                _remove_abandoned(path)


def remove(path: Path) -> None:
    """Remove a file or folder, as far as that is possible."""
    with contextlib.suppress(OSError):
        path.unlink()
        return
    shutil.rmtree(path, ignore_errors=True)


def _mark() -> str:
    return f".partial-{socket.gethostname().replace('/', '_')}-"


def _new_folder(path: Path) -> int | None:
    path.mkdir()
    try:
        return os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    except OSError:
        path.rmdir()
        raise


def _new_file(path: Path) -> int | None:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)


def _claimed(handle: int, path: Path) -> bool:
    """Lock what has just been made; false, and closed, where another process removes it."""
    with contextlib.suppress(OSError):  # a file system without locks: nobody removes anything
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
    if _is(handle, path):
        return True
    os.close(handle)
    return False


def _remove_abandoned(path: Path) -> None:
    """Remove a left-over unless a process holds its lock."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is(handle, path):  # and has not got its final name meanwhile
                remove(path)
        finally:
            os.close(handle)


def _is(handle: int, path: Path) -> bool:
    """Whether a path still names what a file descriptor has open."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False
