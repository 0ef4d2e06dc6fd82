"""Profiles of a study: its claims, run with another TCP.

A study's ``profiles.toml`` names them. Each has ``about``, a sentence on the changed settings and
on those that the source gives and that stay, ``set``, settings for all runs of all claims,
``seeds``, the most seeds of full runs, and ``because``, the reasons why claims differ under it, by
their ids. Settings that a run itself sets or varies take precedence over those of the profile.
Results of a claim under a profile are kept apart from those under its own, and have the same bands.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eastwest.errors import InputError
from eastwest.sweep.spec import flat

#: Name of the file in the folder of a study.
FILE = "profiles.toml"
_NAME = re.compile(r"[a-z0-9_-]{1,20}")
_LARGEST_FILE = 64 * 1024
_KEYS = {"about", "set", "seeds", "because"}
_MOST_SEEDS = 1000


@dataclass(frozen=True)
class Profile:
    """Another TCP for the claims of a study."""

    name: str
    about: str
    settings: Mapping[str, Any]
    #: Most seeds of full runs.
    seeds: int
    #: Reasons why claims differ under the profile, by the ids of the claims.
    because: Mapping[str, str]

    def applied(self, sweep: Mapping[str, Any]) -> dict[str, Any]:
        """Return the table of a sweep with this profile's settings, unless it has its own."""
        given = sweep.get("set")
        own = dict(flat(given)) if isinstance(given, dict) else {}
        decided = {*own, *varied(sweep)}
        added = {path: value for path, value in self.settings.items() if path not in decided}
        seeds = sweep.get("seeds")
        fewer = {"seeds": min(seeds, self.seeds)} if isinstance(seeds, int) else {}
        return {**sweep, **fewer, "set": {**added, **own}}


def varied(sweep: Mapping[str, Any]) -> set[str]:
    """Return the paths of the axes of a sweep's table."""
    axes = sweep.get("axis")
    paths = [axis.get("path") for axis in axes or () if isinstance(axis, dict)]
    each = [path if isinstance(path, list) else [path] for path in paths]
    return {path for together in each for path in together if isinstance(path, str)}


def profiles_of(study: Path) -> dict[str, Profile]:
    """Return the profiles of the study in this folder, by name; empty where it has no such file.

    Raises ``InputError`` where the file is wrong.
    """
    path = study / FILE
    if not path.is_file():
        return {}
    if path.stat().st_size > _LARGEST_FILE:
        raise InputError(f"{path}: larger than any file of profiles")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not TOML: {error}") from None
    return {name: _profile(path, name, entry) for name, entry in table.items()}


def _profile(path: Path, name: str, entry: Any) -> Profile:
    if not _NAME.fullmatch(name):  # the name is used as a folder
        raise InputError(f"{path}: {name!r:.40}: names have small letters, digits, _ and - only")
    if not isinstance(entry, dict) or not {"about", "set"} <= {*entry} <= _KEYS:
        raise InputError(f"{path}: {name}: must be a table with {', '.join(sorted(_KEYS))}")
    about, settings, because = entry["about"], entry["set"], entry.get("because", {})
    if not isinstance(about, str) or not isinstance(settings, dict):
        raise InputError(f"{path}: {name}: about is a text, set a table of paths and values")
    if not isinstance(because, dict) or not all(isinstance(why, str) for why in because.values()):
        raise InputError(f"{path}: {name}: because is a table of claims and texts")
    seeds = entry.get("seeds", _MOST_SEEDS)
    if type(seeds) is not int or not 1 <= seeds <= _MOST_SEEDS:
        raise InputError(f"{path}: {name}: seeds must be from 1 to {_MOST_SEEDS}")
    return Profile(name, about.strip(), dict(flat(settings)), seeds, because)


def profile(study: Path, name: str) -> Profile:
    """Return a profile of a study. Raises ``InputError`` with the nearest name if there is none."""
    known = profiles_of(study)
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    there = f"there are {', '.join(known)}" if known else f"it has no {FILE}"
    hint = f"did you mean {near[0]}?" if near else there
    raise InputError(f"{study.name} has no profile {name!r:.40}; {hint}")
