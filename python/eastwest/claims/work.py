"""Execution of claims: runs their sweeps, computes measures, tests explanations of differences.

Runs that are already in the run store are reused. Explanations are tested only for metrics that
differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eastwest.claims.measures import Data, MeasureError
from eastwest.claims.measures.of_study import known_in
from eastwest.claims.selection import shown
from eastwest.claims.spec import Claim, Metric
from eastwest.claims.verdict import DIFFERS, UNDECIDED, Explained, Outcome, Part
from eastwest.errors import ProblemsError
from eastwest.mechanisms.load import Recipe
from eastwest.partial import Partial
from eastwest.sweep import State, SweepResult, prepare
from eastwest.sweep.spec import Spec as Sweep

#: Default maximum number of seeds for an undecided claim.
MOST_SEEDS = 60
#: Callback for the progress of a claim: (id of the claim, name of its runs, state of the runs).
Progress = Callable[[str, str, State], None]


@dataclass(frozen=True)
class How:
    """Options for the execution of claims: quick or full, processes, run store, progress, seeds."""

    quick: bool = False
    jobs: int | None = None
    dask: str | None = None
    store: str | Path | None = None
    progress: Progress = lambda *_: None
    #: Maximum number of seeds for an undecided claim.
    most_seeds: int = MOST_SEEDS
    #: Recipe from which worker processes load the user's own mechanisms; None without them.
    mechanisms: Recipe | None = None


class Runner:
    """Executor of one claim.

    ``kept`` has the stored metrics of the claim, which are not measured again: all of them or none.
    ``seen`` is called with the name and the result of each sweep that was run; a sweep that gets
    more seeds is run again under its name.
    """

    def __init__(
        self,
        claim: Claim,
        how: How,
        kept: Sequence[Part] = (),
        seen: Callable[[str, SweepResult], None] = lambda *_: None,
    ) -> None:
        self.claim = claim
        self.how = how
        self.kept = kept
        self.seen = seen
        self._known = known_in(claim.path.parent.parent)
        self._specs = dict(claim.quick if how.quick else claim.runs)
        self._sweeps: dict[str, SweepResult | str] = {}

    def outcome(self) -> Outcome:
        """Run the claim and return its outcome; explanations are run only for metrics that differ.

        Metrics with stored numbers are not run again.
        """
        with Partial.scratch() as scratch:
            self._folder = scratch.path
            parts = [*self.kept] or [self._part(metric) for metric in self.claim.metrics]
            while not self.kept and (more := self._undecided(parts)) and self._double_seeds(more):
                parts = [self._part(metric) for metric in self.claim.metrics]
            differing = {part.metric.name for part in parts if part.verdict == DIFFERS}
            explained = [
                Explained(explanation, [self._part(metric) for metric in explanation.metrics])
                for explanation in self.claim.explanations
                if differing & {*explanation.of}
            ]
        seeds = {name: spec.first_seeds for name, spec in self._specs.items()}
        ran = {name: seeds[name] for name in self._sweeps}
        return Outcome(self.claim, parts, explained, self.how.quick, ran)

    def _undecided(self, parts: Sequence[Part]) -> set[str]:
        """Return the names of the runs that need more seeds, because a metric is undecided.

        The result is empty for a quick run, and for a claim under a reading or TCP profile that
        does not give the verdict.
        """
        if self.how.quick or not self.claim.decides:
            return set()
        return {name for part in parts if part.verdict == UNDECIDED for name in part.metric.runs}

    def _double_seeds(self, names: set[str]) -> bool:
        """Double the seeds of the named runs, up to a maximum; return whether seeds were added.

        Runs that get more seeds are executed again at the next use of their results. Runs with an
        adaptive rule for seeds are not changed.
        """
        given = False
        for name in names:
            spec = self._specs[name]
            wanted = min(self.how.most_seeds, 2 * len(spec.seeds))
            if spec.adaptive is None and wanted > len(spec.seeds):
                further = range(max(spec.seeds) + 1, max(spec.seeds) + 1 + wanted - len(spec.seeds))
                self._specs[name] = replace(spec, seeds=(*spec.seeds, *further))
                self._sweeps.pop(name, None)
                given = True
        return given

    def _part(self, metric: Metric) -> Part:
        sweeps = []
        for name in metric.runs:
            found = self._runs(name)
            if isinstance(found, str):
                return Part(metric, None, found)
            sweeps.append(found)
        try:
            data = Data(*sweeps, values=self._known.values)
            measure = self._known.measures[metric.measure].function
            return Part(metric, measure(data, **metric.arguments))
        except (MeasureError, FileNotFoundError) as error:  # FileNotFoundError: no stored table
            return Part(metric, None, f"{_named(metric.runs)}: {error}")

    def _runs(self, name: str) -> SweepResult | str:
        """Return the result of the sweep ``name``, or a message if runs of the sweep failed.

        The sweep is executed at the first call.
        """
        if name not in self._sweeps:
            sweep = self._sweep(name, self._specs[name])
            self.seen(name, sweep)
            failures = sweep.failures
            if failures:
                planned = sweep.summary["runs"]["planned"]
                first = shown({**failures[0]["settings"], "seed": failures[0]["seed"]})
                what = f"{len(failures)} of {planned} runs failed"
                first_of = "the first with" if len(failures) > 1 else "with"
                self._sweeps[name] = (
                    f"{_named([name])}: {what}, {first_of} {first}: {failures[0]['message']}"
                )
            else:
                self._sweeps[name] = sweep
        return self._sweeps[name]

    def _sweep(self, name: str, spec: Sweep) -> SweepResult:
        out = self._folder / f"{name}-{len(spec.seeds)}"
        try:
            driver = prepare(
                spec,
                out,
                jobs=self.how.jobs,
                dask=self.how.dask,
                store=self.how.store,
                mechanisms=self.how.mechanisms,
                confirm=lambda _: True,
                progress=lambda state: self.how.progress(self.claim.id, name, state),
            )
            return driver.run(out)
        except ProblemsError as error:
            where = f"{self.claim.path.name}: runs.{name}."
            raise ProblemsError(
                [{**problem, "path": f"{where}{problem['path']}"} for problem in error.problems]
            ) from None


def _named(runs: Sequence[str]) -> str:
    """Return the names of runs as text, such as ``runs.a and runs.b``."""
    return " and ".join(f"runs.{name}" for name in runs)


def run(
    claims: Sequence[Claim],
    how: How,
    done: Callable[[Outcome], None] = lambda _: None,
    kept: Callable[[Claim], Sequence[Part]] = lambda _: (),
) -> list[Outcome]:
    """Run claims one after the other and return their outcomes; call ``done`` with each outcome.

    Undecided claims get more seeds. ``kept`` returns the stored metrics of a claim, all or none.
    For a claim with stored metrics, only explanations are run.
    """
    outcomes = []
    for claim in claims:
        outcomes.append(Runner(claim, how, kept(claim)).outcome())
        done(outcomes[-1])
    return outcomes
