"""Hosts, switches and cables, as a topology file of ``kind = "graph"``."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from dataclasses import dataclass, field

from eastwest.errors import InputError
from eastwest.units import clean

#: Maximum number of nodes and cables of a fabric: the limits of the simulator.
MOST_NODES = 200_000
MOST_CABLES = 800_000
#: Columns of a file of ports.
PORT_COLUMNS = ("a", "a_port", "b", "b_port")

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_OTHER = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Assumed:
    """Assumptions where a descriptor gives no values."""

    #: Rate of a cable in bit/s, where the file gives none.
    rate_bps: float | None = None
    #: Delay in s of a cable, including its switches' delay (scenario S1: 5 µs).
    delay_s: float = 5e-6
    #: Number of hosts at each node of a network of switches.
    hosts_per_node: int = 1
    #: Patterns of the names of hosts in an inventory; empty: as the inventory says.
    host_names: tuple[str, ...] = ()
    #: Patterns of the names of switches that get hosts, where an inventory has none.
    hosts_at: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cable:
    """Cable between two nodes, by their names."""

    a: str
    b: str
    rate_bps: float
    delay_s: float
    #: Names of the ports at both ends, where the descriptor has them.
    a_port: str = ""
    b_port: str = ""


@dataclass
class Fabric:
    """Hosts, switches and cables of a descriptor."""

    hosts: list[str] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)
    cables: list[Cable] = field(default_factory=list)
    #: Remarks on values that were assumed or left out.
    notes: list[str] = field(default_factory=list)
    #: Traffic from host to host in bit/s, where the file has it.
    demands_bps: dict[tuple[str, str], float] = field(default_factory=dict)

    def check(self) -> Fabric:
        """Return the fabric; raise ``InputError`` for one that the simulator would refuse."""
        demand_size(len(self.hosts) + len(self.switches), len(self.cables))
        names = [*self.hosts, *self.switches]
        twice = next((name for name, n in Counter(names).items() if n > 1), None)
        if twice is not None:
            raise InputError(f"there are two nodes named {clean(twice, 80)}")
        if len(self.hosts) < 2:
            raise InputError("there are fewer than two hosts")
        self._connected()
        return self

    def _connected(self) -> None:
        """Raise ``InputError`` for nodes that cannot be reached."""
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
        """Return the topology file; its first line names the ``source``."""
        lines = [f"# {clean(source, 200)}", *(f"# {clean(note, 400)}" for note in self.notes)]
        lines += [f"hosts = {json.dumps(self.hosts)}", f"switches = {json.dumps(self.switches)}"]
        for c in self.cables:
            lines += ["", "[[cable]]", f'a = "{c.a}"', f'b = "{c.b}"']
            lines += [f'rate = "{_whole(c.rate_bps)} bit/s"']
            lines += [f'delay = "{_whole(c.delay_s * 1e12)} ps"']
        return "\n".join(lines) + "\n"


def ports_csv(fabric: Fabric) -> str:
    """Return the ports of all cables as the content of a CSV file."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(PORT_COLUMNS)
    writer.writerows([c.a, c.a_port, c.b, c.b_port] for c in fabric.cables)
    return out.getvalue()


def _whole(value: float) -> int:
    return round(value)


def demand_size(nodes: int, cables: int) -> None:
    """Raise ``InputError`` for fabrics above the simulator's limits, before they are built."""
    if nodes > MOST_NODES:
        raise InputError(f"has {nodes} nodes; at most {MOST_NODES} are allowed")
    if cables > MOST_CABLES:
        raise InputError(f"has {cables} cables; at most {MOST_CABLES} are allowed")


def name_of(text: object, otherwise: str) -> str:
    """Return a label as a name that scenarios can write, or ``otherwise`` where it has none."""
    label = _OTHER.sub("-", text)[:64].strip("-") if isinstance(text, str) else ""
    return label if _NAME.fullmatch(label) else otherwise
