"""Folders that are made beside their place, and get their name when they are whole.

Results, traces and spans are such folders. What is in the way is refused before time is spent, and
looked at again when the folder is there: ``--force`` replaces a folder of the same kind only, told
by a file that each of them has.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from eastwest.errors import FolderError


class NewFolder:
    """The place of a folder that is being made.

    ``what`` is what it is called in messages ("a trace"), ``marker`` the file that each of its kind
    has. With ``parents`` folders above it are made when they are needed; else they must be there.
    """

    def __init__(self, out: Path, force: bool, what: str, marker: str, parents: bool) -> None:
        self.out = out
        self._force = force
        self._what = what
        self._marker = marker
        self._parents = parents

    def check(self) -> None:
        """Refuse what cannot work. Raises ``FolderError``."""
        out = self.out
        if out.name in {"", ".."}:
            raise FolderError(f"{out} cannot be {self._what}: name a new folder")
        if os.path.lexists(out):
            self._check_replaceable()
        parent = out.parent.absolute()
        if self._parents:
            parent = next(each for each in (parent, *parent.parents) if each.exists())
            if not parent.is_dir():
                raise FolderError(f"{parent} is not a folder")
        elif not parent.is_dir():
            raise FolderError(f"{out}: there is no folder {out.parent}")
        if not os.access(parent, os.W_OK | os.X_OK):
            raise FolderError(f"{parent} cannot be written to")

    def place(self, partial: Path) -> None:
        """Give the finished folder ``partial``, beside it, the name; what it replaces goes last."""
        if not os.path.lexists(self.out):
            partial.rename(self.out)
            return
        self._check_replaceable()
        retired = partial.with_name(partial.name + "-old")
        self.out.rename(retired)
        try:
            partial.rename(self.out)
        except BaseException:
            retired.rename(self.out)
            raise
        shutil.rmtree(retired, ignore_errors=True)

    def _check_replaceable(self) -> None:
        out = self.out
        if out.is_symlink() or not out.is_dir():
            raise FolderError(f"{out} is in the way: it is not a folder")
        if not any(out.iterdir()):
            return
        if not self._force:
            raise FolderError(f"{out} already exists: name another folder, or add --force")
        if not (out / self._marker).is_file():
            raise FolderError(f"{out} is not {self._what}: --force does not replace it")
