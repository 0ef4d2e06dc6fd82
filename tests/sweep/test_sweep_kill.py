"""A sweep that is killed repeatedly ends with the table of an undisturbed sweep.

The test is small by default. ``EASTWEST_SWEEP_RUNS=200 EASTWEST_SWEEP_KILLS=20`` make it as large
as the documentation promises.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eastwest.sweep.tables import SweepResult

pytestmark = pytest.mark.long

RUNS = int(os.environ.get("EASTWEST_SWEEP_RUNS", "24"))
KILLS = int(os.environ.get("EASTWEST_SWEEP_KILLS", "3"))
TABLES = ("runs.parquet", "points.parquet", "comparisons.parquet")

SCENARIO = """
schema = 1
[fabric]
kind = "star"
hosts = 12
host_rate = "1 Gbit/s"
[tcp]
min_rto = "10 ms"
[[workload]]
name = "incast"
kind = "incast"
receiver = "h0"
rounds = 5
block_bytes = "100 KB"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "incast.toml").write_text(SCENARIO)
    path = tmp_path / "s.toml"
    path.write_text(
        f"""
        scenario = "incast.toml"
        seeds = {RUNS // 4}
        [[axis]]
        path = "fabric.queue.limit"
        values = ["10 packets", "100 packets"]
        [[axis]]
        path = "workload.incast.rounds"
        values = [4, 8]
        """
    )
    return path


def start(file: Path, name: str) -> subprocess.Popen[bytes]:
    folder = file.parent / name
    return subprocess.Popen(
        [sys.executable, "-m", "eastwest", "sweep", str(file), "--jobs", "2", "--resume",
         "--store", str(folder / "store"), "--out", str(folder / "out")],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=file.parent,
    )  # fmt: skip


def finish(file: Path, name: str) -> SweepResult:
    process = start(file, name)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said.decode()
    return SweepResult(file.parent / name / "out")


def finished(file: Path, name: str) -> int:
    """Return the number of runs in the store."""
    return len(list((file.parent / name / "store" / "runs").glob("*/*/summary.json")))


def children(process: subprocess.Popen[bytes]) -> list[int]:
    """Return the process ids of the workers, if the system tells them (Linux)."""
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(number) for number in path.read_text().split()] if path.is_file() else []


def gone(number: int) -> bool:
    """Return whether a process has ended; a zombie process has."""
    try:
        stat = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in {"Z", "X"}


def wait_until(condition: object, process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait until the condition is true, or until the process ends."""
    assert callable(condition)
    until = time.monotonic() + 120
    while not condition():
        if process is not None and process.poll() is not None:
            return
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.001)


def test_killed_again_and_again_it_ends_with_the_same_table(file: Path) -> None:
    moments = random.Random(3)
    killed = 0
    for number in range(1, KILLS + 1):
        process = start(file, "killed")
        # Each kill comes a little later, at a random moment of a run or of writing it.
        target = RUNS * number // (KILLS + 2) + moments.randint(0, 2)
        wait_until(lambda wanted=target: finished(file, "killed") >= wanted, process)
        time.sleep(moments.uniform(0, 0.03))
        workers = children(process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        wait_until(lambda left=workers: all(gone(worker) for worker in left))
    assert killed == KILLS
    after = finish(file, "killed")
    undisturbed = finish(file, "whole")
    assert undisturbed.summary["runs"]["reused"] == 0
    assert after.summary["runs"]["reused"] > 0
    assert after.runs.height == RUNS // 4 * 4
    for name in TABLES:
        assert (after.path / name).read_bytes() == (undisturbed.path / name).read_bytes(), name
    left = list((file.parent / "killed" / "store" / "partial").iterdir())
    assert left == [], "what killed processes left is removed"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_sweep_leaves_what_it_has(file: Path, number: signal.Signals) -> None:
    process = start(file, "stopped")
    wait_until(lambda: finished(file, "stopped") >= 5, process)
    workers = children(process)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said.decode()
    assert b"runs are stored" in said
    assert all(gone(worker) for worker in workers)
    there = SweepResult(file.parent / "stopped" / "out")
    assert not there.summary["complete"] and 0 < there.runs.height < RUNS
    assert finish(file, "stopped").summary["complete"]
