"""Commands ``eastwest schema``, ``topology list``, ``topology show`` and ``version``."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from eastwest import core, shipped
from eastwest.cli.guard import guarded
from eastwest.cli.lines import grid
from eastwest.cli.options import (
    JsonObjectOption,
    ReleaseOption,
    SetOption,
    WithOption,
    use_mechanisms,
)
from eastwest.cli.simulate import ScenarioArgument, overrides
from eastwest.json_schema import json_schema
from eastwest.run import load_source
from eastwest.units import clean, rate, span, tier_words


@guarded
def schema(
    as_json_schema: Annotated[
        bool,
        typer.Option(
            "--json-schema",
            help="Print a JSON schema (draft 7), with which editors complete and check scenarios.",
        ),
    ] = False,
) -> None:
    """Print every setting of a scenario as JSON: type, default, allowed range, meaning."""
    typer.echo(json.dumps(json_schema(), indent=1) if as_json_schema else core.schema())


@guarded
def version(
    as_json: JsonObjectOption = False,
) -> None:
    """Print the version of Eastwest and the options of its build."""
    if as_json:
        typer.echo(json.dumps({"version": core.version(), **core.build_info()}))
        return
    print_version()


def print_version() -> None:
    """Print the version of Eastwest and the options of its build as one line."""
    details = ", ".join(f"{key} {value}" for key, value in core.build_info().items())
    typer.echo(f"eastwest {core.version()}" + (f" ({details})" if details else ""))


@guarded
def topology_list() -> None:
    """List the kinds of fabric (network topology) and the shipped scenarios."""
    console = Console(highlight=False)
    kinds = Table.grid(padding=(0, 2))
    for key in json.loads(core.schema())["keys"]:
        if key["path"] == "fabric.kind":
            for choice in key["choices"]:
                kinds.add_row(Text(clean(choice["name"]), style="bold"), clean(choice["doc"]))
    console.print(kinds)
    console.print(Text(f"shipped scenarios: {', '.join(shipped.names()) or 'none'}"))


@guarded
def topology_show(
    scenario: ScenarioArgument,
    settings: SetOption = None,
    as_json: JsonObjectOption = False,
    mechanisms: WithOption = None,
    release: ReleaseOption = False,
) -> None:
    """Show the nodes and cables of a scenario's fabric."""
    use_mechanisms(mechanisms, release)
    source = load_source(scenario)
    asked = (
        source.text,
        str(source.base_dir),
        str(shipped.DATA),
        overrides(source.text, settings),
    )
    if as_json:
        typer.echo(json.dumps(core.topology(*asked)))
        return
    shape = core.topology_kinds(*asked)
    rows = [
        ("name", clean(shape["name"]), ""),
        ("hosts", f"{shape['hosts']:,}", ""),
        ("switches", f"{shape['switches']:,}", ""),
    ]
    for tier, bits_per_s, delay_us, number in shape["kinds"]:
        each = f"{rate(bits_per_s)} each way, {span(delay_us / 1e6)}"
        rows.append(("cables", f"{number:,} {tier_words(tier)}, {each}", ""))
    rows += [("note", clean(note, 2000), "yellow") for note in shape["notes"]]
    console = Console(highlight=False)
    console.print(grid(rows, console.width))
