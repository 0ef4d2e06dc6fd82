"""Commands ``eastwest bundle verify`` and ``eastwest bundle rerun``: check a bundle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from eastwest.cli.guard import MISSED, errors, guarded, interrupted
from eastwest.cli.options import JobsOption, JsonObjectOption
from eastwest.cli.progress import SweepBar
from eastwest.units import clean, count, percent, plural, size

if TYPE_CHECKING:
    from eastwest.bundle.compare import Field
    from eastwest.bundle.rerun import Compared

_COLOURS = {"equal": "green", "differs": "red", "failed": "red"}
#: Maximum number of fields of a run, and of files of a bundle, that are printed.
_MOST_FIELDS, _MOST_FILES = 6, 40

BundleArgument = Annotated[
    Path,
    typer.Argument(metavar="BUNDLE", help="A bundle: its archive, or the unpacked folder."),
]


@guarded
def verify(bundle: BundleArgument, as_json: JsonObjectOption = False) -> None:
    """Compare all files of a bundle with its list of hashes: exit code 1 where one differs.

    Nothing of the bundle is executed, and nothing is written. eastwest bundle rerun simulates its
    runs again.
    """
    from eastwest.bundle.verify import verify as verified  # noqa: PLC0415  commands start quickly

    found = verified(bundle)
    manifest = found.manifest
    inside = [file for file in manifest.files if file.inside]
    if as_json:
        shown = {
            "name": clean(manifest.name, 1000),
            "kind": manifest.kind,
            "version": manifest.version,
            "files": len(inside),
            "runs": len(manifest.runs),
            "not_inside": [file.path for file in manifest.absent],
            "code": [one.path for one in manifest.mechanisms],
            "differences": [vars(each) for each in found.differences],
        }
        typer.echo(json.dumps(shown, ensure_ascii=False))
        raise typer.Exit(MISSED if found.differences else 0)
    console = Console(highlight=False, soft_wrap=True)
    console.print(
        f"{clean(manifest.name, 100)}: {manifest.kind}, {plural(len(manifest.runs), 'run')}, by "
        f"Eastwest {clean(manifest.version, 40)}",
        markup=False,
    )
    for file in manifest.absent:
        origin = clean(file.origin, 300) or "its origin is not stated"
        console.print(f"not inside: {clean(file.path)} ({size(file.size)}), {origin}", markup=False)
    for one in manifest.mechanisms:
        console.print(
            f"program code, executed only with --run-code: {clean(one.path)}", markup=False
        )
    for each in found.differences[:_MOST_FILES]:
        line = Text(f"{each.what}: ", style="red")
        console.print(
            line.append(f"{clean(each.path)} {clean(each.message, 300)}", style="default")
        )
    if (more := len(found.differences) - _MOST_FILES) > 0:
        console.print(f"and {plural(more, 'more difference')}; --json lists all", markup=False)
    if found.differences:
        console.print(
            f"{plural(len(found.differences), 'difference')} in {plural(len(inside), 'file')}",
            markup=False,
        )
        raise typer.Exit(MISSED)
    console.print(f"all {plural(len(inside), 'file')} are as listed in bundle.json", markup=False)


@guarded
def rerun(
    bundle: BundleArgument,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="NAME",
            help="Only these runs: beginning or glob of the name of a run, or of the runs of a "
            "claim (eeon/C5.1); may be repeated.",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Only a part: the quick runs of a study, the first seed of each point of a sweep.",
        ),
    ] = False,
    jobs: JobsOption = None,
    inputs: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Folder with the input files that are not inside the bundle."
        ),
    ] = None,
    run_code: Annotated[
        bool,
        typer.Option(
            "--run-code",
            help="Execute the mechanisms in the bundle, in Python or Rust: read them first, "
            "because they can do anything that you can do.",
        ),
    ] = False,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder for the results, a run store: a repeated command resumes from it.",
        ),
    ] = None,
    as_json: JsonObjectOption = False,
) -> None:
    """Simulate the runs of a bundle again and compare digests: exit code 1 where one differs.

    Where a digest differs, numbers of the summary and tables that differ are shown.
    """
    from eastwest.bundle.made import Bundle  # noqa: PLC0415  commands start quickly

    console = Console(highlight=False, soft_wrap=True)

    def done(each: Compared) -> None:
        if not as_json:
            _show(console, each)

    with SweepBar(errors(), "rerun") as bar:
        try:
            compared = Bundle(bundle).rerun(
                only or (),
                quick=quick,
                jobs=jobs,
                inputs=inputs,
                run_code=run_code,
                keep=keep,
                progress=bar,
                done=done,
            )
        except KeyboardInterrupt:
            interrupted(
                f"finished runs are stored in {keep}; repeat the command to continue"
                if keep
                else "with --keep FOLDER, a repeated command resumes"
            )
    states = {state: sum(each.state == state for each in compared) for state in _COLOURS}
    if as_json:
        typer.echo(
            json.dumps({**states, "runs": [_json(each) for each in compared]}, allow_nan=False)
        )
    else:
        parts = [f"{count(number)} {state}" for state, number in states.items() if number]
        console.print(f"{plural(len(compared), 'run')}: {', '.join(parts) or 'none'}", markup=False)
    if states["equal"] < len(compared):
        raise typer.Exit(MISSED)


def _json(each: Compared) -> dict[str, Any]:
    return {
        "name": each.run.name,
        "used_by": list(each.run.used_by),
        "state": each.state,
        "digest": each.digest,
        "expected": each.run.digest,
        "version": each.run.version,
        "message": each.message,
        "fields": [vars(field) for field in each.fields],
        "tables": [vars(table) for table in each.tables],
    }


def _show(console: Console, each: Compared) -> None:
    """Print a run: name, state and digest, and below it what differs."""
    line = Text(f"{clean(each.run.name, 100)} ")
    line.append(each.state, style=_COLOURS[each.state])
    if each.digest == each.run.digest:
        line.append(f" {clean(each.digest, 64)}", style="dim")
    elif each.digest:
        line.append(f" {clean(each.digest, 64)}, not {clean(each.run.digest, 64)}")
    console.print(line)
    if each.message:
        console.print(f"  {clean(each.message, 1000)}", markup=False)
    for field in each.fields[:_MOST_FIELDS]:
        console.print(f"  {_field(field)}", markup=False)
    if (more := len(each.fields) - _MOST_FIELDS) > 0:
        console.print(
            f"  and {plural(more, 'more number')} of the summary; --json lists all", markup=False
        )
    for table in each.tables:
        console.print(f"  table {clean(table.name, 60)}: {clean(table.message, 300)}", markup=False)


def _field(field: Field) -> str:
    relative = field.relative
    shown = "" if relative is None else f" ({'+' * (relative > 0)}{percent(relative)})"
    return f"{clean(field.path, 100)}: {field.was:.10g}, now {field.now:.10g}{shown}"
