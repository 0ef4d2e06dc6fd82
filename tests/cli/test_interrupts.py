"""Ctrl-C and the memory limit while no simulation runs: reading, building, writing tables."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eastwest import core, shipped
from eastwest.memory import MemoryLimitError, Watched
from eastwest.unfinished import Keeper

pytestmark = pytest.mark.slow

WORKLOAD = "[[workload]]\nname = 'all'\nkind = 'permutation'\nbytes = '1 KB'\n"
RATES = "host_rate = '1 Gbit/s'\nuplink_rate = '1 Gbit/s'\n"
#: Routes are searched from 5,256 servers, which takes seconds and 124 MB.
SLOW = f"schema = 1\n[fabric]\nkind = 'dcell'\nn = 8\nlevels = 2\n{RATES}{WORKLOAD}"
#: Time in s after which the test fails; a command that works answers at once.
HANG_S = 60


class StopError(Exception):
    """Raised by a signal handler of the test."""


def _where(folder: Path) -> tuple[str, str]:
    return str(folder), str(shipped.DATA)


@contextmanager
def _stopped_soon() -> Iterator[None]:
    """Raise ``StopError`` after a moment, as Ctrl-C raises ``KeyboardInterrupt``."""

    def stop(*_: object) -> None:
        raise StopError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_reading_is_ended_by_a_signal(tmp_path: Path) -> None:
    rows = "h0,h1,1000,0.5\nh1,h0,1000,0.5\n" * 500_000
    (tmp_path / "flows.csv").write_text("src,dst,bytes,start_s\n" + rows)
    text = (
        f"schema = 1\n[fabric]\nkind = 'fat-tree'\nk = 4\n{RATES}"
        "[[workload]]\nname = 'all'\nkind = 'flow-list'\nfile = 'flows.csv'\n"
    )
    read = False
    with pytest.raises(StopError), _stopped_soon():
        core.check(text, *_where(tmp_path), [])
        read = True
    assert not read


def test_building_is_ended_by_a_signal(tmp_path: Path) -> None:
    told: list[core.Progress] = []
    with pytest.raises(StopError), _stopped_soon():
        core.run(SLOW, *_where(tmp_path), [], None, core.RunOptions(progress=told.append))
    assert not told


def test_memory_is_watched_while_a_run_is_built(tmp_path: Path) -> None:
    told: list[core.Progress] = []

    class Late(Watched):
        """A watcher that was not told how much memory the run needs."""

        def expect(self, parts: list[core.MemoryPart]) -> None:
            assert sum(value for _, value, _ in parts) > 100_000_000

    with pytest.raises(MemoryLimitError, match="before its first event"):
        late = core.RunOptions(progress=Late(told.append, 1_000_000))
        core.run(SLOW, *_where(tmp_path), [], None, late)
    assert not told


def test_a_run_that_would_not_fit_is_refused_by_the_command(tmp_path: Path) -> None:
    scenario = tmp_path / "s.toml"
    scenario.write_text(SLOW.replace("n = 8", "n = 15"))
    done = _command("run", str(scenario), "--memory", "1 GB", "--out", str(tmp_path / "r"))
    said, complained = done.communicate(timeout=HANG_S)
    assert (done.returncode, said) == (2, "")
    assert "needs about" in complained and "(routes " in complained and "--memory" in complained
    assert [path.name for path in tmp_path.iterdir()] == ["s.toml"]


def test_building_is_ended_by_ctrl_c(tmp_path: Path) -> None:
    scenario = tmp_path / "s.toml"
    scenario.write_text(SLOW)
    process = _command("run", str(scenario), "--out", str(tmp_path / "r"))
    try:
        # The table of routes is allocated before the first search begins, so memory jumps.
        while process.poll() is None and _held(process.pid) < 150_000_000:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        said, complained = process.communicate(timeout=HANG_S)
    finally:
        process.kill()
    assert (process.returncode, said) == (130, ""), complained
    assert complained == "eastwest: interrupted; no result was written\n"
    assert [path.name for path in tmp_path.iterdir()] == ["s.toml"]


def _command(*arguments: str) -> subprocess.Popen[str]:
    code = "from eastwest.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def _held(process: int) -> int:
    try:
        pages = Path(f"/proc/{process}/statm").read_text().split()
    except OSError:
        return 0
    return int(pages[1]) * os.sysconf("SC_PAGE_SIZE") if pages else 0


def test_ctrl_c_while_modules_are_loaded_prints_no_traceback(tmp_path: Path) -> None:
    # The command imports ``typer`` before it calls ``main``.
    (tmp_path / "typer.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "eastwest", "version"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_a_second_ctrl_c_does_not_hide_a_checkpoint(tmp_path: Path) -> None:
    keeper = Keeper(60, folder=tmp_path)
    place = keeper.place("plan")
    assert place is not None
    Path(place).write_text("state of the run")
    keeper.close()
    assert keeper.goes_on
    again = Keeper(60, folder=tmp_path)
    assert again.find("plan") == place and again.goes_on
    again.done()
    assert not again.goes_on
