"""Frames of a stream: differences for each reader, and merging for a slow reader."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path
from typing import Any

import pytest

from eastwest.run import Source
from eastwest.studio.runs import Difference, Run, Runs
from eastwest.studio.worker import Message, Task


def frame(time_s: float, carried: list[int], drops: list[int], queue: list[int]) -> dict[str, Any]:
    """Return a frame of a run with as many links as the lists have items."""
    n = len(carried)
    return {
        "time_s": time_s,
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
    assert second is not None
    assert (second["q"], second["d"]) == ([[1, 9, 13500]], [[0, 50, 3, 0]])
    assert difference.of(later, 3.0) is None


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
    got = []
    for step in range(2, 1000):
        runs._hear(Message(1, "frame", frame(step / 1000, [step, 0], [0, step], [1, 0])))
        if step % 100 == 0:
            got.append(await anext(quick))
    assert [each["t"] for each in got] == [step / 1000 for step in range(100, 1000, 100)]
    assert got[1]["d"] == [[0, 100, 0, 0], [1, 0, 100, 0]]
    merged = await anext(slow)
    assert (merged["t"], merged["d"]) == (0.999, [[0, 998, 0, 0], [1, 0, 999, 0]])
    end: dict[str, Any] = {
        "state": "done",
        "error": None,
        "summary": None,
        "digest": "x",
        "figures": [],
    }
    runs._hear(Message(1, "frame", frame(1.0, [1000, 5], [0, 1000], [0, 0])))
    runs._hear(Message(1, "end", end))
    assert (await anext(slow))["d"] == [[0, 1, 0, 0], [1, 5, 1, 0]]
    assert (await anext(slow))["digest"] == "x"
    with pytest.raises(StopAsyncIteration):
        await anext(slow)
    late = [each async for each in runs.stream(1)]
    assert [each["kind"] for each in late] == ["start", "frame", "end"]
    assert late[1]["d"] == [[0, 1000, 0, 0], [1, 5, 1000, 0]]
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
