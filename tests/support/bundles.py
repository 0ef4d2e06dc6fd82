"""Changes bundles as an attacker, a careless user or a damaged disk would."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from eastwest.bundle import archive


def contents(bundle: Path) -> tuple[str, dict[str, bytes]]:
    """Return (name of the folder, content of each file by its path in the folder)."""
    with zipfile.ZipFile(bundle) as stream:
        files = {name.partition("/")[2]: stream.read(name) for name in stream.namelist()}
        return stream.namelist()[0].partition("/")[0], files


def changed(
    bundle: Path,
    out: Path,
    edit: Callable[[dict[str, Any]], None] = lambda _: None,
    files: Mapping[str, bytes | None] | None = None,
) -> Path:
    """Write a copy of a bundle with a changed manifest and other files, and return its path.

    ``files`` has the new content of files by path, or None for files to leave out. The hashes in
    the manifest are those of the new files, before ``edit`` changes the manifest.
    """
    top, there = contents(bundle)
    manifest = json.loads(there["bundle.json"])
    for path, content in (files or {}).items():
        if content is None:
            del there[path]
            continue
        there[path] = content
        for entry in manifest["files"]:
            if entry["path"] == path:
                entry["size"], entry["sha256"] = archive.hashed(content)
    edit(manifest)
    there["bundle.json"] = json.dumps(manifest).encode()
    archive.write(out, top, there, {})
    return out
