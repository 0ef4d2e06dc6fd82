"""Eastwest: packet-level simulation of data-centre networks.

>>> import eastwest as ew
>>> result = ew.run("demo", set={"fabric.hosts_per_leaf": 5})    # doctest: +SKIP
>>> result.flows.select("fct_us").describe()                      # doctest: +SKIP
>>> print(ew.explain(result, "job", 17))                          # doctest: +SKIP
>>> ew.plot.figure("job-runtimes", result)                        # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from eastwest import models
from eastwest._core import RunError, ScenarioError
from eastwest.claims import Outcome, claims
from eastwest.core import version as _version
from eastwest.errors import InputError
from eastwest.explain import Story, explain, slowest
from eastwest.mechanisms import (
    Ack,
    Arrival,
    Choice,
    Congestion,
    Head,
    Queue,
    Routing,
    Seen,
    Verdict,
    Window,
)
from eastwest.optimize import OptimizeResult, optimize
from eastwest.paraver import paraver
from eastwest.results import Result, load
from eastwest.run import check, run
from eastwest.sweep import SweepResult, sweep
from eastwest.timeline import timeline

if TYPE_CHECKING:
    from eastwest import plot

__version__ = _version()

__all__ = [
    "Ack",
    "Arrival",
    "Choice",
    "Congestion",
    "Head",
    "InputError",
    "OptimizeResult",
    "Outcome",
    "Queue",
    "Result",
    "Routing",
    "RunError",
    "ScenarioError",
    "Seen",
    "Story",
    "SweepResult",
    "Verdict",
    "Window",
    "__version__",
    "check",
    "claims",
    "explain",
    "load",
    "models",
    "optimize",
    "paraver",
    "plot",
    "run",
    "slowest",
    "sweep",
    "timeline",
]


def __getattr__(name: str) -> Any:
    """Load ``plot`` when it is first asked for: matplotlib takes its time."""
    if name == "plot":
        return importlib.import_module("eastwest.plot")
    raise AttributeError(f"module 'eastwest' has no attribute {name!r}")
