"""Performance scenarios, measured in fresh processes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from command_line import invoke
from eastwest import bench, shipped
from fake_core import FakeCore


def test_each_run_is_a_process_of_its_own(fake: FakeCore, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("s1.toml").write_text("")
    monkeypatch.setattr(shipped, "SCENARIOS", Path.cwd())
    seen: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        seen.append(command)
        summary = {"packet_hops": 300, "cpu_s": 2.0, "wall_s": 2.5, "peak_rss_mb": 80.5}
        return subprocess.CompletedProcess(command, 0, json.dumps({**summary, "digest": "d"}), "")

    monkeypatch.setattr(subprocess, "run", run)
    measured = bench.measure("S1", ["workload.0.bytes=1000"])
    assert measured == {
        "scenario": "s1",
        "threads": 1,
        "packet_hops": 300,
        "cpu_s": 2.0,
        "wall_s": 2.5,
        "hops_per_cpu_s": 150.0,
        "peak_rss_mb": 80.5,
        "digest": "d",
        "notes": [],
    }
    assert seen[0][1:4] == ["-m", "eastwest", "run"]
    assert seen[0][-2:] == ["--set", "workload.0.bytes=1000"]


def test_threads_are_compared_with_one_in_turns(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("s1.toml").write_text("")
    monkeypatch.setattr(shipped, "SCENARIOS", Path.cwd())
    walls = iter([2.0, 1.5, 2.4, 1.2, 2.2, 9.0, 2.0, 2.0])
    asked: list[bool] = []
    digests = iter("d" * 7 + "e")

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        asked.append("--threads" in command)
        summary: dict[str, Any] = {"packet_hops": 300, "cpu_s": 2.0, "peak_rss_mb": 80.5}
        summary |= {"wall_s": next(walls), "digest": next(digests)}
        summary["notes"] = ["in parts"] if asked[-1] else []
        return subprocess.CompletedProcess(command, 0, json.dumps(summary), "")

    monkeypatch.setattr(subprocess, "run", run)
    one, two = bench.compare("S1", [], 2)
    assert asked == [False, True] * 3
    assert (one["threads"], one["wall_s"]) == (1, 2.2)
    assert (two["threads"], two["wall_s"], two["notes"]) == (2, 1.5, ["in parts"])
    with pytest.raises(bench.BenchError, match="digests differ: d, e"):
        bench.compare("S1", [], 2, rounds=1)


def test_a_failure_keeps_its_exit_code(fake: FakeCore, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 3, "", "assertion failed")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(bench.BenchError, match="assertion failed") as caught:
        bench.measure("x.toml")
    assert caught.value.code == 3
    with pytest.raises(bench.BenchError, match="no scenario 'S99'"):
        bench.measure("S99")


def test_what_threads_gain_is_shown_with_their_note(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compare(name: str, settings: object, threads: int, rounds: int) -> list[dict[str, Any]]:
        row = {"scenario": "s1", "packet_hops": 25 * 10**6, "cpu_s": 1.4, "hops_per_cpu_s": 18e6}
        row |= {"peak_rss_mb": 137.0, "digest": "c83a18ca" * 4}
        said = ["over-subscribed"]
        one = {**row, "threads": 1, "wall_s": 3.0, "notes": said}
        return [one, {**row, "threads": 2, "wall_s": 2.0, "notes": [*said, "2 threads."]}]

    monkeypatch.setattr(bench, "compare", compare)
    code, out, _ = invoke("bench", "S1", "--threads", "2")
    assert code == 0
    assert "s1: 1.50 × on 2 threads. 2 threads." in out
    assert "…" not in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_a_scenario_that_is_wrong_is_told_line_by_line(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 2, "", "2 problems\n  line 1\n  line 2\x1b")

    monkeypatch.setattr(subprocess, "run", run)
    Path("x.toml").write_text("")
    code, _, err = invoke("bench", "x.toml")
    assert code == 2
    assert err.splitlines()[-3:] == ["2 problems", "  line 1", "  line 2\N{REPLACEMENT CHARACTER}"]
