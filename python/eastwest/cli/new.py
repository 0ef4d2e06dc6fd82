"""Command ``eastwest new``: writes the first version of a user's own mechanism."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eastwest.cli.guard import guarded
from eastwest.cli.options import one_of
from eastwest.mechanisms import new as mechanisms
from eastwest.units import clean


@guarded
def new(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Name of the mechanism in scenarios, and of its folder."
        ),
    ],
    kind: Annotated[
        str,
        typer.Option(metavar="queue|congestion|routing|application", help="Kind of the mechanism."),
    ] = "queue",
    python: Annotated[
        bool,
        typer.Option(
            "--python", help="Write the mechanism in Python: slower runs, no compiler needed."
        ),
    ] = False,
    source: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of Eastwest's Rust source; default: that of the installed package.",
        ),
    ] = None,
) -> None:
    """Write a first version of your own queue, congestion control, routing or application."""
    chosen = one_of(mechanisms.Kind, kind, "--kind")
    made = mechanisms.write(name, chosen, python=python, source=source)
    typer.echo(f"{made.folder}: {made.what}")
    for file in made.files:
        typer.echo(f"  {clean(file)}")
    typer.echo(f"next: cd {made.folder} && eastwest run scenario.toml --with {made.named}")
    if not python:
        typer.echo(
            "The first run also compiles Eastwest, which takes minutes; later compilations take "
            "seconds."
        )
