"""``eastwest observe``: what a data centre's own monitoring tells of it."""

from __future__ import annotations

import typer

from eastwest.cli import (
    observe_export,
    observe_graphs,
    observe_import,
    observe_infer,
    observe_select,
    observe_what_if,
    observe_workload,
)

app = typer.Typer(
    help="What monitoring tells: transactions, graphs, metrics worth watching.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("import")(observe_import.import_files)
app.command("infer")(observe_infer.infer)
app.command("graphs")(observe_graphs.graphs)
app.command("select")(observe_select.select)
app.command("workload")(observe_workload.workload)
app.command("what-if")(observe_what_if.what_if)
app.command("export")(observe_export.export)
app.command("serve")(observe_export.serve)
