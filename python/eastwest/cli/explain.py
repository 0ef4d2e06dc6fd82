"""Commands ``eastwest explain`` and ``eastwest timeline``."""

from __future__ import annotations

import json
import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from eastwest.cli.guard import errors, fail, guarded
from eastwest.cli.options import JsonObjectOption, one_of
from eastwest.cli.progress import RunBar
from eastwest.explain import Story, difference, slowest
from eastwest.explain import explain as tell
from eastwest.paraver import paraver
from eastwest.results import Result
from eastwest.timeline import MOST_EVENTS, trace, write
from eastwest.views.labels import a


class Subject(StrEnum):
    """Kinds of subjects that ``eastwest explain`` explains."""

    flow = "flow"
    exchange = "exchange"
    job = "job"
    task = "task"
    connection = "connection"
    program = "program"
    packet = "packet"
    slowest = "slowest"


#: Maximum wall time of a run, in s, that ``explain`` simulates again without ``--rerun``.
_SHORT_S = 10

FolderArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A result folder.")]


@guarded
def explain(
    folder: FolderArgument,
    subject: Annotated[
        str,
        typer.Argument(
            metavar="flow|exchange|job|task|connection|program|packet|slowest|RUN",
            help="Kind of object to explain; slowest: list candidates; a second result folder: "
            "where the two first differ, and what followed.",
        ),
    ],
    number: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]",
            help="Number of the flow, job or connection; name of a job; JOB/map/3 for a task; flow "
            "of the request or response for an exchange; workload of an MPI program; FLOW@BYTE for "
            "the packet with this byte of a flow, from 0.",
        ),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(
            help="Workload of the job, needed if several workloads have a job of this number."
        ),
    ] = None,
    top: Annotated[
        int,
        typer.Option(
            min=1,
            max=1000,
            help="Maximum number of candidates that slowest lists, or of flows and jobs with "
            "the largest changes.",
        ),
    ] = 5,
    rerun: Annotated[
        bool | None,
        typer.Option(
            "--rerun/--no-rerun",
            help="Simulate the run again if it has not recorded where the time of flows went "
            f"(measure.flow_parts). Default: if it took less than {_SHORT_S} s.",
        ),
    ] = None,
    as_json: JsonObjectOption = False,
) -> None:
    """Explain why a flow or job of a result took as long as it did, or why two results differ."""
    if subject not in set(Subject) and ("/" in subject or Path(subject).exists()):
        if number is not None:
            fail(
                f"{number!r:.60} is not allowed after two result folders, which are compared as a "
                "whole: eastwest explain RUN RUN"
            )
        _print(difference(folder, subject, top), as_json)
        return
    wanted = one_of(Subject, subject, "explain")
    if wanted is Subject.slowest:
        story = slowest(Result(folder), top)
    elif number is None:
        fail(
            f"ID is missing: name {a(wanted.value)}; to list candidates: "
            f"eastwest explain {folder} slowest"
        )
    else:
        limit_s = {None: _SHORT_S, True: math.inf, False: 0}[rerun]
        with RunBar(errors(), "simulating again") as progress:
            story = tell(
                Result(folder),
                wanted.value,
                number,
                workload=workload,
                rerun_s=limit_s,
                progress=progress,
            )
    _print(story, as_json)


def _print(story: Story, as_json: bool) -> None:
    """Print an explanation as text or JSON."""
    typer.echo(json.dumps(story.to_dict(), allow_nan=False) if as_json else story.text())


@guarded
def timeline(
    folder: FolderArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="File to write, compressed if it ends in .gz; default: in the result folder.",
        ),
    ] = None,
    most: Annotated[
        int,
        typer.Option(min=100, help="Maximum number of events; if exceeded, the file is thinned."),
    ] = MOST_EVENTS,
) -> None:
    """Write a timeline of a result, to open in ui.perfetto.dev.

    If the name of the file ends in .prv, the command writes a trace of the MPI programs for
    Paraver, with its .pcf and .row files.
    """
    if out is not None and out.suffix == ".prv":
        typer.echo(str(paraver(Result(folder), out)))
        return
    made = trace(Result(folder), most)
    notes = made["otherData"]["notes"]
    typer.echo(str(write(made, out or folder / "timeline.json")))
    if notes:
        errors().print(f"note: {notes}", markup=False)
