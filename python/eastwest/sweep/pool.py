"""Processes of a sweep: assigns runs to them, collects events, replaces a process that dies.

Processes are started with ``subprocess`` rather than ``multiprocessing``, so that a user's script
is not run again in each of them.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import IO, Any, Protocol

from eastwest.errors import InputError
from eastwest.memory import allowed_bytes
from eastwest.store import Store
from eastwest.sweep.worker import Event, Setup, Task, perform
from eastwest.units import clean

#: Processes share the cores: threads of libraries within a process would only slow the others down.
_ONE_THREAD = {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

#: Consecutive processes that may die before their first run, for example where memory is short.
_MOST_STILLBORN = 3
#: Code of a process. It exits as soon as the other end of its pipe is closed, in whatever way its
#: parent ended; this is watched before the imports, which take longest.
_MAIN = """
import os, select, sys, threading
handle = int(sys.argv[1])
def watch():
    pipe = select.poll()
    pipe.register(handle, 0)
    pipe.poll()
    os._exit(0)
threading.Thread(target=watch, daemon=True).start()
from eastwest.sweep.worker import main
main(handle)
"""


def _environment() -> dict[str, str]:
    """Return the environment in which a process imports the package of this process."""
    package = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    return {**os.environ, **_ONE_THREAD, "PYTHONPATH": path}


class Pool(Protocol):
    """Interface of a pool that executes the runs of a sweep."""

    #: Whether the tasks run on other machines.
    remote: bool

    @property
    def size(self) -> int:
        """Number of runs that the pool executes at one time."""

    def open(self) -> None:
        """Prepare for tasks. Raises ``InputError`` where that is not possible."""

    def submit(self, task: Task) -> None:
        """Put a task at the end of the queue."""

    def events(self, timeout_s: float) -> list[Event]:
        """Return new events; while runs are in progress, wait up to ``timeout_s`` for the first."""

    def stop(self) -> None:
        """Stop all runs at once; unfinished runs are lost. Other tasks can be submitted."""

    def close(self) -> None:
        """Stop all runs, and release everything."""


class Here:
    """Executor within this process, one run after the other: for debugging and for tests."""

    size = 1
    remote = False

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._queue: deque[Task] = deque()

    def open(self) -> None:
        """Do nothing: this process needs no preparation."""

    def submit(self, task: Task) -> None:
        """Put a task at the end of the queue."""
        self._queue.append(task)

    def events(self, timeout_s: float) -> list[Event]:
        """Run the next task."""
        del timeout_s  # a run cannot be interrupted
        if not self._queue:
            return []
        heard: list[Event] = []
        last = perform(self._setup, self._queue.popleft(), heard.append)
        return [*heard, last]

    def stop(self) -> None:
        """Remove the tasks that have not been run."""
        self._queue.clear()

    close = stop


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    link: Connection[Any, Any]
    said: IO[bytes]
    task: Task | None = None
    #: Whether the process is ready to accept runs.
    ready: bool = False


class Processes:
    """Executor with processes of its own, started once."""

    remote = False

    def __init__(self, setup: Setup, size: int, sharing: int | None = None) -> None:
        self.size = size
        # Share of the memory available: `sharing` processes run on this machine.
        self._setup = replace(setup, memory_bytes=allowed_bytes(sharing or size))
        self._queue: deque[Task] = deque()
        self._workers: list[_Worker] = []
        self._stillborn = 0

    def open(self) -> None:
        """Do nothing: processes are started when there is work for them."""

    def submit(self, task: Task) -> None:
        """Put a task at the end of the queue; starts a process while there are too few."""
        self._queue.append(task)
        if len(self._workers) < self.size:
            self._workers.append(self._start())
        self._feed()

    def events(self, timeout_s: float) -> list[Event]:
        """Return the processes' events; the event of a dead process is ``died`` or ``lost``."""
        busy = {w.link: w for w in self._workers if w.task is not None}
        found: list[Event] = []
        for link in wait(list(busy), timeout_s):
            worker = busy[link]  # type: ignore[index]
            try:
                event: Event = worker.link.recv()
            except (EOFError, OSError):
                event = self._replace_dead(worker)
            if event.what == "ready":
                worker.ready = True
                self._stillborn = 0
                continue
            if event.what != "progress":
                worker.task = None
            found.append(event)
        self._feed()
        return found

    def stop(self) -> None:
        """Stop all processes at once; unfinished runs are lost."""
        for worker in self._workers:
            worker.link.close()
            worker.process.kill()
        for worker in self._workers:
            worker.process.wait()
            worker.said.close()
        self._workers = []
        self._queue.clear()

    close = stop

    def _start(self) -> _Worker:
        ours, theirs = Pipe()
        said = tempfile.TemporaryFile()  # noqa: SIM115  lives as long as the process
        with contextlib.closing(theirs):
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _MAIN, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )
        with contextlib.suppress(OSError):  # a process that died at once is found when it is asked
            ours.send(self._setup)
        return _Worker(process, ours, said)

    def _feed(self) -> None:
        for worker in self._workers:
            if worker.task is None and self._queue:
                worker.task = self._queue.popleft()
                with contextlib.suppress(OSError):
                    worker.link.send(worker.task)

    def _replace_dead(self, worker: _Worker) -> Event:
        """Return the event for a process that ended, and start another in its place."""
        code = worker.process.wait()
        worker.said.seek(0)
        last = worker.said.read()[-2000:].decode(errors="replace").strip()
        task = worker.task
        self._stillborn += not worker.ready
        worker.link.close()
        worker.said.close()
        self._workers.remove(worker)
        self._workers.append(self._start())
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        why = ", perhaps for lack of memory" if code == -9 else ""
        message = f"its process ended with {how}{why}" + (f": {clean(last, 1500)}" if last else "")
        # A process that dies in a run fails that run; several that die before their first run stop
        # the sweep.
        what = "world" if self._stillborn >= _MOST_STILLBORN else "died"
        return Event(task.number if task else -1, what, message)


def start(
    setup: Setup, jobs: int, dask: str | None, store: Store, say: Callable[[str], None]
) -> Pool:
    """Return the executor of tasks: a Dask cluster, processes of this machine, or this process.

    Raises ``InputError`` where the user's mechanisms cannot be loaded there.
    """
    if (jobs or dask) and setup.mechanisms.classes:
        named = ", ".join(setup.mechanisms.classes)
        raise InputError(
            f"{named}: the processes of a sweep know classes by their files only; name the "
            "Python file instead of the class, or run within this process with jobs=0"
        )
    if dask is not None:
        from eastwest.sweep.cluster import Cluster  # noqa: PLC0415  built upon this file

        return Cluster(setup, dask, store, say)
    return Processes(setup, jobs) if jobs else Here(setup)
