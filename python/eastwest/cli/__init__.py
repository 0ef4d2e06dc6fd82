"""The command ``eastwest``."""

from __future__ import annotations

import gc
import signal
import sys
from types import FrameType

from eastwest.cli.lazy import group

app = group(
    "Packet-level simulation of data-centre networks under Hadoop and other workloads.",
    {
        "run": "simulate:run",
        "check": "simulate:check",
        "sweep": "sweep:sweep",
        "optimize": "optimize:optimize",
        "claims": "claims:claims",
        "report": "report:report",
        "explain": "explain:explain",
        "timeline": "explain:timeline",
        "drill": "drill:drill",
        "calibrate": "calibrate:command",
        "bench": "bench:bench",
        "fuzz": "fuzz:fuzz",
        "new": "new:new",
        "schema": "explore:schema",
        "routes": "routes:routes",
        "version": "explore:version",
        "model": "model:app",
        "trace": "trace:app",
        "observe": "observe:app",
        "topology": "topology:app",
    },
    name="eastwest",
)


def main() -> None:
    """Run the command line: exit code 0 done, 1 missed, 2 bad input, 3 a bug of Eastwest."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    signal.signal(signal.SIGTERM, _terminated)
    # Imports make objects that stay: with the usual 700, the collector takes a tenth of their time.
    gc.set_threshold(50_000)
    try:
        app()
    except KeyboardInterrupt:  # before a command has begun
        from eastwest.cli.guard import INTERRUPTED  # noqa: PLC0415  not imported for --help

        sys.exit(INTERRUPTED)


def _terminated(number: int, _: FrameType | None) -> None:
    """Raise ``KeyboardInterrupt`` for a signal, so that temporary files are removed."""
    raise KeyboardInterrupt(f"signal {number}")
