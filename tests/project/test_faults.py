"""Commands whose calls fail, or that are killed: a small part of ``tools/check_faults.py``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from project_paths import ROOT

CHECK = ROOT / "tools" / "check_faults.py"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="needs LD_PRELOAD and /proc"),
]


def rows(tool: Callable[..., str], *words: str) -> list[list[str]]:
    """Return the rows of the table that the check prints, without its head."""
    tool("cc")
    done = subprocess.run(
        [sys.executable, str(CHECK), *words, "--jobs", "1"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    table = [line for line in done.stdout.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def test_a_call_that_fails_leaves_nothing_half_written(tool: Callable[..., str]) -> None:
    found = rows(tool, "calls", "--only", "trace-import", "--kind", "write", "--kind", "rename",
                 "--most", "2")  # fmt: skip
    write, rename = found
    assert write[:2] == ["trace-import", "write"] and rename[:2] == ["trace-import", "rename"]
    calls, failed, whole, refused, aborted, losses = map(int, write[2:])
    assert calls > 2 and failed == 6, "of two calls: an error, a full disk, half of the bytes"
    assert whole >= 1 and whole + refused == failed and aborted == losses == 0
    assert rename[2:] == ["1", "2", "0", "2", "0", "0"]


def test_a_killed_run_leaves_the_old_result_or_the_new_one(tool: Callable[..., str]) -> None:
    (run, _) = rows(tool, "kills", "--only", "run-replace", "--kills", "4")
    assert int(run[1]) >= 4 and run[4] == "0"
