"""Worker process of a sweep: receives runs from its parent one by one, and sends events back.

The process executes many runs, so that the start of a Python interpreter is needed only once. When
the parent ends or is killed, the pipe is closed and the process exits at once, also within a run
(see ``eastwest.sweep.pool``). Unfinished files have temporary names.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from eastwest import core
from eastwest.errors import in_one_line
from eastwest.mechanisms.load import Recipe
from eastwest.run import Source
from eastwest.store import Plan, Store
from eastwest.sweep.metrics import warm_up_bytes, warm_up_file
from eastwest.units import clean

_TELL_EVERY_S = 0.5


@dataclass(frozen=True)
class Setup:
    """Inputs that are equal for all runs of a sweep; each process receives them once."""

    source: Source
    store: Path
    #: Hash of the scenario's text without overrides: the run store notes costs by family.
    family: str
    #: Build of the simulator, which must be equal in all processes.
    build: str
    #: Whether the tables of each run are stored, not only its summary.
    tables: bool
    warm_up_ps: int
    #: Recipe from which a process loads the user's own mechanisms.
    mechanisms: Recipe = field(default_factory=Recipe)
    #: Memory limit of a process in bytes: its share among the concurrent processes. None: the
    #: default limit of a single run.
    memory_bytes: int | None = None


@dataclass(frozen=True)
class Task:
    """A run to execute: number of the task, overrides, hash (``identity``) and seed.

    ``identity`` is the hash of the resolved scenario, equal for all seeds of a point.
    """

    number: int
    overrides: core.Overrides
    identity: str
    seed: int
    #: Scenario of the run; None: the scenario of the sweep.
    source: Source | None = None
    #: Limits that stop the run early.
    stop: tuple[core.Stop, ...] = ()


@dataclass(frozen=True)
class Event:
    """Event of the run with task ``number``, sent by the process that executes the run."""

    number: int
    #: Kind of event. ``done``: the run has a result; ``failed``: the simulator reported an error;
    #: ``died``: the process died; ``lost``: processes of this run died too often, so that the run
    #: is not repeated; ``world``: an error of the disk or the machine, which stops the sweep;
    #: ``progress``: the run has advanced; ``ready``: the process accepts runs.
    what: str
    message: str = ""
    #: For ``progress``: share of the run that is done (0 to 1).
    share: float = 0.0
    #: For ``progress``: wall time of the run so far, in s.
    wall_s: float = 0.0


def perform(setup: Setup, task: Task, tell: Callable[[Event], None]) -> Event:
    """Simulate one run, write its result to the store, and return its last event.

    ``tell`` is called with ``progress`` events. The last event is ``done``, ``failed`` or
    ``world``.
    """
    source = task.source or setup.source
    plan = Plan(source, task.overrides, task.identity, setup.family, stop=task.stop)
    extra = {}
    if setup.warm_up_ps:
        extra[warm_up_file(setup.warm_up_ps)] = lambda raw: warm_up_bytes(raw, setup.warm_up_ps)
    try:
        Store(setup.store).run(
            plan,
            task.seed,
            tables=setup.tables,
            extra=extra,
            options=core.RunOptions(
                progress=_ProgressSender(task.number, tell), memory_bytes=setup.memory_bytes
            ),
        )
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return Event(task.number, "world", f"{where}{error.strerror or error}")
    except core.scenario_error() as error:
        return Event(task.number, "failed", clean(in_one_line(error), 2000))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic in Rust does not derive from Exception
        message = str(error) or "out of memory" * isinstance(error, MemoryError)
        kind = "" if isinstance(error, core.run_error()) else f"{type(error).__name__}: "
        return Event(task.number, "failed", clean(f"{kind}{message}", 2000))
    return Event(task.number, "done")


class _ProgressSender:
    """Progress callback of a run that sends an event twice a second."""

    def __init__(self, number: int, tell: Callable[[Event], None]) -> None:
        self.number = number
        self.tell = tell
        self.told = time.monotonic()

    def __call__(self, progress: core.Progress) -> None:
        if time.monotonic() - self.told < _TELL_EVERY_S:
            return
        self.told = time.monotonic()
        share = core.share_done(progress) or 0.0
        self.tell(Event(self.number, "progress", share=share, wall_s=progress["wall_s"]))


def main(handle: int) -> None:
    """Execute the runs that the parent process sends, until it closes the pipe ``handle``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    link: Connection[Any, Any] = Connection(handle)
    setup: Setup = link.recv()
    core.use(setup.mechanisms.restore())
    if core.build() != setup.build:
        changed = (
            "the files of Eastwest or of a mechanism changed while the processes of the sweep "
            "started: repeat the command"
        )
        link.send(Event(-1, "world", changed))
        return
    import polars  # noqa: F401, PLC0415  slow to load: not within the first run

    link.send(Event(-1, "ready"))
    with contextlib.suppress(EOFError, OSError):  # the parent has ended
        while True:
            link.send(perform(setup, link.recv(), link.send))
