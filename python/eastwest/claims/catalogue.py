"""Search for claim files, and selection of claims by patterns, profiles and readings."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from eastwest.claims.profiles import profiles_of
from eastwest.claims.readings import readings_of
from eastwest.claims.spec import Claim, identity, load
from eastwest.core import Problem
from eastwest.errors import InputError, ProblemsError, in_one_line, nearest
from eastwest.reader import flat

_PACKAGE = Path(__file__).resolve().parents[1]
#: Folder of the studies in the source tree of Eastwest.
SOURCE_TREE = _PACKAGE.parents[1] / "papers"
#: Folder of the studies in an installed package (made by tools/shipped_papers.py).
SHIPPED = _PACKAGE / "papers"


class Named(Protocol):
    """A claim that patterns can choose by its id or by the folder of its study."""

    @property
    def id(self) -> str:
        """Id of the claim, such as ``incast/T1``."""

    @property
    def path(self) -> Path:
        """Path of the claim's file."""


@dataclass(frozen=True)
class _File:
    """A claim file of which only the id was read; ``wrong`` is the error if no id was found."""

    path: Path
    id: str
    wrong: str = ""


_Choice = TypeVar("_Choice", bound=Named)


def study_of(claim: Named) -> str:
    """Return the folder name of the study to which a claim belongs."""
    return claim.path.parent.parent.name


def papers_folder(given: str | Path | None = None) -> Path:
    """Return the folder of the studies.

    The folder is ``given``, or else the first of these that has claims: ``papers`` in the current
    folder, in the source tree and in the installed package.
    """
    if given is not None:
        if not Path(given).is_dir():
            raise InputError(
                f"{given} is not a folder; name a folder with claim files STUDY/claims/*.toml"
            )
        return Path(given)
    for folder in (Path("papers"), SOURCE_TREE, SHIPPED):
        if any(folder.glob("*/claims/*.toml")):
            return folder
    raise InputError(
        "no claims found: there is no file papers/STUDY/claims/*.toml; name the folder of the "
        "studies with --papers"
    )


def find(papers: Path) -> list[Claim]:
    """Return all claims, ordered by id; raise ``ProblemsError`` if a claim file has problems.

    The error has the problems of all files.
    """
    return _read(_files(papers))


def select(
    papers: Path, patterns: Sequence[str], warn: Callable[[str], None] = lambda _: None
) -> list[Claim]:
    """Return the claims whose id or study matches one of the patterns; without patterns, all.

    Raises ``ProblemsError`` if files of the chosen claims have problems. ``warn`` gets one line for
    each other file with problems: files of the same studies, and files without a valid id.
    """
    if not patterns:
        return find(papers)
    files = [_head(path) for path in _files(papers)]
    chosen = choose(files, patterns)
    claims = _read(file.path for file in chosen)
    studies = {study_of(file) for file in chosen}
    for file in files:
        wrong = file.wrong
        if file in chosen:
            continue
        if study_of(file) in studies:
            try:
                load(file.path)
            except InputError as error:
                wrong = in_one_line(error)
        if wrong:
            warn(f"warning: {file.path} is left out: {wrong}")
    return claims


def search(
    papers: Path, patterns: Sequence[str], warn: Callable[[str], None] = lambda _: None
) -> list[Claim]:
    """Return the claims that match patterns; a pattern that matches no claim is used as a word.

    A claim is found by a word in its statement, published text or source, or in a setting of its
    runs, such as the kind of a queue. Raises ``InputError`` if a pattern finds no claim in either
    way. ``warn`` is called with a line for each file that cannot be read.
    """
    if not patterns:
        return find(papers)
    everything = functools.cache(lambda: _sound(papers, warn))
    chosen: dict[Path, Claim] = {}
    for pattern in patterns:
        try:
            found = select(papers, [pattern], warn)
        except ProblemsError:
            raise
        except InputError as error:
            word = re.compile(rf"(?<!\w){re.escape(pattern)}(?!\w)", re.IGNORECASE)
            found = [claim for claim in everything() if any(map(word.search, _about(claim)))]
            if not found:
                raise InputError(f"{error}; no text or setting of a claim has this word") from None
        chosen |= {claim.path: claim for claim in found}
    return sorted(chosen.values(), key=lambda claim: _order(claim.id))


def _sound(papers: Path, warn: Callable[[str], None]) -> list[Claim]:
    """Return all claims that can be read; call ``warn`` with a message for each other file."""
    claims = []
    for path in _files(papers):
        try:
            claims.append(load(path))
        except InputError as error:
            warn(f"warning: {path} is left out: {in_one_line(error)}")
    return claims


def _about(claim: Claim) -> Iterator[str]:
    """Yield the texts in which words are searched: statement, published text, source, settings."""
    yield from (claim.statement, claim.published, claim.source)
    for sweep in claim.runs.values():
        values = [
            *sweep.settings.values(),
            *(v for a in sweep.axes for row in a.values for v in row),
        ]
        for value in values:
            yield from (each for each in [value, *flat(value).values()] if isinstance(each, str))


def _files(papers: Path) -> list[Path]:
    return sorted(papers.glob("*/claims/*.toml"))


def _head(path: Path) -> _File:
    """Return a claim file with its id; without a valid id, the id is ``STUDY/FILE NAME``."""
    try:
        return _File(path, identity(path))
    except InputError as error:
        return _File(path, f"{path.parent.parent.name}/{path.stem}", in_one_line(error))


def _read(paths: Iterable[Path]) -> list[Claim]:
    """Return the claims of files, ordered by id; raise ``ProblemsError`` with their problems.

    An id that several files have is also a problem.
    """
    claims: list[Claim] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            claims.append(load(path))
        except ProblemsError as error:
            problems += error.problems
    seen: dict[str, Claim] = {}
    for claim in claims:
        if claim.id in seen:
            where = f"{study_of(claim)}/{claim.path.name}: id"
            message = f"is also the id of {seen[claim.id].path}"
            problems.append({"path": where, "value": claim.id, "message": message, "hint": None})
        seen[claim.id] = claim
    if problems:
        raise ProblemsError(problems)
    return sorted(claims, key=lambda claim: _order(claim.id))


def _order(identity: str) -> tuple[str, str]:
    study, _, name = identity.partition("/")
    return study, name


def choose(claims: Sequence[_Choice], patterns: Sequence[str]) -> list[_Choice]:
    """Return the claims that match one of the patterns; without patterns, all.

    A pattern is the folder of a study, an id, the part of ids before the slash, the beginning of
    ids (``incast/F4`` for F4a and F4b), or a glob with ``*``, ``?`` or ``[…]``. An id can also
    begin with the folder of the study (``hadoop_standalone/F6a``). Raises ``InputError`` if a
    pattern matches no claim; the message has the nearest name, or else the names of the studies.
    """
    if not patterns:
        return list(claims)
    chosen: set[Path] = set()
    for pattern in patterns:
        fitting = _fitting(claims, pattern)
        if not fitting:
            near = _nearest(pattern, claims)
            studies = sorted({study_of(claim) for claim in claims})
            hint = f"; did you mean {near}?" if near else f"; studies are {', '.join(studies)}"
            raise InputError(f"no claim fits {pattern!r}{hint}")
        chosen |= {claim.path for claim in fitting}
    return [claim for claim in claims if claim.path in chosen]


def _fitting(claims: Sequence[_Choice], pattern: str) -> list[_Choice]:
    """Return the claims that match a pattern: as study, else as id or glob, else as prefix.

    Only a pattern with a slash can be the prefix of an id.
    """
    if study := [claim for claim in claims if study_of(claim) == pattern]:
        return study
    globs = (pattern, f"{pattern}/*")
    found = [
        claim
        for claim in claims
        if any(fnmatch.fnmatchcase(name, glob) for name in _names(claim) for glob in globs)
    ]
    if found or "/" not in pattern:
        return found
    return [claim for claim in claims if any(n.startswith(pattern) for n in _names(claim))]


def _names(claim: Named) -> tuple[str, str]:
    """Return two names of a claim: the id, and ``FOLDER/NAME`` with the folder of the study."""
    return claim.id, f"{study_of(claim)}/{claim.id.rpartition('/')[2]}"


def under(claims: Sequence[Claim], names: Sequence[str]) -> list[Claim]:
    """Return each claim under each TCP profile in ``names``; ``all`` means every profile.

    ``all`` includes the claim's own profile. Raises ``InputError`` if a study has no profile with
    one of the names.
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
    """Return each claim under each reading in ``names``; ``all`` means every reading of its study.

    A claim that is equal under several readings is returned once. Raises ``InputError`` if a study
    has no reading with one of the names.
    """
    found: list[Claim] = []
    for claim in claims:
        known = [*readings_of(claim.path.parent.parent)]
        wanted = [each for name in names for each in (known if name == "all" else [name])]
        loaded = [load(claim.path, named=name) for name in wanted]
        found += {each.variant: each for each in reversed(loaded)}.values()
    return found


def _nearest(pattern: str, claims: Sequence[Named]) -> str | None:
    """Return the id or study that is most similar to a pattern (ignoring case), or None."""
    ids = [claim.id for claim in claims]
    names = {name.lower(): name for name in ids}
    names |= {study: study for study in (name.partition("/")[0] for name in ids)}
    names |= {study.lower(): study for study in map(study_of, claims)}
    names |= {name.rpartition("/")[2].lower(): name for name in reversed(ids)}
    near = nearest(pattern.lower(), names, 0.5)
    return names[near] if near else None
