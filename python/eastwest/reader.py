"""Reader of TOML files: typed values by key, and all problems of a file at once.

``read_file`` reads a file within limits. A ``Table`` returns the value of a key in the type that is
asked for. Where the value is missing or wrong, the ``Table`` adds a problem with the path of the
key, and returns a default, so that reading continues and finds further problems.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eastwest.core import Problem
from eastwest.errors import InputError, ProblemsError, nearest

_LARGEST_FILE = 64 * 1024 * 1024
#: Maximum length, in characters, of TOML texts whose parsed content is cached.
_LARGEST_IN_MEMORY = 100_000
_MOST_DEPTH = 32
_MOST_DOTS = 60
_MOST_KEYS = 20_000
#: Keys that other kinds of files have for the version of their format. Where a file must not have
#: one of these keys, the hint names the right key.
_VERSIONS = ("schema", "version")


def read_file(path: Path, largest: int = _LARGEST_FILE) -> tuple[dict[str, Any], str]:
    """Return (content, text) of a TOML file; raise ``InputError`` if it is not TOML.

    A file of more than ``largest`` bytes, or one that may take hours to parse, is an error, too.
    """
    if path.stat().st_size > largest:
        raise InputError(
            f"{path}: larger than {largest:,} bytes, the maximum for files of this kind"
        )
    try:
        text = path.read_text(encoding="utf-8")
        _refuse_slow(path, text)
        if len(text) > _LARGEST_IN_MEMORY:
            return tomllib.loads(text), text
        return copy.deepcopy(_content(text)), text
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not TOML: {error}") from None


@functools.lru_cache(maxsize=500)
def _content(text: str) -> dict[str, Any]:
    """Return the parsed content of a TOML text; it is cached, so callers must not change it.

    A study reads the same files hundreds of times; a copy of the content takes a tenth of the time
    of parsing.
    """
    return tomllib.loads(text)


def _refuse_slow(path: Path, text: str) -> None:
    """Raise ``InputError`` for a text that may take hours to parse.

    The time grows with the square of the number of keys, and of the number of dots in a key.
    """
    if text.count("=") > _MOST_KEYS:
        raise InputError(
            f"{path}: the file has more than {_MOST_KEYS:,} signs =, the maximum; signs in "
            "comments and values count, too"
        )
    for number, line in enumerate(text.splitlines(), 1):
        if any(part.count(".") > _MOST_DOTS for part in line.split(",")):
            raise InputError(
                f"{path}: line {number}: more than {_MOST_DOTS} dots without a comma between them; "
                "dots in comments and values count, too"
            )


def flat(table: object, above: str = "") -> dict[str, Any]:
    """Return the values of a table and its nested tables, by their paths with dots.

    ``above`` is put before each path. TOML reads an unquoted path as nested tables. The result is
    empty if ``table`` is not a table.
    """
    return dict(_flat(table, above)) if isinstance(table, Mapping) else {}


def _flat(table: Mapping[str, Any], above: str) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def listed(value: Any) -> list[Any]:
    """Return a list unchanged, and any other value as a list with one item."""
    return value if isinstance(value, list) else [value]


def meant(name: object, among: Iterable[str]) -> str:
    """Return the end of a message about a wrong name: the nearest name, or all allowed names."""
    names = [*among]
    near = nearest(name, names)
    return f"did you mean {near}?" if near else f"allowed: {', '.join(names)}"


_SETTINGS = 'a table of paths and values, such as { "fabric.mtu" = 1500 }'


class Table:
    """Reader of one TOML table: returns checked values by key and collects problems."""

    def __init__(
        self, content: Mapping[str, Any], where: str = "", above: Table | None = None
    ) -> None:
        self.content = content
        #: Path of the table in messages, with the dot or colon that separates it from a key.
        self.where = where
        self.problems: list[Problem] = [] if above is None else above.problems
        if above is None and _deeper_than(content, _MOST_DEPTH):
            raise InputError(
                f"{where}nested too deeply: at most {_MOST_DEPTH} levels of tables and lists are "
                "allowed"
            )

    def __contains__(self, key: str) -> bool:
        """Whether the table has a key."""
        return key in self.content

    def get(self, key: str) -> Any:
        """Return the value of a key without a check; None if the key is missing."""
        return self.content.get(key)

    def wrong(self, key: str, value: object, message: str, hint: str | None = None) -> None:
        """Add a problem of ``key``; the empty key stands for the whole table.

        ``value`` is the wrong value, or None to show none; ``hint`` is the nearest allowed name.
        """
        shown = None if value is None else f"{value!r:.60}"
        path = f"{self.where}{key}".removesuffix(".")
        self.problems.append({"path": path, "value": shown, "message": message, "hint": hint})

    def add(self, problems: Iterable[Problem]) -> None:
        """Add problems whose paths are relative to this table."""
        for each in problems:
            self.problems.append({**each, "path": f"{self.where}{each['path']}"})

    def no_such(self, key: str, name: object, what: str, there: Iterable[str]) -> None:
        """Add the problem that ``name``, the value of ``key``, is unknown.

        ``what`` is the noun for the name in the message, ``there`` are the allowed names.
        """
        names = [*there]
        message = f"unknown {what}; allowed: {', '.join(names)}"
        self.wrong(key, name, message, nearest(name, names))

    def refuse(self) -> None:
        """Raise ``ProblemsError`` if there are problems."""
        if self.problems:
            raise ProblemsError(self.problems)

    def keys(self, known: Sequence[str], others: Mapping[str, str] | None = None) -> None:
        """Add a problem for each key of the table that is not in ``known``.

        ``others`` maps keys of other kinds of files to the keys that hints propose.
        """
        message = f"unknown key; allowed: {', '.join(known)}"
        for key in self.content:
            if key not in known:
                self.wrong(key, None, message, nearest((others or {}).get(key, key), known))

    def head(self, known: Sequence[str], version: int, needed: bool = False) -> None:
        """Add problems of unknown keys, and of a wrong format version in the key ``known[0]``.

        With ``needed``, a missing version is a problem, too.
        """
        self.keys(known, dict.fromkeys(_VERSIONS, known[0]))
        given = self.get(known[0])
        if given != version and (needed or given is not None):
            self.wrong(known[0], given, f"must be {version}, the version of the format")

    def _not(self, key: str, value: object, wanted: str) -> None:
        self.wrong(key, value, f"{'is missing:' if value is None else 'must be'} {wanted}")

    def text(self, key: str, otherwise: str | None = None, wanted: str = "a text") -> str:
        """Return the text of a key; without a default ``otherwise``, it is required and not blank.

        ``wanted`` describes the allowed value in a message.
        """
        value = self.content.get(key, otherwise)
        if isinstance(value, str) and (value.strip() or otherwise is not None):
            return value
        self._not(key, value, wanted)
        return otherwise or ""

    def words(self, key: str, otherwise: str | None = None) -> str:
        """Return the text of a key as ``text`` does, without white space around it."""
        return self.text(key, otherwise).strip()

    def boolean(self, key: str, *, default: bool) -> bool:
        """Return the truth value of a key, or ``default``."""
        value = self.content.get(key, default)
        if isinstance(value, bool):
            return value
        self._not(key, value, "true or false")
        return default

    def number(self, key: str, otherwise: float, low: float, high: float) -> float:
        """Return a number from ``low`` to ``high``, or ``otherwise``; ``40 %`` counts as 0.4."""
        value = self.content.get(key, otherwise)
        if isinstance(value, str) and value.strip().endswith("%"):
            with contextlib.suppress(ValueError):
                value = float(value.strip()[:-1]) / 100
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._not(key, value, "a number")
        elif not low <= value <= high:
            self.wrong(key, value, f"allowed: {low:g} to {high:g}")
        else:
            return float(value)
        return otherwise

    def any_number(self, key: str) -> float | None:
        """Return the number of a key; None if it is missing, or no number, which is a problem."""
        value = self.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            self._not(key, value, "a number")
            return None
        return float(value)

    def integer(self, key: str, otherwise: int | None, low: int, high: int) -> int:
        """Return the whole number of a key, from ``low`` to ``high``, or the default ``otherwise``.

        The key is required if ``otherwise`` is None. The result is ``low`` after a problem.
        """
        value = self.content.get(key, otherwise)
        if type(value) is not int:
            self._not(key, value, f"a whole number from {low} to {high}")
        elif not low <= value <= high:
            self.wrong(key, value, f"allowed: {low} to {high}")
        else:
            return value
        return low

    def integers(self, key: str, high: int, most: int) -> tuple[int, ...]:
        """Return 1 to ``most`` different whole numbers from 0 to ``high``: the list of a key.

        A missing or wrong list is a problem; the result is then ``(1,)``.
        """
        given = self.get(key)
        good = isinstance(given, list) and all(type(n) is int and 0 <= n <= high for n in given)
        if good and 0 < len(given) <= most and len({*given}) == len(given):
            return tuple(given)
        self._not(key, given, f"a list of 1 to {most} different whole numbers, 0 to {high}")
        return (1,)

    def one_of(self, key: str, allowed: Iterable[str], otherwise: str | None = None) -> str:
        """Return the text of a key, which must be one of ``allowed``.

        The key is required unless the default ``otherwise`` is given.
        """
        value, names = self.content.get(key, otherwise), [*allowed]
        if isinstance(value, str) and (value in names or value == otherwise):
            return value
        if value is None:
            self._not(key, value, f"one of {', '.join(names)}")
        else:
            self.wrong(key, value, f"allowed: {', '.join(names)}", nearest(value, names))
        return otherwise or ""

    def texts(
        self,
        key: str,
        otherwise: Sequence[str] = (),
        wanted: str = "a list of texts",
        most: int = 10_000,
    ) -> tuple[str, ...]:
        """Return the list of a key: up to ``most`` texts that are not empty.

        ``otherwise`` is the default. ``wanted`` describes the allowed value in a message.
        """
        given = self.content.get(key, [*otherwise])
        good = isinstance(given, list) and all(isinstance(each, str) and each for each in given)
        if not good:
            self._not(key, given, wanted)
            return ()
        if len(given) > most:
            self.wrong(key, None, f"has {len(given):,} entries; at most {most:,} are allowed")
            return ()
        return tuple(given)

    def settings(self, key: str, wanted: str = _SETTINGS) -> dict[str, Any]:
        """Return the settings in the table ``key``, by path; empty where it is missing or wrong."""
        given = self.content.get(key, {})
        if not isinstance(given, Mapping):
            self._not(key, given, wanted)
        return flat(given)

    def table(self, key: str, wanted: str = "a table") -> Table:
        """Return a reader for the table under ``key``; for an empty table if the key is missing."""
        given = self.content.get(key, {})
        if not isinstance(given, Mapping):
            self._not(key, given, wanted)
            given = {}
        return Table(given, f"{self.where}{key}.", self)

    def tables(self, key: str, known: Sequence[str] = ()) -> list[Table]:
        """Return a reader for each table of an array of tables.

        If ``known`` is given, other keys of these tables are problems.
        """
        given = self.content.get(key, [])
        if not isinstance(given, list) or not all(isinstance(each, Mapping) for each in given):
            self.wrong(key, None, f"must be tables, each beginning with [[{key}]]")
            return []
        found = [Table(e, f"{self.where}{key}.{n}.", self) for n, e in enumerate(given)]
        for each in found if known else ():
            each.keys(known)
        return found


def _deeper_than(value: Any, most: int) -> bool:
    """Whether tables and lists are nested deeper than ``most``; the test does not recurse."""
    level = [value]
    for _ in range(most):
        lists = [v.values() if isinstance(v, Mapping) else v for v in level]
        level = [v for values in lists for v in values if isinstance(v, (Mapping, list))]
        if not level:
            return False
    return True
