"""Command ``eastwest optimize``: finds the best settings of a scenario under limits."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from eastwest.cli.guard import MISSED, errors, fail, guarded, interrupted
from eastwest.cli.options import (
    DaskOption,
    JobsOption,
    JsonObjectOption,
    ReleaseOption,
    RetryOption,
    StoreOption,
    WithOption,
    use_mechanisms,
)
from eastwest.cli.progress import SweepBar
from eastwest.cli.screen import headed, print_table
from eastwest.interrupts import FinishedInterrupt
from eastwest.optimize import Plan, default_folder, load, run, sentence
from eastwest.optimize.folder import OptimizeResult
from eastwest.optimize.search import BASELINE
from eastwest.sweep import seeds, words
from eastwest.units import clean, count

_MOST_ROWS = 12


@guarded
def optimize(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE.toml",
            help="An optimisation file, or the name of a shipped one; a wrong name lists them.",
        ),
    ],
    jobs: JobsOption = None,
    dask: DaskOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder to write; default: results/NAME-optimize."),
    ] = None,
    store: StoreOption = None,
    retry: RetryOption = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the folder of an earlier optimisation.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Run without a question, however long the search is.")
    ] = False,
    as_json: JsonObjectOption = False,
    mechanisms: WithOption = None,
    release: ReleaseOption = False,
) -> None:
    """Find the best settings of a scenario under limits: exit code 1 if none keeps all limits."""
    recipe = use_mechanisms(mechanisms, release)
    spec = load(file)
    with SweepBar(errors(), spec.name) as bar:
        try:
            result = run(
                spec,
                out or default_folder(spec),
                jobs=jobs,
                dask=dask,
                force=force,
                retry=retry,
                store=store,
                mechanisms=recipe,
                confirm=lambda plan, size: yes or _confirmed(plan, size),
                announce=lambda plan, size: errors().print(
                    Text(f"{clean(spec.name, 60)}: {sentence(plan, size)}", style="dim")
                ),
                progress=bar,
                say=lambda line: errors().print(Text(line, style="dim")),
            )
        except FinishedInterrupt:
            raise
        except KeyboardInterrupt:
            interrupted("finished runs are stored; repeat the command to continue")
    if as_json:
        typer.echo(json.dumps({**result.summary, "folder": str(result.path)}, allow_nan=False))
    else:
        _show(result)
    if result.recommended is None:
        raise typer.Exit(MISSED)


def _confirmed(plan: Plan, size: int) -> bool:
    """Return whether the user confirms a long search; without a terminal, exit with a message."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        fail(f"the search is long: {sentence(plan, size)}; add --yes to run it")
    return typer.confirm(f"The search is long: {sentence(plan, size)}. Run it?", err=True)


def _show(result: OptimizeResult) -> None:
    """Print the Pareto front, the recommended point with its reason, and the candidates."""
    summary = result.summary
    console = Console(highlight=False)
    console.print(Text(clean(str(summary["name"]), 60), style="bold underline"))
    print_table(console, _table(summary))
    chosen = summary["recommended"]
    if chosen is not None:
        console.print(Text(f"Recommended: {clean(chosen['name'], 300)}", style="bold green"))
        for path, value in chosen["settings"].items():
            console.print(Text(f"  {path} = {clean(json.dumps(value, ensure_ascii=False), 300)}"))
    console.print(Text(clean(summary["reason"], 2000)))
    for candidate in summary["candidates"]:
        console.print(Text(f"{clean(candidate['name'], 100)} {clean(candidate['verdict'], 500)}"))
    for stage in summary["stages"]:
        foretold = stage["foretold_next"]
        if foretold is not None:
            line = (
                f"rank correlation of {clean(stage['name'], 60)} with the next stage: "
                f"{foretold:.2f}"
            )
            console.print(Text(f"{line} (1: equal order, 0: no relation)", style="dim"))
    for note in seeds.of_optimisation(summary):
        console.print(Text(f"note: {clean(note, 2000)}", style="yellow"))
    runs = summary["runs"]
    failed = f", {count(runs['failed'])} failed" if runs["failed"] else ""
    reused = f"{count(runs['reused'])} of them from the store"
    console.print(f"{count(runs['done'])} runs, {reused}{failed}", markup=False)
    console.print(Text(clean(str(result.path), 400), style="bold green"))


def _table(summary: Mapping[str, Any]) -> Table:
    """Return a table of the Pareto front, best score first, then candidates and the baseline.

    If no point keeps all limits, the point closest to the limits comes first.
    """
    measured = [goal["metric"] for goal in summary["goals"]]
    measured += [limit.split(" ")[0] for limit in summary["limits"]]
    columns = [words.shown(metric) for metric in measured]
    table = headed("point", *(clean(title, 40) for _, title, _ in columns), left=1)
    table.columns[0].no_wrap, table.columns[0].overflow = False, "fold"
    front = {*summary["front"]}
    best = sorted(summary["finalists"], key=lambda p: float(p["score"]))
    rows = [p for p in best if p["point"] in front][:_MOST_ROWS]
    rows += [p for p in best if p not in rows and p["origin"] != "proposal"]
    closest = summary["closest"]
    if closest is not None and all(p["point"] != closest["point"] for p in rows):
        rows.insert(0, closest)
    for point in rows:
        named = Text(clean(point["name"], 120))
        told = [*((each, _goal) for each in point["goals"])]
        told += [(each, _limit) for each in point["limits"]]
        # Other points show changes relative to the baseline, so the baseline shows values.
        is_baseline = point["origin"] == BASELINE
        cells = [
            Text(write(each["value"]["mean"])) if is_baseline else show(each, write)
            for (each, show), (_, _, write) in zip(told, columns, strict=True)
        ]
        table.add_row(named, *cells)
    return table


def _goal(told: Mapping[str, Any], write: Callable[[float], str]) -> Text:
    """Return as text the change of a goal's metric from the baseline; if unknown, the mean."""
    change = told["change"]
    if change is None:
        return Text(write(told["value"]["mean"]))
    return Text(_change(change))


def _limit(told: Mapping[str, Any], write: Callable[[float], str]) -> Text:
    shown = _change(told["change"]) if told["change"] else write(told["value"]["mean"])
    style = "" if told["surely"] else "yellow" if told["kept"] else "red"
    return Text(shown, style=style)


def _change(change: Mapping[str, Any]) -> str:
    mean, low, high = change["mean"], change["low"], change["high"]
    if low is None or high is None:
        return f"{100 * mean:+.1f} %"
    return f"{100 * mean:+.1f} ± {50 * (high - low):.1f} %"
