"""``eastwest trace flows``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eastwest.cli.guard import errors, guarded
from eastwest.units import clean, count, size


@guarded
def flows(
    file: Annotated[Path, typer.Argument(help="A connection matrix of htsim (.cm).")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="List of flows to write (CSV).")
    ],
    starts: Annotated[
        str,
        typer.Option(
            metavar="ps|us",
            help="Unit of starts: ps as htsim reads them, us as its own writer writes them.",
        ),
    ] = "ps",
    lossy: Annotated[
        bool,
        typer.Option("--lossy", help="Leave out failures, which a list of flows cannot express."),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file named by --out.")
    ] = False,
) -> None:
    """Make the list of flows of a connection matrix of htsim, for kind = "flow-list".

    Connections that begin at triggers or never end are refused, with their line.
    """
    from eastwest.errors import InputError  # noqa: PLC0415  as the reader: slow to load
    from eastwest.traces import matrix  # noqa: PLC0415

    found = matrix.read(file, starts, lossy)
    if out.exists() and not force:
        raise InputError(f"{out} already exists: name another file, or add --force")
    matrix.write(found, out)
    payload = size(sum(each.bytes for each in found.connections))
    typer.echo(f"{count(len(found.connections))} flows of {payload}, hosts 0 to {found.nodes - 1}")
    for line in found.account.lines():
        errors().print(f"eastwest: {clean(line, 500)}", markup=False)
