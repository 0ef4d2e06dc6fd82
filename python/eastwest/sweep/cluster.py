"""Pool that executes the runs of a sweep on a Dask cluster.

The cluster is already running (``--dask ADDRESS`` names its scheduler); docs/guide/cluster.md
explains how to start a cluster. Workers need only the same build of Eastwest, and no shared disk.
An *order* is one run that is sent to a worker, with its resolved scenario and the files that this
scenario reads. The worker sends the result back, and this machine stores it. remote.py is the code
that a worker executes.

Failures and how they are handled:

* a run's process dies (for example because memory is short): the sweep repeats the run, on another
  worker where there is one, up to three times in all;
* a worker dies: the scheduler assigns its runs to other workers; after several deaths in the same
  run (``distributed.scheduler.allowed-failures``) this run is reported as failed;
* a worker has another build, or no Eastwest: the sweep stops and names both builds;
* the scheduler ends: the sweep stops. Results that have arrived are kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import secrets
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from eastwest import core, shipped
from eastwest.errors import InputError
from eastwest.interrupts import Kept
from eastwest.store import Plan, Store
from eastwest.sweep.remote import Answer, Order, given, other_build, work
from eastwest.sweep.worker import Event, Setup, Task
from eastwest.units import clean, span

if TYPE_CHECKING:
    from distributed import Client, Future

#: Time within which a Dask scheduler must answer, in s.
CONNECT_S = 10.0
#: Maximum total size of input files that are sent to the workers of a sweep, in bytes.
MOST_INPUT_BYTES = 256_000_000
#: Command that installs the optional package dask.distributed.
INSTALL = "pip install 'eastwest[dask]'"

#: Maximum number of unfinished runs at the scheduler, so that workers always have a next run.
#: Clusters with more than 64 threads get four runs for each thread.
_AHEAD = 256
_COUNT_EVERY_S = 2.0
_LONELY_S = 10.0
#: Time in s to wait for the transfer of a finished result; then the result is requested again.
_FETCH_S = 30.0
#: Python expression whose value is the build of Eastwest on a worker. It uses only builtins, so
#: that any worker can evaluate it.
_ASK = "__import__('eastwest.core', fromlist=['build']).build()"
_MOST_NAMED = 5
_MOST_PREPARED = 2000


@dataclass(frozen=True)
class _Prepared:
    """Resolved scenario and input files of a point, which are equal for all its seeds.

    ``text`` is the scenario as TOML; ``inputs`` has (name, SHA-256) of each file, and ``contents``
    the Dask futures of the contents of these files.
    """

    text: str
    inputs: tuple[tuple[str, str], ...]
    contents: tuple[Future[bytes], ...]


class Cluster:
    """Pool that executes runs on the workers of a Dask cluster."""

    remote = True

    def __init__(
        self,
        setup: Setup,
        address: str,
        store: Store,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.address = address
        self._setup = setup
        self._store = store
        self._say = say
        self._name = f"eastwest-{secrets.token_hex(6)}"
        self._client: Client | None = None
        self._plain_build = ""
        self._queue: deque[Task] = deque()
        #: Runs that were sent to workers: task, key in the run store, and future, by the number of
        #: the order. Task numbers are not used, because they start again after a probe.
        self._sent: dict[int, tuple[Task, str, Future[Answer]]] = {}
        self._orders = 0
        #: Reports from threads of Dask: progress events, and numbers of finished orders.
        self._news: SimpleQueue[Event | int] = SimpleQueue()
        self._prepared: dict[str, _Prepared] = {}
        self._given: dict[str, Future[bytes]] = {}
        self._given_bytes = 0
        self._mechanisms: tuple[tuple[str, ...], tuple[Future[bytes], ...]] = ((), ())
        #: Addresses of workers on which a run has died, by (hash of the scenario, seed).
        self._died: dict[tuple[str, int], set[str]] = {}
        self._threads: dict[str, int] = {}
        self._counted = 0.0
        self._lonely_since: float | None = None
        #: Dask's futures have finalisers, in which Python loses interrupts.
        self._interrupts = Kept()

    def open(self) -> None:
        """Connect to the scheduler and check the build of its workers.

        Raises ``InputError`` where there is no scheduler, or where a worker has another build.
        """
        if self._client is not None:
            return
        self._interrupts.begin()
        try:
            self._client = connected(self.address, self._name)
            self._client.subscribe_topic(self._name, self._queue_progress)
            self._plain_build = ask_builds(self._client)
            self._send_mechanisms()
        except BaseException:
            self.close()
            raise
        self._count()

    @property
    def size(self) -> int:
        """Number of runs that the known workers execute at one time; at least 1."""
        self._count()
        return max(1, sum(self._threads.values()))

    def submit(self, task: Task) -> None:
        """Add a run at the end of the queue."""
        self._queue.append(task)

    def events(self, timeout_s: float) -> list[Event]:
        """Return new events; while runs are in progress, wait up to ``timeout_s`` for the first.

        Raises ``KeyboardInterrupt`` after an interrupt.
        """
        self._interrupts.check()
        self._feed()
        if not self._sent:
            return []
        news: list[Event | int] = []
        with contextlib.suppress(Empty):
            news.append(self._news.get(timeout=max(0.0, timeout_s)))
            while True:
                news.append(self._news.get_nowait())
        if not news:
            self._report_missing_workers()
            return []
        found = [
            self._finished_event(one) if isinstance(one, int) else self._progress_event(one)
            for one in news
        ]
        self._feed()
        return [event for event in found if event is not None]

    def stop(self) -> None:
        """Cancel queued and current runs; the connection to the scheduler stays open."""
        self._queue.clear()
        futures = [future for _, _, future in self._sent.values()]
        self._sent.clear()
        if futures and self._client is not None:
            with contextlib.suppress(Exception):  # the scheduler may have ended
                self._client.cancel(futures, force=True)
        while not self._news.empty():
            self._news.get()

    def close(self) -> None:
        """Cancel all runs, remove all data from the cluster, and disconnect."""
        self.stop()
        client, self._client = self._client, None
        self._prepared.clear()
        self._given.clear()
        self._given_bytes = 0
        self._mechanisms = ((), ())
        if client is not None:
            disconnect(client)
        self._interrupts.end()

    # Preparation before the first run

    def _send_mechanisms(self) -> None:
        recipe = self._setup.mechanisms
        paths = [*([recipe.library] if recipe.library else []), *recipe.files]
        names = tuple(path.name for path in paths)
        if len(set(names)) < len(names):
            raise InputError(
                "mechanism files that are sent to workers must have different names, not "
                f"{', '.join(names)}"
            )
        contents = tuple(self._send(path.read_bytes())[1] for path in paths)
        self._mechanisms = (names, contents)

    def _send(self, content: bytes) -> tuple[str, Future[bytes]]:
        """Send a file to the cluster unless it was sent before; return (SHA-256, Dask future).

        Raises ``InputError`` above ``MOST_INPUT_BYTES`` in total.
        """
        assert self._client is not None
        sha256 = hashlib.sha256(content).hexdigest()
        if sha256 not in self._given:
            self._given_bytes += len(content)
            if self._given_bytes > MOST_INPUT_BYTES:
                raise InputError(
                    "the input files and mechanisms that are sent to workers exceed the maximum of "
                    f"{MOST_INPUT_BYTES / 1e6:g} MB for one sweep"
                )
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Sending large graph")
                # A task, not scattered data: the scheduler repeats it if the worker dies.
                self._given[sha256] = self._client.submit(
                    given, content, key=f"{self._name}-file-{sha256}", pure=False
                )
        return sha256, self._given[sha256]

    # Orders: runs that are sent to workers

    def _feed(self) -> None:
        while self._queue and len(self._sent) < max(_AHEAD, 4 * sum(self._threads.values())):
            self._order(self._queue.popleft())

    def _order(self, task: Task) -> None:
        assert self._client is not None
        self._orders += 1
        number = self._orders
        setup, point = self._setup, self._point(task)
        wanted = Plan(setup.source, task.overrides, task.identity, setup.family)
        key = wanted.key(task.seed)
        names, mechanisms = self._mechanisms
        order = Order(
            plain_build=self._plain_build,
            build=setup.build,
            # The resolved scenario (``text``) has the settings, so the task has no overrides.
            task=Task(number, [], task.identity, task.seed),
            key=key,
            text=point.text,
            inputs=point.inputs,
            family=setup.family,
            tables=setup.tables,
            warm_up_ps=setup.warm_up_ps,
            mechanisms=names,
            library_sha256=setup.mechanisms.library_sha256,
            topic=self._name,
        )
        future = self._client.submit(
            work,
            order,
            *point.contents,
            *mechanisms,
            key=f"{self._name}-{number}",
            workers=self._workers_without_death(task),
            pure=False,
        )
        self._sent[number] = (task, key, future)
        future.add_done_callback(lambda _: self._news.put(number))

    def _point(self, task: Task) -> _Prepared:
        """Return the resolved scenario of a point, and send the files that it reads to workers."""
        found = self._prepared.get(task.identity)
        if found is None:
            resolved = self._resolved(task)
            sent = [(name, *self._send(content)) for name, content in resolved["attached"]]
            found = _Prepared(
                resolved["scenario_toml"],
                tuple((name, sha256) for name, sha256, _ in sent),
                tuple(future for *_, future in sent),
            )
            if len(self._prepared) >= _MOST_PREPARED:
                self._prepared.clear()
            self._prepared[task.identity] = found
        return found

    def _resolved(self, task: Task) -> core.Resolved:
        source = self._setup.source
        return core.resolve(source.text, str(source.base_dir), str(shipped.DATA), task.overrides, 1)

    def _workers_without_death(self, task: Task) -> list[str] | None:
        """Return the addresses of workers on which this run has not died; None: all workers.

        Returns None if the run has died on no worker, or on every worker.
        """
        died = self._died.get((task.identity, task.seed))
        if not died:
            return None
        self._count(at_once=True)
        return [address for address in self._threads if address not in died] or None

    # Answers of workers: progress and results of runs

    def _queue_progress(self, event: tuple[float, dict[str, Any]]) -> None:
        """Queue a progress event, given as (time, fields); Dask calls this in its own thread."""
        self._news.put(Event(**event[1]))

    def _progress_event(self, progress: Event) -> Event | None:
        if progress.number not in self._sent:
            return None
        return replace(progress, number=self._sent[progress.number][0].number)

    def _finished_event(self, number: int) -> Event | None:
        """Return the event of the finished order ``number``, with the number of its task.

        Returns None if the run was cancelled, or if the result must be requested again.
        """
        if number not in self._sent:
            return None
        task, key, future = self._sent[number]
        if future.status == "finished":
            try:
                answer = future.result(timeout=_FETCH_S)
            except TimeoutError:
                self._news.put(number)
                return None
            except Exception as error:
                event = self._failed_event(error)
            else:
                event = self._stored_event(task, key, answer)
        elif future.status == "error":
            event = self._failed_event(future.exception())
        else:
            message = f"the scheduler at {self.address} has ended, or was restarted"
            event = Event(0, "world", message)
        del self._sent[number]
        return replace(event, number=task.number)

    def _stored_event(self, task: Task, key: str, answer: Answer) -> Event:
        """Store the files of a finished run under ``key``, and return the event of its end.

        If the run died, the worker is remembered so that a repetition uses another worker.
        """
        if answer.event.what == "died":
            self._died.setdefault((task.identity, task.seed), set()).add(answer.worker)
        if answer.event.what != "done":
            return answer.event
        wanted = Plan(self._setup.source, task.overrides, task.identity, self._setup.family)
        try:
            inputs = self._resolved(task)["attached"] if self._point(task).inputs else []
            self._store.take_in(key, answer.files, inputs)
            self._store.record(wanted, key, json.loads(answer.files["summary.json"]))
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            return Event(0, "world", f"{where}{error.strerror or error}")
        return answer.event

    def _failed_event(self, error: BaseException | None) -> Event:
        """Return the event of a run without an answer from a worker; it has the task number 0."""
        from distributed import KilledWorker  # noqa: PLC0415  not before it is needed

        if isinstance(error, KilledWorker):
            last = getattr(error.last_worker, "address", error.last_worker)
            message = (
                f"{error.allowed_failures + 1} workers died in this run, the last at {last}, "
                "perhaps because their memory was full"
            )
            return Event(0, "lost", clean(message, 1000))
        if isinstance(error, ImportError):
            message = f"Eastwest is not installed on a new worker: {error}"
            return Event(0, "world", clean(message, 1000))
        return Event(0, "died", clean(f"{type(error).__name__}: {error}", 1000))

    # Workers that are connected

    def _count(self, at_once: bool = False) -> None:
        """Ask the scheduler for its workers and their threads, at most every 2 s.

        ``at_once`` asks in any case.
        """
        now = time.monotonic()
        if self._client is None or (now - self._counted < _COUNT_EVERY_S and not at_once):
            return
        self._counted = now
        if self._client.status == "running":
            with contextlib.suppress(OSError, TimeoutError):
                self._threads = dict(self._client.nthreads())

    def _report_missing_workers(self) -> None:
        """Tell the user if there was no worker for 10 s; once until a worker is connected."""
        self._count()
        if self._threads:
            self._lonely_since = None
        elif self._lonely_since is None:
            self._lonely_since = time.monotonic()
        elif 0 < self._lonely_since < time.monotonic() - _LONELY_S:
            self._lonely_since = 0.0
            self._say(
                f"the scheduler at {self.address} has had no worker for {span(_LONELY_S)}: the "
                "runs wait for a worker; Ctrl-C ends the sweep and keeps finished runs"
            )


def connected(address: str, name: str) -> Client:
    """Return a connection to a Dask scheduler; ``name`` is the name of this client.

    Raises ``InputError`` if Dask is not installed, if the address is invalid, or if no scheduler
    answers.
    """
    try:
        from distributed import Client  # noqa: PLC0415  an extra that only this needs
    except ImportError as error:
        raise InputError(
            f"--dask needs the package dask.distributed ({error}): {INSTALL}"
        ) from None
    # Exceptions report the errors; lines of Dask's log would disturb the progress bar.
    for part in ("distributed", "distributed.client", "distributed.core", "distributed.comm"):
        logging.getLogger(part).setLevel(logging.CRITICAL)
    try:
        _check_address(address)
        return Client(address, timeout=CONNECT_S, set_as_default=False, name=name)
    except (OSError, TimeoutError):
        raise InputError(
            f"no Dask scheduler answers at {clean(address, 200)} within {span(CONNECT_S)}: is it "
            "running, and is the address the one it prints (such as tcp://10.0.0.1:8786)?"
        ) from None
    except (ValueError, TypeError) as error:
        raise InputError(
            f"--dask {clean(address, 200)}: {clean(str(error), 300)}; expected the address of a "
            "scheduler, such as tcp://10.0.0.1:8786"
        ) from None


def disconnect(client: Client) -> None:
    """Close a connection to a Dask scheduler; ignore errors, since the scheduler may have ended."""
    with contextlib.suppress(Exception):
        client.close(timeout=5)


def _check_address(address: str) -> None:
    """Raise ``ValueError`` for an invalid address, with which a client would hang in ``close``."""
    from distributed.comm.addressing import (  # noqa: PLC0415  an extra
        parse_address,
        parse_host_port,
    )
    from distributed.comm.registry import get_backend  # noqa: PLC0415

    scheme, place = parse_address(address)
    get_backend(scheme)
    if scheme in ("tcp", "tls", "ws", "wss"):
        parse_host_port(place)


@contextlib.contextmanager
def in_plain_words(address: str, doing: str) -> Iterator[None]:
    """Context that turns Dask's exceptions about lost tasks and connections into ``InputError``.

    The message begins with ``doing``, a text on the activity that failed.
    """
    from distributed import CancelledError, KilledWorker  # noqa: PLC0415  an extra

    try:
        yield
    except KilledWorker as error:
        deaths = error.allowed_failures + 1
        message = f"{doing}: {deaths} workers died, perhaps because their memory was full"
        raise InputError(clean(message, 1000)) from None
    except (CancelledError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # an error of a file; errors of lost connections have no error number
        raise InputError(
            f"{clean(doing, 300)}: the scheduler at {clean(address, 200)} has ended, or was "
            f"restarted ({clean(str(error), 200)})"
        ) from None


def ask_builds(client: Client) -> str:
    """Return the build of Eastwest on this machine, which all workers must have as well.

    Raises ``InputError`` with the workers of another build, because their results could differ. The
    user's own mechanisms are not compared: they are sent to the workers.
    """
    with core.using(core.Extras()):
        ours = core.build()
    answers = client.run(eval, _ASK, on_error="return")
    wrong = []
    for worker, theirs in sorted(answers.items()):
        if isinstance(theirs, BaseException) and not isinstance(theirs, ImportError):
            wrong.append(f"worker {worker} does not answer: {theirs}")
        elif theirs != ours:
            has = None if isinstance(theirs, ImportError) else str(theirs)
            wrong.append(other_build(worker, has, ours))
    if wrong:
        more = f"; and {len(wrong) - _MOST_NAMED} more" if len(wrong) > _MOST_NAMED else ""
        raise InputError("; ".join(clean(line, 500) for line in wrong[:_MOST_NAMED]) + more)
    return ours
