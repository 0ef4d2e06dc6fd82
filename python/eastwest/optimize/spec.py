"""Reader of optimisation files: space, goals, limits and stages; all problems at once.

The file is TOML in the style of sweep files (``eastwest.sweep.spec``, from which it takes ``set``
and the forms of an axis); docs/guide/optimize.md explains it by an example. Problems of the file
alone are found here; problems of its settings in the scenario, in check.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eastwest.core import Problem
from eastwest.optimize.space import Axis, Space
from eastwest.stats import CONFIDENCE
from eastwest.sweep.spec import Reader, find_file, flat, read_file
from eastwest.sweep.values import Bound, text

#: Version of the file's format.
SCHEMA = 1
#: Number of points that are proposed where a file does not give it.
DEFAULT_TRIALS = 60
#: Number of points that are proposed before the search learns from them. It does not depend on the
#: number of processes, so that proposals do not either.
DEFAULT_BATCH = 10
MOST_TRIALS = 10_000
_MOST_SEEDS = 1000
_MOST_AXES = 100
_MOST_CHOICES = 10_000

_KEYS = (
    "optimize", "name", "scenario", "set", "axis", "goal", "limit", "baseline", "candidate",
    "search", "stage", "confidence",
)  # fmt: skip
_AXIS_KEYS = ("path", "values", "from", "to", "count", "scale", "names", "when")
_GOAL_KEYS = ("minimise", "maximise", "weight")
_LIMIT_KEYS = ("metric", "at_most", "at_least")
_CANDIDATE_KEYS = ("name", "set")
_SEARCH_KEYS = ("trials", "batch", "seed")
_STAGE_KEYS = ("name", "seeds", "keep", "set")


@dataclass(frozen=True)
class Goal:
    """A metric that should become less, or more."""

    metric: str
    more: bool
    #: Weight of the goal in the score of a point.
    weight: float


@dataclass(frozen=True)
class Limit:
    """A metric that must stay on one side of a bound."""

    metric: str
    #: Whether the bound is the least value allowed; otherwise it is the greatest.
    least: bool
    bound: float
    #: Whether the bound is a change against the baseline (0.01 is 1 % more), or a value.
    relative: bool

    def text(self) -> str:
        """Return the limit in words."""
        side = "at least" if self.least else "at most"
        if not self.relative:
            return f"{self.metric} {side} {self.bound:g}"
        return f"{self.metric} {side} {100 * self.bound:+g} % against the baseline"


@dataclass(frozen=True)
class Named:
    """Settings with a name: the baseline, or a candidate for comparison."""

    name: str
    settings: dict[str, Any]


@dataclass(frozen=True)
class Stage:
    """A stage: how points are measured before the best of them enter the next stage."""

    name: str
    seeds: tuple[int, ...]
    #: Number of points that enter the next stage; below 1, their share of the points of this stage.
    keep: float
    settings: dict[str, Any]

    def kept(self, points: int) -> int:
        """Return how many of ``points`` enter the next stage."""
        wanted = math.ceil(self.keep * points) if self.keep < 1 else round(self.keep)
        return max(1, min(points, wanted))


@dataclass(frozen=True)
class Spec:
    """An optimisation."""

    name: str
    scenario: str
    base_dir: Path
    text: str
    settings: dict[str, Any]
    space: Space
    goals: tuple[Goal, ...]
    limits: tuple[Limit, ...]
    baseline: Named
    candidates: tuple[Named, ...]
    trials: int
    batch: int
    seed: int
    stages: tuple[Stage, ...]
    confidence: float


def read(source: str | Path) -> tuple[Spec, list[Problem]]:
    """Read a file; return the optimisation, as far as it could be read, and all problems."""
    path = find_file(source, "optimisation")
    table, content = read_file(path)
    reader = _Reader(table, path.resolve().parent, path.stem, content)
    return reader.optimisation(), reader.problems


class _Reader(Reader):
    """Reader of one optimisation, which collects problems."""

    def optimisation(self) -> Spec:
        self.depth()
        self._known(self.table, _KEYS, "")
        if self.table.get("optimize", SCHEMA) != SCHEMA:
            self.wrong("optimize", self.table["optimize"], f"the version of the format is {SCHEMA}")
        scenario = self._text("scenario", "")
        if not scenario:
            self.wrong("scenario", None, "is missing: a file, or the name of a shipped scenario")
        settings = self._table("set")
        axes = [axis for n, entry in self._entries("axis") if (axis := self._axis(entry, n))]
        if len(axes) > _MOST_AXES:
            self.wrong("axis", None, f"there are more than {_MOST_AXES}")
            axes = []
        for axis in axes:
            if len(axis.rows) > _MOST_CHOICES:
                wanted = f"has more than {_MOST_CHOICES:,} values; take from and to"
                self.wrong(axis.paths[0], None, wanted)
        if not axes and not self.problems:
            self.wrong("axis", None, "is missing: there is nothing to search")
        stages = self._stages()
        self._twice([axis.paths for axis in axes], settings, stages)
        self._conditions(axes)
        search = self._sub("search", _SEARCH_KEYS)
        trials = self._whole(search, "trials", "search.trials", DEFAULT_TRIALS, 1, MOST_TRIALS)
        return Spec(
            name=self._text("name", self.stem),
            scenario=scenario,
            base_dir=self.base_dir,
            text=self.text,
            settings=settings,
            space=Space(tuple(axes)),
            goals=self._goals(),
            limits=tuple(self._limit(entry, n) for n, entry in self._entries("limit")),
            baseline=Named("baseline", self._table("baseline")),
            candidates=self._candidates(),
            trials=trials,
            batch=self._whole(search, "batch", "search.batch", DEFAULT_BATCH, 1, 1000),
            seed=self._whole(search, "seed", "search.seed", 1, 0, 2**32 - 1),
            stages=stages,
            confidence=self._number(
                self.table, "confidence", "confidence", CONFIDENCE, 0.5, 0.9999
            ),
        )

    def _entries(self, key: str) -> list[tuple[int, dict[str, Any]]]:
        """Return the tables of an array of tables, with their numbers."""
        given = self.table.get(key, [])
        if not isinstance(given, list) or not all(isinstance(e, dict) for e in given):
            self.wrong(key, None, f"must be tables, each beginning with [[{key}]]")
            return []
        return list(enumerate(given))

    def _sub(self, key: str, known: tuple[str, ...]) -> dict[str, Any]:
        given = self.table.get(key, {})
        if not isinstance(given, dict):
            self.wrong(key, given, "must be a table")
            return {}
        self._known(given, known, f"{key}.")
        return given

    # The space

    def _axis(self, entry: Mapping[str, Any], number: int) -> Axis | None:
        where = f"axis.{number}."
        self._known(entry, _AXIS_KEYS, where)
        paths = self._paths(entry, where)
        rows: tuple[tuple[Any, ...], ...] = ()
        span = None
        if "values" in entry:
            listed = self._listed(entry, paths, where)
            rows = listed.values if listed else ()
        else:
            found = self._span(entry, paths, where)
            if found is not None and "count" in entry:
                rows = self._range(entry, found, where).values
            elif found is not None:
                span = found[1:]
        if not paths or (not rows and span is None):
            return None
        names = self._names(entry, len(rows), where)
        return Axis(paths, rows, span, names, self._when(entry, where))

    def _when(self, entry: Mapping[str, Any], where: str) -> dict[str, tuple[str, ...]]:
        given = entry.get("when", {})
        if not isinstance(given, dict):
            wanted = 'must be a table, such as { "fabric.energy.kind" = "coalescing" }'
            self.wrong(f"{where}when", given, wanted)
            return {}
        return {
            path: tuple(text(v) for v in (value if isinstance(value, list) else [value]))
            for path, value in flat(given)
        }

    def _conditions(self, axes: list[Axis]) -> None:
        """Check that conditions name values of earlier axes."""
        before: dict[str, set[str]] = {}
        for number, axis in enumerate(axes):
            for path, wanted in axis.when.items():
                where = f"axis.{number}.when.{path}"
                if path not in before:
                    self.wrong(where, None, "is not the path of an axis above, with values")
                elif missing := [value for value in wanted if value not in before[path]]:
                    allowed = ", ".join(sorted(before[path]))
                    self.wrong(
                        where, missing[0], f"is not a value of that axis; allowed: {allowed}"
                    )
            for place, path in enumerate(axis.paths):
                if axis.rows:
                    before[path] = {text(row[place]) for row in axis.rows}

    def _twice(
        self, axes: list[tuple[str, ...]], settings: dict[str, Any], stages: tuple[Stage, ...]
    ) -> None:
        """Report settings that two parts of the file decide."""
        decided: dict[str, str] = dict.fromkeys(settings, "[set]")
        for paths in axes:
            for path in paths:
                if path in decided:
                    message = f"is decided twice: by {decided[path]} and by an axis"
                    self.wrong(path, None, message)
                decided[path] = "an axis"
        for stage in stages:
            for path in stage.settings:
                if decided.get(path) == "an axis":
                    self.wrong(path, None, f"is decided by an axis and by stage {stage.name}")
        for path in ("seed",):
            if path in decided:
                self.wrong(path, None, "is not set here: stages have seeds")

    # Goals and limits

    def _goals(self) -> tuple[Goal, ...]:
        goals = []
        for number, entry in self._entries("goal"):
            where = f"goal.{number}."
            self._known(entry, _GOAL_KEYS, where)
            given = [key for key in ("minimise", "maximise") if key in entry]
            metric = entry.get(given[0]) if len(given) == 1 else None
            if not isinstance(metric, str) or not metric:
                wanted = 'must have one metric: minimise = "latency_us.p99", or maximise'
                self.wrong(f"{where}minimise", metric, wanted)
                continue
            weight = self._number(entry, "weight", f"{where}weight", 1.0, 1e-6, 1e6)
            goals.append(Goal(metric, given[0] == "maximise", weight))
        if not goals and "goal" not in self.table:
            wanted = 'is missing: [[goal]] with minimise = "latency_us.p99"'
            self.wrong("goal", None, wanted)
        if len({goal.metric for goal in goals}) < len(goals):
            self.wrong("goal", None, "names a metric twice")
        return tuple(goals)

    def _limit(self, entry: Mapping[str, Any], number: int) -> Limit:
        where = f"limit.{number}."
        self._known(entry, _LIMIT_KEYS, where)
        metric = entry.get("metric")
        if not isinstance(metric, str) or not metric:
            self.wrong(f"{where}metric", metric, 'must be a metric, such as "jobs.makespan_s"')
            metric = ""
        given = [key for key in ("at_most", "at_least") if key in entry]
        if len(given) != 1:
            self.wrong(f"{where}at_most", None, "a limit has either at_most or at_least")
            return Limit(metric, False, 0.0, False)
        value = entry[given[0]]
        least = given[0] == "at_least"
        if isinstance(value, str):
            bound = Bound.read(value)
            if bound is not None and bound.kind == "share" and value.strip()[0] in "+-":
                return Limit(metric, least, float(bound.number) / 100, True)
        elif not isinstance(value, bool) and isinstance(value, (int, float)):
            return Limit(metric, least, float(value), False)
        wanted = 'must be a number in the unit of the metric, or a change such as "+1 %" or "-10 %"'
        self.wrong(f"{where}{given[0]}", value, wanted)
        return Limit(metric, least, 0.0, False)

    def _candidates(self) -> tuple[Named, ...]:
        found = []
        for number, entry in self._entries("candidate"):
            where = f"candidate.{number}."
            self._known(entry, _CANDIDATE_KEYS, where)
            name, settings = entry.get("name"), entry.get("set", {})
            if not isinstance(name, str) or not name or name == "baseline":
                self.wrong(f"{where}name", name, "must be a name for it")
            elif not isinstance(settings, dict):
                self.wrong(f"{where}set", settings, "must be a table of paths and values")
            else:
                found.append(Named(name, dict(flat(settings))))
        if len({each.name for each in found}) < len(found):
            self.wrong("candidate", None, "two candidates have the same name")
        return tuple(found)

    # Stages

    def _stages(self) -> tuple[Stage, ...]:
        entries = self._entries("stage")
        if not entries:
            one, several = tuple(range(1, 2)), tuple(range(1, 6))
            return Stage("one seed", one, 0.25, {}), Stage("five seeds", several, 1.0, {})
        found = []
        for number, entry in entries:
            where = f"stage.{number}."
            self._known(entry, _STAGE_KEYS, where)
            last = number == entries[-1][0]
            if last and "keep" in entry:
                self.wrong(f"{where}keep", entry["keep"], "the last stage has no next stage")
            settings = entry.get("set", {})
            if not isinstance(settings, dict):
                self.wrong(f"{where}set", settings, "must be a table of paths and values")
                settings = {}
            name = entry.get("name", f"stage {number + 1}")
            if not isinstance(name, str):
                self.wrong(f"{where}name", name, "must be text")
            keep = 1.0 if last else self._keep(entry, where)
            found.append(
                Stage(str(name), self._stage_seeds(entry, where), keep, dict(flat(settings)))
            )
        return tuple(found)

    def _keep(self, entry: Mapping[str, Any], where: str) -> float:
        given = entry.get("keep", "25 %")
        if isinstance(given, str):
            return self._number({"keep": given}, "keep", f"{where}keep", 0.25, 0.001, 1.0)
        return float(self._whole(entry, "keep", f"{where}keep", None, 1, MOST_TRIALS))

    def _stage_seeds(self, entry: Mapping[str, Any], where: str) -> tuple[int, ...]:
        given = entry.get("seeds", 1)
        if isinstance(given, list):
            good = given and all(type(s) is int and 0 <= s < 2**64 for s in given)
            if not good or len({*given}) < len(given) or len(given) > _MOST_SEEDS:
                self.wrong(f"{where}seeds", given, "must be different whole numbers, 0 or more")
                return (1,)
            return tuple(given)
        count = self._whole(entry, "seeds", f"{where}seeds", 1, 1, _MOST_SEEDS)
        return tuple(range(1, count + 1))
