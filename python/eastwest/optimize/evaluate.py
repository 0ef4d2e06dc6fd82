"""Runs of points with seeds: from the store where it has them, else by a pool of processes.

The result does not depend on the order in which runs finish. A run that fails, or whose process
dies again and again, fails its point alone.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eastwest import core
from eastwest.mechanisms.load import Recipe
from eastwest.results import Result
from eastwest.run import Source
from eastwest.store import Plan, Store, family, plan
from eastwest.sweep import State, SweepStoppedError
from eastwest.sweep.driver import TRIES
from eastwest.sweep.pool import Pool, start
from eastwest.sweep.worker import Setup, Task, problems_of

_LOOK_EVERY_S = 0.25


@dataclass(frozen=True)
class Outcome:
    """Metrics of one run, or the reason why there are none."""

    key: str
    result: Result | None
    #: Reason why there are no metrics; empty where there are.
    failure: str = ""


@dataclass
class _Open:
    """A run that has not finished."""

    place: tuple[int, int]
    plan: Plan
    key: str
    tries: int = 1


class Evaluator:
    """Evaluator of settings of one scenario."""

    def __init__(
        self,
        source: Source,
        store: Store,
        jobs: int,
        *,
        dask: str | None = None,
        retry: bool = False,
        mechanisms: Recipe | None = None,
        progress: Callable[[State], None] = lambda _: None,
        say: Callable[[str], None] = lambda _: None,
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
            tables=False,
            warm_up_ps=0,
            mechanisms=mechanisms or Recipe(),
        )
        self.pool: Pool = start(setup, jobs, dask, store, say)
        self.done = self.reused = self.failed = 0
        #: Number of known runs after those asked for, and the wall time of one, in s.
        self.ahead = 0
        self._walls: list[float] = []
        self._next = 0
        self._told = 0.0

    def measure(
        self, points: Sequence[core.Overrides], seeds: Sequence[int]
    ) -> list[dict[int, Outcome]]:
        """Run each point with each seed; return outcomes by seed, in the order of the points.

        Raises ``SweepStoppedError`` where files cannot be written.
        """
        found: list[dict[int, Outcome]] = [{} for _ in points]
        running: dict[int, _Open] = {}
        for place, overrides in enumerate(points):
            try:
                wanted = plan(self.source, overrides)
            except core.scenario_error() as error:
                message = problems_of(error)
                found[place] = {seed: Outcome("", None, message) for seed in seeds}
                self.failed += len(seeds)
                continue
            for seed in seeds:
                key = wanted.key(seed)
                kept = self._known(key)
                if kept is not None:
                    found[place][seed] = kept
                else:
                    self._submit(running, _Open((place, seed), wanted, key))
        while running:
            for event in self.pool.events(_LOOK_EVERY_S):
                if event.what == "world":
                    raise SweepStoppedError(
                        f"{event.message}: stopped; {self.done} runs are kept in "
                        f"{self.store.path}, the same command continues from there"
                    )
                if event.what == "progress" or event.number not in running:
                    continue
                run = running.pop(event.number)
                if event.what == "died" and run.tries < TRIES:
                    run.tries += 1
                    self._submit(running, run)
                    continue
                place, seed = run.place
                found[place][seed] = self._over(run, event.what, event.message)
            self._tell(len(running))
        return found

    def typical_s(self) -> float | None:
        """Return the median wall time of the runs so far, in seconds; ``None`` before the first."""
        return statistics.median(self._walls) if self._walls else None

    def _known(self, key: str) -> Outcome | None:
        """Return the outcome of a run if the store has it, else None."""
        result = self.store.find(key)
        if result is not None:
            self.done += 1
            self.reused += 1
            return Outcome(key, result)
        message = None if self.retry else self.store.failure(key)
        if message is None:
            return None
        self.failed += 1
        return Outcome(key, None, message)

    def _submit(self, running: dict[int, _Open], run: _Open) -> None:
        running[self._next] = run
        self.pool.submit(Task(self._next, run.plan.overrides, run.plan.identity, run.place[1]))
        self._next += 1

    def _over(self, run: _Open, what: str, message: str) -> Outcome:
        result = self.store.find(run.key) if what == "done" else None
        if result is not None:
            self.done += 1
            self.store.forget_failure(run.key)
            self._walls.append(float(result.summary["wall_s"]))
            return Outcome(run.key, result)
        if what == "failed":
            self.store.put_failure(run.key, message)
        self.failed += 1
        return Outcome(run.key, None, message)

    def _tell(self, running: int) -> None:
        if time.monotonic() - self._told < _LOOK_EVERY_S:
            return
        self._told = time.monotonic()
        left, typical = running + self.ahead, self.typical_s()
        left_s = None if typical is None else left * typical / max(1, min(left, self.pool.size))
        planned = self.done + self.failed + left
        self.progress(State(self.done, planned, self.reused, self.failed, left_s))
