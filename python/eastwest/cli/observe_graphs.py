"""Command ``eastwest observe graphs``: graphs of services, components and infrastructure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eastwest import core, shipped
from eastwest.cli.guard import guarded
from eastwest.cli.observe_import import LossyOption
from eastwest.cli.observe_infer import SpansArgument
from eastwest.cli.options import JsonObjectOption
from eastwest.cli.screen import print_account, print_rows
from eastwest.cli.trace_input import Steps
from eastwest.folders import check_folder
from eastwest.run import load_source
from eastwest.units import clean, count, percent, span

if TYPE_CHECKING:
    from eastwest.observe.graphs import Graphs
    from eastwest.observe.kept_account import Accounts
    from eastwest.report.observe import Shown

_MOST_SERVICES = 4
#: Columns of the table of spans that graphs do not need.
_UNUSED = ("attributes", "extra")


@guarded
def graphs(
    spans: SpansArgument,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FOLDER", help="Folder for the page and the graphs."),
    ],
    topology: Annotated[
        str | None,
        typer.Option(
            metavar="SCENARIO",
            help="A scenario file or shipped scenario with the fabric below the services; "
            "without it, one network node joins the hosts.",
        ),
    ] = None,
    placement: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="File with the columns instance and host; without it, hosts come from the "
            "spans or are assumed.",
        ),
    ] = None,
    transaction: Annotated[
        str,
        typer.Option(
            metavar="TRACE",
            help="Beginning of the id of the transaction to show; default: the slowest.",
        ),
    ] = "",
    lossy: LossyOption = False,
    as_json: JsonObjectOption = False,
) -> None:
    """Make the graphs of services, components and infrastructure, as GraphML and as one page.

    The page has all three, the path of one transaction through them, its critical path, and the
    critical time of all transactions by service. Files in FOLDER are replaced.
    """
    from eastwest.observe import transaction as one  # noqa: PLC0415  slow to load
    from eastwest.observe.form import TABLES  # noqa: PLC0415
    from eastwest.observe.graphs import build, read_placement  # noqa: PLC0415
    from eastwest.observe.kept_account import accounts, lines  # noqa: PLC0415
    from eastwest.observe.load import open_spans  # noqa: PLC0415
    from eastwest.observe.path import Forest, time_by_service  # noqa: PLC0415
    from eastwest.report.observe import Shown, page  # noqa: PLC0415
    from eastwest.report.page import write_text  # noqa: PLC0415

    fabric = None if topology is None else _fabric(topology)
    places = None if placement is None else read_placement(placement)
    check_folder(out)
    with Steps("graphs") as bar, open_spans(spans, lossy=lossy) as opened:
        bar("reading", 0.0)
        frame = opened.frame(*(name for name in TABLES["spans"] if name not in _UNUSED))
        bar("graphs", 0.3)
        made = build(frame, fabric, places)
        forest = Forest(frame)
        root = one.choose(forest, frame, transaction)
        bar("critical paths", 0.6)
        time, counted = time_by_service(forest)
        shown = Shown(
            name=Path(opened.name).name,
            about=opened.about,
            spans=frame,
            graphs=made,
            forest=forest,
            transaction=one.follow(forest, frame, made, root),
            time=time,
            counted=counted,
            scenario="" if fabric is None else str(fabric["name"]),
        )
        out.mkdir(exist_ok=True)
        made.write(out)
        account = accounts(opened.about, opened.name)
        write_text(out / "mappings.json", _mappings(made, account))
        write_text(out / "observe.html", page(shown))
    said = {**_said(shown, out), "accounts": account}
    if as_json:
        typer.echo(json.dumps(said, allow_nan=False))
        return
    print_rows(_rows(said, shown))
    print_account(lines(account))


def _fabric(scenario: str) -> dict[str, Any]:
    source = load_source(scenario)
    return dict(core.topology(source.text, str(source.base_dir), str(shipped.DATA), []))


def _mappings(made: Graphs, account: Accounts) -> str:
    text = {
        "components_of_service": made.components_of,
        "host_of_instance": made.host_of,
        "hosts_from": made.placed_by,
        "accounts": account,
    }
    return json.dumps(text, indent=1, ensure_ascii=False) + "\n"


def _said(shown: Shown, out: Path) -> dict[str, Any]:
    made, transaction = shown.graphs, shown.transaction
    length = shown.forest.end[transaction.root] - shown.forest.start[transaction.root]
    return {
        "out": str(out),
        "page": str(out / "observe.html"),
        "services": {"nodes": len(made.services), "edges": made.services.number_of_edges()},
        "components": {"nodes": len(made.components), "edges": made.components.number_of_edges()},
        "infrastructure": {
            "nodes": len(made.infrastructure),
            "edges": made.infrastructure.number_of_edges(),
            "hosts_from": made.placed_by,
        },
        "transactions": len(shown.forest.roots),
        "critical_s": {name: round(s, 9) for name, s in shown.time.items()},
        "critical_transactions": shown.counted,
        "transaction": {
            "trace_id": transaction.trace_id,
            "spans": len(transaction.rows),
            "length_s": length / 1e9,
            "cables": [[*ends, times] for ends, times in sorted(transaction.cables.items())],
        },
    }


def _rows(said: Mapping[str, Any], shown: Shown) -> Iterator[tuple[str, str]]:
    for name in ("services", "components", "infrastructure"):
        yield name, f"{count(said[name]['nodes'])} nodes, {count(said[name]['edges'])} edges"
    words = {"spans": "from the spans", "file": "from --placement", "assumed": "assumed"}
    yield "placement", words[shown.graphs.placed_by]
    whole = sum(shown.time.values()) or 1.0
    times = [f"{clean(n, 40)} {percent(s / whole)}" for n, s in shown.time.items()]
    more = f", {count(len(times) - _MOST_SERVICES)} more" if len(times) > _MOST_SERVICES else ""
    yield "time goes to", ", ".join(times[:_MOST_SERVICES]) + more
    chosen = said["transaction"]
    length = span(chosen["length_s"])
    yield "shown", f"{clean(chosen['trace_id'], 64)}: {count(chosen['spans'])} spans, {length}"
    yield "page", clean(said["page"], 200)
