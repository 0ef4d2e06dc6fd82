"""Command ``eastwest trace flows``: makes a list of flows from records of routers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eastwest.cli.guard import errors, guarded
from eastwest.cli.options import one_of
from eastwest.cli.screen import print_account
from eastwest.cli.simulate import OnBadRow
from eastwest.files import check_outputs
from eastwest.units import clean, plural, size

if TYPE_CHECKING:
    from eastwest.traces.flows.collect import Wanted

#: Formats of ``trace flows``; docs/guide/flows-from-routers.md describes all but ``htsim``.
_FORMATS = ("auto", "htsim", "nfdump", "netflow", "sflow", "pcap")
_MOST_LINES = 12
_MOST_SAMPLING = 10_000_000


@guarded
def flows(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Flow records, samples or packet captures of one format, or one .cm of htsim.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="List of flows to write (CSV).")
    ],
    source_format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="|".join(_FORMATS),
            help="Format of the files; auto: recognised by their content.",
        ),
    ] = "auto",
    idle: Annotated[
        float,
        typer.Option(
            min=0, max=86_400, help="Longest pause within a flow in s; a longer pause divides it."
        ),
    ] = 15.0,
    sampling: Annotated[
        int,
        typer.Option(
            min=0,
            max=_MOST_SAMPLING,
            metavar="N",
            help="Sampling rate of 1 packet in N; 0: the rate in the records.",
        ),
    ] = 0,
    pair: Annotated[
        bool,
        typer.Option(
            "--pair", help="Only the larger direction of a connection is a flow; default: both."
        ),
    ] = False,
    least: Annotated[
        int, typer.Option(min=1, max=10**15, help="Leave out flows with a smaller payload (bytes).")
    ] = 1,
    within: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NETWORK",
            help="Only flows with both ends in a network such as 10.0.0.0/8; may be repeated.",
        ),
    ] = None,
    hosts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV with columns host and address: only flows of these hosts, by these names.",
        ),
    ] = None,
    on_bad_row: Annotated[
        str,
        typer.Option(
            "--on-bad-row",
            metavar="stop|skip",
            help="At a damaged row or record: stop, or skip it and report it.",
        ),
    ] = "stop",
    starts: Annotated[
        str,
        typer.Option(
            metavar="ps|us",
            help="htsim: unit of start times: ps, as htsim reads them, or us, as its generator "
            "writes them.",
        ),
    ] = "ps",
    lossy: Annotated[
        bool,
        typer.Option(
            "--lossy", help="htsim: leave out link failures, which a list of flows cannot express."
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the files named by --out.")
    ] = False,
) -> None:
    """Make a list of flows, for kind = "flow-list".

    Formats: text of nfdump; messages of NetFlow v5, v9, IPFIX and sFlow v5, in files or captures;
    captures of traffic (pcap, pcapng): docs/guide/flows-from-routers.md. Connection matrices of
    htsim, where connections that begin at triggers or never end are refused.
    """
    from eastwest.errors import InputError  # noqa: PLC0415  as the readers: slow to load
    from eastwest.traces.flows import read  # noqa: PLC0415
    from eastwest.traces.flows.collect import Wanted, told  # noqa: PLC0415

    if source_format not in _FORMATS:
        raise InputError(
            f"--format {clean(source_format, 40)}: must be one of {', '.join(_FORMATS)}"
        )
    action = one_of(OnBadRow, on_bad_row, "--on-bad-row").value
    kind = source_format
    if kind == "auto" and len(files) == 1 and read.sniff(files[0]) == "htsim":
        kind = "htsim"
    if kind == "htsim":
        _matrix(files, out, starts, lossy, force)
        return
    known = None if hosts is None else read.read_hosts(hosts)
    networks = read.networks(within or [])
    wanted: Wanted = Wanted(idle, sampling, pair, least, networks, known)
    inputs = [*files, *([hosts] if hosts is not None else [])]
    check_outputs([out, *read.beside(out)], inputs, force)
    found = read.read(files, kind, wanted, stop=action == "stop")
    read.write(found, out, files)
    typer.echo(f"{told(found)} from {found.source_format}")
    typer.echo(read.shown(found))
    beside = read.beside(out)
    print_account(found.account.lines(), beside[1].name, most=_MOST_LINES, longest=500)
    typer.echo(f"written  {clean(str(out), 200)}, {beside[0].name}, {beside[1].name}")


def _matrix(files: list[Path], out: Path, starts: str, lossy: bool, force: bool) -> None:
    from eastwest.errors import InputError  # noqa: PLC0415  as the reader: slow to load
    from eastwest.traces import matrix  # noqa: PLC0415

    if len(files) != 1:
        raise InputError(
            f"{len(files)} files are given: exactly one connection matrix of htsim is allowed"
        )
    found = matrix.read(files[0], starts, lossy)
    check_outputs([out], files, force)
    matrix.write(found, out)
    payload = size(sum(each.bytes for each in found.connections))
    flows = plural(len(found.connections), "flow")
    typer.echo(f"{flows} of {payload}, hosts 0 to {found.nodes - 1}")
    for line in found.account.lines():
        errors().print(f"eastwest: {clean(line, 500)}", markup=False)
