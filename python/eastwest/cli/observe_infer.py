"""Command ``eastwest observe infer``: infers the transactions to which spans belong."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from eastwest.cli.guard import fail, guarded
from eastwest.cli.observe_import import ForceOption, LossyOption
from eastwest.cli.options import JsonObjectOption, one_of
from eastwest.cli.screen import console, print_account, print_rows
from eastwest.cli.trace_input import Steps
from eastwest.units import clean, count, percent, span

_MOST_CAUSES = 10
_MOST_SPEEDS = 20

SpansArgument = Annotated[
    Path,
    typer.Argument(metavar="SPANS", help="Folder of imported spans, or a recorded file."),
]


class Method(StrEnum):
    """Methods that infer to which transaction a span belongs (docs/mechanisms/transactions.md)."""

    ids = "ids"
    linking = "linking"
    stitching = "stitching"
    nesting = "nesting"
    convolution = "convolution"


@guarded
def infer(
    spans: SpansArgument,
    method: Annotated[
        str, typer.Option(metavar="|".join(Method), help="Method of inference.")
    ] = "nesting",
    by: Annotated[
        str,
        typer.Option(
            metavar="ATTRIBUTE",
            help="Only for linking: the attribute that all spans of a transaction share.",
        ),
    ] = "",
    rules: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="Only for stitching: file of rules that say which attributes must match.",
        ),
    ] = None,
    rounds: Annotated[
        int,
        typer.Option(
            min=0,
            max=100,
            help="Only for nesting: rounds of refinement; 0: only the published algorithm.",
        ),
    ] = 6,
    step: Annotated[
        float,
        typer.Option(
            min=1e-3,
            metavar="MS",
            help="Only for convolution: time step in ms, the resolution of delays.",
        ),
    ] = 1.0,
    speeds: Annotated[
        str,
        typer.Option(
            metavar="X,X,…",
            help="For nesting and convolution: measure the accuracy at X times the recorded rate "
            "of transactions.",
        ),
    ] = "1",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="Write the inferred spans to this folder."
        ),
    ] = None,
    force: ForceOption = False,
    lossy: LossyOption = False,
    as_json: JsonObjectOption = False,
) -> None:
    """Infer transactions without the recorded parents of spans, and compare with these parents.

    linking and stitching use spans without parents; nesting and convolution only messages: source,
    destination, times. docs/mechanisms/transactions.md describes the methods and their limits.
    """
    from eastwest.observe.grey import check_field  # noqa: PLC0415  slow to load
    from eastwest.observe.infer import Wanted, write  # noqa: PLC0415
    from eastwest.observe.infer import infer as work  # noqa: PLC0415
    from eastwest.observe.kept_account import accounts, lines  # noqa: PLC0415
    from eastwest.observe.load import open_spans  # noqa: PLC0415

    chosen = one_of(Method, method, "--method").value
    if chosen == "linking" and (wrong := check_field(by)):
        fail(f"--by {by!r:.60}: {wrong}")
    if chosen == "stitching" and rules is None:
        fail("--rules is missing: stitching needs a file of rules")
    if chosen == "convolution" and out is not None:
        fail(
            "--out cannot be used with --method convolution, which finds causes between kinds of "
            "messages but no single transactions"
        )
    with Steps("infer") as bar, open_spans(spans, lossy=lossy) as opened:
        wanted = Wanted(chosen, by, rules, rounds, round(step * 1e6), _speeds(speeds))
        found = work(opened, wanted, bar)
        if out is not None:
            write(found, out, opened, force)
        account = accounts(opened.about, opened.name)
    said = {
        "spans": str(spans),
        **found.said,
        **({"out": str(out)} if out else {}),
        "accounts": account,
    }
    if as_json:
        typer.echo(json.dumps(said, allow_nan=False))
        return
    print_rows(_rows(said))
    if "accuracy" in said:
        console().print(_table(said["accuracy"]))
    if "causes" in said:
        console().print(_causes(said["causes"]))
    print_account(lines(account))


def _speeds(text: str) -> list[float]:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not 0 < len(found) <= _MOST_SPEEDS or not all(
        math.isfinite(speed) and 0.01 <= speed <= 1000 for speed in found
    ):
        fail(
            f"--speeds {text!r:.60}: expected up to {_MOST_SPEEDS} numbers from 0.01 to 1000, "
            "separated by commas"
        )
    return found


def _rows(said: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "method", said["method"]
    if "calls" in said:
        messages = f"{count(said['calls'])} calls between {count(said['nodes'])} nodes"
        yield "sees", f"{messages}; {said['concurrency']:.3g} transactions open at once"
    if "transactions" in said:
        yield "finds", f"{count(said['transactions'])} transactions"
    if said.get("alone"):
        yield (
            "alone",
            f"{count(said['alone'])} spans lack the attribute: each is a transaction of its own",
        )
    if said.get("precision") is not None and said.get("recall") is not None:
        right = f"{percent(said['precision'])} of the parents found are correct"
        yield "parents", f"{right}, {percent(said['recall'])} of the true parents are found"
    if "out" in said:
        yield "written", clean(said["out"], 200)


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    whole = "whole" in rows[0]
    names = ["speed", "open at once", "precision", "recall"]
    names += (
        ["whole transactions", "ambiguous calls"]
        if whole
        else ["causes found", "true direct causes"]
    )
    for name in names:
        table.add_column(name, justify="right")
    for row in rows:
        ends = (
            [percent(row["whole"]), percent(row["ambiguous"] / max(1, row["calls"]))]
            if whole
            else [count(row["found"]), count(row["direct"])]
        )
        table.add_row(
            f"{row['speed']:g} ×",
            f"{row['concurrency']:.3g}",
            percent(row["precision"]),
            percent(row["recall"]),
            *ends,
        )
    return table


def _causes(causes: list[dict[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("messages from", "at", "cause those to", "after", "deviations"):
        table.add_column(name, justify="right" if name in {"after", "deviations"} else "left")
    for cause in causes[:_MOST_CAUSES]:
        table.add_row(
            *(Text(clean(cause[name], 30)) for name in ("from", "at", "to")),
            span(cause["delay_s"]),
            f"{cause['deviations']:.3g}",
        )
    if len(causes) > _MOST_CAUSES:
        table.caption = f"and {len(causes) - _MOST_CAUSES} more with --json"
    return table
