"""TCP profiles of a study: other TCP settings under which its claims also run.

The file ``profiles.toml`` of a study lists its profiles. A profile has ``about``, a sentence on the
settings that change, and on those that do not change because the source gives them; ``set``, the
settings for all runs of all claims; ``seeds``, the maximum number of seeds of full runs; and
``because``, reasons why claims differ under the profile, by the ids of the claims. A setting that a
run itself sets or varies takes precedence over the setting of the profile. Results under these
profiles are stored apart from results under a claim's own profile; the bands are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eastwest.claims.grid import axes_of
from eastwest.errors import InputError
from eastwest.reader import Table, flat, listed, meant, read_file

#: Name of the file with the TCP profiles of a study, in the folder of the study.
FILE = "profiles.toml"
MOST_SEEDS = 1000
_NAME = re.compile(r"[a-z0-9_-]{1,20}")
_LARGEST_FILE = 256 * 1024
_KEYS = ("about", "set", "seeds", "because")


@dataclass(frozen=True)
class Profile:
    """TCP profile of a study: other TCP settings under which its claims also run."""

    name: str
    about: str
    settings: Mapping[str, Any]
    #: Maximum number of seeds of full runs.
    seeds: int
    #: Reasons why claims differ under the profile, by the ids of the claims.
    because: Mapping[str, str]

    def applied(self, sweep: Mapping[str, Any]) -> dict[str, Any]:
        """Return the table of a sweep with the settings of the profile and at most its seeds.

        A setting that the sweep sets or varies is not changed.
        """
        own = flat(sweep.get("set"))
        decided = {*own, *varied(sweep)}
        added = {path: value for path, value in self.settings.items() if path not in decided}
        return {**sweep, **fewer_seeds(sweep, self.seeds), "set": {**added, **own}}


def fewer_seeds(sweep: Mapping[str, Any], most: int) -> dict[str, int]:
    """Return ``{"seeds": n}``: the sweep's number of seeds, limited to ``most``.

    The result is empty if the sweep does not give a number of seeds, but a list or a rule.
    """
    seeds = sweep.get("seeds")
    return {"seeds": min(seeds, most)} if isinstance(seeds, int) else {}


def varied(sweep: Mapping[str, Any]) -> set[str]:
    """Return the paths of the settings that the axes of a sweep's table vary."""
    paths = [path for axis in axes_of(sweep) for path in listed(axis.get("path"))]
    return {path for path in paths if isinstance(path, str)}


def file_of(path: Path) -> Table:
    """Return the content of a TOML file of a study; an empty table if the file does not exist."""
    return Table(read_file(path, _LARGEST_FILE)[0] if path.is_file() else {}, f"{path}: ")


def named(file: Table, keys: Sequence[str]) -> Iterator[tuple[str, Table]]:
    """Yield (name, table) for each table of a file; add problems of names and of unknown keys.

    ``keys`` are the keys that each table may have.
    """
    for name in file.content:
        if not _NAME.fullmatch(name):  # the name is used as a folder
            file.wrong(name, None, "a name must have 1 to 20 characters: a to z, 0 to 9, _ and -")
        entry = file.table(name)
        entry.keys(keys)
        yield name, entry


def profiles_of(study: Path) -> dict[str, Profile]:
    """Return the profiles of the study in this folder, by name; empty without ``profiles.toml``.

    Raises ``InputError`` if the file has problems.
    """
    file = file_of(study / FILE)
    found = {name: _profile(name, entry) for name, entry in named(file, _KEYS)}
    file.refuse()
    return found


def _profile(name: str, entry: Table) -> Profile:
    if "set" not in entry:
        entry.wrong("set", None, "is missing: a table of paths and values")
    because = entry.table("because", "a table of claims and texts")
    return Profile(
        name,
        entry.words("about"),
        entry.settings("set"),
        entry.integer("seeds", MOST_SEEDS, 1, MOST_SEEDS),
        {claim: because.text(claim) for claim in because.content},
    )


def profile(study: Path, name: str) -> Profile:
    """Return the profile ``name`` of a study.

    If there is none, raises ``InputError`` with the nearest name.
    """
    known = profiles_of(study)
    if name in known:
        return known[name]
    hint = meant(name, known) if known else f"the study has no {FILE}"
    raise InputError(f"the study {study.name} has no TCP profile {name!r:.40}; {hint}")
