"""Topologies of containerlab: nodes with kinds, and links between their interfaces.

Two kinds of files are read: the topology that a user writes (``….clab.yml``), and the topology that
containerlab exports for a running lab (``topology-data.json``). YAML needs PyYAML (the extra
``inventories``); aliases and tags of YAML are refused.

The kinds in ``_OPEN_KINDS`` (``linux``, external containers, traffic generators) do not state the
purpose of a node. A node of these kinds with the image of a router (``frrouting/frr``) is a switch.
A node of these kinds whose neighbours are two or more known switches, and nothing else, is a host.
Each other node of these kinds is a host if it has one neighbour, and else a switch. Nodes of
all other kinds are switches. A node with ``network-mode: container:NODE`` is a part of NODE, as
a line card is a part of a router. Links to the host system (``mgmt-net``, ``macvlan``, ``vxlan``,
``dummy``) are left out. The files have no rates.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

from eastwest.errors import InputError
from eastwest.topologies.fabric import Assumed, Fabric
from eastwest.topologies.inventory import (
    HOST,
    SWITCH,
    Described,
    Inventory,
    Link,
    fabric,
    load_json,
)
from eastwest.units import clean

#: Maximum size of a YAML file in bytes, because PyYAML needs about 10 s per MiB.
_MOST_YAML = 2 << 20
_MOST_DEPTH = 32
#: Kinds of containerlab whose nodes can be hosts or switches; all other kinds are switches.
_OPEN_KINDS = {
    "linux",
    "host",
    "ext-container",
    "k8s-kind",
    "generic_vm",
    "keysight_ixia-c-one",
    "ixia-c-one",
    "ostinato",
    "",
}
#: Pattern for the names of container images: a match means that the node is a router or switch.
_ROUTERS = re.compile(r"frr|quagga|gobgp|vyos|(?:^|[/_.-])(?:bird|holo|ovs)(?:[/:_.-]|\d|$)", re.I)
_NO_NODES = {"host", "mgmt-net", "macvlan", "vxlan", "vxlan-stitch", "dummy"}
_PART_OF = "container:"
#: Maximum length of a chain of nodes, each of which is a part of the next (``network-mode``).
_MOST_PARTS = 8
_EXPORT = re.compile(rb'"type"\s*:\s*"clab"')

#: One end of a link: (name of the node, name of the interface).
_End = tuple[str, str]


def looks_like(start: bytes) -> bool:
    """Whether the first bytes of a file are those of a topology of containerlab."""
    if start.lstrip().startswith(b"{"):
        written = b'"topology"' in start and b'"nodes"' in start
        return written or _EXPORT.search(start) is not None
    return re.search(rb"^topology:[ \t]*(#.*)?\r?$", start, re.M) is not None


def read(files: list[Described], assumed: Assumed) -> Fabric:
    """Return the fabric of one topology file: ``files`` must have exactly one entry."""
    return fabric(inventory(files), assumed)


def inventory(files: list[Described]) -> Inventory:
    """Return the nodes and links of one topology file: ``files`` must have exactly one entry."""
    if len(files) != 1:
        raise InputError(
            "only one topology of containerlab can be read at a time, but there are "
            f"{len(files)} files"
        )
    file = files[0]
    json_like = file.data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    tree = load_json(file) if json_like else _yaml(file)
    exported = isinstance(tree, dict) and tree.get("type") == "clab"
    topology = tree if exported else _object(file, tree, "topology")
    nodes = _object(file, topology, "nodes")
    owners = _owners(file, nodes)
    found = Inventory()
    of_kind = _inherited(topology, nodes, "kind")
    images = _inherited(topology, nodes, "image", of_kind)
    for name in owners.values():
        is_open = of_kind[name] in _OPEN_KINDS and _ROUTERS.search(images[name]) is None
        found.device(name, "" if is_open else SWITCH)
    if len(found.devices) < len(owners):
        parts = len(owners) - len(found.devices)
        found.note("node that is a part of another (network-mode)", number=parts)
    links = topology.get("links") or []
    if not isinstance(links, list):
        raise InputError(f"{file.name}: links is not a list")
    for number, link in enumerate(links, 1):
        ends = _ends(f"{file.name}: link {number}", link)
        if ends is None:
            found.note("link to the host system (mgmt-net, macvlan, vxlan, …)", "left out")
            continue
        for node, _ in ends:
            if node not in owners:
                raise InputError(
                    f"{file.name}: link {number}: there is no node {clean(node, 60)!r}"
                )
        (a, a_port), (b, b_port) = ends
        found.link(Link(owners[a], a_port, owners[b], b_port))
    _find_servers(found)
    return found


def _find_servers(found: Inventory) -> None:
    """Mark as hosts the devices of ``found`` that have several neighbours, all known switches.

    Devices that are known to be switches do not change.
    """
    neighbours: dict[str, set[str]] = {name: set() for name in found.devices}
    for link in found.links:
        neighbours[link.a].add(link.b)
        neighbours[link.b].add(link.a)
    known = {name for name, purpose in found.devices.items() if purpose == SWITCH}
    servers = [
        name
        for name, others in neighbours.items()
        if name not in known and len(others) > 1 and others <= known
    ]
    found.devices |= dict.fromkeys(servers, HOST)


def _yaml(file: Described) -> Any:
    """Return the content of a YAML file as Python values.

    Raises ``InputError`` if PyYAML is not installed, or if the file is too large, too deeply nested
    or not valid, or has aliases or tags.
    """
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
        keys = _Keys(file)
        for event in yaml.parse(file.data, Loader=loader):
            if isinstance(event, yaml.AliasEvent):
                at = event.start_mark.line + 1
                raise InputError(
                    f"{file.name}:{at}: has an alias of YAML (*name), which is not supported"
                )
            tag = getattr(event, "tag", None)
            if tag is not None and tag != "!":
                at = event.start_mark.line + 1
                raise InputError(
                    f"{file.name}:{at}: has a tag of YAML ({clean(tag, 40)}), which is not "
                    "supported"
                )
            is_mapping = isinstance(event, yaml.MappingStartEvent)
            opens = is_mapping or isinstance(event, yaml.SequenceStartEvent)
            closes = isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent))
            depth += opens - closes
            if opens:
                keys.open(is_mapping)
            elif closes:
                keys.close()
            elif isinstance(event, yaml.ScalarEvent):
                keys.scalar(event.value, event.start_mark.line + 1)
            if depth > _MOST_DEPTH:
                raise InputError(f"{file.name}: is nested deeper than {_MOST_DEPTH} levels")
        return yaml.load(file.data, Loader=loader)
    except InputError:
        raise
    # Besides its own errors, PyYAML raises those of int(), float() and date() for wrong scalars.
    except (yaml.YAMLError, ValueError, TypeError, LookupError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file.name}:{mark.line + 1}" if mark is not None else file.name
        what = clean(str(getattr(error, "problem", None) or error), 100)
        if b"{{" in file.data:
            what += " (the file is a template: replace its {{…}} by values)"
        raise InputError(f"{where}: is not valid YAML: {what}") from None


class _Keys:
    """Check, event by event, that no key occurs twice in one mapping of a YAML file."""

    def __init__(self, file: Described) -> None:
        self._file = file
        #: For each open collection: the keys so far (None in a sequence), whether a key is next.
        self._open: list[tuple[set[str] | None, bool]] = [(None, False)]

    def open(self, is_mapping: bool) -> None:
        """Begin a mapping or a sequence."""
        self._node()
        self._open.append((set() if is_mapping else None, is_mapping))

    def close(self) -> None:
        """End the innermost mapping or sequence."""
        self._open.pop()

    def scalar(self, text: str, line: int) -> None:
        """Read a scalar; raise ``InputError`` if it is a key that its mapping already has."""
        keys, is_key = self._open[-1]
        if keys is not None and is_key:
            if text in keys:
                raise InputError(
                    f"{self._file.name}:{line}: the key {clean(text, 60)!r} occurs twice in one "
                    "object"
                )
            keys.add(text)
        self._node()

    def _node(self) -> None:
        """Note that a node of the innermost collection was read: keys and values alternate."""
        keys, is_key = self._open[-1]
        self._open[-1] = (keys, keys is not None and not is_key)


def _object(file: Described, tree: Any, key: str) -> dict[str, Any]:
    value = tree.get(key) if isinstance(tree, dict) else None
    if not isinstance(value, dict):
        raise InputError(
            f"{file.name}: has no object {key}, which a topology of containerlab must have"
        )
    return value


def _inherited(
    topology: dict[str, Any],
    nodes: dict[str, Any],
    key: str,
    kinds: dict[str, str] | None = None,
) -> dict[str, str]:
    """Return the value of the setting ``key`` for each node, by name; empty if it is not set.

    The value is that of the node itself, else of its group, else of its kind, else of the defaults.
    ``kinds`` has the kind of each node; if it is None, settings of kinds are ignored.
    """
    defaults, groups = topology.get("defaults"), topology.get("groups")
    by_kind = topology.get("kinds")
    found: dict[str, str] = {}
    for name, about in nodes.items():
        places = [about, _entry(groups, _entry(about, "group"))]
        if kinds is not None:
            places.append(_entry(by_kind, kinds[str(name)]))
        values = [_entry(place, key) for place in (*places, defaults)]
        found[str(name)] = next((v for v in values if isinstance(v, str) and v), "")
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _entry(tree: Any, key: Any) -> Any:
    return tree.get(key) if isinstance(tree, dict) and isinstance(key, str) else None


def _owners(file: Described, nodes: dict[str, Any]) -> dict[str, str]:
    """Return for each node, by name, the node of which it is a part, or its own name.

    A node is a part of the node that its ``network-mode`` names. Raises ``InputError`` for a loop.
    """
    parts: dict[str, str] = {}
    for name, about in nodes.items():
        mode = _entry(about, "network-mode")
        other = mode.removeprefix(_PART_OF) if isinstance(mode, str) else ""
        if other != mode and other in nodes:
            parts[str(name)] = other
    owners: dict[str, str] = {}
    for name in map(str, nodes):
        owner = name
        for _ in range(_MOST_PARTS):
            owner = parts.get(owner, owner)
        if owner in parts:
            raise InputError(
                f"{file.name}: network-mode of {clean(name, 60)!r} is a loop, or a chain of more "
                f"than {_MOST_PARTS} nodes"
            )
        owners[name] = owner
    return owners


def _ends(where: str, link: Any) -> tuple[_End, _End] | None:
    """Return both ends of a link, each as (node, interface); None for a link to the host system.

    ``where`` is the place of the link for messages.
    """
    if not isinstance(link, dict):
        raise InputError(f"{where}: is not an object with endpoints")
    if _text(link.get("type")) in _NO_NODES or "endpoint" in link:
        return None
    listed = link.get("endpoints", link)
    if isinstance(listed, dict) and "a" in listed:  # exported: a and z
        if "z" not in listed:
            return None
        listed = [listed["a"], listed["z"]]
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
