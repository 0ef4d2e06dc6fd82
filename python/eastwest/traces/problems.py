"""What is wrong with a recorded workload, told with file, line, reason and count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eastwest.errors import InputError
from eastwest.units import clean, count

#: Places that are told of each reason, and reasons that are told apart; all are counted.
MOST_PLACES = 3
MOST_REASONS = 40
_OTHER = "other reasons"


@dataclass
class Found:
    """Rows that were left out for one reason, or that were taken in spite of it."""

    count: int = 0
    #: First of them: file, line from 1 (0: the file as a whole), what was found.
    places: list[tuple[str, int, str]] = field(default_factory=list)


class Problems:
    """Rows that cannot be used, and what else a reader has to say.

    With ``stop``, the first row that cannot be used raises ``InputError``; otherwise rows are left
    out and counted.
    """

    def __init__(self, stop: bool = True) -> None:
        self.stop = stop
        self.skipped: dict[str, Found] = {}
        self.noted: dict[str, Found] = {}
        self._broken: tuple[str, int, str] | None = None

    def bad(self, file: str, line: int, reason: str, found: str = "", rows: int = 1) -> None:
        """Leave ``rows`` rows out, or stop at them. ``reason`` holds nothing of the row itself."""
        if self.stop:
            raise InputError(f"{place(file, line)}: {told(reason, found)}")
        _add(self.skipped, file, line, reason, found, rows)

    def note(self, file: str, line: int, reason: str, found: str = "", rows: int = 1) -> None:
        """Say something of rows that are taken nevertheless."""
        _add(self.noted, file, line, reason, found, rows)

    def broken(self, file: str, line: int, reason: str) -> None:
        """Say of a record that it breaks off: bad where others follow, else the file was cut."""
        self.more()
        self._broken = (file, line, reason)

    def more(self) -> None:
        """Say that another record follows."""
        if self._broken is not None:
            broken, self._broken = self._broken, None
            self.bad(*broken)

    def end(self, file: str, line: int, cut: str) -> None:
        """Say that a file ends, and why, where that is before its end."""
        if self._broken is not None:
            (_, at, _), self._broken = self._broken, None
            self.note(file, at, "the last record is cut off, and left out")
        if cut:
            self.note(
                file, line, "the packed file is damaged or cut off: what came before counts", cut
            )

    def take(self, others: Problems) -> None:
        """Add what another reader had to say, as if it had been said here."""
        for own, theirs in ((self.skipped, others.skipped), (self.noted, others.noted)):
            for reason, found in theirs.items():
                entry = _entry(own, reason)
                entry.count += found.count
                entry.places += found.places[: MOST_PLACES - len(entry.places)]

    @property
    def rows_skipped(self) -> int:
        """Rows left out so far."""
        return sum(found.count for found in self.skipped.values())

    def as_json(self) -> dict[str, Any]:
        """What is kept in ``trace.json``."""
        return {
            "rows_skipped": self.rows_skipped,
            "skipped": _listed(self.skipped),
            "noted": _listed(self.noted),
        }

    def lines(self) -> Iterator[str]:
        """What is shown on a terminal: one line for each reason."""
        for word, kinds in (("left out", self.skipped), ("noted", self.noted)):
            for reason, found in kinds.items():
                file, line, text = found.places[0]
                yield f"{word} {count(found.count)} × {told(reason, '')}: {place(file, line)}" + (
                    f" has {clean(text, 60)!r}" if text else ""
                )


def place(file: str, line: int) -> str:
    """A file's name and, where there is one, a line of it."""
    return f"{clean(file, 120)}:{line}" if line else clean(file, 120)


def told(reason: str, found: str) -> str:
    """A reason with what was found instead."""
    return f"{reason}, found {clean(found, 60)!r}" if found else reason


def _add(kinds: dict[str, Found], file: str, line: int, reason: str, found: str, rows: int) -> None:
    entry = _entry(kinds, reason)
    entry.count += rows
    if len(entry.places) < MOST_PLACES:
        entry.places.append((file, line, clean(found, 60)))


def _entry(kinds: dict[str, Found], reason: str) -> Found:
    if reason not in kinds and len(kinds) >= MOST_REASONS:
        reason = _OTHER
    return kinds.setdefault(reason, Found())


def _listed(kinds: dict[str, Found]) -> list[dict[str, Any]]:
    return [
        {
            "reason": reason,
            "count": found.count,
            "first": [
                {"file": Path(file).name, "line": line or None, "found": text or None}
                for file, line, text in found.places
            ],
        }
        for reason, found in kinds.items()
    ]
