"""Folders that are made under a temporary name and get their name when they are complete.

Results, traces and spans are in folders of this kind. An existing file or folder at the final path
is refused before a simulation or import starts, and checked again when the new folder is complete.
``--force`` replaces a folder of the same kind only, which is recognised by a file that each folder
of the kind has. A folder is replaced in one step where the system can exchange two names (Linux, on
most file systems). Elsewhere the old folder has the name ``.retired-NAME`` for a moment; where a
process is killed in this moment, the next process restores the name.
"""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

from eastwest.errors import FolderError
from eastwest.interrupts import delayed
from eastwest.partial import Partial, remove

#: Arguments of the system call ``renameat2`` (linux/fs.h): paths are relative to the working
#: directory, and the two names are exchanged.
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
#: Errors of ``renameat2`` where the kernel or the file system cannot exchange names.
_CANNOT = {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP}


class NewFolder:
    """Final path of a folder that is first written under a temporary name.

    A folder has a kind, such as a trace or a result. ``what`` is the name of the kind in messages
    ("a trace"), ``marker`` the name of a file that each folder of the kind contains. With
    ``force``, an existing folder of equal kind is replaced. With ``parents``, missing parent
    folders are made; without ``parents``, they must exist.
    """

    def __init__(self, out: Path, force: bool, what: str, marker: str, parents: bool) -> None:
        self.out = out
        self._force = force
        self._what = what
        self._marker = marker
        self._parents = parents

    def check(self) -> None:
        """Raise ``FolderError`` where the folder cannot be written at its path.

        If a process was killed while it replaced the folder, the old folder is first restored.
        """
        out = self.out
        if out.name in {"", ".."}:
            raise FolderError(f"{out} cannot become {self._what}: name a new folder")
        _recover(out)
        if os.path.lexists(out):
            self._check_replaceable()
        parent = out.parent.absolute()
        if self._parents:
            parent = next(each for each in (parent, *parent.parents) if each.exists())
            if not parent.is_dir():
                raise FolderError(f"{out}: {parent} is not a folder")
        elif not parent.is_dir():
            raise FolderError(f"{out}: there is no folder {out.parent}")
        if not os.access(parent, os.W_OK | os.X_OK):
            raise FolderError(f"{out}: the folder {parent} cannot be written to")

    def begin(self) -> Partial:
        """Make a folder with a temporary name beside the final path. Raises ``OSError``."""
        return Partial.folder(self.out.absolute().parent)

    def place(self, made: Partial) -> None:
        """Rename the finished folder to its final name, and remove the folder that it replaces.

        An interrupt waits until this is done, and then raises ``FinishedInterrupt``.
        """
        with delayed(f"the new folder is complete: {self.out}"):
            self._place(made.path)
            made.close()

    def _place(self, partial: Path) -> None:
        """Rename ``partial`` to the final name; remove a replaced folder, or leave it for removal.

        If the system can exchange names, the replaced folder gets the temporary name, and the
        caller removes it.
        """
        if not os.path.lexists(self.out):
            partial.rename(self.out)
            return
        self._check_replaceable()
        if _exchanged(partial, self.out):
            return
        retired = _retired(self.out)
        self.out.rename(retired)
        try:
            partial.rename(self.out)
        except BaseException:
            retired.rename(self.out)
            raise
        remove(retired)

    def _check_replaceable(self) -> None:
        out = self.out
        if out.is_symlink() or not out.is_dir():
            raise FolderError(f"{out} exists and is a link or not a folder: name another path")
        if not any(out.iterdir()):
            return
        if not self._force:
            raise FolderError(
                f"{out} already exists: name another folder, or replace it with --force"
            )
        if not (out / self._marker).is_file():
            raise FolderError(f"{out} is not {self._what}: --force does not replace it")


def check_folder(out: Path) -> None:
    """Raise ``FolderError`` if the parent folder of ``out`` is missing, or ``out`` is not a folder.

    ``out`` itself may be missing; if it exists, its files may be replaced.
    """
    if not out.parent.is_dir():
        raise FolderError(f"{out}: there is no folder {out.parent}")
    if out.exists() and not out.is_dir():
        raise FolderError(f"{out} exists and is not a folder: name another path")


def _exchanged(first: Path, second: Path) -> bool:
    """Exchange the names of two folders in one step; return whether the system can do this.

    Raises ``OSError`` where the system supports the exchange but the exchange fails.
    """
    exchange = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if exchange is None:
        return False
    paths = os.fsencode(first), os.fsencode(second)
    if exchange(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(second))


def _retired(out: Path) -> Path:
    return out.with_name(f".retired-{out.name}")


def _recover(out: Path) -> None:
    """Restore ``out`` where a process was killed while it replaced the folder in two steps.

    If ``out`` exists, the replaced folder is removed instead.
    """
    retired = _retired(out)
    if not retired.is_dir():
        return
    if os.path.lexists(out):
        remove(retired)
    else:
        retired.rename(out)
