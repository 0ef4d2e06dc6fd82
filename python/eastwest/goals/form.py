"""Form of goals: limits and extremes of measures, read from a table ``[goal]``.

The table maps a measure to ``"< 1 ms"`` (also ``<=``, ``>``, ``>=``), ``"minimal"`` or
``"maximal"``. Measures are named as in the tables of sweeps, those of workloads also without
``workloads.``. The number of a limit may have a unit; without one it has the unit of the measure.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from eastwest import core, shipped
from eastwest.core import Problem
from eastwest.errors import ProblemsError, nearest
from eastwest.reader import flat
from eastwest.run import Source, may_have_goals
from eastwest.work_units import STATISTICS, UNITS

#: Maximum number of goals, as in scenarios (crates/sim/src/scenario/goal.rs).
MOST_GOALS = 16
MINIMAL, MAXIMAL = "minimal", "maximal"

_FORM = 'write a limit such as "< 1 ms" (with <, <=, > or >=), "minimal" or "maximal"'
_LIMIT = re.compile(r"\s*(<=|>=|<|>)\s*(\S.*?)\s*")
#: Parts of a summary with numbers, apart from the measures of workloads.
PARTS = (
    "adaptive", "capture", "dcb", "drops", "energy_j", "event_log", "events", "faults",
    "flow_mode", "flow_parts", "flow_samples", "flows", "jobs", "latency_us", "lpi", "marks",
    "mpi", "packet_hops", "packets", "pauses", "ports", "rocev2", "rounds", "simulated_s",
    "sketch_calls", "sketch_s", "streams", "tcp", "tcp_trace", "throughput_bps", "transactions",
)  # fmt: skip
#: Measures of workloads that are one number, without statistics.
_SINGLE = ("makespan_s", "active_from_s", "active_until_s")
_OF_WORKLOAD = re.compile(
    rf"(?:{'|'.join(_SINGLE)}|(?:{'|'.join(u.name for u in UNITS.values())}|[a-z-]+_fct_us)"
    rf"\.(?:{'|'.join(STATISTICS)}))"
)


@dataclass(frozen=True)
class Goal:
    """A measure that should become less, or more."""

    metric: str
    more: bool
    #: Weight of the goal in the score of a point.
    weight: float = 1.0

    def text(self) -> str:
        """Return the goal as text, such as ``hadoop.runtime_s.mean minimal``."""
        return f"{self.metric} {MAXIMAL if self.more else MINIMAL}"


@dataclass(frozen=True)
class Limit:
    """A measure that must stay on one side of a bound."""

    metric: str
    #: Whether the bound is the least value allowed; otherwise it is the greatest.
    least: bool
    #: Bound in the unit of the measure, or as a share of the baseline (0.01 is 1 % more).
    bound: float
    #: Whether the bound is a change against the baseline, or a value.
    relative: bool
    #: Whether the bound itself is not allowed (``<`` and ``>``).
    strict: bool = False
    #: The limit as a table ``[goal]`` has it, such as ``< 1 ms``; empty where it has another form.
    written: str = ""

    def text(self) -> str:
        """Return the limit as text, such as ``latency_us.p99 at most 100``."""
        if self.written:
            return f"{self.metric} {self.written}"
        side = "at least" if self.least else "at most"
        if not self.relative:
            return f"{self.metric} {side} {self.bound:g}"
        return f"{self.metric} {side} {100 * self.bound:+g} % against the baseline"


@dataclass(frozen=True)
class Goals:
    """Goals of a scenario, a sweep or an optimisation: what must hold, and what should be best."""

    limits: tuple[Limit, ...] = ()
    best: tuple[Goal, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is any goal."""
        return bool(self.limits or self.best)

    @property
    def measures(self) -> list[str]:
        """Measures of all goals, those with limits first."""
        return [*(limit.metric for limit in self.limits), *(goal.metric for goal in self.best)]

    def table(self) -> dict[str, str]:
        """Return the goals as a table ``[goal]``: the wanted value by measure."""
        found = {limit.metric: limit.written for limit in self.limits}
        return found | {g.metric: MAXIMAL if g.more else MINIMAL for g in self.best}


def read(given: object) -> tuple[Goals, list[Problem]]:
    """Return the goals of a table ``[goal]``, as far as they can be read, and its problems."""
    if not isinstance(given, Mapping):
        example = '{ "service.exchange_us.p99" = "< 1 ms" }'
        return Goals(), [_problem("goal", given, f"must be a table, such as {example}")]
    limits: list[Limit] = []
    best: list[Goal] = []
    problems: list[Problem] = []
    table = flat(given)
    if len(table) > MOST_GOALS:
        problems.append(_problem("goal", None, f"has more than {MOST_GOALS} goals"))
    for measure, value in list(table.items())[:MOST_GOALS]:
        wanted = value.strip() if isinstance(value, str) else ""
        if wanted in {MINIMAL, MAXIMAL}:
            best.append(Goal(measure, wanted == MAXIMAL))
            continue
        limit, message = _limit(measure, wanted)
        if limit is not None:
            limits.append(limit)
        else:
            near = nearest(wanted, (MINIMAL, MAXIMAL))
            problems.append(_problem(f"goal.{measure}", value, message, near))
    return Goals(tuple(limits), tuple(best)), problems


def _problem(path: str, value: object, message: str, hint: str | None = None) -> Problem:
    shown = None if value is None else f"{value!r:.60}"
    return {"path": path, "value": shown, "message": message, "hint": hint}


def _limit(measure: str, wanted: str) -> tuple[Limit | None, str]:
    """Return the limit that a text sets for a measure, or None and what is wrong with the text."""
    match = _LIMIT.fullmatch(wanted)
    if match is None:
        return None, f"is not a goal: {_FORM}"
    bound, message = _bound(measure, match[2])
    if bound is None:
        return None, message
    sign = match[1]
    written = f"{sign} {match[2]}"
    return Limit(measure, sign[0] == ">", bound, False, sign in {"<", ">"}, written), ""


def _bound(measure: str, text: str) -> tuple[float | None, str]:
    """Return a number in the unit of a measure, or None and what is wrong with the text."""
    try:
        plain = float(text)
    except ValueError:
        plain = math.nan
    if math.isfinite(plain):
        return plain, ""
    from eastwest.sweep.values import Bound  # noqa: PLC0415  the sweep imports this module
    from eastwest.sweep.words import unit_of  # noqa: PLC0415

    kind, scale = unit_of(measure)
    read = Bound.read(text)
    if read is not None and kind == "" and read.kind == "packets":
        return float(read.number), ""
    if read is not None and kind == "" and read.kind == "share":
        return float(read.number) / 100, ""
    if read is None or read.kind != kind:
        form = f'a {kind}, such as "< {_EXAMPLES[kind]}"' if kind else 'a number, such as "< 100"'
        return None, f"must be {form}: the measure has this unit"
    return float(read.number / scale), ""


_EXAMPLES = {"time": "1 ms", "rate": "1 Gbit/s", "size": "64 KB", "energy": "1 J"}


# Scenarios


def of_text(scenario: str) -> Goals:
    """Return the goals of a resolved scenario."""
    if "goal = {" not in scenario:
        return Goals()
    return read(tomllib.loads(scenario).get("goal", {}))[0]


def of_scenario(source: Source, overrides: core.Overrides) -> Goals:
    """Return the goals of a scenario with these settings.

    Raises ``ScenarioError`` where the scenario is wrong.
    """
    if not may_have_goals(source, overrides):
        return Goals()
    return of_text(_resolved(source, overrides))


def refuse(source: Source, overrides: core.Overrides) -> None:
    """Raise ``ProblemsError`` where a goal of a scenario names a measure that cannot exist."""
    if found := problems_of(source, overrides):
        raise ProblemsError(found)


def problems_of(
    source: Source, overrides: core.Overrides, goals: Goals | None = None
) -> list[Problem]:
    """Return the goals whose measures no run of a scenario can have, with the nearest names.

    ``goals`` are those of a sweep or optimisation, in the place of the scenario's own.
    """
    if not goals and not may_have_goals(source, overrides):
        return []
    resolved = _resolved(source, overrides)
    wanted = goals or of_text(resolved)
    workloads = [str(each["name"]) for each in tomllib.loads(resolved).get("workload", [])]
    return list(_unknown(wanted.measures, workloads))


def _resolved(source: Source, overrides: core.Overrides) -> str:
    found = core.resolve(source.text, str(source.base_dir), str(shipped.DATA), overrides, 1)
    return found["scenario_toml"]


def _unknown(measures: Sequence[str], workloads: Sequence[str]) -> Iterator[Problem]:
    """Yield the problem of each measure that cannot exist in a scenario with these workloads."""
    for measure in measures:
        if not _can_exist(measure, workloads):
            message = (
                "is not a measure: it begins with a workload of the scenario "
                f"({', '.join(workloads[:8])}), its unit and a statistic, or with a part of the "
                "summary, such as flows.fct_us.p99"
            )
            yield _problem(f"goal.{measure}", None, message, _nearest(measure, workloads))


def _can_exist(measure: str, workloads: Sequence[str]) -> bool:
    """Whether a run with these workloads may have a measure of this name."""
    head, _, rest = measure.partition(".")
    if head in PARTS:
        return True
    if head == "workloads":
        return _is_of_workload(rest, workloads)
    if head == "while":
        return any(
            _is_of_workload(own, workloads)
            for each in workloads
            if rest.startswith((f"{each}.", f"{each}/"))
            # The name of a purpose has no dots.
            for own in [rest[len(each) :].partition(".")[2]]
        )
    return _is_of_workload(measure, workloads)


def _is_of_workload(name: str, workloads: Sequence[str]) -> bool:
    """Whether a name is a workload with one of the measures of workloads."""
    return any(
        name.startswith(f"{each}.") and _OF_WORKLOAD.fullmatch(name[len(each) + 1 :]) is not None
        for each in workloads
    )


def _nearest(measure: str, workloads: Sequence[str]) -> str | None:
    """Return the name nearest to a measure that does not exist."""
    before = ""
    if measure.startswith("while."):
        # What comes before the last workload in the name stays as it is, if it is right.
        places = [measure.rfind(f".{each}.") for each in workloads]
        if (place := max(places, default=-1)) > 0:
            before, measure = measure[: place + 1], measure[place + 1 :]
    measure = measure.removeprefix("workloads.")
    names = [
        f"{each}.{unit.name}.{statistic}"
        for each in workloads[:100]
        for unit in UNITS.values()
        for statistic in STATISTICS
    ]
    names += [f"{each}.{single}" for each in workloads[:100] for single in _SINGLE]
    head, dot, rest = measure.partition(".")
    names += [f"{part}{dot}{rest}" for part in PARTS]
    if near := nearest(measure, names, 0.75):
        return before + near
    near = nearest(head, [*PARTS, *workloads])
    return f"{before}{near}{dot}{rest}" if near else None
