"""Files that are complete or absent, and are on disk before they get their name."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from eastwest.errors import InputError
from eastwest.partial import Partial
from eastwest.units import clean

#: Default folder of the run store, below the working directory.
DEFAULT_STORE = Path(".eastwest/store")


def store_folder(chosen: str | Path | None = None) -> Path:
    """Return the absolute path of the run store: ``chosen``, ``$EASTWEST_STORE`` or default."""
    return Path(chosen or os.environ.get("EASTWEST_STORE") or DEFAULT_STORE).absolute()


def is_folder(path: Path) -> bool:
    """Whether the path is an existing folder.

    Raises ``InputError`` where ``path`` is no valid path, for example because it is the content of
    a file and not its name.
    """
    try:
        return path.is_dir()
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{clean(str(path), 60)}: is not a valid file name: {said}") from None


def check_outputs(outputs: Sequence[Path], inputs: Sequence[Path], force: bool) -> None:
    """Raise ``InputError`` where a command must not write its output files.

    An output must differ from all inputs and from all other outputs. An existing file is replaced
    only with ``force``.
    """
    for number, out in enumerate(outputs):
        if any(_is_same(out, each) for each in inputs):
            raise InputError(
                f"{clean(str(out), 400)} is an input of this command: name another file"
            )
        if any(_is_same(out, each) for each in outputs[:number]):
            raise InputError(f"{clean(str(out), 400)} is named for two outputs: name another file")
        if os.path.lexists(out) and not out.is_dir() and not force:
            raise InputError(
                f"{clean(str(out), 400)} already exists: name another file, or replace it with "
                "--force"
            )


def _is_same(first: Path, second: Path) -> bool:
    """Whether two paths name one file, or would name one."""
    try:
        return first.samefile(second)
    except OSError:
        return first.resolve() == second.resolve()


def write_whole(path: Path, data: bytes, beside: Path | None = None) -> None:
    """Write a file at once: under a temporary name, forced to disk, and then renamed.

    ``beside`` is the folder of the temporary name, on the same file system; without it, the
    folder of ``path``. Raises ``InputError`` where ``path`` cannot be a file, and ``OSError`` with
    the name of ``path`` where writing fails. A file that is replaced keeps its permissions.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file to write")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")
    try:
        with Partial.file(beside or path.parent) as partial:
            with contextlib.suppress(FileNotFoundError):
                partial.path.chmod(stat.S_IMODE(path.stat().st_mode) & 0o777)
            partial.write(data)
            partial.path.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


@contextlib.contextmanager
def polars_writes(path: Path) -> Iterator[None]:
    """Replace errors of polars on writing to ``path`` by an ``OSError``, in a ``with`` block.

    The ``OSError`` has ``path`` and the system's error number, which an error of polars has only in
    its text.
    """
    try:
        yield
    except Exception as error:
        found = re.search(r"\(os error (\d+)\)", str(error))
        if found is None:
            raise
        number = int(found[1])
        raise OSError(number, os.strerror(number), str(path)) from error


#: Maximum number of files that are forced to disk one by one: threads would cost more CPU time.
_FEW = 3


def sync_file(path: Path) -> None:
    """Force a file, or the list of entries of a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Force all files and folders below a folder to disk, and then the folder itself."""
    paths = [*folder.rglob("*")]
    if len(paths) <= _FEW:
        for path in paths:
            sync_file(path)
    else:
        with ThreadPoolExecutor(8) as pool:  # fsyncs at one time share commits of the file system
            list(pool.map(sync_file, paths))
    sync_file(folder)
