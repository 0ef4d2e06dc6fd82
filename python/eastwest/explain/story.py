"""Class of explanations (stories), and their text for a terminal.

A story has numbers (``facts``, with units in their names), ``parts`` that add up to the time of the
explained object, ``moments`` in order of time, and sections of text. Facts that the tables of a
result do not contain are listed in ``unknown``, and not estimated.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from eastwest.units import clean, count, percent, span

_WIDTH = 96
_MOST_MOMENTS = 40


@dataclass(frozen=True)
class Part:
    """One part of the total time of a story: its description, and its duration in µs."""

    what: str
    us: float


@dataclass(frozen=True)
class Moment:
    """One event of a story; its time is in µs since the start of the explained object."""

    at_us: float
    text: str


@dataclass(frozen=True)
class Section:
    """A section of a story: lines of text under a heading."""

    title: str
    lines: list[str]


@dataclass
class Story:
    """Explanation of one object of a result, such as a flow, job, task or connection."""

    kind: str
    id: str
    title: str
    summary: str
    facts: dict[str, Any] = field(default_factory=dict)
    total_us: float | None = None
    parts: list[Part] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def add(self, title: str, *lines: str) -> None:
        """Add a section with a title and lines of text; without lines, add nothing."""
        if lines:
            self.sections.append(Section(title, list(lines)))

    def lacks(self, *texts: str | None) -> None:
        """Add texts about facts that the tables of the result lack; a text of None is ignored."""
        self.unknown += [text for text in texts if text is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return the story as plain values, for JSON."""
        return {
            "kind": self.kind,
            "id": self.id,
            "title": self.title,
            "summary": self.summary,
            "facts": _finite(self.facts),
            "total_us": _finite(self.total_us),
            "parts": [{"what": p.what, "us": _finite(p.us)} for p in self.parts],
            "moments": [{"at_us": _finite(m.at_us), "text": m.text} for m in self.moments],
            "sections": [{"title": s.title, "lines": s.lines} for s in self.sections],
            "unknown": self.unknown,
        }

    def lines(self) -> Iterator[str]:
        """Yield the story as lines of plain text, without control characters."""
        yield clean(self.title, 300)
        yield from _wrapped(self.summary, "")
        if self.parts:
            yield from ("", f"Where the {span((self.total_us or 0) / 1e6)} went")
            yield from self._part_lines()
        if self.moments:
            yield from ("", "Events, with the time since the start")
            yield from self._moment_lines()
        unknown = [Section("Not known", self.unknown)] if self.unknown else []
        for section in [*self.sections, *unknown]:
            yield from ("", clean(section.title, 300))
            for line in section.lines:
                yield from _wrapped(line, "  ")

    def text(self) -> str:
        """Return the story as plain text."""
        return "\n".join(self.lines())

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """Return the story as HTML, which notebooks show."""
        from eastwest import cards  # noqa: PLC0415  only for notebooks

        return cards.of_story(self)

    def _part_lines(self) -> Iterator[str]:
        total = self.total_us or 0.0
        for part in self.parts:
            share = percent(part.us / total) if total > 0 else "–"
            share = "< 0.01 %" if 0 < part.us < total / 10_000 else share
            head = f"  {span(part.us / 1e6):>9}  {share:>8}  "
            yield from _wrapped(part.what, head, " " * len(head))

    def _moment_lines(self) -> Iterator[str]:
        shown = self.moments
        hidden = len(shown) - _MOST_MOMENTS
        if hidden > 0:
            half = _MOST_MOMENTS // 2
            shown = [*shown[:half], *shown[-half:]]
        long = max(moment.at_us for moment in self.moments) >= 10e6
        for place, moment in enumerate(shown):
            if hidden > 0 and place == _MOST_MOMENTS // 2:
                yield f"  {'…':>12}  {count(hidden)} more (all of them with --json)"
            at = f"{moment.at_us / 1e6:,.3f} s" if long else f"{moment.at_us / 1e3:,.3f} ms"
            head = f"  {at:>12}  "
            yield from _wrapped(moment.text, head, " " * len(head))


def _wrapped(text: str, first: str, other: str | None = None) -> list[str]:
    """Return untrusted text as lines of a terminal, broken at spaces.

    ``first`` begins the first line, ``other`` the other lines.
    """
    rest = first + "  " if other is None and first else (other or "")
    return textwrap.wrap(
        clean(text, 2000),
        _WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [first]


def _finite(value: Any) -> Any:
    """Return a value in which None replaces NaN and infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
