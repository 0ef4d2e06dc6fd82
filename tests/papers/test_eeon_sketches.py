"""papers/eeon_ch6/sketches.py: drop times of NS-2's CoDel, and packets that RED protects."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

import eastwest as ew
from project_paths import PAPERS

STUDY = PAPERS / "eeon_ch6"
US = 1_000_000


def _module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(STUDY))
    spec = importlib.util.spec_from_file_location("eeon_sketches", STUDY / "sketches.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "eeon_sketches", module)
    spec.loader.exec_module(module)
    return module


@dataclass
class Packet:
    """A packet at the head of a queue, or an arriving packet."""

    now_ps: int = 0
    waited_ps: int = 10_000 * US
    left_bytes: int = 100_000
    queued_packets: int = 100
    kind: str = "data"
    understands_marks: bool = False
    has_ece: bool = False
    fits: bool = True

    @property
    def signal_verdict(self) -> int:
        """Return the verdict of a signal with default settings: mark, or early drop."""
        return int(ew.Verdict.MARK if self.understands_marks else ew.Verdict.DROP_EARLY)


def _drops(queue: Any, from_us: int, to_us: int) -> list[int]:
    """Return the drop times in us of a queue that a packet leaves every 10 us."""
    found = []
    for now in range(from_us, to_us, 10):
        while queue.at_dequeue(Packet(now * US)) == ew.Verdict.DROP_EARLY:
            found.append(now)
    return found


def test_dropping_goes_on_where_it_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = _module(monkeypatch).Ns2Codel()
    queue.mtu, queue.target, queue.interval = 1500, 500 * US, 1000 * US
    times = _drops(queue, 10, 5000)
    # CoDel drops after an interval above the target, then after 1, 1/√2, 1/√3 … of it.
    expected = [1010, 2010, 2717, 3294, 3794, 4242, 4650]
    assert len(times) == len(expected)
    assert all(abs(time - at) <= 10 for time, at in zip(times, expected, strict=True))
    count = queue.count
    assert queue.at_dequeue(Packet(5000 * US, waited_ps=0)) == ew.Verdict.ENQUEUE
    again = _drops(queue, 5010, 6400)
    assert again[0] == 6010 and queue.count == count - 1 + len(again) - 1


@pytest.mark.parametrize(
    ("spared", "kind", "ece", "kept"),
    [
        ({}, "syn", True, False),
        ({}, "ack", True, False),
        ({"spare_syn": True}, "syn", True, True),
        ({"spare_syn": True}, "ack", True, False),
        ({"spare_ece": True}, "syn", True, False),
        ({"spare_ece": True}, "ack", True, True),
        ({"spare_ece": True}, "ack", False, False),
        ({"spare_syn": True, "spare_ece": True}, "data", False, False),
    ],
)
def test_red_spares_what_it_is_told_to(
    monkeypatch: pytest.MonkeyPatch, spared: dict[str, bool], kind: str, ece: bool, kept: bool
) -> None:
    queue = _module(monkeypatch).SparingRed()
    queue.rate_bps = 1_000_000_000
    for name, value in spared.items():
        setattr(queue, name, value)
    verdict = queue.at_enqueue(Packet(kind=kind, has_ece=ece))
    assert verdict == (ew.Verdict.ENQUEUE if kept else ew.Verdict.DROP_EARLY)
    assert queue.at_enqueue(Packet(queued_packets=12)) == ew.Verdict.ENQUEUE
    assert queue.at_enqueue(Packet(understands_marks=True)) == ew.Verdict.MARK
