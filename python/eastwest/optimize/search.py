"""Search of an optimisation: points are proposed in batches, and the best go through all stages.

1. The baseline and the candidates of a file are measured at every stage. All other points are
compared with the baseline, and the wall time of its runs gives an estimate for the search.

2. Proposals are measured at the first, cheapest stage. If the space has no more points than the
allowed proposals, all points are measured. Otherwise Optuna's tree-structured Parzen estimator
proposes points (Bergstra et al. 2011; with limits: Watanabe and Hutter 2023), in batches of a fixed
size. The estimator learns from a batch when all points of the batch are measured, in the order of
the proposals. So the proposals depend on the seed, and not on the number of concurrent runs.
Runs are read from the store, so that an interrupted search proposes the same points and continues.

3. Successive halving (Jamieson and Talwalkar 2016): the best points of each stage enter the next
stage, which has more seeds or a larger scenario.

4. The last stage decides. The rank correlation of each stage with the next is reported: a low value
shows that a cheap stage is misleading.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eastwest import core
from eastwest.errors import InputError
from eastwest.goals import judge
from eastwest.optimize.check import overrides
from eastwest.optimize.evaluate import Evaluator, Outcome
from eastwest.optimize.space import Axis, Settings
from eastwest.optimize.spec import Spec, Stage
from eastwest.reader import meant
from eastwest.store import plan
from eastwest.sweep.metrics import metrics_of
from eastwest.sweep.values import text
from eastwest.sweep.words import full

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import Trial

#: Command that installs the optional package Optuna.
INSTALL = "pip install 'eastwest[optimize]'"

BASELINE, CANDIDATE, PROPOSAL = "baseline", "candidate", "proposal"


@dataclass(eq=False)
class Point:
    """A point of the search space: a combination of settings, with its measurements."""

    number: int
    name: str
    origin: str
    settings: Settings
    #: Metrics of the point's runs: number of the stage → seed → name of the metric → value.
    runs: dict[int, dict[int, dict[str, float]]] = field(default_factory=dict)
    outcomes: dict[int, dict[int, Outcome]] = field(default_factory=dict)
    #: Reason why a run of the point failed; empty if none failed.
    failure: str = ""

    @property
    def stage(self) -> int:
        """Number of the last stage that the point has reached."""
        return max(self.outcomes, default=0)


@dataclass(frozen=True)
class Plan:
    """Planned proposals and runs with their estimated time, announced before the search."""

    proposals: int
    exhaustive: bool
    #: Number of all runs, including the finished runs of the baseline.
    runs: int
    #: Number of ``runs`` that are finished or in the run store. Runs of points that Optuna will
    #: propose are not counted, because these points are not known yet.
    reused: int
    #: Wall time in s of all ``runs`` but ``reused``, estimated from the runs of the baseline.
    work_s: float
    #: ``work_s`` divided by the number of concurrent runs.
    wall_s: float


class Search:
    """Search of one optimisation: its file, its evaluator, and all points measured so far."""

    def __init__(self, spec: Spec, evaluator: Evaluator) -> None:
        self.spec = spec
        self.evaluator = evaluator
        self.proposals = spec.space.count(spec.trials)
        self.exhaustive = self.proposals <= spec.trials
        named = [(spec.baseline, BASELINE), *((each, CANDIDATE) for each in spec.candidates)]
        self.points = [
            Point(number, each.name, origin, each.settings)
            for number, (each, origin) in enumerate(named)
        ]
        #: Points by their settings, so that a proposal with equal settings is not measured again.
        self._by_settings = {_key(point.settings): point for point in reversed(self.points)}
        #: Rank correlation of points' scores between a stage and the next, by number of the stage.
        self.foretold: dict[int, float | None] = {}
        self._metrics = [g.metric for g in spec.goals] + [m.metric for m in spec.limits]
        self._walls: dict[int, float] = {}

    @property
    def baseline(self) -> Point:
        """The point with which all other points are compared."""
        return self.points[0]

    def run(self, announce: Callable[[Plan], None]) -> None:
        """Execute the search; ``announce`` gets the plan after the runs of the baseline.

        Raises ``InputError`` if the baseline fails, or if a run lacks a metric of a goal or limit.
        """
        study = None if self.exhaustive else _study(self.spec)
        for stage in range(len(self.spec.stages)):
            self._measure(self.points[:1], stage)
        if self.baseline.failure:
            raise InputError(
                f"a run of the baseline fails, so that no point can be compared with the baseline: "
                f"{self.baseline.failure}"
            )
        announce(self._plan())
        for stage in range(len(self.spec.stages)):
            self._measure(self.points[1:], stage)
        self._propose(study)
        alive = [point for point in self.points if point.origin == PROPOSAL]
        for stage in range(1, len(self.spec.stages)):
            before = self.order(stage - 1, alive)
            alive = before[: self.spec.stages[stage - 1].kept(len(before))]
            self.evaluator.ahead = self._runs_from(stage + 1, len(alive))
            self._measure(alive, stage)
            self.foretold[stage - 1] = self._stage_correlation(stage - 1, alive)

    # Comparison of points

    def order(self, stage: int, points: Sequence[Point]) -> list[Point]:
        """Return the points without failures, from the best to the worst at a stage.

        All ``points`` must have been measured at the stage.
        """
        standings = [self.standing(point, stage) for point in points if not point.failure]
        return [self.points[s.number] for s in judge.order(standings)]

    def standing(self, point: Point, stage: int) -> judge.Standing:
        """Return the values by which a point is ordered at a stage.

        Points are ordered by the sum of the distances from missed limits, and then by the goals.
        """
        missed = sum(max(0.0, each.missed) for each in self.kept(point, stage))
        return judge.Standing(
            point.number, judge.values(self.spec.goals, point.runs[stage]), missed
        )

    def kept(self, point: Point, stage: int) -> list[judge.Kept]:
        """Return the result of each limit at a stage: kept or missed, and the distance."""
        base = self.baseline.runs[stage]
        return [
            judge.kept(limit, point.runs[stage], base, self.spec.confidence)
            for limit in self.spec.limits
        ]

    # Measurement of points

    def _measure(self, points: Sequence[Point], number: int) -> None:
        stage = self.spec.stages[number]
        points = [point for point in points if not point.failure]
        wanted = [overrides(self.spec, stage, point.settings) for point in points]
        for point, found in zip(points, self.evaluator.measure(wanted, stage.seeds), strict=True):
            point.outcomes[number] = found
            failed = [o for o in found.values() if o.result is None]
            if failed:
                point.failure = f"{stage.name}: {failed[0].failure}"
                continue
            point.runs[number] = {
                seed: self._metrics_of(outcome) for seed, outcome in sorted(found.items())
            }
        if points == [self.baseline] and not self.baseline.failure:
            results = [o.result for o in self.baseline.outcomes[number].values()]
            walls = [float(r.summary["wall_s"]) for r in results if r is not None]
            self._walls[number] = sum(walls) / len(walls)

    def _metrics_of(self, outcome: Outcome) -> dict[str, float]:
        """Return the metrics of a run by name.

        Raises ``InputError`` if a metric of a goal or limit is missing.
        """
        assert outcome.result is not None
        metrics = metrics_of(outcome.result, 0)
        for name in self._metrics:
            if (known := full(name, metrics)) != name:
                metrics[name] = metrics[known]
            if name not in metrics:
                raise InputError(f"a run has no metric {name!r}; {meant(name, sorted(metrics))}")
        return metrics

    def _plan(self) -> Plan:
        spec = self.spec
        proposals = min(self.proposals, spec.trials)
        every = [settings for settings, _ in spec.space.every()] if self.exhaustive else []
        fixed = {_key(point.settings): point.settings for point in self.points[1:]}
        first = fixed | {_key(settings): settings for settings in every}
        first.pop(_key(self.baseline.settings), None)  # the baseline's runs are finished
        runs = reused = 0
        work_s, points = 0.0, proposals
        for number, stage in enumerate(spec.stages):
            many = (points + len(spec.candidates)) * len(stage.seeds)
            if number == 0 and self.exhaustive:
                many = len(first) * len(stage.seeds)
            known = first if number == 0 else fixed
            stored = sum(self._stored(stage, settings) for settings in known.values())
            runs += many
            reused += stored
            work_s += (many - stored) * self._walls[number]
            points = stage.kept(points)
        self.evaluator.ahead = runs
        finished = self.evaluator.done
        return Plan(
            proposals,
            self.exhaustive,
            runs + finished,
            reused + finished,
            work_s,
            work_s / max(1, self.evaluator.pool.size),
        )

    def _stored(self, stage: Stage, settings: Settings) -> int:
        """Return the number of runs of a point at a stage whose results are in the run store."""
        try:
            wanted = plan(self.evaluator.source, overrides(self.spec, stage, settings))
        except core.scenario_error():
            return 0
        return sum(self.evaluator.known(wanted.key(seed))[0] is not None for seed in stage.seeds)

    def _runs_from(self, first: int, points: int) -> int:
        """Return the number of runs of stage ``first`` and later stages.

        ``points`` is the number of points of the stage before ``first``.
        """
        runs = 0
        stages = self.spec.stages
        for before, stage in zip(stages[first - 1 :], stages[first:], strict=False):
            points = before.kept(points)
            runs += points * len(stage.seeds)
        return runs

    # Proposals of new points

    def _propose(self, study: Study | None) -> None:
        spec = self.spec
        if study is None:
            every = [self._point(s, c) for s, c in spec.space.every()]
            self.evaluator.ahead = self._runs_from(1, len(every))
            self._measure([point for point in every if 0 not in point.outcomes], 0)
            return
        asked = 0
        while asked < spec.trials:
            trials = [study.ask() for _ in range(min(spec.batch, spec.trials - asked))]
            asked += len(trials)
            points = [self._point_of_trial(trial) for trial in trials]
            fresh = {p.number: p for p in points if 0 not in p.outcomes}
            left = spec.trials - asked
            self.evaluator.ahead = left * len(spec.stages[0].seeds) + self._runs_from(
                1, spec.trials
            )
            self._measure([*fresh.values()], 0)
            for trial, point in zip(trials, points, strict=True):
                self._tell(study, trial, point)

    def _point_of_trial(self, trial: Trial) -> Point:
        """Return the point that a trial of Optuna proposes."""

        def choose(number: int, axis: Axis) -> int:
            name = f"{number} {' '.join(axis.paths)}"
            if axis.count == 1:
                return 0
            if axis.ordered:
                return trial.suggest_int(name, 0, axis.count - 1)
            return int(trial.suggest_categorical(name, range(axis.count)))

        return self._point(*self.spec.space.point(choose))

    def _point(self, settings: Settings, choices: dict[int, int]) -> Point:
        """Return the point with the given settings; create it if it does not exist yet."""
        key = _key(settings)
        if key not in self._by_settings:
            name = self.spec.space.say(choices)
            point = Point(len(self.points), name, PROPOSAL, settings)
            self.points.append(point)
            self._by_settings[key] = point
        return self._by_settings[key]

    def _tell(self, study: Study, trial: Trial, point: Point) -> None:
        from optuna.trial import TrialState  # noqa: PLC0415  an extra that only this needs

        if point.failure:
            study.tell(trial, state=TrialState.FAIL)
            return
        for limit, kept in zip(self.spec.limits, self.kept(point, 0), strict=True):
            trial.set_constraint(limit.text(), min(kept.missed, 1e9))
        study.tell(trial, list(judge.values(self.spec.goals, point.runs[0])))

    def _stage_correlation(self, stage: int, points: Sequence[Point]) -> float | None:
        """Return the rank correlation of the scores of points at a stage and at the next stage."""
        both = [p for p in points if not p.failure]
        ranks = [
            [judge.mean_score(self.spec.goals, p.runs[s], self.baseline.runs[s]) for p in both]
            for s in (stage, stage + 1)
        ]
        return judge.rank_correlation(*ranks)


def _key(settings: Settings) -> str:
    return "\n".join(sorted(f"{path} = {text(value)}" for path, value in settings.items()))


def _study(spec: Spec) -> Study:
    try:
        import optuna  # noqa: PLC0415  an extra that only this needs
    except ImportError as error:
        raise InputError(
            f"eastwest optimize needs the package optuna ({error}): {INSTALL}"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler = optuna.samplers.TPESampler(
            seed=spec.seed,
            n_startup_trials=max(10, spec.batch),
            multivariate=True,
            group=True,
            constant_liar=True,
        )
    return optuna.create_study(
        directions=["minimize"] * len(spec.goals), sampler=sampler, study_name=spec.name
    )


def stage_name(stage: Stage) -> str:
    """Return a stage as text: its name and its number of seeds."""
    many = len(stage.seeds)
    return f"{stage.name} ({many} seed{'s' * (many > 1)})"


def versions() -> dict[str, Any]:
    """Return the versions of the packages on which the proposals depend, by name."""
    try:
        import optuna  # noqa: PLC0415  an extra that only this needs
    except ImportError:
        return {"eastwest": core.version()}
    return {"eastwest": core.version(), "optuna": optuna.__version__}
