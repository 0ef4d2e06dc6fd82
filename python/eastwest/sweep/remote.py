"""Code that Dask workers execute: each order is one run, whose result files are sent back.

An order has all inputs of the run: the resolved scenario and the content of the files that the
scenario reads. Each thread of a worker executes its orders in a process (worker.py, as on the
user's machine), so that the worker survives a run that is killed or needs too much memory.
The process is used for later orders, and ends after 60 s without an order. A run whose order was
cancelled is stopped.

Dask can be imported here without a check, because only workers of Dask call this module.
"""

from __future__ import annotations

import hashlib
import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from eastwest import core
from eastwest.mechanisms.load import Recipe
from eastwest.partial import Partial
from eastwest.run import Source
from eastwest.store import Store
from eastwest.sweep.pool import Processes
from eastwest.sweep.worker import Event, Setup, Task

if TYPE_CHECKING:
    from distributed import Worker

#: Maximum total size of the result files that a worker sends back for one run, in bytes.
MOST_ANSWER_BYTES = 1_000_000_000
#: Time in s without an order after which a process for runs on a worker ends.
IDLE_S = 60.0

_LOOK_EVERY_S = 0.25


@dataclass(frozen=True)
class Order:
    """A run that is sent to a worker; the contents of its input files are sent separately."""

    #: Build of the simulator without the user's own mechanisms.
    plain_build: str
    #: Build of the simulator with the user's own mechanisms.
    build: str
    task: Task
    #: Key of the run in the run store.
    key: str
    #: The resolved scenario of the run, as TOML.
    text: str
    #: (name, SHA-256) of each file that the scenario reads.
    inputs: tuple[tuple[str, str], ...]
    family: str
    tables: bool
    warm_up_ps: int
    #: Names of the files of mechanisms: a library, then Python files. Their contents are sent after
    #: the contents of the input files.
    mechanisms: tuple[str, ...] = ()
    library_sha256: str = ""
    #: Name of the Dask topic to which the worker sends the progress of the run.
    topic: str = ""


@dataclass(frozen=True)
class Answer:
    """Answer of a worker to an order: the last event of the run, and its files."""

    event: Event
    worker: str
    #: Contents of the files in the run's result folder, by name; empty for a run without a result.
    files: dict[str, bytes]


def given(content: bytes) -> bytes:
    """Return ``content``: a Dask task whose result, a file, the cluster copies to its workers."""
    return content


def work(order: Order, *contents: bytes) -> Answer:
    """Execute the run of an order on this Dask worker and return the answer.

    ``contents`` are the contents of the input files and then of the files of mechanisms, in the
    order of ``order.inputs`` and ``order.mechanisms``.
    """
    from distributed import get_worker  # noqa: PLC0415  only where Dask is

    worker = get_worker()
    number, ours = order.task.number, core.build()
    if ours != order.plain_build:
        message = other_build(worker.address, ours, order.plain_build)
        return Answer(Event(number, "world", message), worker.address, {})
    threads = worker.state.nthreads
    slot = _SLOTS.take(order, contents, Path(worker.local_directory), threads)
    try:
        event = _run_order(slot, order, contents, worker)
        files: dict[str, bytes] = {}
        if event.what == "done":
            event, files = slot.results(order)
    finally:
        _SLOTS.give_back(slot)
    if event.what in {"died", "world"}:  # a worker on another node may succeed
        event = replace(event, what="died", message=f"on {worker.address}, {event.message}")
    return Answer(event, worker.address, files)


def other_build(worker: str, theirs: str | None, wanted: str) -> str:
    """Return the error message for a worker with another build of Eastwest, or without Eastwest.

    ``theirs`` is the build of the worker, None without Eastwest; ``wanted`` is the build here.
    """
    has = "has no Eastwest" if theirs is None else f"has Eastwest {short(theirs)}"
    return (
        f"worker {worker} {has}, but this machine has {short(wanted)}: all machines must have the "
        "same build"
    )


def short(build: str) -> str:
    """Return a build as short text: version, and the first 12 digits of the hash of the build."""
    version, _, rest = build.partition(" ")
    return f"{version} (build {rest[:12]})" if rest else version


def _run_order(slot: _Slot, order: Order, contents: Sequence[bytes], worker: Worker) -> Event:
    """Execute the run of an order and return its last event; send progress to the order's topic.

    If the order is cancelled, the run is stopped and its event is ``died``.
    """
    key = worker.get_current_task()
    slot.begin(order, contents)
    while True:
        for event in slot.pool.events(_LOOK_EVERY_S):
            if event.what != "progress":
                return event
            worker.log_event(order.topic, asdict(event))
        state = worker.state.tasks.get(key)
        if state is None or state.state == "cancelled":
            slot.pool.close()
            return Event(order.task.number, "died", "cancelled")


class _Slot:
    """A process for the runs of one sweep on this Dask worker, with its own temporary folder."""

    def __init__(
        self,
        kind: tuple[Any, ...],
        order: Order,
        mechanisms: Recipe,
        made: Partial,
        threads: int,
    ):
        self.kind = kind
        self.made = made
        self.folder = folder = made.path
        self.idle_since = 0.0
        self.store = Store(folder / "store")
        self.pool = Processes(
            Setup(
                source=Source("", folder, "order"),
                store=self.store.path,
                family=order.family,
                build=order.build,
                tables=order.tables,
                warm_up_ps=order.warm_up_ps,
                mechanisms=mechanisms,
            ),
            1,
            threads,
        )

    def begin(self, order: Order, contents: Sequence[bytes]) -> None:
        """Submit a run to the process; write its input files unless an earlier run had these files.

        ``contents`` begin with the contents of the input files.
        """
        names = "\n".join(f"{name} {sha256}" for name, sha256 in order.inputs)
        base = self.folder / hashlib.sha256(names.encode()).hexdigest()[:16]
        if not base.is_dir():
            with Partial.folder(self.folder) as partial:
                for (name, _), content in zip(order.inputs, contents, strict=False):
                    path = partial.path / plain(name)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
                partial.path.rename(base)
        self.pool.submit(replace(order.task, source=Source(order.text, base, "order")))

    def results(self, order: Order) -> tuple[Event, dict[str, bytes]]:
        """Return the last event and the files (content by name) of a finished run.

        The result folder of the run is removed from the worker. The event is ``failed`` if the
        files exceed ``MOST_ANSWER_BYTES``, and ``world`` if the folder is absent.
        """
        number, folder = order.task.number, self.store.folder(order.key)
        if not folder.is_dir():
            message = (
                "the worker stored the run under another key, because its eastwest package has "
                "another version: install the version of this machine on all workers"
            )
            return Event(number, "world", message), {}
        paths = [path for path in folder.iterdir() if path.is_file()]
        size = sum(path.stat().st_size for path in paths)
        try:
            if size > MOST_ANSWER_BYTES:
                message = (
                    f"the result of the run has {size / 1e9:.1f} GB; workers send back at most "
                    f'{MOST_ANSWER_BYTES / 1e9:g} GB: use keep = "summary", which stores no tables'
                )
                return Event(number, "failed", message), {}
            return Event(number, "done"), {path.name: path.read_bytes() for path in paths}
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """End the process and remove its temporary folder."""
        self.pool.close()
        self.made.close()


def plain(name: str) -> PurePosixPath:
    """Return a file name as a relative path; raise ``ValueError`` for absolute paths and ``..``."""
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or {"..", "."} & {*path.parts}:
        raise ValueError(f"{name!r} is not allowed as a file name: it must be a relative path")
    return path


class _Slots:
    """Idle processes of this Dask worker; each thread takes one of them for an order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Slot] = []
        self._watch: threading.Timer | None = None

    def take(self, order: Order, contents: Sequence[bytes], scratch: Path, threads: int) -> _Slot:
        """Return an idle process for the sweep of ``order``, or a new process.

        A new process may use the share 1 / ``threads`` of the available memory. ``contents`` are
        the contents of the order's files; ``scratch`` is the folder for temporary files.
        """
        kind = (order.build, order.family, order.tables, order.warm_up_ps, order.mechanisms)
        with self._lock:
            for slot in self._idle:
                if slot.kind == kind:
                    self._idle.remove(slot)
                    return slot
        made = Partial.scratch(scratch)
        recipe = _unpacked(order, contents[len(order.inputs) :], made.path)
        return _Slot(kind, order, recipe, made, threads)

    def give_back(self, slot: _Slot) -> None:
        """Put a process back to the idle processes, so that later orders can use it."""
        slot.idle_since = time.monotonic()
        with self._lock:
            self._idle.append(slot)
            if self._watch is None:
                self._later()

    def _later(self) -> None:
        self._watch = threading.Timer(IDLE_S / 2, self._tidy)
        self._watch.daemon = True
        self._watch.start()

    def _tidy(self) -> None:
        """End processes that have been idle for more than ``IDLE_S``; repeat this later."""
        limit = time.monotonic() - IDLE_S
        with self._lock:
            old = [slot for slot in self._idle if slot.idle_since < limit]
            self._idle = [slot for slot in self._idle if slot not in old]
            self._watch = None
            if self._idle:
                self._later()
        for slot in old:
            slot.close()


def _unpacked(order: Order, contents: Sequence[bytes], folder: Path) -> Recipe:
    """Write the files of the order's mechanisms into a folder; return the recipe to load them.

    ``contents`` are the contents of these files only, in the order of ``order.mechanisms``.
    """
    paths = []
    for name, content in zip(order.mechanisms, contents, strict=True):
        path = folder / plain(name)
        path.write_bytes(content)
        paths.append(path)
    library = paths.pop(0) if order.library_sha256 else None
    return Recipe(library, order.library_sha256, tuple(paths))


_SLOTS = _Slots()
