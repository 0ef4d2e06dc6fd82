"""Repetition of a simulation, to record critical paths of messages or the ways of packets.

Results do not contain critical paths by default, because recording them needs a third more CPU
instructions. A run with equal scenario and seed is identical, which its digest proves, so critical
paths can be recorded later. This also holds for the ways of single packets.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from eastwest import core
from eastwest.fidelity import is_approximate
from eastwest.results import Result, frame, pick
from eastwest.run import load_source, measured
from eastwest.views.evidence import Evidence

#: Tables that explanations read from the repeated run instead of the first result, by the setting
#: that records them.
_TABLES = {
    "measure.flow_parts": ("flow_parts", "flow_hops"),
    "measure.packet_hops": ("packet_hops",),
}


def is_possible(result: Result) -> bool:
    """Whether the run of a result can be simulated again to record critical paths.

    The run must be complete and at packet level, without the user's own mechanisms.
    """
    summary = result.summary
    is_whole = "stopped_early" not in summary
    return is_whole and not is_approximate(summary) and not summary.get("mechanisms")


def seconds(result: Result) -> float:
    """Return the CPU time of the run in s, or its wall time; 0 where both are unknown.

    A run can have been paused, or have waited for other programs: its CPU time tells how long a
    repetition takes.
    """
    return float(pick(result.summary, "cpu_s") or pick(result.summary, "wall_s") or 0)


def record(
    evidence: Evidence,
    setting: str,
    senders: list[str],
    progress: core.ProgressCallback | None = None,
) -> str | None:
    """Simulate a result again with more tables, and add these tables to ``evidence``.

    ``setting`` is ``measure.flow_parts`` or ``measure.packet_hops``. ``senders`` is its value:
    hosts, or pairs ``SRC->DST``, whose messages or packets are recorded. Returns the reason for a
    failure, or None.
    """
    result = evidence.result
    if not is_possible(result):
        return (
            "only complete packet-level runs without the user's own mechanisms can be simulated "
            "again"
        )
    told: Callable[[core.Progress], None] = progress or (lambda _: None)
    try:
        raw, summary = measured(
            load_source(result.path),
            [(setting, json.dumps(senders))],
            None,
            core.RunOptions(progress=told),
        )
    except (core.scenario_error(), core.run_error(), ValueError, OSError) as error:
        return f"the run cannot be simulated again: {error}"
    if summary.get("digest") != result.summary.get("digest"):
        return (
            "the digest changes when the run is simulated again: "
            "another version of Eastwest, or another input, made the result"
        )
    for name in _TABLES[setting]:
        evidence.replace(name, frame(raw["tables"][name]))
    return None
