"""The run store: runs that its keys distinguish; a run is complete or not there at all."""

from __future__ import annotations

import errno
import importlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

import eastwest as ew
from eastwest import core, store
from eastwest.mechanisms.load import load
from eastwest.partial import Partial, temporary
from eastwest.results import Result
from eastwest.run import measured
from eastwest.store import Store, plan

TINY = """
schema = 1
[fabric]
kind = "star"
hosts = 3
host_rate = "1 Gbit/s"
[[workload]]
name = "bulk"
kind = "stride"
stride = 1
count = 1
bytes = "20 KB"
"""
HADOOP = """
schema = 1
[fabric]
kind = "star"
hosts = 5
host_rate = "1 Gbit/s"
[[workload]]
kind = "mapreduce"
name = "hadoop"
trace = "fb-2009-first-50"
trace_to = "1 min"
"""


def files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_a_run_is_simulated_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Store(tmp_path)
    first = runs.run(plan(TINY), 1)
    assert first.flows.height == 3
    monkeypatch.setattr(core, "run", None)  # The simulator must not be called again.
    again = runs.run(plan(TINY), 1)
    assert again.path == first.path and again.digest == first.digest


def test_keys_tell_apart_what_decides_and_nothing_else() -> None:
    base = plan(TINY)
    same = plan(TINY.replace("[fabric]", "# a remark\n[fabric]") + "background = false\n")
    assert same.key(1) == base.key(1)
    assert plan(TINY, {"workload.bulk.bytes": "20000 B"}).key(1) == base.key(1)
    assert plan(TINY, {"seed": 9}).key(1) == base.key(1)
    others = {base.key(2), plan(TINY, {"workload.0.bytes": "21 KB"}).key(1), base.key(1)}
    assert len(others) == 3


def test_another_build_has_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    base = plan(TINY)
    before = base.key(1)
    monkeypatch.setattr(core, "build", lambda: "0.1.0 otherwise compiled")
    assert base.key(1) != before


def test_modules_that_a_mechanism_imports_are_part_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, elsewhere = tmp_path / "own", tmp_path / "site-packages"
    (own / "helpers").mkdir(parents=True)
    elsewhere.mkdir()
    (own / "helpers" / "__init__.py").write_text("from . import sizes\n")
    (own / "helpers" / "sizes.py").write_text("SIZE = 100\n")
    (own / "later.py").write_text("LATER = 1\n")
    (elsewhere / "installed_one.py").write_text("ONE = 1\n")
    (own / "app.py").write_text(
        "import eastwest as ew\nimport installed_one, json\nfrom helpers.sizes import SIZE\n"
        "class Sends(ew.Application):\n    def on_start(self):\n        import later\n"
        "        self.count('bytes', SIZE)\n"
    )
    for folder in (own, elsewhere):
        monkeypatch.syspath_prepend(str(folder))
    text = f'{TINY.partition("[[")[0]}[[workload]]\nname = "app"\nkind = "sends"\n'

    def once() -> tuple[str, list[str], int]:
        with core.using(load([own / "app.py"])[0]):
            done = Store(tmp_path / "store").run(plan(text), 1)
            key = plan(text).key(1)
        imports = [each["file"] for each in done.summary["mechanisms"][0]["imports"]]
        return key, imports, done.summary["applications"]["app"]["counters"]["bytes"]

    first = once()
    assert first[1:] == (["helpers/__init__.py", "helpers/sizes.py", "later.py"], 300)
    assert once() == first
    (own / "helpers" / "sizes.py").write_text("SIZE = 2_000\n")
    second = once()
    assert second[0] != first[0] and second[2] == 6_000
    (own / "later.py").write_text("LATER = 2\n")
    assert once()[0] != second[0]
    with core.using(load([own / "app.py"])[1].restore()):
        assert plan(text).key(1) == once()[0]


def test_modules_imported_before_or_later_have_the_code_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, linked = tmp_path / "own", tmp_path / "linked"
    (own / "broken").mkdir(parents=True)
    linked.mkdir()
    (own / "broken" / "__init__.py").write_text("raise RuntimeError('executed')\n")
    (linked / "real.py").write_text("LINKED = 7\n")
    (own / "by_link.py").symlink_to(linked / "real.py")
    (own / "lazy_size.py").write_text("SIZE = 100\n")
    (own / "lazy.py").write_text(
        "import eastwest as ew\n"
        "class Lazy(ew.Application):\n    def on_start(self):\n"
        "        from lazy_size import SIZE\n        from by_link import LINKED\n"
        "        self.count('bytes', SIZE + LINKED)\n"
        "    def never(self):\n        import broken.part\n"
    )
    monkeypatch.syspath_prepend(str(own))
    text = f'{TINY.partition("[[")[0]}[[workload]]\nname = "app"\nkind = "lazy"\n'

    def once() -> int:
        with core.using(load([own / "lazy.py"])[0]):
            done = Store(tmp_path / "store").run(plan(text), 1)
        return int(done.summary["applications"]["app"]["counters"]["bytes"])

    # the user's own code, such as a cell of a notebook, has imported the module before
    importlib.import_module("lazy_size")
    for size in (200, 2_000):
        (own / "lazy_size.py").write_text(f"SIZE = {size}\n")
        assert once() == 3 * (size + 7)
    (linked / "real.py").write_text("LINKED = 11\n")
    assert once() == 3 * (2_000 + 11)


def test_a_changed_trace_is_another_run(tmp_path: Path) -> None:
    trace = tmp_path / "trace.tsv"
    keys = set()
    for size in (1000, 2000):
        trace.write_text(f"job0\t0\t0\t{size}\t0\t0\n")
        scenario = tmp_path / "x.toml"
        scenario.write_text(HADOOP.replace("fb-2009-first-50", "trace.tsv"))
        keys.add(plan(scenario).key(1))
    assert len(keys) == 2


def test_summaries_are_kept_without_tables_until_these_are_asked_for(tmp_path: Path) -> None:
    runs = Store(tmp_path)
    wanted = plan(TINY)
    light = runs.run(wanted, 1, tables=False)
    assert files(light.path) == {"scenario.toml", "summary.json"}
    key = wanted.key(1)
    assert runs.find(key) is not None and runs.find(key, tables=True) is None
    whole = runs.run(wanted, 1)
    assert whole.path == light.path and whole.flows.height == 3
    assert runs.find(key, tables=True) is not None


def test_the_first_of_two_equal_runs_stays(tmp_path: Path) -> None:
    runs = Store(tmp_path)
    wanted = plan(TINY)
    raw, summary = measured(wanted.source, [], 1)
    first = runs.put("ab", raw, {**summary, "writer": 1})
    runs.put("ab", raw, {**summary, "writer": 2})
    runs.put("ab", raw, {**summary, "writer": 3}, tables=False)
    assert Result(first.path).summary["writer"] == 1
    runs.put("ab", raw, {**summary, "writer": 4}, extra={"more.json": b"{}"})
    assert Result(first.path).summary["writer"] == 1
    assert (first.path / "more.json").is_file()
    assert list((tmp_path / "partial").iterdir()) == []


def test_runs_with_other_files_are_put_together(tmp_path: Path) -> None:
    """Two sweeps that differ in their warm-up alone do not take each other's runs away."""
    runs, wanted = Store(tmp_path), plan(TINY)
    raw, summary = measured(wanted.source, wanted.overrides, 1)
    first = runs.put("ab12", raw, summary, extra={"after-1ps.json": b"1"})
    folder = first.path.stat().st_ino
    runs.put("ab12", raw, summary, tables=False, extra={"after-2ps.json": b"2"})
    found = runs.find("ab12", tables=True, files=("after-1ps.json", "after-2ps.json"))
    assert found is not None and found.flows.height == 3
    assert (found.path / "after-1ps.json").read_bytes() == b"1"
    assert found.path.stat().st_ino == folder, "who reads it meanwhile loses nothing"
    assert not list((tmp_path / "partial").iterdir())


def test_inputs_are_stored_once(tmp_path: Path) -> None:
    runs = Store(tmp_path)
    wanted = plan(HADOOP)
    folders = [runs.run(wanted, seed, tables=False).path for seed in (1, 2)]
    inputs = [next((folder / "inputs").iterdir()) for folder in folders]
    assert len(list((tmp_path / "inputs").iterdir())) == 1
    assert inputs[0].samefile(inputs[1])
    again = ew.run(folders[0], out=tmp_path / "again")
    assert again.digest == runs.run(wanted, 1).digest


def test_a_damaged_run_is_made_again(tmp_path: Path) -> None:
    runs = Store(tmp_path)
    wanted = plan(TINY)
    folder = runs.run(wanted, 1).path
    (folder / "summary.json").write_text('{"digest": "cut o')
    assert runs.find(wanted.key(1)) is None
    assert runs.run(wanted, 1).summary["flows"]["completed"] == 3


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Store(tmp_path)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(store, "fill_folder", full)
    with pytest.raises(OSError) as caught:
        runs.run(plan(TINY), 1)
    assert caught.value.filename == str(tmp_path)
    assert files(tmp_path) == set()


def test_what_killed_processes_left_is_removed(tmp_path: Path) -> None:
    runs = Store(tmp_path)
    beside = tmp_path / "partial"
    beside.mkdir()
    dead = temporary(beside)
    dead.mkdir()
    (dead / "summary.json").write_text("{")
    with Partial.folder(beside) as mine:
        runs.tidy()
        assert mine.path.is_dir() and not dead.exists()


def test_costs_are_recorded_and_a_torn_line_does_no_harm(tmp_path: Path) -> None:
    runs = Store(tmp_path)
    wanted = plan(TINY)
    runs.run(wanted, 1)
    with (tmp_path / "costs.jsonl").open("a") as file:
        file.write('{"key": "torn')
    [cost] = runs.costs(wanted.family)
    assert cost["key"] == wanted.key(1) and cost["identity"] == wanted.identity
    assert cost["packet_hops"] > 0 and cost["peak_rss_mb"] > 1
    assert runs.costs("another family") == []


def test_failures_are_remembered_until_forgotten(tmp_path: Path) -> None:
    runs = Store(tmp_path)
    assert runs.failure("k") is None
    runs.put_failure("k", "no route")
    assert runs.failure("k") == "no route"
    runs.forget_failure("k")
    runs.forget_failure("k")
    assert runs.failure("k") is None


def test_a_store_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ew.InputError, match="not a folder"):
        Store(tmp_path / "file" / "store").check()


def test_the_environment_names_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EASTWEST_STORE", str(tmp_path / "mine"))
    assert Store().path == tmp_path / "mine"
    assert Store(tmp_path).path == tmp_path
    monkeypatch.delenv("EASTWEST_STORE")
    monkeypatch.chdir(tmp_path)
    assert Store().path == tmp_path / ".eastwest" / "store"


def test_an_entry_is_a_result_folder(tmp_path: Path) -> None:
    found = Store(tmp_path).run(plan(TINY), 5)
    plain = ew.run(TINY, seed=5, out=tmp_path / "plain")
    assert files(found.path) == files(plain.path)
    depends = {"wall_s", "cpu_s", "peak_rss_mb"}
    stored = json.loads((found.path / "summary.json").read_text())
    assert {k: v for k, v in stored.items() if k not in depends} == {
        k: v for k, v in plain.summary.items() if k not in depends
    }
