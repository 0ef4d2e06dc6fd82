"""Quantities that a claim file may name: values of one run, and measures over the runs of points.

A *value* is a number of one run: a metric of its summary (``rounds.goodput_bps``) or a function of
its result registered here. A *measure* makes one number of the values at some points, with its 95 %
interval over seeds. Both are pure functions; a claim file holds no code.
"""

from __future__ import annotations

from eastwest.claims.measures import (
    energy,
    incast,
    jobs,
    kernel,
    lines,
    means,
    ports,
    runs,
    segments,
    selection,
    settings,
    streams,
)
from eastwest.claims.measures.base import (
    MEASURES,
    VALUES,
    Data,
    Measured,
    MeasureError,
    Row,
    Sample,
    Signature,
)

__all__ = [
    "MEASURES",
    "VALUES",
    "Data",
    "MeasureError",
    "Measured",
    "Row",
    "Sample",
    "Signature",
    "energy",
    "incast",
    "jobs",
    "kernel",
    "lines",
    "means",
    "ports",
    "runs",
    "segments",
    "selection",
    "settings",
    "streams",
]
