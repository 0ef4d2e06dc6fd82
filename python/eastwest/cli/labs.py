"""Commands ``eastwest lab list``, ``lab start`` and ``lab check``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from eastwest import spreadsheet
from eastwest.cli.guard import BAD_INPUT, MISSED, errors, fail, guarded
from eastwest.cli.lines import grid
from eastwest.cli.options import JsonArrayOption
from eastwest.cli.screen import console, headed, print_table
from eastwest.errors import InputError
from eastwest.files import check_outputs, write_whole
from eastwest.labs import answers, grade, sheet
from eastwest.units import clean

LabArgument = Annotated[int, typer.Argument(metavar="N", help="Number of the lab.")]

_COLOURS = {
    grade.State.right: "green",
    grade.State.wrong: "red",
    grade.State.unreadable: "red",
    grade.State.missing: "yellow",
    grade.State.answered: "",
}


@guarded
def lab_list(as_json: JsonArrayOption = False) -> None:
    """List the labs: number, title, duration, number of questions, scenarios."""
    labs = [sheet.load(number) for number in sheet.numbers()]
    if as_json:
        rows = [
            {
                "lab": lab.number,
                "title": lab.title,
                "minutes": lab.minutes,
                "questions": len(lab.questions),
                "graded": len(lab.graded),
                "scenarios": [*lab.scenarios],
            }
            for lab in labs
        ]
        typer.echo(json.dumps(rows))
        return
    table = headed("lab", "title", "minutes", "questions", "scenarios", left=2)
    table.columns[-1].justify = "left"
    for lab in labs:
        table.add_row(
            str(lab.number),
            lab.title,
            str(lab.minutes),
            str(len(lab.questions)),
            ", ".join(lab.scenarios),
        )
    print_table(console(wide=True), table)


@guarded
def lab_start(
    lab: LabArgument,
    folder: Annotated[
        Path, typer.Option(help="Folder of the new files; default: the working directory.")
    ] = Path(),
) -> None:
    """Write the scenarios of a lab and a file for its answers; existing files are not replaced."""
    chosen = sheet.load(lab)
    for path in answers.start(chosen, folder):
        typer.echo(clean(str(path), 400))
    typer.echo(
        f"next: follow the sheet of lab {lab} (documentation, Labs), write your answers into "
        f"answers-{lab}.toml, then: eastwest lab check {lab} answers-{lab}.toml"
    )


@guarded
def lab_check(
    lab: LabArgument,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="ANSWERS...",
            help="Files of answers, or folders with the files of a class (NAME.toml).",
        ),
    ],
    as_json: JsonArrayOption = False,
    csv_file: Annotated[
        Path | None,
        typer.Option("--csv", help="Write one row for each student as CSV, for a gradebook."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file that --csv names.")
    ] = False,
) -> None:
    """Check answers: exit code 1 if an answer is wrong or missing, 2 if a file has no answers."""
    chosen = sheet.load(lab)
    paths = [*_paths(files, chosen)]
    if not paths:
        fail(f"no answers to lab {lab} in {clean(', '.join(map(str, files)), 200)}")
    if csv_file is not None:
        check_outputs([csv_file], paths, force)
    sheets: list[grade.Sheet] = []
    damaged = 0
    for path in paths:
        try:
            given = answers.read(path, chosen)
        except (InputError, OSError) as error:
            damaged += 1
            errors().print(f"eastwest: {clean(str(error), 1000)}", markup=False)
            continue
        for key in given.unknown:
            errors().print(
                f"eastwest: {clean(given.file, 400)}: {key}: is not a question of lab {lab}",
                markup=False,
            )
        sheets.append(grade.grade(chosen, given))
        if not as_json:
            _show(sheets[-1], hints=len(paths) == 1)
    if csv_file is not None:
        write_whole(csv_file, _csv(chosen, sheets).encode())
    if as_json:
        typer.echo(json.dumps([_as_json(each) for each in sheets], ensure_ascii=False))
    if damaged:
        raise typer.Exit(BAD_INPUT)
    if any(each.right < each.graded for each in sheets):
        raise typer.Exit(MISSED)


def _paths(files: list[Path], lab: sheet.Lab) -> Iterator[Path]:
    """Yield the files of answers that files and folders name, each file once."""
    seen = set()
    for path in files:
        for each in answers.files_in(path, lab) if path.is_dir() else [path]:
            if each.absolute() not in seen:
                seen.add(each.absolute())
                yield each


def _show(checked: grade.Sheet, *, hints: bool) -> None:
    """Print the results of one student; for several students only the total and wrong answers."""
    screen = console()
    who = f" ({checked.answers.student})" if checked.answers.student else ""
    title = f"{clean(checked.answers.file, 400)}{who}: {checked.right} of {checked.graded} right"
    screen.print(Text(title, "bold"))
    rows = []
    for verdict in checked.verdicts:
        if not hints and verdict.state in {grade.State.right, grade.State.answered}:
            continue
        text = f"{verdict.state}: {verdict.said}" if verdict.said else str(verdict.state)
        rows.append((f"  {verdict.question.id}", text, _COLOURS[verdict.state]))
        if hints and verdict.state is grade.State.wrong and verdict.question.hint:
            rows.append(("", f"hint: {verdict.question.hint}", "dim"))
    if rows:
        screen.print(grid(rows, screen.width))


def _csv(lab: sheet.Lab, sheets: list[grade.Sheet]) -> str:
    """Return one row for each student as CSV: file, student, total, state of each answer."""
    head = ["file", "student", "lab", "right", "graded", *(each.id for each in lab.questions)]
    rows = (
        [
            Path(each.answers.file).name,
            each.answers.student,
            lab.number,
            each.right,
            each.graded,
            *(str(verdict.state) for verdict in each.verdicts),
        ]
        for each in sheets
    )
    return spreadsheet.table(head, rows)


def _as_json(checked: grade.Sheet) -> dict[str, Any]:
    return {
        "file": clean(checked.answers.file, 400),
        "student": checked.answers.student,
        "lab": checked.answers.lab,
        "right": checked.right,
        "graded": checked.graded,
        "answers": [
            {
                "question": verdict.question.id,
                "kind": str(verdict.question.kind),
                "state": str(verdict.state),
                "given": verdict.given,
                "said": verdict.said,
            }
            for verdict in checked.verdicts
        ],
    }
