"""Command ``eastwest trace import``: imports recorded workloads."""

from __future__ import annotations

import datetime
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eastwest.cli.guard import errors, guarded
from eastwest.cli.options import JsonObjectOption, one_of
from eastwest.cli.progress import Bar
from eastwest.cli.screen import print_account, print_rows
from eastwest.cli.simulate import OnBadRow
from eastwest.errors import InputError
from eastwest.traces.form import SOURCES, TABLES
from eastwest.traces.mpi.form import FORMATS as MPI_SOURCES
from eastwest.units import clean, count, percent, size, span

if TYPE_CHECKING:
    from eastwest.traces.made import Imported

#: Maximum number of printed remarks of an import on records; trace.json has all remarks.
_MOST_LINES = 8
#: Columns of sizes in the table of jobs: name of the column → word before the printed sum.
_BYTES = {
    "input_bytes": "input",
    "map_output_bytes": "map output",
    "shuffle_bytes": "shuffle",
    "output_bytes": "output",
}


@guarded
def import_files(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Recorded files of one format, and their topology or job configurations.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder to write the trace to.")
    ],
    source_format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="auto|" + "|".join([*SOURCES, *MPI_SOURCES]),
            help="Format of the files; auto: recognised by their content.",
        ),
    ] = "auto",
    on_bad_row: Annotated[
        str,
        typer.Option(
            "--on-bad-row",
            metavar="stop|skip",
            help="At a damaged row or record: stop, or skip it and report it.",
        ),
    ] = "stop",
    ranks: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65_536,
            help="Number of MPI ranks that all execute the Chakra trace of one rank.",
        ),
    ] = None,
    lossy: Annotated[
        bool,
        typer.Option(
            "--lossy",
            help="Also import records that a trace cannot express as recorded, and count them in "
            "trace.json; without it, they are refused.",
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing trace in the folder of --out.")
    ] = False,
    as_json: JsonObjectOption = False,
) -> None:
    """Read recorded workloads into a trace: a folder of Parquet tables, or of MPI ranks.

    Formats: SWIM, Rumen, job histories of Hadoop 0.20 to 3, Spark event logs, CSV and Parquet;
    plain or packed with gzip or bzip2. docs/mechanisms/traces.md lists what each has and lacks.
    MPI programs: SimGrid's time-independent traces (ti), Dimemas, OTF2, GOAL, Chakra:
    docs/guide/mpi.md.
    """
    from eastwest.traces.mpi import take as mpi  # noqa: PLC0415  slow to load

    if source_format in MPI_SOURCES or (source_format == "auto" and mpi.find(files)):
        taken = mpi.import_mpi(
            files, out, source_format=source_format, ranks=ranks, force=force, lossy=lossy
        )
        if as_json:
            typer.echo(json.dumps({"path": str(out), **taken.about}, allow_nan=False))
        else:
            _print_mpi(taken)
        return
    if ranks is not None:
        raise InputError("--ranks is only allowed with Chakra traces of MPI programs")
    from eastwest.traces.take import import_trace  # noqa: PLC0415  slow to load

    action = one_of(OnBadRow, on_bad_row, "--on-bad-row").value
    with _ReadBar(len(files)) as bar:
        imported = import_trace(
            files,
            out,
            source_format=source_format,
            on_bad_row=action,
            lossy=lossy,
            force=force,
            told=bar,
        )
    if as_json:
        typer.echo(json.dumps({"path": str(out), **imported.about}, allow_nan=False))
        return
    _print(imported, _rows(imported, imported.about))


def _print_mpi(taken: Imported) -> None:
    about = taken.about
    calls = ", ".join(f"{count(n)} {clean(call, 30)}" for call, n in about["calls"].items())
    _print(
        taken,
        [
            ("trace", clean(str(taken.path), 200)),
            ("from", f"{taken.source_format}, {count(len(about['files']))} named files"),
            ("ranks", count(about["ranks"])),
            ("calls", calls),
        ],
    )


class _ReadBar(Bar):
    """The progress bar of an import, with the current file and the share of all files read."""

    def __init__(self, files: int) -> None:
        super().__init__(errors(), "import")
        self._files = files
        self._seen: dict[str, None] = {}
        self._shown = -1

    def __call__(self, file: str, share: float) -> None:
        """Show that ``share`` (0 to 1) of ``file`` has been read."""
        self._seen[file] = None
        done = (len(self._seen) - 1 + min(1.0, share)) / self._files
        if math.floor(500 * done) != self._shown:
            self._shown = math.floor(500 * done)
            self.show(f"{percent(math.floor(1000 * done) / 1000)}", done, Path(file).name)


def _print(imported: Imported, rows: list[tuple[str, str]]) -> None:
    print_rows(rows)
    print_account(imported.account.lines(), "trace.json", most=_MOST_LINES, longest=500)


def _rows(imported: Imported, about: dict[str, Any]) -> list[tuple[str, str]]:
    rows, files = about["rows"], len(about["files"])
    words = {"swim": "SWIM", "rumen": "Rumen", "spark": "Spark event log", "table": "table"}
    kind = words.get(imported.source_format) or SOURCES[imported.source_format].partition(":")[0]
    found = [
        ("trace", clean(str(imported.path), 200)),
        ("from", f"{kind}, {count(files)} file" + "s" * (files > 1)),
        ("jobs", _jobs(about)),
        ("bytes", _bytes(about)),
    ]
    others = [f"{count(rows[name])} {name}" for name in TABLES if name != "jobs" and name in rows]
    if others:
        found.append(("also", ", ".join(others)))
    if about["began_s"] is not None:
        began = datetime.datetime.fromtimestamp(about["began_s"], datetime.UTC)
        found.append(("began", f"{began:%Y-%m-%d %H:%M:%S} UTC"))
    lacks = [name.removeprefix("jobs.") for name in about["lacks"] if _told(name)]
    if lacks:
        found.append(("lacks", ", ".join(lacks)))
    if about["rows_skipped"]:
        found.append(("left out", f"{count(about['rows_skipped'])} rows"))
    return found


def _told(name: str) -> bool:
    """Whether the command prints that the table or column ``name`` is missing in the trace.

    ``name`` is ``table`` or ``table.column``. Missing columns are printed only for ``jobs``.
    """
    return "." not in name or name.startswith("jobs.")


def _jobs(about: dict[str, Any]) -> str:
    jobs = about["rows"].get("jobs", 0)
    if not jobs:
        return "0"
    told = f"{count(jobs)} in {span(about['end_s'] - about['first_submit_s'])}"
    ends = [f"{count(n)} {how}" for how, n in about["outcomes"].items()]
    return told + (f" ({', '.join(ends)})" if ends else "")


def _bytes(about: dict[str, Any]) -> str:
    known = about["totals"]
    told = [f"{word} {size(known[name])}" for name, word in _BYTES.items() if name in known]
    return " · ".join(told) or "not known"
