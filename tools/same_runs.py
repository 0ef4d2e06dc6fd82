"""Compares the runs of two stores: ``python tools/same_runs.py STORE STORE``.

Runs that both stores have are compared by their digests. The exit code is 1 if any differ, or if
the stores have no run in common.
"""

from __future__ import annotations

import sys
from pathlib import Path

from eastwest.store import Store


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of every run of a store, by its key."""
    store, found = Store(folder), {}
    for path in sorted((folder / "runs").glob("*/*")):
        run = store.find(path.name)
        if run is not None:
            found[path.name] = run.digest
    return found


def compare(one: Path, other: Path) -> tuple[str, bool]:
    """Return a text that compares two stores, and whether their common runs are equal."""
    ours, theirs = digests(one), digests(other)
    both = ours.keys() & theirs.keys()
    differing = sorted(key for key in both if ours[key] != theirs[key])
    line = (
        f"{len(both)} runs in both stores, {len(both) - len(differing)} with equal digests; "
        f"{len(ours) - len(both)} only in {one}, {len(theirs) - len(both)} only in {other}"
    )
    return "\n".join([line, *(f"differs: {key}" for key in differing)]), bool(both) > bool(
        differing
    )


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    text, same = compare(Path(sys.argv[1]), Path(sys.argv[2]))
    print(text)
    raise SystemExit(0 if same else 1)
