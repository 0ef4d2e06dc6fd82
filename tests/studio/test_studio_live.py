"""Live runs: frames add up to the tables, and pause, step and speed obey simulated time."""

from __future__ import annotations

import contextlib
import http.client
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import eastwest as ew
from studio_client import Client

#: A scenario with drops, marks and pauses, whose run takes a fraction of a second.
INCAST = """schema = 1
name = "incast"
duration = "60 ms"
[fabric]
kind = "leaf-spine"
leaves = 2
hosts_per_leaf = 8
spines = 2
host_rate = "1 Gbit/s"
uplink_rate = "1 Gbit/s"
queue = { kind = "step-marking", limit = "60 packets", threshold = "20 packets" }
[tcp]
congestion = "dctcp"
ecn = "on"
min_rto = "5 ms"
[[workload]]
name = "many"
kind = "incast"
receiver = "h0"
rounds = 30
block_bytes = "64 KB"
"""


@contextlib.contextmanager
def reading(client: Client, run: int) -> Iterator[Callable[[], Any]]:
    """Yield a function that returns the next object of the stream of a run."""
    connection = http.client.HTTPConnection("127.0.0.1", client.session.port, timeout=120)
    with contextlib.closing(connection):
        headers = {"X-Eastwest-Token": client.session.token}
        connection.request("GET", f"/api/runs/{run}/stream", headers=headers)
        answer = connection.getresponse()
        yield lambda: json.loads(answer.readline())


def until(following: Callable[[], Any], kind: str, **wanted: object) -> Any:
    """Return the next object of a stream with this kind and these values."""
    while True:
        found = following()
        assert found["kind"] != "end" or kind == "end", found
        if found["kind"] == kind and all(found[key] == value for key, value in wanted.items()):
            return found


def test_the_scenario_has_drops_and_marks() -> None:
    assert ew.check(INCAST) == []


@pytest.mark.parametrize("frame_s", [None, 1e-3, 1e-5])
def test_frames_add_up_to_the_tables(
    client: Client, tmp_path_factory: pytest.TempPathFactory, frame_s: float | None
) -> None:
    objects = client.stream(client.start(INCAST, live=True, replace=True, frame_s=frame_s))
    kinds = Counter(each["kind"] for each in objects)
    assert kinds["start"] == kinds["end"] == 1 and kinds["frame"] >= 1
    start = next(each for each in objects if each["kind"] == "start")
    assert (start["links"], start["target_s"]) == (2 * (16 + 4), 0.06)
    frames = [each for each in objects if each["kind"] == "frame"]
    times = [each["t"] for each in frames]
    assert times == sorted(times)
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
    for each in frames:
        for link, *more in each["d"]:
            sums[link] = [a + b for a, b in zip(sums[link], more, strict=True)]
    same = ew.run(INCAST, out=tmp_path_factory.mktemp("out") / "r")
    links = same.links.select("link", "bytes", "drops", "marks").iter_rows()
    expected = {link: list(rest) for link, *rest in links if any(rest)}
    assert dict(sums) == expected
    assert sum(drops for _, drops, _ in sums.values()) > 0
    assert sum(marks for *_, marks in sums.values()) > 0
    last = frames[-1]
    assert last["t"] == same.summary["simulated_s"]
    assert last["flows"] == same.flows.height
    assert last["hops"] == same.summary["packet_hops"]
    assert last["timeouts"] == same.summary["tcp"]["timeouts"]
    assert last["retransmits"] == same.summary["tcp"]["retransmits"]
    assert objects[-1]["digest"] == same.digest


def test_a_pause_holds_the_simulated_time_and_a_step_advances_it(client: Client) -> None:
    run = client.start(INCAST, live=True, replace=True, paused=True)
    with reading(client, run) as following:
        first = until(following, "frame")
        until(following, "state", state="paused")
        assert first["t"] == 0
        time.sleep(0.2)
        rows = client.get("/api/runs")
        assert (rows[0]["state"], rows[0]["simulated_s"]) == ("paused", 0)
        at = 0.0
        for step in (1e-3, 1e-3, 2.5e-4, 1e-6):
            client.post(f"/api/runs/{run}/control", step=step)
            at += step
            until(following, "state", state="paused")
            assert client.get("/api/runs")[0]["simulated_s"] == pytest.approx(at, abs=2e-12)
        client.post(f"/api/runs/{run}/control", pause=False)
        assert until(following, "end")["state"] == "done"


def test_a_run_is_stopped_while_it_is_paused(client: Client) -> None:
    run = client.start(INCAST, live=True, replace=True, paused=True)
    with reading(client, run) as following:
        until(following, "state", state="paused")
        client.post(f"/api/runs/{run}/control", stop=True)
        assert until(following, "end")["state"] == "stopped"


def test_the_speed_bounds_the_simulated_time(client: Client) -> None:
    begun = time.monotonic()
    run = client.start(INCAST, live=True, replace=True, speed=0.01)
    with reading(client, run) as following:
        while time.monotonic() - begun < 0.6:
            found = following()
            if found["kind"] == "frame":
                assert found["t"] <= 0.01 * (time.monotonic() - begun) + 1e-6
        client.post(f"/api/runs/{run}/control", speed=None)
        end = until(following, "end")
    assert end["state"] == "done"


def test_a_live_run_in_flow_mode_ends(client: Client) -> None:
    text = INCAST.replace('name = "incast"\n', 'fidelity = "flow"\n')
    objects = client.stream(client.start(text, live=True, replace=True))
    assert objects[-1]["state"] == "done", objects[-1]["error"]
