"""The command ``eastwest``."""

from __future__ import annotations

import signal
import sys
from types import FrameType

import typer

from eastwest.cli import (
    bench,
    calibrate,
    claims,
    drill,
    explain,
    explore,
    fuzz,
    model,
    model_control,
    model_eee,
    new,
    observe,
    optimize,
    report,
    routes,
    simulate,
    sweep,
    trace,
)
from eastwest.cli.guard import INTERRUPTED

app = typer.Typer(
    name="eastwest",
    help="Packet-level simulation of data-centre networks under Hadoop and other workloads.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("run")(simulate.run)
app.command("check")(simulate.check)
app.command("sweep")(sweep.sweep)
app.command("optimize")(optimize.optimize)
app.command("claims")(claims.claims)
app.command("report")(report.report)
app.command("explain")(explain.explain)
app.command("timeline")(explain.timeline)
app.command("drill")(drill.drill)
app.command("calibrate")(calibrate.command)
app.command("bench")(bench.bench)
app.command("fuzz")(fuzz.fuzz)
app.command("new")(new.new)
app.command("schema")(explore.schema)
app.command("routes")(routes.routes)
explore.topology.command("import")(routes.topology_import)
model.app.command("eee")(model_eee.model_eee)
model.app.add_typer(model_control.app, name="control")
app.add_typer(model.app, name="model")
app.add_typer(trace.app, name="trace")
app.add_typer(observe.app, name="observe")
app.add_typer(explore.topology, name="topology")
app.command("version")(explore.version)


def main() -> None:
    """Run the command line: exit code 0 done, 2 bad input, 3 our bug."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    signal.signal(signal.SIGTERM, _terminated)
    try:
        app()
    except KeyboardInterrupt:  # before a command has begun
        sys.exit(INTERRUPTED)


def _terminated(number: int, _: FrameType | None) -> None:
    """Leave as after Ctrl-C, so that nothing half-written stays behind."""
    raise KeyboardInterrupt(f"signal {number}")
