"""``eastwest trace``: recorded workloads."""

from __future__ import annotations

import typer

from eastwest.cli import trace_describe, trace_flows, trace_import, trace_synthesize

app = typer.Typer(
    help="Recorded workloads: read them in, say what is in them, and make others like them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("import")(trace_import.import_files)
app.command("flows")(trace_flows.flows)
app.command("describe")(trace_describe.describe)
app.command("compare")(trace_describe.compare)
app.command("synthesize")(trace_synthesize.synthesize)
app.command("scale")(trace_synthesize.scale)
