"""Progress as text, its time estimates, and the places where a bar is shown."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import eastwest as ew
from eastwest import notebook
from eastwest.core import Progress, share_done
from eastwest.progress import ClaimsWords, Remaining, RunWords, SweepWords, describe, fitting
from eastwest.sweep import State
from fake_core import FakeCore


def report(**changed: Any) -> Progress:
    told: Progress = {
        "simulated_s": 3600.0,
        "target_s": 14_400.0,
        "jobs_done": 10,
        "jobs_total": 623,
        "packet_hops": 20_000_000,
        "wall_s": 10.0,
    }
    return told | changed  # type: ignore[return-value]


def test_simulated_and_real_time_come_first() -> None:
    text = "1 h simulated in 10 s · about 30 s left · 10/623 done · 2 million hops/s"
    words = RunWords()
    for second in range(1, 10):
        words(report(wall_s=float(second), simulated_s=360.0 * second))
    assert words(report()) == (text, 0.25)
    assert describe(report(wall_s=0.0, jobs_total=0), None) == "1 h simulated in 0 s"
    assert share_done(report(target_s=None)) == pytest.approx(10 / 623)
    assert share_done(report(target_s=None, jobs_total=0)) is None
    assert RunWords()(report(target_s=None, jobs_total=0))[1] is None


def test_a_narrow_terminal_gets_the_first_parts() -> None:
    text = "1 h simulated in 10 s · about 30 s left · 10/623 done"
    assert fitting(text, 99) == text
    assert fitting(text, 40) == "1 h simulated in 10 s · about 30 s left"
    assert fitting(text, 3) == "1 h simulated in 10 s"


def estimates(share: Callable[[float], float], until_s: int) -> list[float | None]:
    """Return the estimate at each whole second of wall time, with ten reports per second."""
    remaining = Remaining()
    found = [remaining.left_s(tenth / 10, share(tenth / 10)) for tenth in range(10 * until_s + 1)]
    return found[::10]


def test_the_estimate_follows_the_measured_rate() -> None:
    steady = estimates(lambda wall_s: wall_s / 100, 99)
    assert steady[:5] == [None] * 5
    assert all(left == pytest.approx(100 - s, abs=0.2) for s, left in enumerate(steady) if left)

    # The first 5 % take 1 s and the rest 110 s: at first 19 s are estimated, then corrected in
    # time.
    slower = estimates(lambda s: 0.05 * s if s <= 1 else 0.05 + 0.95 * (s - 1) / 110, 100)
    assert slower[1] == pytest.approx(19.0)
    assert slower[4] == pytest.approx(107, abs=6)
    assert slower[50] == pytest.approx(61, abs=1)


def test_an_estimate_without_work_in_the_last_half_is_that_of_the_whole_run() -> None:
    stuck = estimates(lambda s: min(0.5, s / 10), 40)
    assert stuck[40] == pytest.approx(40.0)


def test_a_resumed_run_is_estimated_from_its_own_rate() -> None:
    remaining = Remaining()
    assert remaining.left_s(1000.0, 0.5) is None
    assert remaining.left_s(1001.0, 0.51) is None
    assert remaining.left_s(1010.0, 0.6) == pytest.approx(40.0, rel=0.1)


def test_a_first_report_without_work_left_has_no_estimate() -> None:
    remaining = Remaining()
    assert remaining.left_s(2.0, 1.0) is None
    assert remaining.left_s(3.0, 1.0) is None


def test_few_moments_are_kept_of_a_long_run() -> None:
    remaining = Remaining()
    for tenth in range(200_000):
        remaining.left_s(tenth / 10, tenth / 400_000)
    assert len(remaining._seen) < 120


def test_sweeps_and_claims_in_words() -> None:
    state = State(12, 40, 3, 1, 31.4)
    text, share = SweepWords()(state)
    assert text == "12/40 runs in 0 s · about 31 s left · 1 failed · 3 from the store"
    assert share == pytest.approx(13 / 40)
    assert SweepWords()(State(0, 0, 0, 0, None))[0] == "0/0 runs in 0 s"
    assert ClaimsWords()("incast/T1", "reno", state)[0].startswith("incast/T1 reno: 12/40 runs")


# Notebooks


class Notebook:
    """A stand-in for a Jupyter kernel that records what each output of a cell shows, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kernel: object = "a kernel") -> None:
        self.outputs: list[list[str]] = []
        shown = SimpleNamespace(HTML=str, display=self.display)
        shell = SimpleNamespace(kernel=kernel) if kernel else SimpleNamespace()
        ipython = SimpleNamespace(get_ipython=lambda: shell, display=shown)
        monkeypatch.setitem(sys.modules, "ipykernel", SimpleNamespace())
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        monkeypatch.setitem(sys.modules, "IPython.display", shown)
        monkeypatch.setattr(notebook, "FIRST_S", 0.0)
        monkeypatch.setattr(notebook, "EVERY_S", 0.0)

    def display(self, html: str, display_id: bool = False) -> Any:
        assert display_id
        self.outputs.append([html])
        return SimpleNamespace(update=self.outputs[-1].append)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    return Notebook(monkeypatch)


def test_a_notebook_has_a_bar_that_is_updated_and_removed(fake: FakeCore, kernel: Notebook) -> None:
    Path("<b>.toml").write_text('name = "x"\n')
    ew.run("<b>.toml", out="r")
    (bar,) = kernel.outputs
    assert len(bar) == 4
    assert 'value="0.3333"' in bar[0] and "100 s simulated in 100 ms" in bar[0]
    assert "&lt;b&gt; <progress" in bar[0] and "<script" not in bar[0]
    assert "60/60 done" in bar[2]
    assert bar[-1] == ""


def test_a_sweep_in_a_notebook_has_one_bar(fake: FakeCore, kernel: Notebook) -> None:
    ew.sweep("x.toml", {"a": [1, 2]}, seeds=2, jobs=0, out="s", store="store")
    assert len(kernel.outputs) == 1
    assert "/4 runs in " in kernel.outputs[0][0]
    assert kernel.outputs[0][-1] == ""


def test_the_bar_of_a_run_that_fails_is_removed(fake: FakeCore, kernel: Notebook) -> None:
    fake.raises = ValueError("no")
    with pytest.raises(ValueError, match="no"):
        ew.run("x.toml")
    assert kernel.outputs[0][-1] == ""


def test_a_short_run_leaves_nothing_in_a_notebook(
    fake: FakeCore, kernel: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebook, "FIRST_S", 3600.0)
    ew.run("x.toml")
    assert kernel.outputs == []


@pytest.mark.parametrize("wanted", [False, lambda _: None])
def test_no_bar_where_none_is_wanted(fake: FakeCore, kernel: Notebook, wanted: Any) -> None:
    ew.run("x.toml", progress=wanted)
    assert kernel.outputs == []


def test_ipython_in_a_terminal_is_no_notebook(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Notebook(monkeypatch, kernel=None)
    assert not notebook.is_kernel()
    ew.run("x.toml", progress=True)
    assert terminal.outputs == []


def test_a_terminal_has_a_bar_where_it_is_wanted(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown: dict[bool | None, str] = {}
    for number, wanted in enumerate((None, False, True)):
        screen = Terminal()
        monkeypatch.setattr(sys, "stderr", screen)
        ew.run("x.toml", progress=wanted, out=f"r{number}")
        shown[wanted] = screen.getvalue()
    assert shown[None] == shown[False] == ""
    assert "5 min simulated in 300 ms · about 0 s left · 60/60 done" in shown[True]


def test_detection_imports_nothing() -> None:
    assert not notebook.is_kernel()
    assert "ipykernel" not in sys.modules
