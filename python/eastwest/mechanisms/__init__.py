"""The user's own mechanisms: queues, congestion controls, routings and applications.

A mechanism in Rust runs at full speed: ``eastwest new`` writes a crate (new.py), and crate.py
builds and loads it. A mechanism in Python is a *sketch*: a subclass of ``Queue``, ``Congestion``,
``Routing`` (sketch.py) or ``Application`` (application.py). The command that runs a scenario must
name the mechanism (load.py); the scenario alone is not enough, because a file from elsewhere must
not be able to run code. The guides are docs/guide/own-mechanism.md and
docs/guide/own-application.md.
"""

from __future__ import annotations

from eastwest.mechanisms.application import Application, Message
from eastwest.mechanisms.base import Duration
from eastwest.mechanisms.load import Mechanism, load
from eastwest.mechanisms.sketch import (
    Ack,
    Arrival,
    Choice,
    Congestion,
    Head,
    HopTelemetry,
    Queue,
    Routing,
    Seen,
    Timer,
    Transit,
    Verdict,
    Window,
)

__all__ = [
    "Ack",
    "Application",
    "Arrival",
    "Choice",
    "Congestion",
    "Duration",
    "Head",
    "HopTelemetry",
    "Mechanism",
    "Message",
    "Queue",
    "Routing",
    "Seen",
    "Timer",
    "Transit",
    "Verdict",
    "Window",
    "load",
]
