"""Unfinished files and folders: those of ended processes are removed, those of others remain."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from eastwest import folders
from eastwest.errors import FolderError
from eastwest.files import polars_writes, sync_folder
from eastwest.folders import NewFolder
from eastwest.interrupts import FinishedInterrupt, Kept, delayed
from eastwest.partial import Partial, remove_abandoned, temporary

MAKER = """
import sys, time
from pathlib import Path
from eastwest.partial import Partial
made = getattr(Partial, sys.argv[2])(Path(sys.argv[1]))
print(made.path, flush=True)
time.sleep(600)
"""


@pytest.fixture(params=["folder", "file"])
def maker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start another process that is making something in a folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAKER, str(tmp_path), request.param],
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


def made_by(process: subprocess.Popen[str]) -> Path:
    assert process.stdout is not None
    return Path(process.stdout.readline().strip())


def test_a_left_over_is_removed_once_its_process_is_gone(
    maker: subprocess.Popen[str], tmp_path: Path
) -> None:
    theirs = made_by(maker)
    with Partial.folder(tmp_path) as mine:
        assert theirs.exists() and mine.path.is_dir()
        if theirs.is_dir():
            (theirs / "half.parquet").write_bytes(b"PAR1")
        maker.send_signal(signal.SIGKILL)
        maker.wait()
        with Partial.file(tmp_path) as other:
            assert not theirs.exists()
            assert mine.path.exists() and other.path.exists(), "those of a live process stay"
    assert not any(tmp_path.iterdir())


def test_what_is_not_a_left_over_of_this_machine_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".partial").mkdir()
    (tmp_path / ".partial-elsewhere-0123456789abcdef").mkdir()
    (tmp_path / "result").mkdir()
    left = temporary(tmp_path)
    (left / "below").mkdir(parents=True)
    link = temporary(tmp_path)
    link.symlink_to(tmp_path / "result")
    monkeypatch.setattr(fcntl, "flock", unsupported)
    remove_abandoned(tmp_path)
    assert left.exists(), "without locks, nobody knows whether somebody works on it"
    monkeypatch.undo()
    remove_abandoned(tmp_path)
    there = {path.name for path in tmp_path.iterdir()}
    assert there == {".partial", ".partial-elsewhere-0123456789abcdef", "result", link.name}
    remove_abandoned(tmp_path / "absent")


def unsupported(handle: int, operation: int) -> None:
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


def test_where_there_are_no_locks_things_are_made_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "flock", unsupported)
    with Partial.file(tmp_path) as made:
        made.write(b"whole")
        made.path.rename(tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == b"whole"
    assert [*tmp_path.iterdir()] == [tmp_path / "x"]


def test_who_is_overtaken_by_a_removal_makes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock
    lost: list[int] = []

    def busy_once(handle: int, operation: int) -> None:
        if not lost:
            lost.append(handle)
            raise BlockingIOError(errno.EWOULDBLOCK, "locked")
        lock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", busy_once)
    with Partial.folder(tmp_path) as made:
        assert made.path.is_dir()
    assert len(lost) == 1


def test_a_scratch_folder_is_for_its_user_alone(tmp_path: Path) -> None:
    with Partial.scratch(tmp_path) as made:
        assert made.path.stat().st_mode & 0o777 == 0o700


def new(parent: Path, text: str) -> Path:
    folder = temporary(parent)
    folder.mkdir()
    (folder / "mark").write_text(text)
    return folder


@pytest.mark.parametrize("in_one_step", [True, False])
def test_a_folder_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_one_step: bool
) -> None:
    if not in_one_step:
        monkeypatch.setattr(folders, "_exchanged", lambda *_: False)
    place = NewFolder(tmp_path / "out", True, "a thing", "mark", parents=False)
    for text in ("first", "second"):
        with place.begin() as made:
            (made.path / "mark").write_text(text)
            sync_folder(made.path)
            place.place(made)
        assert (tmp_path / "out" / "mark").read_text() == text
        assert [*tmp_path.iterdir()] == [tmp_path / "out"]


def test_an_interrupt_waits_until_a_folder_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = NewFolder(tmp_path / "out", True, "a thing", "mark", parents=False)
    real = folders._exchanged

    def exchanged(first: Path, second: Path) -> bool:
        done = real(first, second)
        signal.raise_signal(signal.SIGINT)
        return done

    monkeypatch.setattr(folders, "_exchanged", exchanged)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mark").write_text("old")
    with (
        pytest.raises(FinishedInterrupt, match=r"the new folder is complete: .*out"),
        place.begin() as made,
    ):
        (made.path / "mark").write_text("new")
        place.place(made)
    assert (tmp_path / "out" / "mark").read_text() == "new"
    assert [*tmp_path.iterdir()] == [tmp_path / "out"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_of_a_failed_replacement_is_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt) as raised, delayed("done"):
        signal.raise_signal(signal.SIGINT)
        raise FolderError("no")
    assert not isinstance(raised.value, FinishedInterrupt)


class Finalised:
    """Object that is interrupted while Python removes it."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_python_loses_is_kept() -> None:
    kept = Kept()
    kept.begin()
    try:
        kept.check()
        Finalised()  # Python prints the exception and goes on.
        with pytest.raises(KeyboardInterrupt):
            kept.check()
    finally:
        kept.end()
    kept.check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_replacement_in_two_steps_that_was_cut_off_is_finished(tmp_path: Path) -> None:
    place = NewFolder(tmp_path / "out", False, "a thing", "mark", parents=False)
    new(tmp_path, "old").rename(tmp_path / ".retired-out")
    with pytest.raises(FolderError, match="already exists"):
        place.check()
    assert (tmp_path / "out" / "mark").read_text() == "old"
    new(tmp_path, "older").rename(tmp_path / ".retired-out")
    with pytest.raises(FolderError, match="already exists"):
        place.check()
    assert (tmp_path / "out" / "mark").read_text() == "old"
    assert [*tmp_path.iterdir()] == [tmp_path / "out"]


def test_a_full_disk_has_the_systems_number_and_the_files_name() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    with pytest.raises(OSError) as caught, polars_writes(full):
        pl.DataFrame({"x": [1]}).write_parquet(full)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(full))
    with pytest.raises(pl.exceptions.ColumnNotFoundError), polars_writes(full):
        pl.DataFrame({"x": [1]}).select("y")
