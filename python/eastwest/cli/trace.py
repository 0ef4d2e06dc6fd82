"""Command group ``eastwest trace``: recorded workloads."""

from __future__ import annotations

from eastwest.cli.lazy import group

app = group(
    "Recorded workloads: import, export, describe, compare, synthesise and scale them.",
    {
        "import": "trace_import:import_files",
        "flows": "trace_flows:flows",
        "export": "trace_export:export",
        "describe": "trace_describe:describe",
        "compare": "trace_describe:compare",
        "synthesize": "trace_synthesize:synthesize",
        "scale": "trace_synthesize:scale",
    },
)
