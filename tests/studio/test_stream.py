"""Frames of a stream: differences for each reader, and merging for a slow reader."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path
from typing import Any

import pytest

from eastwest.run import Source
from eastwest.studio.frames import MOST_BYTES, MOST_FRAMES, Frames
from eastwest.studio.runs import Difference, Run, Runs
from eastwest.studio.worker import Grid, Message, Task


def frame(time_s: float, carried: list[int], drops: list[int], queue: list[int]) -> dict[str, Any]:
    """Return a frame of a run with as many links as the lists have items."""
    n = len(carried)
    return {
        "time_s": time_s,
        "grid": True,
        "queue_packets": struct.pack(f"<{n}I", *queue),
        "queue_bytes": struct.pack(f"<{n}Q", *(1500 * each for each in queue)),
        "carried": struct.pack(f"<{n}Q", *carried),
        "drops": struct.pack(f"<{n}Q", *drops),
        "marks": struct.pack(f"<{n}Q", *[0] * n),
        "paused": bytes([0] * (n - 1) + [1]),
        "energy_j": [("host-up", 0.5)],
        "jobs_done": 1,
        "jobs_total": 2,
        "flows_done": 3,
        "timeouts": 4,
        "retransmits": 5,
        "packet_hops": 6,
    }


def test_an_object_has_what_changed_since_the_one_before() -> None:
    difference = Difference()
    first = difference.of(frame(0.1, [100, 0, 7], [0, 0, 1], [2, 0, 0]), 1.0)
    assert first == {
        "kind": "frame",
        "t": 0.1,
        "grid": True,
        "q": [[0, 2, 3000]],
        "d": [[0, 100, 0, 0], [2, 7, 1, 0]],
        "p": [2],
        "e": [["host-up", 0.5]],
        "jobs": [1, 2],
        "flows": 3,
        "timeouts": 4,
        "retransmits": 5,
        "hops": 6,
        "wall": 1.0,
    }
    later = frame(0.2, [150, 0, 7], [3, 0, 1], [0, 9, 0])
    second = difference.of(later, 2.0)
    assert (second["q"], second["d"]) == ([[1, 9, 13500]], [[0, 50, 3, 0]])


def test_a_full_list_keeps_totals_times_and_peaks_of_queues() -> None:
    frames = Frames()
    for step in range(1, 5000):
        peak = 77 if step == 1234 else 1
        frames.add(frame(step / 1000, [step, 0], [0, step], [peak, 0]))
    kept = frames.after(-1)
    assert MOST_FRAMES // 2 <= len(kept) <= MOST_FRAMES
    assert [each["time_s"] for each in kept] == sorted(each["time_s"] for each in kept)
    last = frames.last
    assert last is not None
    assert (last["time_s"], struct.unpack("<2Q", last["carried"])) == (4.999, (4999, 0))
    longest = [struct.unpack("<2I", each["queue_packets"])[0] for each in kept]
    assert sorted(longest)[-2:] == [1, 77]
    assert frames.after(4.998) == [last]
    assert frames.after(4.999) == []


def test_frames_of_a_large_fabric_need_bounded_memory() -> None:
    frames, links = Frames(), 100_000
    for step in range(1, 200):
        frames.add(frame(step / 1000, [step] * links, [0] * links, [0] * links))
    one = 4 * links + 4 * 8 * links + links
    assert len(frames.after(-1)) <= max(32, MOST_BYTES // one)


def test_frames_between_the_grid_are_replaced_by_the_next() -> None:
    frames = Frames()
    for time_s, grid in ((0.1, True), (0.13, False), (0.16, False)):
        frames.add({**frame(time_s, [5], [0], [9]), "grid": grid})
    assert [each["time_s"] for each in frames.after(-1)] == [0.1, 0.16]
    frames.add(frame(0.2, [6], [0], [2]))
    assert [each["time_s"] for each in frames.after(-1)] == [0.1, 0.2]
    frames.add({**frame(0.2, [7], [0], [2]), "grid": False})
    last = frames.after(0.1)
    assert [(each["grid"], each["carried"]) for each in last] == [(True, struct.pack("<Q", 7))]


@pytest.mark.parametrize("links", [10, 5_000])
def test_the_grid_depends_on_simulated_time_only(links: int) -> None:
    def times(steps: list[float]) -> list[float]:
        grid, at = Grid(None), 0.0
        found: list[float] = []
        while at < 3.0:
            at = min(at + steps[len(found) % len(steps)], grid.next_s)
            if grid.reached(at, links):
                found.append(at)
        return found

    slow, quick = times([1e-3, 7e-5, 0.2]), times([10.0])
    assert abs(len(slow) - len(quick)) <= 1  # the last time may be after the end
    assert all(a == pytest.approx(b) for a, b in zip(slow, quick, strict=False))
    # From one doubling to the next, half of the frames are new.
    assert len(quick) < (260 if links == 10 else 60) * 10


def test_a_grid_with_a_given_interval_keeps_it() -> None:
    grid = Grid(0.5)
    reached = [step / 10 for step in range(1, 40) if grid.reached(step / 10, 7)]
    assert reached == [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5]


def test_a_slow_reader_receives_the_sums_and_the_newest_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Runs, "_start", lambda _: _NoChild())
    runs = Runs()
    try:
        task = Task(1, Source("", Path(), ""), [], None, Path("none"), True, None, None)
        run = runs._runs[1] = Run(1, "", task, False, state="running")
        asyncio.run(_read(runs, run))
        assert not run.readers
    finally:
        runs.close()


async def _read(runs: Runs, run: Run) -> None:
    slow, quick = runs.stream(1), runs.stream(1)
    runs._hear(Message(1, "frame", frame(0.001, [1, 0], [0, 0], [1, 0])))
    for reader in (slow, quick):
        assert (await anext(reader))["kind"] == "start"
        assert (await anext(reader))["t"] == 0.001
        assert (await anext(reader)) == {"kind": "state", "state": "running"}
    for step in range(2, 3000):
        runs._hear(Message(1, "frame", frame(step / 1000, [step, 0], [0, step], [1, 0])))
        if step < 100:
            assert (await anext(quick))["t"] == step / 1000
    told = [await anext(slow)]
    while told[-1]["t"] < 2.999:
        told.append(await anext(slow))
    assert len(told) <= MOST_FRAMES
    sums = [sum(link[1] for each in told for link in each["d"] if link[0] == 0)]
    sums.append(sum(link[2] for each in told for link in each["d"] if link[0] == 1))
    assert sums == [2998, 2999]
    end: dict[str, Any] = {
        "state": "done",
        "error": None,
        "summary": None,
        "digest": "x",
        "figures": [],
    }
    runs._hear(Message(1, "frame", frame(3.0, [3000, 5], [0, 3000], [0, 0])))
    runs._hear(Message(1, "end", end))
    assert (await anext(slow))["d"] == [[0, 1, 0, 0], [1, 5, 1, 0]]
    assert (await anext(slow))["digest"] == "x"
    with pytest.raises(StopAsyncIteration):
        await anext(slow)
    late = [each async for each in runs.stream(1)]
    assert [each["kind"] for each in (late[0], late[-1])] == ["start", "end"]
    assert len(late) <= MOST_FRAMES + 2
    assert sum(link[1] for each in late[1:-1] for link in each["d"]) == 3005
    await quick.aclose()  # type: ignore[attr-defined]


class _NoChild:
    """A worker process that never says anything."""

    class link:  # noqa: N801
        @staticmethod
        def recv() -> None:
            raise EOFError

    @staticmethod
    def ended() -> str:
        return "none"

    @staticmethod
    def kill() -> None:
        pass

    close = kill


def test_frames_of_a_run_that_ended_are_few_in_a_large_fabric() -> None:
    frames, links = Frames(), 100_000
    for n in range(12):
        frames.add(frame(n / 10, [n] * links, [0] * links, [9 if n == 4 else 0] * links))
    assert len(frames.after(-1)) == 12
    frames.shrink()
    left = frames.after(-1)
    assert sum(len(each["carried"]) for each in left) * 4 < MOST_BYTES
    assert left[-1]["time_s"] == 1.1
    assert struct.unpack_from("<I", left[1]["queue_packets"])[0] == 9
