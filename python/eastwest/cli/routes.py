"""Commands ``eastwest routes``, ``topology import`` and ``topology routes``.

The commands write files of topologies and routes, which scenarios name.
"""

from __future__ import annotations

import csv
import io
import ipaddress
import tomllib
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from eastwest import core, shipped, topologies
from eastwest.cli.guard import guarded
from eastwest.cli.options import SetOption
from eastwest.cli.simulate import ScenarioArgument, overrides
from eastwest.errors import InputError
from eastwest.files import check_outputs, write_whole
from eastwest.run import load_source
from eastwest.topologies import coloured
from eastwest.topologies.fabric import ports_csv
from eastwest.units import clean, plural

_MOST_RATE_BPS = 1e13
OutOption = Annotated[Path, typer.Option("--out", "-o", help="File to write.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace existing files.")]


@guarded
def routes(
    scenario: ScenarioArgument,
    out: OutOption,
    traffic: Annotated[
        str,
        typer.Option(
            help="CSV with columns from, to and bps; or uniform: equal traffic between all pairs."
        ),
    ] = "uniform",
    time_limit: Annotated[
        float, typer.Option(min=0.1, max=86_400, help="Time limit of the solver in s.")
    ] = 60.0,
    settings: SetOption = None,
    force: ForceOption = False,
) -> None:
    """Choose one shortest path for each pair of hosts so that the highest link load is least."""
    source = load_source(scenario)
    shape_file = tomllib.loads(source.text).get("fabric", {}).get("file")
    inputs = [Path(scenario), *([] if traffic == "uniform" else [Path(traffic)])]
    if isinstance(shape_file, str):
        inputs.append(source.base_dir / shape_file)
    check_outputs([out], inputs, force)
    shape = core.topology(
        source.text, str(source.base_dir), str(shipped.DATA), overrides(source.text, settings)
    )
    net = coloured.network(shape)
    uniform = traffic == "uniform"
    matrix = coloured.uniform(net) if uniform else coloured.read_matrix(Path(traffic), net)
    found = coloured.colour(net, matrix, time_limit)
    write_whole(out, found.csv().encode())
    console = Console(highlight=False)
    proof = (
        "proven: no other routes have a lower maximum"
        if found.proven
        else f"not proven to be the minimum: a load of {found.least_possible:.4g} may be possible"
    )
    console.print(f"{plural(len(found.routes), 'route')} in {clean(str(out), 200)}")
    console.print(f"the fullest link between switches carries {found.largest_load:.4g} of its rate")
    console.print(proof)
    for note in found.notes:
        console.print(Text(note, style="yellow"))


@guarded
def topology_import(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="A descriptor of htsim, MRPerf, topohub or containerlab; files of LLDP or NetBox.",
        ),
    ],
    out: OutOption,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="|".join(topologies.FORMATS),
            help="Format; default: recognised by the content.",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(help="Rate of cables in bit/s, if the files give none."),
    ] = None,
    delay_us: Annotated[
        float,
        typer.Option(
            "--delay", min=0, max=1e6, help="Delay of a cable in µs, if the file gives none."
        ),
    ] = 5.0,
    hosts_per_node: Annotated[
        int,
        typer.Option(min=1, max=10_000, help="Hosts at each switch of a network without hosts."),
    ] = 1,
    host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Inventories: names of devices that are hosts, such as 'srv*'; may be repeated.",
        ),
    ] = None,
    hosts_at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Inventories without hosts: names of switches that get hosts, such as 'leaf*'; "
            "may be repeated.",
        ),
    ] = None,
    devices: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Inventories: use only devices with these names, such as 'dc1-*'; may be "
            "repeated.",
        ),
    ] = None,
    demands: Annotated[
        Path | None, typer.Option(help="File for the traffic matrix, if the descriptor has one.")
    ] = None,
    ports: Annotated[
        Path | None,
        typer.Option(help="File for the ports of all cables (CSV), for eastwest topology routes."),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write the topology file of a descriptor of another tool, or of an inventory.

    Inventories: neighbours by LLDP (lldpctl, networkctl), topologies of containerlab, exports of
    NetBox: docs/guide/inventories.md.
    """
    if form is not None and form not in topologies.FORMATS:
        raise InputError(
            f"--format {clean(form, 40)}: must be one of {', '.join(topologies.FORMATS)}"
        )
    if rate is not None and not 1e3 <= rate <= _MOST_RATE_BPS:
        raise InputError(f"--rate {rate:g}: must be from 1e3 to {_MOST_RATE_BPS:g} bit/s")
    check_outputs([each for each in (out, demands, ports) if each is not None], files, force)
    assumed = topologies.Assumed(
        rate,
        delay_us * 1e-6,
        hosts_per_node,
        tuple(host or ()),
        tuple(hosts_at or ()),
        tuple(devices or ()),
    )
    fabric = topologies.read_all(files, form, assumed)
    if demands is not None and not fabric.demands_bps:
        raise InputError(f"--demands: {files[0]} has no traffic matrix to write")
    source = files[0].name if len(files) == 1 else f"{len(files)} files"
    write_whole(out, fabric.to_toml(f"from {source}").encode())
    console = Console(highlight=False)
    sizes = (
        f"{plural(len(fabric.hosts), 'host')}, "
        f"{plural(len(fabric.switches), 'switch', 'switches')}, "
        f"{plural(len(fabric.cables), 'cable')}"
    )
    console.print(f"{sizes} in {clean(str(out), 200)}")
    if demands is not None:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["from", "to", "bps"])
        writer.writerows([a, b, f"{bps:.0f}"] for (a, b), bps in fabric.demands_bps.items())
        write_whole(demands, text.getvalue().encode())
        console.print(f"{plural(len(fabric.demands_bps), 'demand')} in {clean(str(demands), 200)}")
    if ports is not None:
        write_whole(ports, ports_csv(fabric).encode())
        cables = plural(len(fabric.cables), "cable with its ports", "cables with their ports")
        console.print(f"{cables} in {clean(str(ports), 200)}")
    for note in fabric.notes:
        console.print(Text(note, style="yellow"))


@guarded
def topology_routes(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Output of FRR's show ip route json, one file for each switch: SWITCH.json.",
        ),
    ],
    ports: Annotated[
        Path, typer.Option(help="Ports of the cables (eastwest topology import --ports).")
    ],
    hosts: Annotated[Path, typer.Option(help="CSV with the columns host and address.")],
    out: OutOption,
    pairs: Annotated[
        Path | None,
        typer.Option(help="CSV with the columns from and to; default: all pairs of hosts."),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write the routes file of the routing tables of FRR, for routing = "explicit"."""
    from eastwest.topologies import frr  # noqa: PLC0415  not needed by other commands
    from eastwest.traces.flows.read import read_hosts  # noqa: PLC0415

    check_outputs([out], [*files, ports, hosts, *([pairs] if pairs is not None else [])], force)
    addresses: dict[str, str] = {}
    for address, host in read_hosts(hosts).items():
        addresses.setdefault(host, str(ipaddress.ip_address(address)))
    chosen = None if pairs is None else frr.read_pairs(pairs, addresses)
    found = frr.routes(topologies.load_all(files), frr.read_ports(ports), addresses, chosen)
    write_whole(out, found.csv().encode())
    console = Console(highlight=False)
    console.print(f"{plural(len(found.paths), 'route')} in {clean(str(out), 200)}")
    for note in found.notes:
        console.print(Text(note, style="yellow"))
