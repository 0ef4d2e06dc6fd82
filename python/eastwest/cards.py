"""Results as small HTML for notebooks: ``_repr_html_`` of results, sweeps, claims and stories.

The HTML has no script and loads nothing. Names in scenarios and traces are untrusted: all text is
escaped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from eastwest.units import clean, count
from eastwest.views import summary
from eastwest.views.labels import plural

if TYPE_CHECKING:
    from eastwest.claims.verdict import Outcome
    from eastwest.explain.story import Story
    from eastwest.optimize.folder import OptimizeResult
    from eastwest.results import Result
    from eastwest.sweep.tables import SweepResult

_MOST_ROWS = 16
_MOST_COLUMNS = 6
_MOST_NOTES = 5
_LONGEST = 60
_LEFT, _RIGHT = "text-align: left", "text-align: right"
_STATISTICS = (
    ("mean", "mean"),
    ("median", "p50"),
    ("p99", "p99"),
    ("p99.9", "p999"),
    ("max", "max"),
)


def of_result(result: Result) -> str:
    """Return the main results of a run as HTML: facts, workloads in their own units, notes."""
    facts = [*summary.facts(result), *summary.warnings(result)]
    parts = [_facts(facts)]
    measured = [*summary.measured(result.summary)]
    if measured:
        rows = []
        for each in measured[:_MOST_ROWS]:
            name = f"while {each.during}" if each.during else each.workload
            number = plural(each.found["count"], each.unit.noun)
            rows.append([name, number, *(each.shown(key) for _, key in _STATISTICS)])
        parts.append(_table(["workload", "", *(word for word, _ in _STATISTICS)], rows, left=1))
        if len(measured) > _MOST_ROWS:
            parts.append(_line(f"and {count(len(measured) - _MOST_ROWS)} more in summary.json"))
    parts += _few([f"note: {note}" for note in summary.notes(result)], "notes in summary.json")
    return _card(summary.title(result), parts, str(result.path))


def of_sweep(sweep: SweepResult) -> str:
    """Return the first points of a sweep as HTML: their settings, and metrics with intervals."""
    from eastwest.goals import early  # noqa: PLC0415  few notebooks show sweeps
    from eastwest.views import points  # noqa: PLC0415  large: polars

    about = sweep.summary
    runs = about["runs"]
    there = sweep.points["point"].unique().sort()
    numbers = there.head(_MOST_ROWS).to_list()
    chosen, _ = points.metrics(sweep, _MOST_COLUMNS)
    cells = points.cells(sweep, numbers, chosen, _LONGEST)
    parts = [_table(cells.headings, cells.rows, left=cells.settings)]
    if more := len(there) - len(numbers):
        rest = plural(more, "more point", "more points")
        parts.append(_line(f"and {rest}: see the attribute points"))
    if lost := about["points"] - len(there):
        parts.append(_line(f"{plural(lost, 'point has', 'points have')} no result"))
    parts += map(_line, early.of_sweep(about))
    failed = f", {count(runs['failed'])} failed (see failures)" if runs["failed"] else ""
    parts.append(_line(f"{count(runs['done'])} of {count(runs['planned'])} runs{failed}"))
    return _card(str(about["name"]), parts, str(sweep.path))


def of_optimisation(found: OptimizeResult) -> str:
    """Return an optimisation as HTML: recommended settings, the reason, and all candidates."""
    about = found.summary
    chosen = about["recommended"]
    parts = []
    if chosen is not None:
        parts.append(_line(f"Recommended: {chosen['name']}"))
        settings = chosen["settings"].items()
        parts.append(_facts((p, json.dumps(v, ensure_ascii=False)) for p, v in settings))
    parts.append(_line(str(about["reason"])))
    parts += [_line(f"{each['name']} {each['verdict']}") for each in about["candidates"]]
    parts.append(_line(f"{count(about['runs']['done'])} runs"))
    return _card(str(about["name"]), parts, str(found.path))


def of_outcome(outcome: Outcome) -> str:
    """Return a claim as HTML: its verdict, and each number with its band."""
    rows = [[part.metric.name, part.text(), part.band(), part.verdict] for part in outcome.parts]
    parts = [
        _line(f"published: {outcome.claim.published}"),
        _table(["number", "measured", "band", "verdict"], rows, left=4),
        _line(outcome.explanation()),
    ]
    return _card(f"{outcome.claim.id}: {outcome.verdict}", parts, "")


def of_story(story: Story) -> str:
    """Return an explanation as HTML: its lines of text, with their layout."""
    return f'<pre style="white-space: pre-wrap">{escape(story.text())}</pre>'


def _card(title: str, parts: Iterable[str], ending: str) -> str:
    """Return as HTML: a bold title, ``parts`` (HTML), and ``ending`` as a line of small text."""
    small = f'<div style="font-size: 85%; opacity: 0.7">{_text(ending)}</div>' if ending else ""
    body = "".join(parts)
    return f'<div style="overflow-x: auto"><b>{_text(title)}</b>{body}{small}</div>'


def _text(text: str, limit: int = 400) -> str:
    """Return untrusted text for HTML: escaped, without control characters, of limited length."""
    return escape(clean(text, limit))


def _line(text: str) -> str:
    return f"<div>{_text(text, 2000)}</div>" if text else ""


def _few(lines: Sequence[str], what: str) -> Iterator[str]:
    yield from map(_line, lines[:_MOST_NOTES])
    if len(lines) > _MOST_NOTES:
        yield _line(f"and {count(len(lines) - _MOST_NOTES)} more {what}")


def _facts(rows: Iterable[tuple[str, str]]) -> str:
    """Return an HTML table of (name, text) rows; a name that begins with blanks is indented."""
    lines = []
    for name, text in rows:
        style = _LEFT + ("; padding-left: 2em" if name.startswith(" ") else "")
        head = f'<th style="{style}">{_text(name.strip())}</th>'
        lines.append(f'<tr>{head}<td style="{_LEFT}">{_text(text)}</td></tr>')
    return f"<table>{''.join(lines)}</table>"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> str:
    """Return an HTML table: the first ``left`` columns are aligned left, the others right."""
    sides = [_LEFT if place < left else _RIGHT for place in range(len(headings))]

    def line(tag: str, cells: Sequence[str]) -> str:
        shown = (
            f'<{tag} style="{side}">{_text(" ".join(cell.split()))}</{tag}>'
            for side, cell in zip(sides, cells, strict=True)
        )
        return f"<tr>{''.join(shown)}</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table><thead>{line('th', headings)}</thead><tbody>{body}</tbody></table>"
