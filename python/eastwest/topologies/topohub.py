"""Networks of topohub (JSON), among them those of SNDlib: nodes, links with lengths, demands.

Each node becomes a switch with ``Assumed.hosts_per_node`` hosts (default 1). A link of n km has a
delay of n × 5 µs (light in fibre, two thirds of c). The file states no rates: all cables get the
assumed rate. ``demands`` are a traffic matrix in Mbit/s between nodes; traffic goes from the first
host of one node to the first host of the other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from eastwest.errors import InputError
from eastwest.topologies.fabric import Assumed, Cable, Fabric, demand_size, name_of
from eastwest.units import clean

_S_PER_KM = 5e-6
_RATE_BPS = 10e9
_LONGEST_KM = 200_000.0


def read(data: bytes, assumed: Assumed) -> Fabric:
    """Return the hosts, switches, cables and demands of a JSON file of topohub.

    Raises ``InputError`` if the file is invalid.
    """
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON: {clean(str(error), 100)}") from None
    if not isinstance(tree, dict):
        raise InputError("is not a network: the top level must be an object")
    nodes, edges = _list(tree, "nodes"), _list(tree, "edges" if "edges" in tree else "links")
    per_node = assumed.hosts_per_node
    demand_size(len(nodes) * (1 + per_node), len(nodes) * per_node + len(edges))
    fabric = Fabric()
    switch = _switches(fabric, nodes)
    rate = assumed.rate_bps or _RATE_BPS
    if assumed.rate_bps is None:
        fabric.notes.append("the file has no rates: 10 Gbit/s is assumed for all cables")
    first: dict[str, str] = {}
    for number, name in enumerate(switch.values()):
        for i in range(per_node):
            host = f"h{number * per_node + i}"
            fabric.hosts.append(host)
            fabric.cables.append(Cable(host, name, rate, assumed.delay_s))
            first.setdefault(name, host)
    for number, edge in enumerate(edges):
        fabric.cables.append(_cable(edge, f"edge {number}", switch, rate))
    fabric.check()
    graph = tree.get("graph")
    demands = graph.get("demands") if isinstance(graph, dict) else None
    if isinstance(demands, dict):
        fabric.demands_bps = _demands(demands, switch, first)
    return fabric


def _list(tree: Mapping[str, Any], key: str) -> list[Any]:
    value = tree.get(key)
    if not isinstance(value, list):
        raise InputError(f"has no list of {key}")
    return value


def _switches(fabric: Fabric, nodes: list[Any]) -> dict[str, str]:
    """Add a switch to ``fabric`` for each node; return the switches' names by the nodes' ids.

    The ids are texts. Raises ``InputError`` if an id is missing, or if two nodes have one id.
    """
    switch: dict[str, str] = {}
    taken: set[str] = set()
    for number, node in enumerate(nodes):
        if not isinstance(node, dict) or not isinstance(node.get("id"), (int, str)):
            raise InputError(f"node {number} has no id")
        key = str(node["id"])
        if key in switch:
            raise InputError(f"two nodes have the id {clean(key, 40)}")
        name = name_of(node.get("name"), f"s{number}")
        if name in taken or name.startswith("h"):
            name = f"s{number}-{name}"[:64]
        if name in taken:
            raise InputError(f"two nodes have the name {clean(name, 80)}")
        taken.add(name)
        switch[key] = name
    fabric.switches = list(switch.values())
    return switch


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _cable(edge: object, where: str, switch: Mapping[str, str], rate: float) -> Cable:
    if not isinstance(edge, dict):
        raise InputError(f"{where} is not an object")
    ends = [switch.get(str(edge.get(key))) for key in ("source", "target")]
    a, b = ends
    if a is None or b is None or a == b:
        raise InputError(f"{where}: source and target must be the ids of two nodes that differ")
    km = _number(edge.get("dist"))
    if not 0 <= km <= _LONGEST_KM:
        raise InputError(f"{where}: dist must be 0 to {_LONGEST_KM:g} (km)")
    return Cable(a, b, rate, km * _S_PER_KM)


def _demands(
    demands: Mapping[str, Any], switch: Mapping[str, str], first: Mapping[str, str]
) -> dict[tuple[str, str], float]:
    result: dict[tuple[str, str], float] = {}
    for source, row in demands.items():
        if not isinstance(row, dict):
            raise InputError(f"demands of {clean(str(source), 40)} are not an object")
        for target, value in row.items():
            mbps = _number(value)
            if source not in switch or target not in switch or not 0 <= mbps < 1e9:
                raise InputError(
                    f"the demand from {clean(str(source), 40)} to {clean(str(target), 40)} is not "
                    "a number of Mbit/s between two nodes"
                )
            if source != target and mbps:
                result[first[switch[source]], first[switch[target]]] = mbps * 1e6
    return result
