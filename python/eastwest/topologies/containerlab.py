"""Topology files of containerlab: nodes with kinds, and links between their interfaces.

JSON is read as it is; YAML needs PyYAML (the extra ``inventories``), of which only plain values
are used. A node of kind ``linux`` or ``host`` with links to one neighbour is a host; nodes of other
kinds are switches. Links to the host system (``mgmt-net``, ``macvlan``, ``vxlan``, ``dummy``) are
left out. The file has no rates.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

from eastwest.errors import InputError
from eastwest.topologies.fabric import Assumed, Fabric
from eastwest.topologies.inventory import SWITCH, Described, Inventory, Link, fabric, load_json
from eastwest.units import clean

#: Largest YAML file in bytes; its reader needs about 10 s per MiB.
_MOST_YAML = 2 << 20
_MOST_DEPTH = 32
_HOST_KINDS = {"linux", "host", ""}
_NO_NODES = {"host", "mgmt-net", "macvlan", "vxlan", "vxlan-stitch", "dummy"}


def looks_like(start: bytes) -> bool:
    """Whether a file begins as a topology of containerlab."""
    if start.lstrip().startswith(b"{"):
        return b'"topology"' in start and b'"nodes"' in start
    return re.search(rb"^topology:[ \t]*(#.*)?\r?$", start, re.M) is not None


def read(files: list[Described], assumed: Assumed) -> Fabric:
    """Return the fabric of one topology file."""
    if len(files) != 1:
        raise InputError(
            "only one topology of containerlab can be read at a time, but there are "
            f"{len(files)} files"
        )
    file = files[0]
    json_like = file.data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    tree = load_json(file) if json_like else _yaml(file)
    topology = _object(file, tree, "topology")
    nodes = _object(file, topology, "nodes")
    found = Inventory()
    kinds = _kinds(topology, nodes)
    for name, kind in kinds.items():
        found.device(name, "" if kind in _HOST_KINDS else SWITCH)
    links = topology.get("links") or []
    if not isinstance(links, list):
        raise InputError(f"{file.name}: topology.links is not a list")
    for number, link in enumerate(links, 1):
        ends = _ends(f"{file.name}: link {number}", link)
        if ends is None:
            found.notes["link to the host system (mgmt-net, macvlan, vxlan, …): left out"] += 1
            continue
        for node, _ in ends:
            if node not in kinds:
                raise InputError(
                    f"{file.name}: link {number}: there is no node {clean(node, 60)!r}"
                )
        (a, a_port), (b, b_port) = ends
        found.link(Link(a, a_port, b, b_port))
    return fabric(found, assumed)


def _yaml(file: Described) -> Any:
    """Return the content of a YAML file."""
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise InputError(
            f"{file.name}: YAML needs PyYAML (pip install eastwest[inventories]), or convert the "
            "file to JSON: yq -o json FILE"
        ) from None
    if len(file.data) > _MOST_YAML:
        raise InputError(f"{file.name}: YAML of more than {_MOST_YAML >> 20} MiB is not read")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        depth = 0
        for event in yaml.parse(file.data, Loader=loader):
            if isinstance(event, yaml.AliasEvent):
                at = event.start_mark.line + 1
                raise InputError(
                    f"{file.name}:{at}: an alias of YAML (*name), which is not supported"
                )
            opens = isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent))
            closes = isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent))
            depth += opens - closes
            if depth > _MOST_DEPTH:
                raise InputError(f"{file.name}: is nested deeper than {_MOST_DEPTH} levels")
        return yaml.load(file.data, Loader=loader)
    except InputError:
        raise
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file.name}:{mark.line + 1}" if mark is not None else file.name
        what = getattr(error, "problem", None) or str(error)
        raise InputError(f"{where}: is not valid YAML: {clean(str(what), 100)}") from None


def _object(file: Described, tree: Any, key: str) -> dict[str, Any]:
    value = tree.get(key) if isinstance(tree, dict) else None
    if not isinstance(value, dict):
        raise InputError(
            f"{file.name}: has no object {key}, which a topology of containerlab must have"
        )
    return value


def _kinds(topology: dict[str, Any], nodes: dict[str, Any]) -> dict[str, str]:
    """Return the kind of each node: its own, that of its group, or the default.

    ``topology`` is the object of this name in the file, ``nodes`` its nodes.
    """
    defaults = topology.get("defaults")
    otherwise = defaults.get("kind") if isinstance(defaults, dict) else None
    groups = topology.get("groups")
    kinds: dict[str, str] = {}
    for name, about in nodes.items():
        own = about if isinstance(about, dict) else {}
        group = groups.get(own.get("group")) if isinstance(groups, dict) else None
        kind = own.get("kind") or (group.get("kind") if isinstance(group, dict) else None)
        kind = kind or otherwise
        kinds[str(name)] = kind if isinstance(kind, str) else ""
    return kinds


def _ends(where: str, link: Any) -> tuple[tuple[str, str], tuple[str, str]] | None:
    """Return node and interface of both ends of a link; None if it leaves the topology.

    ``where`` is the place of the link in messages.
    """
    if not isinstance(link, dict):
        raise InputError(f"{where}: is not an object with endpoints")
    if link.get("type") in _NO_NODES or "endpoint" in link:
        return None
    listed = link.get("endpoints")
    if not isinstance(listed, list) or len(listed) != 2:
        raise InputError(f"{where}: must have two endpoints")
    ends = []
    for each in listed:
        if isinstance(each, dict):
            node, port = each.get("node"), each.get("interface")
        else:
            node, _, port = str(each).partition(":")
        if not isinstance(node, str) or not isinstance(port, str) or not node or not port:
            raise InputError(f"{where}: an endpoint must be NODE:INTERFACE")
        if node in _NO_NODES:
            return None
        ends.append((node, port))
    return ends[0], ends[1]
