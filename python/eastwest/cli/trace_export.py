"""Command ``eastwest trace export``: writes a trace of an MPI program in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eastwest.cli.guard import fail, guarded
from eastwest.cli.screen import print_account, print_rows
from eastwest.files import check_outputs
from eastwest.units import clean, count

_MOST_LINES = 20


@guarded
def export(
    trace: Annotated[
        Path,
        typer.Argument(
            metavar="TRACE", help="Folder with a file for each rank, which trace import makes."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="File to write.")],
    form: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="goal|goal-binary",
            help="goal: text for txt2bin of LogGOPSim; goal-binary: the form that LogGOPSim reads.",
        ),
    ] = "goal",
    collective: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CALL=ALGORITHM",
            help="Algorithm of a call, as in scenarios: allreduce=ring; may be repeated.",
        ),
    ] = None,
    flops_per_s: Annotated[
        float,
        typer.Option(
            min=1, max=1e18, help="Operations per second, which convert computing to times."
        ),
    ] = 1e9,
    lossy: Annotated[
        bool,
        typer.Option(
            "--lossy", help="Leave out what the format cannot express; without it, it is refused."
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write an MPI program as a GOAL schedule, with collective calls as sends and receives.

    Waits become dependencies: docs/mechanisms/mpi.md. Refused are calls whose outcome depends on
    times (test), priorities, and dependencies between ranks.
    """
    from eastwest.traces.mpi import goal_write  # noqa: PLC0415  slow to load

    if form not in goal_write.FORMS:
        fail(f"--to {clean(form, 40)}: must be one of {', '.join(goal_write.FORMS)}")
    pairs = [tuple(text.split("=", 1)) for text in collective or ()]
    wrong = next((text for text in collective or () if "=" not in text), None)
    if wrong is not None:
        fail(f"--collective {clean(wrong, 40)}: must be CALL=ALGORITHM, as allreduce=ring")
    check_outputs([out], [trace], force)
    chosen = [(call, name) for call, name in pairs]
    made = goal_write.export(
        trace, out, form, collectives=chosen, flops_per_s=flops_per_s, lossy=lossy
    )
    print_rows(
        [
            ("written", clean(str(out), 200)),
            ("ranks", count(made.ranks)),
            ("operations", count(made.operations)),
        ]
    )
    print_account(made.account.lines(), most=_MOST_LINES, longest=500)
