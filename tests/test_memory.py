"""Limits of memory: how they are found and written, and what becomes of a run above one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import eastwest as ew
from eastwest import memory
from eastwest.errors import InputError

STATE: Any = {"simulated_s": 1.5, "wall_s": 2.0}


@pytest.mark.parametrize(
    ("text", "value"),
    [("4 GB", 4e9), ("1.5gb", 1.5e9), ("512 MiB", 2**29), ("200000000", 2e8), ("1 TiB", 2**40)],
)
def test_sizes_are_read(text: str, value: float) -> None:
    assert memory.parse(text) == value


@pytest.mark.parametrize("text", ["", "much", "4 GBit", "-4 GB", "1 MB", "4 G B", "1e9"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        memory.parse(text)


def test_the_limit_is_nine_tenths_of_the_least_there_is(tmp_path: Path) -> None:
    meminfo, cgroup = tmp_path / "meminfo", tmp_path / "cgroup"
    meminfo.write_text("MemFree: 1 kB\nMemTotal:       1000000 kB\n")
    cgroup.write_text("0::/jobs/one\n")
    group = tmp_path / "groups/jobs/one"
    group.mkdir(parents=True)
    allowed = {"meminfo": meminfo, "cgroup": cgroup, "root": tmp_path / "groups"}
    assert memory.allowed_bytes(**allowed) == 921_600_000
    (group / "memory.max").write_text("max\n")
    (group.parent / "memory.max").write_text("100000000\n")
    assert memory.allowed_bytes(**allowed) == 90_000_000
    nothing = tmp_path / "nothing"
    assert memory.allowed_bytes(nothing, nothing, nothing) is None


def test_progress_is_handed_on_below_the_limit() -> None:
    seen: list[Any] = []
    memory.Watched(seen.append, 1 << 40)(STATE)
    assert seen == [STATE]
    with pytest.raises(memory.MemoryLimitError, match=r"after 1\.5 s of simulated time.*--memory"):
        memory.Watched(seen.append, 1)(STATE)
    assert len(seen) == 1


def test_a_run_above_its_limit_ends_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(MemoryError, match="may take 1 MB"):
        ew.run("demo", out=tmp_path / "r", memory_bytes=1_000_000)
    assert not any(tmp_path.iterdir())
