"""Devices and links of an inventory, and the fabric made from the inventory.

Inventories (LLDP, containerlab, NetBox) have ports, several cables per server, and devices without
a known purpose. The fabric of the simulator has hosts with network cards, and switches:

* If ``Assumed.host_names`` is given, devices with these names are hosts, and all others switches.
  Otherwise the inventory states the purpose of a device. A device of unknown purpose is a host if
  all its links lead to one neighbour, and otherwise a switch.
* Each link of a host is a cable at a separate network card. The cards are numbered in the order
  of the names of the host's ports. Links that are slower than the fastest link of the host (often
  management ports) are left out, because all cards of a bond have one rate. A link of a host
  without a rate gets the rate of the host's fastest link.
* Links between two hosts, and devices without a link, are left out.
* ``Assumed.device_names`` limits the fabric to devices with these names.
* If no device is a host, ``Assumed.hosts_per_node`` hosts are added at each switch with a name of
  ``Assumed.hosts_at``.
* The delay of a cable is ``Assumed.delay_s`` plus 5 ns for each metre of its length.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

from eastwest.errors import InputError
from eastwest.topologies.fabric import Assumed, Cable, Fabric, demand_size, name_of
from eastwest.units import clean, count, rate

#: Rate in bit/s of a link for which neither the inventory nor the user gives a rate.
_RATE_BPS = 10e9
_S_PER_M = 5e-9
#: Maximum number of network cards of a host, a limit of the simulator.
_MOST_CARDS = 16
_LONGEST_M = 100_000.0
#: Least and largest rate of a link in bit/s.
_RATES = (1e3, 1e13)
_DIGITS = re.compile(r"(\d+)")
HOST, SWITCH = "host", "switch"
#: Patterns for names of ports of Cisco and Juniper (``TenGigE0/0``, ``xe-0/0/1``), each with the
#: rate of the port in bit/s.
_PORT_RATES = (
    (re.compile(r"fourhundredgig|^fh\d", re.I), 400e9),
    (re.compile(r"twohundredgig", re.I), 200e9),
    (re.compile(r"hundredgig|^hu\d", re.I), 100e9),
    (re.compile(r"fiftygig", re.I), 50e9),
    (re.compile(r"fortygig|^fo\d", re.I), 40e9),
    (re.compile(r"twentyfivegig|^twe\d", re.I), 25e9),
    (re.compile(r"tengig|^te\d|^xe-", re.I), 10e9),
    (re.compile(r"fivegig", re.I), 5e9),
    (re.compile(r"twogig", re.I), 2.5e9),
    (re.compile(r"gigabitethernet|gigabite|^gi\d|^ge-", re.I), 1e9),
    (re.compile(r"fastethernet|^fa\d", re.I), 100e6),
)


@dataclass(frozen=True)
class Described:
    """File that was read: its path, for messages, and its content."""

    name: str
    data: bytes


@dataclass(frozen=True)
class Link:
    """Link between the port ``a_port`` of device ``a`` and the port ``b_port`` of device ``b``."""

    a: str
    a_port: str
    b: str
    b_port: str
    #: Rate in bit/s; None if the inventory does not state it.
    rate_bps: float | None = None
    #: Length of the cable in m; None if the inventory does not state it.
    length_m: float | None = None


@dataclass
class Inventory:
    """Devices by name with their purpose (host, switch or empty), and the links between them."""

    devices: dict[str, str] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    #: Number of records that were left out or changed, by reason.
    notes: Counter[str] = field(default_factory=Counter)

    def device(self, name: str, purpose: str = "") -> str:
        """Add a device, or set ``purpose`` if the device has none yet; return ``name``."""
        if not self.devices.get(name):
            self.devices[name] = purpose
            demand_size(len(self.devices), 0)
        return name

    def link(self, link: Link) -> None:
        """Add a link and its two devices; a link of a device with itself is only counted."""
        if link.a == link.b:
            self.notes["link of a device with itself: left out"] += 1
            return
        self.device(link.a)
        self.device(link.b)
        self.links.append(link)
        demand_size(0, len(self.links))


def in_order(name: str) -> tuple[Any, ...]:
    """Return a sort key for a name, by the values of its numbers: ``leaf10`` after ``leaf9``."""
    parts = _DIGITS.split(name)
    return tuple((int(p), "") if p.isdigit() else (-1, p) for p in parts), name


def rate_of_port(name: str) -> float | None:
    """Return the rate in bit/s that a port's name implies: 10e9 for ``TenGigE0/0``; else None."""
    return next((bps for pattern, bps in _PORT_RATES if pattern.search(name)), None)


def sound_rate(bps: float | None) -> float | None:
    """Return ``bps``, or None if it is outside the range of a cable, 1 kbit/s to 10 Tbit/s."""
    return bps if bps is not None and _RATES[0] <= bps <= _RATES[1] else None


def load_json(file: Described) -> Any:
    """Return the content of a JSON file.

    Raises ``InputError`` with the position of the error if the file is not JSON.
    """
    try:
        return json.loads(file.data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file.name}: is not JSON: {clean(str(error), 100)}") from None


def fabric(found: Inventory, assumed: Assumed) -> Fabric:
    """Return the fabric of an inventory; ``notes`` tell what was left out or assumed.

    Raises ``InputError`` if the inventory has no links, no switch, a single host, or several parts
    without a path between them.
    """
    if assumed.device_names:
        found = _limited(found, assumed.device_names)
    left_out = [f"{count(number)} × {what}" for what, number in found.notes.items()]
    if not found.links:
        because = f": {'; '.join(left_out)}" if left_out else ""
        raise InputError(f"the inventory has no link between two devices{because}")
    made = Fabric(notes=left_out)
    purpose = _purposes(found, assumed, made)
    switch_links, host_links = _sorted_links(found, purpose, made)
    _cards(host_links, assumed.rate_bps or _RATE_BPS, made)
    joined = {link.a for link in switch_links} | {link.b for link in switch_links}
    joined |= set(host_links) | {link.b for links in host_links.values() for link in links}
    without = sum(1 for name in found.devices if name not in joined)
    if without:
        made.notes.append(f"{count(without)} × device without a usable link: left out")
    used = [name for name in sorted(found.devices, key=in_order) if name in joined]
    names = _names(used, made)
    made.hosts = [names[name] for name in used if purpose[name] == HOST]
    made.switches = [names[name] for name in used if purpose[name] == SWITCH]
    _demand_hosts_and_switches(made)
    _cables(switch_links, host_links, names, assumed, made)
    _demand_one_part(made)
    if not made.hosts:
        _add_hosts(made, assumed)
    return made.check()


def _limited(found: Inventory, patterns: tuple[str, ...]) -> Inventory:
    """Return an inventory with the devices whose names match a pattern, and their links.

    Raises ``InputError`` if no device matches.
    """
    devices = {
        name: purpose
        for name, purpose in found.devices.items()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    }
    if not devices:
        wanted = ", ".join(clean(p, 60) for p in patterns)
        raise InputError(f"no device has a name like {wanted} (--devices)")
    links = [link for link in found.links if link.a in devices and link.b in devices]
    notes = Counter(found.notes)
    if len(devices) < len(found.devices):
        notes["device whose name does not match --devices: left out"] = len(found.devices) - len(
            devices
        )
    return Inventory(devices, links, notes)


def _demand_hosts_and_switches(made: Fabric) -> None:
    """Raise ``InputError`` for a fabric without a switch, or with exactly one host."""
    if not made.switches:
        raise InputError(
            "all links join two hosts, so that no switch is left (--host decides which devices are "
            "hosts)"
        )
    if len(made.hosts) == 1:
        raise InputError(
            f"only one device is a host: {made.hosts[0]}. A fabric needs two: name them (--host "
            "PATTERN). If the pattern matches no device, each switch gets hosts (--hosts-per-node)"
        )


def _demand_one_part(made: Fabric) -> None:
    """Raise ``InputError`` unless there is a path between any two nodes of the fabric."""
    part_of = {name: name for name in (*made.hosts, *made.switches)}

    def root(name: str) -> str:
        while part_of[name] != name:
            part_of[name] = name = part_of[part_of[name]]
        return name

    for cable in made.cables:
        part_of[root(cable.a)] = root(cable.b)
    sizes = Counter(root(name) for name in part_of)
    if len(sizes) > 1:
        (largest, size), *_ = sizes.most_common(1)
        member = next(name for name in part_of if root(name) == largest)
        raise InputError(
            f"the fabric is not connected: it has {count(len(sizes))} parts without a path between "
            f"them. The largest has {count(size)} of {count(len(part_of))} devices, such as "
            f"{member}. Name the devices of one part (--devices PATTERN)"
        )


def _purposes(found: Inventory, assumed: Assumed, made: Fabric) -> dict[str, str]:
    if assumed.host_names:
        return {
            name: HOST
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in assumed.host_names)
            else SWITCH
            for name in found.devices
        }
    neighbours: dict[str, set[str]] = {name: set() for name in found.devices}
    for link in found.links:
        neighbours[link.a].add(link.b)
        neighbours[link.b].add(link.a)
    purpose = dict(found.devices)
    guessed = [name for name, known in purpose.items() if not known]
    for name in guessed:
        purpose[name] = HOST if len(neighbours[name]) == 1 else SWITCH
    hosts = sum(purpose[name] == HOST for name in guessed)
    if guessed:
        made.notes.append(
            f"{count(len(guessed))} × device of unknown purpose: {count(hosts)} of "
            "them have one neighbour and become hosts, the others switches (--host "
            "names the hosts)"
        )
    return purpose


def _sorted_links(
    found: Inventory, purpose: dict[str, str], made: Fabric
) -> tuple[list[Link], dict[str, list[Link]]]:
    """Return (links between switches, links of each host by the host's name).

    In a link of a host, end ``a`` is the host. Links between two hosts are left out and noted in
    ``made``.
    """
    switch_links: list[Link] = []
    of_host: dict[str, list[Link]] = {}
    between = 0
    for link in found.links:
        ends = purpose[link.a], purpose[link.b]
        if ends == (SWITCH, SWITCH):
            switch_links.append(link)
        elif ends == (HOST, HOST):
            between += 1
        else:
            turned = link if ends[0] == HOST else _turned(link)
            of_host.setdefault(turned.a, []).append(turned)
    if between:
        made.notes.append(f"{count(between)} × link between two hosts: left out")
    return switch_links, of_host


def _cards(host_links: dict[str, list[Link]], otherwise: float, made: Fabric) -> None:
    """Leave in ``host_links`` only the links of each host that become network cards, by port name.

    Slower links, and links above the maximum number of cards, are removed; notes are added to
    ``made``. ``otherwise`` is the rate in bit/s of a host if none of its links has a rate.
    """
    several = slower = beyond = alike = 0
    for host, links in host_links.items():
        known = [link.rate_bps for link in links if link.rate_bps is not None]
        fastest = max(known, default=otherwise)
        kept = [link for link in links if link.rate_bps in (None, fastest)]
        kept.sort(key=lambda link: (in_order(link.a_port), in_order(link.b), in_order(link.b_port)))
        slower += len(kept) < len(links)
        if known:
            alike += sum(link.rate_bps is None for link in kept)
            kept = [replace(link, rate_bps=fastest) for link in kept]
        beyond += len(kept) > _MOST_CARDS
        host_links[host] = kept[:_MOST_CARDS]
        several += len(host_links[host]) > 1
    if alike:
        made.notes.append(
            f"{count(alike)} × link of a host without a rate: the rate of the host's other links "
            "is assumed"
        )
    if slower:
        made.notes.append(
            f"{count(slower)} × host with links of different rates: only the fastest are used, "
            "because a bond has cards of one rate"
        )
    if beyond:
        made.notes.append(
            f"{count(beyond)} × host with more than {_MOST_CARDS} links: the first {_MOST_CARDS} "
            "in the order of ports are used"
        )
    if several:
        made.notes.append(
            f"{count(several)} × host with several links: a network card for each "
            "(fabric.bond_mode decides their use)"
        )


def _turned(link: Link) -> Link:
    return Link(link.b, link.b_port, link.a, link.a_port, link.rate_bps, link.length_m)


def _names(used: list[str], made: Fabric) -> dict[str, str]:
    """Return the name of the node for each device, by the name of the device.

    Names are valid and unique; the number of changed names is noted in ``made``.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for number, device in enumerate(used):
        name = unique(name_of(device, f"node{number}"), taken, number)
        taken.add(name)
        names[device] = name
    changed = sum(names[device] != device for device in used)
    if changed:
        made.notes.append(
            f"{count(changed)} × name of a device that was changed to a valid and unique name"
        )
    return names


def unique(name: str, taken: Collection[str], number: int = 2) -> str:
    """Return ``name`` if it is not in ``taken``; else its first 48 characters, ``-`` and a number.

    Numbers are tried from ``number`` on, until the name is not in ``taken``.
    """
    found = name
    while found in taken:
        found = f"{name[:48]}-{number}"
        number += 1
    return found


def _cables(
    switch_links: list[Link],
    host_links: dict[str, list[Link]],
    names: dict[str, str],
    assumed: Assumed,
    made: Fabric,
) -> None:
    """Add to ``made`` the cables of hosts, then those between switches, in the order of names."""
    otherwise = assumed.rate_bps or _RATE_BPS
    unknown = 0
    of_hosts = [link for host in sorted(host_links, key=in_order) for link in host_links[host]]
    for link in of_hosts:
        unknown += link.rate_bps is None
        made.cables.append(_cable(link, link.rate_bps or otherwise, names, assumed))
    for link in sorted(switch_links, key=_by_ends):
        unknown += link.rate_bps is None
        made.cables.append(_cable(link, link.rate_bps or otherwise, names, assumed))
    if unknown:
        how = "--rate" if assumed.rate_bps else "assumed; set it with --rate"
        made.notes.append(f"{count(unknown)} × link without a rate: {rate(otherwise)} ({how})")
    if any(each.length_m is not None for each in [*of_hosts, *switch_links]):
        made.notes.append("lengths of cables add 5 ns/m to the delay")


def _by_ends(link: Link) -> tuple[Any, ...]:
    return in_order(link.a), in_order(link.b), in_order(link.a_port), in_order(link.b_port)


def _cable(link: Link, rate_bps: float, names: dict[str, str], assumed: Assumed) -> Cable:
    metres = min(max(link.length_m or 0.0, 0.0), _LONGEST_M)
    delay = assumed.delay_s + metres * _S_PER_M
    a, b = names[link.a], names[link.b]
    return Cable(a, b, rate_bps, delay, link.a_port, link.b_port)


def _add_hosts(made: Fabric, assumed: Assumed) -> None:
    """Add hosts and their cables to ``made``, a fabric that has only switches."""
    patterns = assumed.hosts_at or ("*",)
    chosen = [s for s in made.switches if any(fnmatch.fnmatchcase(s, p) for p in patterns)]
    if not chosen:
        raise InputError(
            f"no switch has a name that matches {', '.join(clean(p, 60) for p in patterns)}"
        )
    demand_size(len(made.switches) + len(chosen) * assumed.hosts_per_node, len(made.cables))
    bps = assumed.rate_bps or _RATE_BPS
    taken = {*made.switches, *made.hosts}
    for switch in chosen:
        for number in range(assumed.hosts_per_node):
            host = unique(f"{switch[:56]}-h{number}", taken)
            taken.add(host)
            made.hosts.append(host)
            made.cables.append(Cable(host, switch, bps, assumed.delay_s))
    made.notes.append(
        f"the inventory has no hosts: {assumed.hosts_per_node} at each of "
        f"{count(len(chosen))} switches are assumed, with cables of {rate(bps)} "
        "(--hosts-per-node, --hosts-at, --rate)"
    )
