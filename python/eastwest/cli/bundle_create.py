"""Command ``eastwest bundle``: writes a result, a sweep or a study into one archive."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eastwest.cli import completion
from eastwest.cli.guard import errors, fail, guarded, interrupted
from eastwest.cli.options import JobsOption, JsonObjectOption, StoreOption, WithOption
from eastwest.cli.progress import ClaimsBar
from eastwest.units import clean, plural, size

if TYPE_CHECKING:
    from eastwest.bundle import Bundle

#: Default maximum number of MB of an input file in a bundle.
_LARGEST_MB = 50.0


@guarded
def create(
    source: Annotated[
        str,
        typer.Argument(
            metavar="RESULT|SWEEP|STUDY",
            help="A result folder, the folder of a sweep, or a study: its folder, or its name "
            "(eeon_ch5).",
            autocompletion=completion.bundled,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Archive to write; default: NAME-bundle.zip in this folder."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing file of this name.")
    ] = False,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Of a study: only the quick runs of its claims (fewer seeds and points).",
        ),
    ] = False,
    claims: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="CLAIM",
            help="Of a study: only these claims, by id or beginning of ids (eeon/C5.1, eeon/F5); "
            "may be repeated.",
        ),
    ] = None,
    jobs: JobsOption = None,
    store: StoreOption = None,
    papers: Annotated[
        Path | None,
        typer.Option(help="Folder of the studies; default: papers, else the shipped studies."),
    ] = None,
    mechanisms: WithOption = None,
    largest_mb: Annotated[
        float,
        typer.Option(
            "--largest-input",
            metavar="MB",
            min=0,
            help="Input files above this size are described by size, hash and origin only; inf: "
            "all input files are put into the archive.",
        ),
    ] = _LARGEST_MB,
    origins: Annotated[
        list[str] | None,
        typer.Option(
            "--origin",
            metavar="FILE=TEXT",
            help="Origin and licence of an input file, by its name or that of its folder; may be "
            "repeated.",
        ),
    ] = None,
    added: Annotated[
        list[Path] | None,
        typer.Option(
            "--add",
            metavar="FILE",
            help="Further file for the archive, such as a wheel or a licence; may be repeated.",
        ),
    ] = None,
    no_pictures: Annotated[
        bool, typer.Option("--no-pictures", help="Leave out pictures and pages.")
    ] = False,
    as_json: JsonObjectOption = False,
) -> None:
    """Write a result, a sweep or a study into one archive with which others repeat it.

    The archive has scenarios, input files, versions, results, pictures, a README.md, and the digest
    of each run. The claims of a study are run first; runs in the run store are reused. The name of
    the command can be left out: eastwest bundle results/first-1.
    """
    from eastwest.bundle import bundle  # noqa: PLC0415  slow to load

    given = dict(_origin(each) for each in origins or [])
    with ClaimsBar(errors(), "bundle") as bar:
        try:
            made = bundle(
                source,
                out,
                force=force,
                quick=quick,
                claims=claims or (),
                jobs=jobs,
                store=store,
                papers=papers,
                mechanisms=mechanisms or (),
                largest_input=round(min(largest_mb, 1e9) * 1e6),
                origins=given,
                add=added or (),
                pictures=not no_pictures,
                progress=bar,
            )
        except KeyboardInterrupt:
            interrupted("no bundle was written; finished runs are stored: repeat the command")
    _show(made, as_json)


def _origin(given: str) -> tuple[str, str]:
    name, equals, text = given.partition("=")
    if not equals or not name or not text.strip():
        fail(f"--origin {given}: expected FILE=TEXT, such as jobs.tsv='https://…, CC BY 4.0'")
    return name, text.strip()


def _show(made: Bundle, as_json: bool) -> None:
    """Print the content of a new bundle, and the path of the archive."""
    manifest = made.manifest
    inside: Sequence[int] = [file.size for file in manifest.files if file.inside]
    packed = made.path.stat().st_size
    if as_json:
        typer.echo(
            json.dumps(
                {
                    "path": str(made.path),
                    "kind": manifest.kind,
                    "bytes": packed,
                    "files": len(inside),
                    "runs": len(manifest.runs),
                    "quick_runs": sum(run.quick for run in manifest.runs),
                    "not_inside": [file.path for file in manifest.absent],
                    "remarks": list(made.remarks),
                },
                ensure_ascii=False,
            )
        )
        return
    for remark in made.remarks:
        errors().print(f"eastwest: {clean(remark, 1000)}", markup=False, style="yellow")
    for file in manifest.absent:
        line = f"not inside, because it is large: {clean(file.path)} ({size(file.size)})"
        errors().print(f"eastwest: {line}", markup=False, style="yellow")
    files = f"{plural(len(inside), 'file')} of {size(sum(inside))}, packed {size(packed)}"
    typer.echo(f"{plural(len(manifest.runs), 'run')}, {files}")
    typer.echo(str(made.path))
