"""Interrupted runs that continue: same digest, same tables, no files left behind."""

from __future__ import annotations

import itertools
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import eastwest as ew
from eastwest import formats, memory
from eastwest.core import Frame, Live, RunOptions
from eastwest.results import TargetFolder
from eastwest.run import load_source, simulate
from eastwest.unfinished import Keeper

pytestmark = pytest.mark.long

#: A run of some seconds: flows of all purposes, tasks, losses.
SCENARIO = """
schema = 1
name = "long"
[fabric]
leaves = 2
hosts_per_leaf = 4
spines = 2
host_rate = "1 Gbit/s"
uplink_rate = "2 Gbit/s"
queue = { limit = "20 packets" }
[[workload]]
name = "sort"
kind = "mapreduce"
[[workload.job]]
kind = "terasort"
input = "16 GB"
maps = 128
reduces = 12
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EASTWEST_STORE", str(tmp_path / "store"))
    Path("long.toml").write_text(SCENARIO)
    return tmp_path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> ew.Result:
    """Return the run without an interruption."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "long.toml").write_text(SCENARIO)
    return ew.run(folder / "long.toml", out=folder / "r")


class Stopped(KeyboardInterrupt):
    """Exception with which a test interrupts a run."""


class Screen:
    """Receiver of frames at regular times, which interrupts the run at the time ``stop_s``."""

    first_s = 0.0

    def __init__(self, step_s: float, stop_s: float = math.inf) -> None:
        self.step_s = step_s
        self.stop_s = stop_s
        self.times: list[float] = []

    def frame(self, frame: Frame) -> float:
        self.times.append(frame["time_s"])
        if frame["time_s"] >= self.stop_s:
            time.sleep(1e-3)  # The run is now long enough that its state is worth keeping.
            raise Stopped
        return frame["time_s"] + self.step_s


def attempt(
    out: str,
    *,
    scenario: str = "long.toml",
    settings: tuple[tuple[str, str], ...] = (),
    threads: int = 1,
    stop_after: float = 1e9,
    rows: int = 5,
    every_s: float = 1e-3,
    fresh: bool = False,
    live: Live | None = None,
) -> tuple[list[str], ew.Result | None]:
    """Run until this number of packet-hops; return the printed text, and the result if it ended."""
    said: list[str] = []
    keeper = Keeper(every_s, fresh=fresh, say=said.append)
    keeper.most_rows = rows

    def progress(state: Any) -> None:
        if state["packet_hops"] > stop_after:
            time.sleep(every_s)  # The run is now long enough that its state is worth keeping.
            raise Stopped

    source, target = load_source(scenario), TargetFolder(Path(out))
    try:
        options = RunOptions(progress=progress, threads=threads, live=live)
        return said, simulate(source, list(settings), None, target, options, keeper)
    except Stopped:
        assert keeper.kept_s is not None
        return said, None


def test_a_run_that_comes_to_need_more_memory_goes_on_with_more(
    whole: ew.Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = load_source("long.toml"), TargetFolder(Path("r"))
    keeper = Keeper(1e-3)
    # From the fifth check on, more memory is used than the estimate foresees.
    looks = itertools.count()
    held = lambda: 10_000_000 if next(looks) < 5 else 2_000_000_000  # noqa: E731
    with monkeypatch.context() as patched:
        patched.setattr(memory, "held_bytes", held)
        with pytest.raises(MemoryError, match="its limit is 1 GB"):
            simulate(source, [], None, target, RunOptions(memory_bytes=1_000_000_000), keeper)
    assert keeper.goes_on
    said, result = attempt("r")
    assert said[0].startswith("resumes from ")
    assert result is not None
    assert_same(result, whole)


def test_a_second_ctrl_c_ends_the_writing_of_the_state() -> None:
    """The second Ctrl-C removes the partly written state; the first prints a line about it."""
    said: list[str] = []
    beside: list[bool] = []

    class Impatient(Keeper):
        def writing(self) -> None:
            super().writing()
            beside.append(bool(list(Path("store").glob("unfinished/*/checkpoint.partial"))))
            raise KeyboardInterrupt

    def progress(_: Any) -> None:
        time.sleep(1e-3)  # The run is now long enough that its state is worth keeping.
        raise Stopped

    keeper = Impatient(1e-3, say=said.append)
    keeper.look_every_s = 0
    with pytest.raises(Stopped):
        options = RunOptions(progress=progress)
        simulate(
            load_source("long.toml"), [], None, TargetFolder(Path("r")), options, keeper
        )  # fmt: skip
    assert len(said) == 1
    assert said[0].startswith("stopping: the state of the run is being written to disk")
    assert beside == [True]
    assert not keeper.goes_on
    assert not Path("store/unfinished").exists()


def kept() -> Path:
    (folder,) = Path("store/unfinished").iterdir()
    return folder


def assert_same(one: ew.Result, other: ew.Result) -> None:
    changing = {"wall_s", "cpu_s", "peak_rss_mb", "format"}
    summaries = [{k: v for k, v in r.summary.items() if k not in changing} for r in (one, other)]
    assert summaries[0] == summaries[1]
    for name in formats.TABLES:
        assert one.table(name).equals(other.table(name)), name


def test_a_run_on_two_threads_is_kept_and_goes_on_as_it_began() -> None:
    """S1x10 is busy enough to be divided, where there are two cores to be had."""
    busy: dict[str, Any] = {
        "scenario": "S1x10",
        "settings": (("workload.bulk.bytes", "60 kB"),),
        "every_s": 0.3,  # Each checkpoint has 60 MB, so this interval is short.
    }
    one = ew.run("S1x10", dict(busy["settings"]), out="one")
    hops = one.summary["packet_hops"]
    for share, threads in ((0.3, 2), (0.6, 1)):
        said, result = attempt("two", threads=threads, stop_after=share * hops, **busy)
        assert result is None
        assert not Path("two").exists()
    assert said[0].startswith("resumes from ")
    screen = Screen(one.summary["simulated_s"] / 100)
    said, result = attempt("two", live=screen, **busy)
    assert said[0].startswith("resumes from ")
    assert result is not None
    assert result.digest == one.digest
    notes = " ".join(result.summary["notes"])
    in_parts = "2 threads were used" in notes
    assert ("Only the last frame was delivered" in notes) == in_parts
    assert (len(screen.times) == 1) == in_parts
    assert screen.times[-1] == one.summary["simulated_s"]
    for name in formats.TABLES:
        assert one.table(name).equals(result.table(name)), name
    assert not Path("store/unfinished").exists()


def test_a_run_goes_on_twice_and_ends_as_if_nothing_had_happened(whole: ew.Result) -> None:
    hops = whole.summary["packet_hops"]
    for share in (0.3, 0.6):
        said, result = attempt("r", stop_after=share * hops)
        assert result is None
        assert not Path("r").exists()
    assert len(said) == 1
    assert said[0].startswith("resumes from ")
    parts = list(kept().glob("*.parquet"))
    assert {part.name.partition("-")[0] for part in parts} == {"flows", "tasks"}
    # Rows written after the checkpoint are removed.
    stray = kept() / "flows-000000999999.parquet"
    stray.write_bytes(parts[0].read_bytes())
    said, result = attempt("r")
    assert said[0].startswith("resumes from ")
    assert result is not None
    assert_same(result, whole)
    assert result.summary["wall_s"] > 0
    assert not Path("store/unfinished").exists()


def test_a_run_whose_receiver_of_frames_was_interrupted_goes_on(whole: ew.Result) -> None:
    end: float = whole.summary["simulated_s"]
    said, result = attempt("r", live=Screen(end / 50, 0.4 * end))
    assert result is None
    later = Screen(end / 50)
    said, result = attempt("r", live=later)
    assert said[0].startswith("resumes from ")
    assert result is not None
    assert_same(result, whole)
    assert 0.4 * end <= later.times[0] <= 0.41 * end
    assert later.times[-1] == end
    assert 30 <= len(later.times) <= 33


@pytest.mark.parametrize("damage", ["cut", "flip", "part", "foreign"])
def test_a_damaged_checkpoint_is_said_and_the_run_starts_anew(
    whole: ew.Result, damage: str
) -> None:
    attempt("r", stop_after=0.5 * whole.summary["packet_hops"])
    checkpoint = kept() / "checkpoint"
    content = checkpoint.read_bytes()
    if damage == "cut":
        checkpoint.write_bytes(content[: len(content) // 2])
    elif damage == "flip":
        checkpoint.write_bytes(content[:-100] + b"!" + content[-99:])
    elif damage == "foreign":
        checkpoint.write_bytes(b"something else")
    else:
        sorted(kept().glob("flows-*.parquet"))[0].unlink()
    said, result = attempt("r", rows=10**9)
    why = {"part": "rows of the table flows are missing", "foreign": "not a checkpoint of Eastwest"}
    assert "starts from the beginning" in said[0]
    assert why.get(damage, "damaged") in said[0]
    assert result is not None
    assert_same(result, whole)


def test_fresh_starts_anew(whole: ew.Result) -> None:
    attempt("r", stop_after=0.5 * whole.summary["packet_hops"])
    said, result = attempt("r", fresh=True)
    assert said == []
    assert result is not None
    assert result.digest == whole.digest


def test_a_second_process_at_the_same_run_keeps_nothing() -> None:
    said: list[str] = []
    first, second = Keeper(60), Keeper(60, say=said.append)
    place = first.place("plan")
    assert place is not None
    assert second.place("plan") is None
    assert said == ["no checkpoints are written: another process is simulating the same run"]
    Path(place).write_bytes(b"a checkpoint")
    first.close()
    third = Keeper(60)
    assert third.find("plan") == place
    assert second.find("plan") is None
    assert third.find("another plan") is None
    third.done()
    assert not Path("store/unfinished").exists()


def test_a_folder_that_cannot_be_written_is_said() -> None:
    Path("store").write_text("in the way")
    said: list[str] = []
    assert Keeper(60, say=said.append).place("plan") is None
    assert "no checkpoints are written" in said[0]


def test_a_sketch_is_not_kept() -> None:
    class Tail(ew.Queue):
        """Drop-tail, written as a sketch."""

        def at_enqueue(self, arrival: ew.Arrival) -> ew.Verdict:
            return ew.Verdict.ENQUEUE

    Path("own.toml").write_text(SCENARIO.replace("limit =", 'kind = "tail", limit ='))
    result = ew.run(
        "own.toml",
        out="r",
        mechanisms=[Tail],
        set={"workload.sort.job.0.input": "20 MB"},
        checkpoint_s=1e-3,
    )
    assert result.digest
    assert not Path("store").exists()


def test_a_run_at_flow_level_hands_out_rows_but_is_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = SCENARIO.replace('name = "long"', 'name = "long"\nfidelity = "flow"')
    Path("long.toml").write_text(text.replace("16 GB", "500 GB").replace("128", "4000"))
    taken: list[str] = []
    take = Keeper.take

    def noted(self: Keeper, tables: Any, first: int) -> None:
        taken.extend(tables)
        take(self, tables, first)

    monkeypatch.setattr(Keeper, "take", noted)
    said, result = attempt("r", stop_after=float("inf"))
    assert [each.partition(": ")[0] for each in said] == ["no checkpoints are written"]
    assert set(taken) == {"flows", "tasks"}
    assert result is not None
    assert_same(result, ew.run("long.toml", out="w"))
    assert not Path("store/unfinished").exists()


def command(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "eastwest", "run", "long.toml", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_same_command_goes_on(whole: ew.Result, number: signal.Signals) -> None:
    with command("--out", "r", "--checkpoint", "0.2") as process:
        try:
            until = time.monotonic() + 120
            while not list(Path("store").glob("unfinished/*/checkpoint")):
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < until
                time.sleep(0.01)
            process.send_signal(number)
            _, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert not Path("r").exists()
    if number == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 130
        assert "interrupted; repeat the command to continue" in err
    with command("--out", "r", "--json") as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert "long: resumes from " in err
    assert json.loads(out)["digest"] == whole.digest
    assert_same(ew.load("r"), whole)


def test_short_runs_and_runs_without_checkpoints_leave_nothing() -> None:
    for more in ([], ["--checkpoint", "0"]):
        with command("--set", "workload.sort.job.0.input=50 MB", *more) as process:
            _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert not Path("store").exists()
    assert pl.read_parquet("results/long-1/jobs.parquet").height == 1
