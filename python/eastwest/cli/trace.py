"""``eastwest trace``: recorded workloads."""

from __future__ import annotations

from eastwest.cli.lazy import group

app = group(
    "Recorded workloads: read them in, say what is in them, and make others like them.",
    {
        "import": "trace_import:import_files",
        "flows": "trace_flows:flows",
        "describe": "trace_describe:describe",
        "compare": "trace_describe:compare",
        "synthesize": "trace_synthesize:synthesize",
        "scale": "trace_synthesize:scale",
    },
)
