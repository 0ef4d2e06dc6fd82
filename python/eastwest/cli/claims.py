"""Command ``eastwest claims``: runs published claims and shows which hold."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from eastwest.claims import page, record
from eastwest.claims.catalogue import (
    SHIPPED,
    papers_folder,
    read_as,
    search,
    select,
    study_of,
    under,
)
from eastwest.claims.spec import Claim
from eastwest.claims.verdict import DIFFERS, HOLDS, NOT_RUN, UNDECIDED, Outcome
from eastwest.claims.work import MOST_SEEDS, How, run
from eastwest.cli.guard import MISSED, errors, fail, guarded, interrupted
from eastwest.cli.options import (
    DaskOption,
    JobsOption,
    JsonArrayOption,
    ReleaseOption,
    StoreOption,
    WithOption,
    use_mechanisms,
)
from eastwest.cli.progress import ClaimsBar
from eastwest.cli.screen import headed, print_table
from eastwest.errors import InputError, ProblemsError, in_one_line
from eastwest.units import clean

_COLOURS = {HOLDS: "green", DIFFERS: "red"}
_VERDICTS = (HOLDS, DIFFERS, UNDECIDED, NOT_RUN)


@guarded
def claims(
    patterns: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATTERN...",
            help="Folders of studies (incast), ids (incast/T1), beginnings of ids (incast/F4) or "
            "globs ('eeon/?4*'); with --list also words of statements or names of mechanisms "
            "(red, ACKs); default: all claims.",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Use fewer seeds and points: all claims take about half an hour of CPU time.",
        ),
    ] = False,
    profiles: Annotated[
        list[str] | None,
        typer.Option(
            "--profile",
            metavar="NAME",
            help="TCP profile of the study, such as linux; may be repeated; all: every profile.",
        ),
    ] = None,
    readings: Annotated[
        list[str] | None,
        typer.Option(
            "--reading",
            metavar="NAME",
            help="Reading of the study, such as first; may be repeated; all: every reading.",
        ),
    ] = None,
    most_seeds: Annotated[
        int,
        typer.Option(min=1, max=1000, help="Maximum number of seeds for an undecided claim."),
    ] = MOST_SEEDS,
    as_json: JsonArrayOption = False,
    listed: Annotated[
        bool,
        typer.Option("--list", help="List the claims with statement and stored verdict; run none."),
    ] = False,
    jobs: JobsOption = None,
    dask: DaskOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Also write results (JSON, CSV, figures) below this folder."
        ),
    ] = None,
    keep: Annotated[
        bool,
        typer.Option(
            "--record",
            help="Store results and update the pages of all studies; not with --quick.",
        ),
    ] = False,
    missing: Annotated[
        bool,
        typer.Option(
            "--missing",
            help="Run only what the stored results lack: claims without a stored result, changed "
            "claims, and new explanations.",
        ),
    ] = False,
    papers: Annotated[
        Path | None,
        typer.Option(help="Folder of the studies; default: papers, else the shipped studies."),
    ] = None,
    store: StoreOption = None,
    mechanisms: WithOption = None,
    release: ReleaseOption = False,
) -> None:
    """Run published claims and show which hold: exit code 1 if a claim differs or cannot be run."""
    if keep and quick:
        fail("--record cannot be used with --quick: only full runs are stored; use --out instead")
    if missing and quick:
        fail("--missing cannot be used with --quick: stored results are those of full runs")
    if profiles and readings:
        fail("--profile cannot be used with --reading: --profile uses the best-supported reading")
    folder = papers_folder(papers)
    if keep and folder.resolve() == SHIPPED:
        fail(f"--record writes into the folder of the claims: first copy {SHIPPED} to papers")
    chosen = search(folder, patterns or [], _say) if listed else _selected(folder, patterns or [])
    if readings:
        chosen = read_as(chosen, readings)
    if profiles:
        chosen = under(chosen, profiles)
    if listed:
        _list([record.read(claim) for claim in chosen], as_json)
        return
    kept: dict[Path, record.Record] = {}
    if missing:
        chosen = [claim for claim in chosen if not record.read(claim).current]
        kept = {record.folder_of(c) / c.name: r for c in chosen if (r := record.read(c)).measured}
        if not chosen:
            typer.echo("[]" if as_json else "no stored results are missing")
            return
    recipe = use_mechanisms(mechanisms, release)
    command = shlex.join(["eastwest", *sys.argv[1:]])
    console = Console(highlight=False)

    def before(claim: Claim) -> record.Record | None:
        return kept.get(record.folder_of(claim) / claim.name)

    def done(outcome: Outcome) -> None:
        if not as_json:
            _show(console, outcome)
        had = before(outcome.claim)
        content = had.content if had else None
        if keep:
            kept_here = record.kept_pictures(outcome.claim)
            record.write(
                outcome, record.folder_of(outcome.claim), command, content, pictures=kept_here
            )
        if out is not None:
            record.write(outcome, record.folder_of(outcome.claim, out), command, content)

    with ClaimsBar(errors(), "claims") as bar:
        try:
            outcomes = run(
                chosen,
                How(quick, jobs, dask, store, bar, most_seeds, recipe),
                done,
                kept=lambda claim: had.parts() if (had := before(claim)) else [],
            )
        except KeyboardInterrupt:
            interrupted("finished runs are stored; repeat the command to continue")
    if keep:
        _write_pages(folder)
    _report(console, outcomes, as_json)


def _selected(folder: Path, patterns: list[str]) -> list[Claim]:
    """Return the claims in ``folder`` that match patterns; for a wrong pattern, exit."""
    try:
        return select(folder, patterns, _say)
    except ProblemsError:
        raise
    except InputError as error:
        words = shlex.join(patterns)
        fail(f"{error}; eastwest claims --list {clean(words, 200)} searches statements for words")


def _say(line: str) -> None:
    errors().print(f"eastwest: {clean(line, 1000)}", markup=False)


def _write_pages(folder: Path) -> None:
    """Write the pages of all studies; if a claim file is wrong, print a warning instead."""
    try:
        page.write(folder)
    except InputError as error:
        _say(f"warning: results are stored, but the pages are not updated: {in_one_line(error)}")


def _report(console: Console, outcomes: list[Outcome], as_json: bool) -> None:
    """Print how many claims hold, or all outcomes as JSON.

    Exits with the code ``MISSED`` if a claim differs or was not run.
    """
    if as_json:
        shown = [outcome.as_json() for outcome in outcomes]
        typer.echo(json.dumps(shown, allow_nan=False, ensure_ascii=False))
    else:
        _tally(console, outcomes)
    if any(outcome.verdict in {DIFFERS, NOT_RUN} for outcome in outcomes):
        raise typer.Exit(MISSED)


def _list(records: list[record.Record], as_json: bool) -> None:
    if as_json:
        listed = [
            {
                "id": r.claim.id,
                "study": study_of(r.claim),
                "profile": r.claim.profile,
                "reading": r.claim.reading,
                "statement": r.claim.statement,
                "published": r.claim.published,
                "verdict": r.verdict,
            }
            for r in records
        ]
        typer.echo(json.dumps(listed, ensure_ascii=False))
        return
    console = Console(highlight=False)
    groups: dict[str, list[record.Record]] = {}
    for r in records:
        of = f"{study_of(r.claim)}: reading {r.claim.reading}, TCP profile {r.claim.profile}"
        groups.setdefault(of, []).append(r)
    widths = (max((len(r.claim.id) for r in records), default=0), max(map(len, _VERDICTS)))
    for of, members in groups.items():
        console.print(Text(clean(of, 200), "bold"))
        table = headed("claim", "verdict", "statement", left=3, show_header=False)
        for column, width in zip(table.columns, widths, strict=False):
            column.min_width = width
        table.columns[-1].no_wrap = False
        for r in members:
            text = Text(clean(r.claim.statement, 1000))
            text.append(f"\npublished: {clean(r.claim.published, 1000)}", "dim")
            table.add_row(r.claim.id, Text(r.verdict, _COLOURS.get(r.verdict, "")), text)
        print_table(console, table)


def _show(console: Console, outcome: Outcome) -> None:
    """Print a claim: verdict, published text, each metric with its band, and the explanation."""
    verdict = Text(outcome.verdict, style=f"bold {_COLOURS.get(outcome.verdict, 'yellow')}")
    title = Text.assemble((outcome.claim.id, "bold"), " ", verdict, " ")
    if outcome.claim.variant == outcome.claim.profile:
        title.append(f"with {outcome.claim.variant} ", style="bold")
    elif outcome.claim.variant:
        title.append(f"under the {outcome.claim.variant} reading ", style="bold")
    title.append("(quick)" if outcome.quick else "", style="dim")
    console.print(title)
    console.print(Text(f"  {clean(outcome.claim.statement, 500)}", style="dim"))
    console.print(Text(f"  published: {clean(outcome.claim.published, 500)}"))
    for part in outcome.parts:
        line = Text(f"  {clean(part.metric.name, 60)}: {clean(part.text(), 500)}")
        line.append(f"  [{part.band()}] ", style="dim")
        line.append(part.verdict, style=_COLOURS.get(part.verdict, "yellow"))
        console.print(line)
    if outcome.classes:
        console.print(Text(f"  class: {', '.join(outcome.classes)}", style="dim"))
    if outcome.explanation():
        console.print(Text(f"  {clean(outcome.explanation(), 4000)}"))
    console.print()


def _tally(console: Console, outcomes: list[Outcome]) -> None:
    counted = {word: sum(o.verdict == word for o in outcomes) for word in _VERDICTS}
    parts = [f"{number} {word}" for word, number in counted.items() if number]
    console.print(", ".join(parts), markup=False)
    if outcomes[0].quick:
        console.print(
            "a quick run: fewer seeds and points, so that a verdict can differ from that of a full "
            "run; stored results are unchanged",
            markup=False,
        )
