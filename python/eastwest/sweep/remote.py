"""Worker of a sweep in a Dask cluster: it does one run per order and sends the files back.

An order has all that decides the run: the resolved scenario and the content of the files that the
scenario reads. Each thread of a worker executes its orders in a process (worker.py, as on the
user's machine), so that a run that is killed, or too large for its node, does not end the worker.
The process stays for the next order and ends when there has been none for a while. A run whose
order was cancelled is stopped.

No import of Dask here fails without it: the caller is a worker of Dask.
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

#: Maximum number of bytes of result files that are sent back from one run.
MOST_ANSWER_BYTES = 1_000_000_000
#: Time without an order after which a process ends, in s.
IDLE_S = 60.0

_LOOK_EVERY_S = 0.25


@dataclass(frozen=True)
class Order:
    """A run in the form that is sent; the contents of its files are sent with it."""

    #: Build of the simulator without the user's own mechanisms, and with them.
    plain_build: str
    build: str
    task: Task
    #: Key of the run in the store.
    key: str
    #: The resolved scenario.
    text: str
    #: Names and SHA-256 of the files that the scenario reads.
    inputs: tuple[tuple[str, str], ...]
    family: str
    tables: bool
    warm_up_ps: int
    #: Names of the files of mechanisms, which follow the inputs: a library, then Python files.
    mechanisms: tuple[str, ...] = ()
    library_sha256: str = ""
    #: Dask topic of the run's progress.
    topic: str = ""


@dataclass(frozen=True)
class Answer:
    """Answer to an order: an event, and the files of the run."""

    event: Event
    worker: str
    #: Content of files of the run's folder by name, without files that the scenario read.
    files: dict[str, bytes]


def given(content: bytes) -> bytes:
    """Return the content unchanged: as a Dask task, so that the cluster keeps and copies it."""
    return content


def work(order: Order, *contents: bytes) -> Answer:
    """Execute an order on a worker of Dask and return the answer."""
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
    if event.what in {"died", "world"}:  # another node may have more memory, or disk
        event = replace(event, what="died", message=f"on {worker.address}, {event.message}")
    return Answer(event, worker.address, files)


def other_build(worker: str, theirs: str | None, wanted: str) -> str:
    """Return the message about a worker with another build of Eastwest."""
    has = "has no Eastwest" if theirs is None else f"has Eastwest {short(theirs)}"
    return f"worker {worker} {has}, this is {short(wanted)}: all must be of one build"


def short(build: str) -> str:
    """Return the version of a build, and the first digits of its hash."""
    version, _, rest = build.partition(" ")
    return f"{version} (build {rest[:12]})" if rest else version


def _run_order(slot: _Slot, order: Order, contents: Sequence[bytes], worker: Worker) -> Event:
    """Run an order in its process and return its last event; stop it if it is cancelled."""
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
    """A process for runs of one sweep, with a folder of its own."""

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
        """Start a run; write the files that it reads where an earlier run has not."""
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
        """Return the event and the files of the finished run, and remove them from the store."""
        number, folder = order.task.number, self.store.folder(order.key)
        if not folder.is_dir():
            message = "it keeps runs under another name: its package is of another version"
            return Event(number, "world", message), {}
        paths = [path for path in folder.iterdir() if path.is_file()]
        size = sum(path.stat().st_size for path in paths)
        try:
            if size > MOST_ANSWER_BYTES:
                message = (
                    f"its result has {size / 1e9:.1f} GB, more than the "
                    f'{MOST_ANSWER_BYTES / 1e9:g} GB that travel; keep = "summary" keeps no tables'
                )
                return Event(number, "failed", message), {}
            return Event(number, "done"), {path.name: path.read_bytes() for path in paths}
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """End the process and remove the folder."""
        self.pool.close()
        self.made.close()


def plain(name: str) -> PurePosixPath:
    """Return a name as a relative path without steps upwards; else raise ``ValueError``."""
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or {"..", "."} & {*path.parts}:
        raise ValueError(f"a file with an impossible name: {name!r}")
    return path


class _Slots:
    """Processes of this worker: one for each of its threads that works for a sweep."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Slot] = []
        self._watch: threading.Timer | None = None

    def take(self, order: Order, contents: Sequence[bytes], scratch: Path, threads: int) -> _Slot:
        """Return an idle process for orders of this sweep, or start one, of up to ``threads``."""
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
        """Return a process to the idle processes, so that other orders can use it for a while."""
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
        """End processes that have been idle for long."""
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
    """Write the files of mechanisms, and return how to load them."""
    paths = []
    for name, content in zip(order.mechanisms, contents, strict=True):
        path = folder / plain(name)
        path.write_bytes(content)
        paths.append(path)
    library = paths.pop(0) if order.library_sha256 else None
    return Recipe(library, order.library_sha256, tuple(paths))


_SLOTS = _Slots()
