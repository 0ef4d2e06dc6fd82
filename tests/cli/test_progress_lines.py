"""Progress of a run: lines where there is no terminal, and a bar on a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from eastwest.cli.guard import errors
from eastwest.cli.progress import RunBar
from eastwest.core import Progress


def at(wall_s: float, share: float) -> Progress:
    """Return a progress report of a run of 300 s of simulated time."""
    return {
        "simulated_s": 300 * share,
        "target_s": 300.0,
        "jobs_done": 0,
        "jobs_total": 0,
        "packet_hops": int(1e6 * wall_s),
        "wall_s": wall_s,
    }


def test_the_estimate_of_a_run_that_slows_down_is_revised(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The first 5 % of the run take 1 s and the rest 110 s, so at first 20 s seem right."""
    with RunBar(errors(), "x", estimate=True) as bar:
        for tenth in range(1, 11):
            bar(at(tenth / 10, tenth / 200))
        first = capsys.readouterr().err
        for second in range(2, 56):
            bar(at(float(second), 0.05 + 0.95 * (second - 1) / 110))
        later = capsys.readouterr().err.splitlines()
    assert first.startswith("x: about 19 s left (5 % done in 1 s), ")
    assert first.rstrip().endswith("or more of memory")
    # After 1 s of wall time, 110 s are left. The last estimate is near this, and lines are few.
    assert 1 <= len(later) <= 4
    assert later[-1].startswith(("x: about 100 s left", "x: about 110 s left"))


def test_a_run_at_a_steady_pace_has_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with RunBar(errors(), "x", estimate=True) as bar:
        bar(at(0.9, 0.04))
        assert capsys.readouterr().err == ""
        for second in range(1, 25):
            bar(at(float(second), second / 25))
    assert capsys.readouterr().err.count("\n") == 1
    # The store knows the duration of an earlier run with this scenario.
    with RunBar(errors(), "x") as bar:
        for second in range(1, 25):
            bar(at(float(second), second / 25))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("width", [50, 80, 120])
def test_a_bar_fits_the_terminal_and_has_both_times(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # rich draws no bar if the variable names a terminal without control characters.
    monkeypatch.setenv("TERM", "xterm")
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=width, color_system=None)
    with RunBar(console, "a scenario with a long name", estimate=True) as bar:
        for second in range(1, 25):
            bar(at(float(second), second / 25))
    shown = screen.getvalue()
    assert "2 min 36 s simulated in 13 s" in shown
    assert ("about 12 s left" in shown) == (width >= 80)
    assert ("about 12 s left · 1 million hops/s" in shown) == (width >= 120)
    assert "…\r" not in shown and "...\r" not in shown  # No text is cut with an ellipsis.
    assert "of memory" not in shown  # Memory is in the line for logs, not in the bar.
