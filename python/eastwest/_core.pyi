"""The Rust extension module (crates/bindings)."""

from collections.abc import Callable
from typing import Any

from eastwest.core import (
    CheckResult,
    CoreResult,
    DeclaredTable,
    DrillResult,
    OwnCrate,
    Problem,
    Resolved,
    RunOptions,
)

__all__ = [
    "RunError",
    "ScenarioError",
    "SketchError",
    "build_info",
    "check",
    "drill",
    "fuzz",
    "fuzz_levels",
    "mechanism_name_problem",
    "mpi_check",
    "mpi_nodes",
    "mpi_record",
    "own_crate",
    "own_panic",
    "resolve",
    "run",
    "schema",
    "stop_obstacles",
    "tables",
    "topology",
    "topology_kinds",
    "version",
]

class ScenarioError(Exception):
    """Error of a wrong scenario or trace; ``problems`` lists all problems."""

    problems: list[Problem]

class RunError(Exception):
    """Error of a simulation that cannot continue, such as a flow that can no longer finish."""

class SketchError(Exception):
    """Error of a sketch (mechanism in Python); ``__cause__`` is the exception of the sketch."""

def run(
    text: str,
    base_dir: str,
    data_dir: str,
    overrides: list[tuple[str, str]],
    seed: int | None,
    options: RunOptions,
    sketches: list[Any] = ...,
) -> CoreResult: ...
def check(
    text: str,
    base_dir: str,
    data_dir: str,
    overrides: list[tuple[str, str]],
    sketches: list[Any] = ...,
) -> CheckResult: ...
def stop_obstacles(
    text: str,
    base_dir: str,
    data_dir: str,
    overrides: list[tuple[str, str]],
    measures: list[str],
    sketches: list[Any] = ...,
) -> list[str | None]: ...
def resolve(
    text: str,
    base_dir: str,
    data_dir: str,
    overrides: list[tuple[str, str]],
    seed: int | None,
    sketches: list[Any] = ...,
) -> Resolved: ...
def drill(text: str, profile: str | None, altered: bool) -> DrillResult: ...
def fuzz_levels(sketches: list[Any] = ...) -> list[tuple[str, str]]: ...
def fuzz(
    folder: str,
    data_dir: str,
    seed: int,
    first: int,
    cases: int,
    at_once: int,
    always: list[tuple[str, str]],
    before: list[tuple[int, int]] | None,
    enough: int,
    progress: Callable[[int, int, list[int]], None] | None,
    sketches: list[Any] = ...,
) -> dict[str, Any]: ...
def schema() -> str: ...
def tables() -> list[DeclaredTable]: ...
def topology(
    text: str,
    base_dir: str,
    data_dir: str,
    overrides: list[tuple[str, str]],
    sketches: list[Any] = ...,
) -> dict[str, Any]: ...
def topology_kinds(
    text: str,
    base_dir: str,
    data_dir: str,
    overrides: list[tuple[str, str]],
    sketches: list[Any] = ...,
) -> dict[str, Any]: ...
def own_crate() -> OwnCrate | None: ...
def mechanism_name_problem(kind: str, name: str) -> str | None: ...
def own_panic() -> tuple[str, str] | None: ...
def version() -> str: ...
def build_info() -> dict[str, Any]: ...
def mpi_record(
    line: bytes, ranks: int, element: int
) -> tuple[tuple[int, int] | None, tuple[str, str, str | None] | None]: ...
def mpi_check(files: list[tuple[str, str]]) -> list[str]: ...
def mpi_nodes(
    files: list[tuple[str, str]],
    collectives: list[tuple[str, str]],
    each: Callable[
        [int, bool, list[tuple[int, int, bool]], int | None, int, int, str, tuple[Any, ...]], None
    ],
) -> None: ...
