"""Runs of the studio: a queue, one worker process, and streams that never wait for a reader.

Counters of a frame count from the start of the run. A reader of a stream receives the difference
from the frame that it received before. Where a reader is slower than the run, the list of frames
merges neighbours, so that the memory does not grow.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import shutil
import threading
import time
import tomllib
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from dataclasses import replace as changed_copy
from pathlib import Path
from typing import Any

import numpy as np

from eastwest.child import Child
from eastwest.partial import Partial
from eastwest.results import Result
from eastwest.studio.frames import Frames
from eastwest.studio.refused import RefusedError
from eastwest.studio.worker import Control, Message, Task, ended
from eastwest.views.evidence import seconds

#: Maximum number of runs that wait.
MOST_WAITING = 8
#: Number of finished runs whose results are stored.
MOST_STORED = 12
#: Wall time in s after which a worker that does not obey is killed.
_PATIENCE_S = 3.0
#: Wall time in s after which a stream without news sends its state again, so that the server
#: notices a reader that has gone.
_SILENCE_S = 10.0
#: Number of worker processes that may die in a row before they are ready.
_MOST_STILLBORN = 3
_ENDED = {"done", "stopped", "failed"}


@dataclass
class Run:
    """A run of the studio with its newest state."""

    number: int
    label: str
    task: Task
    keep: bool
    #: ``queued``, ``running``, ``paused``, ``done``, ``stopped`` or ``failed``.
    state: str = "queued"
    #: Frames of the run so far, and its newest progress.
    frames: Frames = field(default_factory=Frames)
    progress: dict[str, Any] | None = None
    end: dict[str, Any] | None = None
    begun: float = 0.0
    #: Number of changes of the state so far.
    version: int = 0
    readers: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = field(default_factory=set)
    stop_wanted: bool = False
    #: Number of times that the run has paused: a step ends with a new pause.
    pauses: int = 0

    def changed(self) -> None:
        """Count a change, and wake up the streams."""
        self.version += 1
        for loop, event in list(self.readers):
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(event.set)

    @property
    def wall_s(self) -> float:
        """Wall time of the run so far, in s."""
        if self.end is not None:
            return float(self.end.get("wall_s", 0.0))
        return time.monotonic() - self.begun if self.begun else 0.0

    @property
    def simulated_s(self) -> float | None:
        """Simulated time of the newest state, in s; None before the first."""
        if self.end is not None and self.end["summary"]:
            return float(self.end["summary"].get("simulated_s", 0.0))
        if self.frames.last is not None:
            return float(self.frames.last["time_s"])
        return float(self.progress["simulated_s"]) if self.progress else None

    def told(self) -> dict[str, Any]:
        """Return the run as a row of the list of runs."""
        end = self.end or {}
        return {
            "run": self.number,
            "label": self.label,
            "state": self.state,
            "set": self.task.overrides,
            "seed": self.task.seed if not end.get("summary") else end["summary"].get("seed"),
            "wall_s": self.wall_s,
            "simulated_s": self.simulated_s,
            "digest": end.get("digest"),
            "figures": end.get("figures", []),
            "error": end.get("error"),
            "keep": self.keep,
        }


class Difference:
    """Objects of a stream for one reader: what changed since the object before."""

    def __init__(self) -> None:
        self._bytes: Any = None
        self._drops: Any = None
        self._marks: Any = None

    def of(self, frame: dict[str, Any], wall_s: float) -> dict[str, Any]:
        """Return the object for a frame."""
        packets = np.frombuffer(frame["queue_packets"], "<u4")
        waiting = np.frombuffer(frame["queue_bytes"], "<u8")
        carried, drops, marks = (
            np.frombuffer(frame[name], "<u8").astype(np.int64)
            for name in ("carried", "drops", "marks")
        )
        zero = np.zeros_like(carried)
        more = [
            new - (zero if old is None else old)
            for new, old in ((carried, self._bytes), (drops, self._drops), (marks, self._marks))
        ]
        self._bytes, self._drops, self._marks = carried, drops, marks
        some = np.flatnonzero(more[0] | more[1] | more[2])
        queued = np.flatnonzero(packets)
        paused = np.flatnonzero(np.frombuffer(frame["paused"], "u1"))
        told = {
            "kind": "frame",
            "t": frame["time_s"],
            "grid": frame["grid"],
            "q": np.column_stack([queued, packets[queued], waiting[queued]]).tolist(),
            "d": np.column_stack([some, *(each[some] for each in more)]).tolist(),
            "p": paused.tolist(),
            "e": [list(pair) for pair in frame["energy_j"]],
            "jobs": [frame["jobs_done"], frame["jobs_total"]],
            "flows": frame["flows_done"],
            "hops": frame["packet_hops"],
            "wall": wall_s,
        }
        for name in ("open_messages", "timeouts", "retransmits"):
            if name in frame:
                told[name] = frame[name]
        return told


class Runs:
    """List of runs with the worker process that simulates them one after the other."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._runs: dict[int, Run] = {}
        self._queue: deque[Run] = deque()
        #: Folders of removed runs.
        self._old: deque[Path] = deque()
        self._current: Run | None = None
        self._last = 0
        self._closed = False
        self._stillborn = 0
        self._ready = False
        self._scratch = Partial.scratch()
        self._child = self._start()
        self._listener = threading.Thread(target=self._listen, name="runs", daemon=True)
        self._listener.start()

    @property
    def folder(self) -> Path:
        """Folder with the results of the runs, which is removed at the end."""
        return self._scratch.path

    def _start(self) -> Child:
        self._ready = False
        return Child("eastwest.studio.worker", {})

    def add(self, task: Task, label: str, keep: bool, replace: bool) -> Run:
        """Add a run; ``task`` has any number. With ``replace``, other runs are stopped first.

        Raises ``RefusedError`` where too many runs wait.
        """
        with self._lock:
            self.check_open()
            if replace:
                for waiting in list(self._queue):
                    self._finish(waiting, ended("stopped", None))
                self._queue.clear()
                if self._current is not None:
                    self._ask_to_stop(self._current)
            elif len(self._queue) >= MOST_WAITING:
                raise RefusedError(
                    409, f"{MOST_WAITING} runs wait already: stop one, or wait until one ends"
                )
            self._last += 1
            out = self.folder / f"run-{self._last}"
            run = Run(self._last, label, _numbered(task, self._last, out), keep)
            self._runs[run.number] = run
            self._queue.append(run)
            self._feed()
            return run

    def check_open(self) -> None:
        """Raise ``RefusedError`` if the studio closes."""
        if self._closed:
            raise RefusedError(409, "the studio is closing")

    def _feed(self) -> None:
        """Send the next waiting run to the worker, if the worker is free."""
        if self._current is not None or not self._queue:
            return
        run = self._current = self._queue.popleft()
        run.state, run.begun = "running", time.monotonic()
        run.changed()
        with contextlib.suppress(OSError):  # the listener notices the end of the process
            self._child.link.send(run.task)

    def control(self, number: int, control: Control) -> None:
        """Pause, stop, or let go on a run. Raises ``RefusedError`` where it has ended."""
        with self._lock:
            run = self.get(number)
            if run.state in _ENDED:
                raise RefusedError(409, f"run {number} has ended")
            if control.stop:
                if run in self._queue:
                    self._queue.remove(run)
                    self._finish(run, ended("stopped", None))
                else:
                    self._ask_to_stop(run)
            elif run is self._current:
                self._send(control)
            else:
                raise RefusedError(409, f"run {number} has not begun")

    def _ask_to_stop(self, run: Run) -> None:
        """Ask the worker to stop a run; kill the worker if it does not obey in time."""
        if run.stop_wanted:
            return
        run.stop_wanted = True
        child = self._child
        with contextlib.suppress(RefusedError):  # it is killed soon
            self._send(Control(run.number, stop=True))

        def insist() -> None:
            with self._lock:
                if run.state not in _ENDED and self._child is child:
                    child.kill()

        timer = threading.Timer(_PATIENCE_S, insist)
        timer.daemon = True
        timer.start()

    def _send(self, control: Control) -> None:
        """Send a control to the worker. Raises ``RefusedError`` where sending would block.

        A worker that is busy, for example with the tables of a result, does not read its pipe. The
        lock must not be held until it does.
        """
        with contextlib.suppress(OSError):  # the process has ended
            pipe = select.poll()
            pipe.register(self._child.link.fileno(), select.POLLOUT)
            if not pipe.poll(0):
                raise RefusedError(503, "the run does not react now: try again later")
            self._child.link.send(control)

    def _listen(self) -> None:
        """Receive the reports of the worker, and start another worker where it has died."""
        while not self._closed:
            child = self._child
            try:
                message = child.link.recv()
            except (EOFError, OSError):
                if not self._replace(child):
                    return
                continue
            with self._lock:
                self._hear(message)
            self._clean()

    def _hear(self, message: Message) -> None:
        if message.kind == "ready":
            self._ready, self._stillborn = True, 0
        run = self._runs.get(message.run)
        if run is None or run.state in _ENDED:
            return
        if message.kind == "frame":
            run.frames.add(message.content)
        elif message.kind == "progress":
            run.progress = message.content
        elif message.kind == "paused":
            run.state = "paused" if message.content else "running"
            run.pauses += bool(message.content)
        elif message.kind == "end":
            self._finish(run, message.content)
            return
        run.changed()

    def _replace(self, child: Child) -> bool:
        """Start another worker in the place of one that has died; False if the studio closes."""
        with self._lock:
            if self._closed:
                return False
            why = child.ended()
            child.close()
            run = self._current
            # A worker may also be killed before it is ready, because the user stopped its run.
            self._stillborn += not self._ready and not (run is not None and run.stop_wanted)
            broken = self._stillborn >= _MOST_STILLBORN
            if not broken:
                try:
                    self._child = self._start()
                except OSError as error:
                    broken, why = True, f"{why}; {(error.strerror or str(error)).lower()}"
                    self._stillborn = 0
            lost = [run] if run is not None else []
            if broken:
                lost += self._queue
                self._queue.clear()
                self._closed = True
                if self._stillborn:
                    why = f"{why}; {_MOST_STILLBORN} processes died at their start"
                why = f"{why}: start the studio again"
            for each in lost:
                stopped = each.stop_wanted
                end = ended("stopped", None) if stopped else ended("failed", why)
                self._finish(each, end)
            return not broken

    def _finish(self, run: Run, end: dict[str, Any]) -> None:
        """Store the end of a run, and send the next run to the worker."""
        run.end = {"wall_s": run.wall_s, **end}
        run.state = end["state"]
        if run is self._current:
            self._current = None
        run.frames.shrink()
        run.changed()
        self._tidy()
        self._feed()

    def _tidy(self) -> None:
        """Remove the results of the oldest runs that have ended, beyond the newest twelve.

        Runs that the user wants to keep are removed last.
        """
        over = [run for run in self._runs.values() if run.state in _ENDED]
        order = sorted(over, key=lambda run: (run.keep, run.number))
        for run in order[: max(0, len(over) - MOST_STORED)]:
            self._remove(run)

    def _remove(self, run: Run) -> None:
        del self._runs[run.number]
        self._old.append(run.task.out)

    def _clean(self) -> None:
        """Remove the folders of removed runs: slow, so that no lock is held."""
        while self._old:
            with contextlib.suppress(IndexError):  # another thread was faster
                shutil.rmtree(self._old.popleft(), ignore_errors=True)

    def delete(self, number: int) -> None:
        """Remove a run and its result. Raises ``RefusedError`` where it goes on."""
        with self._lock:
            run = self.get(number)
            if run.state not in _ENDED:
                raise RefusedError(409, f"run {number} goes on: stop it first")
            self._remove(run)
        self._clean()

    def get(self, number: int) -> Run:
        """Return a run by its number. Raises ``RefusedError`` where there is none."""
        with self._lock:
            run = self._runs.get(number)
        if run is None:
            raise RefusedError(
                404, f"there is no run {number}: the newest {MOST_STORED} are stored"
            )
        return run

    def listed(self) -> list[dict[str, Any]]:
        """Return all runs, the newest first."""
        with self._lock:
            return [run.told() for run in sorted(self._runs.values(), key=lambda r: -r.number)]

    def result(self, number: int) -> Result:
        """Return the result of a run. Raises ``RefusedError`` where it has none."""
        run = self.get(number)
        if run.state != "done":
            raise RefusedError(409, f"run {number} has no result: it is {run.state}")
        return Result(run.task.out)

    async def stream(self, number: int) -> AsyncIterator[dict[str, Any]]:
        """Yield the objects of a run's stream, from the newest state to its end."""
        run = self.get(number)
        news = asyncio.Event()
        reader = (asyncio.get_running_loop(), news)
        run.readers.add(reader)
        news.set()
        difference, begun, state, progress = Difference(), False, None, None
        shown_s = -1.0
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), _SILENCE_S)
                news.clear()
                # The listener's thread replaces these objects and does not change them. The state
                # is read first, so that its frame comes before it.
                present = (run.state, run.pauses)
                end, new = run.end, run.progress
                for frame in run.frames.after(shown_s):
                    shown_s = frame["time_s"]
                    if not begun:
                        begun = True
                        yield {
                            "kind": "start",
                            "links": len(frame["paused"]),
                            "target_s": target_s(run.task),
                        }
                    yield difference.of(frame, run.wall_s)
                if new is not None and new is not progress:
                    progress = new
                    yield {
                        "kind": "progress",
                        "done": new["done"],
                        "t": new["simulated_s"],
                        "wall": run.wall_s,
                    }
                if present != state and end is None:
                    state = present
                    yield {"kind": "state", "state": present[0]}
                if end is not None:
                    yield {"kind": "end", **end}
                    return
        finally:
            run.readers.discard(reader)

    def close(self) -> None:
        """Stop the worker, end all streams, and remove all results."""
        with self._lock:
            self._closed = True
            self._child.kill()
            for run in self._runs.values():
                if run.state not in _ENDED:
                    run.end, run.state = ended("stopped", None), "stopped"
                    run.changed()
        if threading.current_thread() is not self._listener:
            self._listener.join(timeout=5)
        self._child.close()
        self._scratch.close()


def target_s(task: Task) -> float | None:
    """Return the simulated time at which a run ends at the latest, in s; None without one."""
    given = [value for path, value in task.overrides if path.strip() == "duration"]
    if given:
        return seconds(given[-1].strip().strip("\"'"))
    try:
        return seconds(tomllib.loads(task.source.text).get("duration"))
    except (ValueError, RecursionError):
        return None


def _numbered(task: Task, number: int, out: Path) -> Task:
    return changed_copy(task, run=number, out=out)
