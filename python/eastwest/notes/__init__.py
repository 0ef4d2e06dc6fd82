"""Notes on the summary of a run: facts without which its numbers would mislead.

Each module has one kind of note that needs only the summary. ``NOTES`` lists these kinds. The notes
of a run in the terminal and in ``summary.json``, and the verdicts of its page, follow from
``NOTES``. Notes that need tables of the run (``few_flows``, ``host_cores``, ``no_overlap``) or its
scenario are not in the list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from eastwest.notes import deadlines, lost_lossless, operations, unanswered

#: Each kind of note: the class of its sentence on a page (``bad``: a failure; ``look``: needs
#: attention), and the function that returns its sentences for the summary of a run.
NOTES: tuple[tuple[str, Callable[[Mapping[str, Any]], list[str]]], ...] = (
    ("bad", lost_lossless.of_run),
    ("look", unanswered.of_run),
    ("look", operations.of_run),
    ("look", deadlines.of_run),
)


def of_run(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the notes on a run as (class, sentence); see ``NOTES`` for the classes."""
    return [(name, note) for name, notes in NOTES for note in notes(summary)]
