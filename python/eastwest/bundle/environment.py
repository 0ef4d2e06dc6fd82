"""The lock of a bundle: versions and hashes of the programs with which it was made."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from eastwest import core
from eastwest.mechanisms import source

#: Name of the file with the versions of Python packages, in the form that pip reads.
REQUIREMENTS = "requirements.txt"
#: Name of the file with the versions of Rust packages.
CARGO_LOCK = "Cargo.lock"
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_OF_EXTRA = re.compile(r"\bextra\b")


def machine() -> dict[str, str]:
    """Return Python, processor and system of this process, and facts about the extension."""
    build = {f"build {key}": str(value) for key, value in core.build_info().items()}
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": platform.system(),
        "processor": platform.machine(),
        **build,
    }


def requirements() -> str:
    """Return Eastwest and all packages that it requires here, with their versions, for pip.

    Below each package is a comment with a hash of its installed files, and, if pip has stored it,
    the hash of the file from which the package was installed.
    """
    lines = [
        "# Versions of the Python packages with which this bundle was made:",
        "# python -m pip install -r requirements.txt",
        f"# Python {platform.python_version()}",
    ]
    for name, package in sorted(_needed("eastwest").items()):
        lines.append(f"{name}=={package.version}")
        lines += [f"    # {what}: sha256:{sha256}" for what, sha256 in _hashes(package)]
    if len(lines) == 3:
        lines.append(f"eastwest=={core.version()}")
    return "\n".join(lines) + "\n"


def cargo_lock() -> bytes | None:
    """Return the lock file of the Rust packages of Eastwest; None without its source."""
    folder = source.folder()
    path = None if folder is None else folder / CARGO_LOCK
    return path.read_bytes() if path is not None and path.is_file() else None


def _needed(root: str) -> dict[str, Distribution]:
    """Return ``root`` and the installed packages that it requires, by name, without extras."""
    found: dict[str, Distribution] = {}
    waiting = [root]
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue  # needed on another system or with another Python
        for text in found[name].requires or []:
            wanted, _, marker = text.partition(";")
            if (named := _NAME.match(wanted)) and not _OF_EXTRA.search(marker):
                waiting.append(named[0])
    return found


def _hashes(package: Distribution) -> list[tuple[str, str]]:
    """Return (meaning, SHA-256) of what is known about the files of an installed package."""
    found = []
    listed = sorted(
        f"{file.as_posix()} {file.hash.value}"
        for file in package.files or []
        if file.hash is not None
        and not file.parts[0].endswith(".dist-info")
        and ".." not in file.parts
    )
    if listed:
        digest = hashlib.sha256("\n".join(listed).encode()).hexdigest()
        found.append(("installed files", digest))
    try:
        origin = json.loads(package.read_text("direct_url.json") or "{}")
        found.append(
            ("installed from a file with", str(origin["archive_info"]["hashes"]["sha256"]))
        )
    except (ValueError, KeyError, TypeError):
        pass  # installed from an index, which does not tell the hash of the file
    return found
