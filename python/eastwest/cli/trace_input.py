"""Arguments of the commands on traces: names of traces, and durations."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from eastwest import shipped
from eastwest.cli.guard import errors, fail
from eastwest.cli.progress import Bar
from eastwest.errors import InputError
from eastwest.files import is_folder
from eastwest.traces.load import Trace, open_trace
from eastwest.units import clean

_SECONDS = {
    **dict.fromkeys(("s", "sec"), 1.0),
    "min": 60.0,
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86_400.0),
    **dict.fromkeys(("week", "weeks"), 7 * 86_400.0),
}
_LENGTH = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)\s*([a-z]{1,5})")

TraceArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TRACE",
        help=(
            "Folder of an imported trace, a recorded file, "
            "or the name of a shipped trace (fb-2009, fb-2010)."
        ),
    ),
]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")]
WindowOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Length of the windows into which a trace is divided; default: 1 h, or a 24th of a "
        "trace shorter than a day.",
    ),
]


def opened(given: Path) -> Trace:
    """Open and return the trace with the path or shipped name ``given``."""
    if not (is_folder(given) or given.exists()):
        known = shipped.traces()
        if str(given).lower() in known:
            trace = open_trace(known[str(given).lower()])
            trace.name = str(given).lower()
            return trace
        if given.parent == Path():
            names = ", ".join(known)
            raise InputError(
                f"there is no file or folder {clean(str(given), 80)!r}, and no shipped trace of "
                f"this name; shipped: {names}"
            )
    return open_trace(given)


def seconds(option: str, text: str) -> float:
    """Return a duration such as ``1 h``, ``90min`` or ``1day`` in s.

    For a wrong text, exits with a message that names ``option``.
    """
    match = _LENGTH.fullmatch(text.strip().lower())
    if match is None or match[2] not in _SECONDS or not float(match[1]):
        fail(f"{option} {text!r:.60}: expected a time above 0, such as 1 h, 90 min or 1 day")
    return float(match[1]) * _SECONDS[match[2]]


class Steps(Bar):
    """A progress bar that names the current step of a command."""

    def __init__(self, name: str) -> None:
        super().__init__(errors(), name)

    def __call__(self, what: str, share: float) -> None:
        """Show the current step, and the share of the work that is done (0 to 1)."""
        self.show(what, share)
