"""Frames of a running simulation: their content, and that they do not change the result."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from typing import Any, get_type_hints

import numpy as np
import pytest

from eastwest import core, shipped
from eastwest.results import frame as table_frame

#: Shipped scenarios whose run takes about a second or less, by fidelity.
SMALL = {
    "packet": (
        "coexistence",
        "dual-tor",
        "failover",
        "first",
        "incast-buffer",
        "rocev2",
        "s2",
        "service",
        "sleeping-service",
        "storage-pfc",
    ),
    "flow": (
        "demo",
        "eeon_ch5_shallow",
        "first",
        "incast-buffer",
        "s1",
        "s1-linux",
        "s1x10",
        "s2",
        "s3",
        "service",
        "sleeping-service",
    ),
}

WHERE = (str(shipped.SCENARIOS), str(shipped.DATA))


class Screen:
    """Receiver of frames that stores them; ``then`` returns the time of the next frame."""

    def __init__(
        self, then: Callable[[core.Frame], Any] = lambda _: math.inf, first_s: Any = 0.0
    ) -> None:
        self.first_s = first_s
        self.then = then
        self.frames: list[core.Frame] = []

    def frame(self, frame: core.Frame) -> float:
        self.frames.append(frame)
        next_s: float = self.then(frame)
        return next_s


def text_of(name: str) -> str:
    return (shipped.SCENARIOS / f"{name}.toml").read_text()


def run(name: str, live: Any = None, *settings: tuple[str, str], **options: Any) -> core.CoreResult:
    options = {"live": live, **options}
    return core.run(text_of(name), *WHERE, list(settings), None, core.RunOptions(**options))


def numbers(kind: str, data: bytes) -> list[int]:
    return [int(number) for number in np.frombuffer(data, kind)]


def test_a_frame_has_the_declared_keys_and_a_value_for_each_link() -> None:
    live = Screen(lambda frame: frame["time_s"] + 1e-3)
    done = run("first", live)
    assert all(frame.keys() == get_type_hints(core.Frame).keys() for frame in live.frames)
    links = table_frame(done["tables"]["links"])
    last = live.frames[-1]
    assert numbers("<u8", last["carried"]) == links["bytes"].to_list()
    assert numbers("<u8", last["drops"]) == links["drops"].to_list()
    assert numbers("<u8", last["marks"]) == links["marks"].to_list()
    assert len(numbers("<u4", last["queue_packets"])) == links.height
    assert len(numbers("<u8", last["queue_bytes"])) == links.height
    assert last["paused"] == bytes(links.height)
    summary = json.loads(done["summary_json"])
    assert last["time_s"] == summary["simulated_s"]
    assert last["packet_hops"] == summary["packet_hops"]
    assert last["flows_done"] == summary["flows"]["completed"]
    assert last["jobs_done"] == last["jobs_total"] > 0
    assert [frame["time_s"] for frame in live.frames[:3]] == [0, 1e-3, 2e-3]
    assert any(any(frame["queue_packets"]) for frame in live.frames)
    assert any(frame["open_messages"] for frame in live.frames)


def test_energy_has_the_name_of_each_tier() -> None:
    live = Screen(lambda frame: frame["time_s"] + 1e-2)
    done = run("sleeping-service", live)
    joules = json.loads(done["summary_json"])["energy_j"]["total"]
    energy = live.frames[-1]["energy_j"]
    tiers = table_frame(done["tables"]["links"])["tier"].unique()
    assert {tier for tier, _ in energy} == set(tiers)
    assert sum(used for _, used in energy) == pytest.approx(joules, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fidelity", "name"), [(fidelity, name) for fidelity in SMALL for name in SMALL[fidelity]]
)
def test_results_of_shipped_scenarios_are_equal_with_and_without_frames(
    fidelity: str, name: str
) -> None:
    setting = ("fidelity", json.dumps(fidelity))
    plain = run(name, None, setting)
    end = json.loads(plain["summary_json"])["simulated_s"]
    live = Screen(lambda frame: frame["time_s"] + end / 97)
    observed = run(name, live, setting)
    assert len(live.frames) in (98, 99)
    assert observed["summary_json"] == plain["summary_json"]
    assert observed["tables"] == plain["tables"]
    assert observed["files"] == plain["files"]


@pytest.mark.parametrize("next_s", [0, -1.0, -math.inf, math.nan])
def test_a_time_that_is_not_later_stands_for_the_next_events(next_s: float) -> None:
    live = Screen(lambda _: next_s)
    done = run("first", live)
    times = [frame["time_s"] for frame in live.frames]
    assert times == sorted(set(times))
    assert len(times) > json.loads(done["summary_json"])["events"] / 4


@pytest.mark.parametrize("first_s", [math.inf, 1e300, 10**9])
def test_a_run_that_ends_before_the_first_frame_has_one_frame(first_s: float) -> None:
    live = Screen(first_s=first_s)
    done = run("first", live)
    end = json.loads(done["summary_json"])["simulated_s"]
    assert [frame["time_s"] for frame in live.frames] == [end]


@pytest.mark.parametrize("first_s", [-1e-9, -math.inf, math.nan])
def test_a_wrong_first_time_is_refused(first_s: float) -> None:
    with pytest.raises(ValueError, match=r"first_s of RunOptions\.live is .*at least 0"):
        run("first", Screen(first_s=first_s))


def test_a_receiver_without_its_attributes_is_refused() -> None:
    with pytest.raises(AttributeError, match="first_s"):
        run("first", object())
    with pytest.raises(TypeError):
        run("first", Screen(first_s="soon"))


@pytest.mark.parametrize("next_s", [None, "1 ms"])
def test_a_wrong_next_time_is_told(next_s: object) -> None:
    with pytest.raises(TypeError, match=r"method frame of RunOptions\.live returned (None|'1 ms')"):
        run("first", Screen(lambda _: next_s))


@pytest.mark.parametrize("fidelity", ["packet", "flow"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ZeroDivisionError])
@pytest.mark.parametrize("last", [False, True])
def test_an_exception_stops_the_run(
    error: type[BaseException], fidelity: str, *, last: bool
) -> None:
    def fail(_: core.Frame) -> float:
        raise error("enough")

    live = Screen(fail, first_s=math.inf if last else 1e-3)
    with pytest.raises(BaseException, match="enough") as raised:
        run("first", live, ("fidelity", json.dumps(fidelity)))
    assert raised.type is error
    assert len(live.frames) == 1


@pytest.mark.parametrize("fidelity", ["packet", "flow"])
def test_progress_is_reported_while_frames_are(fidelity: str) -> None:
    told: list[core.Progress] = []

    def block(frame: core.Frame) -> float:
        if frame["time_s"] > 1e-3 and not told:
            time.sleep(0.11)  # Progress is due after 0.1 s.
        return 0

    run("first", Screen(block), ("fidelity", json.dumps(fidelity)), progress=told.append)
    assert told
    assert told[0]["simulated_s"] > 1e-3


def test_one_thread_is_used() -> None:
    done = run("first", Screen(), threads=4)
    assert done["notes"][-1] == (
        "One thread was used, because frames show the state of the whole run (RunOptions.live)."
    )
