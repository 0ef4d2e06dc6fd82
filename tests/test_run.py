"""Finding and running scenarios from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import eastwest as ew
from eastwest import shipped
from eastwest.run import load_source, peak_rss_mb
from fake_core import PROBLEMS, FakeCore


def test_settings_reach_the_simulator_as_text(fake: FakeCore) -> None:
    ew.run("x.toml", set={"a": True, "b.c": 1.5, "d": "10 Gbit/s"}, seed=3, reference=True)
    assert fake.calls == [([("a", "true"), ("b.c", "1.5"), ("d", "10 Gbit/s")], 3, True)]


def test_a_scenario_is_a_file_a_folder_a_name_or_text(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_source("x.toml").base_dir == Path.cwd()
    assert load_source('name = "y"\n').text == 'name = "y"\n'
    folder = ew.run("x.toml").path
    again = load_source(folder)
    assert again.text.startswith("# resolved")
    assert again.base_dir == folder.resolve()
    assert (load_source("x.toml").name, again.name) == ("x", folder.name)
    monkeypatch.setattr(shipped, "SCENARIOS", Path.cwd())
    assert load_source("X").text == 'name = "x"\n'
    with pytest.raises(FileNotFoundError, match="shipped scenarios: x"):
        load_source("nope")


def test_a_file_that_is_not_text_is_named(fake: FakeCore) -> None:
    Path("bad.toml").write_bytes(b"name = \xff\xfe")
    with pytest.raises(ew.InputError, match=r"bad\.toml: not UTF-8 text \(byte 7\)"):
        load_source("bad.toml")


def test_check_lists_all_problems(fake: FakeCore) -> None:
    assert ew.check("x.toml") == []
    fake.problems = PROBLEMS
    assert [p["path"] for p in ew.check("x.toml")] == ["fabric.hosts_per_leef", "fabric.mtu"]


def test_progress_is_reported(fake: FakeCore) -> None:
    seen: list[int] = []
    ew.run("x.toml", progress=lambda p: seen.append(p["jobs_done"]))
    assert seen == [20, 40, 60]


def test_peak_memory_is_of_this_process() -> None:
    before = peak_rss_mb()
    block = bytearray(b"x" * 50_000_000)
    assert peak_rss_mb() >= before
    assert peak_rss_mb() > len(block) / 1e6
