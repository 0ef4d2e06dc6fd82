"""Main loop of a sweep: runs in the run store are reused, all others are simulated and stored.

The first seed of all points is run first, then the second seed of all points, and so on. So all
points of an interrupted sweep have about equally many finished seeds. A run that fails does not
stop the others. The tables of a finished sweep do not depend on the number of processes, the order
in which runs finish, or the number of interruptions. For this reason, an adaptive rule decides
about a point only when all requested seeds of the point are finished.
"""

from __future__ import annotations

import itertools
import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eastwest import core, stats
from eastwest.errors import InputError, did_you_mean, in_one_line
from eastwest.goals import early, judge
from eastwest.goals.early import Stopped
from eastwest.goals.evaluate import Outcome, judged_limits, least_values, of_sweep
from eastwest.goals.form import Goals, Limit, of_scenario
from eastwest.mechanisms.load import Recipe
from eastwest.reader import meant
from eastwest.results import Result
from eastwest.run import Source
from eastwest.store import Plan, Store, family, plan
from eastwest.sweep.check import check, overrides, source_of
from eastwest.sweep.estimate import Estimate, Outlook
from eastwest.sweep.executor import Executor, Run, State
from eastwest.sweep.metrics import WARMED, metrics_of, warm_up_file
from eastwest.sweep.sequential import APART, DECIDED, Adaptive
from eastwest.sweep.spec import Spec
from eastwest.sweep.tables import (
    STOPPED_COLUMNS,
    SWEEP_FORMAT,
    Rows,
    SweepResult,
    comparisons_table,
    complete_points,
    metric_names,
    points_table,
    runs_by_point,
    runs_table,
    setting_columns,
    write_folder,
)
from eastwest.sweep.values import text
from eastwest.sweep.words import full
from eastwest.sweep.worker import Event

if TYPE_CHECKING:
    import polars as pl

#: Number of runs above which a sweep needs a confirmation by the user.
ASK_FROM_RUNS = 10_000
#: Expected wall time, in s, above which a sweep needs a confirmation by the user.
ASK_FROM_S = 8 * 3600.0


@dataclass(frozen=True)
class StoppedRun:
    """A run that was stopped early: its state, and its rows in the tables of runs and costs."""

    state: Stopped
    row: dict[str, Any]
    cost: dict[str, Any]


@dataclass
class Point:
    """Point of a sweep, one combination of settings, with the state of its runs."""

    number: int
    values: tuple[Any, ...]
    plan: Plan | None
    #: Reason why the simulator rejects this combination of settings; empty where it is valid.
    refused: str = ""
    #: Number of seeds of the point that have been started, including finished seeds.
    given: int = 0
    #: Number of seeds of the point that are to be started in all.
    target: int = 0
    #: Number of seeds of the point that are started and not finished.
    open: int = 0
    #: Values of the metrics of the adaptive rule, by name and seed.
    watched: dict[str, dict[int, float]] = field(default_factory=dict)
    #: Runs that were stopped early, by seed.
    stopped: dict[int, StoppedRun] = field(default_factory=dict)


class Driver(Executor[Point]):
    """Executor of one sweep, with the state of its points, its tables and its failures."""

    def __init__(
        self,
        spec: Spec,
        store: Store,
        jobs: int,
        *,
        dask: str | None = None,
        retry: bool = False,
        mechanisms: Recipe | None = None,
        confirm: Callable[[Estimate], bool],
        announce: Callable[[Estimate], None],
        progress: Callable[[State], None],
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        source = source_of(spec)
        check(spec, source)
        self.spec = spec
        self.goals = _goals_of(spec, source)
        self.stop = _stops_of(spec, source, self.goals, dask)
        super().__init__(
            source,
            store,
            jobs,
            dask=dask,
            retry=retry,
            mechanisms=mechanisms,
            progress=progress,
            say=say,
            tables=spec.keep_tables,
            warm_up_ps=spec.warm_up_ps,
        )
        self.confirm = confirm
        self.announce = announce
        self.say = say
        self.points: list[Point] = []
        self.rows = Rows()
        self.costs = Rows()
        self.failures: list[dict[str, Any]] = []
        self._ripe: deque[Point] = deque()
        #: Whether the names in ``show`` were compared with the metrics of a run.
        self._shown = False
        self.outlook = Outlook(store, family(source), self.pool)
        rule = spec.adaptive
        #: Limits that the adaptive rule decides; empty for a rule with a metric.
        self._limits = self.goals.limits if rule is not None and rule.until == DECIDED else ()
        #: Points that wait for the runs of the baseline, with which they are compared.
        self._waiting: list[Point] = []
        #: Names of the metrics of the adaptive rule: its own, or those of all goals, because the
        #: verdict on a point uses only runs that have them all.
        self._watched = self.goals.measures if self._limits or self.stop else []
        #: Number of runs that were stopped early and then simulated to their end.
        self._repeated = 0
        if rule is not None and rule.metric:
            self._watched = [rule.metric]
        elif rule is not None and not self._limits:
            raise InputError(
                'seeds.until = "decided" needs a limit: add one to [goal], such as '
                '"flows.fct_us.p99" = "< 10 ms"'
            )

    def run(self, out: Path) -> SweepResult:
        """Run the whole sweep, write its result folder ``out`` and return this folder.

        Raises ``SweepStoppedError`` where files cannot be written, ``InputError`` where a large
        sweep is not confirmed, and ``KeyboardInterrupt`` (Ctrl-C) after the folder is written with
        the runs that have finished.
        """
        began = time.perf_counter()
        self.store.check()
        self.store.tidy()
        try:
            self.pool.open()
            large = self.spec.count * self.spec.first_seeds > ASK_FROM_RUNS
            if large:
                self._confirmed(self._rough_estimate())
            estimate = self._exact_estimate()
            if not large and (estimate.wall_s or 0) > ASK_FROM_S:
                self._confirmed(estimate)
            self.announce(estimate)
            self._run_all()
        except KeyboardInterrupt:
            self.pool.close()
            if self.done:
                self._write(out, time.perf_counter() - began, complete=False)
            raise
        finally:
            self.pool.close()
        return self._write(out, time.perf_counter() - began, complete=True)

    def preview(self) -> Estimate:
        """Return an estimate of the sweep's time; without stored runs, execute up to three runs."""
        try:
            self.store.check()
            self.pool.open()
            large = self.spec.count * self.spec.first_seeds > ASK_FROM_RUNS
            return self._rough_estimate() if large else self._exact_estimate()
        finally:
            self.pool.close()

    # Estimates of the time of the sweep

    def _rough_estimate(self) -> Estimate:
        """Return an estimate of the time from the first, middle and last point only."""
        last = self.spec.count - 1
        few = [self._resolved(number) for number in sorted({0, last // 2, last})]
        plans = [point.plan for point in few if point.plan is not None]
        self.outlook.learn(plans, plans, self.spec.seeds[0])
        runs = self.spec.count * self.spec.first_seeds
        work_s = runs * (self.outlook.knowledge.typical_s() or 0.0)
        return self.outlook.estimate(runs, 0, work_s, self.spec.adaptive is not None)

    def _exact_estimate(self) -> Estimate:
        """Return an estimate of the time from all points, and fill ``points`` with them.

        Runs with a result or a stored failure in the run store take no time.
        """
        self.points = [self._resolved(number) for number in range(self.spec.count)]
        plans = [point.plan for point in self.points if point.plan is not None]
        seeds = self.spec.seeds[: self.spec.first_seeds]
        missing = {
            plan.identity: sum(not self._settled(plan.keys(seed)) for seed in seeds)
            for plan in plans
        }
        if not self.outlook.knowledge.runs:
            self.outlook.learn(plans, [p for p in plans if missing[p.identity]], seeds[0])
        work_s = sum(
            missing[plan.identity] * (self.outlook.knowledge.run_s(plan.identity) or 0.0)
            for plan in plans
        )
        runs = len(plans) * len(seeds)
        reused = runs - sum(missing[plan.identity] for plan in plans)
        return self.outlook.estimate(runs, reused, work_s, self.spec.adaptive is not None)

    def _settled(self, keys: tuple[str, ...]) -> bool:
        """Whether a run is not executed: the store has its result or its failure.

        ``keys`` are the keys of the run. With ``retry``, a stored failure does not count.
        """
        failed = not self.retry and self.store.failure(keys[0]) is not None
        return failed or any(self.store.folder(key).is_dir() for key in keys)

    def _confirmed(self, estimate: Estimate) -> None:
        if not self.confirm(estimate):
            raise InputError(
                f"the sweep was not confirmed and is not started: {estimate.sentence()}"
            )

    # Execution of runs

    def _resolved(self, number: int) -> Point:
        values = self.spec.at(number)
        try:
            found = plan(self.source, overrides(self.spec, values))
        except core.scenario_error() as error:
            return Point(number, values, None, refused=in_one_line(error))
        return Point(number, values, replace(found, stop=self.stop))

    def _run_all(self) -> None:
        """Run the first seeds of every point, then further seeds as adaptive rules request them."""
        for point in self.points:
            point.target = self.spec.first_seeds
        for _ in range(self.spec.first_seeds):
            for point in self.points:
                self._start_next_seed(point)
        while self.running or self._ripe:
            while self._ripe:
                point = self._ripe.popleft()
                if not self._repeat_stopped(point):
                    self._add_seeds(point)
            for run, event in self.ended():
                self._end(run, event)

    def typical_s(self) -> float | None:
        """Return the typical wall time of a run in s; None if no run time is known yet."""
        return self.outlook.knowledge.typical_s()

    def _start_next_seed(self, point: Point) -> None:
        """Start the next seed of a point."""
        seed = self.spec.seeds[point.given]
        point.given += 1
        point.open += 1
        if point.plan is None:
            self._fail(point, seed, "", point.refused)
        else:
            self._start(Run(point, point.plan, seed))

    def _start(self, run: Run[Point]) -> None:
        """Use the result of a run from the store, or submit the run."""
        point, seed = run.place, run.seed
        found, earlier = self._stored_run(run), self.failure(run.key)
        if found is not None:
            self._add_run(run, found, reused=found.path.name not in self.outlook.probed)
        elif earlier is not None:
            self._fail(point, seed, run.key, earlier)
        else:
            self.submit(run)

    def _stored_run(self, run: Run[Point]) -> Result | None:
        """Return the result of a run from the run store: the complete run, or else the stopped run.

        Returns None if the store has neither.
        """
        every = map(self.stored, run.plan.keys(run.seed))
        return next((found for found in every if found is not None), None)

    def stored(self, key: str) -> Result | None:
        """Return the result with this key from the run store.

        Returns None if the store has no such run, or lacks its tables or metrics after the warm-up,
        if the sweep needs them.
        """
        warm = (warm_up_file(self.spec.warm_up_ps),) if self.spec.warm_up_ps else ()
        found = self.store.find(key, tables=self.spec.keep_tables, files=warm)
        # Metrics after the warm-up have a file of their own, or are computed from the tables.
        return found if found or not warm else self.store.find(key, tables=True)

    def _end(self, run: Run[Point], event: Event) -> None:
        """Add a run that has ended to the tables, or to the failures, according to ``event``.

        Raises ``InputError`` if the result has disappeared from the store.
        """
        if event.what != "done":
            self._fail(run.place, run.seed, run.key, event.message)
            return
        found = self._stored_run(run)
        if found is None:
            raise InputError(
                f"{self.store.folder(run.key)}: the result of a finished run has disappeared from "
                "the run store; repeat the command to simulate this run again"
            )
        self._add_run(run, found, reused=False)

    def _add_run(self, run: Run[Point], found: Result, reused: bool) -> None:
        """Add a finished run with its result to the tables, and to the values of an adaptive rule.

        ``reused``: whether the result was in the store before the sweep began. Raises
        ``InputError`` if the first run has no metric of the adaptive rule.
        """
        point, summary = run.place, found.summary
        self.reused += reused
        self.made += not reused
        metrics = metrics_of(found, self.spec.warm_up_ps)
        place = {"point": point.number, "seed": run.seed, "key": found.path.name}
        row = {**place, "digest": str(summary.get("digest", "")), **metrics}
        cost = {name: summary.get(name) for name in ("wall_s", "cpu_s", "peak_rss_mb")}
        cost = {**place, **cost, "packet_hops": summary.get("packet_hops"), "reused": reused}
        if stopped := Stopped.of(summary):
            row |= zip(STOPPED_COLUMNS, stopped, strict=True)
            point.stopped[run.seed] = StoppedRun(stopped, row, cost)
        else:
            self.rows.add(row)
            self.costs.add(cost)
            if not self._shown:
                self._shown = True
                self._check_show(metrics)
        if not reused:
            self.outlook.knowledge.learn(
                run.plan.identity, summary["wall_s"], summary["peak_rss_mb"]
            )
        for name in self._watched:
            metric = full(name, metrics)
            is_of_rule = self.spec.adaptive is not None and self.spec.adaptive.metric == name
            if is_of_rule and self.done == 1 and metric not in metrics:
                hint = meant(name, sorted(metrics))
                raise InputError(f"seeds.metric: runs have no metric {name!r}; {hint}")
            if metric in metrics:
                point.watched.setdefault(name, {})[run.seed] = metrics[metric]
        self._settle(point)

    def _fail(self, point: Point, seed: int, key: str, message: str) -> None:
        self.failed += 1
        settings = {
            path: text(value) for path, value in zip(self.spec.paths, point.values, strict=True)
        }
        entry = {"point": point.number, "seed": seed, "settings": settings, "key": key}
        self.failures.append({**entry, "message": message})
        self._settle(point)

    def _check_show(self, metrics: Mapping[str, float]) -> None:
        """Print a message for each metric of ``show`` that is not in ``metrics``, with near names.

        ``metrics`` has the metrics of the first finished run.
        """
        for metric in self.spec.show:
            if full(metric, metrics) not in metrics:
                hint = did_you_mean(metric, metrics)
                self.say(f"show: the first finished run has no metric {metric[:60]!r}{hint}")

    def _settle(self, point: Point) -> None:
        point.open -= 1
        is_ripe = point.open == 0 and point.given == point.target
        if is_ripe and (self.spec.adaptive or point.stopped):
            self._ripe.append(point)

    def _repeat_stopped(self, point: Point) -> bool:
        """Simulate the stopped runs of a point to their end, unless they decide that it misses.

        Returns whether runs were started. So only points that surely miss a goal have stopped runs.
        """
        if not point.stopped or self._is_missed(point):
            return False
        stopped, point.stopped = point.stopped, {}
        self._repeated += len(stopped)
        for seed, run in stopped.items():
            self.reused -= run.cost["reused"]
            self.made -= not run.cost["reused"]
            point.open += 1
            if point.plan is not None:
                self._start(Run(point, replace(point.plan, stop=()), seed))
        return True

    def _is_missed(self, point: Point) -> bool:
        """Whether a point with stopped runs surely misses a limit."""
        level, stopped = self.spec.level, len(point.stopped)
        return any(
            judge.judge(limit, judge.mean(each, stopped, level), each, level).state == judge.MISSED
            for limit, each in self._values(point)
        )

    def _values(self, point: Point) -> list[tuple[Limit, list[float]]]:
        """Return (limit, values) for each limit: a value, or least value, of each run of a point.

        Complete runs that lack a measure of the goals are left out.
        """
        by_seed = [point.watched.get(name, {}) for name in self._watched]
        whole = [seed for seed in by_seed[0] if all(seed in each for each in by_seed)]
        stopped = {seed: run.state for seed, run in point.stopped.items()}
        return [
            (
                limit,
                [point.watched[limit.metric][seed] for seed in whole]
                + least_values(limit, stopped),
            )
            for limit in judged_limits(self.goals.limits, stopped)
        ]

    def _add_seeds(self, point: Point) -> None:
        """Start the seeds of a point up to its next look, if the adaptive rule asks for more.

        A point of which no run has all metrics of the rule gets no more seeds.
        """
        rule = self.spec.adaptive
        if rule is None:
            return
        if rule.until == APART:
            self._add_seeds_until_apart(rule, point)
            return
        given, confidence = point.given, self.spec.confidence
        if rule.metric:
            values = [*point.watched.get(rule.metric, {}).values()]
            more = rule.next_for_mean(values, given, confidence) if values else None
        else:
            limits = self._values(point)
            measured = all(each for _, each in limits)
            stopped = len(point.stopped)
            more = rule.next_for_limits(limits, given, confidence, stopped) if measured else None
        self._extend(point, more or 0)

    def _add_seeds_until_apart(self, rule: Adaptive, point: Point) -> None:
        """Start the seeds of a point, and of the baseline, up to the next look, if needed.

        The baseline gets all seeds of the other points. A point whose runs are complete before
        those of the baseline waits for them.
        """
        base = self.points[self.spec.baseline_point]
        if point is base:
            self._ripe.extend(self._waiting)
            self._waiting.clear()
            return
        if base.open:
            self._waiting.append(point)
            return
        ours, theirs = (each.watched.get(rule.metric, {}) for each in (point, base))
        both = [seed for seed in ours if seed in theirs]
        if not both:
            return
        pairs = [ours[seed] for seed in both], [theirs[seed] for seed in both]
        more = rule.next_for_difference(*pairs, point.given, self.spec.confidence)
        self._extend(base, more or 0)
        self._extend(point, more or 0)

    def _extend(self, point: Point, seeds: int) -> None:
        """Start the seeds of a point until ``seeds`` are started."""
        point.target = max(point.target, seeds)
        while point.given < point.target:
            self._start_next_seed(point)

    # Tables and result of the sweep

    @property
    def _stopped(self) -> int:
        """Number of runs that were stopped early."""
        return sum(len(point.stopped) for point in self.points)

    def _write(self, out: Path, wall_s: float, complete: bool) -> SweepResult:
        spec = self.spec
        for point in self.points:
            for run in point.stopped.values():
                self.rows.add(run.row)
                self.costs.add(run.cost)
        names = [spec.names_of(point.number) for point in self.points]
        settings = setting_columns(
            spec.paths, {p.number: p.values for p in self.points}, [*zip(*names, strict=True)]
        )
        rows, costs = self.rows.frame(), self.costs.frame()
        outcome = self._outcome(rows)
        self.failures.sort(key=lambda entry: (entry["point"], entry["seed"]))
        texts = {
            "sweep.toml": spec.text,
            "scenario.toml": self.source.text,
            "failures.json": json.dumps(self.failures, indent=2, ensure_ascii=False) + "\n",
            "summary.json": json.dumps(self._summary(wall_s, complete, outcome), indent=2) + "\n",
        }
        tables = {
            "runs": runs_table(settings, rows),
            "points": points_table(settings, rows, spec.level, outcome),
            "comparisons": comparisons_table(
                settings, complete_points(rows), spec.baseline_point, spec.level
            ),
            "costs": costs,
        }
        return write_folder(out, texts, tables)

    def _outcome(self, rows: pl.DataFrame) -> Outcome | None:
        """Return the comparison of all points with the goals; None without goals or runs.

        ``rows`` is the frame of all runs.
        """
        spec, goals = self.spec, self.goals
        if not goals or not rows.height:
            return None
        there = metric_names(rows)
        wanted = dict.fromkeys(full(measure, there) for measure in goals.measures)
        runs = runs_by_point(rows, [metric for metric in wanted if metric in there])
        stopped = {
            point.number: {seed: run.state for seed, run in point.stopped.items()}
            for point in self.points
            if point.stopped
        }
        return of_sweep(goals, runs, spec.baseline_point, spec.level, there, stopped)

    def _summary(self, wall_s: float, complete: bool, outcome: Outcome | None) -> dict[str, Any]:
        spec, known = self.spec, self.outlook.knowledge
        rule = spec.adaptive
        return {
            "kind": "sweep",
            "format": SWEEP_FORMAT,
            "name": spec.name,
            "scenario": spec.scenario if "\n" not in spec.scenario else "text",
            "version": core.version(),
            "build": core.build(),
            "complete": complete,
            "points": spec.count,
            "runs": {
                "planned": self.planned,
                "done": self.done,
                "reused": self.reused,
                "failed": self.failed,
                **({"stopped": self._stopped, "repeated": self._repeated} if self.stop else {}),
            },
            "axes": [{"paths": a.paths, "values": a.values, "names": a.names} for a in spec.axes],
            "show": list(spec.show),
            "settings": spec.settings,
            "seeds": list(spec.seeds),
            "adaptive": None if rule is None else rule.as_json(spec.confidence),
            "warm_up_s": spec.warm_up_ps / 1e12,
            "warm_up_metrics": list(WARMED) if spec.warm_up_ps else [],
            "confidence": spec.confidence,
            "baseline": spec.baseline_point,
            "goals": None if outcome is None else outcome.as_json(),
            "methods": stats.METHODS | ({} if rule is None else rule.methods(spec.confidence)),
            "store": str(self.store.path),
            "keep": "tables" if spec.keep_tables else "summary",
            "cost": {"wall_s": wall_s, "jobs": self.pool.size, "peak_rss_mb": known.peak_mb()},
        }


def _goals_of(spec: Spec, source: Source) -> Goals:
    """Return the goals of the sweep file; without goals in it, those of the scenario."""
    if spec.goals is not None:
        return spec.goals
    return of_scenario(source, overrides(spec, spec.at(0)))


def _stops_of(spec: Spec, source: Source, goals: Goals, dask: str | None) -> tuple[core.Stop, ...]:
    """Return the limits that stop runs of the sweep early; empty if the file does not want this.

    Raises ``InputError`` if no goal can stop a run, and for runs on a cluster.
    """
    if not spec.stop_when_missed:
        return ()
    if dask is not None:
        raise InputError(
            f"{early.KEY} is not possible with dask: the workers of a cluster send back complete "
            f"runs only. Remove {early.KEY}, or run the sweep on this machine"
        )
    needed = next(n for n in itertools.count(1) if _median_decides(n, spec.level))
    if len(spec.seeds) < needed:
        raise InputError(
            f"{early.KEY} needs at least {needed} seeds: with fewer, no stopped run can decide "
            "that a point misses a goal, because its value is unknown"
        )
    warmed = WARMED if spec.warm_up_ps else ()
    return early.stops(goals, source, overrides(spec, spec.at(0)), warmed)


def _median_decides(seeds: int, level: float) -> bool:
    """Whether this number of seeds has an interval of the median with the confidence ``level``."""
    return stats.percentile_interval([0.0] * seeds, 0.5, level).low is not None
