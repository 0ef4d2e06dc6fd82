"""Command group ``eastwest topology``: fabrics (networks) of scenarios."""

from __future__ import annotations

from eastwest.cli.lazy import group

app = group(
    "Show the fabric of a scenario, list the kinds of fabric, import topologies and routes.",
    {
        "list": "explore:topology_list",
        "show": "explore:topology_show",
        "import": "routes:topology_import",
        "routes": "routes:topology_routes",
    },
)
