"""Scenario files of the studio: reading and writing within one folder, with links resolved."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from eastwest import shipped
from eastwest.errors import InputError
from eastwest.files import write_whole
from eastwest.studio.refused import RefusedError
from eastwest.units import clean

#: Maximum size of a scenario text in bytes.
MOST_BYTES = 1_000_000
#: Maximum number of scenario files in the list of a folder.
MOST_FILES = 500
#: Maximum number of folder entries that are looked at for the list of scenario files.
_MOST_ENTRIES = 20_000
#: Maximum number of folders above a listed file.
_DEEPEST = 6
_LONGEST_NAME = 400
#: Maximum wall time in s for which a file waits until another studio has written its file.
_LONGEST_LOCK_S = 2.0
#: A line that scenario files have, and files of sweeps or topologies do not.
_SCENARIO = re.compile(rb"^[ \t]*(\[\[?[ \t]*(workload|fabric)[ \t]*[\].]|fabric[ \t]*[=.])", re.M)


def hash_of(data: bytes) -> str:
    """Return the hash by which a client names the content of a file."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class Text:
    """Text of a scenario, and the folder to which its file names are relative."""

    text: str
    base: Path
    path: str | None = None
    shipped: str | None = None

    def told(self) -> dict[str, str | None]:
        """Return the scenario as the page receives it."""
        return {
            "path": self.path,
            "shipped": self.shipped,
            "text": self.text,
            "hash": hash_of(self.text.encode()),
        }


class Folder:
    """The folder in which the studio may read and write."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        #: The path for messages.
        self.shown = clean(str(self.path), 400)
        self._writing = threading.Lock()

    def listed(self) -> list[str]:
        """Return the paths of scenario files below the folder, relative to it, sorted."""
        found = sorted(self._scenarios(), key=lambda name: (name.count("/"), name))
        return found[:MOST_FILES]

    def _scenarios(self) -> Iterator[str]:
        seen = 0
        for folder, below, names in os.walk(self.path):
            if seen > _MOST_ENTRIES:
                return
            depth = len(Path(folder).relative_to(self.path).parts)
            below[:] = [
                name for name in sorted(below) if not name.startswith(".") and depth < _DEEPEST
            ]
            seen += len(below)
            for name in sorted(names):
                seen += 1
                if seen > _MOST_ENTRIES:
                    return
                path = Path(folder, name)
                if not path.relative_to(self.path).as_posix().isprintable():
                    continue  # ``locate`` refuses it, and a name that is not UTF-8 is no text
                if name.endswith(".toml") and not name.startswith(".") and _is_scenario(path):
                    yield path.relative_to(self.path).as_posix()

    def locate(self, name: object, ending: str = ".toml") -> Path:
        """Return the resolved path of a file of this folder, which need not exist.

        Raises ``RefusedError`` where the name is not a relative path with this ending, where it
        leads out of the folder, or where it is something else than a regular file.
        """
        if not isinstance(name, str) or not name or len(name) > _LONGEST_NAME:
            raise RefusedError(400, "path: expected the path of a file, relative to the folder")
        told = clean(name, 100)
        steps = PurePosixPath(name).parts
        if not name.isprintable() or "\\" in name:
            raise RefusedError(400, f"{told}: a path has no control characters and no backslash")
        if name.startswith("/") or ".." in steps:
            raise RefusedError(
                403, f"{told}: only files inside the folder {self.shown} can be used"
            )
        if not name.endswith(ending) or any(step.startswith(".") for step in steps):
            raise RefusedError(403, f"{told}: only files that end with {ending} and are not hidden")
        try:
            path = self.path.joinpath(*steps).resolve()
            if not path.is_relative_to(self.path):
                raise RefusedError(
                    403, f"{told}: is a link to a file outside the folder {self.shown}"
                )
            if os.path.lexists(path) and not stat.S_ISREG(path.stat().st_mode):
                raise RefusedError(403, f"{told}: is not a regular file")
        except (OSError, RuntimeError) as error:
            raise RefusedError(400, f"{told}: {_reason(error)}") from None
        return path

    def read(self, name: object) -> Text:
        """Return a scenario of the folder. Raises ``RefusedError`` where it cannot be read."""
        path = self.locate(name)
        told = clean(str(name), 100)
        if not path.exists():
            raise RefusedError(404, f"{told}: there is no such file in {self.shown}")
        try:
            with path.open("rb") as file:
                data = file.read(MOST_BYTES + 1)
            if len(data) > MOST_BYTES:
                raise RefusedError(
                    413, f"{told}: is larger than 1 MB, the limit of a scenario here"
                )
            return Text(data.decode("utf-8"), path.parent, path=str(name))
        except UnicodeDecodeError as error:
            raise RefusedError(400, f"{told}: is not UTF-8 text (byte {error.start})") from None
        except OSError as error:
            raise RefusedError(400, f"{told}: {_reason(error)}") from None

    def write(self, name: object, text: object, known: object) -> str:
        """Write a scenario file and return the hash of its new content.

        ``known`` is the hash of the content that the client has read; None creates the file. Raises
        ``RefusedError`` with status 409 where the file on disk is another one.
        """
        path = self.locate(name)
        told = clean(str(name), 100)
        if not isinstance(text, str):
            raise RefusedError(400, "text: expected the text of the scenario")
        data = text.encode("utf-8", errors="replace")
        if len(data) > MOST_BYTES:
            raise RefusedError(413, f"{told}: is larger than 1 MB, the limit of a scenario here")
        with self._writing, self._locked():
            there = path.exists()
            if known is None and there:
                raise RefusedError(409, f"{told}: exists already; open it before it is replaced")
            try:
                if known is not None and (not there or _hash_in(path) != known):
                    what = "was changed" if there else "was removed"
                    raise RefusedError(409, f"{told}: {what} by another program since it was read")
                write_whole(path, data)
            except InputError as error:
                raise RefusedError(400, clean(str(error), 400)) from None
            except OSError as error:
                raise RefusedError(400, f"{told}: {_reason(error)}") from None
        return hash_of(data)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold a lock on the folder, so that two studios do not replace each other's changes.

        Without locks in the file system, or if a program does not release the lock in time, the
        block is executed without it.
        """
        try:
            handle = os.open(self.path, os.O_RDONLY)
        except OSError:  # cannot be listed
            yield
            return
        try:
            end = time.monotonic() + _LONGEST_LOCK_S
            while time.monotonic() < end:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(0.01)
                except OSError:
                    break
            yield
        finally:
            os.close(handle)

    def base(self, path: object, shipped_name: object = None) -> Path:
        """Return the folder to which the file names of a scenario are relative.

        ``path`` is the path of the scenario's file, or None for a text without a file.
        """
        if path is not None:
            return self.locate(path).parent
        return shipped.SCENARIOS if shipped_name is not None else self.path


def read_shipped(name: object) -> Text:
    """Return a scenario that ships with Eastwest. Raises ``RefusedError`` for an unknown name."""
    found = shipped.find(name) if isinstance(name, str) else None
    if found is None or found.stem not in shipped.names():
        raise RefusedError(
            404, f"{clean(str(name), 60)}: no scenario of this name ships with Eastwest"
        )
    return Text(found.read_text(encoding="utf-8"), found.parent, shipped=found.stem)


def shipped_list() -> list[dict[str, str]]:
    """Return the names of the shipped scenarios, each with the comment that begins its file."""
    return [{"name": name, "about": _about(name)} for name in shipped.names()]


def _about(name: str) -> str:
    """Return the first sentence of the comment that begins a shipped scenario."""
    path = shipped.find(name)
    lines = path.read_text(encoding="utf-8").splitlines() if path else []
    words = []
    for line in lines:
        if not line.startswith("#"):
            break
        words.append(line.lstrip("# ").strip())
    sentence, stop, _ = " ".join(words).partition(". ")
    return sentence + stop.strip()


def _hash_in(path: Path) -> str:
    """Return the hash of a file; of a file that is too large to be read here, another hash."""
    with path.open("rb") as file:
        return hash_of(file.read(MOST_BYTES + 1))


def _is_scenario(path: Path) -> bool:
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        with path.open("rb") as file:
            return _SCENARIO.search(file.read(MOST_BYTES)) is not None
    except OSError:
        return False


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()
