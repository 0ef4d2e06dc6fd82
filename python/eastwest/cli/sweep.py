"""``eastwest sweep``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from eastwest.cli.guard import BAD_INPUT, errors, fail, guarded, interrupted
from eastwest.cli.options import (
    DaskOption,
    JobsOption,
    JsonObjectOption,
    RetryOption,
    SetOption,
    StoreOption,
    WithOption,
    use_mechanisms,
)
from eastwest.cli.progress import SweepBar
from eastwest.cli.screen import headed
from eastwest.cli.simulate import overrides
from eastwest.errors import did_you_mean
from eastwest.sweep import Estimate, SweepResult, default_folder, prepare, words
from eastwest.sweep.check import load
from eastwest.sweep.driver import Driver
from eastwest.sweep.spec import Spec
from eastwest.sweep.words import HEADLINES, Shown, shown
from eastwest.units import clean, count, span
from eastwest.views import goals

_MOST_FAILURES = 5
_MOST_ROWS = 16
#: Maximum number of columns of settings and metrics together that fit a line of 80 characters.
_MOST_COLUMNS = 5
#: Maximum number of characters of a setting on a terminal, and in a file or a pipe.
_LONGEST, _LONGEST_IN_FILE = 16, 400


@guarded
def sweep(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE.toml",
            help="A sweep file, or the name of a shipped one: buffers, incast, terasort-cg.",
        ),
    ],
    jobs: JobsOption = None,
    dask: DaskOption = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue or extend the sweep in the folder."),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write; default: results/NAME-sweep.")
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
) -> None:
    """Run a scenario over many settings and seeds, in parallel; finished runs are stored."""
    changes = {
        "set": dict(overrides("", settings)) if settings else None,
        "seeds": _seeds(seeds),
    }
    spec = load(file, changes)
    folder = out or default_folder(spec)
    recipe = use_mechanisms(mechanisms)
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
    """Run all planned runs and return the result; on an interrupt, print what is kept."""
    try:
        return driver.run(folder)
    except KeyboardInterrupt:
        state = driver.state()
        kept = f"{state.done} of {state.planned} runs are kept"
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
    """Return whether the user confirms; without a terminal, exit with a message."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        fail(f"this is a large sweep: {estimate.sentence()}; add --yes to run it")
    return typer.confirm(f"This is a large sweep: {estimate.sentence()}. Run it?", err=True)


def _ahead(spec: Spec, estimate: Estimate) -> str:
    return f"{clean(spec.name, 60)}: {count(spec.count)} points, {estimate.sentence()}"


def _show_estimate(spec: Spec, estimate: Estimate, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"name": spec.name, "points": spec.count, **estimate.as_json()}))
    else:
        typer.echo(_ahead(spec, estimate))


def _show(result: SweepResult, as_json: bool) -> None:
    """Print the main metrics of the first points, with intervals."""
    summary = result.summary
    if as_json:
        shown = {**summary, "failures": result.failures, "folder": str(result.path)}
        typer.echo(json.dumps(shown, allow_nan=False))
        return
    console = Console(highlight=False)
    console.soft_wrap = not console.is_terminal  # a file or a pipe has lines of any length
    runs = summary["runs"]
    console.print(Text(clean(str(summary["name"]), 60), style="bold underline"))
    _print_points(console, result)
    if summary.get("goals"):
        from eastwest.views.sweep import Points  # noqa: PLC0415  large: polars

        for sentence in goals.of_sweep(summary, Points(result).names):
            console.print(Text(sentence))
    done = f"{count(runs['done'])} of {count(runs['planned'])} runs"
    console.print(f"{done}, {count(runs['reused'])} of them from the store", markup=False)
    if summary["warm_up_s"]:
        warm = span(summary["warm_up_s"])
        console.print(f"flows, jobs and rounds that start before {warm} are excluded")
    console.print(Text(clean(str(result.path), 400), style="bold green"))


def _print_points(console: Console, result: SweepResult) -> None:
    import polars as pl  # noqa: PLC0415  large

    points = result.points
    there = set(points["metric"].unique())
    constant = points.group_by("metric").agg(pl.col("mean").abs().max())
    nothing = set(constant.filter(pl.col("mean") == 0)["metric"])
    room = max(1, _MOST_COLUMNS - len(result.columns))
    first_ones = [*goals.measures(result.summary, there), *words.of_workloads(there)]
    headlines = [h[0] for h in HEADLINES if h[0] in there - nothing]
    chosen = [shown(metric) for metric in dict.fromkeys([*first_ones, *headlines])][:room]
    wanted = [words.full(metric, there) for metric in result.summary.get("show") or []]
    if wanted:
        chosen = [shown(metric) for metric in wanted if metric in there]
    first = points["point"].unique().sort().head(_MOST_ROWS)
    longest = _LONGEST if console.is_terminal else _LONGEST_IN_FILE
    table = _points_table(result, first.to_list(), chosen, longest)
    if not console.is_terminal:
        console.width = max(console.width, _width(console, table))
    # A number that is cut off has no meaning.
    while len(chosen) > 1 and _width(console, table) > console.width:
        chosen = chosen[:-1]
        table = _points_table(result, first.to_list(), chosen, longest)
    console.print(table)
    if wanted and (rest := [shown(m)[1] for m in wanted if m in there][len(chosen) :]):
        console.print(
            f"not shown, for lack of space: {clean(', '.join(rest))}; a wider terminal, a pipe "
            "(| cat) and the table points.parquet have them",
            markup=False,
        )
    for metric in [metric for metric in wanted if metric not in there]:
        hint = did_you_mean(metric, there)
        console.print(f"no run has a metric {clean(metric, 60)!r}{hint}", markup=False)
    more = result.summary["points"] - len(first)
    if more > 0:
        console.print(f"and {count(more)} more points in points.parquet", markup=False)


def _width(console: Console, table: Table) -> int:
    """Return the number of characters of a line of the table."""
    unbounded = console.options.update(width=10_000)
    return Measurement.get(console, unbounded, table).maximum


def _points_table(
    result: SweepResult, numbers: list[int], chosen: list[Shown], longest: int
) -> Table:
    """Return a table of points with these metrics; named cases also with ratios to the baseline.

    Settings have at most ``longest`` characters.
    """
    import polars as pl  # noqa: PLC0415  large

    named = any(axis is not None for _, axis in result.columns)
    states = goals.states(result.summary)
    compared = _factors(result) if named else {}
    paths = [clean(path.rpartition(".")[2], 16) for path, _ in result.columns]
    table = headed(
        *paths,
        "n",
        *(clean(each[1], 60).replace(" while ", "\nwhile ") for each in chosen),
        *(["goal"] if states else []),
        left=len(paths),
    )
    for number in numbers:
        part = result.points.filter(pl.col("point") == number)
        rows = {row["metric"]: row for row in part.iter_rows(named=True)}
        row = part.row(0, named=True)
        names = result.names(number)
        settings = [
            clean(str(row.get(f"set.{path}", row.get(path))), longest)
            if axis is None
            else clean(names[axis], max(32, longest))
            for path, axis in result.columns
        ]
        seeds = max(r["n"] for r in rows.values())
        values = (_value(rows.get(h[0]), h[2], compared.get((number, h[0]))) for h in chosen)
        reached = [Text(states.get(number, ""))] if states else []
        table.add_row(*settings, str(seeds), *values, *reached)
    return table


def _factors(result: SweepResult) -> dict[tuple[int, str], str]:
    """Return the ratio of each metric to the baseline's by point and metric, paired by seed."""
    rows = result.comparisons.select(
        "point", "metric", "difference", "low", "high", "baseline_mean"
    )
    found = {}
    for point, metric, difference, low, high, base in rows.iter_rows():
        if not base:
            continue
        ratio = 1 + difference / base
        half = None if low is None else (high - low) / 2 / abs(base)
        if half is None:
            found[point, metric] = f"× {ratio:.2f}"
        elif 0 <= ratio <= half:  # no ratio of two metrics is below 0
            found[point, metric] = f"× 0.0 to {ratio + half:.1f}"
        else:
            found[point, metric] = f"× {ratio:.2f} ± {half:.2f}"
    return found


def _value(row: dict[str, Any] | None, show: Callable[[float], str], factor: str | None) -> Text:
    """Return a mean with half the width of its interval as a share of it, or with its ratio.

    An interval that reaches to 0 or below is shown by its upper end.
    """
    if row is None:
        return Text("–")
    if factor is not None:
        return Text(f"{show(row['mean'])}  {factor}")
    if row["low"] is None or not row["mean"]:
        return Text(show(row["mean"]))
    if row["low"] <= 0 < row["mean"]:
        return Text(f"{show(row['mean'])} (≤ {show(row['high'])})")
    half = (row["high"] - row["low"]) / 2 / abs(row["mean"])
    return Text(f"{show(row['mean'])} ± {100 * half:.0f} %")


def _list_failures(result: SweepResult) -> None:
    console = errors()
    failures = result.failures
    runs = f"{len(failures)} run{'s' * (len(failures) > 1)}"
    console.print(f"eastwest: {runs} failed; --resume --retry repeats them", markup=False)
    for failure in failures[:_MOST_FAILURES]:
        settings = ", ".join(f"{path} = {value}" for path, value in failure["settings"].items())
        line = f"  {settings}, seed {failure['seed']}: {failure['message']}"
        console.print(clean(line, 1000), markup=False)
    if len(failures) > _MOST_FAILURES:
        rest = len(failures) - _MOST_FAILURES
        console.print(f"  and {rest} more in {result.path / 'failures.json'}", markup=False)
