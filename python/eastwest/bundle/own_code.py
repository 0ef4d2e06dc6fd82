"""The user's mechanisms in a bundle: the files that runs need, and the check of their hashes.

Making a bundle executes no mechanism: the files that ``--with`` names are compared by their hashes
with those that the summaries of runs name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from eastwest.bundle.contents import Contents
from eastwest.bundle.form import Mechanism
from eastwest.errors import InputError
from eastwest.mechanisms import crate

#: Folder of mechanisms in a bundle.
FOLDER = "mechanisms"


def wanted(summaries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of mechanisms in summaries of runs, each once."""
    found: dict[str, dict[str, Any]] = {}
    for summary in summaries:
        for source in summary.get("mechanisms") or []:
            found.setdefault(str(source.get("sha256")), source)
    return list(found.values())


def add(contents: Contents, sources: Sequence[Mapping[str, Any]], given: Sequence[Path]) -> None:
    """Add the mechanisms that runs need, from the paths ``given``, to a bundle.

    ``sources`` are the entries of summaries. Raises ``InputError`` where a mechanism is not given,
    or has changed since the runs.
    """
    by_hash = {_hash(path): path for path in given}
    for source in sources:
        named = str(source.get("file") or f"crate {source.get('crate')}")
        found = by_hash.pop(str(source["sha256"]), None)
        if found is None:
            near = next(
                (p for p in given if p.name in {source.get("file"), source.get("crate")}), None
            )
            why = f"{near} has changed since the runs" if near else f"name it with --with {named}"
            raise InputError(
                f"the runs need {', '.join(map(str, source.get('mechanisms', ())))} of {named}, "
                f"which a bundle must contain: {why}"
            )
        _add(contents, found, source)
    for path in by_hash.values():
        raise InputError(f"{path}: no run of the bundle needs this mechanism")


def _hash(path: Path) -> str:
    if crate.is_crate(path):
        return crate.source_hash(path)
    if path.suffix != ".py" or not path.is_file():
        raise InputError(f"{path} is neither a Python file nor a mechanism crate")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _add(contents: Contents, path: Path, source: Mapping[str, Any]) -> None:
    if path.is_dir():
        top = f"{FOLDER}/{path.resolve().name}"
        for file in _of_crate(path):
            contents.add(f"{top}/{file.relative_to(path).as_posix()}", file, "code")
        contents.mechanisms.append(Mechanism(top, "crate"))
        return
    target = f"{FOLDER}/{path.name}"
    contents.add(target, path.resolve(), "code")
    contents.mechanisms.append(Mechanism(target, "python"))
    for one in source.get("imports", ()):
        name, sha256 = str(one["file"]), str(one["sha256"])
        places = (path.absolute().parent / name, Path.cwd() / name)
        imported = next((p for p in places if p.is_file() and _hash(p) == sha256), None)
        if imported is None:
            raise InputError(
                f"{path.name} imports {name}, which is absent or has changed since the runs: "
                f"looked for it in {path.absolute().parent} and {Path.cwd()}"
            )
        contents.add(f"{FOLDER}/{name}", imported.resolve(), "code")


def _of_crate(folder: Path) -> list[Path]:
    """Return the files of a crate that its build needs: manifest, lock, settings and source."""
    tops = ("Cargo.toml", "Cargo.lock", "build.rs", ".cargo/config.toml")
    return [
        *(folder / name for name in tops if (folder / name).is_file()),
        *sorted(path for path in (folder / "src").rglob("*") if path.is_file()),
    ]
