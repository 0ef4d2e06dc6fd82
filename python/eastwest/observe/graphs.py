"""The three graphs of a data centre, with mappings between them.

- *services*: which service depends on which;
- *components*: operations of instances, and the calls between them;
- *infrastructure*: hosts, switches and links.

A service is mapped to its components, an instance to its host (Gusat et al., *Benchmarking the
Ethernet-Federated Datacenter*, section 1). The infrastructure is that of a scenario. If spans name
no host, or a host that the scenario does not have, the user can assign instances to hosts by a
file. Without this file, instances are assigned to the hosts of the scenario in the order of their
names, one host after the other, and the result says that this was assumed.
"""

from __future__ import annotations

import csv
import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import networkx as nx
import numpy as np
import polars as pl

from eastwest.errors import InputError, nearest
from eastwest.observe.calls import parent_rows
from eastwest.units import clean

#: Maximum number of components (pairs of instance and operation) in the graphs.
MOST_NODES = 100_000
_MOST_PLACEMENT_BYTES = 16 << 20
#: Name of the node that represents the network where no scenario describes it.
NETWORK = "(network)"

Graph: TypeAlias = "nx.DiGraph[str]"


@dataclass
class Graphs:
    """Graphs of services, components and infrastructure, and mappings between them."""

    services: Graph
    components: Graph
    #: Undirected graph of hosts and switches, with an edge for each pair that a cable joins.
    infrastructure: nx.Graph[str]
    #: Names of the components of a service, by the name of the service.
    components_of: dict[str, list[str]]
    #: Name of the host of an instance, by the name of the instance.
    host_of: dict[str, str]
    #: Origin of ``host_of``: ``spans``, ``file`` (of the user) or ``assumed``.
    placed_by: str
    #: Component of each span, in the order of the table of spans.
    component: list[str] = field(repr=False, default_factory=list)
    #: Instance of each span, in the order of the table of spans.
    instance: list[str] = field(repr=False, default_factory=list)

    def write(self, folder: Path) -> list[Path]:
        """Write the three graphs as GraphML files into a folder; return the paths of the files."""
        from eastwest.files import write_whole  # noqa: PLC0415

        paths = []
        for name in ("services", "components", "infrastructure"):
            path = folder / f"{name}.graphml"
            text = "\n".join(nx.generate_graphml(_writable(getattr(self, name))))
            write_whole(path, (text + "\n").encode())
            paths.append(path)
        return paths

    def way(self, caller: str, called: str) -> list[str]:
        """Return the hosts and switches on a shortest path between the hosts of two instances.

        The list is empty if an instance has no known host, or if there is no path.
        """
        here, there = self.host_of.get(caller), self.host_of.get(called)
        if here is None or there is None:
            return []
        try:
            return min(nx.all_shortest_paths(self.infrastructure, here, there))
        except (nx.NetworkXNoPath, nx.NodeNotFound):
            return []


def build(
    spans: pl.DataFrame,
    topology: Mapping[str, Any] | None = None,
    placement: Mapping[str, str] | None = None,
) -> Graphs:
    """Return the graphs of services, components and infrastructure of ``spans``.

    ``topology`` has the nodes and cables of a scenario; None: one node of the network joins all
    hosts. ``placement`` has the host of each instance from the user's file; None: hosts come from
    the spans, or are assumed.
    """
    unknown = "(unknown)"
    named = spans.select(
        pl.coalesce("service", "instance").fill_null(unknown).alias("service"),
        pl.coalesce("instance", "service").fill_null(unknown).alias("instance"),
        pl.col("operation").fill_null(unknown),
        "host",
        "status",
        ((pl.col("end_ns") - pl.col("start_ns")) / 1e9).alias("length_s"),
    ).with_columns((pl.col("instance") + " · " + pl.col("operation")).alias("component"))
    if named["component"].n_unique() > MOST_NODES:
        raise InputError(
            f"there are more than {MOST_NODES:,} pairs of instance and operation: perhaps names of "
            "operations contain parts that change from request to request, such as identifiers"
        )
    parents = parent_rows(spans)
    infrastructure, host_of, placed_by = _place(named, topology, placement)
    pairs = named.select("service", "component").unique().sort("service", "component")
    components_of: dict[str, list[str]] = defaultdict(list)
    for service, component in pairs.iter_rows():
        components_of[service].append(component)
    return Graphs(
        services=_calls(named, parents, "service"),
        components=_calls(named, parents, "component"),
        infrastructure=infrastructure,
        components_of=dict(components_of),
        host_of=host_of,
        placed_by=placed_by,
        component=named["component"].to_list(),
        instance=named["instance"].to_list(),
    )


def _calls(named: pl.DataFrame, parents: np.ndarray[Any, Any], level: str) -> Graph:
    """Return the graph of calls between services or between components.

    Calls within a node are left out. ``named`` has a row for each span; ``parents`` has the row of
    each span's parent, or −1. ``level`` is the column of ``named`` with the names of the nodes:
    ``service`` or ``component``.
    """
    graph: Graph = nx.DiGraph()
    nodes = named.group_by(level).agg(
        pl.len().alias("spans"),
        pl.col("length_s").median().alias("median_s"),
        pl.col("length_s").quantile(0.99).alias("p99_s"),
        (pl.col("status") == "error").sum().alias("errors"),
        pl.col("service").first().alias("of_service"),
        pl.col("instance").n_unique().alias("instances"),
    )
    for row in nodes.sort(level).iter_rows(named=True):
        name = row.pop(level)
        row["service"] = row.pop("of_service")
        graph.add_node(name, **row)
    below = np.flatnonzero(parents >= 0)
    calls = pl.DataFrame(
        {
            "caller": named[level].gather(parents[below]),
            "called": named[level].gather(below),
            "length_s": named["length_s"].gather(below),
        }
    ).filter(pl.col("caller") != pl.col("called"))
    edges = calls.group_by("caller", "called").agg(
        pl.len().alias("calls"),
        pl.col("length_s").median().alias("median_s"),
        pl.col("length_s").quantile(0.99).alias("p99_s"),
    )
    for row in edges.sort("caller", "called").iter_rows(named=True):
        graph.add_edge(row.pop("caller"), row.pop("called"), **row)
    return graph


def _place(
    named: pl.DataFrame,
    topology: Mapping[str, Any] | None,
    placement: Mapping[str, str] | None,
) -> tuple[nx.Graph[str], dict[str, str], str]:
    """Return (graph of the infrastructure, host of each instance, origin of the hosts).

    The origin is ``file``, ``spans`` or ``assumed``. ``named`` has a row for each span;
    ``topology`` and ``placement`` are those of ``build``.
    """
    instances = sorted(named["instance"].unique().to_list())
    said = dict(
        named.filter(pl.col("host").is_not_null())
        .select("instance", "host")
        .unique("instance", keep="first", maintain_order=True)
        .iter_rows()
    )
    graph: nx.Graph[str] = nx.Graph()
    if topology is None:
        host_of = {**said, **_chosen(placement, instances)}
        placed_by = "file" if placement else "spans" if said else "assumed"
        # Without any information on hosts, every instance has a host of its own.
        host_of = {name: host_of.get(name, f"host of {name}") for name in instances}
        graph.add_node(NETWORK, kind="switch")
        for host in sorted(set(host_of.values())):
            graph.add_node(host, kind="host")
            graph.add_edge(host, NETWORK)
        return graph, host_of, placed_by
    hosts = _fabric(graph, topology)
    if placement:
        host_of = _chosen(placement, instances)
        wrong = next((name for name in instances if host_of.get(name) not in hosts), None)
        if wrong is not None:
            given = host_of.get(wrong)
            raise InputError(
                f"placement: the instance {clean(wrong, 80)} is on "
                + (
                    "no host"
                    if given is None
                    else f"{clean(given, 60)!r}, which is no host of the scenario"
                )
                + _nearest(given or "", hosts)
            )
        return graph, host_of, "file"
    if said and set(said.values()) <= set(hosts) and len(said) == len(instances):
        return graph, said, "spans"
    # Instances that were recorded on one host are placed together on one host of the scenario.
    together = sorted({said.get(name, name) for name in instances})
    on = {name: hosts[place % len(hosts)] for place, name in enumerate(together)}
    return graph, {name: on[said.get(name, name)] for name in instances}, "assumed"


def _fabric(graph: nx.Graph[str], topology: Mapping[str, Any]) -> list[str]:
    """Add the nodes and cables of a scenario to ``graph``; return the names of the hosts."""
    hosts = [str(name) for name in topology["nodes"][: topology["hosts"]]]
    for name in topology["nodes"]:
        graph.add_node(str(name), kind="switch")
    for name in hosts:
        graph.nodes[name]["kind"] = "host"
    for cable in topology["cables"]:
        graph.add_edge(
            str(cable["a"]),
            str(cable["b"]),
            rate_bps=cable["rate_bps"],
            delay_us=cable["delay_us"],
            tier=cable["tier"],
        )
    if not hosts:
        raise InputError("the scenario has no host, but instances need one")
    return hosts


def _chosen(placement: Mapping[str, str] | None, instances: list[str]) -> dict[str, str]:
    return {name: host for name, host in (placement or {}).items() if name in set(instances)}


def _nearest(name: str, among: list[str]) -> str:
    close = nearest(name, among)
    return f"; did you mean {clean(close, 60)}?" if close else ""


def read_placement(path: Path) -> dict[str, str]:
    """Return the host of each instance, from a CSV file with columns ``instance`` and ``host``."""
    if not path.is_file():
        raise InputError(f"{path}: the file that assigns instances to hosts does not exist")
    if path.stat().st_size > _MOST_PLACEMENT_BYTES:
        raise InputError(
            f"{path}: is larger than {_MOST_PLACEMENT_BYTES:,} bytes, the limit for a "
            "file that assigns instances to hosts"
        )
    text = path.read_text("utf-8", errors="replace").removeprefix("\ufeff").replace("\0", "")
    try:
        rows = list(csv.reader(text.splitlines()))
    except csv.Error as error:
        raise InputError(f"{path}: is not CSV: {error}") from None
    head = [name.strip() for name in rows[0]] if rows else []
    if "instance" not in head or "host" not in head:
        raise InputError(f"{path}:1: the header must have the columns instance and host")
    place, host = head.index("instance"), head.index("host")
    found: dict[str, str] = {}
    for number, row in enumerate(rows[1:], 2):
        if not row:
            continue
        if len(row) != len(head):
            raise InputError(f"{path}:{number}: {len(head)} values are expected, found {len(row)}")
        name = row[place].strip()
        if found.setdefault(name, row[host].strip()) != row[host].strip():
            raise InputError(
                f"{path}:{number}: the instance {clean(name, 60)!r} is assigned to two hosts"
            )
    return found


def _writable(graph: nx.Graph[str]) -> nx.Graph[str]:
    """Return a copy of ``graph`` that GraphML can store.

    Names contain no characters that XML forbids, and attributes without a value are left out.
    """
    names: dict[str, str] = {}
    taken: Counter[str] = Counter()
    for name in graph:
        shown = clean(name, 4096)
        taken[shown] += 1
        if taken[shown] > 1:
            shown += "#" + hashlib.sha256(name.encode(errors="replace")).hexdigest()[:8]
        names[name] = shown
    copy = nx.relabel_nodes(graph, names, copy=True)
    for _, data in copy.nodes(data=True):
        for key, value in list(data.items()):
            data[key] = clean(value, 4096) if isinstance(value, str) else value
            if value is None:
                del data[key]
    return copy


def placed(graphs: Graphs) -> dict[str, list[str]]:
    """Return the names of the instances on each host, by the name of the host."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, host in sorted(graphs.host_of.items()):
        found[host].append(name)
    return dict(found)
