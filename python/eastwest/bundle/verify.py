"""Verification of a bundle: whether its files are those that the manifest describes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from eastwest.bundle.archive import Opened, opened
from eastwest.bundle.form import MANIFEST, Manifest


@dataclass(frozen=True)
class Difference:
    """A file of a bundle that is not as the manifest describes it."""

    path: str
    #: ``missing``, ``changed`` or ``not listed``.
    what: str
    message: str


@dataclass(frozen=True)
class Verified:
    """A manifest, and the differences between it and the files of the bundle."""

    manifest: Manifest
    differences: tuple[Difference, ...]


def verify(path: Path) -> Verified:
    """Return the manifest of a bundle, and its differences to the files; nothing is executed.

    Raises ``InputError`` where the bundle cannot be read.
    """
    with opened(path) as found:
        manifest = found.manifest()
        return Verified(manifest, tuple(_differences(found, manifest)))


def _differences(found: Opened, manifest: Manifest) -> list[Difference]:
    differences = []
    listed = {file.path: file for file in manifest.files if file.inside}
    for path, file in listed.items():
        if path not in found.sizes:
            differences.append(Difference(path, "missing", "is in the list and not in the bundle"))
        elif found.sizes[path] != file.size:
            message = f"has {found.sizes[path]:,} bytes, not {file.size:,}"
            differences.append(Difference(path, "changed", message))
        elif (sha256 := found.sha256(path)) != file.sha256:
            message = f"has another content: its SHA-256 is {sha256}, not {file.sha256}"
            differences.append(Difference(path, "changed", message))
    for path in sorted(found.sizes):
        if path not in listed and path != MANIFEST:
            differences.append(Difference(path, "not listed", f"is not in {MANIFEST}"))
    return differences
