"""Analytic models from the literature, for comparison with simulations.

Modules are imported when they are first used, because numpy is slow to import.
"""

from __future__ import annotations

import importlib
from types import ModuleType

__all__ = [
    "closed_loop",
    "dcqcn",
    "decisions",
    "delay",
    "delayed",
    "eee",
    "hinf",
    "horizon",
    "incast",
    "loop",
    "network",
    "predict",
    "qcn",
    "tcp_dctcp",
    "tcp_marked",
    "tcp_red",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"eastwest.models.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
