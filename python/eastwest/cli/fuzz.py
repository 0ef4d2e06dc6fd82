"""Command ``eastwest fuzz``: runs generated scenarios and checks their results."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from eastwest import core
from eastwest import fuzz as campaign
from eastwest.cli.guard import MISSED, errors, guarded
from eastwest.cli.options import JsonObjectOption, ReleaseOption, WithOption, use_mechanisms
from eastwest.cli.progress import Bar
from eastwest.units import clean, count

#: Settings whose tried pairs the printed summary counts; the tally file has all settings.
SHOWN = (
    "fabric.scheduler",
    "fabric.qcn",
    "fabric.pfc",
    "fabric.energy.kind",
    "fabric.queue.kind",
    "fault.*.kind",
    "workload.*.transport",
    "workload.*.kind",
    "fabric.reference_ports",
    "threads",
)
#: Maximum number of rarely tried pairs of settings that the printed summary names.
MOST_NAMED = 5


@guarded
def fuzz(
    cases: Annotated[int, typer.Option(min=1, help="Number of generated scenarios.")] = 1000,
    seed: Annotated[
        int, typer.Option(min=0, max=2**64 - 1, help="Seed of the generated scenarios.")
    ] = 1,
    first: Annotated[int, typer.Option(min=0, help="Number of the first scenario.")] = 0,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1, max=64, help="Number of concurrent scenarios; default: one for each core."
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FOLDER", help="Folder for scenarios that fail."),
    ] = Path("fuzz-failures"),
    tally: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File that counts the tried pairs of settings over all calls; rarely tried pairs "
            "come first.",
        ),
    ] = None,
    have: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH[=VALUE]",
            help="Setting that every scenario must have, such as fabric.pfc, fabric.queue.kind=red "
            "or workload.*.kind=mpi; may be repeated.",
        ),
    ] = None,
    mechanisms: WithOption = None,
    release: ReleaseOption = False,
    as_json: JsonObjectOption = False,
) -> None:
    """Run generated valid scenarios in several ways whose results must agree.

    Each scenario is run with reference ports, on several threads, stopped and resumed, with its
    settings in another order, and from its text with all defaults; packets must be conserved at any
    time, no message may take less time than on an idle path, and states and energy of links must
    add up. A failing scenario is reduced to a few lines and written to a folder. With --with, every
    case uses one of the mechanisms, and runs twice. Exit code 1: a case failed.
    """
    use_mechanisms(mechanisms, release, complete=True)
    # Only one thread at a time can run mechanisms in Python.
    at_once = jobs or (1 if core.extras().sketches else os.cpu_count() or 1)
    sums = campaign.load(tally) if tally is not None else campaign.Tally()
    with Bar(errors(), "fuzz") as bar:

        def show(done: int, failed: int) -> None:
            bar.show(f"{count(done)}/{count(cases)} cases · {failed} failed", done / cases)

        wanted = campaign.Campaign(cases, seed, first, at_once, tally is not None, have or ())
        result = campaign.run(wanted, sums, show)
    if tally is not None:
        campaign.save(sums, campaign.levels(), tally)
    places = [str(campaign.write_case(one, out, mechanisms or ())) for one in result["found"]]
    if as_json:
        typer.echo(json.dumps(_as_json(result, places)))
    else:
        _show(result, places, sums)
    if places:
        raise typer.Exit(MISSED)


def _as_json(result: dict[str, Any], places: list[str]) -> dict[str, Any]:
    failures = [
        {"case": one["case"], "oracle": one["oracle"], "message": one["message"], "folder": place}
        for one, place in zip(result["found"], places, strict=True)
    ]
    return {**{name: result[name] for name in campaign.SUMS}, "failures": failures}


def _show(result: dict[str, Any], places: list[str], tally: campaign.Tally) -> None:
    screen = Console(highlight=False)
    screen.print(
        f"{count(result['cases'])} scenarios checked: {count(result['kept'])} stopped and resumed, "
        f"{count(result['in_parts'])} on several threads, {count(result['packets'])} packets, "
        f"{count(result['events'])} events. {count(result['too_large'])} were too large, "
        f"{count(result['refused'])} combinations were rejected by check."
    )
    screen.print(_least(tally))
    rare = tally.rare(campaign.levels())
    if rare and tally.cases > result["cases"]:
        screen.print(
            f"{count(len(rare))} pairs of settings were tried less than {campaign.ENOUGH} times:"
        )
        for a, b, tried, _ in sorted(rare, key=lambda pair: pair[2])[:MOST_NAMED]:
            screen.print(f"  {_name(a)} with {_name(b)}: {tried}", markup=False)
    for one, place in zip(result["found"], places, strict=True):
        first_line = one["message"].strip().splitlines()[0] if one["message"].strip() else ""
        screen.print(
            f"case {one['case']} breaks {one['oracle']}: {clean(first_line, 200)}", markup=False
        )
        screen.print(f"  {clean(place, 200)}/scenario.toml", markup=False)
    screen.print(f"{result['cases'] - len(places)} passed, {len(places)} failed")


def _least(tally: campaign.Tally) -> Table:
    """Return a table of the main settings in rows and columns, with numbers of tries.

    A cell has the number of tries of the rarest pair of values of two settings, among the pairs
    that have been tried.
    """
    least: dict[tuple[str, str], int] = defaultdict(lambda: 1 << 62)
    for ((a, _), (b, _)), (tried, _) in tally.pairs.items():
        if tried:
            pair = (a, b) if a in SHOWN and b in SHOWN else None
            if pair is not None:
                key = (min(pair), max(pair))
                least[key] = min(least[key], tried)
    table = Table(
        title="number of tries of the rarest pair of values, for each two settings",
        box=box.SIMPLE_HEAD,
        padding=(0, 1),
    )
    table.add_column("")
    for path in SHOWN:
        table.add_column(_short(path), justify="right")
    for row in SHOWN:
        cells = [least.get((min(row, other), max(row, other))) for other in SHOWN]
        table.add_row(_short(row), *("·" if n is None else str(n) for n in cells))
    return table


def _short(path: str) -> str:
    steps = [step for step in path.split(".") if step not in {"*", "fabric", "kind"}]
    return steps[-1][:9] if steps else path


def _name(level: campaign.Level) -> str:
    path, value = level
    return path if value == "given" else f"{path} = {value}"
