"""Simulates a result a second time, to record the critical paths of its messages.

Results do not contain critical paths by default, because recording them takes a third more
instructions. A run with equal scenario and seed is identical, which its digest proves, so critical
paths can be recorded later.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from eastwest import core
from eastwest.results import Result, frame, pick
from eastwest.run import load_source, measured
from eastwest.views.evidence import Evidence

#: Tables of the second run that ``record`` adds to the evidence.
_TABLES = ("flow_parts", "flow_hops")


def is_possible(result: Result) -> bool:
    """Whether a run can be simulated again: by packets, and without the user's own mechanisms."""
    summary = result.summary
    return summary.get("fidelity") != "flow" and not summary.get("mechanisms")


def seconds(result: Result) -> float:
    """Return the wall time of the run in s; 0 where it is unknown."""
    return float(pick(result.summary, "wall_s") or 0)


def record(
    evidence: Evidence, senders: list[str], progress: core.ProgressCallback | None = None
) -> str | None:
    """Simulate a result again; add the parts of messages' times of ``senders`` to ``evidence``.

    ``senders`` are values of ``measure.flow_parts``. Returns the reason for a failure, or None.
    """
    result = evidence.result
    if "hosts" in result.summary:
        return "its hosts take time for packets ([hosts]), which the parts of a flow do not show"
    if not is_possible(result):
        return "only runs of packets without own mechanisms are simulated again"
    told: Callable[[core.Progress], None] = progress or (lambda _: None)
    try:
        raw, summary = measured(
            load_source(result.path),
            [("measure.flow_parts", json.dumps(senders))],
            None,
            core.RunOptions(progress=told),
        )
    except (core.scenario_error(), core.run_error(), ValueError, OSError) as error:
        return f"it cannot be simulated again: {error}"
    if summary.get("digest") != result.summary.get("digest"):
        return (
            "simulated again, it has another digest: "
            "another version of Eastwest, or another input, made the result"
        )
    for name in _TABLES:
        evidence.replace(name, frame(raw["tables"][name]))
    return None
