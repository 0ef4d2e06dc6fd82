"""Worker process of the studio: simulates runs one by one and reports their state.

The process receives a ``Task`` for each run, and ``Control`` messages while the run goes on. It
sends ``Message`` objects. It exits when the studio closes the pipe (see ``eastwest.child``).
"""

from __future__ import annotations

import contextlib
import math
import signal
import time
from collections import deque
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from eastwest import core
from eastwest.errors import in_one_line
from eastwest.interrupts import FinishedInterrupt
from eastwest.memory import available_bytes, held_bytes
from eastwest.results import Result, TargetFolder
from eastwest.run import Source, simulate
from eastwest.store import reset_peak
from eastwest.units import clean

#: Wall time between two frames that are sent, in s.
FRAME_WALL_S = 1 / 30
#: Wall time in s between two calls of the hook of a run, which receives frames and controls: less
#: than between two sent frames, so that a frame that comes a little too early delays little.
_CALL_WALL_S = FRAME_WALL_S / 4
#: Share of the available memory that a run may use.
_MEMORY_SHARE = 0.25
#: Simulated time between the first two calls of the hook, in s.
_FIRST_INTERVAL_S = 1e-6
#: Largest growth of the simulated time between two calls.
_GROWTH = 2.0
_PROGRESS_WALL_S = 0.1
#: First interval between two frames of the curves of a run, in simulated s.
_GRID_S = 1e-5
#: Maximum number of frames, minimum number, and maximum number of frames times links, of the curves
#: of a run.
MOST_FRAMES, _LEAST_FRAMES, _MOST_CELLS = 1_000, 50, 100_000


@dataclass(frozen=True)
class Task:
    """A run: its number, its scenario, the folder of its result, and how its state is shown."""

    run: int
    source: Source
    overrides: core.Overrides
    seed: int | None
    out: Path
    #: Whether frames with the state of all links are sent.
    live: bool
    #: Simulated time between two frames in s; None: about 30 frames for each second of wall time.
    frame_s: float | None
    #: Simulated s for each s of wall time; None: as fast as possible.
    speed: float | None
    #: Whether the run pauses before its first event.
    paused: bool = False


@dataclass(frozen=True)
class Control:
    """A change of a run that goes on; only one of the fields is set."""

    run: int
    pause: bool | None = None
    #: Simulated time in s after which the run pauses again.
    step: float | None = None
    stop: bool = False
    #: Simulated s for each s of wall time, in a list of one; an empty list changes nothing.
    speed: list[float | None] = field(default_factory=list)


@dataclass(frozen=True)
class Message:
    """A report about a run: ``ready``, ``frame``, ``progress``, ``paused`` or ``end``."""

    run: int
    kind: str
    content: Any = None


class _StoppedError(Exception):
    """The user stopped the run."""


class Grid:
    """Simulated times of the frames that make up the curves of a run.

    The times are multiples of an interval. The interval doubles whenever the run has many frames,
    so that curves do not depend on how fast the user watched the run.
    """

    def __init__(self, interval_s: float | None) -> None:
        self._interval_s = interval_s or _GRID_S
        self._most = 0 if interval_s is None else MOST_FRAMES
        self._reached = 0

    @property
    def next_s(self) -> float:
        """Simulated time of the next frame of the grid, in s."""
        return (self._reached + 1) * self._interval_s

    def reached(self, at_s: float, links: int) -> bool:
        """Whether a simulated time is, or has passed, the next time of the grid.

        ``links`` is the number of links of the fabric: a run of a large fabric has fewer frames.
        """
        if at_s < self.next_s * (1 - 1e-9):
            return False
        self._reached = math.floor(at_s / self._interval_s * (1 + 1e-9))
        most = self._most or max(_LEAST_FRAMES, min(MOST_FRAMES // 4, _MOST_CELLS // max(links, 1)))
        while self._reached >= most:
            self._interval_s, self._reached = 2 * self._interval_s, self._reached // 2
        return True


class Watch:
    """Observer of a run: sends frames and progress, and obeys the controls of the user.

    It is the hook ``live`` of a run and its progress callback.
    """

    def __init__(self, task: Task, link: Connection[Any, Any]) -> None:
        self._task = task
        self._link = link
        self._waiting: deque[Control] = deque()
        self._interval = _FIRST_INTERVAL_S
        self._speed = task.speed
        self._paused = task.paused
        #: Simulated time at which the run pauses after a step, in s; None without a step.
        self._pause_at: float | None = None
        self._grid = Grid(task.frame_s)
        self._unsent: core.Frame | None = None
        now = time.monotonic()
        self._last_sent = self._last_call = self._last_progress = -1.0
        #: Wall and simulated time from which the speed counts.
        self._pace_from = (now, 0.0)
        self.first_s = 0.0
        self._last_at = 0.0

    def frame(self, frame: core.Frame) -> float:
        """Send a frame if one is due, wait while the run is paused, and return the next time."""
        at = frame["time_s"]
        self._unsent = frame
        if self._last_call >= 0:
            self._adapt(time.monotonic() - self._last_call, at - self._last_at)
        self._last_at = at
        if self._pause_at is not None and at >= self._pause_at * (1 - 1e-12):
            self._paused, self._pause_at = True, None
        self._obey(at)
        self._wait_for_pace(at)
        on_grid = self._grid.reached(at, len(frame["paused"]))
        late = time.monotonic() - self._last_sent >= FRAME_WALL_S
        if on_grid or late or self._paused:
            self._send(frame, on_grid)
        if self._paused:
            self._hold(at)
        self._last_call = time.monotonic()
        return self._next(at)

    def _adapt(self, took_s: float, simulated_s: float) -> None:
        """Change the simulated time between calls, so that they come at equal wall times.

        The simulation took ``took_s`` of wall time for the last ``simulated_s``.
        """
        ratio = _CALL_WALL_S / max(took_s, 1e-9)
        self._interval = max(simulated_s * min(_GROWTH, max(ratio, 0.02)), 1e-9)

    def _send(self, frame: core.Frame, on_grid: bool) -> None:
        self._last_sent, self._unsent = time.monotonic(), None
        self._link.send(Message(self._task.run, "frame", {**frame, "grid": on_grid}))

    def finish(self) -> None:
        """Send the last frame of the run, if it has not been sent."""
        if self._unsent is not None:
            self._send(self._unsent, True)

    def _next(self, at: float) -> float:
        step = self._interval
        if self._speed is not None:
            step = min(step, self._speed * _CALL_WALL_S)
        wanted = min(at + step, self._grid.next_s)
        if self._pause_at is not None:
            wanted = min(wanted, self._pause_at)
        return wanted

    def _wait_for_pace(self, at: float) -> None:
        """Wait until the wall time that belongs to the simulated time ``at`` at the set speed."""
        while self._speed is not None and not self._paused:
            wall, simulated = self._pace_from
            left = wall + (at - simulated) / self._speed - time.monotonic()
            if left <= 0:
                return
            self._obey(at, wait_s=min(left, 1.0))

    def _hold(self, at: float) -> None:
        """Wait until the user lets the paused run go on."""
        self._link.send(Message(self._task.run, "paused", True))
        while self._paused:
            self._obey(at, wait_s=None)
        self._link.send(Message(self._task.run, "paused", False))
        self._pace_from = (time.monotonic(), at)

    def _obey(self, at: float, wait_s: float | None = 0.0) -> None:
        """Apply the controls that have arrived; wait up to ``wait_s`` for one (None: for ever)."""
        while self._waiting or self._link.poll(wait_s):
            control = self._waiting.popleft() if self._waiting else self._link.recv()
            wait_s = 0.0
            if control.run != self._task.run:
                continue
            if control.stop:
                raise _StoppedError
            if control.pause is not None:
                self._paused, self._pause_at = control.pause, None
            if control.step is not None:
                self._paused, self._pause_at = False, at + control.step
            if control.speed:
                self._speed = control.speed[0]
                self._pace_from = (time.monotonic(), at)

    def __call__(self, progress: core.Progress) -> None:
        """Send the progress of a run; stop the run if the user wants it."""
        if self._task.live:
            # A pause must wait for the next frame, which shows the state at this time.
            while self._link.poll(0):
                control = self._link.recv()
                if control.stop and control.run == self._task.run:
                    raise _StoppedError
                self._waiting.append(control)
            return
        self._obey(progress["simulated_s"])
        if self._paused:
            self._hold(progress["simulated_s"])
        now = time.monotonic()
        if now - self._last_progress >= _PROGRESS_WALL_S:
            self._last_progress = now
            content = {**progress, "done": core.share_done(progress)}
            self._link.send(Message(self._task.run, "progress", content))


def perform(task: Task, link: Connection[Any, Any]) -> dict[str, Any]:
    """Simulate a run and return its end: state, error, and if it is done the main results."""
    reset_peak()
    watch = Watch(task, link)
    free = available_bytes()
    most = None if free is None else held_bytes() + int(_MEMORY_SHARE * free)
    live = watch if task.live else None
    options = core.RunOptions(progress=watch, memory_bytes=most, live=live)
    begun = time.monotonic()
    try:
        target = TargetFolder(task.out, durable=False)
        result = simulate(task.source, task.overrides, task.seed, target, options)
        watch.finish()
        end = of_result(result)
    except _StoppedError:
        end = ended("stopped", None)
    except FinishedInterrupt:
        raise
    except core.scenario_error() as error:
        end = {**ended("failed", in_one_line(error)), "problems": getattr(error, "problems", [])}
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        end = ended("failed", f"{where}{error.strerror or error}")
    except BaseException as error:  # a panic in Rust does not derive from Exception
        usual = isinstance(error, (core.run_error(), ValueError, MemoryError))
        text = str(error) or ("out of memory" if isinstance(error, MemoryError) else "")
        end = ended("failed", text if usual and text else f"{type(error).__name__}: {text}")
    return {**end, "wall_s": time.monotonic() - begun}


def ended(state: str, error: str | None) -> dict[str, Any]:
    """Return the end of a run without a result."""
    return {
        "state": state,
        "error": None if error is None else clean(error, 2000),
        "summary": None,
        "digest": None,
        "figures": [],
        "goals": [],
        "notes": [],
    }


def of_result(result: Result) -> dict[str, Any]:
    """Return the end of a run with a result: its summary, digest, main figures and goals."""
    from eastwest.studio.figures import figures, goals, notes  # noqa: PLC0415  slow to load

    return {
        **ended("done", None),
        "summary": result.summary,
        "digest": result.digest,
        "figures": figures(result),
        "goals": goals(result),
        "notes": notes(result),
    }


def main(handle: int) -> None:
    """Simulate the runs that the studio sends, until it closes the pipe ``handle``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the studio handles Ctrl-C
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    link: Connection[Any, Any] = Connection(handle)
    import polars  # noqa: F401, PLC0415  slow to load: not within the first run

    from eastwest import by_workload  # noqa: F401, PLC0415
    from eastwest.studio import figures  # noqa: F401, PLC0415

    link.send(Message(-1, "ready"))
    with contextlib.suppress(EOFError, OSError):  # the studio has ended
        while True:
            task = link.recv()
            if isinstance(task, Task):
                link.send(Message(task.run, "end", perform(task, link)))
