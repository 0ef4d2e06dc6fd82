"""Readings of a study: sets of values for the parameters that its source leaves open.

A source seldom gives all values that a simulation needs. A *reading* is one full set of the values
that the source does not give, each with words of the source that support the value. The file
``readings.toml`` of a study lists its readings: the best-supported one comes first and gives the
verdict. The reading ``first`` has the values in the claim files: it is in the list without values,
and its results are also shown.

A claim cannot choose its reading: values are for all runs of all claims of the study. A reading
does not change a setting that a run sets or varies itself. The exception is a value that names the
claim in ``claims``: the source gives this value for the claim's figure, so it replaces a setting
that the runs set. If the figure has only some of the points that the runs vary, ``only`` selects
these points.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eastwest.claims import grid
from eastwest.claims.profiles import MOST_SEEDS, fewer_seeds, file_of, named, varied
from eastwest.errors import InputError
from eastwest.reader import Table, flat, listed, meant, read_file

#: Name of the file with the readings of a study, in the folder of the study.
FILE = "readings.toml"
#: Name of the reading that has the values of the claim files, unchanged.
FIRST = "first"
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_KEYS = ("about", "since", "seeds", "value")
_WORDS = ("what", "words", "where")
_VALUE_KEYS = (*_WORDS, "set", "claims", "with", "only")


@dataclass(frozen=True)
class Value:
    """Settings that one statement of a source implies, with the words of the statement."""

    what: str
    #: Words of the source that imply the settings.
    words: str
    #: Place of the words in the source, such as a section or a page.
    where: str
    settings: Mapping[str, Any]
    #: Ids or globs of the claims to which the value applies; empty: all claims of the study.
    claims: tuple[str, ...] = ()
    #: Condition (key ``with`` of the file): the value applies only to runs with these settings;
    #: allowed values by path.
    needs: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    #: Values, by path, to which the runs of the claims in ``claims`` are limited.
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def cut(self, sweep: Mapping[str, Any]) -> dict[str, Any]:
        """Return the table of a sweep with only the points that ``only`` allows.

        Raises ``InputError`` if no point is left.
        """
        axes = varied(sweep)
        decided = _decided(sweep)
        narrowed = {path: [*wanted] for path, wanted in self.only.items() if path in axes}
        fixed = {path: wanted for path, wanted in self.only.items() if path not in axes}
        try:
            cut = {**sweep, **grid.narrowed(sweep, narrowed)}
            for path, wanted in fixed.items():
                if not {*map(str, decided.get(path, ["not set"]))} <= {*map(str, wanted)}:
                    raise KeyError(path)
        except KeyError as error:
            message = f"the reading's value {self.what!r:.60} excludes all runs: "
            raise InputError(
                f"{message}no run has a value of {error.args[0]} that `only` allows"
            ) from None
        return cut

    def fits(self, decided: Mapping[str, list[Any]]) -> bool:
        """Whether this value applies to runs: their settings meet the condition ``needs``.

        ``decided`` has the values of the runs by path. Raises ``InputError`` if only some of the
        runs meet the condition.
        """
        fit = True
        for path, allowed in self.needs.items():
            have = {value in allowed for value in decided.get(path, [None])}
            if len(have) > 1:
                raise InputError(
                    f"the reading's value {self.what!r:.60} applies only to some values of the "
                    f"axis {path}; define separate runs for these values"
                )
            fit = fit and have == {True}
        return fit

    def names(self, claim: str) -> bool:
        """Whether the key ``claims`` of the value names a claim; ``claim`` is its id."""
        return any(fnmatch.fnmatchcase(claim, pattern) for pattern in self.claims)


@dataclass(frozen=True)
class Reading:
    """One full set of values for the parameters that the source of a study leaves open."""

    name: str
    about: str
    #: Day (YYYY-MM-DD) on which the reading was committed, before its first run.
    since: str
    #: Maximum number of seeds of full runs; None: as many as the claims have.
    seeds: int | None
    values: tuple[Value, ...]

    def applied(self, sweep: Mapping[str, Any], claim: str, kept: set[str]) -> dict[str, Any]:
        """Return the table of a sweep with the settings of this reading.

        ``claim`` is the id of the claim to which the sweep belongs. ``kept`` has the paths of
        settings that do not change, because an axis or a TCP profile sets them. Raises
        ``InputError`` if a value applies only to some of the runs.
        """
        for value in self.values:
            if value.only and value.names(claim):
                sweep = value.cut(sweep)
        own = flat(sweep.get("set"))
        needs = any(value.needs for value in self.values)
        general, special = self._settings(claim, _decided(sweep) if needs else {})
        added = {path: value for path, value in general.items() if path not in {*own, *kept}}
        replaced = {path: value for path, value in special.items() if path not in kept}
        fewer = fewer_seeds(sweep, self.seeds) if self.seeds else {}
        settings = {**added, **own, **replaced}
        return {**sweep, **fewer, **({"set": settings} if settings else {})}

    def _settings(
        self, claim: str, decided: Mapping[str, list[Any]]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return (settings for all claims of the study, settings for this claim), each by path.

        ``decided`` has the values of the claim's runs by path.
        """
        general: dict[str, Any] = {}
        special: dict[str, Any] = {}
        for value in self.values:
            if not value.fits(decided):
                continue
            if not value.claims:
                general |= value.settings
            elif value.names(claim):
                special |= value.settings
        return general, special


def _decided(sweep: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the values that the runs of a sweep have, by path: of scenario, ``set`` and axes."""
    scenario = sweep.get("scenario")
    try:
        base = read_file(Path(scenario))[0] if isinstance(scenario, str) else {}
    except (OSError, ValueError):
        base = {}  # a wrong scenario is reported when the sweep is loaded
    decided = {path: [v] for path, v in {**flat(base), **flat(sweep.get("set"))}.items()}
    for axis in grid.axes_of(sweep):
        decided |= grid.columns(axis)
    return decided


#: The only reading of a study that has no file ``readings.toml``.
_ONLY = Reading(FIRST, "The values that the claim files have.", "", None, ())


def readings_of(study: Path) -> dict[str, Reading]:
    """Return the readings of the study in this folder by name, the best supported first.

    Raises ``InputError`` if ``readings.toml`` has problems.
    """
    file = file_of(study / FILE)
    if not file.content:
        return {FIRST: _ONLY}
    found = {name: _reading(name, entry) for name, entry in named(file, _KEYS)}
    if FIRST not in found or found[FIRST].values:
        file.wrong(
            FIRST,
            None,
            f"the file needs a table [{FIRST}] without values, for the values of the claim files",
        )
    file.refuse()
    return found


def reading(study: Path, name: str = "") -> Reading:
    """Return the reading ``name`` of a study; without a name, the best-supported reading.

    If there is no such reading, raises ``InputError`` with the nearest name.
    """
    known = readings_of(study)
    if not name:
        return next(iter(known.values()))
    if name in known:
        return known[name]
    raise InputError(f"the study {study.name} has no reading {name!r:.40}; {meant(name, known)}")


def _reading(name: str, entry: Table) -> Reading:
    about, since = entry.words("about"), entry.text("since")
    if since and not _DATE.fullmatch(since):
        entry.wrong("since", since, "must be a day such as 2026-11-23")
    seeds = entry.integer("seeds", None, 1, MOST_SEEDS) if "seeds" in entry else None
    values = tuple(_value(each) for each in entry.tables("value", _VALUE_KEYS))
    return Reading(name, about, since, seeds, values)


def _value(entry: Table) -> Value:
    what, words, where = (entry.words(key) for key in _WORDS)
    claims = entry.texts("claims", wanted="a list of ids or globs")
    settings = entry.settings("set")
    if not settings and "only" not in entry:
        entry.wrong("set", None, "is missing: a table of paths and values")
    needs, only = (_allowed(entry, key) for key in ("with", "only"))
    if only and not claims:
        entry.wrong("only", None, "needs the key claims: a list of the claims that only limits")
    return Value(what, words, where, settings, claims, needs, only)


def _allowed(entry: Table, key: str) -> dict[str, tuple[Any, ...]]:
    """Return the allowed values by path, from a key of the file with a value or list by path."""
    found = entry.settings(key, "a table of paths and allowed values")
    for path, value in found.items():
        if value in ([], {}):
            entry.wrong(
                f"{key}.{path}", value, "must be an allowed value, or a list of allowed values"
            )
    return {path: tuple(listed(value)) for path, value in found.items()}
