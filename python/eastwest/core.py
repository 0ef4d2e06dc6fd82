"""Interface to the Rust extension: its arguments and its results.

Every other module calls the simulator through this module, so that the interface is described in
one place and a test can replace it in one place.
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
from eastwest.errors import MechanismError, problems_text

#: Type of the values of a column: ``u8``, ``u32``, ``u64``, ``i64``, ``f64`` or ``str``.
Dtype = str
#: Column with few different texts: (index of the text of each row, texts). An index is a
#: little-endian number of one byte for up to 256 texts, and of four bytes for more.
Labels = tuple[bytes, list[str]]
#: Column of a table: its name, its type and its data. Numbers are little-endian bytes. Texts are a
#: list, or ``Labels`` where few texts repeat.
Column = tuple[str, Dtype, "bytes | list[str] | Labels"]
Tables = dict[str, list[Column]]
Overrides = list[tuple[str, str]]


class DeclaredColumn(TypedDict):
    """A column of a result table, as the simulator declares it."""

    name: str
    kind: Dtype
    since: int
    """First result format whose folders all have the column; 1 if the table always had it."""
    about: str
    """The column's meaning, in Markdown."""


class DeclaredTable(TypedDict):
    """A table of a result folder, as the simulator declares it."""

    name: str
    since: int
    """First result format of which every folder has the table."""
    about: str
    """The meaning of a row, in Markdown; its links are relative to the folder docs/reference."""
    columns: list[DeclaredColumn]


class Problem(TypedDict):
    """A problem of a scenario or trace: path and line, the wrong value, message and hint."""

    path: str
    """Path of the setting in the file, such as ``fabric.queue.limit``."""
    line: NotRequired[int | None]
    """Line of the setting in the file, from 1; absent or None where it is not known."""
    value: str | None
    """The wrong value, as the file has it; ``None`` where the setting is missing."""
    message: str
    """Text with the error and the allowed values."""
    hint: str | None
    """The allowed name that is most similar to the wrong name; None where no name is similar."""


class Progress(TypedDict):
    """Progress of a running simulation: simulated time, jobs, packet-hops and wall time."""

    simulated_s: float
    target_s: float | None
    jobs_done: int
    jobs_total: int
    packet_hops: int
    wall_s: float


def share_done(progress: Progress) -> float | None:
    """Return the share of a run that is done, 0 to 1; None if end and jobs are unknown."""
    # A run ends when its work is done or its time is up, whichever comes first.
    shares = []
    if progress["target_s"]:
        shares.append(min(1.0, progress["simulated_s"] / progress["target_s"]))
    if progress["jobs_total"]:
        shares.append(progress["jobs_done"] / progress["jobs_total"])
    return max(shares, default=None)


#: Content of a file that a scenario reads: its bytes, or its path if it is too large for memory.
Content = bytes | Path


def held(attached: Sequence[tuple[str, Content]]) -> list[tuple[str, bytes]]:
    """Return (name, content) of each file that a scenario reads; large files are read from disk."""
    return [(name, c.read_bytes() if isinstance(c, Path) else c) for name, c in attached]


class CoreResult(TypedDict):
    """Result of a finished simulation: tables, summary, files, and notes for the user."""

    summary_json: str
    scenario_toml: str
    attached: list[tuple[str, Content]]
    notes: list[str]
    tables: Tables
    files: list[tuple[str, bytes]]
    """Further files of the result folder: name, and bytes, which are written unchanged."""


#: Part of the memory of a run: name, bytes, and whether it is needed before the first event.
MemoryPart = tuple[str, int, bool]


class CheckResult(TypedDict):
    """Result of the check of a scenario: problems, memory of a run, and notes for the author."""

    problems: list[Problem]
    memory: list[MemoryPart]
    """Parts of the least memory that a run needs, largest first; empty if there are problems."""
    notes: list[str]


class Declared(TypedDict):
    """Names of the numbers that ``applications.W`` of a summary has for the application W."""

    counters: list[str] | None
    """Names of the application's counters; None where the application does not declare them."""
    measures: list[str] | None
    """Names of the application's durations, without ``_us``; None where they are not declared."""
    further: list[str]
    """Names of the numbers that every application has, such as ``requests.unanswered``."""


class Resolved(TypedDict):
    """A checked scenario with every default spelled out."""

    name: str
    scenario_toml: str
    attached: list[tuple[str, bytes]]
    notes: list[str]
    applications: dict[str, Declared]
    """Names of the numbers of each application, by the name of its workload."""


class DrillResult(TypedDict):
    """Result of a packetdrill script."""

    readable: bool
    """Whether the script could be parsed."""
    passed: bool
    line: int | None
    """Line at which the script failed, from 1; None where the script passed."""
    column: int | None
    message: str
    """Reason why the script failed, in one or more lines; empty where the script passed."""
    alterations: int
    """Number of altered variants of the script that were run as a check of the script itself."""
    unnoticed: list[tuple[int, str]]
    """Alterations with which the script still passes: line, and description of the change."""


class OwnCrate(TypedDict):
    """The user's mechanism crate that is compiled into an extension module of the simulator."""

    name: str
    version: str
    folder: str
    """Folder that contains the ``Cargo.toml`` of the crate."""
    profile: str
    """Profile with which the crate was compiled: ``development`` or ``release``."""
    mechanisms: list[tuple[str, str]]
    """Kind (such as ``queue``) and name of each mechanism of the crate."""


ProgressCallback = Callable[[Progress], None]


class Frame(TypedDict):
    """State of a run after all events up to and including a simulated time.

    Bytes are little-endian numbers, one per link, in the order of the table ``links``.
    """

    time_s: float
    queue_packets: bytes
    """u32: packets in the queue of the port, without the packet in transmission."""
    queue_bytes: bytes
    """u64: IP bytes in the queue of the port, without the packet in transmission."""
    carried: bytes
    """u64: bytes carried since the start of the run, including framing."""
    drops: bytes
    """u64: packets lost since the start of the run."""
    marks: bytes
    """u64: packets that the port has marked with CE since the start of the run."""
    paused: bytes
    """u8: 1 if PFC pauses a priority of the port, otherwise 0."""
    energy_j: list[tuple[str, float]]
    """(tier, energy in J since the start of the run); empty if no link can save power."""
    jobs_done: int
    """Finished flows, requests, jobs …, summed over the workloads that have an end."""
    jobs_total: int
    flows_done: int
    """Messages that have arrived: rows of the table ``flows``."""
    open_messages: int
    """Messages on connections that were sent and have not arrived completely."""
    timeouts: int
    """Timeouts since the start of the run, over all connections."""
    retransmits: int
    """Retransmitted packets since the start of the run, over all connections."""
    packet_hops: int
    """Packet transmissions on all links so far; each packet counts once per link."""


class Live(Protocol):
    """Receiver of frames: it observes a run while the run continues.

    Frames do not change the result of a run. The last frame is delivered at the end of the run,
    after its last event; a run that fails or stops has no last frame.
    """

    first_s: float
    """Simulated time of the first frame in seconds; at least 0."""

    def frame(self, frame: Frame) -> float:
        """Receive a frame, and return the simulated time of the next frame in seconds.

        If the time is NaN or not later than the time of this frame, the next frame shows the state
        after the events that follow next. With ``inf``, only the last frame follows. The simulation
        waits meanwhile. An exception stops the run.
        """


#: Limit that stops a run early: measure, bound in its unit, whether the bound is not allowed.
Stop = tuple[str, float, bool]


class Keeper(Protocol):
    """Store for the checkpoints of a run that is not finished, see ``eastwest.unfinished``."""

    every_s: float
    """Seconds between two checkpoints."""
    look_every_s: float
    """Seconds between two checks for Ctrl-C while a checkpoint is written."""
    most_rows: int
    """Number of rows that a table holds in memory before the run passes them to ``take``."""
    build: str
    """Version and build of the simulator: other builds cannot read its checkpoints."""

    def find(self, plan: str) -> str | None:
        """Return the path of a checkpoint to resume from, or None.

        ``plan`` is a hash of all inputs of the run.
        """

    def resume(self, simulated_s: float, rows: dict[str, int]) -> bool:
        """Return whether the run can resume from its checkpoint, which the simulator has read.

        ``simulated_s`` is the simulated time of the checkpoint, ``rows`` the number of rows of each
        table that were written before the checkpoint.
        """

    def refuse(self, why: str) -> None:
        """Tell the user why the checkpoint cannot be used; the run starts from the beginning."""

    def place(self, plan: str) -> str | None:
        """Return the path for a new checkpoint; None: write no checkpoint.

        ``plan`` is a hash of all inputs of the run.
        """

    def take(self, tables: Tables, first: int) -> None:
        """Store new rows of tables; ``first`` is the number, from 0, of the first new row."""

    def writing(self) -> None:
        """Tell the user that writing the last checkpoint takes longer than ``look_every_s``."""

    def kept(self, simulated_s: float) -> None:
        """Note that a checkpoint at this simulated time (s) has been written."""

    def give_up(self, why: str) -> None:
        """Note that no more checkpoints will be written, and why."""


@dataclass(frozen=True)
class RunOptions:
    """Options of a run that do not change its result, except that ``stop`` may end it early."""

    reference: bool = False
    """Run every port in the two-event reference mode, which is slower."""
    threads: int = 1
    """Maximum number of threads of a run; a note of the result tells how many were used.

    A resumed run uses the number of threads with which it began.
    """
    progress: ProgressCallback | None = None
    """Function that is called with the progress of the run about ten times a second (wall time)."""
    keeper: Keeper | None = None
    """Store for checkpoints; the run resumes from the last checkpoint. None: no checkpoints."""
    memory_bytes: int | None = None
    """Memory limit of the process in bytes; None: nine tenths of the memory that is available."""
    live: Live | None = None
    """Receiver of the state of the run at simulated times; the run then uses one thread."""
    stop: tuple[Stop, ...] = ()
    """Limits of which one stops the run as soon as the run surely misses it.

    The summary of such a run has the entry ``stopped_early``. Runs with limits use one thread and
    write no checkpoints.
    """


@dataclass(frozen=True)
class Extras:
    """The user's own mechanisms that scenarios may name; see ``eastwest.mechanisms``."""

    module: Any = None
    """Extension module compiled with the mechanisms of a crate; None: the installed extension."""
    sketches: tuple[Any, ...] = ()
    """Mechanisms written in Python, as objects of ``eastwest.mechanisms.sketch.Sketch``."""
    sources: tuple[dict[str, Any], ...] = ()
    """Origin of each of the user's mechanisms, for the summary of a run."""

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Further arguments for the extension: (list of mechanisms in Python,), or ()."""
        return (list(self.sketches),) if self.sketches else ()


_NO_EXTRAS = Extras()
_extras: ContextVar[Extras] = ContextVar("extras", default=_NO_EXTRAS)


def extras() -> Extras:
    """Return the user's mechanisms that are in use."""
    return _extras.get()


@contextlib.contextmanager
def using(wanted: Extras) -> Iterator[None]:
    """Make the user's mechanisms ``wanted`` available to scenarios within a ``with`` block."""
    before = _extras.set(wanted)
    try:
        yield
    finally:
        _extras.reset(before)


def use(wanted: Extras) -> None:
    """Make the user's mechanisms ``wanted`` available to scenarios until the process ends."""
    _extras.set(wanted)


@contextlib.contextmanager
def _extension() -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield the extension in use and the arguments that pass mechanisms in Python to it.

    An extension with the user's mechanisms has exception classes of its own; they are replaced by
    the classes of the installed extension. The text of a ``ScenarioError`` becomes the list of
    problems that the command line prints. Errors and panics of the user's mechanisms are raised as
    ``MechanismError``.
    """
    wanted = extras()
    module = wanted.module or _core
    try:
        yield module, wanted.arguments
    except module.ScenarioError as error:
        usual = error if module is _core else _core.ScenarioError()
        usual.problems = error.problems
        usual.args = (problems_text(error.problems),)
        raise usual from None
    except module.RunError as error:
        if module is _core:
            raise
        raise _core.RunError(str(error)) from None
    except getattr(module, "SketchError", ()) as error:
        cause = error.__cause__
        trace = "".join(traceback.format_exception(cause)) if cause is not None else ""
        what = _line(cause) if cause is not None else ""
        raise MechanismError(
            f"a mechanism in Python raised an error; no result was written: {what}", trace
        ) from cause
    except BaseException as error:
        # A panic in Rust is a PanicException of PyO3, which does not derive from Exception.
        if isinstance(error, (Exception, KeyboardInterrupt)):
            raise
        if isinstance(error, SystemExit) and wanted.sketches:
            raise MechanismError(
                "a mechanism in Python has called exit; no result was written"
            ) from error
        panic = module.own_panic()
        if panic is None:
            raise
        message, stack = panic
        raise MechanismError(message, stack) from None


def _line(error: BaseException) -> str:
    """Return the type and message of an exception, and its notes, as one line of text."""
    said = [*traceback.format_exception_only(type(error), error)]
    notes = getattr(error, "__notes__", [])
    return ", ".join([said[-1 - len(notes)].strip(), *notes])


def scenario_error() -> type[Exception]:
    """Return the class of the exception for wrong scenarios; its ``problems`` lists all errors."""
    return _core.ScenarioError


def run_error() -> type[Exception]:
    """Return the class of the exception for a simulation that cannot continue."""
    return _core.RunError


def run(
    text: str,
    base_dir: str,
    data_dir: str,
    overrides: Overrides,
    seed: int | None,
    options: RunOptions | None = None,
) -> CoreResult:
    """Simulate the scenario in ``text``; file names in it are relative to ``base_dir``.

    ``data_dir`` is the folder of the shipped traces. ``overrides`` are (path, value) of settings.
    If ``seed`` is None, the run has the seed of the scenario.
    """
    with _extension() as (module, more):
        result: CoreResult = module.run(
            text, base_dir, data_dir, overrides, seed, options or RunOptions(), *more
        )
        return result


def check(text: str, base_dir: str, data_dir: str, overrides: Overrides) -> CheckResult:
    """Return all problems of the scenario in ``text``, the memory of a run, and notes."""
    with _extension() as (module, more):
        checked: CheckResult = module.check(text, base_dir, data_dir, overrides, *more)
        return checked


def resolve(
    text: str, base_dir: str, data_dir: str, overrides: Overrides, seed: int | None
) -> Resolved:
    """Return the scenario in ``text`` with every default written out, without simulating it."""
    with _extension() as (module, more):
        resolved: Resolved = module.resolve(text, base_dir, data_dir, overrides, seed, *more)
        return {**resolved, "attached": held(resolved["attached"])}


def stop_obstacles(
    text: str, base_dir: str, data_dir: str, overrides: Overrides, measures: Sequence[str]
) -> list[str | None]:
    """Return for each measure why it cannot stop runs of a scenario early; None if it can."""
    with _extension() as (module, more):
        reasons: list[str | None] = module.stop_obstacles(
            text, base_dir, data_dir, overrides, list(measures), *more
        )
        return reasons


def schema() -> str:
    """Return the description of every scenario setting, as JSON."""
    return _core.schema()


def tables() -> list[DeclaredTable]:
    """Return the declarations of the tables of a result, in the order of the reference."""
    return _core.tables()


def topology(text: str, base_dir: str, data_dir: str, overrides: Overrides) -> dict[str, Any]:
    """Return the nodes and cables that the scenario in ``text`` describes.

    ``nodes`` of the result are the names of the hosts, then of the switches. A cable has its ends
    ``a`` and ``b``, ``rate_bps``, ``delay_us`` and ``tier``.
    """
    with _extension() as (module, more):
        shown: dict[str, Any] = module.topology(text, base_dir, data_dir, overrides, *more)
        return shown


def topology_kinds(text: str, base_dir: str, data_dir: str, overrides: Overrides) -> dict[str, Any]:
    """Return the numbers of hosts and switches of the scenario in ``text``, and its kinds of cable.

    ``kinds`` of the result has a row for each kind of cable: (tier, rate in bit/s, delay in µs,
    number of cables).
    """
    with _extension() as (module, more):
        shown: dict[str, Any] = module.topology_kinds(text, base_dir, data_dir, overrides, *more)
        return shown


def drill(text: str, profile: str | None, altered: bool) -> DrillResult:
    """Run a packetdrill script against the simulated TCP.

    ``profile`` is the TCP profile, ``linux`` or ``classic``; None: the profile that the script
    names. With ``altered``, variants of the script that must fail are run, too.
    """
    return _core.drill(text, profile, altered)


def mechanism_name_problem(kind: str, name: str) -> str | None:
    """Return why a mechanism of the user cannot have a name; None if it can.

    ``kind`` is ``queue``, ``congestion``, ``routing`` or ``application``.
    """
    return _core.mechanism_name_problem(kind, name)


def version() -> str:
    """Return the version of the simulator."""
    return _core.version()


def mpi_record(
    line: bytes, ranks: int, element: int
) -> tuple[tuple[int, int] | None, tuple[str, str, str | None] | None]:
    """Return (record, problem) of one line of a time-independent MPI trace, as a run reads it.

    The record is (rank, size in bytes of a message element without a type, from this line on). The
    problem is (text found, text expected, consequence of leaving the record out; None where the
    record is damaged). At least one of both is None; both are None for a line without content.
    ``ranks`` is the number of ranks of the trace, ``element`` the size in bytes before this line.
    """
    return _core.mpi_record(line, ranks, element)


def mpi_check(files: Sequence[tuple[str, Path]]) -> list[str]:
    """Return the problems of an MPI trace; ``files`` has the name and path of each rank's file."""
    return _core.mpi_check([(name, str(path)) for name, path in files])


def mpi_nodes(
    files: Sequence[tuple[str, Path]],
    collectives: Sequence[tuple[str, str]],
    each: Callable[
        [int, bool, list[tuple[int, int, bool]], int | None, int, int, str, tuple[Any, ...]], None
    ],
) -> None:
    """Call ``each`` with every record of an MPI program, rank after rank.

    ``files`` has the name and path of each rank's file, ``collectives`` calls and the names of
    their algorithms, as in scenarios. The arguments of ``each`` are: the rank; whether its records
    are a graph; in a graph the nodes for which the record waits, as (rank, node, whether the start
    is sufficient); its stream or None; its priority; the number of its group in the program; a
    call, and the arguments of the call:

    - ``compute``: operations; ``sleep``: seconds
    - ``send``: destination, tag, bytes, whether it blocks
    - ``recv``: source, tag, largest size in bytes (None: any), whether it blocks
    - ``wait``: source, destination, tag (None: any)
    - ``collective``: number of the call in its group, steps, operations, whether it blocks; a step
      is a list of sources and a list of (destination, bytes)
    - ``waitall``, ``test``, ``nothing``: no arguments

    Ranks are those of the program, not of a group. Raises ``ValueError`` with the reasons if a run
    would refuse the program, or if an algorithm does not exist.
    """
    _core.mpi_nodes([(name, str(path)) for name, path in files], list(collectives), each)


def build() -> str:
    """Return the version of the simulator with the hashes of all code that decides its results.

    Hashed are the compiled extension, if it is one file, and mechanisms in Python with the user's
    files that they import. The code of this Python package is not hashed.
    """
    wanted = extras()
    file = getattr(wanted.module or _core, "__file__", None)
    parts = [version(), *([_hash(file)] if file else [])]
    files = [part for s in wanted.sources if "file" in s for part in (s, *s.get("imports", ()))]
    return " ".join([*parts, *(str(part["sha256"]) for part in files)])


@functools.cache
def _hash(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def build_info() -> dict[str, Any]:
    """Return facts about the compiled extension.

    The facts are the build profile, the target (processor and system), and the version of the
    scenario format.
    """
    return dict(_core.build_info())


def fuzz_levels() -> list[tuple[str, str]]:
    """Return (path, value) of each level: a setting with one value, which fuzzing pairs."""
    with _extension() as (module, more):
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
    """Generate scenarios (cases), check their results, and return counts and failures.

    The cases have the numbers ``first`` to ``first + cases − 1``; ``at_once`` of them run at one
    time. The checks are oracles: rules that each result must obey. Files that the cases read are
    written to ``folder``. Each case has the settings ``always``, as (path, value). ``before`` has
    (number of tries, number of refusals) for each pair of levels; a level is a setting with one
    value. Pairs with fewer than ``enough`` tries come first. ``progress`` is called with the number
    of cases done, the number of failed cases, and the current case of each thread.
    """
    with _extension() as (module, more):
        result: dict[str, Any] = module.fuzz(
            folder, data_dir, seed, first, cases, at_once, always, before, enough, progress, *more
        )
        return result
