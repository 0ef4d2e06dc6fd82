"""Checks of an optimisation file: its settings, stages and goals are checked in the scenario."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from eastwest import core
from eastwest.core import Problem
from eastwest.errors import InputError, ProblemsError
from eastwest.goals import form
from eastwest.optimize.space import Axis, Settings, Space
from eastwest.optimize.spec import MISSING, Spec, Stage, read
from eastwest.run import Source, load_source
from eastwest.sweep.check import MOST_PROBLEMS, no_scenario, refused
from eastwest.sweep.values import text

_MOST_CHECKED = 200


def load(origin: str | Path) -> Spec:
    """Return the content of an optimisation file, after a check of its settings in the scenario.

    Without goals in the file, the result has the goals of the scenario. Raises ``ProblemsError``
    with at most 50 problems.
    """
    spec, problems = read(origin)
    if problems and spec.own_goals:
        raise ProblemsError(problems[:MOST_PROBLEMS])
    try:
        source = source_of(spec)
    except (OSError, InputError) as error:
        raise ProblemsError([*problems, no_scenario(error)][:MOST_PROBLEMS]) from None
    if not problems:
        variants = (overrides(spec, stage, settings) for stage, settings in _variants(spec))
        problems = refused(source, variants)
    with contextlib.suppress(core.scenario_error()):  # ``problems`` has this error already
        spec, more = _with_goals(spec, source)
        problems += more
    if problems:
        raise ProblemsError(problems[:MOST_PROBLEMS])
    return spec


def _with_goals(spec: Spec, source: Source) -> tuple[Spec, list[Problem]]:
    """Return (optimisation with its own goals or those of the scenario, problems of the goals)."""
    of_stages = [overrides(spec, stage, spec.baseline.settings) for stage in spec.stages]
    settings = of_stages[-1]

    def problems_of(goals: form.Goals | None) -> list[Problem]:
        # Each stage needs all measures: a stage with ``fidelity = "flow"`` measures no packets.
        found = [each for own in of_stages for each in form.problems_of(source, own, goals)]
        return list({each["path"]: each for each in found}.values())

    if not spec.own_goals:
        if problems := problems_of(None):
            return spec, problems
        found = form.of_scenario(source, settings)
        spec = replace(spec, goals=found.best, limits=found.limits)
        if not spec.goals:
            return spec, [{"path": "goal", "value": None, "message": MISSING, "hint": None}]
        return spec, []
    return spec, problems_of(form.Goals(spec.limits, spec.goals))


def source_of(spec: Spec) -> Source:
    """Return the scenario of an optimisation: a file beside the optimisation file, or shipped."""
    beside = spec.base_dir / spec.scenario
    return load_source(beside if beside.exists() else spec.scenario)


def overrides(spec: Spec, stage: Stage, settings: Settings) -> core.Overrides:
    """Return all settings of a point at a stage as (path, text): [set], then point, then stage.

    ``settings`` are the settings of the point; later settings override earlier ones.
    """
    parts: tuple[dict[str, Any], ...] = (spec.settings, settings, stage.settings)
    return [(path, text(value)) for part in parts for path, value in part.items()]


def _variants(spec: Spec) -> Iterator[tuple[Stage, Settings]]:
    """Yield (stage, settings of a point) such that each stage, candidate and value occurs once.

    An axis with bounds has only the two bounds, an axis with listed values at most 200 values.
    """
    for stage in spec.stages:
        yield stage, spec.baseline.settings
    last = spec.stages[-1]
    for candidate in spec.candidates:
        yield last, candidate.settings
    for number, axis in enumerate(spec.space.axes):
        choices = range(axis.count) if axis.span is None else (0, axis.count - 1)
        for choice in choices[:_MOST_CHECKED]:
            yield last, _with(spec.space, number, choice)


def _with(space: Space, number: int, choice: int) -> Settings:
    """Return the settings of a point with choice ``choice`` on the axis ``number``.

    Every other axis has the first value with which the condition (``when``) of this axis holds.
    """
    wanted = dict(space.axes[number].when)
    for axis in reversed(space.axes[:number]):
        if {*axis.paths} & {*wanted}:
            wanted |= axis.when

    def choose(place: int, axis: Axis) -> int:
        if place == number:
            return choice
        for candidate in range(len(axis.rows)):
            row = dict(zip(axis.paths, axis.row(candidate), strict=True))
            if all(text(row[path]) in wanted.get(path, (text(row[path]),)) for path in row):
                return candidate
        return 0

    return space.point(choose)[0]
