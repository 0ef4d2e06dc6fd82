"""Runs of the studio: results, queue, failures, and the worker process."""

from __future__ import annotations

import errno
import io
import os
import signal
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import eastwest as ew
from eastwest import shipped
from eastwest.child import Child
from eastwest.memory import available_bytes
from eastwest.studio.runs import MOST_STORED, MOST_WAITING, Runs
from studio_client import LONG, Client, studio

FIRST = shipped.SCENARIOS.joinpath("first.toml").read_text()
#: A scenario that needs more than 15 GB of memory.
LARGE = """schema = 1
[fabric]
kind = "fat-tree"
k = 148
host_rate = "1 Gbit/s"
uplink_rate = "1 Gbit/s"
[[workload]]
name = "w"
kind = "stride"
stride = 3
count = 10
bytes = "1 KB"
"""


#: A scenario whose flows can no longer finish after 3 ms of simulated time.
BROKEN = """schema = 1
[fabric]
kind = "star"
hosts = 3
host_rate = "1 Gbit/s"
[tcp]
max_retries = 1
syn_retries = 1
min_rto = "1 ms"
initial_rto = "1 ms"
[[fault]]
kind = "down"
on = "h1"
from = "0 s"
until = "100 s"
[[workload]]
name = "w"
kind = "permutation"
bytes = "1 MB"
"""


def eventually(is_so: Callable[[], Any]) -> Any:
    """Return the first true value of a function that is called again and again."""
    end = time.monotonic() + 300
    while not (found := is_so()):
        assert time.monotonic() < end, "the state was not reached"
        time.sleep(0.01)
    return found


def state(client: Client, run: int) -> str:
    return next(str(row["state"]) for row in client.get("/api/runs") if row["run"] == run)


def test_a_run_ends_with_its_results(client: Client, tmp_path: Path) -> None:
    run = client.start(FIRST, seed=3, set=[["workload.0.bytes", "100 KB"]], keep=True)
    objects = client.stream(run)
    end = objects[-1]
    assert [each["kind"] for each in objects[:-1]].count("end") == 0
    assert (end["kind"], end["state"], end["error"]) == ("end", "done", None)
    same = ew.run("first", {"workload.0.bytes": "100 KB"}, seed=3, out=tmp_path / "r")
    assert end["digest"] == same.digest
    assert end["summary"]["flows"] == same.summary["flows"]
    figures = {key: (value, text) for key, value, text, _ in end["figures"]}
    assert figures["flows.completed"] == (24, "24")
    assert client.get(f"/api/runs/{run}")["digest"] == same.digest
    assert client.stream(run)[-1]["digest"] == same.digest
    row = client.get("/api/runs")[0]
    assert (row["run"], row["seed"], row["label"]) == (run, 3, "run")
    assert row["set"] == [["workload.0.bytes", "100 KB"]]


def test_goals_are_evaluated(client: Client) -> None:
    end = client.end(FIRST + '[goal]\n"flows.fct_us.p99" = "< 1 us"\n')
    (goal,) = end["goals"]
    assert goal["met"] is False and "missed" in goal["text"]


def test_a_scenario_with_problems_fails_with_their_list(client: Client) -> None:
    end = client.end(FIRST.replace("leaf-spine", "leaf-spin"))
    assert end["state"] == "failed" and "did you mean leaf-spine?" in end["error"]
    assert [p["path"] for p in end["problems"]] == ["fabric.kind"]
    run = client.get("/api/runs")[0]["run"]
    for path in ("report", "flows", "result.zip"):
        status, message = client.refused("GET", f"/api/runs/{run}/{path}")
        assert status == 409 and "has no result" in message


@pytest.mark.parametrize("live", [False, True])
def test_a_run_that_cannot_go_on_fails(client: Client, live: bool) -> None:
    objects = client.stream(client.start(BROKEN, live=live))
    end = objects[-1]
    assert end["state"] == "failed" and "can no longer finish" in end["error"]
    frames = [each["t"] for each in objects if each["kind"] == "frame"]
    assert bool(frames) == live and all(t <= 0.0032 for t in frames)


@pytest.mark.skipif(
    (available_bytes() or 0) > 60_000_000_000, reason="the machine has enough memory for the run"
)
def test_a_run_that_needs_too_much_memory_is_refused(client: Client) -> None:
    found = client.post("/api/check", text=LARGE)
    assert found["memory_bytes"] > 15_000_000_000 and found["fabric"] is None
    end = client.end(LARGE)
    assert end["state"] == "failed" and "the run needs about" in end["error"]


def test_a_run_can_be_stopped(client: Client) -> None:
    run = client.start(LONG)
    eventually(lambda: client.get("/api/runs")[0]["simulated_s"])
    assert client.refused("GET", f"/api/runs/{run}") == (
        409,
        f"run {run} has not ended: it is running",
    )
    assert client.refused("DELETE", f"/api/runs/{run}")[0] == 409
    client.post(f"/api/runs/{run}/control", stop=True)
    assert client.stream(run)[-1]["state"] == "stopped"
    assert client.refused("POST", f"/api/runs/{run}/control", {"pause": True})[0] == 409
    assert client.end(FIRST)["state"] == "done"


def test_a_new_run_can_replace_all_others(client: Client) -> None:
    first, second = client.start(LONG), client.start(LONG)
    third = client.start(FIRST, replace=True)
    assert client.stream(third)[-1]["state"] == "done"
    assert {state(client, first), state(client, second)} == {"stopped"}


def test_runs_wait_in_a_queue_of_eight(client: Client) -> None:
    runs = [client.start(LONG) for _ in range(1 + MOST_WAITING)]
    assert state(client, runs[-1]) == "queued"
    body = {"text": FIRST, "label": "", "live": False}
    status, message = client.refused("POST", "/api/runs", body)
    assert status == 409 and "8 runs wait" in message
    for run in reversed(runs):
        client.post(f"/api/runs/{run}/control", stop=True)
    assert client.stream(runs[0])[-1]["state"] == "stopped"
    assert client.end(FIRST)["state"] == "done"


def test_a_run_without_frames_can_pause(client: Client) -> None:
    run = client.start(LONG)
    eventually(lambda: client.get("/api/runs")[0]["simulated_s"])
    client.post(f"/api/runs/{run}/control", pause=True)
    eventually(lambda: state(client, run) == "paused")
    before = client.get("/api/runs")[0]["simulated_s"]
    time.sleep(0.3)
    assert client.get("/api/runs")[0]["simulated_s"] == before
    client.post(f"/api/runs/{run}/control", pause=False)
    eventually(lambda: client.get("/api/runs")[0]["simulated_s"] > before)
    client.post(f"/api/runs/{run}/control", stop=True)
    assert client.stream(run)[-1]["state"] == "stopped"


def test_a_worker_that_dies_is_replaced(client: Client) -> None:
    run = client.start(LONG)
    eventually(lambda: client.get("/api/runs")[0]["simulated_s"])
    os.kill(client.session.runs._child.process.pid, signal.SIGKILL)
    end = client.stream(run)[-1]
    assert end["state"] == "failed" and "signal 9" in end["error"]
    assert client.end(FIRST)["state"] == "done"


@pytest.mark.slow
def test_a_worker_that_does_not_obey_is_killed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eastwest.studio.runs._PATIENCE_S", 0.2)
    run = client.start(LONG)
    eventually(lambda: client.get("/api/runs")[0]["simulated_s"])
    os.kill(client.session.runs._child.process.pid, signal.SIGSTOP)
    client.post(f"/api/runs/{run}/control", stop=True)
    assert client.stream(run)[-1]["state"] == "stopped"
    assert client.end(FIRST)["state"] == "done"


@pytest.mark.slow
def test_only_the_newest_results_are_stored(tmp_path: Path) -> None:
    short = FIRST.replace("1 MB", "1 KB")
    with studio(tmp_path) as client:
        kept = client.start(short, keep=True)
        runs = [client.start(short) for _ in range(MOST_WAITING)]
        client.stream(runs[-1])
        runs += [client.start(short) for _ in range(MOST_STORED - MOST_WAITING + 1)]
        client.stream(runs[-1])
        there = [row["run"] for row in client.get("/api/runs")]
        assert len(there) == MOST_STORED and kept in there and runs[0] not in there
        assert client.refused("GET", f"/api/runs/{runs[0]}")[0] == 404
        folders = {path.name for path in client.session.runs.folder.iterdir()}
        assert folders == {f"run-{number}" for number in there}
        assert client.ask("DELETE", f"/api/runs/{kept}").status == 200
        assert client.refused("GET", f"/api/runs/{kept}")[0] == 404
    assert not client.session.runs.folder.exists()


@pytest.mark.parametrize(
    "more",
    [
        {"seed": -1},
        {"seed": 2**63},
        {"seed": "1"},
        {"seed": True},
        {"speed": 0},
        {"speed": -1},
        {"speed": "fast"},
        {"frame_s": 0},
        {"live": "yes"},
        {"set": {}},
        {"set": [["a"]]},
        {"set": [["a", {}]]},
        {"set": [[1, "a"]]},
        {"text": None},
    ],
)
def test_wrong_values_are_refused(client: Client, more: dict[str, object]) -> None:
    status, message = client.refused("POST", "/api/runs", {"text": FIRST, "label": "x", **more})
    assert status == 400 and next(iter(more)) in message


@pytest.mark.parametrize("body", [{}, {"pause": 1}, {"step": 0}, {"step": "1"}, {"speed": -1}])
def test_wrong_controls_are_refused(client: Client, body: dict[str, object]) -> None:
    run = client.start(LONG)
    assert client.refused("POST", f"/api/runs/{run}/control", body)[0] == 400
    client.post(f"/api/runs/{run}/control", stop=True)
    client.stream(run)


def test_exports_of_a_run(client: Client) -> None:
    (client.folder / "my scenario.toml").write_text(FIRST)
    run = client.start(FIRST, path="my scenario.toml", seed=2, set=[["fabric.mtu", "9000"]])
    assert client.stream(run)[-1]["state"] == "done"
    told = client.get(f"/api/runs/{run}/command")
    wanted = "eastwest run 'my scenario.toml' --set fabric.mtu=9000 --seed 2"
    assert told == {"command": wanted, "note": None}
    (client.folder / "my scenario.toml").write_text("# other")
    assert "Save the scenario" in client.get(f"/api/runs/{run}/command")["note"]
    packed = client.ask("GET", f"/api/runs/{run}/result.zip")
    names = zipfile.ZipFile(io.BytesIO(packed.body)).namelist()
    assert f"run-{run}/summary.json" in names and f"run-{run}/flows.parquet" in names
    page = client.ask("GET", f"/api/runs/{run}/report")
    assert page.headers["content-type"].startswith("text/html") and b"first" in page.body


def test_runs_are_compared(client: Client) -> None:
    one = client.start(FIRST)
    two = client.start(FIRST, set=[["fabric.queue.limit", "50 packets"]])
    client.stream(two)
    assert b"fabric.queue.limit" in client.ask("GET", f"/api/compare?runs={one},{two}").body
    story = client.get(f"/api/difference?runs={one},{two}")
    assert story["title"].startswith(f"run-{one} and run-{two}")
    for runs in ("", "1", f"{one},{one}", "a,b", "1,2,3", "-1,2"):
        assert client.refused("GET", f"/api/difference?runs={runs}")[0] in {400, 404}


def test_a_worker_that_does_not_read_its_controls_holds_nothing_up(tmp_path: Path) -> None:
    with studio(tmp_path) as client:
        run = client.start(LONG, live=True)
        eventually(lambda: client.get("/api/runs")[0]["simulated_s"])
        process = client.session.runs._child.process.pid
        os.kill(process, signal.SIGSTOP)
        address = f"/api/runs/{run}/control"
        seen = [client.ask("POST", address, {"speed": 1.0}).status for _ in range(400)]
        assert {*seen} == {200, 503}
        client.post(address, stop=True)
        eventually(lambda: client.get("/api/runs")[0]["state"] == "stopped")
        assert client.end(FIRST)["state"] == "done"


def test_a_studio_goes_on_after_workers_that_were_stopped_at_their_start(tmp_path: Path) -> None:
    with studio(tmp_path) as client:
        runs = client.session.runs
        for _ in range(4):
            eventually(lambda: runs._ready)
            run = runs.get(client.start(LONG))
            runs._ready, run.stop_wanted = False, True
            runs._child.kill()
            assert client.stream(run.number)[-1]["state"] == "stopped"
        assert client.end(FIRST)["state"] == "done"


def test_a_worker_that_cannot_be_replaced_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with studio(tmp_path) as client:
        run = client.start(LONG)
        eventually(lambda: client.get("/api/runs")[0]["state"] == "running")

        def full(self: Runs) -> Child:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(Runs, "_start", full)
        client.session.runs._child.kill()
        end = client.stream(run)[-1]
        assert end["state"] == "failed" and "no space left on device" in end["error"]


def test_an_archive_that_the_disk_cannot_hold_leaves_nothing(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = client.start(FIRST)
    client.stream(run)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "write", full)
    status, message = client.refused("GET", f"/api/runs/{run}/result.zip")
    assert (status, message) == (500, "no space left on device")
    assert not [*client.session.runs.folder.glob("*.zip")]


def test_a_second_simulation_for_an_explanation_ends_with_the_studio(tmp_path: Path) -> None:
    with studio(tmp_path) as client:
        run = client.start(LONG.replace("1000000000", "3000"))
        client.stream(run)
        client.session.runs._closed = True
        body = {"kind": "packet", "id": "1@0"}
        answer = client.refused("POST", f"/api/runs/{run}/explain", body)
        assert answer == (409, "the studio is closing")
        client.session.runs._closed = False
