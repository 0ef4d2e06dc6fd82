"""Eastwest: packet-level simulation of data-centre networks.

>>> import eastwest as ew
>>> result = ew.run("demo", set={"fabric.hosts_per_leaf": 5})    # doctest: +SKIP
>>> result.flows.select("fct_us").describe()                      # doctest: +SKIP
>>> print(ew.explain(result, "job", 17))                          # doctest: +SKIP
>>> ew.plot.figure("job-runtimes", result)                        # doctest: +SKIP
"""

from __future__ import annotations

from eastwest import starting

if starting.is_program():
    starting.end_silently()

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eastwest import models, plot
    from eastwest._core import RunError, ScenarioError
    from eastwest.bundle import Bundle, bundle
    from eastwest.claims import Outcome, claims
    from eastwest.errors import InputError
    from eastwest.explain import Story, difference, explain, slowest
    from eastwest.mechanisms import (
        Ack,
        Application,
        Arrival,
        Choice,
        Congestion,
        Duration,
        Head,
        HopTelemetry,
        Message,
        Queue,
        Routing,
        Seen,
        Timer,
        Transit,
        Verdict,
        Window,
    )
    from eastwest.optimize import OptimizeResult, optimize
    from eastwest.paraver import paraver
    from eastwest.results import Result, load
    from eastwest.run import check, run
    from eastwest.sweep import SweepResult, sweep
    from eastwest.timeline import timeline

    __version__: str

__all__ = [
    "Ack",
    "Application",
    "Arrival",
    "Bundle",
    "Choice",
    "Congestion",
    "Duration",
    "Head",
    "HopTelemetry",
    "InputError",
    "Message",
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
    "Timer",
    "Transit",
    "Verdict",
    "Window",
    "__version__",
    "bundle",
    "check",
    "claims",
    "difference",
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

#: Submodule of this package that defines each public name; a public name that is itself a module,
#: such as ``plot``, has no entry.
_HOMES = {
    **dict.fromkeys(["RunError", "ScenarioError"], "_core"),
    **dict.fromkeys(["Bundle", "bundle"], "bundle"),
    **dict.fromkeys(["Outcome", "claims"], "claims"),
    "InputError": "errors",
    **dict.fromkeys(["Story", "difference", "explain", "slowest"], "explain"),
    **dict.fromkeys(
        [
            "Ack",
            "Application",
            "Arrival",
            "Choice",
            "Congestion",
            "Duration",
            "Head",
            "HopTelemetry",
            "Message",
            "Queue",
            "Routing",
            "Seen",
            "Timer",
            "Transit",
            "Verdict",
            "Window",
        ],
        "mechanisms",
    ),
    **dict.fromkeys(["OptimizeResult", "optimize"], "optimize"),
    "paraver": "paraver",
    **dict.fromkeys(["Result", "load"], "results"),
    **dict.fromkeys(["check", "run"], "run"),
    **dict.fromkeys(["SweepResult", "sweep"], "sweep"),
    "timeline": "timeline",
}
_MODULES = {"models", "plot"}


def __getattr__(name: str) -> Any:
    """Return the object of a public name; import its module at the first use of the name.

    Importing all modules takes 1 s.
    """
    if name == "__version__":
        value = importlib.import_module("eastwest.core").version()
    elif name in _MODULES:
        return importlib.import_module(f"eastwest.{name}")
    elif name in _HOMES:
        value = getattr(importlib.import_module(f"eastwest.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module 'eastwest' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, including names whose modules are not imported yet."""
    return sorted(__all__)


class _Package(ModuleType):
    """Type of the package: public functions hide submodules of equal name.

    When Python imports the submodule ``sweep``, ``eastwest.sweep`` remains the function.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in _HOMES):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
