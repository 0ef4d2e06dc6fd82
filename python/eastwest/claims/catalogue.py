"""Search for claim files, and selection of claims by patterns, profiles and readings."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from pathlib import Path

from eastwest.claims.profiles import profiles_of
from eastwest.claims.readings import readings_of
from eastwest.claims.spec import Claim, load
from eastwest.core import Problem
from eastwest.errors import InputError, ProblemsError, nearest

_PACKAGE = Path(__file__).resolve().parents[1]
#: Folder of the studies in the project's source tree.
_SOURCE_TREE = _PACKAGE.parents[1] / "papers"
#: Copy of the studies in a wheel (tools/shipped_papers.py).
SHIPPED = _PACKAGE / "papers"


def papers_folder(given: str | Path | None = None) -> Path:
    """Return the folder of the studies.

    This is ``given``, else ``papers`` in the current folder, in the source tree or in the wheel.
    """
    if given is not None:
        if not Path(given).is_dir():
            raise InputError(f"{given} is not a folder of studies")
        return Path(given)
    for folder in (Path("papers"), _SOURCE_TREE, SHIPPED):
        if any(folder.glob("*/claims/*.toml")):
            return folder
    raise InputError(
        "no claims found: no file papers/STUDY/claims/*.toml; give the folder with --papers"
    )


def find(papers: Path) -> list[Claim]:
    """Return all claims by id. Raises ``ProblemsError`` with the problems of all files together."""
    claims: list[Claim] = []
    problems: list[Problem] = []
    for path in sorted(papers.glob("*/claims/*.toml")):
        try:
            claims.append(load(path))
        except ProblemsError as error:
            problems += error.problems
    seen: dict[str, Claim] = {}
    for claim in claims:
        if claim.id in seen:
            where = f"{claim.path.parent.parent.name}/{claim.path.name}: id"
            message = f"is also the id of {seen[claim.id].path}"
            problems.append({"path": where, "value": claim.id, "message": message, "hint": None})
        seen[claim.id] = claim
    if problems:
        raise ProblemsError(problems)
    return sorted(claims, key=lambda claim: _order(claim.id))


def _order(identity: str) -> tuple[str, str]:
    study, _, name = identity.partition("/")
    return study, name


def choose(claims: Sequence[Claim], patterns: Sequence[str]) -> list[Claim]:
    """Return the claims whose id fits one of the patterns; without patterns, all.

    A pattern is an id, a study (``incast`` for ``incast/*``), or has ``*``, ``?`` or ``[…]``.
    Raises ``InputError`` with the nearest id where one fits nothing.
    """
    if not patterns:
        return list(claims)
    ids = [claim.id for claim in claims]
    chosen: set[str] = set()
    for pattern in patterns:
        fitting = [
            name
            for name in ids
            if fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name, f"{pattern}/*")
        ]
        if not fitting:
            near = _nearest(pattern, ids)
            studies = sorted({name.partition("/")[0] for name in ids})
            hint = f"; did you mean {near}?" if near else f"; studies are {', '.join(studies)}"
            raise InputError(f"no claim fits {pattern!r}{hint}")
        chosen.update(fitting)
    return [claim for claim in claims if claim.id in chosen]


def under(claims: Sequence[Claim], names: Sequence[str]) -> list[Claim]:
    """Return each claim once for each named TCP profile of its study; ``all``: every profile.

    Raises ``InputError`` where a study has no profile of that name.
    """
    found = []
    for claim in claims:
        known = [claim.profile, *profiles_of(claim.path.parent.parent)]
        wanted = dict.fromkeys(
            each for name in names for each in (known if name == "all" else [name])
        )
        found += [load(claim.path, name) for name in wanted]
    return found


def read_as(claims: Sequence[Claim], names: Sequence[str]) -> list[Claim]:
    """Return each claim once for each named reading of its study; ``all``: every reading.

    A claim is returned once for readings that are equal for it. Raises ``InputError``
    where a study has no reading of that name.
    """
    found: list[Claim] = []
    for claim in claims:
        known = [*readings_of(claim.path.parent.parent)]
        wanted = [each for name in names for each in (known if name == "all" else [name])]
        loaded = [load(claim.path, named=name) for name in wanted]
        found += {each.variant: each for each in reversed(loaded)}.values()
    return found


def _nearest(pattern: str, ids: Sequence[str]) -> str | None:
    """Return the id or study nearest to a pattern, without regard to case, or None."""
    names = {name.lower(): name for name in ids}
    names |= {study: study for study in (name.partition("/")[0] for name in ids)}
    names |= {name.rpartition("/")[2].lower(): name for name in reversed(ids)}
    near = nearest(pattern.lower(), names, 0.5)
    return names[near] if near else None
