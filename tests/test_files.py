"""Files appear complete or not at all, and errors name the requested file."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from eastwest.errors import InputError
from eastwest.files import write_whole


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / ("long" * 60)
    write_whole(path, b"first")
    write_whole(path, b"second")
    assert path.read_bytes() == b"second"
    assert [*tmp_path.iterdir()] == [path]


def test_a_refusal_names_the_file_and_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(b"earlier")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError) as caught:
        write_whole(path, b"later")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))
    assert path.read_bytes() == b"earlier"
    assert [*tmp_path.iterdir()] == [path]


def test_a_folder_is_no_file_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        write_whole(tmp_path, b"")
    with pytest.raises(InputError, match=r"x\.json: there is no folder .*absent$"):
        write_whole(tmp_path / "absent" / "x.json", b"")
    assert not any(tmp_path.iterdir())
