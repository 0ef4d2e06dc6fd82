"""Pool of processes of a sweep: assigns runs, collects events, replaces a process that dies.

Processes are started with ``subprocess`` and not with ``multiprocessing``, which would run the
user's script again in each process.
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

#: Environment variables that limit libraries to one thread in each process, because the processes
#: of a sweep use all cores already.
_ONE_THREAD = {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

#: Number of consecutive processes that die before their first run (for example because memory is
#: short) after which the sweep stops.
_MOST_STILLBORN = 3
#: Python code of a worker process. The process exits as soon as the pipe to its parent is closed,
#: also if the parent was killed. The watching thread starts before the slow imports.
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
    """Return environment variables with which a process imports Eastwest as this process does."""
    package = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    return {**os.environ, **_ONE_THREAD, "PYTHONPATH": path}


class Pool(Protocol):
    """Interface of a pool that executes the runs of a sweep."""

    #: Whether the pool executes runs on other machines.
    remote: bool

    @property
    def size(self) -> int:
        """Number of runs that the pool executes at one time."""

    def open(self) -> None:
        """Prepare the pool for runs; raise ``InputError`` where that is not possible."""

    def submit(self, task: Task) -> None:
        """Add a run at the end of the queue."""

    def events(self, timeout_s: float) -> list[Event]:
        """Return new events; while runs are in progress, wait up to ``timeout_s`` for the first.

        ``Here`` executes a whole run instead of waiting.
        """

    def stop(self) -> None:
        """Stop all runs at once; unfinished runs are lost. Other runs can be submitted later."""

    def close(self) -> None:
        """Stop all runs, and release processes and connections."""


class Here:
    """Pool that executes runs in this process, one after the other: for debugging and tests."""

    size = 1
    remote = False

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._queue: deque[Task] = deque()

    def open(self) -> None:
        """Do nothing: this process needs no preparation."""

    def submit(self, task: Task) -> None:
        """Add a run at the end of the queue."""
        self._queue.append(task)

    def events(self, timeout_s: float) -> list[Event]:
        """Execute the next run of the queue to its end, and return its events; ignore the time."""
        del timeout_s  # not used: in this pool, a run cannot be interrupted
        if not self._queue:
            return []
        heard: list[Event] = []
        last = perform(self._setup, self._queue.popleft(), heard.append)
        return [*heard, last]

    def stop(self) -> None:
        """Remove the runs of the queue that have not been executed."""
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
    """Pool of processes on this machine, each of which executes many runs one after the other."""

    remote = False

    def __init__(self, setup: Setup, size: int, sharing: int | None = None) -> None:
        self.size = size
        # Each of `sharing` processes may use an equal share of the available memory.
        self._setup = replace(setup, memory_bytes=allowed_bytes(sharing or size))
        self._queue: deque[Task] = deque()
        self._workers: list[_Worker] = []
        self._stillborn = 0

    def open(self) -> None:
        """Do nothing: processes are started when runs are submitted."""

    def submit(self, task: Task) -> None:
        """Add a run at the end of the queue; start a process if there are fewer than ``size``."""
        self._queue.append(task)
        if len(self._workers) < self.size:
            self._workers.append(self._start())
        self._feed()

    def events(self, timeout_s: float) -> list[Event]:
        """Return new events of all processes; wait up to ``timeout_s`` for the first.

        A process that died causes the event ``died``, or ``world`` after three processes in a row
        that died before they were ready for runs.
        """
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
        said = tempfile.TemporaryFile()  # noqa: SIM115  stays open as long as the process lives
        with contextlib.closing(theirs):
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _MAIN, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )
        with contextlib.suppress(OSError):  # the death of the process is noticed in events()
            ours.send(self._setup)
        return _Worker(process, ours, said)

    def _feed(self) -> None:
        for worker in self._workers:
            if worker.task is None and self._queue:
                worker.task = self._queue.popleft()
                with contextlib.suppress(OSError):
                    worker.link.send(worker.task)

    def _replace_dead(self, worker: _Worker) -> Event:
        """Return the event (``died`` or ``world``) for a process that ended, and replace it."""
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
        why = ", perhaps because the memory was full" if code == -9 else ""
        message = f"the process of the run ended with {how}{why}" + (
            f": {clean(last, 1500)}" if last else ""
        )
        # If a process dies in a run, this run fails. If several processes die before their first
        # run, the sweep stops.
        what = "world" if self._stillborn >= _MOST_STILLBORN else "died"
        return Event(task.number if task else -1, what, message)


def start(
    setup: Setup, jobs: int, dask: str | None, store: Store, say: Callable[[str], None]
) -> Pool:
    """Return the pool for runs: a Dask cluster, ``jobs`` processes, or this process (``jobs`` = 0).

    ``dask`` is the address of a Dask scheduler or None. Raises ``InputError`` if a mechanism is
    given as a class, which other processes cannot load.
    """
    if (jobs or dask) and setup.mechanisms.classes:
        named = ", ".join(setup.mechanisms.classes)
        raise InputError(
            f"{named}: the processes of a sweep can load mechanism classes only from files: give "
            "the path of the Python file instead of the class, or run in this process with jobs=0"
        )
    if dask is not None:
        from eastwest.sweep.cluster import Cluster  # noqa: PLC0415  built upon this file

        return Cluster(setup, dask, store, say)
    return Processes(setup, jobs) if jobs else Here(setup)
