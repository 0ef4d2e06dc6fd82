"""Quantities that a claim file may name: values of one run, and measures over several runs.

A *value* is a number of one run: a metric of the run's summary (``rounds.goodput_bps``), or the
result of a function that is registered with ``run_value``. A *measure* computes one number from the
values at some points of a sweep, mostly with a 95 % interval over seeds. A claim file has no code.
Functions that only one study needs are in ``measures.py`` of its folder (of_study.py).
"""

from __future__ import annotations

from eastwest.claims.measures import means, ports, runs, settings
from eastwest.claims.measures.base import (
    SHARED,
    Data,
    Known,
    Measured,
    MeasureError,
    Row,
    Sample,
    Settings,
    Signature,
    measure,
    run_value,
)

__all__ = [
    "SHARED",
    "Data",
    "Known",
    "MeasureError",
    "Measured",
    "Row",
    "Sample",
    "Settings",
    "Signature",
    "means",
    "measure",
    "ports",
    "run_value",
    "runs",
    "settings",
]
