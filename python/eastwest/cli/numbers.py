"""Numbers that commands read and write: quantities with units, lists, rows as CSV and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from eastwest import spreadsheet
from eastwest.cli.guard import fail
from eastwest.files import write_whole
from eastwest.sweep.values import Bound

Row = TypeVar("Row", bound=Mapping[str, Any])

CsvOption = Annotated[Path | None, typer.Option("--csv", help="Write the numbers as CSV.")]
FrameOption = Annotated[
    str, typer.Option(metavar="SIZE", help="Length of a packet on the link in bytes.")
]


def quantity(option: str, text: str, kind: str) -> float:
    """Return a size, time or rate in its smallest unit."""
    bound = Bound.read(text.strip())
    if bound is None or bound.kind != kind:
        examples = {"size": '"64 KB"', "time": '"1 ms"', "rate": '"1 Gbit/s"'}
        fail(f"{option} {text!r}: must be a {kind}, such as {examples[kind]}")
    return float(bound.number)


def seconds(option: str, text: str) -> float:
    """Return a time in s."""
    return quantity(option, text, "time") / 1e12


def several_seconds(option: str, text: str) -> list[float]:
    """Return times that are separated by commas, in s."""
    return [seconds(option, part) for part in text.split(",")]


def several(option: str, text: str) -> list[float]:
    """Return numbers that are separated by commas."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        fail(f"{option} {text!r:.60}: must be numbers, such as 2,8")


def table_csv(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows as CSV; the first line has the names of the columns."""
    head = list(rows[0])
    return spreadsheet.table(head, ([row[name] for name in head] for row in rows))


def put(
    rows: list[Row], csv_file: Path | None, as_json: bool, show: Callable[[list[Row]], None]
) -> None:
    """Write rows as CSV where a file is named; print them as JSON, or else with ``show``."""
    if csv_file is not None:
        write_whole(csv_file, table_csv(rows).encode())
    if as_json:
        typer.echo(json.dumps(rows, allow_nan=False))
    else:
        show(rows)


def draw(figure: Any, path: Path) -> None:
    """Write a figure of matplotlib to a file."""
    from eastwest.plot.picture import save  # noqa: PLC0415  slow to load

    save(figure, path)
