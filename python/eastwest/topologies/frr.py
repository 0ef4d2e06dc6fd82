"""Routes of hosts from the routing tables of FRR: ``show ip route json`` of each switch.

The longest prefix that contains the receiver's address determines the next hops of a switch; only
selected routes and active next hops count. A next hop is the device at the other end of the cable
at its interface. If that cable is not known, it is the device with the next hop's address, or the
only other device on the interface's network. Among several equal next hops, a hash (SHA-256) of
sender, receiver and switch chooses one, because an explicit route cannot split. Weights are
ignored.

If a file has the tables of several VRFs (``show ip route vrf all json``), the default one is used.
A path ends at a switch whose next hop is the receiver, and at the receiver's own switch if this
switch has a connected route, or no route, to the receiver.
"""

from __future__ import annotations

import csv
import hashlib
import io
import ipaddress
import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eastwest.errors import InputError
from eastwest.topologies.coloured import MOST_PAIRS
from eastwest.topologies.fabric import PORT_COLUMNS, name_of
from eastwest.topologies.inventory import Described, Inventory, in_order, shared_ports
from eastwest.topologies.lldp import stem
from eastwest.units import clean, count

#: Maximum number of switches on a path, a limit of the simulator.
MOST_HOPS = 64
#: Maximum number of routes in all tables together.
_MOST_ROUTES = 5_000_000
#: Maximum size in bytes of a CSV file of ports or pairs.
_MOST_FILE_BYTES = 64 << 20
_LOCAL = {"local"}
#: Maximum number of tables in one file.
_MOST_VRFS = 4096
#: Names and numbers of the default VRF; a route that states no VRF belongs to the default VRF.
_DEFAULT_VRFS = {"default", "0", ""}

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class Hop:
    """Next hop of a route: outgoing interface and IP address; either may be empty."""

    interface: str
    address: str


@dataclass
class Table:
    """Routing table of one switch."""

    #: Next hops of each prefix, by (IP version, prefix length) and then by the bits of the prefix
    #: as a number; an empty tuple means that the switch is connected to the network itself.
    routes: dict[tuple[int, int], dict[int, tuple[Hop, ...]]] = field(default_factory=dict)
    #: Networks to which each interface is connected, as text, by the name of the interface.
    connected: dict[str, list[str]] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)
    #: Each pair (IP version, prefix length) that occurs in ``routes``, longest prefix first.
    lengths: list[tuple[int, int]] = field(default_factory=list)
    #: Number of files that have routes of the switch.
    files: int = 0

    def find(self, address: Address) -> tuple[Hop, ...] | None:
        """Return the next hops of the longest prefix that contains ``address``.

        The result is empty for a connected network, and None if there is no route.
        """
        bits = address.max_prefixlen
        for version, length in self.lengths:
            if version == address.version:
                found = self.routes[version, length].get(int(address) >> (bits - length))
                if found is not None:
                    return found
        return None


@dataclass
class Ports:
    """Neighbours of devices: ``at`` by (device, port), ``of`` as a list of all, by device."""

    at: dict[tuple[str, str], str] = field(default_factory=dict)
    of: dict[str, list[str]] = field(default_factory=dict)
    #: Notes on ports with several cables.
    notes: list[str] = field(default_factory=list)


@dataclass
class Routes:
    """Switches on the path of each pair of hosts, and notes on pairs without a path."""

    paths: dict[tuple[str, str], list[str]]
    notes: list[str]

    def csv(self) -> str:
        """Return the routes as CSV: from, to, via (names of switches, separated by spaces)."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["from", "to", "via"])
        writer.writerows([a, b, " ".join(via)] for (a, b), via in self.paths.items())
        return out.getvalue()


def routes(
    files: Sequence[Described],
    ports: Ports,
    hosts: Mapping[str, str],
    pairs: Sequence[tuple[str, str]] | None = None,
) -> Routes:
    """Return the switches on the path of each pair of hosts, from routing tables of FRR.

    ``files`` are the outputs of ``show ip route json``, each named after a switch. ``hosts`` has
    the IP address of each host by name. ``pairs`` are (sender, receiver); if it is None, all pairs
    count. Raises ``InputError`` if a table is damaged, if a host is not in ``ports``, if there are
    too many pairs, or if no pair has a path.
    """
    names = sorted(hosts, key=in_order)
    for host in names:
        if host not in ports.of:
            near = name_of(host, "")
            hint = f"; it may be {near} there" if near in ports.of else ""
            raise InputError(f"the host {clean(host, 64)} has no cable in the file of ports{hint}")
    if pairs is None:
        if len(names) * (len(names) - 1) > MOST_PAIRS:
            raise InputError(
                f"{len(names)} hosts make more than {MOST_PAIRS} pairs, the limit of "
                "the simulator: give the pairs with traffic (--pairs)"
            )
        pairs = [(a, b) for a in names for b in names if a != b]
    if len(pairs) > MOST_PAIRS:
        raise InputError(
            f"there are {len(pairs)} pairs, but the simulator allows at most {MOST_PAIRS}"
        )
    found = tables(files)
    made = _Paths(found, ports, hosts).all(pairs)
    made.notes = [*ports.notes, *_on_tables(found, ports), *made.notes]
    return made


def _on_tables(found: Mapping[str, Table], ports: Ports) -> list[str]:
    """Return notes on switches with several tables, and on tables that no path can use."""
    about = Inventory()
    for name, table in found.items():
        if table.files > 1:
            then = "their routes are joined; for a prefix in several, the last file counts"
            about.note("switch with tables in several files", then, name)
        if name not in ports.of:
            then = "no path leads through it"
            about.note("table of a switch that is not in the file of ports", then, name)
    return about.told()


class _Paths:
    """Search for the paths of pairs of hosts through the routing tables of all switches."""

    def __init__(self, tables: Mapping[str, Table], ports: Ports, hosts: Mapping[str, str]) -> None:
        self.tables = tables
        self.ports = ports
        self.hosts = hosts
        self.owners = {address: name for name, table in tables.items() for address in table.own}
        self.owners |= {address: host for host, address in hosts.items()}
        self.on: dict[str, set[str]] = {}
        for name, table in tables.items():
            for networks in table.connected.values():
                for network in networks:
                    self.on.setdefault(network, set()).add(name)
        self.left: Counter[str] = Counter()
        self.split = 0
        self.example: dict[str, str] = {}

    def all(self, pairs: Sequence[tuple[str, str]]) -> Routes:
        """Return the paths of ``pairs`` (sender, receiver), with notes on pairs without a path.

        Raises ``InputError`` if no pair has a path.
        """
        found: dict[tuple[str, str], list[str]] = {}
        for a, b in pairs:
            path = self._path(a, b)
            if isinstance(path, str):
                self.left[path] += 1
                self.example.setdefault(path, f"{a} to {b}")
            else:
                found[a, b] = path
        notes = [
            f"{count(n)} × pair without a path ({clean(self.example[why], 140)}): "
            f"{clean(why, 140)}; the simulator uses its shortest paths"
            for why, n in self.left.items()
        ]
        if self.split:
            notes.append(
                f"{count(self.split)} × choice of one among several equal next hops, "
                "by a hash of sender, receiver and switch"
            )
        if not found:
            raise InputError("no pair has a path: " + "; ".join(notes[:3]))
        return Routes(found, notes)

    def _path(self, a: str, b: str) -> list[str] | str:
        """Return the switches on the path from host ``a`` to host ``b``.

        If there is no path, the result is a text with the reason.
        """
        address = ipaddress.ip_address(self.hosts[b])
        last = self.ports.of[b][0]
        path = [self.ports.of[a][0]]
        while len(path) <= MOST_HOPS:
            at = path[-1]
            table = self.tables.get(at)
            hops = None if table is None else table.find(address)
            if at == last and not hops:
                return path
            nexts = self._nexts(at, hops)
            if isinstance(nexts, str):
                return nexts
            self.split += len(nexts) > 1
            chosen = nexts[_hash(f"{a} {b} {at}") % len(nexts)]
            if chosen == b:
                return path
            if chosen in path or chosen in self.hosts:
                return f"the path has a loop or a host at {chosen}"
            path.append(chosen)
        return f"the path has more than {MOST_HOPS} switches"

    def _nexts(self, at: str, hops: tuple[Hop, ...] | None) -> list[str] | str:
        """Return the sorted names of the devices to which ``hops`` of the switch ``at`` lead.

        If no device is known, the result is a text with the reason.
        """
        if at not in self.tables:
            return f"there is no routing table of {at}"
        if hops is None:
            return f"{at} has no route to the receiver"
        if not hops:
            return f"{at} is connected to the receiver's network, but not to the receiver"
        nexts = sorted({n for hop in hops if (n := self._next(at, hop))}, key=in_order)
        return nexts or (
            f"no device is known for the next hop of {at}: interface "
            f"{hops[0].interface}, address {hops[0].address}"
        )

    def _next(self, at: str, hop: Hop) -> str:
        """Return the device to which ``hop`` of the switch ``at`` leads; empty if not known."""
        name = hop.interface
        found = self.ports.at.get((at, name)) or self.ports.at.get((at, name.partition(".")[0]))
        found = found or self.owners.get(hop.address, "")
        if not found:
            for network in self.tables[at].connected.get(name, ()):
                others = self.on.get(network, set()) - {at}
                if len(others) == 1:
                    found = next(iter(others))
        return found if found in self.ports.of.get(at, ()) else ""


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def tables(files: Sequence[Described]) -> dict[str, Table]:
    """Return the routing table of each switch by name; the switch's name is in the file's name.

    Raises ``InputError`` if a file is damaged or the files have too many routes.
    """
    tables: dict[str, Table] = {}
    total = 0
    for file in files:
        name = name_of(stem(file), "")
        if not name:
            raise InputError(
                f"{file.name}: the name of the file does not contain the name of a "
                "switch, such as leaf1.json"
            )
        table = tables.setdefault(name, Table())
        table.files += 1
        for where, route in _selected(file):
            total += 1
            if total > _MOST_ROUTES:
                raise InputError(
                    f"{file.name}: all files together have more than {_MOST_ROUTES:,} "
                    "routes, which is the maximum"
                )
            _add(table, where, route)
    return tables


def _selected(file: Described) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (place for messages, JSON object) of each selected or local route of a file."""
    for tree in _tables_of_default(file, list(_documents(file))):
        for prefix, listed in tree.items():
            where = f"{file.name}: {clean(str(prefix), 60)}"
            if not isinstance(listed, list) or not all(isinstance(r, dict) for r in listed):
                raise InputError(
                    f"{where}: must be a list of routes, as in the output of show ip route json"
                )
            for route in listed:
                if route.get("selected") or _LOCAL & {str(route.get("protocol"))}:
                    yield where, {"prefix": prefix, **route}


def _documents(file: Described) -> Iterator[Any]:
    """Yield the JSON values in a file: with ``vrf all``, FRR writes one value for each VRF."""
    text = file.data.decode("utf-8", "replace").lstrip("\ufeff").rstrip()
    decoder, at = json.JSONDecoder(), 0
    for number in itertools.count():
        while at < len(text) and text[at].isspace():
            at += 1
        if number and at == len(text):
            return
        if number == _MOST_VRFS:
            raise InputError(f"{file.name}: has the tables of more than {_MOST_VRFS} VRFs")
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{file.name}: is not JSON: {clean(str(error), 100)}") from None
        yield value


def _tables_of_default(file: Described, documents: list[Any]) -> list[dict[str, Any]]:
    """Return the routing tables of a file that are used, from its JSON values ``documents``.

    A single table is used whatever its VRF; of several, those of the default VRF. Raises
    ``InputError`` if there are several and none is that of the default VRF.
    """
    trees = [_table_of(file, tree) for tree in documents]
    if len(trees) == 1:
        return trees
    found = [tree for tree in trees if _vrf(tree) in _DEFAULT_VRFS]
    if not found:
        raise InputError(_without_default(file, len(trees)))
    return found


def _table_of(file: Described, tree: Any) -> dict[str, Any]:
    """Return a routing table from the JSON value ``tree``: a table, or an object of tables by VRF.

    Of several tables, the table of the default VRF is returned. Raises ``InputError`` if there is
    no default table among several, or if the value is not the output of ``show ip route json``.
    """
    if not isinstance(tree, dict):
        raise InputError(f"{file.name}: is not the output of show ip route json")
    other = _other_command(tree)
    if not other and tree and all(isinstance(v, dict) for v in tree.values()):
        if len(tree) > 1 and "default" not in tree:
            raise InputError(_without_default(file, len(tree)))
        inner: dict[str, Any] = tree.get("default", next(iter(tree.values())))
        tree, other = inner, _other_command(inner)
    if other:
        raise InputError(f"{file.name}: is the output of {other}; show ip route json is needed")
    return dict(tree)


def _without_default(file: Described, number: int) -> str:
    return (
        f"{file.name}: has the tables of {number} VRFs, none of them default: export one "
        "(show ip route vrf NAME json)"
    )


def _other_command(tree: dict[str, Any]) -> str:
    """Return the FRR command whose output ``tree`` is; empty if it is ``show ip route json``."""
    if {"paths", "routes", "vrfId"} & tree.keys():
        return "show bgp … json"
    first = next(iter(tree.values()), None)
    if isinstance(first, dict) and _is_network(next(iter(tree))):
        return "show ip ospf route json" if "routeType" in first else "another command"
    return ""


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _vrf(tree: dict[str, Any]) -> str:
    """Return the name or number of the VRF in the first route of a table; empty if it has none.

    Older versions of FRR state no VRF in routes of the default VRF.
    """
    listed = next(iter(tree.values()), None)
    route = listed[0] if isinstance(listed, list) and listed else None
    route = route if isinstance(route, dict) else {}
    return str(route.get("vrfName", route.get("vrfId", "")))


def _add(table: Table, where: str, route: dict[str, Any]) -> None:
    """Add the route of a JSON object to a table, if it is connected or has a usable next hop.

    ``where`` is the place of the route for messages.
    """
    try:
        # Some collections have escaped the JSON text twice: 10.0.0.0\\/24.
        network = ipaddress.ip_network(str(route["prefix"]).replace("\\/", "/"), strict=False)
    except ValueError:
        raise InputError(f"{where}: the prefix is not a network, such as 10.0.0.0/24") from None
    listed = route.get("nexthops", [])
    if not isinstance(listed, list) or not all(isinstance(h, dict) for h in listed):
        raise InputError(f"{where}: nexthops must be a list of objects")
    usable = [
        h for h in listed if h.get("active") and not h.get("recursive") and not h.get("duplicate")
    ]
    interfaces = [str(h.get("interfaceName", "")) for h in usable]
    protocol = route.get("protocol")
    connected = isinstance(protocol, str) and protocol in {"connected", *_LOCAL}
    if network.prefixlen == network.max_prefixlen and connected:
        table.own.add(str(network.network_address))
    if connected:
        for interface in interfaces:
            table.connected.setdefault(interface, []).append(str(network))
        hops: tuple[Hop, ...] = ()
    else:
        hops = tuple(
            Hop(str(h.get("interfaceName", "")), str(h.get("ip", "")))
            for h in usable
            if not h.get("blackhole") and not h.get("reject")
        )
        if not hops:
            return
    shift = network.max_prefixlen - network.prefixlen
    kind = (network.version, network.prefixlen)
    if kind not in table.routes:
        table.lengths = sorted((*table.routes, kind), reverse=True)
    by_network = table.routes.setdefault(kind, {})
    by_network[int(network.network_address) >> shift] = hops


def read_ports(path: Path) -> Ports:
    """Return the neighbours of devices from the CSV file that ``topology import --ports`` wrote."""
    ports = Ports()
    ends: list[tuple[str, str, str]] = []
    for where, (a, a_port, b, b_port) in _rows(path, PORT_COLUMNS):
        if not a or not b:
            raise InputError(f"{where}: a and b must be names of devices")
        for one, port, other in ((a, a_port, b), (b, b_port, a)):
            ports.of.setdefault(one, []).append(other)
            if port:
                ports.at.setdefault((one, port), other)
            ends.append((one, port, json.dumps(sorted([(a, a_port), (b, b_port)]))))
    ports.notes = shared_ports(ends, "the first one in the file of ports counts")
    return ports


def read_pairs(path: Path, hosts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the distinct pairs (from, to) of hosts in a CSV file with the columns from and to.

    Raises ``InputError`` if a row names an unknown host, or one host twice.
    """
    pairs: dict[tuple[str, str], None] = {}
    for where, (a, b) in _rows(path, ("from", "to")):
        for name in (a, b):
            if name not in hosts:
                raise InputError(f"{where}: there is no host {clean(name, 60)!r}")
        if a == b:
            raise InputError(f"{where}: the source and target are both {a}")
        pairs[a, b] = None
    return list(pairs)


def _rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield (place for messages, values of ``columns``) of each row of a CSV file."""
    if not path.is_file():
        raise InputError(f"{path} is not a file")
    if path.stat().st_size > _MOST_FILE_BYTES:
        raise InputError(f"{path} has more than {_MOST_FILE_BYTES >> 20} MiB, the limit")
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        rows = csv.DictReader(file)
        try:
            lacking = [c for c in columns if c not in (rows.fieldnames or [])]
            if lacking:
                raise InputError(f"{path}:1: has no column {', '.join(lacking)}")
            for row in rows:
                yield f"{path}:{rows.line_num}", [(row[c] or "").strip() for c in columns]
        except csv.Error as error:
            raise InputError(f"{path}:{rows.line_num}: {error}") from None
