"""The checkout stays small enough to be cloned within seconds."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Limit of all tracked files in bytes.
MOST_BYTES = 30_000_000


def test_tracked_files_have_less_than_30_mb() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("needs a checkout of git")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    sizes = {path: path.stat().st_size for path in paths if path.is_file()}
    largest = sorted(sizes, key=sizes.__getitem__)[-5:]
    assert sum(sizes.values()) < MOST_BYTES, f"the largest: {[str(path) for path in largest]}"
