"""Command ``eastwest observe workload``: makes a workload from spans."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from eastwest.cli.guard import guarded
from eastwest.cli.observe_import import LossyOption
from eastwest.cli.observe_infer import SpansArgument
from eastwest.cli.options import JsonObjectOption
from eastwest.cli.screen import print_account, print_rows
from eastwest.cli.trace_input import SeedOption, Steps
from eastwest.units import clean, count, percent, span


@guarded
def workload(
    spans: SpansArgument,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder for the workload.")
    ],
    between: Annotated[
        str,
        typer.Option(
            metavar="host|network",
            help="Meaning of the time between the client's and the server's span of a call: host "
            "(computing of the called component) or network (left out: the simulated network "
            "takes its place).",
        ),
    ] = "host",
    request_bytes: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Bytes of requests of unknown size: 1600, uniform:LEAST:MOST or "
            "lognormal:MEDIAN:SIGMA.",
        ),
    ] = "1600",
    response_bytes: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Bytes of responses of unknown size, in the form of --request-bytes.",
        ),
    ] = "uniform:1600:2000",
    transactions: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=5_000_000,
            metavar="N",
            help="Number of transactions to draw at random; default: each recorded one once.",
        ),
    ] = None,
    draw: Annotated[
        str,
        typer.Option(
            metavar="trees|levels",
            help="With --transactions: draw whole transactions, or new times and sizes of calls.",
        ),
    ] = "trees",
    seed: SeedOption = 1,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing workload in the folder of --out.")
    ] = False,
    lossy: LossyOption = False,
    as_json: JsonObjectOption = False,
) -> None:
    """Make a workload from spans: dependencies of calls, computing times and sizes.

    FOLDER gets the table that kind = "transactions" replays, a scenario to run it, cases to
    compare, the messages in the study's trace format, and the fitted distributions of every level.
    """
    from eastwest.observe.kept_account import lines  # noqa: PLC0415  slow to load
    from eastwest.observe.load import open_spans  # noqa: PLC0415  slow to load
    from eastwest.observe.replay import Wanted, write  # noqa: PLC0415

    with Steps("workload") as bar, open_spans(spans, lossy=lossy) as opened:
        wanted = Wanted(between, request_bytes, response_bytes, transactions, draw, seed)
        said = write(opened, out, wanted, force=force, told=bar)
    if as_json:
        typer.echo(json.dumps({"out": str(out), **said}, allow_nan=False))
        return
    print_rows(_rows(said, out))
    print_account(lines(said["accounts"]))


def _rows(said: dict[str, Any], out: Path) -> Iterator[tuple[str, str]]:
    yield "workload", clean(str(out), 200)
    number = f"{count(said['transactions'])} transactions, {count(said['calls'])} calls"
    yield "has", f"{number} between {count(len(said['components']))} components"
    if said["made"]:
        yield (
            "made",
            f"drawn from {count(said['made']['from'])} recorded transactions "
            f"({said['made']['how']})",
        )
    response = said["recorded_response_s"]
    yield "took", f"{span(response['mean'])} on average, {span(response['max'])} at most"
    between = said["between"]
    per_call = between["seconds"] / max(1, between["calls"])
    words = "computing" if between["counted_as"] == "host" else "the network's: left out"
    yield (
        "between",
        f"{span(per_call)} between client and server of a call on average, counted as {words}",
    )
    for name, found in said["sizes"].items():
        whole, side = sum(found.values()) or 1, name.partition("_")[0]
        origins = {
            "attributes": "of the sizes are from attributes of spans",
            "operation": "are from other calls of the same operation",
            "default": f"are assumed ({said['sizes_default'][side]} B)",
        }
        shares = [f"{percent(found[k] / whole)} {text}" for k, text in origins.items() if found[k]]
        yield side, ", ".join(shares)
    for variable in said["levels"]:
        if variable["count"]:
            yield f"{variable['level']} {variable['what']}", _variable(variable)
    yield "run it", f"eastwest run {clean(str(out / 'scenario.toml'), 200)}"


def _variable(variable: dict[str, Any]) -> str:
    mean = f"{variable['mean']:.4g} {variable['unit']} on average"
    note = f"; {variable['note']}" if "note" in variable else ""
    if not variable["candidates"]:
        return f"{mean}, {count(variable['count'])} values{note}"
    nearest = variable["candidates"][0]
    near = f"nearest {nearest['name']}, KS distance {nearest['distance']:.3f}"
    return f"{mean}; {variable['distribution']} ({near}){note}"
