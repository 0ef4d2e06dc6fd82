"""Pool of processes of a sweep: assigns runs, collects events, replaces a process that dies."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from typing import Protocol

from eastwest.child import Child
from eastwest.errors import InputError
from eastwest.memory import allowed_bytes
from eastwest.store import Store
from eastwest.sweep.worker import Event, Setup, Task, perform

#: Environment variables that limit libraries to one thread in each process, because the processes
#: of a sweep use all cores already.
_ONE_THREAD = {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

#: Number of consecutive processes that die before their first run (for example because memory is
#: short) after which the sweep stops.
_MOST_STILLBORN = 3


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
    child: Child
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
        busy = {w.child.link: w for w in self._workers if w.task is not None}
        found: list[Event] = []
        for link in wait(list(busy), timeout_s):
            worker = busy[link]  # type: ignore[index]
            try:
                event: Event = worker.child.link.recv()
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
            worker.child.kill()
        for worker in self._workers:
            worker.child.close()
        self._workers = []
        self._queue.clear()

    close = stop

    def _start(self) -> _Worker:
        child = Child("eastwest.sweep.worker", _ONE_THREAD)
        with contextlib.suppress(OSError):  # the death of the process is noticed in events()
            child.link.send(self._setup)
        return _Worker(child)

    def _feed(self) -> None:
        for worker in self._workers:
            if worker.task is None and self._queue:
                worker.task = self._queue.popleft()
                with contextlib.suppress(OSError):
                    worker.child.link.send(worker.task)

    def _replace_dead(self, worker: _Worker) -> Event:
        """Return the event (``died`` or ``world``) for a process that ended, and replace it."""
        message = worker.child.ended()
        task = worker.task
        self._stillborn += not worker.ready
        worker.child.close()
        self._workers.remove(worker)
        self._workers.append(self._start())
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
