"""Drawing of the fabric: hosts at the bottom, switches above, links coloured by utilisation.

Large fabrics are drawn in groups: hosts of one switch, and switches of one layer with consecutive
names. A drawn link represents all links between two groups and shows the busiest of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eastwest import units
from eastwest.report.draw import clock
from eastwest.report.heat import levels, packed
from eastwest.views.facts import Facts
from eastwest.views.labels import natural, plural, shown
from eastwest.views.links import LinkLoad
from eastwest.views.series import Floats

_MOST_HOSTS, _MOST_SWITCHES = 64, 40
_LAYER = 128
_MARGIN = 34
_WIDTH = 1000
#: Width of a character on a phone, in units of the drawing.
_PHONE_CHARACTER = 16.5


@dataclass
class Node:
    """A drawn node: a host or switch of the fabric, or a group of them."""

    name: str
    layer: int
    members: int = 1
    x: float = 0.0
    y: float = 0.0
    #: Whether the drawing shows the name of the node.
    label: bool = True
    #: Whether the drawing shows the name of the node on a phone.
    label_on_phone: bool = True

    @property
    def kind(self) -> str:
        """Kind of the node (host or switch), which determines its symbol."""
        return "host" if self.layer == 0 else "switch"


@dataclass
class Edge:
    """A drawn line: one direction of a cable, or of all cables between two groups of nodes.

    ``links`` are row numbers in the table ``links``; ``level`` is the step on the colour scale.
    """

    source: Node
    target: Node
    links: list[int]
    level: int = 0

    @property
    def name(self) -> str:
        """Name of the line: sender and receiver, and the number of links if there are several."""
        if len(self.links) == 1:
            return f"{self.source.name}->{self.target.name}"
        return f"{self.source.name} -> {self.target.name}, busiest of {len(self.links)}"

    def ends(self) -> tuple[float, float, float, float]:
        """Return x and y of the begin, then of the end of the line.

        The line is shifted sideways, so that the lines of both directions are visible.
        """
        dx, dy = self.target.x - self.source.x, self.target.y - self.source.y
        length = float(np.hypot(dx, dy)) or 1.0
        sx, sy = -dy / length * 2.6, dx / length * 2.6
        return self.source.x + sx, self.source.y + sy, self.target.x + sx, self.target.y + sy


class Topology:
    """Drawn nodes of a fabric with their positions, and drawn edges with their links."""

    def __init__(self, hosts: Sequence[str], ends: Sequence[tuple[str, str]]) -> None:
        """Place the nodes; ``ends`` has for each link the names of its sender and its receiver."""
        self._hosts = hosts
        self.neighbours: dict[str, set[str]] = defaultdict(set)
        for a, b in ends:
            self.neighbours[a].add(b)
            self.neighbours[b].add(a)
        layers = self._layers()
        self.node_of: dict[str, Node] = {}
        self._group(layers)
        self.nodes = list({id(node): node for node in self.node_of.values()}.values())
        between: dict[tuple[int, int], list[int]] = defaultdict(list)
        for row, (a, b) in enumerate(ends):
            between[id(self.node_of[a]), id(self.node_of[b])].append(row)
        by_id = {id(node): node for node in self.nodes}
        self.edges = [Edge(by_id[a], by_id[b], rows) for (a, b), rows in between.items() if a != b]
        self.grouped = len(self.nodes) < len(self.node_of)
        self.height = self._place()

    @staticmethod
    def of(facts: Facts) -> Topology:
        """Return the drawn nodes and edges of the fabric of a result."""
        ends = [(str(a), str(b)) for a, b in facts.links.select("src", "dst").iter_rows()]
        return Topology(facts.hosts, ends)

    def _layers(self) -> dict[str, int]:
        """Return the layer of each node: number of hops to the nearest host (0 for a host)."""
        hosts = [host for host in self._hosts if host in self.neighbours]
        layer = dict.fromkeys(hosts or sorted(self.neighbours)[:1], 0)
        frontier = list(layer)
        while frontier:
            reached = []
            for name in frontier:
                for other in sorted(self.neighbours[name], key=natural):
                    if other not in layer:
                        layer[other] = layer[name] + 1
                        reached.append(other)
            frontier = reached
        top = max(layer.values(), default=0)
        for name in self.neighbours:
            layer.setdefault(name, top)
        return layer

    def _group(self, layers: dict[str, int]) -> None:
        """Set ``node_of``: the drawn node, which may be a group, for every node of the fabric.

        ``layers`` has the layer of every node of the fabric.
        """
        by_layer: dict[int, list[str]] = defaultdict(list)
        for name, layer in layers.items():
            by_layer[layer].append(name)
        for layer in sorted(by_layer, reverse=True):
            names = sorted(by_layer[layer], key=natural)
            if layer == 0 and len(names) > _MOST_HOSTS:
                self._group_hosts(names)
                continue
            size = -(-len(names) // _MOST_SWITCHES) if layer else 1
            for first in range(0, len(names), size):
                self._draw_as_one(names[first : first + size], layer)

    def _group_hosts(self, names: list[str]) -> None:
        """Represent the hosts ``names`` by one drawn node for each switch or group of switches."""
        groups: dict[int, list[str]] = defaultdict(list)
        for name in names:
            above = [o for o in sorted(self.neighbours[name], key=natural) if o in self.node_of]
            groups[id(self.node_of[above[0]]) if above else 0].append(name)
        for part in groups.values():
            self._draw_as_one(part, 0)

    def _draw_as_one(self, names: list[str], layer: int) -> None:
        """Represent the nodes ``names`` of the fabric by one drawn node."""
        label = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
        node = Node(shown(label, 40), layer, len(names))
        self.node_of.update(dict.fromkeys(names, node))

    def _place(self) -> int:
        """Set the positions of all drawn nodes; return the height of the drawing."""
        layers: dict[int, list[Node]] = defaultdict(list)
        for node in self.nodes:
            layers[node.layer].append(node)
        top = max(layers, default=0)
        above: dict[int, list[Node]] = defaultdict(list)
        below: dict[int, list[Node]] = defaultdict(list)
        for edge in self.edges:
            if edge.target.layer > edge.source.layer:
                above[id(edge.source)].append(edge.target)
                below[id(edge.target)].append(edge.source)
        order = {id(n): i for i, n in enumerate(sorted(self.nodes, key=lambda n: natural(n.name)))}
        for layer in sorted(layers):
            nodes = layers[layer]
            if layer == 0:
                first = {id(n): min((order[id(a)] for a in above[id(n)]), default=0) for n in nodes}
                nodes.sort(key=lambda n: (first[id(n)], order[id(n)]))
                places = _spread(len(nodes), [])
            else:
                wanted = {
                    id(n): float(np.mean([c.x for c in below[id(n)]] or [_WIDTH / 2]))
                    for n in nodes
                }
                nodes.sort(key=lambda n: (round(wanted[id(n)], 3), order[id(n)]))
                places = _spread(len(nodes), [wanted[id(n)] for n in nodes])
            for node, x in zip(nodes, places, strict=True):
                node.x = round(x, 1)
                node.y = _MARGIN + (top - layer) * _LAYER
        return 2 * _MARGIN + top * _LAYER + 14

    def label_every(self, layer: int, character: float = 7.4) -> bool:
        """Whether the nodes of a layer are far enough apart to show all their names.

        ``character`` is the width of a character in units of the drawing.
        """
        nodes = [n for n in self.nodes if n.layer == layer]
        longest = max((len(n.name) for n in nodes), default=1)
        return len(nodes) < 2 or _WIDTH / len(nodes) >= character * longest + 6


def _spread(count: int, wanted: list[float]) -> list[float]:
    """Return ``count`` horizontal positions: near those in ``wanted``, or at equal distances.

    Equal distances are used if ``wanted`` is empty, too narrow, or does not fit into the drawing.
    """
    step = _WIDTH / max(count, 1)
    even = [step * (i + 0.5) for i in range(count)]
    if not wanted or max(wanted) - min(wanted) < step * (count - 1) / 2:
        return even
    least = min(step * 0.9, 120.0)
    places: list[float] = []
    for want in wanted:
        places.append(max(want, places[-1] + least) if places else want)
    shift = float(np.mean(np.array(wanted) - np.array(places)))
    places = [p + shift for p in places]
    fits = places[0] >= 20 and places[-1] <= _WIDTH - 20
    return places if fits else even


def drawing(facts: Facts, load: LinkLoad | None) -> dict[str, Any]:
    """Return the drawing of the fabric: data for the template, and ``script`` for its script.

    Without ``load`` (utilisation over time), the drawing shows only means over the run.
    """
    links = facts.links
    topology = Topology.of(facts)
    whole = np.nan_to_num(links["utilisation"].fill_null(0.0).to_numpy().astype(float))
    drops = links["drops"].fill_null(0).to_numpy().astype(float)
    used = np.array([whole[e.links].max() for e in topology.edges])
    lost = np.array([drops[e.links].sum() for e in topology.edges])
    for edge, level in zip(topology.edges, levels(used, 1.0), strict=True):
        edge.level = int(level)
    names = [_edge_name(facts, edge) for edge in topology.edges]
    texts = []
    for edge, name, share, count in zip(topology.edges, names, used, lost, strict=True):
        rate = units.rate(float(links["rate_bps"][edge.links[0]]))
        share_text = units.percent(float(share))
        drops_text = plural(float(count), "drop")
        texts.append(f"{name} ({rate}): used {share_text} of the run, {drops_text}")
    return {
        **outline(topology, names, texts),
        "animated": load is not None,
        "bins": load.bins.count if load else 0,
        "script": _script(facts, topology, load, used, lost),
    }


def outline(topology: Topology, names: Sequence[str], texts: Sequence[str]) -> dict[str, Any]:
    """Return the data of the macro ``fabric`` of the template ``network.html.j2``.

    ``names`` and ``texts`` are names and descriptions of the drawn edges.
    """
    layers = {node.layer for node in topology.nodes}
    labelled = {layer: topology.label_every(layer) for layer in layers}
    on_phone = {layer: topology.label_every(layer, _PHONE_CHARACTER) for layer in layers}
    for node in topology.nodes:
        node.label, node.label_on_phone = labelled[node.layer], on_phone[node.layer]
    edges = []
    for edge, name, text in zip(topology.edges, names, texts, strict=True):
        x1, y1, x2, y2 = edge.ends()
        d = f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"
        edges.append({"d": d, "level": edge.level, "name": name, "text": text})
    return {
        "height": topology.height,
        "width": _WIDTH,
        "nodes": sorted(topology.nodes, key=lambda n: (-n.layer, n.x)),
        "edges": edges,
        "grouped": topology.grouped,
        "summary": _summary(topology),
    }


def _edge_name(facts: Facts, edge: Edge) -> str:
    if len(edge.links) == 1:
        return shown(facts.links["name"][edge.links[0]])
    return edge.name


def _summary(topology: Topology) -> str:
    """Return a sentence on the layers of the drawing and the number of nodes in each."""
    counts: dict[int, int] = defaultdict(int)
    for node in topology.nodes:
        counts[node.layer] += node.members
    top = max(counts, default=0)
    layers = [
        plural(counts[layer], *(("switch", "switches") if layer else ("host", "hosts")))
        for layer in sorted(counts, reverse=True)
    ]
    return f"{top + 1} layers from top to bottom: {', '.join(layers)}."


def _script(
    facts: Facts, topology: Topology, load: LinkLoad | None, used: Floats, lost: Floats
) -> dict[str, Any]:
    """Return the data with which the page's script colours and describes links at any time.

    ``used`` and ``lost`` have the utilisation (0 to 1) and the drops of each edge over the run.
    """
    data: dict[str, Any] = {
        "names": [_edge_name(facts, edge) for edge in topology.edges],
        "whole": [float(f"{v:.3g}") for v in used],
        "lost": [int(v) for v in lost],
    }
    if load is None:
        return data
    over_time = np.array([load.used[e.links].max(axis=0) for e in topology.edges])
    drops = np.array([load.drops[e.links].sum(axis=0) for e in topology.edges])
    some = np.argwhere(drops > 0)
    busiest = int(over_time.max(axis=0).argmax()) if over_time.size else 0
    return {
        **data,
        "step": load.bins.step,
        "columns": load.bins.count,
        "end": facts.end,
        "first": _busiest_moment(over_time),
        "cells": packed(over_time, 1.0),
        "drops": [[int(e), int(b), int(drops[e, b])] for e, b in some[:40_000]],
        "moment": clock(busiest * load.bins.step, facts.end),
    }


def _busiest_moment(over_time: Floats) -> int:
    """Return the number of the bin with the largest sum of utilisation, where the slider starts.

    ``over_time`` is an array (edges, bins).
    """
    return int(over_time.sum(axis=0).argmax()) if over_time.size else 0
