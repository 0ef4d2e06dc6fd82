"""Drawing of a scenario's fabric before a run, and its nodes and cables for the editor."""

from __future__ import annotations

from typing import Any

from eastwest import core, shipped, units
from eastwest.report.page import fabric_svg
from eastwest.report.topology import Topology, outline
from eastwest.studio.editing import MOST_NODES, own_file
from eastwest.studio.files import Folder, Text

#: Maximum number of cables of a fabric that is drawn.
_MOST_CABLES = 20_000
#: Most memory in bytes that the names and cables of a drawn fabric may need in a run.
_MOST_MEMORY = 200_000_000


def is_small(memory: list[core.MemoryPart]) -> bool:
    """Whether a fabric can be drawn; ``memory`` are the parts of the memory of a run."""
    return sum(need for name, need, _ in memory if name in {"names and cables", "ports"}) < (
        _MOST_MEMORY
    )


def fabric(text: Text, overrides: core.Overrides, folder: Folder) -> dict[str, Any] | None:
    """Return the drawing of a scenario without problems, and its links by their numbers in a run.

    None if the fabric has too many cables. The link with the number 2 i leads from end ``a`` to end
    ``b`` of the cable i, and the link 2 i + 1 back.
    """
    shape = core.topology(text.text, str(text.base), str(shipped.DATA), overrides)
    cables: list[dict[str, Any]] = shape["cables"]
    if len(cables) > _MOST_CABLES:
        return None
    nodes: list[str] = shape["nodes"]
    ends = [pair for c in cables for pair in ((c["a"], c["b"]), (c["b"], c["a"]))]
    drawn = Topology(nodes[: shape["hosts"]], ends)
    edges = [_edge(edge.name, edge.links, cables) for edge in drawn.edges]
    texts = [
        f"{each['name']} ({units.rate(each['rate_bps'])}, {units.span(each['delay_us'] / 1e6)})"
        for each in edges
    ]
    shown = outline(drawn, [edge["name"] for edge in edges], texts)
    return {
        "svg": fabric_svg(shown, ""),
        "width": shown["width"],
        "height": shown["height"],
        "hosts": shape["hosts"],
        "switches": shape["switches"],
        "grouped": shown["grouped"],
        "edges": edges,
        "nodes": [
            {"name": n.name, "kind": n.kind, "members": n.members, "x": n.x, "y": n.y}
            for n in shown["nodes"]
        ],
        "topology": _editable(shape) if len(nodes) <= MOST_NODES else None,
        "editable_file": _file(text, folder),
    }


def _edge(name: str, links: list[int], cables: list[dict[str, Any]]) -> dict[str, Any]:
    cable = cables[links[0] // 2]
    tier = cable["tier"]
    return {
        "name": name,
        "links": links,
        "rate_bps": cable["rate_bps"],
        "delay_us": cable["delay_us"],
        "tier": tier.removesuffix("-up") + "-down" if links[0] % 2 and tier != "switch" else tier,
    }


def _editable(shape: dict[str, Any]) -> dict[str, Any]:
    """Return hosts, switches and cables, as the editor of the fabric sends them back."""
    names, hosts = shape["nodes"], shape["hosts"]
    keys = ("a", "b", "rate_bps", "delay_us")
    return {
        "hosts": names[:hosts],
        "switches": names[hosts:],
        "cables": [{key: cable[key] for key in keys} for cable in shape["cables"]],
    }


def _file(text: Text, folder: Folder) -> str | None:
    """Return the path of the topology file that the page may edit; None without one."""
    own = own_file(text.text, text.base, folder)
    return None if own is None else own.relative_to(folder.path).as_posix()
