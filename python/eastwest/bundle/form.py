"""The manifest of a bundle: the file ``bundle.json``, with every file and every run.

A bundle may come from anyone. ``read`` checks the type of every value, and that names stay within
the bundle. Keys that this version does not know are ignored; a bundle of a newer ``format`` is
refused.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import PurePosixPath
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from eastwest import core
from eastwest.errors import InputError
from eastwest.units import clean

#: Version of the layout of a bundle: ``format`` in ``bundle.json``.
FORMAT = 1
#: Name of the manifest within a bundle.
MANIFEST = "bundle.json"
#: Name of the page for people within a bundle.
README = "README.md"
#: Maximum number of files of a bundle.
MOST_FILES = 200_000
#: Maximum number of bytes of a manifest.
LARGEST_MANIFEST = 256 * 1024 * 1024
#: Maximum number of commas of a manifest: more than 200,000 files with their runs need. A value
#: needs up to 200 bytes of memory, but only three bytes of text.
_MOST_COMMAS = 25 * MOST_FILES
_LONGEST_NAME = 500
_SHA256 = re.compile(r"[0-9a-f]{64}")
#: Form of a version: messages have it in a command that installs this version.
_VERSION = re.compile(r"[0-9A-Za-z.+!_-]{0,60}")
_DIGEST = re.compile(r"[0-9a-f]{0,128}")
#: Characters that no name of a file in a bundle has: some systems do not allow them in names.
_FORBIDDEN = frozenset('\\:*?"<>|')

#: Kinds of bundles, by the thing that they are made of.
KINDS = ("result", "sweep", "study")
#: Roles of files: the meaning of each in the page for people.
ROLES = {
    "scenario": "scenarios: all settings of a run, and its seed",
    "input": "input files that scenarios read: traces, graphs, distributions",
    "summary": "summaries of runs: digest and all numbers",
    "table": "tables of results",
    "picture": "pictures and pages",
    "study": "files of the study: claims, stored verdicts, pages",
    "code": "program code, which `eastwest bundle verify` never executes",
    "lock": "versions of programs and packages",
    "licence": "licences of input files",
    "added": "files that the author has added",
    "page": "this page",
}


@dataclass(frozen=True)
class File:
    """A file of a bundle: its path, size in bytes, SHA-256 and role (a key of ``ROLES``)."""

    path: str
    size: int
    sha256: str
    role: str
    #: Where the file is from, and under which licence; empty if the author has not stated this.
    origin: str = ""
    #: Whether the bundle has the file itself; else only size, hash and origin are known.
    inside: bool = True


@dataclass(frozen=True)
class Run:
    """A run of a bundle: its scenario, its seed and the digest of its result."""

    name: str
    #: Paths of the scenario, which names its input files relative to its own folder, and of the
    #: summary of the result.
    scenario: str
    summary: str
    seed: int
    digest: str
    #: Format of the result (docs/reference/formats.md), and version of Eastwest that made it.
    format: int
    version: str
    #: Command that simulates the run again in the unpacked bundle.
    command: str
    #: Paths of the input files that the scenario reads.
    inputs: tuple[str, ...] = ()
    #: Settings of the point of a sweep, by path.
    settings: Mapping[str, str] = field(default_factory=dict)
    #: Names of the sets of runs that contain the run: ``CLAIM/RUNS`` of a study.
    used_by: tuple[str, ...] = ()
    #: Whether a quick rerun includes the run.
    quick: bool = True
    #: CPU time and memory of the run when the bundle was made; 0 if they are unknown.
    cpu_s: float = 0.0
    peak_rss_mb: float = 0.0


@dataclass(frozen=True)
class Mechanism:
    """A mechanism of the user that runs need: a Python file or the folder of a Rust crate."""

    path: str
    #: ``python`` or ``crate``.
    kind: str


@dataclass(frozen=True)
class Manifest:
    """Content of ``bundle.json``."""

    name: str
    #: ``result``, ``sweep`` or ``study``.
    kind: str
    #: Version of Eastwest that made the bundle.
    version: str
    #: Version and hashes of the code that decides results, as ``eastwest.core.build`` returns them.
    build: str
    #: Python, processor and system on which the bundle was made.
    machine: Mapping[str, str]
    files: tuple[File, ...]
    runs: tuple[Run, ...]
    mechanisms: tuple[Mechanism, ...] = ()

    def text(self) -> str:
        """Return the content of ``bundle.json``."""
        content = {"format": FORMAT, **asdict(self)}
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @property
    def absent(self) -> list[File]:
        """Files that runs need and that are not inside the bundle."""
        return [file for file in self.files if not file.inside]


def name_problem(name: str) -> str | None:
    """Return why a name cannot be that of a file in a bundle; None if it can."""
    steps = PurePosixPath(name).parts
    if not name or len(name) > _LONGEST_NAME:
        return f"is empty or longer than {_LONGEST_NAME} characters"
    if not name.isprintable():
        return "has control characters"
    if found := _FORBIDDEN & {*name}:
        return f"has the character {min(found)}"
    if name.startswith("/") or ".." in steps or "/".join(steps) != name:
        return "is not a relative path without . and .."
    if any(step != step.rstrip(" .") for step in steps):
        return "has a part that ends with a dot or a space"
    return None


def clash(names: Iterable[str]) -> tuple[str, str] | None:
    """Return two names that are one file in some file system, or a file and its folder; or None.

    Some systems do not distinguish upper from lower case, or forms of Unicode.
    """
    seen: dict[str, str] = {}
    folders: dict[str, str] = {}
    for name in names:
        plain = unicodedata.normalize("NFC", name).casefold()
        if plain in seen:
            return seen[plain], name
        seen[plain] = name
        for above in _above(plain):
            folders.setdefault(above, name)
    both = next((plain for plain in seen if plain in folders), None)
    return None if both is None else (seen[both], folders[both])


def _above(name: str) -> Iterator[str]:
    """Yield the folders that contain a file."""
    place = name.rfind("/")
    while place > 0:
        yield name[:place]
        place = name.rfind("/", 0, place)


Kind = TypeVar("Kind")


def read(data: bytes, label: str) -> Manifest:
    """Return the manifest in ``data``, the content of ``bundle.json``.

    ``label`` is the name of the bundle in messages. Raises ``InputError`` where the manifest is
    damaged, or of a newer format than this version reads.
    """
    where = f"{label}: {MANIFEST}"
    if data.count(b",") > _MOST_COMMAS:
        raise InputError(f"{where} is damaged: it has too many values for {MOST_FILES:,} files")
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is damaged: {clean(str(error))}") from None
    if not isinstance(content, dict):
        raise InputError(f"{where} is damaged: it is not a JSON object")
    found = content.get("format")
    if type(found) is not int or found < 1:
        raise InputError(f"{where} is damaged: format is {found!r:.40}, not a number above 0")
    if found > FORMAT:
        writer = clean(str(content.get("version")), 40)
        raise InputError(
            f"{label} has bundle format {found:d}, made by Eastwest {writer}; this is Eastwest "
            f"{core.version()}, which reads format {FORMAT}: use that version or a newer one"
        )
    made = _made(Manifest, content, where)
    _check(made, where)
    return made


def _made(kind: type[Kind], entry: object, where: str) -> Kind:
    """Return an object of a class of this module, made of a JSON object with checked types."""
    if not isinstance(entry, dict):
        raise InputError(f"{where} is damaged: it is not a JSON object")
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for each in fields(kind):  # type: ignore[arg-type]
        name = each.name
        if name in entry:
            values[name] = _value(hints[name], entry[name], f"{where}: {name}")
        elif each.default is MISSING and each.default_factory is MISSING:
            raise InputError(f"{where} is damaged: it has no key {name!r}")
    return kind(**values)


def _value(kind: Any, value: Any, where: str) -> Any:
    """Return a JSON value in a type of a field; raise ``InputError`` for another type."""
    if get_origin(kind) is tuple:
        inner = get_args(kind)[0]
        if not isinstance(value, list) or len(value) > MOST_FILES:
            raise InputError(f"{where} is damaged: not a list of at most {MOST_FILES:,} entries")
        return tuple(_value(inner, one, f"{where}[{number}]") for number, one in enumerate(value))
    if get_origin(kind) is Mapping:
        if not isinstance(value, dict):
            raise InputError(f"{where} is damaged: not a JSON object")
        return {str(key): _value(str, one, f"{where}.{key:.40}") for key, one in value.items()}
    if kind is float and type(value) is int:
        value = float(value) if abs(value) < 1 << 63 else math.inf
    if kind in (str, int, float, bool):
        fits = type(value) is kind and (kind is not float or math.isfinite(value))
        if not fits or (kind is int and not 0 <= value < 1 << 64):
            raise InputError(f"{where} is damaged: {value!r:.60} is not a valid {kind.__name__}")
        return value
    return _made(kind, value, where)


def _check(made: Manifest, where: str) -> None:
    """Raise ``InputError`` where names, hashes or references of a manifest are not valid."""

    def refuse(what: str, value: str, why: str) -> None:
        raise InputError(f"{where} is damaged: {what} {clean(value, 100)!r} {why}")

    if made.kind not in KINDS:
        refuse("kind", made.kind, f"is none of {', '.join(KINDS)}")
    for version in (made.version, *(run.version for run in made.runs)):
        if not _VERSION.fullmatch(version):
            refuse("version", version, "is not a version")
    for file in made.files:
        if problem := name_problem(file.path):
            refuse("path", file.path, problem)
        if not _SHA256.fullmatch(file.sha256):
            refuse("sha256", file.sha256, "is not a SHA-256 in hexadecimal digits")
    if found := clash(file.path for file in made.files):
        refuse("path", found[1], f"clashes with {clean(found[0], 100)!r}")
    _check_runs(made, refuse)


def _check_runs(made: Manifest, refuse: Callable[[str, str, str], None]) -> None:
    """Call ``refuse`` where a run or a mechanism of a manifest is not valid."""
    known = {file.path for file in made.files}
    outside = {file.path for file in made.absent}
    names: set[str] = set()
    for run in made.runs:
        for path in (run.scenario, run.summary, *run.inputs):
            if path not in known:
                refuse(f"run {clean(run.name, 60)!r}: file", path, "is not in the list of files")
        for path in (run.scenario, run.summary):
            if path in outside:
                refuse(f"run {clean(run.name, 60)!r}: file", path, "is not inside the bundle")
        below = f"{run.scenario.rpartition('/')[0]}/".lstrip("/")
        if any(not path.startswith(below) for path in run.inputs):
            refuse("run", run.name, f"has input files that are not below {below}")
        if not _DIGEST.fullmatch(run.digest):
            refuse("digest", run.digest, "is not a hexadecimal number")
        if run.name in names:
            refuse("run", run.name, "is listed twice")
        names.add(run.name)
    for one in made.mechanisms:
        is_there = one.path in known or any(path.startswith(f"{one.path}/") for path in known)
        if name_problem(one.path) or one.kind not in {"python", "crate"} or not is_there:
            refuse("mechanism", one.path, "is not a file or folder of the bundle")
