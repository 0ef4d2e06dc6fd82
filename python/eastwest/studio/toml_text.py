"""Places of keys and values in a TOML text that may be incomplete, because a user types it.

``tomllib`` gives neither lines nor places, and refuses a text with an error. This scanner never
fails: a value without its end is taken to end with its line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

#: Steps to a key or table from the top: names of keys, and numbers (from 0) of tables in lists.
Steps = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = " \t"
#: Line that begins with a key or a header: a list without its end stops before it.
_NEXT = re.compile(r"\n[ \t]*(?:[A-Za-z0-9_.-]+[ \t]*=|\[\[?[ \t]*[A-Za-z])")
_DEEPEST = 64
#: Maximum number of names in a dotted key; further names are ignored.
_MOST_NAMES = 32


@dataclass(frozen=True)
class Place:
    """A part of a text: what it is, and where.

    ``kind`` is ``header`` (the whole header with its brackets), ``key``, ``value``, ``inline``
    (inside of an inline table), or ``comment``. ``steps`` leads to the table of a header or of an
    inline table, to the table that has the key, or to the setting of the value.
    """

    kind: str
    steps: Steps
    start: int
    end: int
    #: Line of the begin, from 1.
    line: int
    #: Whether a header is of a table in a list, ``[[…]]``.
    is_list: bool = False


@dataclass
class Scan:
    """All places of a text in the order of their begin."""

    text: str
    places: list[Place] = field(default_factory=list)
    #: Steps to each setting that the text has, with the place of its value.
    values: dict[Steps, Place] = field(default_factory=dict)

    def at(self, offset: int) -> Place | None:
        """Return the smallest place that contains an offset or ends there; None outside of all."""
        found = [p for p in self.places if p.start <= offset <= p.end]
        return min(found, key=lambda p: (p.end - p.start, -p.start), default=None)

    def table_at(self, offset: int) -> Steps:
        """Return the steps to the table of the last header before an offset."""
        steps: Steps = ()
        for place in self.places:
            if place.kind == "header" and place.end <= offset:
                steps = place.steps
        return steps

    @property
    def tables(self) -> set[Steps]:
        """Steps to each table of the text that has a header, a key or braces of its own."""
        return {p.steps for p in self.places if p.kind in {"header", "key", "inline"}}

    def keys_of(self, table: Steps) -> set[str]:
        """Return the names of the keys that the text has in a table."""
        size = len(table)
        named = [*self.values, *(p.steps for p in self.places if p.kind == "header")]
        return {str(steps[size]) for steps in named if len(steps) > size and steps[:size] == table}

    def value_of(self, steps: Steps) -> str | None:
        """Return the text of a setting's value without quotes; None if the text lacks it."""
        place = self.values.get(steps)
        return None if place is None else unquoted(self.text[place.start : place.end])

    def names_of(self, *tables: str) -> list[str]:
        """Return the values of the key ``name`` of all tables in these lists."""
        return [
            self.value_of(steps) or ""
            for steps in self.values
            if len(steps) == 3 and steps[0] in tables and steps[2] == "name"
        ]


def scan(text: str) -> Scan:
    """Return the places of keys, values and headers in a TOML text."""
    return _Scanner(text).run()


def unquoted(text: str) -> str:
    """Return a TOML string without its quotes; another text without blanks at its ends."""
    text = text.strip()
    for quote in ('"""', "'''", '"', "'"):
        if text.startswith(quote):
            inner = text[len(quote) :]
            return inner.removesuffix(quote) if len(text) >= 2 * len(quote) else inner
    return text


class _Scanner:
    """State of a scan: the text, the offset, and the numbers of tables in lists."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self._counted = 0
        self._made = Scan(text)
        #: Offset at which a list that is not closed ends.
        self._most = 0
        self._lists: dict[Steps, int] = {}
        self._table: Steps = ()

    def run(self) -> Scan:
        """Scan the whole text."""
        while self._at < len(self._text):
            sign = self._text[self._at]
            if sign in " \t\r\n":
                self._at += 1
            elif sign == "#":
                self._comment()
            elif sign == "[":
                self._header()
            else:
                self._setting(self._table, "\n#")
                self._to_line_end()
        self._made.places.sort(key=lambda p: (p.start, -p.end))
        return self._made

    def _place(
        self, kind: str, steps: Steps, start: int, end: int, line: int, is_list: bool = False
    ) -> Place:
        place = Place(kind, steps, start, end, line, is_list)
        self._made.places.append(place)
        return place

    def _line_at(self, offset: int) -> int:
        """Return the line of an offset, which must not be smaller than in calls before."""
        self._line += self._text.count("\n", self._counted, offset)
        self._counted = max(self._counted, offset)
        return self._line

    def _line_end(self) -> int:
        end = self._text.find("\n", self._at)
        return len(self._text) if end < 0 else end

    def _comment(self) -> None:
        end = self._line_end()
        self._place("comment", (), self._at, end, self._line_at(self._at))
        self._at = end

    def _to_line_end(self) -> None:
        """Skip the rest of a line: blanks, a comment, and anything that is no TOML."""
        end = self._line_end()
        mark = self._text.find("#", self._at, end)
        if mark >= 0:
            self._at = mark
            self._comment()
        self._at = end

    def _header(self) -> None:
        start, end = self._at, self._line_end()
        line = self._line_at(start)
        is_list = self._text.startswith("[[", start)
        self._at += 2 if is_list else 1
        names = self._names("]\n#")
        while self._at < end and self._text[self._at] in "] \t":
            self._at += 1
            if self._text[self._at - 1] == "]" and not self._text.startswith("]", self._at):
                break
        steps: Steps = ()
        for number, name in enumerate(names):
            steps = (*steps, name)
            last = number == len(names) - 1
            if last and is_list:
                self._lists[steps] = self._lists.get(steps, -1) + 1
            if steps in self._lists:
                steps = (*steps, self._lists[steps])
        self._table = steps
        stop = self._at
        while stop > start + 1 and self._text[stop - 1] in _BLANK:
            stop -= 1
        self._place("header", steps, start, stop, line, is_list)
        self._to_line_end()

    def _names(self, stops: str) -> list[str]:
        """Return the names of a dotted key up to one of the characters ``stops``."""
        names: list[str] = []
        while self._at < len(self._text) and self._text[self._at] not in stops:
            sign = self._text[self._at]
            if sign in "\"'":
                start = self._at
                self._string()
                names.append(unquoted(self._text[start : self._at]))
                continue
            found = _BARE.match(self._text, self._at)
            if found:
                names.append(found[0])
                self._at = found.end()
            elif sign in ". \t":
                self._at += 1
            else:
                break
        return names[:_MOST_NAMES]

    def _setting(self, table: Steps, stops: str, depth: int = 0) -> None:
        """Scan ``key = value`` in a table, up to one of the characters ``stops``."""
        start, line = self._at, self._line_at(self._at)
        names = self._names(f"={stops}")
        end = self._at
        while end > start and self._text[end - 1] in _BLANK:
            end -= 1
        if not names:
            self._at = max(self._at, start + 1)
            return
        # After a dot at the end, the last name is still missing.
        is_open = self._text[start:end].endswith(".")
        above = (*table, *(names if is_open else names[:-1]))
        self._place("key", above, start, end, line)
        if not self._text.startswith("=", self._at):
            return
        self._at += 1
        blank = self._at
        while self._at < len(self._text) and self._text[self._at] in _BLANK:
            self._at += 1
        self._value((*above, names[-1]), stops, depth, blank)

    def _value(self, steps: Steps, stops: str, depth: int, blank: int | None = None) -> None:
        """Scan a value; ``blank`` is the offset after the equals sign."""
        start, line = self._at, self._line_at(self._at)
        sign = self._text[start : start + 1]
        if sign and sign in "\"'":
            self._string()
        elif sign == "[" and depth < _DEEPEST:
            self._list(steps, depth)
        elif sign == "{" and depth < _DEEPEST:
            self._inline(steps, depth)
        else:
            while self._at < len(self._text) and self._text[self._at] not in f"{stops}\n#":
                self._at += 1
        end = self._at
        while end > start and self._text[end - 1] in " \t\r":
            end -= 1
        if end == start:  # no value yet: the place is all blanks after the equals sign
            self._place("value", steps, start if blank is None else blank, self._at, line)
            return
        self._made.values[steps] = self._place("value", steps, start, end, line)

    def _string(self) -> None:
        """Move to the end of a string; a string without its end stops at the end of the line."""
        quote = self._text[self._at]
        triple = quote * 3
        if self._text.startswith(triple, self._at):
            end = self._text.find(triple, self._at + 3)
            self._at = len(self._text) if end < 0 else end + 3
            return
        end, at = self._line_end(), self._at + 1
        while at < end and self._text[at] != quote:
            at += 2 if self._text[at] == "\\" and quote == '"' else 1
        self._at = min(at + 1, end)

    def _list(self, steps: Steps, depth: int) -> None:
        """Move to the end of a list; items that are tables get numbers."""
        if self._at >= self._most:  # lists in a list end where it ends
            following = _NEXT.search(self._text, self._at)
            self._most = following.start() if following else len(self._text)
        most = self._most
        self._at += 1
        number = 0
        while self._at < most:
            sign = self._text[self._at]
            if sign == "]":
                self._at += 1
                return
            if sign == "#":
                self._comment()
            elif sign == ",":
                number += 1
                self._at += 1
            elif sign in " \t\r\n":
                self._at += 1
            else:
                before = self._at
                self._value((*steps, number), ",]", depth + 1)
                self._at = max(self._at, before + 1)
        self._at = min(self._at, len(self._text))

    def _inline(self, steps: Steps, depth: int) -> None:
        """Move to the end of an inline table, or to the end of the line."""
        start, line = self._at, self._line_at(self._at)
        self._at += 1
        while self._at < len(self._text) and self._text[self._at] not in "}\n":
            if self._text[self._at] in " \t\r,":
                self._at += 1
            elif self._text[self._at] == "#":
                break
            else:
                before = self._at
                self._setting(steps, ",}\n", depth + 1)
                self._at = max(self._at, before + 1)
        closed = self._text.startswith("}", self._at)
        self._place("inline", steps, start + 1, self._at, line)
        self._at += closed
