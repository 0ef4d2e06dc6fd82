"""Command ``eastwest sweep``: runs a scenario over many settings and seeds."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from eastwest.cli.guard import BAD_INPUT, errors, fail, guarded, interrupted
from eastwest.cli.options import (
    DaskOption,
    JobsOption,
    JsonObjectOption,
    ReleaseOption,
    RetryOption,
    SetOption,
    StoreOption,
    WithOption,
    use_mechanisms,
)
from eastwest.cli.progress import SweepBar
from eastwest.cli.screen import headed, natural_width, print_table
from eastwest.cli.simulate import overrides
from eastwest.goals import early
from eastwest.goals.early import KEY
from eastwest.interrupts import FinishedInterrupt
from eastwest.notes import deadlines
from eastwest.sweep import Estimate, SweepResult, default_folder, prepare
from eastwest.sweep import seeds as notes_on_seeds
from eastwest.sweep.check import load
from eastwest.sweep.driver import Driver
from eastwest.sweep.spec import Spec
from eastwest.sweep.values import told_settings
from eastwest.sweep.words import Shown
from eastwest.units import clean, count, plural, span
from eastwest.views import goals

_MOST_FAILURES = 5
#: Maximum number of points of a sweep that are printed: on a terminal, and in a file or a pipe.
_MOST_ROWS, _MOST_ROWS_IN_FILE = 16, 1000
#: Maximum number of columns (settings and metrics together) that fit a line of 80 characters.
_MOST_COLUMNS = 5
#: Maximum number of characters of a setting's value: on a terminal, and in a file or a pipe.
_LONGEST, _LONGEST_IN_FILE = 16, 400


@guarded
def sweep(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE.toml",
            help="A sweep file, or the name of a shipped one; a wrong name lists them.",
        ),
    ],
    jobs: JobsOption = None,
    dask: DaskOption = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue or extend the sweep in the folder."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder to write; default: results/NAME-sweep."),
    ] = None,
    store: StoreOption = None,
    settings: SetOption = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="N|LIST",
            help="Seeds instead of those in the file: a number (10) or a list (1,2,7).",
        ),
    ] = None,
    stop_when_missed: Annotated[
        bool,
        typer.Option(
            "--stop-when-missed",
            help="Stop a run as soon as it surely misses a goal (stop_when_missed in the file).",
        ),
    ] = False,
    retry: RetryOption = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the sweep folder, whatever its content is.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Run without a question, however large the sweep is.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Check the sweep and estimate its time; run at most a probe."
        ),
    ] = False,
    as_json: JsonObjectOption = False,
    mechanisms: WithOption = None,
    release: ReleaseOption = False,
) -> None:
    """Run a scenario over many settings and seeds, in parallel; finished runs are stored."""
    changes = {
        "set": dict(overrides("", settings)) if settings else None,
        "seeds": _seeds(seeds),
        KEY: stop_when_missed or None,
    }
    recipe = use_mechanisms(mechanisms, release)
    spec = load(file, changes)
    folder = out or default_folder(spec)
    with SweepBar(errors(), spec.name) as bar:
        driver = prepare(
            spec,
            folder,
            jobs=jobs,
            dask=dask,
            resume=resume or dry_run,
            force=force or dry_run,
            retry=retry,
            store=store,
            mechanisms=recipe,
            confirm=lambda estimate: yes or _confirmed(estimate),
            announce=lambda estimate: errors().print(Text(_ahead(spec, estimate), style="dim")),
            progress=bar,
            say=lambda line: errors().print(Text(line, style="dim")),
        )
        if dry_run:
            _show_estimate(spec, driver.preview(), as_json)
            return
        result = _finished(driver, folder)
    _show(result, as_json)
    if result.failures:
        _list_failures(result)
        raise typer.Exit(BAD_INPUT)


def _finished(driver: Driver, folder: Path) -> SweepResult:
    """Execute a sweep and return its result folder.

    After Ctrl-C, prints how many runs are stored, and exits.
    """
    try:
        return driver.run(folder)
    except FinishedInterrupt:
        raise
    except KeyboardInterrupt:
        state = driver.state()
        kept = f"{state.done} of {state.planned} runs are stored"
        interrupted(f"{kept}; repeat the command with --resume to continue")


def _seeds(given: str | None) -> int | list[int] | None:
    if given is None:
        return None
    try:
        numbers = [int(part) for part in given.split(",")]
    except ValueError:
        fail(f"--seeds {given}: expected a number of seeds, or a list such as 1,2,7")
    return numbers if "," in given else numbers[0]


def _confirmed(estimate: Estimate) -> bool:
    """Return whether the user confirms a large sweep; without a terminal, exit with a message."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        fail(f"the sweep is large: {estimate.sentence()}; add --yes to run it")
    return typer.confirm(f"The sweep is large: {estimate.sentence()}. Run it?", err=True)


def _ahead(spec: Spec, estimate: Estimate) -> str:
    return f"{clean(spec.name, 60)}: {plural(spec.count, 'point')}, {estimate.sentence()}"


def _show_estimate(spec: Spec, estimate: Estimate, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"name": spec.name, "points": spec.count, **estimate.as_json()}))
    else:
        typer.echo(_ahead(spec, estimate))


def _show(result: SweepResult, as_json: bool) -> None:
    """Print the main metrics of the first points of a sweep, with intervals."""
    summary = result.summary
    notes = [
        *early.of_sweep(summary), *deadlines.of_sweep(result), *notes_on_seeds.of_sweep(result),
    ]  # fmt: skip
    if as_json:
        added = {"failures": result.failures, "notes": notes, "folder": str(result.path)}
        shown = {**summary, **added}
        typer.echo(json.dumps(shown, allow_nan=False))
        return
    console = Console(highlight=False)
    console.soft_wrap = not console.is_terminal  # a file or a pipe has lines of any length
    runs = summary["runs"]
    console.print(Text(clean(str(summary["name"]), 60), style="bold underline"))
    _print_points(console, result)
    if summary.get("goals") or summary.get("adaptive"):
        from eastwest.views.sweep import Points  # noqa: PLC0415  large: polars

        points = Points(result)
        for sentence in [*goals.of_sweep(summary, points.names), *points.apart()]:
            console.print(Text(sentence))
    done = f"{count(runs['done'])} of {count(runs['planned'])} runs"
    console.print(f"{done}, {count(runs['reused'])} of them from the store", markup=False)
    if summary["warm_up_s"]:
        warm = span(summary["warm_up_s"])
        console.print(f"metrics of flows, jobs, rounds and workloads exclude the first {warm}")
    for note in notes:
        console.print(Text(f"note: {clean(note, 2000)}", style="yellow"))
    console.print(Text(clean(str(result.path), 400), style="bold green"))


def _print_points(console: Console, result: SweepResult) -> None:
    from eastwest.views import points  # noqa: PLC0415  large: polars

    chosen, absent = points.metrics(result, max(1, _MOST_COLUMNS - len(result.columns)))
    most = _MOST_ROWS if console.is_terminal else _MOST_ROWS_IN_FILE
    first = result.points["point"].unique().sort().head(most)
    longest = _LONGEST if console.is_terminal else _LONGEST_IN_FILE
    table = _points_table(result, first.to_list(), chosen, longest)
    every = chosen
    # A truncated number would be wrong, so columns are left out until the table fits.
    while console.is_terminal and len(chosen) > 1 and natural_width(console, table) > console.width:
        chosen = chosen[:-1]
        table = _points_table(result, first.to_list(), chosen, longest)
    print_table(console, table)
    if rest := [title for _, title, _ in every[len(chosen) :]]:
        console.print(
            f"columns that do not fit: {clean(', '.join(rest))}; a wider terminal, a pipe (| cat) "
            "and the table points.parquet show all columns",
            markup=False,
        )
    for metric, hint in absent:
        console.print(f"no run has a metric {clean(metric, 60)!r}{hint}", markup=False)
    there = result.points["point"].n_unique()
    if lost := result.summary["points"] - there:
        console.print(f"{plural(lost, 'point has', 'points have')} no result", markup=False)
    more = there - len(first)
    if more > 0:
        folder = clean(str(result.path), 400)
        whole = f"run `eastwest report {folder}`, or read the table points.parquet"
        if console.is_terminal and there <= _MOST_ROWS_IN_FILE:
            whole += ", or run this command again with `--resume | cat`"
        console.print(
            f"{plural(more, 'more point is', 'more points are')} not shown. To see all points, "
            f"{whole}.",
            markup=False,
        )


def _points_table(
    result: SweepResult, numbers: list[int], chosen: list[Shown], longest: int
) -> Table:
    """Return a printable table of the points ``numbers`` with the metrics ``chosen``.

    Values of settings are cut to ``longest`` characters.
    """
    from eastwest.views import points  # noqa: PLC0415  large: polars

    cells = points.cells(result, numbers, chosen, longest)
    table = headed(*cells.headings, left=cells.settings)
    for row in cells.rows:
        table.add_row(*map(Text, row))
    return table


def _list_failures(result: SweepResult) -> None:
    console = errors()
    failures = result.failures
    console.print(
        f"eastwest: {plural(len(failures), 'run')} failed; --resume --retry repeats them",
        markup=False,
    )
    for failure in failures[:_MOST_FAILURES]:
        line = (
            f"  {told_settings(failure['settings'])}, seed {failure['seed']}: {failure['message']}"
        )
        console.print(clean(line, 1000), markup=False)
    if len(failures) > _MOST_FAILURES:
        rest = len(failures) - _MOST_FAILURES
        console.print(f"  and {rest} more in {result.path / 'failures.json'}", markup=False)
