"""Command group ``eastwest observe``: spans and metrics of a data centre's own monitoring."""

from __future__ import annotations

from eastwest.cli.lazy import group

app = group(
    "Monitoring data: infer transactions, draw graphs, select metrics, build workloads.",
    {
        "import": "observe_import:import_files",
        "infer": "observe_infer:infer",
        "graphs": "observe_graphs:graphs",
        "select": "observe_select:select",
        "workload": "observe_workload:workload",
        "what-if": "observe_what_if:what_if",
        "export": "observe_export:export",
        "serve": "observe_export:serve",
    },
)
