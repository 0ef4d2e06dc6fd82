"""The door to the Rust extension: what it takes, what it returns, and nothing else.

Every other module calls the simulator through here, so that there is one place to read the
contract and one place for a test to put a stand-in.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, Protocol, TypedDict

from eastwest import _core
from eastwest.errors import MechanismError

#: A column's name, type and data. Numbers are little-endian bytes. Text is a list, or, where few
#: texts repeat, (index bytes, texts): one byte per row for up to 256 texts, four for more.
Dtype = str
Labels = tuple[bytes, list[str]]
Column = tuple[str, Dtype, "bytes | list[str] | Labels"]
Tables = dict[str, list[Column]]
Overrides = list[tuple[str, str]]


class DeclaredColumn(TypedDict):
    """A column of a result table."""

    name: str
    kind: Dtype
    since: int
    """The format of which every folder has it, if its table is older."""
    about: str
    """The column's meaning, in Markdown."""


class DeclaredTable(TypedDict):
    """A table of a result folder, as the simulator declares it."""

    name: str
    since: int
    """The first format of which every folder has it."""
    about: str
    """The meaning of a row, in Markdown that may link to other pages from docs/reference/."""
    columns: list[DeclaredColumn]


class Problem(TypedDict):
    """One thing wrong with a scenario or trace."""

    path: str
    """Where in the file, such as ``fabric.queue.limit``."""
    line: NotRequired[int | None]
    """Line in the file, from 1, where known."""
    value: str | None
    """The value in the file; ``None`` where the setting is missing."""
    message: str
    """The error, and the allowed values."""
    hint: str | None
    """The nearest name that would have been right."""


class Progress(TypedDict):
    """How far a running simulation has come."""

    simulated_s: float
    target_s: float | None
    jobs_done: int
    jobs_total: int
    packet_hops: int
    wall_s: float


#: From this share done on a run's time is told from its share: flows that began together finish
#: late and together, so that before nothing much can be said.
TELLING_SHARE = 0.05


def share_done(progress: Progress) -> float | None:
    """How much of a run is done, from 0 to 1, if anything tells."""
    # A run ends when its work is done or its time is up, whichever comes first.
    shares = []
    if progress["target_s"]:
        shares.append(min(1.0, progress["simulated_s"] / progress["target_s"]))
    if progress["jobs_total"]:
        shares.append(progress["jobs_done"] / progress["jobs_total"])
    return max(shares, default=None)


#: A file that a scenario reads: its bytes, or where it is if it is too large to be held.
Content = bytes | Path


def held(attached: Sequence[tuple[str, Content]]) -> list[tuple[str, bytes]]:
    """Return files that a scenario reads with their bytes."""
    return [(name, c.read_bytes() if isinstance(c, Path) else c) for name, c in attached]


class CoreResult(TypedDict):
    """Everything that a finished simulation hands over."""

    summary_json: str
    scenario_toml: str
    attached: list[tuple[str, Content]]
    notes: list[str]
    tables: Tables
    files: list[tuple[str, bytes]]
    """Further files for the result folder, as they are."""


#: What takes memory in a run, how many bytes, and whether it does so before the first event.
MemoryPart = tuple[str, int, bool]


class CheckResult(TypedDict):
    """The problems of a scenario, its memory, and notes for its author."""

    problems: list[Problem]
    memory: list[MemoryPart]
    """The least memory of a run by part, the largest first; empty where there are problems."""
    notes: list[str]


class Resolved(TypedDict):
    """A checked scenario with every default spelled out."""

    name: str
    scenario_toml: str
    attached: list[tuple[str, bytes]]
    notes: list[str]


class DrillResult(TypedDict):
    """How a packetdrill script went."""

    readable: bool
    """Whether it could be read at all."""
    passed: bool
    line: int | None
    """Where it failed, from 1."""
    column: int | None
    message: str
    """Why it failed, in one or more lines; empty where it passed."""
    alterations: int
    """Number of alterations of the script that were tried."""
    unnoticed: list[tuple[int, str]]
    """Alterations it did not notice: line and what was altered."""


ProgressCallback = Callable[[Progress], None]


class Keeper(Protocol):
    """Has a place for a run under way, see ``eastwest.unfinished``."""

    every_s: float
    """Seconds between two checkpoints."""
    look_every_s: float
    """Seconds between two looks for Ctrl-C while a checkpoint is written."""
    most_rows: int
    """Rows that a table holds in memory before they are handed over."""
    build: str
    """Version and build of the simulator: no other reads its checkpoints."""

    def find(self, plan: str) -> str | None:
        """Return where a checkpoint of this plan lies, if there is one to go on from."""

    def resume(self, simulated_s: float, rows: dict[str, int]) -> bool:
        """Hear that it can be read, and how many rows of which table it had handed out.

        What is returned decides whether the run goes on from it.
        """

    def refuse(self, why: str) -> None:
        """Hear that it cannot: the run starts anew."""

    def place(self, plan: str) -> str | None:
        """Return where to write a checkpoint, if anywhere."""

    def take(self, tables: Tables, first: int) -> None:
        """Keep rows of a table, of which the first has this number."""

    def writing(self) -> None:
        """Hear that the checkpoint of a run that stops takes longer than ``look_every_s``."""

    def kept(self, simulated_s: float) -> None:
        """Hear that a checkpoint has been written."""

    def give_up(self, why: str) -> None:
        """Hear that no more will be."""


@dataclass(frozen=True)
class RunOptions:
    """How a run is done. Its result is the same, whatever stands here."""

    reference: bool = False
    """Run every port in the two-event reference mode, which is slower."""
    threads: int = 1
    """Threads for a run that can be divided; a note tells what was done.

    A run that was kept goes on as it began, whatever stands here.
    """
    progress: ProgressCallback | None = None
    """Is called about ten times a second."""
    keeper: Keeper | None = None
    """Keeps the run while it is under way; it goes on from where it was kept."""
    memory_bytes: int | None = None
    """Memory that the process may hold; without it, nine tenths of what is available."""


@dataclass(frozen=True)
class Extras:
    """Mechanisms of the user's own that scenarios may name; see ``eastwest.mechanisms``."""

    module: Any = None
    """The extension with the mechanisms of a crate, in the place of the one that is installed."""
    sketches: tuple[Any, ...] = ()
    """Classes, as ``eastwest.mechanisms.sketch.Sketch``."""
    sources: tuple[dict[str, Any], ...] = ()
    """The origin of each sketch, for the summary of a run."""

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments of the extension for these sketches."""
        return (list(self.sketches),) if self.sketches else ()


_NO_EXTRAS = Extras()
_extras: ContextVar[Extras] = ContextVar("extras", default=_NO_EXTRAS)


def extras() -> Extras:
    """Mechanisms beside the built-in ones, as far as any are in use."""
    return _extras.get()


@contextlib.contextmanager
def using(wanted: Extras) -> Iterator[None]:
    """Let scenarios name these mechanisms meanwhile."""
    before = _extras.set(wanted)
    try:
        yield
    finally:
        _extras.reset(before)


def use(wanted: Extras) -> None:
    """Let scenarios name these mechanisms from now on, in a program that does nothing else."""
    _extras.set(wanted)


@contextlib.contextmanager
def _door() -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Give the extension in use and its further arguments; its exceptions become the usual ones."""
    wanted = extras()
    module = wanted.module or _core
    try:
        yield module, wanted.arguments
    except module.ScenarioError as error:
        if module is _core:
            raise
        usual = _core.ScenarioError(str(error))
        usual.problems = error.problems
        raise usual from None
    except module.RunError as error:
        if module is _core:
            raise
        raise _core.RunError(str(error)) from None
    except getattr(module, "SketchError", ()) as error:
        cause = error.__cause__
        trace = "".join(traceback.format_exception(cause)) if cause is not None else ""
        what = traceback.format_exception_only(cause)[-1].strip() if cause is not None else ""
        raise MechanismError(
            f"a sketch went wrong, no result was written: {what}", trace
        ) from cause


def scenario_error() -> type[Exception]:
    """Class of the exception for wrong input; its ``problems`` lists all of them."""
    return _core.ScenarioError


def run_error() -> type[Exception]:
    """Class of the exception for a simulation that cannot go on."""
    return _core.RunError


def run(
    text: str,
    base_dir: str,
    data_dir: str,
    overrides: Overrides,
    seed: int | None,
    options: RunOptions | None = None,
) -> CoreResult:
    """Simulate the scenario in ``text``; file names in it are relative to ``base_dir``."""
    with _door() as (module, more):
        result: CoreResult = module.run(
            text, base_dir, data_dir, overrides, seed, options or RunOptions(), *more
        )
        return result


def check(text: str, base_dir: str, data_dir: str, overrides: Overrides) -> CheckResult:
    """List all problems of the scenario in ``text``."""
    with _door() as (module, more):
        checked: CheckResult = module.check(text, base_dir, data_dir, overrides, *more)
        return checked


def resolve(
    text: str, base_dir: str, data_dir: str, overrides: Overrides, seed: int | None
) -> Resolved:
    """Spell out every default of the scenario in ``text``, without simulating it."""
    with _door() as (module, more):
        resolved: Resolved = module.resolve(text, base_dir, data_dir, overrides, seed, *more)
        return {**resolved, "attached": held(resolved["attached"])}


def schema() -> str:
    """JSON description of every scenario setting."""
    return _core.schema()


def tables() -> list[DeclaredTable]:
    """Tables that a run leaves, in the order of the reference."""
    return _core.tables()


def topology(text: str, base_dir: str, data_dir: str, overrides: Overrides) -> dict[str, Any]:
    """Nodes and cables that the scenario in ``text`` describes."""
    with _door() as (module, more):
        shown: dict[str, Any] = module.topology(text, base_dir, data_dir, overrides, *more)
        return shown


def topology_kinds(text: str, base_dir: str, data_dir: str, overrides: Overrides) -> dict[str, Any]:
    """Count the hosts and switches that ``text`` describes, and its cables of each kind.

    ``kinds`` are (tier, rate in bit/s, delay in µs, number).
    """
    with _door() as (module, more):
        shown: dict[str, Any] = module.topology_kinds(text, base_dir, data_dir, overrides, *more)
        return shown


def drill(text: str, profile: str | None, altered: bool) -> DrillResult:
    """Play a packetdrill script against the simulated TCP, and its alterations if asked."""
    return _core.drill(text, profile, altered)


def version() -> str:
    """Version of the simulator."""
    return _core.version()


def mpi_record(
    line: bytes, ranks: int, element: int
) -> tuple[tuple[int, int] | None, tuple[str, str, str | None] | None]:
    """Read a line of a time-independent trace of ``ranks`` ranks, as a run reads it.

    ``element`` is the number of bytes of an element without type. Returns two parts. The first is
    the rank and the bytes of an element from there on. The second is what is wrong: what there is,
    what is expected, and what follows if the record is left out (nothing where it is damaged). A
    line that says nothing gives neither.
    """
    return _core.mpi_record(line, ranks, element)


def mpi_check(files: Sequence[tuple[str, Path]]) -> list[str]:
    """Say what a run would have against a trace with these files of ranks (name and path)."""
    return _core.mpi_check([(name, str(path)) for name, path in files])


def build() -> str:
    """Version of the simulator, with the hashes of all code that decides besides this package.

    These are that of the compiled extension, where it is one file, and those of sketches.
    """
    wanted = extras()
    file = getattr(wanted.module or _core, "__file__", None)
    parts = [version(), *([_hash(file)] if file else [])]
    return " ".join([*parts, *(str(s["sha256"]) for s in wanted.sources if "file" in s)])


@functools.cache
def _hash(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def build_info() -> dict[str, Any]:
    """How the extension was compiled."""
    return dict(_core.build_info())


def fuzz_levels() -> list[tuple[str, str]]:
    """Levels of settings that generated scenarios cross in pairs: path and value of each."""
    with _door() as (module, more):
        return list(module.fuzz_levels(*more))


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
    progress: Callable[[int, int, list[int]], None],
) -> dict[str, Any]:
    """Make and judge generated scenarios.

    ``folder`` takes the files that scenarios read from a disk. Each case is to have the levels of
    ``always``, as path and value. ``before`` has for each pair of
    levels how often it was tried and refused; pairs tried less than ``enough`` times are asked for
    first.
    ``progress`` hears the cases done, those that failed, and the case that each thread is at.
    """
    with _door() as (module, more):
        result: dict[str, Any] = module.fuzz(
            folder, data_dir, seed, first, cases, at_once, always, before, enough, progress, *more
        )
        return result
