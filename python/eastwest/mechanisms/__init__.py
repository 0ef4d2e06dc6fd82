"""The user's own mechanisms: queue disciplines, congestion controls, choices among equal paths.

In Rust, at full speed: ``eastwest new`` writes a crate (new.py), crate.py builds and loads it. In
Python, for a first sketch: a subclass of ``Queue``, ``Congestion`` or ``Routing`` (sketch.py). Both
are named where a scenario is run (load.py), never by the scenario alone: a file from elsewhere must
not be able to run code. The guide is docs/guide/own-mechanism.md.
"""

from __future__ import annotations

from eastwest.mechanisms.load import Mechanism, load
from eastwest.mechanisms.sketch import (
    Ack,
    Arrival,
    Choice,
    Congestion,
    Head,
    Queue,
    Routing,
    Seen,
    Timer,
    Verdict,
    Window,
)

__all__ = [
    "Ack",
    "Arrival",
    "Choice",
    "Congestion",
    "Head",
    "Mechanism",
    "Queue",
    "Routing",
    "Seen",
    "Timer",
    "Verdict",
    "Window",
    "load",
]
