"""Reader of optimisation files, which reports all problems of a file at once.

The file is TOML in the style of sweep files, with the same forms of an axis
(``eastwest.sweep.axes``); docs/guide/optimize.md explains it by an example. This module finds
problems of the file alone; check.py finds problems of its settings in the scenario.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eastwest.core import Problem
from eastwest.goals import form
from eastwest.goals.form import Goal, Limit
from eastwest.optimize.space import Axis, Settings, Space
from eastwest.reader import Table, listed, read_file
from eastwest.sweep.axes import KEYS as FORM_KEYS
from eastwest.sweep.axes import form_of
from eastwest.sweep.spec import MOST_SEED, confidence_of, find_file, scenario_of
from eastwest.sweep.values import Bound, text

#: Version of the format of optimisation files.
SCHEMA = 1
#: Default number of proposed points (``search.trials``).
DEFAULT_TRIALS = 60
#: Default number of points that are proposed before the search learns from their results
#: (``search.batch``).
DEFAULT_BATCH = 10
MOST_TRIALS = 10_000
_MOST_SEEDS = 1000
_MOST_AXES = 100
_MOST_CHOICES = 10_000

_KEYS = (
    "optimize", "name", "scenario", "set", "axis", "goal", "limit", "baseline", "candidate",
    "search", "stage", "confidence",
)  # fmt: skip
_AXIS_KEYS = (*FORM_KEYS, "when")
_GOAL_KEYS = ("minimise", "maximise", "weight")
_LIMIT_KEYS = ("metric", "at_most", "at_least")
_CANDIDATE_KEYS = ("name", "set")
_SEARCH_KEYS = ("trials", "batch", "seed")
_STAGE_KEYS = ("name", "seeds", "keep", "set")


@dataclass(frozen=True)
class Named:
    """Settings with a name: the baseline, or a candidate for comparison."""

    name: str
    settings: dict[str, Any]


@dataclass(frozen=True)
class Stage:
    """Stage of a search: seeds and settings of the runs, and how many points enter the next."""

    name: str
    seeds: tuple[int, ...]
    #: Number of points that enter the next stage, or (below 1) the share of points that enter it.
    keep: float
    settings: dict[str, Any]

    def kept(self, points: int) -> int:
        """Return how many points enter the next stage if this stage has ``points`` points."""
        wanted = math.ceil(self.keep * points) if self.keep < 1 else round(self.keep)
        return max(1, min(points, wanted))


@dataclass(frozen=True)
class Spec:
    """Content of an optimisation file: scenario, axes, goals, limits, stages and seeds."""

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
    #: Whether the file has goals or limits, which replace the goals of its scenario.
    own_goals: bool = True


def read(source: str | Path) -> tuple[Spec, list[Problem]]:
    """Read an optimisation file; return (valid content, problems of the file).

    ``source`` is a path or the name of a shipped file.
    """
    path = find_file(source, "optimisation")
    content, text = read_file(path)
    table = Table(content)
    return _spec(table, path, text), table.problems


def _spec(table: Table, path: Path, content: str) -> Spec:
    """Return the valid content of an optimisation file; add problems of the rest to ``table``."""
    table.head(_KEYS, SCHEMA)
    settings, axes, stages = table.settings("set"), _axes(table), _stages(table)
    _check_decided_once(table, settings, axes, stages)
    search = table.table("search")
    search.keys(_SEARCH_KEYS)
    goals, limits = _goals(table)
    return Spec(
        name=table.text("name", path.stem),
        scenario=scenario_of(table),
        base_dir=path.resolve().parent,
        text=content,
        settings=settings,
        space=Space(axes),
        goals=goals,
        limits=limits,
        baseline=Named("baseline", table.settings("baseline")),
        candidates=_candidates(table),
        trials=search.integer("trials", DEFAULT_TRIALS, 1, MOST_TRIALS),
        batch=search.integer("batch", DEFAULT_BATCH, 1, 1000),
        seed=search.integer("seed", 1, 0, 2**32 - 1),
        stages=stages,
        confidence=confidence_of(table),
        own_goals=bool(table.get("goal") or table.get("limit")),
    )


# Axes of the space that is searched


def _axes(table: Table) -> tuple[Axis, ...]:
    """Return the valid axes of a file; add problems of axes and their conditions to ``table``."""
    entries = table.tables("axis", _AXIS_KEYS)
    if len(entries) > _MOST_AXES:
        table.wrong("axis", None, f"{len(entries)} axes are too many: at most {_MOST_AXES}")
        return ()
    axes = []
    before: dict[str, set[str]] = {}
    for entry in entries:
        form = form_of(entry)
        if len(form.rows) > _MOST_CHOICES:
            entry.wrong(
                "values", None, f"has more than {_MOST_CHOICES:,} values; use from and to instead"
            )
        when = _when(entry, before)
        for path, values in zip(form.paths, zip(*form.rows, strict=True), strict=False):
            before[path] = {text(value) for value in values}
        if form.rows or form.span:
            axes.append(Axis(form.paths, form.rows, form.span, form.names, when))
    if table.content.get("axis", []) == []:
        table.wrong("axis", None, "is missing: an optimisation needs at least one axis")
    return tuple(axes)


def _when(entry: Table, before: Mapping[str, set[str]]) -> dict[str, tuple[str, ...]]:
    """Return the condition of an axis: allowed values, as texts, by path of an earlier axis.

    ``before`` has the values of earlier axes, by path.
    """
    given = entry.settings("when", 'a table, such as { "fabric.energy.kind" = "coalescing" }')
    when = {path: tuple(map(text, listed(value))) for path, value in given.items()}
    for path, wanted in when.items():
        missing = [value for value in wanted if value not in before.get(path, ())]
        if path not in before:
            entry.wrong(f"when.{path}", None, "must be the path of an earlier axis with values")
        elif missing:
            message = f"is not a value of this axis; allowed: {', '.join(sorted(before[path]))}"
            entry.wrong(f"when.{path}", missing[0], message)
    return when


def _check_decided_once(
    table: Table, settings: Settings, axes: Sequence[Axis], stages: Sequence[Stage]
) -> None:
    """Add a problem for each setting that two parts set, and if [set] or an axis sets ``seed``."""
    decided = dict.fromkeys(settings, "[set]")
    for path in (path for axis in axes for path in axis.paths):
        if path in decided:
            table.wrong(path, None, f"is set twice: by {decided[path]}, and by an axis")
        decided[path] = "an axis"
    for stage in stages:
        for path in stage.settings:
            if decided.get(path) == "an axis":
                table.wrong(path, None, f"is set twice: by an axis and by stage {stage.name}")
    if "seed" in decided:
        table.wrong("seed", None, "must not be set by [set] or an axis: set seeds of each stage")


# Goals and limits


#: Message if neither the optimisation file nor the scenario has a goal to minimise or maximise.
MISSING = 'is missing: this file or its scenario needs [goal], such as "latency_us.p99" = "minimal"'


def _goals(table: Table) -> tuple[tuple[Goal, ...], tuple[Limit, ...]]:
    """Return goals and limits of the table ``[goal]``, or of ``[[goal]]`` and ``[[limit]]``.

    Returns two empty tuples if the file has none of these tables.
    """
    limits = [_limit(entry) for entry in table.tables("limit", _LIMIT_KEYS)]
    given = table.get("goal")
    if isinstance(given, Mapping):
        found, problems = form.read(given)
        table.add(problems)
        goals, limits = [*found.best], [*found.limits, *limits]
        if not goals and not problems:
            table.wrong("goal", None, 'has no measure that should be "minimal" or "maximal"')
    else:
        goals = _weighted(table)
        if limits and not given:
            table.wrong("goal", None, MISSING)
    if len({goal.metric for goal in goals}) < len(goals):
        table.wrong("goal", None, "has the same metric twice: each metric can have one goal")
    return tuple(goals), tuple(limits)


def _weighted(table: Table) -> list[Goal]:
    """Return the goals, with their weights, of the tables ``[[goal]]``."""
    goals = []
    for entry in table.tables("goal", _GOAL_KEYS):
        given = [key for key in ("minimise", "maximise") if key in entry]
        wanted = 'one metric: minimise = "latency_us.p99", or maximise'
        if len(given) != 1:
            entry.wrong("minimise", None, f"must have {wanted}")
        elif metric := entry.text(given[0], wanted=wanted):
            weight = entry.number("weight", 1.0, 1e-6, 1e6)
            goals.append(Goal(metric, given[0] == "maximise", weight))
    return goals


def _limit(entry: Table) -> Limit:
    metric = entry.text("metric", wanted='a metric, such as "jobs.makespan_s"')
    given = [key for key in ("at_most", "at_least") if key in entry]
    if len(given) != 1:
        entry.wrong("at_most", None, "a limit needs at_most or at_least, and not both")
        return Limit(metric, False, 0.0, False)
    value, least = entry.get(given[0]), given[0] == "at_least"
    bound = Bound.read(value)
    if bound is not None and bound.kind == "share" and value.strip()[0] in "+-":
        return Limit(metric, least, float(bound.number) / 100, True)
    if type(value) in {int, float}:
        return Limit(metric, least, float(value), False)
    wanted = 'must be a number in the unit of the metric, or a change such as "+1 %" or "-10 %"'
    entry.wrong(given[0], value, wanted)
    return Limit(metric, least, 0.0, False)


def _candidates(table: Table) -> tuple[Named, ...]:
    found = []
    for entry in table.tables("candidate", _CANDIDATE_KEYS):
        found.append(Named(entry.text("name", wanted="a unique name"), entry.settings("set")))
        if found[-1].name == "baseline":
            entry.wrong(
                "name", "baseline", "is the name of the unchanged scenario: choose another name"
            )
    if len({each.name for each in found}) < len(found):
        table.wrong("candidate", None, "two candidates have the same name: change one name")
    return tuple(found)


# Stages of the search


def _stages(table: Table) -> tuple[Stage, ...]:
    entries = table.tables("stage", _STAGE_KEYS)
    if not entries:
        one, several = tuple(range(1, 2)), tuple(range(1, 6))
        return Stage("one seed", one, 0.25, {}), Stage("five seeds", several, 1.0, {})
    last = entries[-1]
    if "keep" in last:
        last.wrong("keep", last.get("keep"), "cannot be used in the last stage: no stage follows")
    return tuple(
        Stage(
            entry.text("name", f"stage {number}"),
            _stage_seeds(entry),
            1.0 if entry is last else _keep(entry),
            entry.settings("set"),
        )
        for number, entry in enumerate(entries, 1)
    )


def _keep(entry: Table) -> float:
    """Return how many points enter the next stage: a number from 1 on, or a share up to 1."""
    if isinstance(entry.content.get("keep", "25 %"), str):
        return entry.number("keep", 0.25, 0.001, 1.0)
    return float(entry.integer("keep", None, 1, MOST_TRIALS))


def _stage_seeds(entry: Table) -> tuple[int, ...]:
    if isinstance(entry.get("seeds"), list):
        return entry.integers("seeds", MOST_SEED, _MOST_SEEDS)
    return tuple(range(1, 1 + entry.integer("seeds", 1, 1, _MOST_SEEDS)))
