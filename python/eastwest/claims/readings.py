"""Readings of a study: the values that the source's words support, and all claims under each.

A source seldom gives all values that a simulation needs. A *reading* is one full set of them, each
value with the words that ask for it. A study's ``readings.toml`` lists its readings; the order is
their rank, the best supported comes first and gives the verdict. ``first`` is the reading that the
claim files themselves have: it is in the list, has no values, and its results stay visible.

A claim cannot choose its reading: values are for all runs of all claims of the study. A setting
that a run sets or varies itself is an experiment of its own and stays, unless a value names the
claim in ``claims``: then the source gives the value of this very figure, and it replaces the
setting of the runs. Where such a figure has a part of the points that runs vary, ``only`` selects
them.
"""

from __future__ import annotations

import difflib
import fnmatch
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eastwest.claims import grid
from eastwest.claims.profiles import varied
from eastwest.errors import InputError
from eastwest.sweep.spec import flat

#: Name of the file in the folder of a study.
FILE = "readings.toml"
#: Name of the reading of the claim files as they are written.
FIRST = "first"
_NAME = re.compile(r"[a-z0-9_-]{1,20}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_LARGEST_FILE = 256 * 1024
_MOST_SEEDS = 1000
_KEYS = ("about", "since", "seeds", "value")
_WORDS = ("what", "words", "where")
_VALUE_KEYS = (*_WORDS, "set", "claims", "with", "only")


@dataclass(frozen=True)
class Value:
    """Settings that a source's words ask for."""

    what: str
    #: Words of the source, and their place in it.
    words: str
    where: str
    settings: Mapping[str, Any]
    #: Patterns of the claims that the value is for; empty: all claims of the study.
    claims: tuple[str, ...] = ()
    #: ``with``: settings that a run must have for the value to have a meaning, and their allowed
    #: values.
    needs: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    #: Values of axes to which the runs of the named claims are limited.
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def cut(self, sweep: Mapping[str, Any]) -> dict[str, Any]:
        """Return the table of a sweep with only the points that ``only`` names.

        Raises ``InputError`` where no point is left.
        """
        axes = varied(sweep)
        given = sweep.get("set")
        decided = _decided(sweep, dict(flat(given)) if isinstance(given, dict) else {})
        narrowed = {path: [*wanted] for path, wanted in self.only.items() if path in axes}
        fixed = {path: wanted for path, wanted in self.only.items() if path not in axes}
        try:
            cut = {**sweep, "axis": grid.narrowed(sweep.get("axis", []), narrowed)}
            for path, wanted in fixed.items():
                if not {*map(str, decided.get(path, ["not set"]))} <= {*map(str, wanted)}:
                    raise KeyError(path)
        except KeyError as error:
            message = f"the reading's value {self.what!r:.60} leaves none of the runs: "
            raise InputError(f"{message}none has one of these values of {error.args[0]}") from None
        return cut

    def fits(self, decided: Mapping[str, list[Any]]) -> bool:
        """Whether runs with these values by path have the settings that this value needs.

        Raises ``InputError`` where some of the runs have them and others do not.
        """
        fit = True
        for path, allowed in self.needs.items():
            have = {value in allowed for value in decided.get(path, [None])}
            if len(have) > 1:
                raise InputError(
                    f"the reading's value {self.what!r:.60} fits a part of the axis {path} only; "
                    "vary it in runs of their own"
                )
            fit = fit and have == {True}
        return fit

    def names(self, claim: str) -> bool:
        """Whether the value names a claim, by its id."""
        return any(fnmatch.fnmatchcase(claim, pattern) for pattern in self.claims)


@dataclass(frozen=True)
class Reading:
    """One full set of values for a study."""

    name: str
    about: str
    #: Day on which the reading was committed, before its first run.
    since: str
    #: Most seeds of full runs; None: as many as the claims have.
    seeds: int | None
    values: tuple[Value, ...]

    def applied(self, sweep: Mapping[str, Any], claim: str, kept: set[str]) -> dict[str, Any]:
        """Return the table of a sweep with this reading's settings.

        ``kept`` are paths that are decided elsewhere, by an axis or by a profile. Raises
        ``InputError`` where a value fits a part of the runs only.
        """
        for value in self.values:
            if value.only and value.names(claim):
                sweep = value.cut(sweep)
        given = sweep.get("set")
        own = dict(flat(given)) if isinstance(given, dict) else {}
        general, named = self._settings(claim, _decided(sweep, own) if self._needs() else {})
        added = {path: value for path, value in general.items() if path not in {*own, *kept}}
        replaced = {path: value for path, value in named.items() if path not in kept}
        seeds = sweep.get("seeds")
        fewer = {"seeds": min(seeds, self.seeds)} if self.seeds and isinstance(seeds, int) else {}
        settings = {**added, **own, **replaced}
        return {**sweep, **fewer, **({"set": settings} if settings else {})}

    def _needs(self) -> bool:
        return any(value.needs for value in self.values)

    def _settings(
        self, claim: str, decided: Mapping[str, list[Any]]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the settings for all claims of the study, and those for this claim alone."""
        general: dict[str, Any] = {}
        named: dict[str, Any] = {}
        for value in self.values:
            if not value.fits(decided):
                continue
            if not value.claims:
                general |= value.settings
            elif value.names(claim):
                named |= value.settings
        return general, named


def _decided(sweep: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the values of a sweep's runs by path: of the scenario, of ``own``, of every axis."""
    scenario = sweep.get("scenario")
    try:
        text = Path(scenario).read_text(encoding="utf-8") if isinstance(scenario, str) else ""
        base = tomllib.loads(text)
    except (OSError, ValueError, RecursionError):
        base = {}  # the sweep reports the problem of its scenario
    decided = {path: [value] for path, value in (*flat(base), *own.items())}
    axes = sweep.get("axis")
    for axis in axes if isinstance(axes, list) else []:
        path, values = axis.get("path"), axis.get("values")
        if isinstance(path, str) and isinstance(values, list):
            decided[path] = values
        elif isinstance(path, list) and isinstance(values, list):
            rows = [row for row in values if isinstance(row, list) and len(row) == len(path)]
            decided |= {each: [row[at] for row in rows] for at, each in enumerate(path)}
    return decided


#: Reading of a study without a file of readings.
_ONLY = Reading(FIRST, "The values that the claim files have.", "", None, ())


def readings_of(study: Path) -> dict[str, Reading]:
    """Return the readings of the study in this folder by name, the best supported first.

    Raises ``InputError`` where the file is wrong.
    """
    path = study / FILE
    if not path.is_file():
        return {FIRST: _ONLY}
    if path.stat().st_size > _LARGEST_FILE:
        raise InputError(f"{path}: larger than any file of readings")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not TOML: {error}") from None
    found = {name: _reading(f"{path}: {name}", name, entry) for name, entry in table.items()}
    if FIRST not in found or found[FIRST].values:
        raise InputError(f"{path}: needs a table [{FIRST}] without values: that of the claim files")
    return found


def reading(study: Path, name: str = "") -> Reading:
    """Return a reading of a study; without a name, the best supported.

    Raises ``InputError`` with the nearest name if there is none.
    """
    known = readings_of(study)
    if not name:
        return next(iter(known.values()))
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    raise InputError(f"{study.name} has no reading {name!r:.40}; {hint}")


def _reading(where: str, name: str, entry: Any) -> Reading:
    if not _NAME.fullmatch(name):  # the name is used as a folder
        raise InputError(f"{where}: names have small letters, digits, _ and - only")
    if not isinstance(entry, dict) or not {"about", "since"} <= {*entry} <= {*_KEYS}:
        raise InputError(f"{where}: must be a table with {', '.join(_KEYS)}")
    about, since, seeds = entry["about"], entry["since"], entry.get("seeds")
    if not isinstance(about, str) or not isinstance(since, str) or not _DATE.fullmatch(since):
        raise InputError(f"{where}: about is a text, since a day such as 2026-11-23")
    if seeds is not None and (type(seeds) is not int or not 1 <= seeds <= _MOST_SEEDS):
        raise InputError(f"{where}: seeds must be from 1 to {_MOST_SEEDS}")
    values = entry.get("value", [])
    if not isinstance(values, list):
        raise InputError(f"{where}: value must be tables, each beginning with [[{name}.value]]")
    return Reading(name, about.strip(), since, seeds, tuple(_values(where, values)))


def _values(where: str, entries: list[Any]) -> Iterator[Value]:
    for number, entry in enumerate(entries):
        place = f"{where}.value.{number}"
        if not isinstance(entry, dict) or not {*_WORDS} <= {*entry} <= {*_VALUE_KEYS}:
            raise InputError(f"{place}: must be a table with {', '.join(_VALUE_KEYS)}")
        texts = [entry[key] for key in _WORDS]
        if not all(isinstance(text, str) and text.strip() for text in texts):
            raise InputError(f"{place}: what, words and where are texts")
        claims = entry.get("claims", [])
        if not isinstance(claims, list) or not all(isinstance(each, str) for each in claims):
            raise InputError(f"{place}: claims is a list of ids or globs")
        settings = entry.get("set", {})
        if not isinstance(settings, dict) or not (settings or "only" in entry):
            raise InputError(f"{place}: set is a table of paths and values")
        needs, only = (_allowed(place, entry, key) for key in ("with", "only"))
        if only and not claims:
            raise InputError(f"{place}: only is for the claims that it names")
        what, words, source = (text.strip() for text in texts)
        yield Value(what, words, source, dict(flat(settings)), tuple(claims), needs, only)


def _allowed(place: str, entry: Mapping[str, Any], key: str) -> dict[str, tuple[Any, ...]]:
    """Return the allowed values by path, one or a list of them."""
    given = entry.get(key, {})
    if not isinstance(given, dict) or any(v in ([], {}) for _, v in flat(given)):
        raise InputError(f"{place}: {key} is a table of paths and allowed values")
    return {path: tuple(v) if isinstance(v, list) else (v,) for path, v in flat(given)}
