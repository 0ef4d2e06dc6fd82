"""Exports of NetBox: devices, interfaces and cables, as CSV or as JSON of its REST interface.

* Cables (``/api/dcim/cables/``, CSV of the table or of the bulk import) become links if both ends
  are interfaces. Cables to patch panels (front and rear ports), consoles and power are left out.
* Interfaces (``/api/dcim/interfaces/``, CSV) state rates: ``speed`` in kbit/s, or else the type
  (``25gbase-x-sfp28``, ``SFP28 (25GE)``). If an interface has ``connected_endpoints``, which
  NetBox finds through patch panels, its connection to the first endpoint is a link, too.
* Devices (``/api/dcim/devices/``, CSV) state roles. A device is a host if its role contains a word
  for servers (server, host, compute, storage, hypervisor, node, gpu, worker), else a switch.
* A dump of the database (``manage.py dumpdata``, :mod:`eastwest.topologies.netbox_dump`) has
  cables, interfaces and devices.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from eastwest.errors import InputError
from eastwest.topologies import netbox_dump
from eastwest.topologies.fabric import Assumed, Fabric
from eastwest.topologies.inventory import (
    HOST,
    LONGEST_M,
    SWITCH,
    Described,
    Inventory,
    Link,
    fabric,
    load_json,
    sound_rate,
)
from eastwest.units import clean

_SERVERS = re.compile(r"server|host|compute|storage|hypervisor|node|gpu|worker", re.I)
_BASE = re.compile(r"(\d{1,4}(?:\.\d)?)(g?)base", re.I)
_GE = re.compile(r"\((\d{1,4}(?:\.\d)?)(GE|ME|GFC)?\)", re.I)
#: Length of each unit in metres, by the unit's abbreviation.
_METRES = {"km": 1000.0, "m": 1.0, "cm": 0.01, "mi": 1609.344, "ft": 0.3048, "in": 0.0254}
#: Accepted names of CSV columns (lower case, underscores for spaces), by the key in a record.
_COLUMNS = {
    "a_device": ("side_a_device", "device_a", "a_device"),
    "b_device": ("side_b_device", "device_b", "b_device"),
    "a_port": ("side_a_name", "termination_a", "a_terminations", "interface_a"),
    "b_port": ("side_b_name", "termination_b", "b_terminations", "interface_b"),
    "a_type": ("side_a_type", "termination_a_type"),
    "b_type": ("side_b_type", "termination_b_type"),
    "length": ("length",),
    "unit": ("length_unit",),
    "status": ("status",),
    "device": ("device",),
    "name": ("name",),
    "type": ("type",),
    "speed": ("speed", "speed_(kbps)"),
    "role": ("role", "device_role"),
}
#: Maximum number of terminations at one side of a cable.
_MOST_ENDS = 64
_USED = {"connected", "active", ""}
_INTERFACE = re.compile(r"interface", re.I)
#: Number (``id`` in NetBox) of the first device with each name, by the name.
_Ids = dict[str, int]
#: Texts with which the objects at the beginning of a database dump are recognised.
_DUMP = (b'"model": "contenttypes.', b'"model": "dcim.', b'"model": "auth.', b'"model": "extras.')


def looks_like(start: bytes) -> bool:
    """Whether the first bytes of a file are those of an export of NetBox."""
    if start.lstrip().startswith((b"{", b"[")):
        known = b'"a_terminations"', b'"termination_a', b'"device_role"', b'"device_type"'
        return any(key in start for key in (*known, b'"connected_endpoint', b"/api/dcim/", *_DUMP))
    return _form_of_csv(start.partition(b"\n")[0].decode("utf-8", "replace")) != ""


def read(files: list[Described], assumed: Assumed) -> Fabric:
    """Return the fabric of the files of an export, in any order.

    Raises ``InputError`` if a file is invalid or no cable joins two devices.
    """
    found = inventory(files)
    if not found.links:
        left_out = "".join(f"; {note}" for note in found.told())
        raise InputError(f"the files have no cable between interfaces of two devices{left_out}")
    return fabric(found, assumed)


def inventory(files: list[Described]) -> Inventory:
    """Return the devices and links in the files of an export, in any order."""
    ids: _Ids = {}
    records = [record for file in files for record in _records(file, ids)]
    found = Inventory()
    for form, record in records:
        if form == "devices":
            name, role = record.get("name", ""), record.get("role", "")
            if name:
                found.device(name, "" if not role else HOST if _SERVERS.search(role) else SWITCH)
    rates: dict[tuple[str, str], float] = {}
    for form, record in records:
        if form == "interfaces" and (bps := _rate(record, found)) is not None:
            rates[record.get("device", ""), record.get("name", "")] = bps
    seen: set[frozenset[tuple[str, str]]] = set()
    for form, record in records:
        if form == "cables" or record.get("b_device"):
            _add(found, record, rates, seen)
    return found


def _add(
    found: Inventory,
    record: Mapping[str, str],
    rates: Mapping[tuple[str, str], float],
    seen: set[frozenset[tuple[str, str]]],
) -> None:
    """Add to ``found`` the link of ``record``, a cable or a connected interface.

    ``rates`` has the rate in bit/s by (device, port). ``seen`` has the links added so far, each
    as its two ends (device, port); the link is added to it, and a repeated link is ignored.
    """
    a, b = ((record.get(f"{side}_device", ""), record.get(f"{side}_port", "")) for side in "ab")
    kinds = [record.get(f"{side}_type", "") for side in "ab"]
    if any(kind and not _INTERFACE.search(kind) for kind in kinds) or not a[0] or not b[0]:
        found.note("cable that does not join interfaces of two devices", "left out")
        return
    status = record.get("status", "")
    if status.lower() not in _USED:
        found.note("cable with a status other than Connected and Active", "left out", status)
        return
    ends = frozenset((a, b))
    if ends in seen:
        return
    seen.add(ends)
    known = {rates[end] for end in (a, b) if end in rates}
    if len(known) > 1:
        found.note("link whose ends have different rates", "the lower one is used")
    length = _length(record, found)
    found.link(Link(*a, *b, min(known, default=None), length, record.get("cable", "")))


def _records(file: Described, ids: _Ids) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (``cables``, ``interfaces`` or ``devices``, record) for each record of a file.

    In NetBox, names of devices are unique only within a site. If an earlier device in ``ids`` has
    the name of a device, the device's number in NetBox is appended to its name.
    """
    if not file.data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        yield from _of_csv(file)
        return
    tree = load_json(file)
    listed = tree.get("results") if isinstance(tree, dict) else tree
    if not isinstance(listed, list):
        raise InputError(f"{file.name}: has no list results, which an export of NetBox has")
    if isinstance(tree, dict) and tree.get("next"):
        raise InputError(
            f"{file.name}: is only one of several pages of the export: export with ?limit=0"
        )
    if netbox_dump.is_dump(listed):
        yield from netbox_dump.records(file, listed)
        return
    for number, entry in enumerate(listed):
        if not isinstance(entry, dict):
            raise InputError(f"{file.name}: result {number} is not an object")
        yield from _of_json(entry, ids, f"{file.name}:{number}")


def _of_json(entry: dict[str, Any], ids: _Ids, where: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the records of an entry of a list of NetBox; ``where`` is unique for each entry."""
    if "a_terminations" in entry or "termination_a_type" in entry:
        about = {"status": _text(entry.get("status")), "unit": _text(entry.get("length_unit"))}
        about["length"] = _text(entry.get("length"))
        sides = [list(_terminations(entry, side, ids)) for side in "ab"]
        about["cable"] = where
        # A breakout cable, with several ends at one side, is a link for each of these ends.
        for number in range(max(map(len, sides))):
            ends = [ends[min(number, len(ends) - 1)] for ends in sides]
            yield "cables", about | ends[0] | ends[1]
    elif "device" in entry and "type" in entry:
        device, name = _end(entry, ids)
        record = {"device": device, "name": name, "type": _text(entry["type"])}
        # Interfaces at the ends of a breakout cable name the same far interface.
        record["cable"] = "connected_endpoints"
        record["speed"] = _text(entry.get("speed"))
        listed = entry.get("connected_endpoints") or entry.get("connected_endpoint")
        far = listed[0] if isinstance(listed, list) and listed else listed
        other, port = _end(far, ids)
        kind = _text(entry.get("connected_endpoints_type") or entry.get("connected_endpoint_type"))
        if other and (not kind or _INTERFACE.search(kind)):
            record |= {"a_device": device, "a_port": name, "b_device": other, "b_port": port}
        yield "interfaces", record
    elif "name" in entry:
        role = entry.get("role") or entry.get("device_role")
        yield "devices", {"name": _unique(entry, ids), "role": _text(role)}


def _terminations(entry: dict[str, Any], side: str, ids: _Ids) -> Iterator[dict[str, str]]:
    """Yield a record (type, device, port) for each end of a cable at ``side``, ``a`` or ``b``.

    At least one record is yielded; its values are empty if the side has no known end.
    """
    listed = entry.get(f"{side}_terminations")
    found = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    for one in found[:_MOST_ENDS] or [{}]:
        kind = one.get("object_type") or entry.get(f"termination_{side}_type")
        device, port = _end(one.get("object") or entry.get(f"termination_{side}"), ids)
        yield {f"{side}_type": _text(kind), f"{side}_device": device, f"{side}_port": port}


def _end(end: Any, ids: _Ids) -> tuple[str, str]:
    """Return (name of the device, name of the interface) of the JSON object of an interface.

    Both are empty if ``end`` is no object.
    """
    if not isinstance(end, dict):
        return "", ""
    return _unique(end.get("device"), ids), _text(end.get("name"))


def _unique(device: Any, ids: _Ids) -> str:
    """Return the name of a device, with its number appended if another device came first.

    ``ids`` has the number of the first device with each name; a new name is added.
    """
    if not isinstance(device, dict):
        return _text(device)
    name, number = _text(device.get("name") or device), device.get("id")
    if not name or not isinstance(number, int):
        return name
    return name if ids.setdefault(name, number) == number else f"{name}-{number}"


def _text(value: Any) -> str:
    """Return a JSON text or number as text, or that of an object's value, slug, name or label.

    The result has at most 200 characters, and is empty for any other value.
    """
    if isinstance(value, dict):
        value = next((value[k] for k in ("value", "slug", "name", "label") if k in value), "")
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return ""
    return str(value)[:200]


def _positions(heading: str) -> dict[str, int]:
    row = next(csv.reader([heading.lstrip("\ufeff")]), [])
    names = [name.strip().lower().replace(" ", "_") for name in row]
    return {
        meaning: names.index(name)
        for meaning, known in _COLUMNS.items()
        if (name := next((n for n in known if n in names), "")) != ""
    }


def _form_of_csv(heading: str) -> str:
    """Return ``cables``, ``interfaces`` or ``devices`` from the first line of a CSV file.

    The result is empty if the line is not a heading of NetBox.
    """
    try:
        at = _positions(heading[:8192])
    except csv.Error:
        return ""
    if {"a_device", "b_device", "a_port", "b_port"} <= at.keys():
        return "cables"
    if {"device", "name", "type"} <= at.keys():
        return "interfaces"
    return "devices" if {"name", "role"} <= at.keys() else ""


def _of_csv(file: Described) -> Iterator[tuple[str, dict[str, str]]]:
    text = file.data.decode("utf-8-sig", "replace")
    heading = text.partition("\n")[0].rstrip("\r")
    form = _form_of_csv(heading)
    if not form:
        raise InputError(
            f"{file.name}:1: is not a heading of cables, interfaces or devices of NetBox: "
            f"{clean(heading, 60)!r}"
        )
    at = _positions(heading)
    rows = csv.reader(io.StringIO(text))
    try:
        next(rows)
        for row in rows:
            if not row:
                continue
            if len(row) <= max(at.values()):
                raise InputError(
                    f"{file.name}:{rows.line_num}: has {len(row)} columns, which is "
                    "fewer than the columns of the heading"
                )
            yield form, {name: row[position].strip() for name, position in at.items()}
    except csv.Error as error:
        raise InputError(f"{file.name}:{rows.line_num}: {error}") from None


def _rate(record: Mapping[str, str], found: Inventory) -> float | None:
    """Return the rate of an interface in bit/s from its speed (kbit/s), or else from its type.

    A speed that is no rate of a cable is noted in ``found``; 0 means that it is not known.
    """
    speed = record.get("speed", "")
    is_whole = speed.isascii() and speed.isdigit() and len(speed) < 16
    if is_whole and (bps := sound_rate(int(speed) * 1e3)) is not None:
        return bps
    if speed and speed.strip("0"):
        then = "not used; the type of the interface gives its rate"
        found.note("speed of an interface that is not from 1 to 10^10 kbit/s", then, speed)
    kind = record.get("type", "")
    base = _BASE.search(kind)
    if base is not None:
        return sound_rate(float(base[1]) * (1e9 if base[2] else 1e6))
    bracket = _GE.search(kind)
    if bracket is not None:
        is_mega = (bracket[2] or "").upper() == "ME"
        return sound_rate(float(bracket[1]) * (1e6 if is_mega else 1e9))
    return None


def _length(record: Mapping[str, str], found: Inventory) -> float | None:
    """Return the length of a cable in m; None if it is not known or 0.

    A length that cannot be used is noted in ``found``.
    """
    text = record.get("length", "").split()
    if not text:
        return None
    unit = record.get("unit", "") or (text[1] if len(text) > 1 else "m")
    name = unit.lower().rstrip(".")
    name = {"meters": "m", "metres": "m", "feet": "ft", "inches": "in"}.get(name, name)
    try:
        metres = float(text[0]) * _METRES[name]
    except (ValueError, KeyError):
        metres = math.nan
    if 0 <= metres <= LONGEST_M:
        return metres or None
    reason = (
        f"length of a cable that is not from 0 to {LONGEST_M / 1000:g} km, or has another unit "
        f"than {', '.join(_METRES)}"
    )
    found.note(reason, "not used", f"{text[0]} {unit}")
    return None
