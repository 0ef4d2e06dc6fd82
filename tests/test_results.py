"""Result folders are complete, or not there at all."""

from __future__ import annotations

import errno
import math
import resource
import struct
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import eastwest as ew
from eastwest import results
from eastwest.core import Column
from eastwest.errors import FolderError, InputError
from fake_core import FakeCore


def everything(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def test_a_result_is_read_back(result: ew.Result) -> None:
    assert result.path == Path("results/fake-1")
    assert result.summary["seed"] == 1
    assert len(result.digest) == 64
    assert result.jobs.height == 60
    assert result.flows["fct_us"].dtype == pl.Float64
    assert result.flows["job"].dtype == pl.Int64
    assert result.links["name"][0] == "h0->leaf0"
    assert result.rounds.height == 0
    assert result.scenario.startswith("# resolved")
    for name in ("tasks", "queues", "traffic", "latency"):
        assert getattr(result, name).height > 0
    assert (result.path / "inputs/trace.tsv").read_bytes().startswith(b"job0")


def test_short_columns_are_read_like_long_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only long columns are made with numpy."""
    numbers: list[Column] = [
        ("u32", "u32", struct.pack("<3I", 0, 7, 2**32 - 1)),
        ("u64", "u64", struct.pack("<3Q", 0, 7, 2**64 - 1)),
        ("i64", "i64", struct.pack("<3q", -(2**63), 0, 2**63 - 1)),
        ("f64", "f64", struct.pack("<3d", -1.5, math.inf, math.nan)),
        ("few", "str", (b"\x01\x00\x01", ["a", "b"])),
        ("many", "str", (struct.pack("<3I", 300, 0, 1), [str(n) for n in range(301)])),
    ]
    nothing: list[Column] = [(kind, kind, b"") for kind in ("u32", "u64", "i64", "f64")]
    for columns in (numbers, nothing):
        short = results.frame(columns)
        monkeypatch.setattr(results, "_FEW_BYTES", -1)
        assert_frame_equal(results.frame(columns), short)
        monkeypatch.undo()
    assert results.frame(numbers)["many"].to_list() == ["300", "0", "1"]


def test_the_summary_says_what_the_run_cost(result: ew.Result) -> None:
    assert result.summary["wall_s"] > 0
    assert result.summary["cpu_s"] >= 0
    assert 1 < result.summary["peak_rss_mb"] < 100_000
    assert result.summary["notes"]


def test_folders_are_numbered(fake: FakeCore) -> None:
    paths = [str(ew.run("x.toml").path) for _ in range(3)]
    assert paths == ["results/fake-1", "results/fake-1-2", "results/fake-1-3"]
    assert str(ew.run("x.toml", seed=7).path) == "results/fake-7"


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("../../etc/passwd", "etc-passwd-1"),
        ("", "run-1"),
        ("..", "run-1"),
        ("a b/c\x00d", "a-b-c-d-1"),
        ("ä" * 300, "run-1"),
        ("x" * 300, "x" * 80 + "-1"),
    ],
)
def test_any_scenario_name_gives_a_safe_folder(fake: FakeCore, name: str, stem: str) -> None:
    fake.name = name
    assert ew.run("x.toml").path == Path("results") / stem


def test_an_existing_folder_is_refused_before_simulating(fake: FakeCore) -> None:
    ew.run("x.toml", out="r")
    before = everything(Path("r"))
    fake.calls.clear()
    with pytest.raises(FolderError, match="already exists"):
        ew.run("x.toml", out="r")
    assert not fake.calls
    assert everything(Path("r")) == before
    assert ew.run("x.toml", out="r", seed=5, force=True).summary["seed"] == 5
    assert sorted(p.name for p in Path().iterdir()) == ["r", "x.toml"]


def test_force_replaces_only_results(fake: FakeCore) -> None:
    precious = Path("precious")
    precious.mkdir()
    (precious / "thesis.tex").write_text("x")
    with pytest.raises(FolderError, match="not a result folder"):
        ew.run("x.toml", out="precious", force=True)
    with pytest.raises(FolderError, match="not a folder"):
        ew.run("x.toml", out="x.toml", force=True)
    with pytest.raises(FolderError, match=r"x\.toml is not a folder"):
        ew.run("x.toml", out="x.toml/inside")
    assert everything(precious) == ["thesis.tex"]


def test_an_empty_folder_is_used(fake: FakeCore) -> None:
    Path("empty").mkdir()
    assert ew.run("x.toml", out="empty").path == Path("empty")
    assert (Path("empty") / "summary.json").is_file()


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "full"), ValueError()]
)
@pytest.mark.parametrize("out", [None, "deep/er/r"])
def test_nothing_is_left_after_an_error(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch, error: BaseException, out: str | None
) -> None:
    calls = 0

    def failing(columns: Any) -> pl.DataFrame:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise error
        return frame(columns)

    frame = results.frame
    monkeypatch.setattr(results, "frame", failing)
    with pytest.raises(type(error)):
        ew.run("x.toml", out=out)
    assert calls == 4
    assert everything(Path()) == ["x.toml"]


def test_a_file_system_that_refuses_leaves_nothing(fake: FakeCore) -> None:
    """A limit on the size of files stands in for a full disk: the error comes from the kernel."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(OSError, match="too large") as caught:
            ew.run("x.toml")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.errno == errno.EFBIG
    assert caught.value.filename == str(Path("results").absolute())
    assert everything(Path()) == ["x.toml"]


def test_a_failed_replacement_keeps_the_old_result(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ew.run("x.toml", out="r")
    before = everything(Path("r"))

    def failing(columns: Any) -> pl.DataFrame:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(results, "frame", failing)
    with pytest.raises(OSError, match="full"):
        ew.run("x.toml", out="r", seed=2, force=True)
    assert everything(Path("r")) == before
    assert ew.Result("r").summary["seed"] == 1


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "a/../../evil", "", ".", "summary.json"])
def test_attached_names_cannot_leave_the_folder(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    inner = fake.run

    def hostile(*args: Any) -> Any:
        return {**inner(*args), "attached": [(name, b"")]}

    monkeypatch.setattr(fake, "run", hostile)
    with pytest.raises(ValueError, match="impossible name"):
        ew.run("x.toml")
    assert everything(Path()) == ["x.toml"]


def test_damaged_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="not a result folder"):
        ew.Result(tmp_path)
    (tmp_path / "summary.json").write_text("{")
    with pytest.raises(InputError, match="damaged"):
        _ = ew.Result(tmp_path).summary
    (tmp_path / "summary.json").write_text("[]")
    with pytest.raises(InputError, match="damaged"):
        _ = ew.Result(tmp_path).summary
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(FileNotFoundError, match="no table 'jobs'"):
        _ = ew.Result(tmp_path).jobs
    (tmp_path / "jobs.parquet").write_bytes(b"PAR1 but not really PAR1")
    with pytest.raises(InputError, match=r"jobs\.parquet is damaged"):
        _ = ew.Result(tmp_path).jobs
