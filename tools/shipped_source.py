"""Copies the Rust source that a wheel ships, for ``make wheel``.

``python tools/shipped_source.py FOLDER`` writes a copy of the workspace with all crates on which a
mechanism crate depends: manifests, lock file and source. It has no tests, examples and scripts.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Crates that are not compiled with a mechanism.
_LEFT_OUT = {"extension"}
#: Folders of a crate that its library needs; ``benches`` is one because cargo demands the file of a
#: declared benchmark.
_NEEDED = {"src", "benches"}


def shipped(root: Path = ROOT) -> Iterator[Path]:
    """Yield the files of the workspace that a wheel ships."""
    yield from (root / "Cargo.toml", root / "Cargo.lock")
    for path in sorted((root / "crates").glob("*/**/*")):
        crate, first, *_ = path.relative_to(root / "crates").parts
        if path.is_file() and crate not in _LEFT_OUT and first in {"Cargo.toml", *_NEEDED}:
            yield path


def main(target: Path, root: Path = ROOT) -> None:
    """Write the copy into a folder, in place of an earlier copy."""
    shutil.rmtree(target, ignore_errors=True)
    for path in shipped(root):
        copy = target / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
