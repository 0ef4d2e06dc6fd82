"""Command ``eastwest observe import``: imports recorded spans."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eastwest.cli.guard import guarded
from eastwest.cli.options import JsonObjectOption, one_of
from eastwest.cli.screen import print_account, print_rows
from eastwest.cli.simulate import OnBadRow
from eastwest.cli.trace_input import Steps
from eastwest.observe.form import SOURCES
from eastwest.units import clean, count, span

if TYPE_CHECKING:
    from eastwest.traces.made import Imported

ForceOption = Annotated[
    bool, typer.Option("--force", help="Replace existing spans in the folder of --out.")
]
LossyOption = Annotated[
    bool,
    typer.Option(
        "--lossy",
        help="Import also spans that contradict each other or themselves, such as cycles of "
        "parents or ends before starts; without it, they are refused.",
    ),
]


@guarded
def import_files(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Files of recorded spans in any supported format."),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder to write the spans to.")
    ],
    source_format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="auto|" + "|".join(SOURCES),
            help="Format of the files; auto: recognised by their content.",
        ),
    ] = "auto",
    on_bad_row: Annotated[
        str,
        typer.Option(
            "--on-bad-row",
            metavar="stop|skip",
            help="At a damaged span: stop (import nothing), or skip it and report it.",
        ),
    ] = "stop",
    force: ForceOption = False,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Read the files on the workers of this Dask scheduler, which need them under "
            "equal paths; default: on this machine.",
        ),
    ] = None,
    lossy: LossyOption = False,
    as_json: JsonObjectOption = False,
) -> None:
    """Read recorded spans into one form: a folder of Parquet tables.

    Formats: OpenTelemetry in JSON and protobuf, Jaeger, Zipkin, CSV; plain or packed with gzip or
    bzip2. Missing parents, repeated spans and clock offsets are corrected and reported. Spans that
    contradict themselves or each other are refused unless --lossy is given.
    """
    from eastwest.observe.take import import_spans  # noqa: PLC0415  slow to load

    action = one_of(OnBadRow, on_bad_row, "--on-bad-row").value
    with Steps("import") as bar:
        imported = import_spans(
            files,
            out,
            source_format=source_format,
            on_bad_row=action,
            force=force,
            told=lambda file, share: bar(Path(file).name, share),
            dask=dask,
            lossy=lossy,
        )
    if as_json:
        typer.echo(json.dumps({"path": str(out), **imported.about}, allow_nan=False))
        return
    print_rows(_rows(imported))
    print_account(imported.account.lines(), "spans.json")


def _rows(imported: Imported) -> Iterator[tuple[str, str]]:
    about = imported.about
    yield "spans", clean(str(imported.path), 200)
    files = len(about["files"])
    yield "from", f"{imported.source_format}, {count(files)} file" + "s" * (files > 1)
    length = span((about["ended_ns"] - about["began_ns"]) / 1e9)
    traces, services = count(about["traces"]), count(about["services"])
    yield "has", f"{count(about['spans'])} spans, {traces} traces, {services} services in {length}"
    began = datetime.datetime.fromtimestamp(about["began_ns"] // 10**9, datetime.UTC)
    yield "began", f"{began:%Y-%m-%d %H:%M:%S} UTC"
    if about["lacks"]:
        yield "lacks", ", ".join(about["lacks"])
    yield "clocks", _skew(about["skew"])
    if about["rows_skipped"]:
        yield "left out", f"{count(about['rows_skipped'])} spans"


def _skew(skew: dict[str, Any]) -> str:
    clocks = f"{count(skew['clocks'])}"
    calls, before = count(skew["calls_between"]), count(skew["outside_before"])
    if not skew["shifted"]:
        return (
            f"{clocks} in the spans; {before} of {calls} calls between clocks lie outside "
            "their callers"
        )
    name, shift = next(iter(skew["shift_ns"].items()))
    sign = "−" if shift < 0 else "+"
    return (
        f"{clocks} in the spans, {count(skew['shifted'])} shifted, most {clean(name, 40)} by {sign}"
        f"{span(abs(shift) / 1e9)}; {before} of {calls} calls between clocks lay outside their "
        f"callers, now {count(skew['outside_after'])}"
    )
