"""Completions that a shell offers for an argument when the user presses the tab key."""

from __future__ import annotations

import json
from pathlib import Path

from eastwest import core, shipped


def scenarios(incomplete: str) -> list[str]:
    """Return shipped scenarios, TOML files and folders whose names begin with ``incomplete``."""
    names = [name for name in shipped.names() if name.startswith(incomplete)]
    return names + _paths(incomplete, {".toml"})


def bundled(incomplete: str) -> list[str]:
    """Return studies and folders whose names begin with ``incomplete``."""
    from eastwest.claims.catalogue import papers_folder  # noqa: PLC0415  slow to load
    from eastwest.errors import InputError  # noqa: PLC0415

    try:
        studies = sorted({p.parent.parent.name for p in papers_folder().glob("*/claims/*.toml")})
    except InputError:
        studies = []
    return [name for name in studies if name.startswith(incomplete)] + _paths(incomplete, set())


def _paths(incomplete: str, endings: set[str]) -> list[str]:
    """Return folders, and files with one of ``endings``, that begin with ``incomplete``."""
    folder = Path(incomplete[: incomplete.rfind("/") + 1] or ".").expanduser()
    try:
        found = sorted(folder.iterdir())
    except OSError:
        found = []
    before = incomplete[: incomplete.rfind("/") + 1]
    files = [
        f"{before}{path.name}" + ("/" if path.is_dir() else "")
        for path in found
        if path.is_dir() or path.suffix in endings
    ]
    return [name for name in files if name.startswith(incomplete) and _is_shown(name)]


def _is_shown(name: str) -> bool:
    """Whether a file or folder is visible: its name does not begin with a dot."""
    return not name.rstrip("/").rpartition("/")[2].startswith(".")


def settings(incomplete: str) -> list[tuple[str, str]]:
    """Return (completion, meaning) for ``--set``: ``PATH=``, or ``PATH=VALUE`` after an ``=``."""
    path, equals, value = incomplete.partition("=")
    keys = [key for key in json.loads(core.schema())["keys"] if ": " not in key["path"]]
    if not equals:
        found = [(f"{_first_entry(key['path'])}=", key["doc"]) for key in keys if not _holds(key)]
        return [(name, doc) for name, doc in dict(found).items() if name.startswith(path)]
    return [
        (f"{path}={choice['name']}", choice["doc"])
        for key in keys
        if _first_entry(key["path"]) == _first_entry(path)
        for choice in key.get("choices", [])
        if choice["name"].startswith(value)
    ]


def _holds(key: dict[str, str]) -> bool:
    """Whether a key of the schema is a table or list of tables, which have keys of their own."""
    return key["type"] in ("table", "tables")


def _first_entry(path: str) -> str:
    """Return a path with 0 in place of each number and each ``*``, such as ``workload.0.kind``."""
    return ".".join("0" if part == "*" or part.isdecimal() else part for part in path.split("."))
