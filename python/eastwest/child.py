"""Processes that work for this process, and end with it even if it is killed.

They are started with ``subprocess`` and not with ``multiprocessing``, which would run the user's
script again in each process.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from eastwest.units import clean

#: Python code of a child process. The process exits as soon as the pipe to its parent is closed,
#: also if the parent was killed. The watching thread starts before the slow imports.
_MAIN = """
import importlib, os, select, sys, threading
handle = int(sys.argv[2])
def watch():
    pipe = select.poll()
    pipe.register(handle, 0)
    pipe.poll()
    os._exit(0)
threading.Thread(target=watch, daemon=True).start()
importlib.import_module(sys.argv[1]).main(handle)
"""


class Child:
    """A process that executes ``main`` of a module, and the pipe to it (``link``)."""

    def __init__(self, module: str, environment: Mapping[str, str]) -> None:
        """Start a process that calls ``main(handle)`` of the module ``module``.

        ``handle`` is the file descriptor of its end of the pipe. The process has the variables of
        ``environment`` in addition to those of this process.
        """
        self.link: Connection[Any, Any]
        self.link, theirs = Pipe()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  open as long as the process lives
        with contextlib.closing(theirs):
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", _MAIN, module, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=_environment(environment),
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=self._said,
            )

    def ended(self) -> str:
        """Return how and why a process that closed its pipe has ended: exit code, last output."""
        code = self.process.wait()
        self._said.seek(0)
        last = self._said.read()[-2000:].decode(errors="replace").strip()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        why = ", perhaps because the memory was full" if code == -9 else ""
        return f"the process of the run ended with {how}{why}" + (
            f": {clean(last, 1500)}" if last else ""
        )

    def kill(self) -> None:
        """End the process at once."""
        self.process.kill()

    def close(self) -> None:
        """Wait for the end of the process, and release its pipe and its output."""
        self.link.close()
        self.process.wait()
        self._said.close()


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables with which a process imports Eastwest as this process does."""
    package = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    return {**os.environ, **more, "PYTHONPATH": path}
