"""Command ``eastwest studio``: edits, runs and explains scenarios in a browser."""

from __future__ import annotations

import contextlib
from typing import Annotated

import typer

from eastwest.cli.completion import scenarios
from eastwest.cli.guard import guarded


@guarded
def studio(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="A scenario file of this folder, or the name of a shipped scenario; default: "
            "first.",
            autocompletion=scenarios,
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0: the system chooses a free one."),
    ] = 0,
    open_page: Annotated[
        bool,
        typer.Option("--open/--no-open", help="Open the page in a browser."),
    ] = True,
) -> None:
    """Edit, run, watch and explain scenarios in a page that only this machine serves."""
    from eastwest.studio.serving import serve  # noqa: PLC0415  slow to load

    with contextlib.suppress(KeyboardInterrupt):  # the usual end of this command
        serve(file, port=port, browser=open_page, say=typer.echo)
