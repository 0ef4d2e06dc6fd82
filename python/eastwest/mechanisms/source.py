"""The Rust source of Eastwest, with which a mechanism crate is compiled.

A Git checkout has the source; an installed wheel has a copy in ``eastwest/rust``, which
tools/shipped_source.py makes before the wheel is built. The source is only read; compiled code is
stored in the user's cache.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from eastwest import cache, core
from eastwest.errors import InputError

_PACKAGE = Path(__file__).resolve().parents[1]
#: Folder of Eastwest's Rust source in an installed wheel.
SHIPPED = _PACKAGE / "rust"
_BINDINGS = Path("crates") / "bindings"


def is_source(folder: Path) -> bool:
    """Whether a folder is the Rust source of some version of Eastwest."""
    return (folder / _BINDINGS / "Cargo.toml").is_file()


def folder() -> Path | None:
    """Return the folder of the Rust source of this Eastwest, or None if there is no source.

    This is the folder that ``$EASTWEST_SOURCE`` names, or else the Git checkout of the package, or
    else the source in the wheel.
    """
    named = os.environ.get("EASTWEST_SOURCE")
    places = [Path(named)] if named else [_PACKAGE.parents[1], SHIPPED]
    return next((place for place in places if is_source(place)), None)


def bindings(source: Path) -> Path:
    """Return the folder of the crate ``eastwest-bindings``, on which mechanism crates depend."""
    return source / _BINDINGS


def version(source: Path) -> str | None:
    """Return the version of Eastwest's source in a folder; None if there is no such source."""
    try:
        manifest = (source / "Cargo.toml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    found = re.search(r'^version = "([^"]*)"', manifest, re.M)
    return found[1] if found and is_source(source) else None


def checked(source: Path) -> Path:
    """Return ``source`` if it is the folder of the source of the installed version.

    Raises ``InputError`` for any other folder, and for a name that cargo cannot use.
    """
    found = version(source)
    if found is None:
        raise InputError(f"{source} is not the source of Eastwest: it has no crates/bindings")
    if found != core.version():
        raise InputError(
            f"{source} is the source of Eastwest {found}, but {core.version()} is installed: name "
            "the source of this version"
        )
    if not str(source).isprintable() or any(c in str(source) for c in "\"'\\"):
        raise InputError(
            f"{str(source)!r}: cargo cannot use a folder with quotes, backslashes or control "
            "characters in its name"
        )
    return source


def compiled(source: Path) -> Path:
    """Return the folder in the user's cache for code that is compiled from a Rust source.

    All crates with this source share the folder. The name of the folder has the version and a hash.
    For the source in a wheel, the files are hashed, because an update can leave modification times
    unchanged. For other sources, the path is hashed, because cargo notices changed files by their
    modification times.
    """
    source = source.resolve()
    digest = hashlib.sha256()
    if source == SHIPPED:
        for file in sorted(path for path in source.rglob("*") if path.is_file()):
            content = file.read_bytes()
            digest.update(f"{file.relative_to(source).as_posix()} {len(content)}\n".encode())
            digest.update(content)
    else:
        digest.update(os.fsencode(source))
    return cache.folder("rust", f"{version(source) or 'unknown'}-{digest.hexdigest()[:16]}")
