"""Drawings of graphs: calls between nodes in layers from left to right, or hosts and switches.

In a graph of calls, a node's layer is the number of calls on the longest path to the node from a
node that nobody calls. The edges that one transaction uses are marked. Of a large graph, only nodes
of these edges and the nodes with the most spans are drawn.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import networkx as nx

from eastwest import units
from eastwest.views.labels import natural, plural, shown

_WIDTH = 1160
_HEIGHT = 36
_GAP = 10
_MARGIN = 14
#: Maximum number of nodes of a drawing.
MOST_NODES = 60
_MOST_HOSTS = 32


@dataclass
class Box:
    """A drawn node; (x, y) in pixels is the middle of its left side, or in a fabric its centre."""

    name: str
    text: str
    title: str
    #: Second line of the label, in smaller letters.
    below: str = ""
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    marked: bool = False
    kind: str = "host"


@dataclass
class Drawing:
    """A drawn graph: size of the drawing in pixels, boxes of nodes, and edges."""

    width: int = _WIDTH
    height: int = 0
    boxes: list[Box] = field(default_factory=list)
    #: (SVG path, CSS class of the line width, title, whether the edge is marked); marked edges come
    #: last.
    edges: list[tuple[str, str, str, bool]] = field(default_factory=list)
    left_out: int = 0


def layered(
    graph: nx.DiGraph[str],
    marked: Mapping[tuple[str, str], int],
    name_of: Callable[[str], tuple[str, str]],
) -> Drawing:
    """Return the drawing of a graph of calls in layers from left to right.

    ``marked`` has the edges (caller, called) of a transaction with their number of calls;
    ``name_of`` returns the two lines of the label of a node.
    """
    on_path = {node for edge in marked for node in edge}
    order = sorted(graph, key=lambda n: (n not in on_path, -graph.nodes[n]["spans"], natural(n)))
    kept = set(order[:MOST_NODES])
    drawing = Drawing(left_out=len(order) - len(kept))
    layers = _layers(graph, kept)
    count = max(len(layers), 1)
    column = (_WIDTH - 2 * _MARGIN) / count
    width = min(250.0, column - 24)
    boxes: dict[str, Box] = {}
    most = max((len(layer) for layer in layers), default=1)
    drawing.height = round(2 * _MARGIN + most * (_HEIGHT + _GAP) - _GAP)
    for number, layer in enumerate(layers):
        top = (drawing.height - len(layer) * (_HEIGHT + _GAP) + _GAP) / 2 + _HEIGHT / 2
        for place, name in enumerate(layer):
            first, second = name_of(name)
            text = shown(first, max(6, math.floor((width - 12) / 7.6)))
            box = Box(name, text, _told(name, graph.nodes[name]), marked=name in on_path)
            box.below = shown(second, max(6, math.floor((width - 12) / 6.9)))
            box.x, box.y = _MARGIN + number * column, top + place * (_HEIGHT + _GAP)
            box.width = round(width, 1)
            boxes[name] = box
    drawing.boxes = list(boxes.values())
    largest = max((data["calls"] for *_, data in graph.edges(data=True)), default=1)
    for caller, called, data in graph.edges(data=True):
        if caller in boxes and called in boxes:
            times = marked.get((caller, called), 0)
            level = 1 + round(5 * math.log1p(data["calls"]) / math.log1p(largest))
            title = (
                f"{shown(caller, 80)} → {shown(called, 80)}: "
                f"{plural(data['calls'], 'call')}, median "
                f"{units.span(data['median_s'])}, 99 % within "
                f"{units.span(data['p99_s'])}"
            )
            if times:
                title += f"; {units.count(times)} in the transaction"
            way = _curve(boxes[caller], boxes[called])
            drawing.edges.append((way, f"t{level}", title, bool(times)))
    drawing.edges.sort(key=lambda edge: edge[3])
    return drawing


def _told(name: str, data: Mapping[str, Any]) -> str:
    return (
        f"{shown(name, 120)}: {plural(data['spans'], 'span')}, median "
        f"{units.span(data['median_s'])}, 99 % within {units.span(data['p99_s'])}"
    )


def _layers(graph: nx.DiGraph[str], kept: set[str]) -> list[list[str]]:
    """Return the nodes ``kept`` of each layer in the order in which they are drawn.

    The layer is the number of calls on the longest path to the node. Nodes that call each other in
    a cycle are in one layer. Within a layer, nodes are near their callers.
    """
    part = graph.subgraph(kept)
    circles = nx.condensation(part)
    layers = [
        sorted((n for each in layer for n in circles.nodes[each]["members"]), key=natural)
        for layer in nx.topological_generations(circles)
    ]
    place = {name: float(n) for layer in layers for n, name in enumerate(layer)}
    for layer in layers[1:]:
        wanted = {}
        for name in layer:
            above = [place[other] for other in part.predecessors(name) if other != name]
            wanted[name] = sum(above) / len(above) if above else place[name]
        layer.sort(key=lambda name: (wanted[name], natural(name)))
        place.update({name: float(n) for n, name in enumerate(layer)})
    return layers


def _curve(caller: Box, called: Box) -> str:
    """Return the SVG path of a curve from the right side of the caller to the called box.

    The curve ends at the left side of a box in a later layer, otherwise at the right side.
    """
    x1, y1, x2, y2 = caller.x + caller.width, caller.y, called.x, called.y
    if x2 > x1:
        bend = (x2 - x1) / 2
        ends = f"{x2 - bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
        return f"M{x1:.1f} {y1:.1f}C{x1 + bend:.1f} {y1:.1f} {ends}"
    # The called box is in the same or an earlier layer, so the curve ends at its right side.
    side = x1 + 20
    ends = f"{side:.1f} {y2:.1f} {called.x + called.width:.1f} {y2:.1f}"
    return f"M{x1:.1f} {y1 + 5:.1f}C{side:.1f} {y1 + 5:.1f} {ends}"


def fabric(
    graph: nx.Graph[str], marked: Mapping[tuple[str, str], int], on: Mapping[str, list[str]]
) -> Drawing:
    """Return the drawing of a fabric with hosts at the bottom and switches above.

    ``marked`` has the cables that a transaction uses with their number of calls; ``on`` has the
    service instances on each host, which are in the title of the host.
    """
    on_path = {node for edge in marked for node in edge}
    hosts = [n for n in graph if graph.nodes[n].get("kind") == "host"]
    hosts.sort(key=lambda n: (n not in on_path, n not in on, natural(n)))
    kept = sorted(hosts[:_MOST_HOSTS], key=natural)
    layers = _above(graph, kept)
    drawing = Drawing(left_out=len(hosts) - len(kept))
    row = 86
    drawing.height = _MARGIN * 2 + row * (len(layers) - 1) + 76
    boxes: dict[str, Box] = {}
    for number, layer in enumerate(layers):
        step = (_WIDTH - 2 * _MARGIN) / max(len(layer), 1)
        for place, name in enumerate(layer):
            runs = [shown(each, 60) for each in on.get(name, [])]
            title = shown(name, 80) + (f": {', '.join(runs[:6])}" if runs else "")
            room = max(4, math.floor((step - 12) / 6.7))
            box = Box(name, shown(name, min(room, 30)), title, marked=name in on_path)
            box.kind = "host" if number == 0 else "switch"
            box.x = _MARGIN + step * (place + 0.5)
            box.y = _MARGIN + 20 + row * (len(layers) - 1 - number)
            boxes[name] = box
    drawing.boxes = list(boxes.values())
    for one, other in graph.edges:
        if one in boxes and other in boxes:
            times = marked.get((min(one, other), max(one, other)), 0)
            a, b = boxes[one], boxes[other]
            title = f"{shown(one, 60)} – {shown(other, 60)}"
            if times:
                title += f": {plural(times, 'call')} of the transaction"
            way = f"M{a.x:.1f} {a.y:.1f}L{b.x:.1f} {b.y:.1f}"
            drawing.edges.append((way, "t3" if times else "t1", title, bool(times)))
    drawing.edges.sort(key=lambda edge: edge[3])
    return drawing


def _above(graph: nx.Graph[str], hosts: list[str]) -> list[list[str]]:
    """Return lists of nodes: hosts, then switches at 1, 2, … hops from the nearest host."""
    depth = dict.fromkeys(hosts, 0)
    waiting = hosts
    while waiting:
        reached = []
        for name in waiting:
            for other in sorted(graph.neighbors(name), key=natural):
                if other not in depth and graph.nodes[other].get("kind") != "host":
                    depth[other] = depth[name] + 1
                    reached.append(other)
        waiting = reached
    found: dict[int, list[str]] = defaultdict(list)
    for name in depth:
        found[depth[name]].append(name)
    return [sorted(found[n], key=natural)[:MOST_NODES] for n in sorted(found)]
