"""Reader of goals: limits and extremes of measures in a table ``[goal]``.

The table maps a measure to ``"< 1 ms"`` (also ``<=``, ``>``, ``>=``), ``"minimal"`` or
``"maximal"``. Measures have the names of the columns in the tables of sweeps; ``workloads.`` at
the beginning may be left out. The number of a limit may have a unit; without a unit it is in the
unit of the measure.
"""

from __future__ import annotations

import functools
import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from eastwest import core, shipped
from eastwest.core import Problem
from eastwest.errors import ProblemsError, nearest
from eastwest.fidelity import OF_PACKETS, is_approximate
from eastwest.reader import flat
from eastwest.run import Source, may_have_goals
from eastwest.work_units import PURPOSES, STATISTICS, UNITS, unit_of_kind

#: Maximum number of goals in a table, equal to that of the simulator
#: (crates/sim/src/scenario/goal.rs).
MOST_GOALS = 16
MINIMAL, MAXIMAL = "minimal", "maximal"

_FORM = 'write a limit such as "< 1 ms" (with <, <=, > or >=), "minimal" or "maximal"'
_LIMIT = re.compile(r"\s*(<=|>=|<|>)\s*(\S.*?)\s*")
#: Keys of a summary that have numbers, except ``workloads`` and ``while``.
PARTS = (
    "adaptive", "applications", "capture", "dcb", "drops", "energy_j", "event_log", "events",
    "faults", "flow_mode", "flow_parts", "flow_samples", "flows", "hosts", "jobs", "latency_us",
    "lpi", "marks", "mpi", "packet_hop_rows", "packet_hops", "packets", "pauses",
    "ports", "rocev2", "rounds",
    "simulated_s", "sketch_calls", "sketch_s", "streams", "tcp", "tcp_trace",
    "throughput_bps", "transactions",
)  # fmt: skip
#: Keys of a summary that only some runs have, with the kinds or transports of workloads whose runs
#: have the key.
_OF_SOME = {
    "rocev2": {"rocev2"},
    "mpi": {"mpi", "mpi-cg", "training"},
    "transactions": {"transactions"},
}
#: Measures of workloads that are a single number, without statistics such as mean and p99.
_SINGLE = ("makespan_s", "active_from_s", "active_until_s")
_OF_WORKLOAD = re.compile(
    rf"(?:{'|'.join(_SINGLE)}"
    rf"|(?:{'|'.join([*(u.name for u in UNITS.values()), *(f'{p}_fct_us' for p in PURPOSES)])})"
    rf"\.(?:{'|'.join(STATISTICS)}))"
)

#: Pattern of a counter of an application, after the name of its workload.
_COUNTER = re.compile(r"counters\.[a-z0-9_]+")
#: Pattern of a measure of an application with a statistic, after the name of its workload.
_MEASURE = re.compile(rf"[a-z0-9_]+_us\.(?:{'|'.join(STATISTICS)})")


@dataclass(frozen=True)
class Goal:
    """Goal of a measure that should be minimal, or maximal (``more``)."""

    metric: str
    more: bool
    #: Weight of the goal in the score of a point of an optimisation.
    weight: float = 1.0

    def text(self) -> str:
        """Return the goal as text, such as ``hadoop.runtime_s.mean minimal``."""
        return f"{self.metric} {MAXIMAL if self.more else MINIMAL}"


@dataclass(frozen=True)
class Limit:
    """A measure that must stay on one side of a bound."""

    metric: str
    #: Whether the bound is the least allowed value (``>``, ``>=``); otherwise it is the greatest.
    least: bool
    #: Bound in the unit of the measure; if ``relative``, a share of the baseline (0.01: 1 % more).
    bound: float
    #: Whether the bound is a relative change against the baseline, else an absolute value.
    relative: bool
    #: Whether the bound itself is not allowed (``<`` and ``>``).
    strict: bool = False
    #: Text of the limit in a table ``[goal]``, such as ``< 1 ms``; empty for other limits.
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
    """Goals of a scenario, sweep or optimisation: limits, and measures to minimise or maximise."""

    limits: tuple[Limit, ...] = ()
    best: tuple[Goal, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is at least one goal."""
        return bool(self.limits or self.best)

    @property
    def measures(self) -> list[str]:
        """Names of the measures of all goals; those with limits come first."""
        return [*(limit.metric for limit in self.limits), *(goal.metric for goal in self.best)]

    def table(self) -> dict[str, str]:
        """Return the goals as a table ``[goal]``: the text of the goal by measure."""
        found = {limit.metric: limit.written for limit in self.limits}
        return found | {g.metric: MAXIMAL if g.more else MINIMAL for g in self.best}


def read(given: object) -> tuple[Goals, list[Problem]]:
    """Return (valid goals of a table ``[goal]``, problems of its other goals).

    ``given`` is the content of the table, which may be any value of TOML.
    """
    if not isinstance(given, Mapping):
        example = '{ "service.exchange_us.p99" = "< 1 ms" }'
        return Goals(), [_problem("goal", given, f"must be a table, such as {example}")]
    limits: list[Limit] = []
    best: list[Goal] = []
    problems: list[Problem] = []
    table = flat(given)
    if len(table) > MOST_GOALS:
        problems.append(
            _problem("goal", None, f"has {len(table)} goals; at most {MOST_GOALS} are allowed")
        )
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
    if isinstance(value, str):
        shown = json.dumps(value[:60], ensure_ascii=False)
    return {"path": path, "value": shown, "message": message, "hint": hint}


def _limit(measure: str, wanted: str) -> tuple[Limit | None, str]:
    """Return (limit that the text ``wanted`` sets, ``""``), or (None, error message)."""
    match = _LIMIT.fullmatch(wanted)
    if match is None:
        return None, f"is not a goal: {_FORM}"
    sign = match[1]
    bound, message = _bound(measure, sign, match[2])
    if bound is None:
        return None, message
    written = f"{sign} {match[2]}"
    return Limit(measure, sign[0] == ">", bound, False, sign in {"<", ">"}, written), ""


def _bound(measure: str, sign: str, text: str) -> tuple[float | None, str]:
    """Return (bound in the unit of a measure, ``""``), or (None, error message).

    ``sign`` is ``<``, ``<=``, ``>`` or ``>=``; ``text`` is the text after it.
    """
    bound, message = _number(measure, sign, text)
    from eastwest.sweep.words import part_with_unit, unit_of  # noqa: PLC0415  as in _number

    if bound is not None and bound < 0 and (kind := unit_of(measure)[0]):
        part, _ = part_with_unit(measure)
        return None, f"{part} is {_KINDS[kind]}, which is never negative"
    return bound, message


def _number(measure: str, sign: str, text: str) -> tuple[float | None, str]:
    """Return (bound of any sign, in the unit of a measure, ``""``), or (None, error message).

    ``sign`` is ``<``, ``<=``, ``>`` or ``>=``, for the message; ``text`` is the text after it.
    """
    try:
        plain = float(text)
    except ValueError:
        plain = math.nan
    if math.isfinite(plain):
        return plain, ""
    from eastwest.sweep.values import Bound  # noqa: PLC0415  the sweep imports this module
    from eastwest.sweep.words import is_share, part_with_unit, unit_of  # noqa: PLC0415

    kind, scale = unit_of(measure)
    read = Bound.read(text)
    if read is not None and kind == "" and read.kind == "packets":
        return float(read.number), ""
    if read is not None and kind == "" and read.kind == "share" and is_share(measure):
        return float(read.number) / 100, ""
    if read is None or read.kind != kind:
        part, end = part_with_unit(measure)
        digits = _DIGITS.match(text)
        own = f"{digits[0] if digits else 100} {_WRITTEN_UNITS[end]}".strip()
        return None, f'{part} is {_KINDS[kind]}; write "{sign} {own}"'
    return float(read.number / scale), ""


#: Words for the kinds of units, for messages.
_KINDS = {
    "time": "a time", "rate": "a rate", "size": "a size", "energy": "an energy",
    "": "a number without a unit",
}  # fmt: skip
#: Unit that an error message proposes, by the ending of the name of a measure.
_WRITTEN_UNITS = {
    "_us": "us", "_s": "s", "_bps": "bit/s", "_bytes": "B", "_j": "J", "": "",
}  # fmt: skip
_DIGITS = re.compile(r"\d+(?:\.\d+)?")


# Goals of a scenario


def of_text(scenario: str) -> Goals:
    """Return the goals of a resolved scenario; raise ``ProblemsError`` where a goal is wrong."""
    goals, problems = _read_text(scenario)
    if problems:
        raise ProblemsError(problems)
    return goals


def _read_text(scenario: str) -> tuple[Goals, list[Problem]]:
    """Return (valid goals, problems of the other goals) of a resolved scenario as TOML."""
    if "goal = {" not in scenario:
        return Goals(), []
    return read(tomllib.loads(scenario).get("goal", {}))


def of_scenario(source: Source, overrides: core.Overrides) -> Goals:
    """Return the goals of a scenario with overrides of settings.

    Raises ``ScenarioError`` where the scenario is wrong, ``ProblemsError`` where a goal is wrong.
    """
    if not may_have_goals(source, overrides):
        return Goals()
    return of_text(_resolved(source, overrides)["scenario_toml"])


def refuse(source: Source, overrides: core.Overrides) -> None:
    """Raise ``ProblemsError`` if a goal of a scenario is wrong, or if its measure cannot exist."""
    if found := problems_of(source, overrides):
        raise ProblemsError(found)


def problems_of(
    source: Source, overrides: core.Overrides, goals: Goals | None = None
) -> list[Problem]:
    """Return the problems of goals: wrong limits, and measures that no run of a scenario can have.

    ``goals`` are the goals of a sweep or optimisation, which replace the scenario's own goals.
    """
    if not goals and (goals is not None or not may_have_goals(source, overrides)):
        return []
    resolved = _resolved(source, overrides)
    text = resolved["scenario_toml"]
    wanted, problems = _read_text(text) if goals is None else (goals, [])
    names = _Names.of(text, resolved["applications"])
    return [*problems, *(found for m in wanted.measures if (found := names.problem(m)))]


def _resolved(source: Source, overrides: core.Overrides) -> core.Resolved:
    return core.resolve(source.text, str(source.base_dir), str(shipped.DATA), overrides, 1)


# Checks of the names of measures


@dataclass(frozen=True)
class _Names:
    """Names of the measures that runs of a scenario may have, to check goals."""

    #: Kind of each workload by its name.
    kinds: Mapping[str, str]
    #: Keys of the summary that runs of the scenario have.
    parts: tuple[str, ...]
    #: Names of the numbers of each application, by the name of its workload.
    applications: Mapping[str, core.Declared]
    #: Mode of the runs if they do not simulate the packets of the whole fabric; else empty.
    approximate: str = ""
    #: Names of the workloads that are switched off, which ``applications`` does not have.
    off: frozenset[str] = frozenset()

    @staticmethod
    def of(resolved: str, applications: Mapping[str, core.Declared]) -> _Names:
        """Return the names of the measures that runs of ``resolved``, a scenario as TOML, have."""
        scenario = tomllib.loads(resolved)
        workloads = scenario.get("workload", [])
        kinds = {str(each["name"]): str(each.get("kind")) for each in workloads}
        there = {*kinds.values(), *(str(each.get("transport")) for each in workloads)}
        mode = str(scenario["fidelity"]) if is_approximate(scenario) else ""
        parts = (
            part
            for part in PARTS
            if (part not in _OF_SOME or _OF_SOME[part] & there)
            and not (mode and part in OF_PACKETS)
        )
        off = frozenset(str(each["name"]) for each in workloads if each.get("off"))
        return _Names(kinds, tuple(parts), applications, mode, off)

    def problem(self, measure: str) -> Problem | None:
        """Return the problem (with the nearest name) of a measure that cannot exist; else None."""
        path = f"goal.{measure}"
        head, _, rest = measure.partition(".")
        if not self._is_of_workload(measure) and _is_setting(measure):
            example = next((self._example(each) for each in self.kinds), "flows.fct_us.p99")
            message = (
                "is a setting, and not a measure: a goal needs a measure of the results, such as "
                f"{example}; --set and the axes of a sweep change settings"
            )
            return _problem(path, None, message)
        if head in PARTS:
            return self._wrong_part(measure)
        if head == "while":
            if self._is_of_while(rest):
                return None
            message = (
                'is not a measure: after "while." comes a workload of the scenario '
                f"({self._listed()}), optionally with a slash and a purpose of flows "
                f"({', '.join(PURPOSES)}), then another workload, its unit and a statistic, such "
                "as while.W/shuffle.V.exchange_us.p99"
            )
            return _problem(path, None, message, self._nearest_while(rest))
        own = rest if head == "workloads" else measure
        if self._is_of_workload(own):
            return None
        message = (
            "is not a measure: write WORKLOAD.UNIT.STATISTIC, such as "
            f"{self._example(next(iter(self.kinds), 'hadoop'))} (workloads of the scenario: "
            f"{self._listed()}), or a value of the summary, such as flows.fct_us.p99"
        )
        return _problem(path, None, message, self._nearest(own))

    def _listed(self) -> str:
        return ", ".join([*self.kinds][:8])

    def _example(self, workload: str, statistic: str = "p99") -> str:
        """Return a measure of a workload in its own unit, such as ``hadoop.runtime_s.p99``."""
        return f"{workload}.{unit_of_kind(self.kinds[workload]).name}.{statistic}"

    def _wrong_part(self, measure: str) -> Problem | None:
        """Return the problem of a measure that begins with a part of the summary; else None."""
        if self.approximate and measure.partition(".")[0] in OF_PACKETS:
            message = (
                f'is not measured with fidelity = "{self.approximate}", which does not simulate '
                'the packets of the whole fabric: use fidelity = "packet", or a measure of flows, '
                "such as flows.fct_us.p99"
            )
            return _problem(f"goal.{measure}", None, message)
        if measure.startswith("applications."):
            return self._wrong_application(measure)
        before, _, rest = measure.partition(".by_purpose.")
        purpose, dot, after = rest.partition(".")
        if before != "flows" or purpose in PURPOSES:
            return None
        near = nearest(purpose, PURPOSES)
        message = f"needs a purpose of flows after by_purpose; allowed: {', '.join(PURPOSES)}"
        hint = f"{before}.by_purpose.{near}{dot}{after}" if near else None
        return _problem(f"goal.{measure}", None, message, hint)

    def _wrong_application(self, measure: str) -> Problem | None:
        """Return the problem of a measure that no application of the scenario has, or None.

        Goals may name workloads that are off: a sweep can switch them on at some of its points.
        """
        path = f"goal.{measure}"
        own = measure.partition(".")[2]
        named = [each for each in self.applications if own.startswith(f"{each}.")]
        if not named and any(own.startswith(f"{each}.") for each in self.off):
            return None
        if not named:
            shown = ", ".join([*self.applications][:8]) or "this scenario has none"
            message = (
                'is not a measure: after "applications." comes a workload that is an application '
                f"({shown})"
            )
            head, _, rest = own.partition(".")
            near = nearest(head, self.applications, 0.7)
            return _problem(path, None, message, near and f"applications.{near}.{rest}")
        workload = max(named, key=len)
        declared, name = self.applications[workload], own[len(workload) + 1 :]
        counters, measures, further = (
            declared["counters"],
            declared["measures"],
            declared["further"],
        )
        known = self._declared(workload)
        free = (counters is None and _COUNTER.fullmatch(name)) or (
            measures is None and _MEASURE.fullmatch(name)
        )
        if name in known or free:
            return None
        said = [f"counters.{{{', '.join(counters)}}}"] if counters else []
        said += ["counters.NAME"] if counters is None else []
        said += [f"{each}_us" for each in measures or ()]
        said += ["NAME_us"] if measures is None else []
        message = (
            f"is not a measure of the application {workload}: it has {', '.join(said)}, "
            f"{', '.join(further)}; a name that ends with _us needs one of "
            f"{', '.join(STATISTICS)} after it"
        )
        return _problem(path, None, message, self._nearest_of_application(workload, name, known))

    def _declared(self, workload: str) -> list[str]:
        """Return the names of all numbers that an application declares."""
        declared = self.applications[workload]
        counters, measures = declared["counters"] or (), declared["measures"] or ()
        names = [f"{each}_us.{statistic}" for each in measures for statistic in STATISTICS]
        return [*(f"counters.{each}" for each in counters), *names, *declared["further"]]

    @staticmethod
    def _nearest_of_application(workload: str, name: str, known: list[str]) -> str | None:
        """Return the measure of an application nearest to the wrong ``name``, or None."""
        # A missing statistic or a missing "counters." is likelier than another name.
        near = nearest(f"{name}.p99", known, 0.9) or nearest(f"counters.{name}", known, 0.9)
        near = near or nearest(name, known, 0.6)
        return f"applications.{workload}.{near}" if near else None

    def _is_of_workload(self, name: str) -> bool:
        """Whether ``name`` is ``W.MEASURE`` with a workload W of the scenario and its measure."""
        return any(
            name.startswith(f"{each}.")
            and _OF_WORKLOAD.fullmatch(name[len(each) + 1 :]) is not None
            for each in self.kinds
        )

    def _active(self) -> Iterator[str]:
        """Yield the names allowed after ``while.``: each workload ``W``, and ``W/purpose``."""
        for each in self.kinds:
            yield each
            yield from (f"{each}/{purpose}" for purpose in PURPOSES)

    def _is_of_while(self, rest: str) -> bool:
        """Whether ``rest``, after ``while.``, is a workload and a measure of another workload."""
        return any(
            rest.startswith(f"{active}.")
            and self._is_of_workload(own := rest[len(active) + 1 :])
            and not own.startswith(f"{active.partition('/')[0]}.")
            for active in self._active()
        )

    def _nearest_while(self, rest: str) -> str | None:
        """Return the measure nearest to ``while.`` and ``rest``, or None where none is similar."""
        places = [rest.rfind(f".{each}.") for each in self.kinds]
        place = max(places, default=-1)
        if place < 0:
            # The unit and the statistic are the last two parts, and the workload is before them.
            head, _, _ = rest.rpartition(".")
            head, _, _ = head.rpartition(".")
            place = head.rfind(".")
        if place < 0:
            return None
        active, own = rest[:place], rest[place + 1 :]
        active_near = active if active in self._active() else nearest(active, self._active())
        own_near = own if self._is_of_workload(own) else self._nearest(own)
        found = f"{active_near}.{own_near}"
        is_right = active_near is not None and own_near is not None and self._is_of_while(found)
        return f"while.{found}" if is_right else None

    def _nearest(self, measure: str) -> str | None:
        """Return the measure of this scenario's runs nearest to a wrong name, or None."""
        names = [
            f"{each}.{unit.name}.{statistic}"
            for each, kind in [*self.kinds.items()][:100]
            for unit in {u.name: u for u in (unit_of_kind(kind), UNITS["flows"])}.values()
            for statistic in STATISTICS
        ]
        names += [f"{each}.{single}" for each in [*self.kinds][:100] for single in _SINGLE]
        if "_fct_us." in measure:
            end = measure.partition("_fct_us.")[2]
            purposes = [f"{purpose}_fct_us.{end}" for purpose in PURPOSES]
            names += [f"{each}.{own}" for each in [*self.kinds][:100] for own in purposes]
        head, dot, rest = measure.partition(".")
        if part := nearest(head, self.parts, 0.7):
            names.append(f"{part}{dot}{rest}")
        for each in self.applications:
            # "applications." is missing before a number of an application.
            if measure.startswith(f"{each}.") and measure[len(each) + 1 :] in self._declared(each):
                return f"applications.{measure}"
        if near := nearest(measure, names, 0.75):
            return near
        if (near := nearest(head, [*self.parts, *self.kinds], 0.7)) is None:
            return None
        if near in self.kinds:
            last = measure.rpartition(".")[2]
            return self._example(near, last if last in STATISTICS else "p99")
        return f"{near}{dot}{rest}"


@functools.cache
def _settings() -> re.Pattern[str]:
    """Return the pattern of the paths of all settings of scenarios."""
    paths = {key["path"] for key in json.loads(core.schema())["keys"]} - {*PARTS}
    any_name = r"[^.]+(?:\.\d+)?"
    return re.compile("|".join(re.escape(path).replace(r"\*", any_name) for path in sorted(paths)))


def _is_setting(name: str) -> bool:
    """Whether a name is the path of a setting of scenarios."""
    return _settings().fullmatch(name) is not None
