"""Fixtures of all tests: a stand-in for the simulator, and tools that a machine may lack."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eastwest import Result, core, run
from fake_core import FakeCore

LACKS = "lacks a tool: "


@pytest.fixture(autouse=True)
def _own_mechanisms_end_with_their_test() -> Iterator[None]:
    """Forget the mechanisms that a command of this test loaded with ``--with``."""
    with core.using(core.extras()):
        yield


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeCore:
    """Replace the simulator by a stand-in, in an empty working directory with a scenario file."""
    stand_in = FakeCore()
    monkeypatch.setattr(core, "_core", stand_in)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.toml").write_text('name = "x"\n')
    return stand_in


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """Record the seeds of the simulations that really run in this process."""
    seeds: list[int | None] = []
    real = core.run

    def run(*args: Any) -> core.CoreResult:
        seeds.append(args[4])
        return real(*args)

    monkeypatch.setattr(core, "run", run)
    return seeds


@pytest.fixture
def result(fake: FakeCore) -> Result:
    """Return a result of the stand-in."""
    return run("x.toml")


@pytest.fixture
def tool() -> Callable[..., str]:
    """Return a finder of programs.

    A missing one skips the test, or fails where tools are required.
    """

    def find(*names: str) -> str:
        for name in names:
            path = shutil.which(name)
            if path:
                return path
        if os.environ.get("EASTWEST_REQUIRE_TOOLS") == "1":
            pytest.fail(f"{names[0]} is not installed, and EASTWEST_REQUIRE_TOOLS=1")
        pytest.skip(LACKS + names[0])

    return find


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name every test that could not run because this machine lacks a Debian tool."""
    lacking = []
    for report in terminalreporter.stats.get("skipped", []):
        reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else ""
        if LACKS in reason:
            lacking.append(f"{report.nodeid} ({reason.split(LACKS, 1)[1]})")
    if lacking:
        terminalreporter.section("not run for lack of a Debian tool")
        for line in lacking:
            terminalreporter.write_line(line)
