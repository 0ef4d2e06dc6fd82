"""Exports of a run: the command line that repeats it, and its result folder as a zip file."""

from __future__ import annotations

import os
import shlex
import tempfile
import zipfile
from pathlib import Path

from eastwest.results import Result
from eastwest.studio.worker import Task


def command(task: Task) -> str:
    """Return the command line that repeats a run; the text of the scenario must be saved."""
    label = task.source.label
    words = ["eastwest", "run", f"./{label}" if label.startswith("-") else label]
    for path, value in task.overrides:
        words += ["--set", f"{path}={value}"]
    if task.seed is not None:
        words += ["--seed", str(task.seed)]
    return shlex.join(words)


def zipped(result: Result, name: str, folder: Path) -> Path:
    """Write the result folder as a zip file below ``folder``; paths in it begin with ``name``."""
    handle, path = tempfile.mkstemp(suffix=".zip", dir=folder)
    try:
        # Tables are compressed already.
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w") as packed:
            for each in sorted(result.path.rglob("*")):
                if each.is_file():
                    packed.write(each, f"{name}/{each.relative_to(result.path).as_posix()}")
    except BaseException:  # such as a full disk
        Path(path).unlink(missing_ok=True)
        raise
    return Path(path)
