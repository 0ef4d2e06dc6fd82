"""Files and folders that are being made: they have a temporary name, and are locked.

A temporary name is ``.partial-HOST-RANDOM``. The process that makes the file or folder holds a lock
on it (``flock``). The kernel releases the lock whenever the process ends or dies. So a file or
folder with a temporary name and without a lock was abandoned by a dead process. A process that
makes a file in the same folder removes abandoned files first. HOST is in the name because a lock on
a network file system may be visible to one machine only: abandoned files of other machines are not
touched. Where a file system has no locks, nothing is removed.
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
from typing import Self

#: Attempts to lock a new file: more than the number of processes that remove files concurrently.
_TRIES = 100


class Partial:
    """A file or folder with a temporary name; it is removed at the end unless it was renamed."""

    def __init__(self, parent: Path, make: Callable[[Path], int | None]) -> None:
        """Remove abandoned files in ``parent`` and make a file or folder there. Raises ``OSError``.

        ``make`` creates a file or folder at a path and returns its open file descriptor, or None
        where another process has already removed it.
        """
        remove_abandoned(parent)
        for _ in range(_TRIES):
            self.path = temporary(parent)
            try:
                handle = make(self.path)
                claimed = handle is not None and _claimed(handle, self.path)
            except KeyboardInterrupt:
                remove(self.path)
                raise
            if claimed:
                self._handle: int | None = handle
                return
        raise OSError(f"{parent}: another process removes each new file in this folder")

    @classmethod
    def folder(cls, parent: Path) -> Self:
        """Make a folder in ``parent``. Raises ``OSError`` if ``parent`` is no writable folder."""
        return cls(parent, _new_folder)

    @classmethod
    def file(cls, parent: Path) -> Self:
        """Make an empty file. Raises ``OSError`` if ``parent`` is no writable folder."""
        return cls(parent, _new_file)

    @classmethod
    def scratch(cls, parent: Path | None = None) -> Self:
        """Make a folder that only this user can read and that never gets another name.

        Without ``parent``, the system's folder of temporary files is used. Raises ``OSError``.
        """
        made = cls.folder(parent or Path(tempfile.gettempdir()))
        made.path.chmod(0o700)
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def write(self, data: bytes) -> None:
        """Write the content of a file and force it to disk."""
        if self._handle is None:
            raise ValueError(f"{self.path} is closed")
        with os.fdopen(self._handle, "wb", closefd=False) as file:
            file.write(data)
        os.fsync(self._handle)

    def close(self) -> None:
        """Remove the file or folder unless it was renamed, and release the lock."""
        handle, self._handle = self._handle, None
        if handle is not None:
            remove(self.path)
            os.close(handle)


def temporary(parent: Path) -> Path:
    """Return a new path in ``parent`` with a temporary name.

    Any process may remove a file of this name that has no lock.
    """
    return parent / f"{_mark()}{secrets.token_hex(8)}"


def remove_abandoned(parent: Path) -> None:
    """Remove files and folders that dead processes of this machine have left in a folder."""
    mark = _mark()
    with contextlib.suppress(OSError):
        for path in parent.iterdir():
            if path.name.startswith(mark):
                _remove_abandoned(path)


def remove(path: Path) -> None:
    """Remove a file or folder; errors are ignored."""
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
    """Lock a new file or folder and return True; False if another process is removing it.

    ``handle`` is the open file descriptor; if the result is False, it is closed.
    """
    with contextlib.suppress(OSError):  # without locks in the file system, no process removes it
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
    """Remove an abandoned file or folder, unless a process holds its lock."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is(handle, path):  # no other process has renamed it
                remove(path)
        finally:
            os.close(handle)


def _is(handle: int, path: Path) -> bool:
    """Whether ``path`` still names the file or folder of the open file descriptor ``handle``."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False
