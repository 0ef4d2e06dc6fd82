"""Limits of goals that stop a run early: as soon as the run surely misses one of them.

The simulator decides while it runs (crates/sim/src/early_stop.rs). The summary of a stopped run has
the entry ``stopped_early`` with the limit, the time, and the least value that the measure can have
at the end of the run. Such a run has no other measures.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from eastwest import core, shipped
from eastwest.errors import InputError
from eastwest.goals import form, judge
from eastwest.goals.form import Goals, Limit
from eastwest.run import Source
from eastwest.units import agree, clean, count, plural, span

#: Key of a sweep file, and name of the option of commands, that stops runs early.
KEY = "stop_when_missed"


class Stopped(NamedTuple):
    """State of a run that was stopped early because it surely misses a limit."""

    #: Simulated time in s at which the run was stopped.
    at_s: float
    #: Name of the measure of the limit, as in the goal.
    measure: str
    #: Least value of the measure at the end of the run, in the unit of the measure.
    at_least: float

    @classmethod
    def of(cls, summary: Mapping[str, Any]) -> Stopped | None:
        """Return the state from the summary of a run; None for a complete run."""
        found = summary.get("stopped_early")
        if not isinstance(found, Mapping):
            return None
        return cls(float(found["at_s"]), str(found["measure"]), float(found["at_least"]))

    def misses(self, limit: Limit) -> bool:
        """Whether the complete run would surely miss a limit."""
        return limit.metric == self.measure and not judge.allows(limit, self.at_least)


def note(summary: Mapping[str, Any]) -> str:
    """Return a note about a run that was stopped early; an empty text for a complete run."""
    stopped = Stopped.of(summary)
    if stopped is None:
        return ""
    from eastwest.views.goals import write  # noqa: PLC0415  it imports modules that import this one

    measure = clean(stopped.measure, 120)
    limit = write(stopped.measure, float(summary["stopped_early"]["limit"]))
    return (
        f"The run was stopped early, at {span(stopped.at_s)} of simulated time, because it surely "
        f"misses the goal: at the end, {measure} would be at least "
        f"{write(stopped.measure, stopped.at_least)} (limit {limit}). All other values are those "
        "of the part until then, and not results of the whole run"
    )


def of_sweep(summary: Mapping[str, Any]) -> list[str]:
    """Return notes on the runs of a sweep that were stopped early; empty if there are none."""
    runs = summary.get("runs", {})
    notes = []
    if stopped := runs.get("stopped"):
        notes.append(
            f"{count(stopped)} of {plural(runs['done'], 'run')} stopped early, because they surely "
            "miss a goal: their points have no mean and no interval, only a value (≥) that the "
            "mean is not below. The median over the seeds of these points surely misses the goal"
        )
    if repeated := runs.get("repeated"):
        notes.append(
            f"{plural(repeated, 'run')} stopped early and {agree(repeated, 'was', 'were')} then "
            f"simulated to {agree(repeated, 'its', 'their')} end, because only complete runs show "
            "whether the point meets the goal"
        )
    return notes


def stops(
    goals: Goals, source: Source, overrides: core.Overrides, warmed: tuple[str, ...] = ()
) -> tuple[core.Stop, ...]:
    """Return the limits that can stop a run of a scenario early.

    ``warmed`` are the parts of the summary that exclude a warm-up. Raises ``InputError`` without a
    limit, and with the reasons if no limit can stop a run.
    """
    if not goals.limits:
        raise InputError(
            f"{KEY}: there is no limit that a run can miss. Write one into the table [goal], such "
            'as "flows.fct_us.p99" = "< 20 ms"'
        )
    limits = [limit for limit in goals.limits if not limit.least]
    measures = [limit.metric for limit in limits]
    found = core.stop_obstacles(
        source.text, str(source.base_dir), str(shipped.DATA), overrides, measures
    )
    why = {limit.metric: "only upper limits (< and <=) can" for limit in goals.limits}
    for measure, obstacle in zip(measures, found, strict=True):
        head = measure.partition(".")[0]
        is_warmed = warmed and (head in warmed or head not in form.PARTS)
        why[measure] = obstacle or ("it excludes the warm-up" if is_warmed else "")
    if all(why.values()):
        reasons = "".join(f"; {clean(measure, 120)}: {reason}" for measure, reason in why.items())
        raise InputError(
            f"{KEY}: no goal can stop a run before its end. An upper limit can, of durations such "
            "as flows.fct_us.p99 and jobs.runtime_s.max, and of counts such as tcp.timeouts"
            f"{reasons}"
        )
    return tuple((li.metric, li.bound, li.strict) for li in limits if not why[li.metric])
