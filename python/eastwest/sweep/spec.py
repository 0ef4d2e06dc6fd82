"""Reader of sweep files, which reports all problems of a file at once.

A sweep file is TOML; docs/guide/sweeps.md explains it by examples. This module finds problems of
the file alone; check.py finds problems of its settings in the scenario.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eastwest import shipped
from eastwest.core import Problem
from eastwest.errors import InputError, ProblemsError, nearest
from eastwest.goals import form
from eastwest.goals.early import KEY
from eastwest.reader import Table, flat, listed, read_file
from eastwest.stats import CONFIDENCE
from eastwest.sweep.axes import KEYS as AXIS_KEYS
from eastwest.sweep.axes import MOST_VALUES, Rows, Span, form_of
from eastwest.sweep.sequential import APART, DECIDED, Adaptive
from eastwest.sweep.tables import CASE, read_summary
from eastwest.sweep.values import Bound, between, labels, sample, toml
from eastwest.sweep.values import text as as_text
from eastwest.sweep.words import HEADLINES

#: Version of the format of sweep files.
SCHEMA = 1
#: Default number of seeds of a sweep: seeds 1 to 5. With five seeds, the 95 % interval of the mean
#: extends 1.24 standard deviations to each side.
DEFAULT_SEEDS = 5
#: Maximum number of runs of a sweep (points × seeds); a table of more runs may exceed the memory.
MOST_RUNS = 10_000_000
MOST_SEED = 2**63 - 1
_MOST_COORDINATES = 10_000_000
_MOST_SHOWN = 20
#: Maximum number of values of an axis that a message lists.
_MOST_LISTED = 12

_KEYS = (
    "sweep", "name", "scenario", "set", "axis", "sample", "seeds", "warm_up", "keep", "baseline",
    "confidence", "show", "goal", KEY,
)  # fmt: skip
_SAMPLE_KEYS = ("kind", "count", "seed")
_SEEDS_KEYS = ("first", "count", "metric", "half_width", "until", "at_least", "at_most")


@dataclass(frozen=True)
class Axis:
    """Settings that are varied together: one or more paths, and one row of values for each step."""

    paths: tuple[str, ...]
    values: Rows
    #: Names of the steps in tables and pictures; empty if they have no names.
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Spec:
    """Content of a sweep file: scenario, settings, axes, seeds, goals and what is stored."""

    name: str
    scenario: str
    base_dir: Path
    text: str
    settings: dict[str, Any]
    axes: tuple[Axis, ...]
    #: Seeds of every point, in the order of use; with an adaptive rule, all seeds it may use.
    seeds: tuple[int, ...]
    adaptive: Adaptive | None
    warm_up_ps: int
    keep_tables: bool
    baseline: dict[str, Any]
    confidence: float
    #: Metrics in the printed table; if empty, the table has metrics of goals and workloads.
    show: tuple[str, ...] = ()
    #: Goals that replace the goals of the scenario; None: the goals of the scenario are used.
    goals: form.Goals | None = None
    #: Whether a run stops as soon as it surely misses a goal.
    stop_when_missed: bool = False

    @property
    def paths(self) -> list[str]:
        """Paths of all settings that the sweep varies."""
        return [path for axis in self.axes for path in axis.paths]

    @property
    def count(self) -> int:
        """Number of points of the sweep: combinations of the values of all axes."""
        return math.prod(len(axis.values) for axis in self.axes)

    @property
    def level(self) -> float:
        """Confidence with which each interval is computed; higher with an adaptive rule."""
        return self.adaptive.level(self.confidence) if self.adaptive else self.confidence

    @property
    def first_seeds(self) -> int:
        """Number of seeds with which every point starts."""
        return self.adaptive.at_least if self.adaptive else len(self.seeds)

    def at(self, number: int) -> tuple[Any, ...]:
        """Return the values of point ``number`` (from 0), in the order of ``paths``.

        From one point to the next, the last axis varies fastest.
        """
        rows: list[tuple[Any, ...]] = []
        for axis in reversed(self.axes):
            number, place = divmod(number, len(axis.values))
            rows.append(axis.values[place])
        return tuple(itertools.chain.from_iterable(reversed(rows)))

    def names_of(self, number: int) -> tuple[str, ...]:
        """Return the names of point ``number`` on the axes with names, in the order of the axes."""
        names: list[str] = []
        for axis in reversed(self.axes):
            number, place = divmod(number, len(axis.values))
            names += axis.names[place : place + 1]
        return tuple(reversed(names))

    @property
    def baseline_point(self) -> int:
        """Number of the baseline point: the first with the values of ``baseline``, or point 0."""
        number = 0
        for axis in self.axes:
            number = number * len(axis.values) + (_fitting(axis, self.baseline) or 0)
        return number


def _fitting(axis: Axis, wanted: Mapping[str, Any]) -> int | None:
    """Return the number (from 0) of the first row of an axis with the wanted values, or None."""
    found = _all_fitting(axis, wanted)
    return found[0] if found else None


def _all_fitting(axis: Axis, wanted: Mapping[str, Any]) -> list[int]:
    """Return the numbers (from 0) of the rows of an axis with the wanted values.

    ``wanted`` has a value for each path of a setting or of a key of a table, as the baseline of a
    sweep file. A row whose table has more keys than wanted is returned only if no table has exactly
    the wanted keys. The value of ``case`` is one name or several names of rows.
    """
    names = [name for name in listed(wanted.get(CASE)) if name in axis.names]
    exact: list[int] = []
    wider: list[int] = []
    for place, row in enumerate(axis.values):
        if names and axis.names[place] not in names:
            continue
        fits = [_fit(path, value, wanted) for path, value in zip(axis.paths, row, strict=True)]
        if all(fits):
            (wider if "part" in fits else exact).append(place)
    return exact or wider


def _fit(path: str, value: Any, wanted: Mapping[str, Any]) -> str:
    """Return whether the value of an axis is as wanted: ``all``, ``part`` or empty.

    ``all``: the value is equal to the wanted value, or ``wanted`` has neither ``path`` nor its
    keys; ``part``: the value is a table, and ``wanted`` has only some of its keys, with equal
    values; empty: the value differs.
    """
    if path in wanted:
        return "all" if value == wanted[path] or as_text(value) == as_text(wanted[path]) else ""
    below = {p.removeprefix(f"{path}."): v for p, v in wanted.items() if p.startswith(f"{path}.")}
    if not below:
        return "all"
    ours = flat(value)
    if not all(key in ours and as_text(ours[key]) == as_text(each) for key, each in below.items()):
        return ""
    return "all" if len(ours) == len(below) else "part"


def load(source: str | Path | Mapping[str, Any], changes: Mapping[str, Any] | None = None) -> Spec:
    """Return the sweep of a file or mapping; raise ``ProblemsError`` with all problems of the file.

    ``changes`` are as for ``read``.
    """
    spec, problems = read(source, changes)
    if problems:
        raise ProblemsError(problems)
    return spec


def read(
    source: str | Path | Mapping[str, Any], changes: Mapping[str, Any] | None = None
) -> tuple[Spec, list[Problem]]:
    """Read a sweep file and return (sweep, problems of the file).

    ``source`` is a path, the name of a shipped file, or a mapping with the keys of a file.
    ``changes`` replace keys of the file, except ``set``, whose settings are added to those of the
    file; values of None are ignored. The returned sweep has only the valid part of the file. Raises
    ``FileNotFoundError`` where there is no file.
    """
    if isinstance(source, Mapping):
        table, text, base_dir = dict(source), "", Path.cwd()
        scenario = table.get("scenario")
        stem = (
            Path(scenario).stem if isinstance(scenario, str) and "\n" not in scenario else "sweep"
        )
    else:
        path = find_file(source)
        table, text = read_file(path)
        base_dir = path.resolve().parent
        stem = _name_of_folder(path) or path.stem
    changed = {key: value for key, value in (changes or {}).items() if value is not None}
    if "set" in changed and isinstance(table.get("set"), dict):
        changed["set"] = {**flat(table["set"]), **changed["set"]}
    table.update(changed)
    if changed or not text:
        text = "".join(f"{key} = {toml(value)}\n" for key, value in table.items())
    content = Table(table)
    return _spec(content, base_dir, stem, text), content.problems


def find_file(source: str | Path, kind: str = "sweep") -> Path:
    """Return the path of a sweep or optimisation file; ``source`` is a path or a shipped name.

    ``kind`` is ``sweep`` or ``optimisation``. Raises ``FileNotFoundError``.
    """
    path = Path(source)
    if path.is_file():
        return path
    folder = shipped.SWEEPS if kind == "sweep" else shipped.OPTIMISATIONS
    found = shipped.find_in(folder, str(source))
    if found is None:
        names = ", ".join(sorted(p.stem for p in folder.glob("*.toml")))
        raise FileNotFoundError(f"no {kind} file {str(source)!r}; shipped {kind}s: {names}")
    return found


def _name_of_folder(path: Path) -> str | None:
    """Return the name of the sweep if the file is ``sweep.toml`` in a result folder, else None."""
    summary = read_summary(path.parent) if path.name == "sweep.toml" else None
    name = (summary or {}).get("name")
    return name if isinstance(name, str) else None


def _spec(table: Table, base_dir: Path, stem: str, text: str) -> Spec:
    """Return the valid content of a sweep file; add problems of the rest to ``table``."""
    table.head(_KEYS, SCHEMA)
    axes, named = _axes(table)
    seeds, adaptive = _seeds(table)
    wanted = f'a list of metrics, such as ["jobs.makespan_s"], at most {_MOST_SHOWN}'
    spec = Spec(
        name=table.text("name", stem),
        scenario=scenario_of(table),
        base_dir=base_dir,
        text=text,
        settings=table.settings("set"),
        axes=axes,
        seeds=seeds,
        adaptive=adaptive,
        warm_up_ps=_warm_up(table),
        keep_tables=table.one_of("keep", ("summary", "tables"), "summary") == "tables",
        baseline=table.settings("baseline"),
        confidence=confidence_of(table),
        show=tuple(dict.fromkeys(table.texts("show", (), wanted, _MOST_SHOWN))),
        goals=_goals(table),
        stop_when_missed=_stop_when_missed(table, adaptive),
    )
    _check_baseline(table, spec, named)
    _check_show(table, spec.show)
    runs = spec.count * len(spec.seeds)
    if runs > MOST_RUNS and not table.problems:
        raise InputError(
            f"{spec.count:,} points with up to {len(spec.seeds):,} seeds are {runs:,} runs; "
            f"a sweep can have at most {MOST_RUNS:,} runs. Use fewer values, or a table [sample]"
        )
    return spec


def scenario_of(table: Table) -> str:
    """Return the scenario (file, shipped name or text) of a sweep or optimisation file.

    The result is empty where the key is missing.
    """
    return table.text("scenario", wanted="a file, or the name of a shipped scenario")


def confidence_of(table: Table) -> float:
    """Return the confidence level of intervals from a sweep or optimisation file, or the default.

    For example, 0.95.
    """
    return table.number("confidence", CONFIDENCE, 0.5, 0.9999)


def _goals(table: Table) -> form.Goals | None:
    """Return the goals of a sweep file, or None where it has no table for them."""
    if "goal" not in table:
        return None
    goals, problems = form.read(table.get("goal"))
    table.add(problems)
    return goals


def _stop_when_missed(table: Table, adaptive: Adaptive | None) -> bool:
    """Return whether runs stop early; add a problem if a rule for seeds needs complete runs."""
    wanted = table.boolean(KEY, default=False)
    if wanted and adaptive is not None and adaptive.until != DECIDED:
        message = (
            "is not allowed together with a rule of [seeds] that needs an interval (half_width, or "
            f'until = "{APART}"): runs that stop early have no values for it. Use until = '
            f'"{DECIDED}", or a number of seeds'
        )
        table.wrong(KEY, wanted, message)
    return wanted


def _warm_up(table: Table) -> int:
    bound = Bound.read(table.content.get("warm_up", "0 s"))
    if bound is None or bound.kind != "time" or bound.number < 0:
        table.wrong("warm_up", table.get("warm_up"), 'must be a time, such as "100 ms"')
        return 0
    return round(bound.number)


def _check_show(table: Table, metrics: Sequence[str]) -> None:
    """Add a problem for each entry of ``show`` that is the heading of a column, not a metric."""
    headings = {title: path for path, title, _ in HEADLINES}
    for place, metric in enumerate(metrics):
        if metric in headings:
            message = "is the heading of a column, not the name of a metric"
            table.wrong(f"show.{place}", metric, message, headings[metric])


def _check_baseline(table: Table, spec: Spec, named: list[str]) -> None:
    """Add problems of the table ``[baseline]``: unknown paths, names and values.

    ``named`` has the paths of all axes, including axes with problems.
    """
    for path in spec.baseline:
        if path != CASE and not any(p == path or path.startswith(f"{p}.") for p in named):
            message = "is not the path of an axis: the baseline can only set settings of axes"
            table.wrong(f"baseline.{path}", None, message, nearest(path, named))
    cases = [name for axis in spec.axes for name in axis.names]
    for name in listed(spec.baseline.get(CASE, [])):
        if name not in cases:
            there = f"the names are {_first(cases)}" if cases else "no axis has names"
            message = f"is not one of the names of an axis: {there}"
            table.wrong(f"baseline.{CASE}", name, message, nearest(name, cases))
    for axis in spec.axes:
        found = _all_fitting(axis, spec.baseline)
        if len(found) == 1 or not any(_chooses(path, spec.baseline) for path in axis.paths):
            continue
        path = next(path for path in axis.paths if _chooses(path, spec.baseline))
        values = labels([row[axis.paths.index(path)] for row in axis.values])
        if found:
            if path in spec.baseline:
                continue  # several rows of the axis have this value: the first is the baseline
            these = _first([values[place] for place in found])
            message = f"matches several values of this axis ({these}): set more keys of the table"
            table.wrong(f"baseline.{path}", None, message)
        else:
            message = f"is not one of the values of this axis: {_first(values)}"
            table.wrong(f"baseline.{path}", spec.baseline.get(path), message)


def _chooses(path: str, baseline: Mapping[str, Any]) -> bool:
    """Whether the baseline sets ``path``, or a key of the table at ``path``."""
    return any(each == path or each.startswith(f"{path}.") for each in baseline)


def _first(names: Sequence[str]) -> str:
    """Return the first 12 names as text, with the number of the others."""
    more = len(names) - _MOST_LISTED
    said = "; ".join(names[:_MOST_LISTED])
    return f"{said}; and {more} more" if more > 0 else said


def _axes(table: Table) -> tuple[tuple[Axis, ...], list[str]]:
    """Return (valid axes, paths of all axes) of a sweep file.

    Axes with a range but no count are combined to one axis, which has the points of ``[sample]``.
    """
    forms = [form_of(entry) for entry in table.tables("axis", AXIS_KEYS)]
    axes = [Axis(form.paths, form.rows, form.names) for form in forms if form.rows]
    spans = [(form.paths[0], form.span) for form in forms if form.span]
    sampled = _sampled(table, spans)
    named = [path for form in forms for path in form.paths]
    return (*axes, *([sampled] if sampled else [])), named


def _sampled(table: Table, spans: list[tuple[str, Span]]) -> Axis | None:
    """Return one axis whose rows are the points of ``[sample]``; None without a valid ``[sample]``.

    ``spans`` has (path, range) of each axis without a count; each row has one value for each path.
    """
    if "sample" not in table:
        for path, _ in spans:
            wanted = "needs the key count, or a table [sample] for all axes without count"
            table.wrong(f"axis ({path})", None, wanted)
        return None
    before = len(table.problems)
    given = table.table("sample", 'a table, such as { kind = "sobol", count = 64 }')
    given.keys(_SAMPLE_KEYS)
    kind = given.one_of("kind", ("sobol", "random"), "sobol")
    count = given.integer("count", None, 1, MOST_VALUES)
    seed = given.integer("seed", 1, 0, MOST_SEED)
    if not spans:
        table.wrong("sample", None, "needs an axis with from and to that has no key count")
    elif count * len(spans) > _MOST_COORDINATES:
        given.wrong(
            "count",
            count,
            f"is too large for {len(spans)} axes: count × axes must be at most "
            f"{_MOST_COORDINATES:,}",
        )
    if len(table.problems) > before:
        return None
    cube = sample(kind, count, len(spans), seed)
    columns = [
        between(low, high, [row[place] for row in cube], log)
        for place, (_, (low, high, log)) in enumerate(spans)
    ]
    rows = dict.fromkeys(zip(*columns, strict=True))
    return Axis(tuple(path for path, _ in spans), tuple(rows))


def _seeds(table: Table) -> tuple[tuple[int, ...], Adaptive | None]:
    given = table.get("seeds")
    if isinstance(given, list):
        return table.integers("seeds", MOST_SEED, MOST_VALUES), None
    if not isinstance(given, dict):
        count = table.integer("seeds", DEFAULT_SEEDS, 1, MOST_VALUES)
        return tuple(range(1, 1 + count)), None
    rule = table.table("seeds")
    rule.keys(_SEEDS_KEYS)
    first = rule.integer("first", 1, 0, 2**62)
    if "metric" not in rule and "until" not in rule:
        for key in ("half_width", "at_least", "at_most"):
            if key in rule:
                rule.wrong(
                    key, rule.get(key), "is allowed only together with the key metric or until"
                )
        count = rule.integer("count", None, 1, MOST_VALUES)
        return tuple(range(first, first + count)), None
    adaptive = _rule(rule)
    return tuple(range(first, first + adaptive.at_most)), adaptive


def _rule(rule: Table) -> Adaptive:
    """Return the rule that adds seeds, from the table ``[seeds]``."""
    if "count" in rule:
        rule.wrong(
            "count", rule.get("count"), "is not allowed with a rule: use at_least and at_most"
        )
    metric, half_width, until = "", 0.0, ""
    if "until" in rule:
        until = rule.text("until", wanted=f'"{DECIDED}" or "{APART}"')
        if until not in {DECIDED, APART}:
            message = (
                f'must be "{DECIDED}", until each limit is met or missed, or "{APART}", until '
                "each point differs from the baseline"
            )
            rule.wrong("until", until, message)
        for key in ("metric", "half_width") if until == DECIDED else ("half_width",):
            if key in rule:
                rule.wrong(key, rule.get(key), f'is not allowed together with until = "{until}"')
    if until != DECIDED:
        metric = rule.text("metric", wanted='a metric, such as "flows.fct_us.p99"')
    if not until:
        half_width = rule.number("half_width", 0.05, 1e-6, 1.0)
    at_least = rule.integer("at_least", 6 if until else 5, 2, 100_000)
    at_most = rule.integer("at_most", 50, 2, 100_000)
    if at_most < at_least:
        rule.wrong("at_most", at_most, f"must not be less than at_least, {at_least}")
    return Adaptive(metric, half_width, at_least, max(at_most, at_least), until)
