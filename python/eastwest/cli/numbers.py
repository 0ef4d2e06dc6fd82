"""Input and output of numbers by commands: quantities with units, lists, rows as CSV and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.table import Table

from eastwest import spreadsheet
from eastwest.cli.guard import fail
from eastwest.cli.screen import headed
from eastwest.files import write_whole
from eastwest.sweep.values import Bound
from eastwest.units import percent, span

Row = TypeVar("Row", bound=Mapping[str, Any])

CsvOption = Annotated[Path | None, typer.Option("--csv", help="Write the numbers as CSV.")]
FrameOption = Annotated[
    str, typer.Option(metavar="SIZE", help="Length of a packet on the link in bytes.")
]


def quantity(option: str, text: str, kind: str) -> float:
    """Return the number of a text with a unit: a size in bytes, a time in ps or a rate in bit/s.

    ``kind`` is ``size``, ``time`` or ``rate``. For a wrong text, exits with a message that names
    ``option``.
    """
    bound = Bound.read(text.strip())
    if bound is None or bound.kind != kind:
        examples = {"size": '"64 KB"', "time": '"1 ms"', "rate": '"1 Gbit/s"'}
        fail(f"{option} {text!r}: must be a {kind}, such as {examples[kind]}")
    return float(bound.number)


def seconds(option: str, text: str) -> float:
    """Return a time such as ``2 ms`` in s; for a wrong text, exit with a message on ``option``."""
    return quantity(option, text, "time") / 1e12


def several_seconds(option: str, text: str) -> list[float]:
    """Return times separated by commas, in s; for a wrong text, exit with a message."""
    return [seconds(option, part) for part in text.split(",")]


def several(option: str, text: str) -> list[float]:
    """Return numbers separated by commas; for a wrong text, exit with a message on ``option``."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = [math.nan]
    if not all(map(math.isfinite, found)):
        fail(f"{option} {text!r:.60}: must be finite numbers separated by commas, such as 2,8")
    return found


def table_csv(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows as CSV text; the first line has the names of the columns."""
    head = list(rows[0])
    return spreadsheet.table(head, ([row[name] for name in head] for row in rows))


#: Columns of tables of control loops: key in the rows → (heading, function that formats a value).
_COLUMNS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "load": ("load", str),
    "flows": ("flows", lambda v: f"{v:g}"),
    "delay_us": ("delay", lambda v: span(v / 1e6)),
    "queue": ("queue", lambda v: f"{v:.1f}"),
    "deviation": ("deviation", lambda v: f"{v:.1f}"),
    "window": ("window", lambda v: f"{v:.1f}"),
    "rate_pps": ("rate, packets/s", lambda v: f"{v:,.0f}"),
    "marked": ("marked", lambda v: f"{v:.2%}"),
    "lowest": ("lowest", lambda v: f"{v:.1f}"),
    "highest": ("highest", lambda v: f"{v:.1f}"),
    "empty": ("empty", lambda v: f"{v:.1%}"),
    "idle": ("idle", percent),
    "lost": ("lost", lambda v: f"{v:.0f}"),
    "gamma": ("γ", lambda v: f"{v:.2f}"),
    "norm": ("norm", lambda v: f"{v:.2f}"),
    "order": ("order", str),
    "stable": ("stable", lambda v: "yes" if v else "no"),
    "settles_us": ("settles", lambda v: "–" if v is None else span(v / 1e6)),
    "sensitivity": ("sensitivity", lambda v: f"{v:.2f}"),
    "gain_margin_db": ("gain margin", lambda v: "–" if v is None else f"{v:.1f} dB"),
    "phase_margin_deg": ("phase margin", lambda v: "–" if v is None else f"{v:.0f}°"),
    "period_us": ("period", lambda v: "–" if v is None else span(v / 1e6)),
}


def table_of(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return a printable table of the numbers of control loops; all rows have the same keys."""
    shown = {key: value for key, value in _COLUMNS.items() if key in rows[0]}
    table = headed(*(heading for heading, _ in shown.values()))
    for row in rows:
        table.add_row(*(text(row[key]) for key, (_, text) in shown.items()))
    return table


def put(
    rows: list[Row], csv_file: Path | None, as_json: bool, show: Callable[[list[Row]], None]
) -> None:
    """Write rows to ``csv_file``, if it is given; print them as JSON, or else by ``show``."""
    if csv_file is not None:
        write_whole(csv_file, table_csv(rows).encode())
    if as_json:
        typer.echo(json.dumps(rows, allow_nan=False))
    else:
        show(rows)
