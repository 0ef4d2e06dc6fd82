"""Main figures and goals of a run, for the page of the studio."""

from __future__ import annotations

from typing import Any

from eastwest.deadlock import deadlock
from eastwest.report.compare import shown_metrics
from eastwest.results import Result, pick
from eastwest.views import goals as view


def figures(result: Result) -> list[list[Any]]:
    """Return the main figures of a run: key in the summary, value, text with unit, title.

    The measures of goals come first.
    """
    found = [
        [
            str(entry["metric"]),
            value,
            view.write(str(entry["metric"]), value),
            str(entry["measure"]),
        ]
        for entry in view.entries(result.summary)
        if entry.get("metric") and (value := pick(entry, "value")) is not None
    ]
    known = {key for key, *_ in found}
    return found + [
        [".".join(metric.path), value, metric.write(value), metric.title]
        for metric in shown_metrics([result])
        if (value := metric.of(result)) is not None and ".".join(metric.path) not in known
    ]


def goals(result: Result) -> list[dict[str, Any]]:
    """Return the goals of a run: whether each is met (None: it has no limit), and a sentence."""
    return [
        {"met": entry.get("met"), "goal": str(entry.get("metric")), "text": view.line(entry)}
        for entry in view.entries(result.summary)
    ]


def notes(result: Result) -> list[str]:
    """Return sentences on a run: the deadlock that ended it, and its notes."""
    stuck = deadlock(result.summary)
    said = result.summary.get("notes")
    return ([f"The run {stuck}."] if stuck else []) + [
        str(note) for note in (said if isinstance(said, list) else [])
    ]
