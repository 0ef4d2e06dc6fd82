"""Goals of runs and sweeps as sentences: which runs or points meet them, and by which margin."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eastwest.goals import early, evaluate, form
from eastwest.goals.judge import MET, MISSED, UNDECIDED
from eastwest.results import Result, pick
from eastwest.sweep import words
from eastwest.sweep.metrics import metrics_in
from eastwest.units import count, percent
from eastwest.views.labels import agree, plural, shown
from eastwest.views.metrics import made

#: Maximum number of points of a sweep that a sentence names.
_MOST_NAMED = 6
#: Maximum number of goals of a run that are shown.
_MOST_LINES = 16


@dataclass(frozen=True)
class Line:
    """Points of a sweep that differ only in the setting ``Names.setting``."""

    #: All other settings, which are equal at the points, as text.
    common: str
    #: (value of the setting as text, number of the point), in ascending order of the values.
    points: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Names:
    """Names of the points of a sweep, made of their settings."""

    #: Function that returns the name of a point, given its number.
    of: Callable[[int], str]
    #: Name of the axis, if the sweep has only one: each point's name begins with it. Empty for
    #: several axes.
    axis: str = ""
    #: Name of the numeric setting with the most values; empty without a numeric setting, and for a
    #: single axis.
    setting: str = ""
    #: Lines of points that differ in ``setting`` only; empty if ``setting`` is empty.
    lines: tuple[Line, ...] = ()

    def listed(self, texts: Sequence[str], number: int | None = None) -> str:
        """Return the first few texts, and the number of the others, as a list in words.

        Each text begins with the name of a point; ``number`` is the number of all points that the
        list stands for (default: the number of texts).
        """
        return _listed(texts, f"{self.axis} " if self.axis else "", number)


# Functions on the goals of a single run.


def entries(summary: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the first 16 goals in the summary of a run, without damaged ones."""
    found = summary.get("goals")
    if not isinstance(found, list):
        return []
    return [each for each in found[:_MOST_LINES] if isinstance(each, Mapping) and "goal" in each]


def mark(entry: Mapping[str, Any]) -> str:
    """Return the mark of a run's goal: ``good`` if met, ``bad`` if missed, ``look`` otherwise.

    A goal without a limit, and a goal whose measure the run lacks, are neither met nor missed.
    """
    met = entry.get("met")
    return "good" if met is True else "bad" if met is False else "look"


def verdicts(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (mark, sentence) for each goal of a run; the mark is that of :func:`mark`."""
    return [(mark(entry), f"Goal {line(entry)}.") for entry in entries(summary)]


def line(entry: Mapping[str, Any]) -> str:
    """Return a goal of a run and its outcome: ``service.exchange_us.p99 < 1 ms: met with …``."""
    goal = shown(f"{entry.get('measure')} {entry['goal']}", 200)
    return f"{goal}: {outcome(entry)}"


def outcome(entry: Mapping[str, Any]) -> str:
    """Return whether a goal of a run is met, and with which value: ``met with 0.9 ms, 10 % …``."""
    value, at_least = pick(entry, "value"), pick(entry, "at_least")
    if at_least is not None:
        text = f"{write(str(entry.get('metric')), at_least)}, at least {_distance(entry)}"
        return f"missed with at least {text}; the run was stopped early"
    if value is None and (absent := entry.get("absent")):
        return f"not measured: {shown(absent, 200)}"
    if value is None:
        near = entry.get("nearest")
        hint = f"; the nearest name is {shown(near, 120)}" if near else ""
        return f"the run has no measure of this name{hint}"
    text = write(str(entry.get("metric")), value)
    if not isinstance(entry.get("met"), bool):
        return f"{text} in this run"
    said = "met" if entry["met"] else "missed"
    return f"{said} with {text}, {_distance(entry)}"


def _distance(entry: Mapping[str, Any]) -> str:
    """Return the distance from a goal's limit: ``17.6 % (17.6 µs) below the limit``."""
    difference = pick(entry, "difference")
    if not difference:
        return "which is the limit"
    side = "above the limit" if difference > 0 else "below the limit"
    text = write(str(entry.get("metric")), abs(difference))
    margin = pick(entry, "margin")
    return f"{text} {side}" if margin is None else f"{percent(abs(margin))} ({text}) {side}"


def write(metric: str, value: float) -> str:
    """Return ``value``, in the unit of the metric's name, as text in a suitable unit."""
    how = made(metric)
    return how.write(value * how.factor)


# Functions on the goals of several results that are compared.


def compared(results: Sequence[Result], names: Sequence[str]) -> list[str]:
    """Return sentences on which results meet the goals of the first result that has goals.

    ``names`` are the names of the results. A result is a single run: values have no intervals.
    """
    given = next((each for r in results if (each := entries(r.summary))), None)
    if given is None:
        return []
    wanted = {str(e.get("measure")): str(e["goal"]) for e in given}
    goals = form.read(wanted)[0]
    every = [{e["measure"]: e for e in _outcomes(goals, r)} for r in results]
    said = []
    for limit in goals.limits:
        found = [(name, own[limit.metric]) for name, own in zip(names, every, strict=True)]
        said.append(f"Goal {shown(limit.text(), 200)}: {'; '.join(_by_met(found))}.")
    meeting = [
        (name, own)
        for name, own in zip(names, every, strict=True)
        if all(own[limit.metric]["met"] for limit in goals.limits)
    ]
    for goal in goals.best:
        values = [
            (own[goal.metric]["value"], name)
            for name, own in meeting
            if own[goal.metric]["value"] is not None
        ]
        if values:
            value, name = (max if goal.more else min)(values)
            metric = next(iter(meeting))[1][goal.metric]["metric"]
            among = " among those that meet the limits" if goals.limits else ""
            said.append(f"Goal {shown(goal.text(), 200)}: {name}{among}, {write(metric, value)}.")
    if said:
        said.append(
            "Each result is a single run, without an interval: a sweep with several "
            "seeds shows how certain this is."
        )
    return said


def of_both(first: Result, second: Result) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Return for each goal of two runs a pair: its outcome in the first and in the second run."""
    given = [e for result in (first, second) for e in entries(result.summary)]
    wanted = dict.fromkeys((str(e.get("measure")), str(e["goal"])) for e in given)
    pairs: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []
    for measure, goal in wanted:
        read = form.read({measure: goal})[0]
        before, after = (_outcomes(read, result) for result in (first, second))
        pairs += zip(before, after, strict=True)
    return pairs


def _outcomes(goals: form.Goals, result: Result) -> list[dict[str, Any]]:
    """Return the outcome of each goal in a run."""
    stopped = early.Stopped.of(result.summary)
    return evaluate.of_run(goals, metrics_in(result.summary), stopped)


def _by_met(found: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[str]:
    """Yield up to three texts: results that meet a limit, miss it, or do not have the measure.

    ``found`` has the name of each result and its outcome of the goal.
    """
    for met, said in ((True, "met by"), (False, "missed by"), (None, "is not measured in")):
        named = [
            (name, _share(entry, "at_least") if entry["margin"] is not None else "")
            for name, entry in found
            if entry["met"] is met
        ]
        if named:
            texts = [f"{name} ({share})" if share else name for name, share in named]
            yield f"{said} {_listed(texts)}"


# Functions on the goals of a sweep.


def of_sweep(summary: Mapping[str, Any], names: Names) -> list[str]:
    """Return sentences on the goals of a sweep, from its summary; ``names`` names the points."""
    goals = summary.get("goals")
    if not isinstance(goals, Mapping):
        return []
    wanted = form.read(goals["goal"])[0]
    absent = goals["absent"]
    if absent:
        return [
            f"Goal {shown(measure, 120)}: {_absent(measure, near)}"
            for measure, near in absent.items()
        ]
    said = [*_limits(wanted, goals, names), *_along(goals, names)] if wanted.limits else []
    if wanted.best:
        said += _best(wanted, goals, names)
    return said


def _absent(measure: str, near: str | None) -> str:
    """Return as text that no run of a sweep has a measure; ``near`` is the nearest measure."""
    if near and near == f"{measure.rpartition('.')[0]}.count":
        return f"not measured: {shown(near, 120)} is 0 in all runs."
    return "no run has a measure of this name" + (
        f"; did you mean {shown(near, 120)}?" if near else "."
    )


def measures(summary: Mapping[str, Any], there: Collection[str]) -> list[str]:
    """Return the full names of the metrics in a sweep's goals that the sweep has.

    ``summary`` is the summary of the sweep, ``there`` the names of all its metrics.
    """
    goals = summary.get("goals")
    wanted = goals["goal"] if isinstance(goals, Mapping) else {}
    named = [words.full(measure, there) for measure in wanted]
    return [metric for metric in named if metric in there]


def states(summary: Mapping[str, Any]) -> dict[int, str]:
    """Return for each point of a sweep (by number) a text on how it meets the limits.

    An example is ``met, 18 % below the limit; 2 of 20 seeds miss it``. With several limits, the
    text is about the limit with the worst state. The result is empty without limits.
    """
    goals = summary.get("goals")
    points = goals["points"] if isinstance(goals, Mapping) else []
    return {point["point"]: _state(point) for point in points if point["limits"]}


def _state(point: Mapping[str, Any]) -> str:
    cell = _tightest(point)
    if cell is None:
        return ""
    margin = cell["margin"]
    said = str(point["state"])
    if cell.get("stopped") and cell["difference"] <= 0:
        said += ", mean unknown because runs were stopped early"
    elif margin is not None:
        said += f", {_share(cell)} the limit"
    return "; ".join([said, *_beyond(cell)])


def _beyond(cell: Mapping[str, Any]) -> Iterator[str]:
    """Yield how many seeds miss a limit, unless all seeds agree with the state of the point.

    ``cell`` is the entry of the limit at the point, in the summary of the sweep.
    """
    beyond, seeds = pick(cell, "beyond"), pick(cell, "value", "n")
    # Sweeps of earlier versions have not counted the seeds.
    if beyond is None or seeds is None or seeds < 2:
        return
    if (cell["state"], beyond) not in {(MET, 0), (MISSED, seeds)}:
        miss = agree(beyond, "misses", "miss")
        yield f"{count(int(beyond))} of {plural(int(seeds), 'seed')} {miss} it"


def _share(cell: Mapping[str, Any], least: str = "stopped") -> str:
    """Return the distance of a value from its limit: ``18 % below`` or ``18 % above``.

    If the value is a least value, because ``cell`` has the key ``least``, the distance is the least
    distance: ``at least 18 % above``.
    """
    side = "above" if cell["difference"] > 0 else "below"
    return f"{_at_least(cell, least)}{percent(abs(_rounded(cell['margin'])))} {side}"


def _at_least(cell: Mapping[str, Any], least: str = "stopped") -> str:
    return "at least " if cell.get(least) else ""


def _rounded(share: float) -> float:
    """Return a share rounded to two significant digits, because means over seeds are uncertain."""
    return float(f"{share:.2g}")


def _tightest(point: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the limit that decides the state of a point of a sweep.

    The result is the limit with the worst state; among equal states, the limit with the least
    margin. A limit of 0 has no margin and comes after them. Returns None without limits.
    """
    order = {MISSED: 0, UNDECIDED: 1, MET: 2}
    ranks = {
        number: (order[cell["state"]], cell["margin"] is None, cell["margin"] or 0.0)
        for number, cell in enumerate(point["limits"])
    }
    return point["limits"][min(ranks, key=ranks.__getitem__)] if ranks else None


def _limits(wanted: form.Goals, goals: Mapping[str, Any], names: Names) -> Iterator[str]:
    """Yield one sentence: points that meet all limits, that miss one, and that are undecided."""
    goal = " and ".join(shown(limit.text(), 120) for limit in wanted.limits)
    parts = []
    several = len(wanted.limits) > 1
    for each, one, many in (
        (MET, "meets all", "meet all") if several else (MET, "meets it", "meet it"),
        (MISSED, "misses one", "miss one") if several else (MISSED, "misses it", "miss it"),
        (UNDECIDED, "is undecided: more seeds are needed", "are undecided: more seeds are needed"),
    ):
        own = [point for point in goals["points"] if point["state"] == each]
        if own:
            named = [_with_margin(point, names.of) for point in own[:_MOST_NAMED]]
            number = goals["states"][each]
            parts.append(f"{names.listed(named, number)} {one if number == 1 else many}")
    if unmeasured := goals.get("unmeasured"):
        others = [names.of(point) for point in unmeasured[:_MOST_NAMED]]
        parts.append(f"not measured at {names.listed(others, len(unmeasured))}")
    yield f"Goal {goal}: {'; '.join(parts)}."


def _along(goals: Mapping[str, Any], names: Names) -> Iterator[str]:
    """Yield a sentence on the values of a numeric setting that meet all limits.

    The sentence has these values for each combination of the other settings: for example, the least
    buffer for each congestion control.
    """
    met = {point["point"] for point in goals["points"] if point["state"] == MET}
    if not 1 < len(names.lines) <= _MOST_NAMED or not met:
        return
    said = [f"{_reach(line, met)} with {line.common}" for line in names.lines]
    yield f"Values of {names.setting} that meet the goal: {'; '.join(said)}."


def _reach(line: Line, met: Collection[int]) -> str:
    """Return the values of a line's setting that meet the limits: ``from 256 KB on``.

    ``met`` are the numbers of the points that meet the limits.
    """
    states = [point in met for _, point in line.points]
    texts = [text for (text, _), is_met in zip(line.points, states, strict=True) if is_met]
    if len(texts) in {0, len(states)}:
        return "all" if texts else "none"
    if all(states[-len(texts) :]):
        return f"from {texts[0]} on"
    if all(states[: len(texts)]):
        return f"up to {texts[-1]}"
    return f"only {_listed(texts)}"


def _with_margin(point: Mapping[str, Any], name: Callable[[int], str]) -> str:
    """Return the name of a point and its distance from the limit: ``threshold 5 (18 % below)``.

    With several limits, it is the limit with the worst state.
    """
    cell = _tightest(point)
    said = name(point["point"])
    if cell is None:
        return said
    if cell.get("stopped") and cell["difference"] <= 0:
        distance = "mean unknown"
    elif cell["margin"] is None:
        side = "above" if cell["difference"] > 0 else "below"
        distance = f"{_at_least(cell)}{write(cell['metric'], abs(cell['difference']))} {side}"
    else:
        distance = _share(cell)
    return f"{said} ({', '.join([distance, *_beyond(cell)])})"


def _best(wanted: form.Goals, goals: Mapping[str, Any], names: Names) -> Iterator[str]:
    """Yield a sentence on the best point, and on points that do not differ clearly from it."""
    what = " and ".join(shown(goal.text(), 120) for goal in wanted.best)
    by_number = {point["point"]: point for point in goals["points"]}
    best, average = goals["best"], goals["on_average"]
    if best is None:
        if average is not None:
            yield (
                f"Goal {what}: {names.of(average)} is the best on average, but a "
                "limit is undecided for it."
            )
        else:
            yield f"Goal {what}: no point of the sweep meets the limits."
        return
    values = ", ".join(
        write(goal.metric, interval["mean"])
        for goal, interval in zip(wanted.best, by_number[best]["best"], strict=True)
    )
    others = goals["states"][MET] - 1
    said = f"Goal {what}: {names.of(best)} ({values})"
    if len(goals["points"]) > 1:
        said += _apart(
            others, names.listed([names.of(each) for each in goals["alike"]]), bool(wanted.limits)
        )
    if average not in {best, None}:
        said += f"; {names.of(average)} is better on average, but a limit is undecided for it"
    yield f"{said}."


def _apart(others: int, alike: str, has_limits: bool) -> str:
    """Return the end of a sentence: whether the best point is clearly better than all others.

    ``others`` is the number of other points that meet the limits, ``alike`` a list in words of the
    points that do not differ clearly from the best.
    """
    if alike:
        return f"; with these seeds it does not differ clearly from {alike}"
    if not others:
        return ", the only settings that meet the limits"
    if others == 1:
        return "; clearly better than the other one" + " that meets the limits" * has_limits
    return f"; clearly better than the {others} others" + " that meet the limits" * has_limits


def _listed(texts: Sequence[str], axis: str = "", number: int | None = None) -> str:
    """Return the first few texts, and the number of the others: ``limit 5, 10 and 3 more``.

    Each text begins with ``axis``, which is written only once. ``number`` is the number that the
    list stands for (default: the number of texts).
    """
    rest = (len(texts) if number is None else number) - _MOST_NAMED
    named = ", ".join([*texts[:1], *(t.removeprefix(axis) for t in texts[1:_MOST_NAMED])])
    return f"{named} and {rest} more" if rest > 0 else named
