"""Commands ``eastwest run`` and ``eastwest check``."""

from __future__ import annotations

import contextlib
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from eastwest import core, shipped
from eastwest.cli import completion
from eastwest.cli.guard import BAD_INPUT, MISSED, errors, fail, guarded, interrupted
from eastwest.cli.options import (
    JsonObjectOption,
    ReleaseOption,
    SetOption,
    WithOption,
    one_of,
    use_mechanisms,
)
from eastwest.cli.progress import RunBar
from eastwest.cli.show import print_summary, problem_lines
from eastwest.core import RunOptions
from eastwest.deadlock import deadlock
from eastwest.goals import form as goals
from eastwest.interrupts import FinishedInterrupt
from eastwest.memory import MemoryLimitError, parse, told, with_program
from eastwest.results import Result, TargetFolder
from eastwest.run import load_source, simulate, stops
from eastwest.store import Store, plan
from eastwest.unfinished import EVERY_S, Keeper
from eastwest.units import clean, size, span


class OnBadRow(StrEnum):
    """Actions on lines of a trace that cannot be parsed: stop with an error, or skip them."""

    stop = "stop"
    skip = "skip"


_TRACE = re.compile(r"workload\.[^.]+\.trace$")

ScenarioArgument = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO",
        help="A scenario file, a result folder to run again, or the name of a shipped scenario.",
        autocompletion=completion.scenarios,
    ),
]
OnBadRowOption = Annotated[
    str | None,
    typer.Option("--on-bad-row", metavar="stop|skip", help="Action on a damaged line of a trace."),
]
CheckpointOption = Annotated[
    float,
    typer.Option(
        min=0,
        metavar="SECONDS",
        help="Wall time between two checkpoints of the run; 0: none. The same command resumes an "
        "interrupted run from the last checkpoint.",
    ),
]
FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Ignore checkpoints of an interrupted run.")
]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory limit of the run, such as 4 GB; default: nine tenths of the available memory.",
    ),
]


def overrides(
    text: str, settings: list[str] | None, on_bad_row: str | None = None
) -> core.Overrides:
    """Return (path, value) of all settings that ``--set`` and ``--on-bad-row`` change.

    ``text`` is the TOML text of the scenario: all of its workloads that read a trace get the
    setting ``on_bad_row``. Exits with a message for a wrong option.
    """
    result: core.Overrides = []
    for setting in settings or []:
        path, equals, value = setting.partition("=")
        if not equals or not path.strip():
            fail(f"--set {setting}: expected path=value, such as fabric.mtu=9000")
        result.append((path.strip(), value.strip()))
    if on_bad_row is not None:
        replayed = [*_replays(text), *(p[: -len(".trace")] for p, _ in result if _TRACE.match(p))]
        action = one_of(OnBadRow, on_bad_row, "--on-bad-row").value
        result += [(f"{path}.on_bad_row", action) for path in dict.fromkeys(replayed)]
    return result


def _replays(text: str) -> Iterator[str]:
    """Yield the paths (``workload.0``) of the workloads of a scenario that read a trace."""
    try:
        workloads = tomllib.loads(text).get("workload")
    except tomllib.TOMLDecodeError:
        return  # the simulator reports that the text is not TOML
    for place, workload in enumerate(workloads if isinstance(workloads, list) else []):
        if isinstance(workload, dict) and "trace" in workload:
            yield f"workload.{place}"


@guarded
def run(
    scenario: ScenarioArgument,
    settings: SetOption = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=2**63 - 1, help="Seed of the run; default: the scenario's."),
    ] = None,
    threads: Annotated[
        int,
        typer.Option(
            min=1,
            max=64,
            help="Maximum number of threads, used if the fabric can be divided by racks or pods; "
            "the result does not depend on it.",
        ),
    ] = 1,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Result folder to write.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the result folder named by --out.")
    ] = False,
    as_json: JsonObjectOption = False,
    reference: Annotated[
        bool,
        typer.Option(
            "--reference",
            help="Use two events per packet and port: the result is equal, the run is slower.",
        ),
    ] = False,
    on_bad_row: OnBadRowOption = None,
    mechanisms: WithOption = None,
    release: ReleaseOption = False,
    checkpoint: CheckpointOption = EVERY_S,
    fresh: FreshOption = False,
    memory: MemoryOption = None,
    stop_when_missed: Annotated[
        bool,
        typer.Option(
            "--stop-when-missed",
            help="Stop the run as soon as it surely misses a goal of the scenario. The result is "
            "then only a part of the run; no checkpoints are written.",
        ),
    ] = False,
) -> None:
    """Run one simulation and write a result folder."""
    use_mechanisms(mechanisms, release)
    most = parse(memory) if memory is not None else None
    source = load_source(scenario)
    changed = overrides(source.text, settings, on_bad_row)
    label = source.name
    costs = Store()
    # Records of earlier runs exist if sweeps have run. Without them, no store is created here.
    planned = plan(source, changed) if costs.costs_file.is_file() else None
    told = costs.expected(planned) if planned is not None else None
    known = told is not None and told.known
    if told is not None and not as_json:
        errors().print(f"{clean(label, 60)}: {told.sentence}", style="dim", markup=False)
    console = errors()
    say = _line_printer(console, label)
    stop = stops(source, changed) if stop_when_missed else ()
    keeper = Keeper(checkpoint, fresh=fresh, say=say) if checkpoint > 0 and not stop else None
    try:
        with RunBar(console, label, estimate=not known and not as_json) as bar:
            result = simulate(
                source,
                changed,
                seed,
                TargetFolder(out, force),
                RunOptions(
                    reference=reference, threads=threads, progress=bar, memory_bytes=most, stop=stop
                ),
                keeper,
            )
    except KeyboardInterrupt as error:
        if keeper is None or not keeper.goes_on or isinstance(error, FinishedInterrupt):
            raise
        interrupted(f"repeat the command to continue{_since(keeper)}")
    except MemoryLimitError as error:
        if keeper is None or not keeper.goes_on:
            raise
        fail(f"{error}; repeat the command with more memory to continue{_since(keeper)}")
    # Estimates of time are for complete runs on one thread, so only such runs are recorded.
    is_whole = "stopped_early" not in result.summary
    if planned is not None and is_whole and not reference and threads == 1:
        with contextlib.suppress(OSError):  # a record that cannot be written does not fail the run
            costs.record(planned, planned.key(int(result.summary["seed"])), result.summary)
    _show(result, as_json)


def _show(result: Result, as_json: bool) -> None:
    """Print the summary of a run; exit with the code ``MISSED`` if a deadlock ended the run."""
    stuck = deadlock(result.summary)
    if as_json:
        typer.echo(json.dumps({**result.summary, "folder": str(result.path)}, allow_nan=False))
        if stuck:
            errors().print(stuck, markup=False)
    else:
        screen = Console(highlight=False)
        print_summary(screen, result)
    if stuck:
        raise typer.Exit(MISSED)


def _since(keeper: Keeper) -> str:
    return f" from {span(keeper.kept_s)} of simulated time" if keeper.kept_s else ""


def _line_printer(console: Console, label: str) -> Callable[[str], None]:
    """Return a function that prints a message to ``console``, after the name of the run (label)."""

    def say(what: str) -> None:
        console.print(f"{clean(label, 60)}: {clean(what, 500)}", style="dim", markup=False)

    return say


@guarded
def check(
    scenario: ScenarioArgument,
    settings: SetOption = None,
    as_json: JsonObjectOption = False,
    on_bad_row: OnBadRowOption = None,
    mechanisms: WithOption = None,
    release: ReleaseOption = False,
) -> None:
    """List all problems of a scenario at once."""
    use_mechanisms(mechanisms, release)
    source = load_source(scenario)
    changed = overrides(source.text, settings, on_bad_row)
    checked = core.check(source.text, str(source.base_dir), str(shipped.DATA), changed)
    problems = checked["problems"] = checked["problems"] or goals.problems_of(source, changed)
    if as_json:
        typer.echo(json.dumps(checked))
    elif problems:
        for line in problem_lines(problems):
            errors().print(line)
    else:
        console = Console(highlight=False, soft_wrap=True)
        console.print(Text(f"{clean(source.label)}: no problems"))
        needed = with_program(checked["memory"])
        whole = size(sum(part[1] for part in needed))
        console.print(Text(f"  memory: at least {whole}: {told(needed)}", style="dim"))
        for note in checked["notes"]:
            console.print(Text(f"  note: {clean(note, 2000)}", style="yellow"))
    if problems:
        raise typer.Exit(BAD_INPUT)
