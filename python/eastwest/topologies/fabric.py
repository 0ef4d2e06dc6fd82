"""Hosts, switches and cables of an imported network, and their file for ``kind = "graph"``."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from eastwest.errors import InputError
from eastwest.units import clean

#: Maximum number of hosts and switches of a fabric: a limit of the simulator.
MOST_NODES = 200_000
#: Maximum number of cables of a fabric: a limit of the simulator.
MOST_CABLES = 800_000
#: Columns of the CSV file of ports: both devices of a cable, and the ports at its ends.
PORT_COLUMNS = ("a", "a_port", "b", "b_port")

#: A name of a host or switch, as topology files allow it.
NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_RATES = ((10**12, "Tbit/s"), (10**9, "Gbit/s"), (10**6, "Mbit/s"), (10**3, "kbit/s"), (1, "bit/s"))
_TIMES = ((10**12, "s"), (10**9, "ms"), (10**6, "us"), (10**3, "ns"), (1, "ps"))
_OTHER = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Assumed:
    """Choices of the user for the import of a topology: values that its file may not state."""

    #: Rate of a cable in bit/s; None: the default of the format.
    rate_bps: float | None = None
    #: Delay of a cable in s, which includes the delay of a switch; default 5 µs as in scenario S1.
    delay_s: float = 5e-6
    #: Number of hosts that are added at each switch if the file has only switches.
    hosts_per_node: int = 1
    #: Glob patterns: devices of an inventory with these names are hosts, all others switches. If
    #: empty, the inventory states which devices are hosts.
    host_names: tuple[str, ...] = ()
    #: Glob patterns: in an inventory without hosts, switches with these names get hosts; if empty,
    #: all switches.
    hosts_at: tuple[str, ...] = ()
    #: Glob patterns: only devices of an inventory with these names are used; if empty, all devices.
    device_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cable:
    """Cable between the nodes named ``a`` and ``b``, with rate in bit/s and delay in s."""

    a: str
    b: str
    rate_bps: float
    delay_s: float
    #: Name of the port at the node ``a``; empty if the file states none.
    a_port: str = ""
    #: Name of the port at the node ``b``; empty if the file states none.
    b_port: str = ""


@dataclass
class Fabric:
    """Hosts, switches and cables of an imported topology."""

    hosts: list[str] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)
    cables: list[Cable] = field(default_factory=list)
    #: Remarks, for the user, on values that were assumed or left out.
    notes: list[str] = field(default_factory=list)
    #: Name of a device in the inventory, by its name in the fabric, if the names differ.
    renamed: dict[str, str] = field(default_factory=dict)
    #: Traffic in bit/s by (sending host, receiving host); empty if the file states none.
    demands_bps: dict[tuple[str, str], float] = field(default_factory=dict)

    def check(self) -> Fabric:
        """Return the fabric itself; raise ``InputError`` if the simulator would refuse it."""
        demand_size(len(self.hosts) + len(self.switches), len(self.cables))
        names = [*self.hosts, *self.switches]
        twice = next((name for name, n in Counter(names).items() if n > 1), None)
        if twice is not None:
            raise InputError(f"two nodes have the name {clean(twice, 80)}; names must be unique")
        if len(self.hosts) < 2:
            raise InputError(f"the fabric has {len(self.hosts)} hosts, but needs at least two")
        self._connected()
        return self

    def _connected(self) -> None:
        """Raise ``InputError`` if there is no path from the first host to some node."""
        neighbours: dict[str, list[str]] = {name: [] for name in [*self.hosts, *self.switches]}
        for cable in self.cables:
            neighbours[cable.a].append(cable.b)
            neighbours[cable.b].append(cable.a)
        waiting, reached = [self.hosts[0]], {self.hosts[0]}
        while waiting:
            for name in neighbours[waiting.pop()]:
                if name not in reached:
                    reached.add(name)
                    waiting.append(name)
        lost = [name for name in neighbours if name not in reached]
        if lost:
            some = ", ".join(clean(name, 80) for name in lost[:5])
            raise InputError(f"the fabric is not connected: no path from {self.hosts[0]} to {some}")

    def to_toml(self, source: str) -> str:
        """Return the text of the topology file; the first line is the comment ``source``.

        The next lines are the notes, and one line for each device with a changed name.
        """
        lines = [f"# {clean(source, 200)}", *(f"# {clean(note, 400)}" for note in self.notes)]
        lines += [f"# {new} is {clean(repr(old), 300)}" for new, old in self.renamed.items()]
        lines += [f"hosts = {json.dumps(self.hosts)}", f"switches = {json.dumps(self.switches)}"]
        for c in self.cables:
            lines += ["", "[[cable]]", f'a = "{c.a}"', f'b = "{c.b}"']
            lines += [f'rate = "{_quantity(round(c.rate_bps), _RATES)}"']
            lines += [f'delay = "{_quantity(round(c.delay_s * 1e12), _TIMES)}"']
        return "\n".join(lines) + "\n"


def ports_csv(fabric: Fabric) -> str:
    """Return CSV with a row for each cable: devices and ports at both ends (``PORT_COLUMNS``)."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(PORT_COLUMNS)
    writer.writerows([c.a, c.a_port, c.b, c.b_port] for c in fabric.cables)
    return out.getvalue()


def _quantity(value: int, units: Sequence[tuple[int, str]]) -> str:
    """Return a whole number of the last unit in the largest unit of which it is a multiple."""
    factor, unit = next(each for each in units if (value and value % each[0] == 0) or each[0] == 1)
    return f"{value // factor} {unit}"


def demand_size(nodes: int, cables: int) -> None:
    """Raise ``InputError`` if a fabric has more nodes or cables than the simulator allows."""
    if nodes > MOST_NODES:
        raise InputError(f"the fabric has {nodes} nodes; at most {MOST_NODES} are allowed")
    if cables > MOST_CABLES:
        raise InputError(f"the fabric has {cables} cables; at most {MOST_CABLES} are allowed")


def name_of(text: object, otherwise: str) -> str:
    """Return ``text`` changed to a valid name of a node, or ``otherwise`` if that is impossible.

    Other characters than ``A-Z a-z 0-9 . _ -`` become hyphens; a name has at most 64 characters.
    """
    label = _OTHER.sub("-", text)[:64].strip("-") if isinstance(text, str) else ""
    return label if NAME.fullmatch(label) else otherwise
