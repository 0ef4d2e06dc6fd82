"""``eastwest claims``."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from types import TracebackType
from typing import Annotated, Self

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from eastwest.claims import page, record
from eastwest.claims.catalogue import choose, find, papers_folder
from eastwest.claims.verdict import DIFFERS, HOLDS, Outcome
from eastwest.claims.work import run
from eastwest.cli.guard import INTERRUPTED, MISSED, errors, fail, guarded
from eastwest.sweep import State
from eastwest.units import clean, count, span

_COLOURS = {HOLDS: "green", DIFFERS: "red"}


@guarded
def claims(
    patterns: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATTERN...",
            help="Ids (incast/T1), studies (incast) or globs (incast/F4*); none: all claims.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer seeds and points: a minute for all.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON array and nothing else.")
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="List the claims and their kept verdicts; run none.")
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(min=0, help="Processes; default: one per core. 0: within this process."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Also write results (JSON, CSV, figures) below this folder.")
    ] = None,
    keep: Annotated[
        bool,
        typer.Option(
            "--record", help="Write results beside the claims, and the page of all; not --quick."
        ),
    ] = False,
    papers: Annotated[
        Path | None, typer.Option(help="Folder of the studies; default: papers.")
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(help="Where runs are kept; default: $EASTWEST_STORE or .eastwest/store."),
    ] = None,
) -> None:
    """Run published claims and say which hold: exit code 1 where one differs."""
    if keep and quick:
        fail("--record keeps the results of full runs: leave out --quick, or write with --out")
    folder = papers_folder(papers)
    every = find(folder)
    chosen = choose(every, patterns or [])
    if listed:
        _list([record.read(claim) for claim in chosen], as_json)
        return
    command = shlex.join(["eastwest", *sys.argv[1:]])
    console = Console(highlight=False)

    def done(outcome: Outcome) -> None:
        if not as_json:
            _show(console, outcome)
        if keep:
            record.write(outcome, record.folder_of(outcome.claim), command)
        if out is not None:
            record.write(outcome, record.folder_of(outcome.claim, out), command)

    with _Bar(errors()) as bar:
        try:
            outcomes = run(chosen, quick=quick, jobs=jobs, store=store, progress=bar, done=done)
        except KeyboardInterrupt:
            errors().print(
                "eastwest: interrupted; what has run is kept, the same command goes on from there",
                markup=False,
            )
            raise typer.Exit(INTERRUPTED) from None
    if keep:
        page.write(folder)
    if as_json:
        shown = [outcome.as_json() for outcome in outcomes]
        typer.echo(json.dumps(shown, allow_nan=False, ensure_ascii=False))
    else:
        _tally(console, outcomes)
    if any(outcome.verdict == DIFFERS for outcome in outcomes):
        raise typer.Exit(MISSED)


def _list(records: list[record.Record], as_json: bool) -> None:
    if as_json:
        listed = [
            {"id": r.claim.id, "published": r.claim.published, "verdict": r.verdict}
            for r in records
        ]
        typer.echo(json.dumps(listed, ensure_ascii=False))
        return
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("claim", "verdict", "published"):
        table.add_column(heading, no_wrap=heading != "published")
    for r in records:
        table.add_row(
            r.claim.id, Text(r.verdict, _COLOURS.get(r.verdict, "")), clean(r.claim.published, 200)
        )
    Console(highlight=False).print(table)


def _show(console: Console, outcome: Outcome) -> None:
    """Print one claim: verdict, what was published, each metric with its band, why it differs."""
    verdict = Text(outcome.verdict, style=f"bold {_COLOURS.get(outcome.verdict, 'yellow')}")
    title = Text.assemble((outcome.claim.id, "bold"), " ", verdict, " ")
    title.append("(quick)" if outcome.quick else "", style="dim")
    console.print(title)
    console.print(Text(f"  {clean(outcome.claim.statement, 500)}", style="dim"))
    console.print(Text(f"  published: {clean(outcome.claim.published, 500)}"))
    for part in outcome.parts:
        line = Text(f"  {clean(part.metric.name, 60)}: {clean(part.text(), 500)}")
        line.append(f"  [{part.band()}] ", style="dim")
        line.append(part.verdict, style=_COLOURS.get(part.verdict, "yellow"))
        console.print(line)
    if outcome.explanation():
        console.print(Text(f"  {clean(outcome.explanation(), 4000)}"))
    console.print()


def _tally(console: Console, outcomes: list[Outcome]) -> None:
    words = (HOLDS, DIFFERS, "not run")
    counted = {word: sum(o.verdict == word for o in outcomes) for word in words}
    parts = [f"{number} {word}" for word, number in counted.items() if number]
    ending = "; a quick run: results that are kept stay as they are" if outcomes[0].quick else ""
    console.print(f"{', '.join(parts)}{ending}", markup=False)


class _Bar:
    """A bar on a terminal's standard error; silent where that is not a terminal."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.fields[label]}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            auto_refresh=False,
            disable=not console.is_terminal,
        )
        self._task: TaskID = self._progress.add_task("", total=None, label="claims")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def __call__(self, claim: str, runs: str, state: State) -> None:
        """Show how far the runs of a claim have come."""
        parts = [clean(runs, 20), f"{count(state.done)}/{count(state.planned)} runs"]
        if state.left_s is not None:
            parts.append(f"{span(state.left_s)} left")
        self._progress.update(
            self._task,
            label=clean(claim, 30),
            description=" · ".join(parts),
            total=max(1, state.planned),
            completed=state.done + state.failed,
        )
        self._progress.refresh()
