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
* Two links with the same devices and ports at their ends are one link, with the first rate and the
  first length that are given. A port with several cables that are not one breakout cable is noted;
  each of its cables is a link.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from eastwest.errors import InputError
from eastwest.topologies.fabric import Assumed, Cable, Fabric, demand_size, name_of
from eastwest.units import clean, count, plural, rate

#: Rate in bit/s of a link for which neither the inventory nor the user gives a rate.
_RATE_BPS = 10e9
_S_PER_M = 5e-9
#: Maximum number of network cards of a host, a limit of the simulator.
_MOST_CARDS = 16
#: Maximum length of a cable in m.
LONGEST_M = 1_000_000.0
#: Maximum number of examples in a note, and maximum length of one in characters.
_MOST_EXAMPLES = 3
_LONGEST_EXAMPLE = 60
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
    #: Name of the cable, equal for all links of a breakout cable; empty if there is none.
    cable: str = ""


@dataclass
class Inventory:
    """Devices by name with their purpose (host, switch or empty), and the links between them."""

    devices: dict[str, str] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    #: Number of records that were left out or changed, by reason and consequence.
    notes: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: First different values that were found, by reason and consequence.
    examples: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    #: Place in ``links`` of the link with these two ends, if both have a port.
    _by_ends: dict[frozenset[tuple[str, str]], int] = field(default_factory=dict)

    def note(self, reason: str, then: str = "", found: str = "", number: int = 1) -> None:
        """Count records that were left out or changed.

        ``then`` is the consequence, ``found`` the value of this record, ``number`` the number of
        records.
        """
        self.notes[reason, then] += number
        examples = self.examples.setdefault((reason, then), [])
        if found and found not in examples and len(examples) <= _MOST_EXAMPLES:
            examples.append(found)

    def told(self) -> list[str]:
        """Return a line of text on each reason of ``note``."""
        return [
            f"{count(number)} × {reason}{_in_brackets(self.examples.get((reason, then), []))}"
            + (f": {then}" if then else "")
            for (reason, then), number in self.notes.items()
        ]

    def device(self, name: str, purpose: str = "") -> str:
        """Add a device, or set ``purpose`` if the device has none yet; return ``name``."""
        if not self.devices.get(name):
            self.devices[name] = purpose
            demand_size(len(self.devices), 0)
        return name

    def link(self, link: Link) -> None:
        """Add a link and its two devices; a link of a device with itself is only counted."""
        if link.a == link.b:
            self.note("link of a device with itself", "left out", link.a)
            return
        if link.a_port and link.b_port:
            ends = frozenset(((link.a, link.a_port), (link.b, link.b_port)))
            if ends in self._by_ends:
                found = f"{port_name(link.a, link.a_port)} – {port_name(link.b, link.b_port)}"
                self.note("link that is listed again", "the first value of each kind counts", found)
                at = self._by_ends[ends]
                first = self.links[at]
                rate_bps = link.rate_bps if first.rate_bps is None else first.rate_bps
                length_m = link.length_m if first.length_m is None else first.length_m
                self.links[at] = replace(first, rate_bps=rate_bps, length_m=length_m)
                return
            self._by_ends[ends] = len(self.links)
        self.device(link.a)
        self.device(link.b)
        self.links.append(link)
        demand_size(0, len(self.links))


def port_name(device: str, port: str) -> str:
    """Return the text for a port of a device in notes."""
    return f"{device} {port}"


def _in_brackets(examples: list[str]) -> str:
    """Return examples in brackets; empty without any. ``…`` stands for more than the maximum."""
    if not examples:
        return ""
    shown = [clean(each, _LONGEST_EXAMPLE) for each in examples[:_MOST_EXAMPLES]]
    return f" ({', '.join(shown)}{', …' if len(examples) > _MOST_EXAMPLES else ''})"


def shared_ports(ends: Iterable[tuple[str, str, str]], then: str) -> list[str]:
    """Return a list with a note on ports with several cables; empty if there are no such ports.

    An item of ``ends`` is an end of a cable: device, port (empty if unknown) and a name of the
    cable. ``then`` is the consequence of several cables at one port.
    """
    cables: dict[tuple[str, str], set[str]] = {}
    for device, port, cable in ends:
        if port:
            cables.setdefault((device, port), set()).add(cable)
    shared = Inventory()
    for (device, port), names in cables.items():
        if len(names) > 1:
            shared.note("port with several cables", then, port_name(device, port))
    return shared.told()


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


def load_json(file: Described, *, several: bool = False) -> Any:
    """Return the content of a JSON file; raise ``InputError`` with the position of an error.

    An object with a key that occurs twice is an error; with ``several``, the value of the key is
    then the list of its values.
    """

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
            if not several:
                raise InputError(
                    f"{file.name}: the key {clean(twice, 60)!r} occurs twice in one object"
                )
            joined: dict[str, list[Any]] = {}
            for key, value in pairs:
                joined.setdefault(key, []).append(value)
            found = {k: each if len(each) > 1 else each[0] for k, each in joined.items()}
        return found

    try:
        return json.loads(file.data, object_pairs_hook=made)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file.name}: is not JSON: {clean(str(error), 100)}") from None


def fabric(found: Inventory, assumed: Assumed) -> Fabric:
    """Return the fabric of an inventory; ``notes`` tell what was left out or assumed.

    Raises ``InputError`` if the inventory has no links, no switch, a single host, or several parts
    without a path between them.
    """
    if assumed.device_names:
        found = _limited(found, assumed.device_names)
    left_out = found.told()
    if not found.links:
        because = f": {'; '.join(left_out)}" if left_out else ""
        raise InputError(f"the inventory has no link between two devices{because}")
    made = Fabric(notes=left_out + _shared_ports(found))
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


def _shared_ports(found: Inventory) -> list[str]:
    """Return a list with a note on ports that have several cables, or an empty list.

    The note says that each cable becomes a link.
    """
    ends = (
        (device, port, link.cable or str(number))
        for number, link in enumerate(found.links)
        for device, port in ((link.a, link.a_port), (link.b, link.b_port))
    )
    return shared_ports(ends, "each cable is a link")


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
    limited = Inventory(devices, links, found.notes.copy(), dict(found.examples))
    if left := len(found.devices) - len(devices):
        limited.note("device whose name does not match --devices", "left out", number=left)
    return limited


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
            f"{count(len(guessed))} × device of unknown purpose: {_becoming(hosts, len(guessed))} "
            "(--host names the hosts)"
        )
    return purpose


def _becoming(hosts: int, of: int) -> str:
    """Return a text on devices of unknown purpose, of which ``hosts`` become hosts."""
    if not hosts:
        return "none has only one neighbour, so that " + (
            "it becomes a switch" if of == 1 else "all become switches"
        )
    if of == 1:
        return "it has one neighbour and becomes a host"
    if hosts == of:
        return "all have one neighbour and become hosts"
    have = plural(hosts, "of them has", "of them have")
    become = "becomes a host" if hosts == 1 else "become hosts"
    rest = "the other a switch" if of - hosts == 1 else "the others switches"
    return f"{have} one neighbour and {become}, {rest}"


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
    return replace(link, a=link.b, a_port=link.b_port, b=link.a, b_port=link.a_port)


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
    made.renamed = {names[device]: device for device in used if names[device] != device}
    if made.renamed:
        some = [f"{device!r} is {name}" for name, device in made.renamed.items()]
        made.notes.append(
            f"{count(len(some))} × name of a device that was changed to be valid"
            f"{_in_brackets(some)}: comments in the file have all of them"
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
    links = [*of_hosts, *switch_links]
    known = sum(each.length_m is not None for each in links)
    if known:
        which = "cables" if known == len(links) else f"{count(known)} of {count(len(links))} cables"
        made.notes.append(f"lengths of {which} add 5 ns/m to the delay")


def _by_ends(link: Link) -> tuple[Any, ...]:
    return in_order(link.a), in_order(link.b), in_order(link.a_port), in_order(link.b_port)


def _cable(link: Link, rate_bps: float, names: dict[str, str], assumed: Assumed) -> Cable:
    delay = assumed.delay_s + (link.length_m or 0.0) * _S_PER_M
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
        f"{plural(len(chosen), 'switch', 'switches')} are assumed, with cables of {rate(bps)} "
        "(--hosts-per-node, --hosts-at, --rate)"
    )
