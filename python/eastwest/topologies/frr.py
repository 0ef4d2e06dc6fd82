"""Routes of hosts from the routing tables of FRR: ``show ip route json`` of each switch.

The longest prefix that contains the receiver's address determines the next hops of a switch; only
selected routes and active next hops count. The device of a next hop is found by the cable at its
interface. If there is no such cable, it is the device with the next hop's address, or the only
other device on the interface's network. Among several equal next hops, a hash (SHA-256) of sender,
receiver and switch chooses one, because an explicit route cannot split; weights are ignored.

A path ends at the switch of the receiver if that has a connected route to it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import ipaddress
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eastwest.errors import InputError
from eastwest.topologies.coloured import MOST_PAIRS
from eastwest.topologies.fabric import PORT_COLUMNS, name_of
from eastwest.topologies.inventory import Described, in_order, load_json
from eastwest.topologies.lldp import stem
from eastwest.units import clean, count

#: Maximum number of switches on a path: the limit of the simulator.
MOST_HOPS = 64
#: Maximum number of routes in all tables together.
_MOST_ROUTES = 5_000_000
#: Maximum size in bytes of a file of ports or of pairs.
_MOST_FILE_BYTES = 64 << 20
_LOCAL = {"local"}

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class _Hop:
    interface: str
    address: str


@dataclass
class _Table:
    """Routing table of one switch."""

    #: Next hops by (IP version, prefix length), then by network number; an empty tuple means a
    #: connected network.
    routes: dict[tuple[int, int], dict[int, tuple[_Hop, ...]]] = field(default_factory=dict)
    #: Networks to which the switch is connected, by its interface.
    connected: dict[str, list[str]] = field(default_factory=dict)
    #: IP addresses of the switch itself.
    own: set[str] = field(default_factory=set)
    #: (IP version, prefix length) of all routes, longest prefix first.
    lengths: list[tuple[int, int]] = field(default_factory=list)

    def find(self, address: Address) -> tuple[_Hop, ...] | None:
        """Return the next hops to an address; None without a route."""
        bits = address.max_prefixlen
        for version, length in self.lengths:
            if version == address.version:
                found = self.routes[version, length].get(int(address) >> (bits - length))
                if found is not None:
                    return found
        return None


@dataclass
class Ports:
    """Neighbours of a device: ``at`` by (device, port), ``of`` as a list by device."""

    #: Neighbour at each port, by (device, port).
    at: dict[tuple[str, str], str] = field(default_factory=dict)
    #: Neighbours of each device, one for each of its cables.
    of: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class Routes:
    """Switches on the path of each pair of hosts, and notes on pairs without a path."""

    paths: dict[tuple[str, str], list[str]]
    notes: list[str]

    def csv(self) -> str:
        """Return the routes as CSV with the columns from, to and via (switches, by spaces)."""
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
    """Return the paths between hosts; ``hosts`` has the address of each.

    Without ``pairs``, all pairs of hosts have a path. Raises ``InputError`` where a table is
    damaged, or a host is not in the file of ports.
    """
    names = sorted(hosts, key=in_order)
    for host in names:
        if host not in ports.of:
            raise InputError(f"the host {clean(host, 64)} has no cable in the file of ports")
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
    return _Paths(_tables(files), ports, hosts).all(pairs)


class _Paths:
    """Paths through the routing tables of all switches."""

    def __init__(
        self, tables: Mapping[str, _Table], ports: Ports, hosts: Mapping[str, str]
    ) -> None:
        self.tables = tables
        self.ports = ports
        self.hosts = hosts
        #: Switch or host that has an IP address, by the address.
        self.owners = {address: name for name, table in tables.items() for address in table.own}
        self.owners |= {address: host for host, address in hosts.items()}
        #: Switches that are connected to a network, by the network.
        self.on: dict[str, set[str]] = {}
        for name, table in tables.items():
            for networks in table.connected.values():
                for network in networks:
                    self.on.setdefault(network, set()).add(name)
        #: Number of pairs without a path, by the reason.
        self.left: Counter[str] = Counter()
        #: Number of choices of one among several equal next hops.
        self.split = 0
        #: First pair without a path, by the reason.
        self.example: dict[str, str] = {}

    def all(self, pairs: Sequence[tuple[str, str]]) -> Routes:
        """Return the paths of all pairs, with notes on pairs that have none."""
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
        """Return the switches from host ``a`` to host ``b``, or the reason why there are none."""
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

    def _nexts(self, at: str, hops: tuple[_Hop, ...] | None) -> list[str] | str:
        """Return the devices of the next hops of a switch, or the reason why there are none.

        ``at`` is the switch; ``hops`` are its next hops to the receiver: empty for a connected
        network, None without a route.
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

    def _next(self, at: str, hop: _Hop) -> str:
        """Return the device of a next hop of the switch ``at``; empty if it is not known."""
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


def _tables(files: Sequence[Described]) -> dict[str, _Table]:
    tables: dict[str, _Table] = {}
    total = 0
    for file in files:
        name = name_of(stem(file), "")
        if not name:
            raise InputError(
                f"{file.name}: the name of the file does not contain the name of a "
                "switch, such as leaf1.json"
            )
        table = tables.setdefault(name, _Table())
        for where, route in _selected(file, load_json(file)):
            total += 1
            if total > _MOST_ROUTES:
                raise InputError(
                    f"{file.name}: all files together have more than {_MOST_ROUTES:,} "
                    "routes, which is the maximum"
                )
            _add(table, where, route)
    return tables


def _selected(file: Described, tree: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the selected routes of a file, each with its place in the file for messages."""
    if isinstance(tree, dict) and tree and all(isinstance(v, dict) for v in tree.values()):
        if len(tree) > 1 and "default" not in tree:
            raise InputError(
                f"{file.name}: has the tables of {len(tree)} VRFs, none of them default: export "
                "one (show ip route vrf NAME json)"
            )
        tree = tree.get("default", next(iter(tree.values())))
    if not isinstance(tree, dict):
        raise InputError(f"{file.name}: is not the output of show ip route json")
    for prefix, listed in tree.items():
        where = f"{file.name}: {clean(str(prefix), 60)}"
        if not isinstance(listed, list) or not all(isinstance(r, dict) for r in listed):
            raise InputError(
                f"{where}: must be a list of routes, as in the output of show ip route json"
            )
        for route in listed:
            if route.get("selected") or _LOCAL & {str(route.get("protocol"))}:
                yield where, {"prefix": prefix, **route}


def _add(table: _Table, where: str, route: dict[str, Any]) -> None:
    """Add a route of FRR's JSON to a table; ``where`` is its place in messages."""
    try:
        network = ipaddress.ip_network(str(route["prefix"]), strict=False)
    except ValueError:
        raise InputError(f"{where}: the prefix is not a network, such as 10.0.0.0/24") from None
    listed = route.get("nexthops", [])
    if not isinstance(listed, list) or not all(isinstance(h, dict) for h in listed):
        raise InputError(f"{where}: nexthops must be a list of objects")
    usable = [
        h for h in listed if h.get("active") and not h.get("recursive") and not h.get("duplicate")
    ]
    interfaces = [str(h.get("interfaceName", "")) for h in usable]
    connected = route.get("protocol") in {"connected", *_LOCAL}
    if network.prefixlen == network.max_prefixlen and connected:
        table.own.add(str(network.network_address))
    if connected:
        for interface in interfaces:
            table.connected.setdefault(interface, []).append(str(network))
        hops: tuple[_Hop, ...] = ()
    else:
        hops = tuple(
            _Hop(str(h.get("interfaceName", "")), str(h.get("ip", "")))
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
    """Return the neighbours of all devices from a file of ports (``topology import --ports``)."""
    ports = Ports()
    for where, (a, a_port, b, b_port) in _rows(path, PORT_COLUMNS):
        if not a or not b:
            raise InputError(f"{where}: a and b must be names of devices")
        for one, port, other in ((a, a_port, b), (b, b_port, a)):
            ports.of.setdefault(one, []).append(other)
            if port:
                ports.at.setdefault((one, port), other)
    return ports


def read_pairs(path: Path, hosts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the pairs of hosts of a CSV file with the columns from and to.

    Raises ``InputError`` for a host that is not in ``hosts``, the addresses by name.
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
    """Yield the rows of a CSV file, each with its place in the file for messages."""
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
