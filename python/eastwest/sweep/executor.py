"""Execution of runs by a pool of processes; a run whose process dies is repeated.

Sweeps (driver.py) and optimisations (``eastwest.optimize.evaluate``) use this module.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from eastwest import core
from eastwest.errors import InputError
from eastwest.mechanisms.load import Recipe
from eastwest.results import Result
from eastwest.run import Source
from eastwest.store import Plan, Store, family
from eastwest.sweep.pool import Pool, start
from eastwest.sweep.worker import Event, Setup, Task

#: Maximum number of tries of a run whose process dies.
TRIES = 3
_LOOK_EVERY_S = 0.25

Place = TypeVar("Place")


@dataclass
class Run(Generic[Place]):
    """A run that has been submitted to the pool and has not finished."""

    #: Point to which the run belongs, as the caller represents it (an object or a number).
    place: Place
    plan: Plan
    seed: int
    tries: int = 1

    @cached_property
    def key(self) -> str:
        """Key of the run in the run store."""
        return self.plan.key(self.seed)


@dataclass(frozen=True)
class State:
    """Progress of a sweep: numbers of runs, and estimated time left in s (None: unknown).

    ``done``: runs with a result; ``reused``: runs with a result that was already in the run store;
    ``failed``: runs without a result; ``planned``: all runs of the sweep so far.
    """

    done: int
    planned: int
    reused: int
    failed: int
    left_s: float | None


class SweepStoppedError(InputError):
    """Error of a sweep that cannot continue, for example because the disk is full."""


class Executor(Generic[Place]):
    """Executor of runs of one scenario, with a pool of processes, a run store, and counters.

    ``Place`` is the caller's type for a point. Subclasses define ``typical_s``.
    """

    def __init__(
        self,
        source: Source,
        store: Store,
        jobs: int,
        *,
        dask: str | None,
        retry: bool,
        mechanisms: Recipe | None,
        progress: Callable[[State], None],
        say: Callable[[str], None],
        tables: bool = False,
        warm_up_ps: int = 0,
    ) -> None:
        self.source = source
        self.store = store
        self.retry = retry
        self.progress = progress
        setup = Setup(
            source=source,
            store=store.path,
            family=family(source),
            build=core.build(),
            tables=tables,
            warm_up_ps=warm_up_ps,
            mechanisms=mechanisms or Recipe(),
        )
        self.pool: Pool = start(setup, jobs, dask, store, say)
        self.made = self.reused = self.failed = 0
        #: Number of planned runs that are not submitted yet.
        self.ahead = 0
        self.running: dict[int, Run[Place]] = {}
        self._next = 0
        self._told = 0.0

    @property
    def done(self) -> int:
        """Number of runs with a result, including results from the store."""
        return self.made + self.reused

    @property
    def planned(self) -> int:
        """Number of all runs: with a result, failed, submitted and not yet submitted."""
        return self.done + self.failed + len(self.running) + self.ahead

    def typical_s(self) -> float | None:
        """Return the typical wall time of a run in s; None if no wall time is known."""
        raise NotImplementedError

    def stored(self, key: str) -> Result | None:
        """Return the result with this key from the run store, or None.

        Subclasses also return None for a result without the tables that they need.
        """
        return self.store.find(key)

    def known(self, key: str) -> tuple[Result | None, str | None]:
        """Return (result, None) for a run in the store, (None, error message) for a failed run.

        Both are None for a run that the store does not know, and with ``retry`` for a failed run.
        """
        found = self.stored(key)
        return found, None if found is not None else self.failure(key)

    def failure(self, key: str) -> str | None:
        """Return the error message of a failed run in the store; None with ``retry``."""
        return None if self.retry else self.store.failure(key)

    def submit(self, run: Run[Place]) -> None:
        """Add a run to the queue of the pool and to ``running``."""
        self.running[self._next] = run
        plan = run.plan
        source = None if plan.source is self.source else plan.source
        task = Task(self._next, plan.overrides, plan.identity, run.seed, source, plan.stop)
        self.pool.submit(task)
        self._next += 1

    def ended(self) -> Iterator[tuple[Run[Place], Event]]:
        """Yield (run, its last event) for runs that have ended; wait up to 0.25 s for the first.

        A run whose process died is submitted again, up to ``TRIES`` times in all. Errors of the
        simulation are stored. The progress is reported. Raises ``SweepStoppedError`` where files
        cannot be written.
        """
        for event in self.pool.events(_LOOK_EVERY_S):
            if event.what == "world":
                raise SweepStoppedError(
                    f"stopped because of an error: {event.message}; {self.done} of {self.planned} "
                    f"runs are finished and stored in {self.store.path}; repeat the command to "
                    "continue"
                )
            if event.what == "progress" or event.number not in self.running:
                continue
            run = self.running.pop(event.number)
            if event.what == "died" and run.tries < TRIES:
                run.tries += 1
                self.submit(run)
                continue
            if event.what == "done":
                self.store.forget_failure(run.key)
            # An error of the simulation occurs at each repetition, so it is stored; the death of a
            # process may not occur again.
            elif event.what == "failed":
                self.store.put_failure(run.key, event.message)
            yield run, event
        if time.monotonic() - self._told >= _LOOK_EVERY_S:
            self._told = time.monotonic()
            self.progress(self.state())

    def state(self) -> State:
        """Return the progress of all runs: numbers of runs, and estimated time left."""
        left, typical = len(self.running) + self.ahead, self.typical_s()
        left_s = None if typical is None else left * typical / max(1, min(left, self.pool.size))
        return State(self.done, self.planned, self.reused, self.failed, left_s)
