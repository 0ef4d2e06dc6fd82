"""Labels of rows and series: names of results as safe text, numbers with their nouns."""

from __future__ import annotations

import re

from eastwest.units import agree, clean, plural

__all__ = ["a", "agree", "as_sentence", "natural", "plural", "seconds", "shown"]

_MOST_NAME = 60
_RUNS_OF_DIGITS = re.compile(r"(\d{1,18})")


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return the sort key of a name by its text and numbers: ``h2`` comes before ``h10``."""
    parts = _RUNS_OF_DIGITS.split(name)
    return tuple(
        (1, int(part), "") if place % 2 else (0, 0, part) for place, part in enumerate(parts)
    )


def shown(name: object, limit: int = _MOST_NAME) -> str:
    """Return untrusted text of a result without control characters, cut to ``limit`` characters."""
    return clean(str(name), limit)


def seconds(value_us: float | None) -> float | None:
    """Return a time in s, given in µs; None if it is unknown."""
    return None if value_us is None else value_us / 1e6


def as_sentence(note: str) -> str:
    """Return a note with a capital letter and a full stop.

    A note that begins with a name and a colon (``web: 3 of 9 requests …``) has no capital letter,
    because names that differ only in it are different.
    """
    if note.partition(" ")[0].endswith(":"):
        return f"{note}."
    return f"{note[:1].upper()}{note[1:]}."


def a(noun: str) -> str:
    """Return a noun with its article: ``a flow``, ``an exchange``."""
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"
