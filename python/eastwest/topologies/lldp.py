"""Neighbours by LLDP (IEEE 802.1AB), read from JSON files of devices.

* ``lldpctl -f json`` or ``-f json0`` of each device. The name of the device comes from
  ``lldpcli -f json show chassis``, or else from the name of the file: ``leaf1.json``,
  ``leaf1.lldp.json``.
* Neighbours and chassis in one file, as SONiC stores them:
  ``{"lldp_loc_chassis": {"local-chassis": …}, "lldp": …}``.
* ``networkctl lldp --json=short`` of systemd-networkd.
* ``ip -j link``: MAC addresses of the ports, and ports that are down; ``ethtool --json``: rates.

Several reports of one port about one port of a neighbour, for example in two files, count as one.
Both ends report a link. Two reports belong to one link if their ports match. The other reports of
two devices are paired one by one, and a report without a matching report is a link, too. A device
is a switch if its capability Bridge or Router is enabled, and a host if only other capabilities are
enabled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
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
    in_order,
    load_json,
    port_name,
    rate_of_port,
    sound_rate,
)

#: Maximum number of reports of neighbours in all files together.
_MOST_REPORTS = 1_000_000
_SUFFIXES = re.compile(
    r"(\.(json|json0|txt|lldp|lldpctl|link|links|ethtool|chassis|routes?|neighbou?rs))+$", re.I
)
_MAU = re.compile(r"(\d{1,4})\s*(G|Gig)?(?:Base)", re.I)
_FORWARDS = {"bridge", "router"}
#: Bits of the capabilities Bridge and Router in the capability field of LLDP (IEEE 802.1AB).
_FORWARD_BITS = 0x04 | 0x10
#: Types of port identifiers whose value is the name of a port.
_NAMES = {"ifname", "local", "ifalias"}


@dataclass
class _Report:
    """Report of a device: at its port ``port``, the neighbour is ``device``."""

    port: str
    device: str
    #: Names that the neighbour's port of the link may have, the most likely first.
    their_ports: list[str]
    #: Rate in bit/s that the neighbour announces for its port (MAU type); None if none.
    rate_bps: float | None
    #: Purpose of the neighbour from its enabled capabilities: ``HOST``, ``SWITCH`` or empty.
    purpose: str


@dataclass
class _Device:
    reports: list[_Report] = field(default_factory=list)
    #: Name of each port of the device, by the port's MAC address.
    port_of: dict[str, str] = field(default_factory=dict)
    #: Names of the device's ports that are down.
    down: set[str] = field(default_factory=set)
    #: Rate in bit/s of each port of the device, by the port's name.
    rates: dict[str, float] = field(default_factory=dict)


def looks_like(start: bytes) -> bool:
    """Whether the first bytes of a file are JSON of lldpctl, networkctl, ``ip -j`` or ethtool."""
    return bool(
        re.match(rb'\s*\{\s*"(lldp|lldp_loc_chassis|local-chassis|Neighbors)"', start)
        or re.match(rb'\s*\[[^\]]{0,2000}?"ifname"', start)
    )


def read(files: list[Described], assumed: Assumed) -> Fabric:
    """Return the fabric that the reports of all devices describe."""
    return fabric(inventory(files), assumed)


def inventory(files: list[Described]) -> Inventory:
    """Return the devices and links that the reports of all devices describe.

    Raises ``InputError`` if a file is invalid or no file reports a neighbour.
    """
    found = Inventory()
    devices: dict[str, _Device] = {}
    # lldpctl writes several neighbours of one port under the same key.
    trees = [(file, load_json(file, several=True)) for file in files]
    own = {stem(file): name for file, tree in trees if (name := _own_name(tree))}
    reports = 0
    for file, tree in trees:
        name = own.get(stem(file), stem(file))
        if not name:
            raise InputError(
                f"{file.name}: the name of the file does not contain the name of a "
                "device, such as leaf1.json"
            )
        device = devices.setdefault(name, _Device())
        if isinstance(tree, list):
            _ports(file, tree, device)
            continue
        if _own_chassis(tree) is not None:
            found.device(name, _own_purpose(tree))
        if not isinstance(tree, dict):
            raise InputError(f"{file.name}: is neither an object nor a list of ports")
        if "lldp" in tree or "local-chassis" not in tree:
            listed = list(_reports(file, tree))
            reports += len(listed)
            if reports > _MOST_REPORTS:
                raise InputError(
                    f"there are more than {_MOST_REPORTS:,} reports of neighbours, which "
                    "is the maximum"
                )
            device.reports += listed
    if not any(device.reports for device in devices.values()):
        raise InputError(
            "no file reports a neighbour; the output of lldpctl -f json of each device is needed"
        )
    _join(found, devices)
    return found


def stem(file: Described) -> str:
    """Return the device's name in the name of a file: ``leaf1`` for ``dir/leaf1.lldp.json``."""
    return _SUFFIXES.sub("", file.name.replace("\\", "/").rpartition("/")[2])


def _own_chassis(tree: Any) -> Any:
    """Return the object ``chassis`` of the reporting device; None if the file has none."""
    stored = _first(_get(tree, "lldp_loc_chassis"))
    local = _first(_get(tree, "local-chassis") or _get(stored, "local-chassis"))
    return _first(_get(local, "chassis"))


def _own_name(tree: Any) -> str:
    name, _ = _chassis(_own_chassis(tree))
    return name


def _own_purpose(tree: Any) -> str:
    _, purpose = _chassis(_own_chassis(tree))
    return purpose


def _ports(file: Described, tree: list[Any], device: _Device) -> None:
    """Store in ``device`` the addresses, states and rates of its ports.

    ``tree`` is the output of ``ip -j link`` or ``ethtool --json``.
    """
    for number, port in enumerate(tree):
        name = _get(port, "ifname")
        if not isinstance(name, str):
            raise InputError(f"{file.name}: entry {number} has no ifname")
        address = _get(port, "address")
        if isinstance(address, str):
            device.port_of[address.lower()] = name
        if _text(_get(port, "operstate")) in {"DOWN", "LOWERLAYERDOWN"}:
            device.down.add(name)
        speed = _get(port, "speed")
        if isinstance(speed, int) and not isinstance(speed, bool):
            bps = sound_rate(speed * 1_000_000)
            if bps is not None:
                device.rates[name] = float(bps)


def _reports(file: Described, tree: Any) -> Iterator[_Report]:
    """Yield a ``_Report`` for each neighbour in ``tree``, output of lldpctl or networkctl."""
    if isinstance(_get(tree, "Neighbors"), list):
        yield from _networkctl(tree["Neighbors"])
        return
    top = _first(_get(tree, "lldp"))
    if not isinstance(top, dict):
        raise InputError(
            f"{file.name}: has no object lldp, which the output of lldpctl -f json has"
        )
    listed = top.get("interface", [])
    for entry in listed if isinstance(listed, list) else [listed]:
        if not isinstance(entry, dict):
            raise InputError(
                f"{file.name}: an interface in the list of interfaces is not an object"
            )
        ports = [(entry["name"], entry)] if isinstance(entry.get("name"), str) else entry.items()
        for port, about in ports:
            for each in about if isinstance(about, list) else [about]:
                report = _report(str(port), each)
                if report is not None:
                    yield report


def _report(port: str, about: Any) -> _Report | None:
    name, purpose = _chassis(_first(_get(about, "chassis")))
    theirs = _first(_get(about, "port"))
    names, identifier = [], _first(_get(theirs, "id"))
    value, kind = _get(identifier, "value"), _text(_get(identifier, "type"))
    if isinstance(value, str):
        names.append(value.lower() if kind == "mac" else value)
    described = _text(_get(theirs, "descr"))
    if described:
        names.append(described)
    if kind not in _NAMES:
        names.reverse()
    mau = _text(_get(_first(_get(theirs, "auto-negotiation")), "current"))
    rate = _rate_of_mau(mau) if mau else None
    return _Report(port, name, names, rate, purpose) if name else None


def _networkctl(ports: list[Any]) -> Iterator[_Report]:
    for each in ports:
        port, listed = _get(each, "InterfaceName"), _get(each, "Neighbors")
        for other in listed if isinstance(listed, list) else []:
            name = _get(other, "SystemName") or _get(other, "ChassisID")
            if not isinstance(name, str) or not isinstance(port, str):
                continue
            names = [n for k in ("PortID", "PortDescription") if (n := _text(_get(other, k)))]
            bits = _get(other, "EnabledCapabilities")
            purpose = ""
            if isinstance(bits, int) and bits:
                purpose = SWITCH if bits & _FORWARD_BITS else HOST
            yield _Report(port, name, names, None, purpose)


def _chassis(chassis: Any) -> tuple[str, str]:
    """Return (name, purpose) of a device from its object ``chassis``.

    The purpose is ``HOST``, ``SWITCH`` or empty. Both are empty if ``chassis`` is no object.
    """
    if not isinstance(chassis, dict):
        return "", ""
    name = _text(chassis.get("name"))
    about: Any = chassis
    if not name and "id" not in chassis and len(chassis) == 1:
        name, about = next(iter(chassis.items()))
    if not name:
        name = _text(_get(_first(_get(about, "id")), "value"))
    listed = _get(about, "capability")
    enabled = [
        str(_get(each, "type")).lower()
        for each in (listed if isinstance(listed, list) else [listed])
        if _get(each, "enabled") is True or _get(each, "enabled") == "on"
    ]
    purpose = ""
    if enabled:
        purpose = SWITCH if _FORWARDS & set(enabled) else HOST
    return name, purpose


def _rate_of_mau(text: str) -> float | None:
    """Return the rate in bit/s of a MAU type such as ``1000BaseTFD`` or ``10GigBaseLR``.

    The result is None if the text states no rate.
    """
    found = _MAU.search(text)
    if found is None:
        return None
    return sound_rate(int(found[1]) * (1e9 if found[2] else 1e6))


def _join(found: Inventory, devices: dict[str, _Device]) -> None:
    """Add to ``found`` all devices, and the links that follow from the reports in ``devices``."""
    full = {r.device for device in devices.values() for r in device.reports}
    short: dict[str, list[str]] = {}
    for name in full - devices.keys():
        short.setdefault(name.partition(".")[0], []).append(name)
    same = {
        names[0]: first for first, names in short.items() if first in devices and len(names) == 1
    }
    between: dict[tuple[str, str], list[tuple[str, _Report]]] = {}
    for name in sorted(devices, key=in_order):
        device = devices[name]
        found.device(name)
        seen: dict[tuple[str, str], list[_Report]] = {}
        for report in device.reports:
            if report.port in device.down:
                there = port_name(name, report.port)
                found.note("neighbour at a port that is down", "left out", there)
                continue
            other = same.get(report.device, report.device)
            if other == name:
                found.note("link of a device with itself", "left out", other)
                continue
            found.device(other, report.purpose)
            theirs = devices.get(other)
            if theirs is not None:
                report.their_ports = [theirs.port_of.get(p, p) for p in report.their_ports]
            earlier = seen.setdefault((report.port, other), [])
            if any(_same_end(report, each) for each in earlier):
                there = port_name(name, report.port)
                found.note("report of a neighbour that is listed again", "counted once", there)
                continue
            earlier.append(report)
            a, b = sorted((name, other), key=in_order)
            between.setdefault((a, b), []).append((name, report))
    for (a, b), reports in between.items():
        for link in _links(a, b, reports, devices):
            found.link(link)
    one_sided = [name for name in found.devices if name not in devices]
    if one_sided:
        for name in sorted(one_sided, key=in_order):
            found.note("device that only its neighbours report", found=name)


def _same_end(report: _Report, other: _Report) -> bool:
    """Whether two reports of one port about one neighbour name the same port of the neighbour."""
    theirs, others = set(report.their_ports), set(other.their_ports)
    return theirs == others or bool(theirs & others)


def _links(
    a: str, b: str, reports: list[tuple[str, _Report]], devices: dict[str, _Device]
) -> Iterator[Link]:
    """Yield the links between devices ``a`` and ``b``, from the reports of one or both devices.

    ``reports`` are (device that reports, report). ``devices`` has the known rates of the ports.
    """
    mine = [r for name, r in reports if name == a]
    others = [r for name, r in reports if name == b]
    pairs: list[tuple[_Report | None, _Report | None]] = []
    by_port = {r.port: r for r in others}
    left = []
    for report in mine:
        match = next((by_port[p] for p in report.their_ports if p in by_port), None)
        if match is None or (match.their_ports and report.port not in match.their_ports):
            left.append(report)
            continue
        del by_port[match.port]
        pairs.append((report, match))
    rest: list[_Report] = sorted(by_port.values(), key=lambda r: in_order(r.port))
    for number in range(max(len(left), len(rest))):
        pairs.append(
            (
                left[number] if number < len(left) else None,
                rest[number] if number < len(rest) else None,
            )
        )
    for one, other in pairs:
        a_port = one.port if one else _first_name(other)
        b_port = other.port if other else _first_name(one)
        rates = [
            devices[a].rates.get(a_port) if a in devices else None,
            devices[b].rates.get(b_port) if b in devices else None,
            one.rate_bps if one else None,
            other.rate_bps if other else None,
        ]
        known = [r for r in rates if r is not None]
        if not known:
            known = [r for p in (a_port, b_port) if (r := rate_of_port(p)) is not None]
        yield Link(a, a_port, b, b_port, min(known, default=None))


def _first_name(report: _Report | None) -> str:
    return report.their_ports[0] if report and report.their_ports else ""


def _get(tree: Any, key: str) -> Any:
    return tree.get(key) if isinstance(tree, dict) else None


def _first(value: Any) -> Any:
    """Return the first entry of a list, None for an empty list, and any other value unchanged.

    In the format ``json0`` of lldpctl, each object is the only entry of a list.
    """
    return (value[0] if value else None) if isinstance(value, list) else value


def _text(value: Any) -> str:
    """Return the text of a JSON value: a text itself, or the entry ``value`` of an object.

    Of a list, the first entry is used. The result is empty if there is no text.
    """
    value = _first(value)
    value = value.get("value") if isinstance(value, dict) else value
    return value if isinstance(value, str) else ""
