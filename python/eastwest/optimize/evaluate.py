"""Evaluation of points: runs are read from the run store, or executed by a pool of processes.

The result does not depend on the order in which runs finish. If a run fails, or its process dies
repeatedly, only the point of this run fails.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eastwest import core
from eastwest.errors import in_one_line
from eastwest.mechanisms.load import Recipe
from eastwest.results import Result
from eastwest.run import Source
from eastwest.store import Store, plan
from eastwest.sweep.executor import Executor, Run, State
from eastwest.sweep.worker import Event


@dataclass(frozen=True)
class Outcome:
    """Result of one run, or the reason why there is none; ``key`` is the key in the run store."""

    key: str
    result: Result | None
    #: Reason why the run has no result; empty if the run has a result.
    failure: str = ""


class Evaluator(Executor[int]):
    """Executor of runs of one scenario with the settings of points of an optimisation."""

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
        super().__init__(
            source,
            store,
            jobs,
            dask=dask,
            retry=retry,
            mechanisms=mechanisms,
            progress=progress,
            say=say,
        )
        self._walls: list[float] = []

    def measure(
        self, points: Sequence[core.Overrides], seeds: Sequence[int]
    ) -> list[dict[int, Outcome]]:
        """Run each point with each seed; return one mapping from seed to outcome for each point.

        Each of ``points`` is a list of overrides. Raises ``SweepStoppedError`` where files cannot
        be written.
        """
        found: list[dict[int, Outcome]] = [{} for _ in points]
        for place, overrides in enumerate(points):
            try:
                wanted = plan(self.source, overrides)
            except core.scenario_error() as error:
                message = in_one_line(error)
                found[place] = {seed: Outcome("", None, message) for seed in seeds}
                self.failed += len(seeds)
                continue
            for seed in seeds:
                run = Run(place, wanted, seed)
                kept = self._known(run.key)
                if kept is not None:
                    found[place][seed] = kept
                else:
                    self.submit(run)
        while self.running:
            for run, event in self.ended():
                found[run.place][run.seed] = self._over(run, event)
        return found

    def typical_s(self) -> float | None:
        """Return the median wall time in s of the runs executed so far; None if there are none."""
        return statistics.median(self._walls) if self._walls else None

    def _known(self, key: str) -> Outcome | None:
        """Return the outcome of a run from the run store, and count it; None if it is unknown."""
        result, message = self.known(key)
        if result is not None:
            self.reused += 1
            return Outcome(key, result)
        if message is None:
            return None
        self.failed += 1
        return Outcome(key, None, message)

    def _over(self, run: Run[int], event: Event) -> Outcome:
        """Return the outcome of a run that was executed, and count it as made or failed."""
        result = self.stored(run.key) if event.what == "done" else None
        if result is None:
            self.failed += 1
            return Outcome(run.key, None, event.message)
        self.made += 1
        self._walls.append(float(result.summary["wall_s"]))
        return Outcome(run.key, result)
