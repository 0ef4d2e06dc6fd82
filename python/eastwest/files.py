"""Files that appear whole or not at all, and reach the disk before they get their name."""

from __future__ import annotations

import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from eastwest.errors import InputError
from eastwest.units import clean

#: Where runs are kept when nothing else is said, below the working directory.
DEFAULT_STORE = Path(".eastwest/store")


def store_folder(chosen: str | Path | None = None) -> Path:
    """Return the folder of the run store: the one chosen, ``$EASTWEST_STORE``, or the default."""
    return Path(chosen or os.environ.get("EASTWEST_STORE") or DEFAULT_STORE).absolute()


def is_folder(path: Path) -> bool:
    """Whether a name from a user is that of a folder.

    Raises ``InputError`` where it cannot be the name of anything, such as a text that is given in
    the place of its file.
    """
    try:
        return path.is_dir()
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{clean(str(path), 60)}: is no name of a file: {said}") from None


def write_whole(path: Path, data: bytes) -> None:
    """Write a file at once: beside its place, forced to disk, and then renamed.

    Raises ``InputError`` where no file can be, and ``OSError`` with the name of ``path``, not of
    the hidden file beside it.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file in it")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")
    beside = path.with_name(f".partial-{secrets.token_hex(8)}")
    try:
        beside.write_bytes(data)
        sync_file(beside)
        beside.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        beside.unlink(missing_ok=True)


def sync_file(path: Path) -> None:
    """Force a file, or what a folder lists, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Force a folder's files to disk, and then the folder itself."""
    with ThreadPoolExecutor(8) as pool:  # together, they share the disk's commits
        list(pool.map(sync_file, [path for path in folder.iterdir() if path.is_file()]))
    sync_file(folder)
