"""Reader for a dump of NetBox's database, as ``manage.py dumpdata`` writes it.

The file is a list of objects ``{"model": "dcim.cable", "pk": 1, "fields": {…}}``, which refer to
each other by their keys (``pk``). Links between two interfaces are found as in NetBox: through
patch panels (from a front port to its rear port, and from a rear port to the front port with the
stored position), and through circuits (from one termination to the other). In NetBox before 3.3 a
cable states its ends; in later versions the ends are objects ``dcim.cabletermination``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from eastwest.errors import InputError
from eastwest.topologies.inventory import Described, unique

#: A port: model of its object, such as ``dcim.interface``, and key of the object.
Port = tuple[str, int]
#: One side of a cable: key of the cable, and ``A`` or ``B``.
_At = tuple[int, str]

#: Maximum number of cables on the path between two interfaces.
_MOST_CABLES = 64
#: Maximum number of ends at one side of a cable.
_MOST_ENDS = 64
#: Maximum number of ports visited during the search for links, for all links together.
_MOST_STEPS = 2_000_000
#: Maximum length of the name of a device or port, in characters.
_LONGEST = 200
_INTERFACE, _FRONT, _REAR = "dcim.interface", "dcim.frontport", "dcim.rearport"
_CIRCUIT = "circuits.circuittermination"
_TYPES = "contenttypes.contenttype"
_SIDES = ("A", "B")
_READ = {
    "dcim.cable",
    "dcim.cabletermination",
    "dcim.device",
    "dcim.devicerole",
    _INTERFACE,
    _FRONT,
    _REAR,
    _CIRCUIT,
    _TYPES,
}


def is_dump(listed: list[Any]) -> bool:
    """Whether a list from a JSON file is a dump of a database: its first entry has a model."""
    first = listed[0] if listed else None
    return isinstance(first, dict) and "model" in first and isinstance(first.get("fields"), dict)


def records(file: Described, listed: list[Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (``devices``, ``interfaces`` or ``cables``, record) from the objects of a dump.

    The records have the keys that ``netbox`` uses for its other exports.
    """
    dump = _Dump(file)
    for entry in listed:
        dump.add(entry)
    yield from dump.devices()
    yield from dump.interfaces()
    yield from dump.links()


@dataclass
class _Dump:
    file: Described
    objects: dict[str, dict[int, dict[str, Any]]] = field(
        default_factory=lambda: {model: {} for model in _READ}
    )
    #: Ports at each side of each cable.
    ends: dict[_At, list[Port]] = field(default_factory=dict)
    #: Side of a cable that is connected to each port.
    at: dict[Port, _At] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    #: Key of the front port by (key of the rear port, position).
    fronts: dict[tuple[int, int], int] = field(default_factory=dict)
    #: Key of the opposite termination of the circuit, by the key of a circuit termination.
    far_terminations: dict[int, int] = field(default_factory=dict)
    steps: int = 0

    def add(self, entry: Any) -> None:
        """Store an object of the file if its model is used; raise ``InputError`` if malformed."""
        fields = entry.get("fields") if isinstance(entry, dict) else None
        if not isinstance(fields, dict):
            raise InputError(
                f"{self.file.name}: an object has no fields, which dumpdata writes for each object"
            )
        model = entry.get("model")
        if not isinstance(model, str) or model not in _READ:
            return
        key = entry.get("pk")
        if isinstance(key, int):
            self.objects[model][key] = fields
        elif model != _TYPES:
            raise InputError(
                f"{self.file.name}: an object {model} has no number as its key: dump without "
                "--natural-primary"
            )

    def devices(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield (``devices``, record with name and role); store the names in ``names``.

        If a name is empty or was used before, the key of the device is appended.
        """
        taken: set[str] = set()
        for key, about in self.objects["dcim.device"].items():
            given = about.get("name")
            name = given[:_LONGEST] if isinstance(given, str) else ""
            if not name or name in taken:
                name = unique(f"{name or 'device'}-{key}", taken)
            taken.add(name)
            self.names[key] = name
            number = about.get("role", about.get("device_role"))
            role = self._object("dcim.devicerole", number).get("name")
            yield "devices", {"name": name, "role": role if isinstance(role, str) else ""}

    def interfaces(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield (``interfaces``, record with device, name, type and speed in kbit/s)."""
        for key, about in self.objects[_INTERFACE].items():
            device, name = self._named((_INTERFACE, key))
            speed = about.get("speed")
            record = {"device": device, "name": name, "type": str(about.get("type") or "")}
            yield "interfaces", record | {"speed": str(speed) if isinstance(speed, int) else ""}

    def links(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield (``cables``, record) for each link between interfaces and each unused cable.

        Cables that belong to no link are yielded so that they are counted as left out.
        """
        self._find_ends()
        self._find_panels_and_circuits()
        used: set[int] = set()
        for start in self.objects[_INTERFACE]:
            port = (_INTERFACE, start)
            found: set[Port] = set()
            for end, cables in self._follow(port):
                used.update(cables)
                # Several paths over panels may join the same two interfaces.
                if end >= port and end not in found:
                    found.add(end)
                    yield "cables", self._link(port, end, cables)
        for key, about in self.objects["dcim.cable"].items():
            if key not in used:
                ends = [self.ends.get((key, side)) or [("", 0)] for side in _SIDES]
                kinds = [known[0][0] for known in ends]
                if kinds == [_INTERFACE, _INTERFACE]:
                    kinds[1] = ""
                status = {"status": str(about.get("status") or "")}
                yield "cables", {"a_type": kinds[0], "b_type": kinds[1]} | status

    def _find_ends(self) -> None:
        for key, about in self.objects["dcim.cable"].items():
            for side in _SIDES:
                kind = self._type(about.get(f"termination_{side.lower()}_type"))
                self._end((key, side), kind, about.get(f"termination_{side.lower()}_id"))
        for about in self.objects["dcim.cabletermination"].values():
            cable, end = about.get("cable"), about.get("cable_end")
            if isinstance(cable, int) and isinstance(end, str) and end in _SIDES:
                kind = self._type(about.get("termination_type"))
                self._end((cable, end), kind, about.get("termination_id"))

    def _find_panels_and_circuits(self) -> None:
        for key, about in self.objects[_FRONT].items():
            rear, position = about.get("rear_port"), about.get("rear_port_position")
            if isinstance(rear, int) and isinstance(position, int):
                self.fronts[rear, position] = key
        of_circuit: dict[str, list[int]] = {}
        for key, about in self.objects[_CIRCUIT].items():
            of_circuit.setdefault(str(about.get("circuit")), []).append(key)
        for keys in of_circuit.values():
            if len(keys) == len(_SIDES):
                self.far_terminations |= {keys[0]: keys[1], keys[1]: keys[0]}

    def _end(self, at: _At, kind: str, number: Any) -> None:
        known = self.ends.setdefault(at, [])
        if kind and isinstance(number, int) and len(known) < _MOST_ENDS:
            known.append((kind, number))
            self.at[kind, number] = at

    def _type(self, value: Any) -> str:
        """Return the model, such as ``dcim.interface``, that a reference to a type names.

        ``value`` is a list (natural key), a number (key of a content type), or None (empty result).
        """
        if isinstance(value, list):
            return ".".join(map(str, value))
        if value is None:
            return ""
        about = self._object(_TYPES, value)
        if "model" not in about:
            raise InputError(
                f"{self.file.name}: the types of cable ends are numbers, and the dump has no "
                "names for them: dump with --natural-foreign"
            )
        return f"{about.get('app_label')}.{about['model']}"

    def _follow(self, start: Port) -> Iterator[tuple[Port, tuple[int, ...]]]:
        """Yield (interface, keys of the cables on the path) for each interface reached from a port.

        The paths go through patch panels and circuits.
        """
        waiting: list[tuple[Port, tuple[int, ...], tuple[int, ...]]] = [(start, (), ())]
        while waiting:
            port, cables, positions = waiting.pop()
            self._step()
            at = self.at.get(port)
            if at is None or at[0] in cables or len(cables) >= _MOST_CABLES:
                continue
            passed = (*cables, at[0])
            for far in self._across(port, at):
                self._step()
                if far[0] == _INTERFACE:
                    yield far, passed
                    continue
                onward, left = self._through(far, positions)
                if onward is not None:
                    waiting.append((onward, passed, left))

    def _step(self) -> None:
        """Count a visited port; raise ``InputError`` above the maximum number."""
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise InputError(
                f"{self.file.name}: has more than {_MOST_STEPS:,} ports on the paths between "
                "interfaces, which is the maximum"
            )

    def _across(self, port: Port, at: _At) -> list[Port]:
        """Return the ports at the other side of a cable that are connected to ``port``.

        ``at`` is the side of the cable with ``port``. If both sides have several ports, ports at
        equal positions in the lists are connected.
        """
        own = self.ends[at]
        far = self.ends.get((at[0], "B" if at[1] == "A" else "A"), [])
        if len(own) == 1 or len(far) <= 1:
            return far
        return far[own.index(port) : own.index(port) + 1]

    def _through(
        self, port: Port, positions: tuple[int, ...]
    ) -> tuple[Port | None, tuple[int, ...]]:
        """Return (next port on the path inside a patch panel or circuit, new ``positions``).

        ``positions`` are the positions on the rear ports entered so far and not left; a position
        is added at a front port and used up at a rear port. The port is None if the path ends.
        """
        model, key = port
        about = self._object(model, key)
        if model == _FRONT:
            rear, position = about.get("rear_port"), about.get("rear_port_position")
            if isinstance(rear, int) and isinstance(position, int):
                return (_REAR, rear), (*positions, position)
        elif model == _REAR:
            if not positions and about.get("positions") == 1:
                positions = (1,)
            if positions:
                front = self.fronts.get((key, positions[-1]))
                return (None if front is None else (_FRONT, front)), positions[:-1]
        elif model == _CIRCUIT:
            other = self.far_terminations.get(key)
            return (None if other is None else (_CIRCUIT, other)), positions
        return None, ()

    def _link(self, a: Port, b: Port, cables: tuple[int, ...]) -> dict[str, str]:
        (a_device, a_port), (b_device, b_port) = self._named(a), self._named(b)
        about = [self._object("dcim.cable", key) for key in cables]
        states = [str(cable.get("status") or "connected") for cable in about]
        record = {"a_device": a_device, "a_port": a_port, "b_device": b_device, "b_port": b_port}
        # The database allows one cable for each port: several links of a port are a breakout.
        record["cable"] = "dump"
        record["status"] = next((s for s in states if s != "connected"), "connected")
        if len(about) == 1:
            record["length"] = str(about[0].get("length") or "")
            record["unit"] = str(about[0].get("length_unit") or "")
        return record

    def _named(self, port: Port) -> tuple[str, str]:
        about = self._object(*port)
        device = about.get("device")
        name = self.names.get(device, "") if isinstance(device, int) else ""
        return name, str(about.get("name") or "")[:_LONGEST]

    def _object(self, model: str, key: Any) -> dict[str, Any]:
        return self.objects.get(model, {}).get(key, {}) if isinstance(key, int) else {}
