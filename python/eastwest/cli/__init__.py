"""The command line ``eastwest``: its commands, and the modules that implement them."""

from __future__ import annotations

import gc
import signal
import sys
from types import FrameType

from eastwest.cli.lazy import group
from eastwest.starting import raise_again

#: Exit code of an interrupted command, as in guard.py, which is not imported for ``--help``.
_INTERRUPTED = 130

app = group(
    "Packet-level simulation of data-centre networks under Hadoop and other workloads.",
    {
        "Run and compare": {
            "run": "simulate:run",
            "check": "simulate:check",
            "sweep": "sweep:sweep",
            "optimize": "optimize:optimize",
            "studio": "studio:studio",
        },
        "Understand a result": {
            "report": "report:report",
            "explain": "explain:explain",
            "timeline": "explain:timeline",
        },
        "Scenarios and workloads": {
            "schema": "explore:schema",
            "topology": "topology:app",
            "routes": "routes:routes",
            "trace": "trace:app",
            "observe": "observe:app",
            "calibrate": "calibrate:command",
            "model": "model:app",
        },
        "Reproduce, publish, teach": {
            "claims": "claims:claims",
            "bundle": "bundle:app",
            "lab": "lab:app",
        },
        "Extend and test": {
            "new": "new:new",
            "drill": "drill:drill",
            "fuzz": "fuzz:fuzz",
            "bench": "bench:bench",
            "version": "explore:version",
        },
    },
    name="eastwest",
    is_program=True,
)


def main() -> None:
    """Run the command line and exit.

    Exit code 0: done, 1: a claim, goal, comparison or test failed, 2: bad input, 3: a bug of
    Eastwest, 130: interrupted.
    """
    try:
        raise_again()
        _run()
    except KeyboardInterrupt:  # Ctrl-C before a command has begun, or after its end
        sys.exit(_INTERRUPTED)


def _run() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    signal.signal(signal.SIGTERM, _terminated)
    # Imports make many objects that stay. With the default threshold of 700 objects, the garbage
    # collector takes a tenth of the time of the imports.
    gc.set_threshold(50_000)
    app()


def _terminated(number: int, _: FrameType | None) -> None:
    """Raise ``KeyboardInterrupt`` at a signal that ends the program, to remove temporary files."""
    raise KeyboardInterrupt(f"signal {number}")
