"""Operations of applications that failed, did not complete, or never began."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from eastwest.notes.unanswered import end_of
from eastwest.results import pick
from eastwest.units import clean, count


@dataclass(frozen=True)
class Operations:
    """Numbers of operations of an application by state; ``planned`` is the number in all states."""

    #: Operations that the application plans; if it plans none, the operations that have begun.
    planned: float
    #: Operations that are complete and have not failed.
    done: float
    #: Operations that the application counts as ``failed``, after all retries for example.
    failed: float
    #: Operations that have begun and are not complete at the end.
    unfinished: float
    #: Planned operations that have not begun.
    not_begun: float

    @property
    def is_whole(self) -> bool:
        """Whether all planned operations are done."""
        return self.done >= self.planned


def of(own: Mapping[str, Any]) -> Operations | None:
    """Return the operations of the application ``own``; None for results that lack the numbers."""
    planned, begun, completed = (
        pick(own, "operations", name) for name in ("planned", "begun", "completed")
    )
    if planned is None or begun is None or completed is None:
        return None
    failed = pick(own, "counters", "failed") or 0
    begun = max(begun, completed)
    return Operations(
        max(planned, begun),
        max(0, completed - failed),
        failed,
        begun - completed,
        max(0, planned - begun),
    )


def of_run(summary: Mapping[str, Any]) -> list[str]:
    """Return a note on each application of a run whose operations are not all done."""
    applications = summary.get("applications")
    notes = []
    for workload, own in applications.items() if isinstance(applications, Mapping) else ():
        found = of(own) if isinstance(own, Mapping) else None
        if found is None or found.is_whole:
            continue
        notes.append(f"{clean(str(workload), 40)}: {', '.join(_said(found, end_of(own)))}")
    return notes


def _said(found: Operations, end: str) -> Iterator[str]:
    """Yield the numbers of operations that are not done, as texts."""
    whole = f"of {count(found.planned)} operations"
    if found.failed:
        yield f"{count(found.failed)} {whole} failed, and have no time in the measures"
    if found.unfinished:
        yield f"{count(found.unfinished)} {whole} were not complete {end}"
    if found.not_begun:
        yield f"{count(found.not_begun)} {whole} had not begun {end}"
