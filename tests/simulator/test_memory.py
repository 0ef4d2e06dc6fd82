"""Limits of memory: how they are found and written, and the end of a run that exceeds one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import eastwest as ew
from eastwest import memory
from eastwest.errors import InputError

pytestmark = pytest.mark.slow

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


def test_what_is_available_is_the_least_of_machine_and_control_groups(tmp_path: Path) -> None:
    meminfo, cgroup = tmp_path / "meminfo", tmp_path / "cgroup"
    meminfo.write_text("MemTotal: 9 kB\nMemAvailable:       1000000 kB\nMemFree: 1 kB\n")
    cgroup.write_text("0::/jobs/one\n")
    group = tmp_path / "groups/jobs/one"
    group.mkdir(parents=True)
    places = {"meminfo": meminfo, "cgroup": cgroup, "root": tmp_path / "groups"}
    assert memory.available_bytes(**places) == 1_024_000_000
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("50000000\n")
    assert memory.available_bytes(**places) == 1_024_000_000
    # The parent group has a limit; memory that caches files can be reclaimed.
    (group.parent / "memory.max").write_text("100000000\n")
    (group.parent / "memory.current").write_text("70000000\n")
    assert memory.available_bytes(**places) == 30_000_000
    kept = "anon 1\ninactive_file 10000000\nactive_file 4000000\nslab_reclaimable 1000000\n"
    (group.parent / "memory.stat").write_text(kept + "total_inactive_file 7\n")
    assert memory.available_bytes(**places) == 45_000_000
    (group.parent / "memory.current").write_text("200000000\n")
    assert memory.available_bytes(**places) == 0
    nothing = tmp_path / "nothing"
    assert memory.available_bytes(nothing, nothing, nothing) is None


def test_control_groups_of_version_1_count(tmp_path: Path) -> None:
    cgroup = tmp_path / "cgroup"
    cgroup.write_text("12:cpu,cpuacct:/a\n9:memory:/docker/x\n1:name=systemd:/b\n")
    group = tmp_path / "memory/docker/x"
    group.mkdir(parents=True)
    (group / "memory.limit_in_bytes").write_text("300000000\n")
    (group / "memory.usage_in_bytes").write_text("120000000\n")
    (group / "memory.stat").write_text("inactive_file 1\ntotal_inactive_file 20000000\n")
    nothing = tmp_path / "nothing"
    assert memory.available_bytes(nothing, cgroup, tmp_path) == 200_000_000


def test_the_limit_is_what_is_held_and_a_share_of_what_is_available(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "held_bytes", lambda: 100)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    assert (memory.allowed_bytes(), memory.allowed_bytes(3)) == (1000, 400)
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    assert memory.allowed_bytes() is None


def test_a_run_that_needs_more_is_refused_with_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "held_bytes", lambda: 100_000_000)
    parts: list[Any] = [("ports", 3_000_000_000, True), ("routes", 900_000_000, True)]
    watched = memory.Watched(lambda _: None, 4_000_000_000)
    watched.expect(parts)
    with pytest.raises(memory.MemoryLimitError) as raised:
        watched.expect([*parts, ("rates", 20_000_000, False)])
    said = str(raised.value)
    sums = "4.02 GB of memory (ports 3 GB, routes 900 MB, the program 100 MB, other parts 20 MB)"
    assert sums in said and "its limit is 4 GB (--memory)" in said and "smaller" in said


def test_memory_is_looked_at_while_a_run_is_built() -> None:
    memory.Watched(lambda _: None, 1 << 40).busy()
    with pytest.raises(memory.MemoryLimitError, match="before its first event"):
        memory.Watched(lambda _: None, 1).busy()


def test_progress_is_handed_on_below_the_limit() -> None:
    seen: list[Any] = []
    memory.Watched(seen.append, 1 << 40)(STATE)
    assert seen == [STATE]
    with pytest.raises(memory.MemoryLimitError, match=r"after 1\.5 s of simulated time.*--memory"):
        memory.Watched(seen.append, 1)(STATE)
    assert len(seen) == 1


def test_a_run_above_its_limit_ends_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(MemoryError, match=r"needs about .* limit is 1 MB \(--memory\)"):
        ew.run("demo", out=tmp_path / "r", memory_bytes=1_000_000)
    assert not any(tmp_path.iterdir())
