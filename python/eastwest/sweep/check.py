"""Checks of a sweep: problems of its settings, and settings that are set twice.

Each of the first 10,000 values of every axis is checked once, in a scenario in which the other axes
have their first value. These checks find the problems of single settings without checking all
combinations. A problem that only a combination of values has is found later, when the point is
resolved; only this point fails.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from eastwest import core, shipped
from eastwest.core import Problem
from eastwest.errors import InputError, ProblemsError
from eastwest.goals import form
from eastwest.run import Source, load_source
from eastwest.sweep.spec import Spec, read
from eastwest.sweep.tables import read_summary
from eastwest.sweep.values import text

MOST_PROBLEMS = 50
_MOST_CHECKED = 10_000


def load(origin: str | Path | Mapping[str, Any], changes: Mapping[str, Any] | None = None) -> Spec:
    """Return the sweep of a file or mapping; raise ``ProblemsError`` if the file has problems.

    The error then also lists problems that the settings of the file have in the scenario. If the
    file itself has no problems, its settings are not checked here: ``check`` does this later.
    """
    spec, problems = read(origin, changes)
    if not problems:
        return spec
    if spec.scenario:
        try:
            check(spec, source_of(spec))
        except ProblemsError as error:
            problems += error.problems
        except (OSError, InputError) as error:
            problems.append(no_scenario(error))
    raise ProblemsError(problems[:MOST_PROBLEMS])


def no_scenario(error: Exception) -> Problem:
    """Return an entry for a list of problems: the scenario cannot be read because of ``error``."""
    return {"path": "scenario", "value": None, "message": str(error), "hint": None}


def source_of(spec: Spec) -> Source:
    """Return the scenario of a sweep: a file beside the sweep file, or a shipped one.

    If neither exists and the sweep file is in the result folder of a sweep, the scenario is
    ``scenario.toml`` of this folder. Raises ``FileNotFoundError`` where no scenario is found.
    """
    beside = spec.base_dir / spec.scenario
    if "\n" not in spec.scenario and beside.exists():
        return load_source(beside)
    try:
        return load_source(spec.scenario)
    except FileNotFoundError:
        kept = spec.base_dir / "scenario.toml"
        if kept.is_file() and read_summary(spec.base_dir) is not None:
            return load_source(kept)
        raise


def overrides(spec: Spec, values: tuple[Any, ...]) -> core.Overrides:
    """Return all settings of a point as (path, text): those of ``[set]``, then those of the axes.

    ``values`` are the values of the axes, in the order of ``spec.paths``.
    """
    fixed = [(path, text(value)) for path, value in spec.settings.items()]
    return fixed + [(p, text(value)) for p, value in zip(spec.paths, values, strict=True)]


def check(spec: Spec, source: Source) -> None:
    """Raise ``ProblemsError`` with at most 50 problems of the settings and goals of a sweep."""
    variants = (overrides(spec, values) for values in _variants(spec))
    problems = [*_contradictions(spec, source.text), *refused(source, variants)]
    if not problems:
        # A measure of packets exists at some points if an axis sets ``fidelity``.
        place = spec.paths.index("fidelity") if "fidelity" in spec.paths else None
        points = [spec.at(0)]
        if place is not None:
            points = [*{values[place]: values for values in _variants(spec)}.values()]
        problems = min(
            (form.problems_of(source, overrides(spec, values), spec.goals) for values in points),
            key=len,
        )
    if problems:
        raise ProblemsError(problems[:MOST_PROBLEMS])


def _contradictions(spec: Spec, scenario: str) -> Iterator[Problem]:
    """Yield a problem for each setting that is set twice, and where an axis or [set] sets ``seed``.

    A setting is also set twice if one axis sets a table and another a key of this table.
    """
    named = [(path, f"axis {path}") for path in spec.paths]
    named += [(path, "[set]") for path in spec.settings]
    steps: dict[tuple[str, ...], tuple[str, str]] = {}
    for path, where in named:
        key = _numbered(path, scenario)
        if key == ("seed",):
            message = "must not be set by an axis or [set]: use seeds = 10, or seeds = [1, 2, 3]"
            yield {"path": path, "value": None, "message": message, "hint": None}
        if key in steps:
            message = f"is set twice: by {steps[key][1]} and by {where}"
            yield {"path": path, "value": None, "message": message, "hint": None}
        steps.setdefault(key, (path, where))
    # In sorted order, a path is directly followed by the paths of its table's keys.
    for above, below in pairwise(sorted(steps)):
        if below[: len(above)] == above:
            message = f"is a key of {steps[above][0]}, which {steps[above][1]} already sets"
            yield {"path": steps[below][0], "value": None, "message": message, "hint": None}


def _numbered(path: str, scenario: str) -> tuple[str, ...]:
    """Return the parts of a path; the names of tables in a list are replaced by their numbers.

    For example, ``workload.web.load`` becomes (``workload``, ``0``, ``load``) in a scenario whose
    first workload is named ``web``.
    """
    try:
        here: Any = tomllib.loads(scenario)
    except (tomllib.TOMLDecodeError, RecursionError):
        here = None  # the simulator reports that the scenario is not TOML
    steps = []
    for step in (part.strip() for part in path.split(".")):
        if isinstance(here, list):
            names = [str(e.get("name")) if isinstance(e, dict) else "" for e in here]
            number = int(step) if step.isdecimal() else names.index(step) if step in names else -1
            steps.append(str(number) if number >= 0 else step)
            here = here[number] if 0 <= number < len(here) else None
        else:
            steps.append(step)
            here = here.get(step) if isinstance(here, dict) else None
    return tuple(steps)


def refused(source: Source, variants: Iterable[core.Overrides]) -> list[Problem]:
    """Return at most 50 problems that the simulator finds in a scenario with ``variants``.

    Each variant is a list of overrides. A problem of several variants is returned once.
    """
    found: dict[tuple[str, str], Problem] = {}
    for settings in variants:
        result = core.check(source.text, str(source.base_dir), str(shipped.DATA), settings)
        for problem in result["problems"]:
            # If several values have the same problem, only the first value is reported.
            found.setdefault((problem["path"], problem["message"]), problem)
        if len(found) >= MOST_PROBLEMS:
            break
    return list(found.values())[:MOST_PROBLEMS]


def _variants(spec: Spec) -> Iterator[tuple[Any, ...]]:
    """Yield the values of points that together have each of the first 10,000 values of every axis.

    In all points but the first, one axis differs from its first value.
    """
    first = [axis.values[0] for axis in spec.axes]
    yield tuple(value for row in first for value in row)
    for place, axis in enumerate(spec.axes):
        for row in axis.values[1:_MOST_CHECKED]:
            rows = [*first[:place], row, *first[place + 1 :]]
            yield tuple(value for row in rows for value in row)
