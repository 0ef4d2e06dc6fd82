"""Account of an import: records that were left out, changed, or read with a note.

Every reader of recorded data keeps one ``Account``. Each entry has a reason, a count, the first
places, and what follows from it for the result (its consequence). The account is printed at import,
kept in the JSON file of the imported folder, and shown in the report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eastwest.errors import InputError
from eastwest.units import clean, count

#: Limits of an account: number of places (file and line) that it lists for one reason, and number
#: of reasons. Further reasons are counted together as ``other reasons``; counts include all rows.
MOST_PLACES = 3
MOST_REASONS = 40
_OTHER = "other reasons"
#: Maximum length, in characters, of a reason or consequence that is read from a stored account.
_MOST_TEXT = 400


@dataclass
class Found:
    """Rows that were left out, changed or noted for one reason: their number and first places."""

    count: int = 0
    #: Consequence for the user of the result; empty where it is obvious.
    consequence: str = ""
    #: First places: file, line from 1 (0: the whole file), and the value found.
    places: list[tuple[str, int, str]] = field(default_factory=list)


class Account:
    """Records of an import that were left out, read with a changed meaning, or noted.

    With ``stop``, the first row that cannot be used raises ``InputError``; otherwise rows are left
    out and counted. Unless ``lossy``, the first row whose meaning would change raises
    ``InputError``, too.
    """

    def __init__(self, stop: bool = True, lossy: bool = False) -> None:
        self.stop = stop
        self.lossy = lossy
        self.skipped: dict[str, Found] = {}
        self.changed: dict[str, Found] = {}
        self.noted: dict[str, Found] = {}
        self._broken: tuple[str, int, str] | None = None

    def bad(
        self,
        file: str,
        line: int,
        reason: str,
        found: str = "",
        rows: int = 1,
        consequence: str = "",
    ) -> None:
        """Count ``rows`` rows as left out; with ``stop``, raise ``InputError`` instead.

        Rows with equal ``reason`` are counted together, so ``reason`` contains no value of a row.
        ``found`` is the value of this row, ``consequence`` the effect on the result.
        """
        if self.stop:
            raise InputError(f"{place(file, line)}: {told(reason, found)}")
        _add(self.skipped, file, line, reason, found, rows, consequence)

    def change(
        self,
        file: str,
        line: int,
        reason: str,
        consequence: str,
        found: str = "",
        rows: int = 1,
    ) -> None:
        """Count ``rows`` rows read with a changed meaning; raise ``InputError`` unless ``lossy``.

        ``reason`` names data that the reader cannot represent, ``consequence`` its replacement.
        """
        if not self.lossy:
            raise InputError(
                f"{place(file, line)}: {told(reason, found)}; with --lossy: {consequence}"
            )
        _add(self.changed, file, line, reason, found, rows, consequence)

    def note(
        self,
        file: str,
        line: int,
        reason: str,
        found: str = "",
        rows: int = 1,
        consequence: str = "",
    ) -> None:
        """Count ``rows`` rows that are read unchanged, but need a note to the user."""
        _add(self.noted, file, line, reason, found, rows, consequence)

    def broken(self, file: str, line: int, reason: str) -> None:
        """Remember an incomplete record until it is known whether another record follows it.

        If another record follows (``more``), the incomplete record is counted as left out. If the
        file ends (``end``), a note says that its last record is incomplete.
        """
        self.more()
        self._broken = (file, line, reason)

    def more(self) -> None:
        """Count a remembered incomplete record as left out, because another record follows it."""
        if self._broken is not None:
            broken, self._broken = self._broken, None
            self.bad(*broken)

    def end(self, file: str, line: int, cut: str) -> None:
        """Add notes at the end of a file: on an incomplete last record, and on a damaged file.

        ``cut`` is the error that ended the reading of a compressed file before its end, or empty.
        ``line`` is the last line that was read; 0 where it is not known.
        """
        if self._broken is not None:
            (_, at, _), self._broken = self._broken, None
            self.note(file, at, "the last record is incomplete and is left out")
        if cut:
            self.note(
                file,
                line,
                "the compressed file is damaged or truncated: only the records before the damage "
                "are used",
                cut,
            )

    def take(self, others: Account) -> None:
        """Add the entries of another account to this account."""
        for own, theirs in (
            (self.skipped, others.skipped),
            (self.changed, others.changed),
            (self.noted, others.noted),
        ):
            for reason, found in theirs.items():
                entry = _entry(own, reason)
                entry.consequence = entry.consequence or found.consequence
                entry.count += found.count
                entry.places += found.places[: MOST_PLACES - len(entry.places)]

    @property
    def rows_skipped(self) -> int:
        """Number of rows left out."""
        return sum(found.count for found in self.skipped.values())

    def as_json(self) -> dict[str, Any]:
        """Return the account as a dict for JSON: ``rows_skipped``, and a list of entries by kind.

        The kinds are ``skipped``, ``changed`` and ``noted``. An entry has ``reason``, ``count``,
        ``consequence`` and ``first`` (its first places).
        """
        return {
            "rows_skipped": self.rows_skipped,
            "skipped": _listed(self.skipped),
            "changed": _listed(self.changed),
            "noted": _listed(self.noted),
        }

    def lines(self) -> Iterator[str]:
        """Yield a line of text for each reason: kind, number of rows, first place, consequence."""
        for word, kinds in zip(
            KINDS.values(), (self.skipped, self.changed, self.noted), strict=True
        ):
            for reason, found in kinds.items():
                file, line, text = found.places[0]
                seen = f", found {clean(text, 60)!r}" if text else ""
                then = f"; {found.consequence}" if found.consequence else ""
                yield f"{word} {count(found.count)} × {reason}: {place(file, line)}{seen}{then}"

    def reasons(self) -> str:
        """Return all reasons with their counts and first places as one text; empty without any."""
        return "; ".join(
            f"{count(found.count)} × {reason} ({place(*found.places[0][:2])})"
            for kinds in (self.skipped, self.changed, self.noted)
            for reason, found in kinds.items()
        )


@dataclass(frozen=True)
class Entry:
    """Entry of an account in ``trace.json`` or ``spans.json``: the records with one reason."""

    #: Kind of the entry: ``left out``, ``changed`` or ``noted``.
    kind: str
    count: int
    reason: str
    #: File and line of the first record that the entry counts; empty where they are not known.
    first: str
    #: Consequence for the user of the result; empty where it is obvious.
    consequence: str


#: Texts for the kinds of entries of an account, by the key of the kind in JSON.
KINDS = {"skipped": "left out", "changed": "changed", "noted": "noted"}


def entries(about: Mapping[str, Any]) -> tuple[Entry, ...]:
    """Return the entries of an account that was read from JSON; leave out invalid entries.

    ``about`` is the JSON object, which may be damaged or come from anyone.
    """
    found = []
    for key, kind in KINDS.items():
        listed = about.get(key)
        for each in listed[: MOST_REASONS + 1] if isinstance(listed, list) else []:
            if entry := read_entry(each):
                first = entry["first"][0] if entry["first"] else None
                at = place(first["file"], first["line"] or 0) if first else ""
                then = entry["consequence"] or ""
                found.append(Entry(kind, entry["count"], entry["reason"], at, then))
    return tuple(found)


def read_entry(given: Any) -> dict[str, Any] | None:
    """Return an entry of a stored account as a checked dict; None if the entry is invalid.

    The keys are ``reason``, ``count``, ``consequence`` and ``first`` (list of places); long texts
    are cut.
    """
    if not isinstance(given, dict) or not isinstance(given.get("reason"), str):
        return None
    rows, then, first = (given.get(key) for key in ("count", "consequence", "first"))
    if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
        return None
    places = first[:MOST_PLACES] if isinstance(first, list) else []
    return {
        "reason": clean(given["reason"], _MOST_TEXT),
        "count": rows,
        "consequence": clean(then, _MOST_TEXT) if isinstance(then, str) else None,
        "first": [
            {
                "file": clean(str(each["file"]), 120),
                "line": line if isinstance(line := each.get("line"), int) and line > 0 else None,
                "found": clean(each["found"], 60) if isinstance(each.get("found"), str) else None,
            }
            for each in places
            if isinstance(each, dict) and each.get("file")
        ],
    }


def place(file: str, line: int) -> str:
    """Return a file's name and the number of a line in it; only the name if the number is 0."""
    return f"{clean(file, 120)}:{line}" if line else clean(file, 120)


def told(reason: str, found: str) -> str:
    """Return ``REASON, found 'VALUE'``; only the reason if ``found`` is empty."""
    return f"{reason}, found {clean(found, 60)!r}" if found else reason


def _add(
    kinds: dict[str, Found],
    file: str,
    line: int,
    reason: str,
    found: str,
    rows: int,
    consequence: str,
) -> None:
    entry = _entry(kinds, reason)
    entry.count += rows
    entry.consequence = entry.consequence or consequence
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
            "consequence": found.consequence or None,
            "first": [
                {"file": Path(file).name, "line": line or None, "found": text or None}
                for file, line, text in found.places
            ],
        }
        for reason, found in kinds.items()
    ]
