"""Command ``eastwest report``: writes a page about results."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from eastwest.cli.guard import guarded
from eastwest.cli.pictures import draw, pictured, styled
from eastwest.errors import InputError
from eastwest.results import Result


@guarded
@pictured("png")
def report(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...",
            help="Result folders, or the folder of a sweep, an optimisation or an imported trace.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="File of the page; default: report.html in the folder, or comparison.html beside "
            "the first of several folders.",
        ),
    ] = None,
    png: Annotated[
        Path | None, typer.Option(help="Also draw one picture of the first result.")
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Write a self-contained HTML page about results, a sweep, an optimisation or a trace."""
    from eastwest.report import write_report  # noqa: PLC0415  slow to load

    if png is not None and folders[0].is_dir() and not (folders[0] / "flows.parquet").is_file():
        raise InputError(
            f"--png needs the result of one run with its tables, and {folders[0]} is not one; "
            "eastwest.plot.sweep draws a metric of a sweep in Python"
        )
    page = write_report(folders, out)
    if png is not None:
        from eastwest.plot import overview  # noqa: PLC0415  slow to load

        with styled():
            draw(lambda: overview(Result(folders[0])), png)
        typer.echo(str(png))
    typer.echo(str(page))
    if open_page:
        webbrowser.open(page.resolve().as_uri())
