"""Clusters of MRPerf (XML): racks with one switch each, joined by a router or as a DCell.

A ``rack_group`` has a list of racks and a list of node groups; each rack has all node groups. Nodes
are named as in MRPerf, ``n_rg0_1_ng0_35``: rack group, rack, node group, node, numbered in the
order of the file. A ``router`` is a further switch to which every rack is connected; without a
router there can be only one rack. ``<topology>dcell</topology>`` joins the racks as a DCell of
level 1 instead (Guo et al. 2008). If a rack has n nodes, the DCell has n + 1 racks.

The file states the rate of a node's network card, but no rate of cables between switches. Unless
the user gives a rate for them, they get the rate of the slowest card. Disks, processors and memory
are ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.parsers import expat

from eastwest.errors import InputError
from eastwest.topologies.fabric import Assumed, Cable, Fabric, demand_size
from eastwest.units import clean

_MOST_ELEMENTS = 1_000_000
_MOST_DEPTH = 50
_RATE = re.compile(r"\s*(\d{1,6}(?:\.\d{1,6})?)\s*([KMGT])(?:bps|bit/s|b/s)\s*", re.IGNORECASE)
_UNIT = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


@dataclass
class _Element:
    name: str
    text: str = ""
    below: list[_Element] = field(default_factory=list)

    def all(self, name: str) -> list[_Element]:
        return [element for element in self.below if element.name == name]

    def text_of(self, name: str) -> str:
        found = self.all(name)
        return found[0].text.strip() if found else ""


def _parse(data: bytes) -> _Element:
    """Return the root element of an XML file.

    Raises ``InputError`` if the file is not XML, is too large or too deeply nested, or declares a
    document type, whose entities could expand to a large text.
    """
    parser = expat.ParserCreate()
    stack = [_Element("")]
    seen = 0

    def start(name: str, _: dict[str, str]) -> None:
        nonlocal seen
        seen += 1
        if seen > _MOST_ELEMENTS or len(stack) > _MOST_DEPTH:
            raise InputError(
                f"has more than {_MOST_ELEMENTS:,} elements, or elements nested more "
                f"than {_MOST_DEPTH} deep"
            )
        element = _Element(name)
        stack[-1].below.append(element)
        stack.append(element)

    def end(_: str) -> None:
        stack.pop()

    def text(content: str) -> None:
        if len(stack[-1].text) < 200:
            stack[-1].text += content[:200]

    def declared(*_: object) -> None:
        raise InputError("declares a document type (DOCTYPE), which is not supported")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = declared
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise InputError(
            f"line {error.lineno}: is not XML: {expat.ErrorString(error.code)}"
        ) from None
    # Python does not know the encoding that the file declares
    except (ValueError, LookupError) as error:
        raise InputError(f"is not XML: {clean(str(error), 100)}") from None
    return stack[0].below[0]


@dataclass
class _Rack:
    switch: str
    nodes: list[str]
    rates_bps: list[float]


def read(data: bytes, assumed: Assumed) -> Fabric:
    """Return the cluster that an XML file of MRPerf describes.

    Raises ``InputError`` if the file is invalid.
    """
    top = _parse(data)
    if top.name != "topo":
        raise InputError(
            f"the root element is {clean(top.name, 40)}, but must be topo, a topology of MRPerf"
        )
    racks = _racks(top)
    fabric = Fabric()
    slowest = min(rate for rack in racks for rate in rack.rates_bps)
    uplink_bps = assumed.rate_bps or slowest
    if assumed.rate_bps is None and len(racks) > 1:
        fabric.notes.append(
            f"cables between switches get the rate of the slowest network card, {uplink_bps:g} "
            "bit/s"
        )
    shape = top.text_of("topology").lower()
    if shape == "dcell":
        return _dcell(fabric, racks, uplink_bps, assumed.delay_s).check()
    if shape:
        raise InputError(f"topology {clean(shape, 40)!r} is unknown; allowed: dcell")
    routers = top.all("router")
    if len(racks) > 1 and not routers:
        raise InputError(f"has {len(racks)} racks, and no router that joins them")
    if len(routers) > 1:
        raise InputError(f"has {len(routers)} routers; allowed: 1")
    for rack in racks:
        fabric.hosts += rack.nodes
        fabric.switches.append(rack.switch)
        cables = zip(rack.nodes, rack.rates_bps, strict=True)
        fabric.cables += [Cable(n, rack.switch, r, assumed.delay_s) for n, r in cables]
    if routers and len(racks) > 1:
        fabric.switches.append("router")
        up = (uplink_bps, assumed.delay_s)
        fabric.cables += [Cable(rack.switch, "router", *up) for rack in racks]
    return fabric.check()


def _racks(top: _Element) -> list[_Rack]:
    cards = {
        machine.text_of("name"): nic[0].text_of("type")
        for machine in top.all("machine_type")
        if (nic := machine.all("nic"))
    }
    racks: list[_Rack] = []
    nodes = 0
    for g, group in enumerate(top.all("rack_group")):
        switches = len(group.all("switch"))
        if switches != 1:
            raise InputError(
                f"rack group {g} has {switches} switches per rack; allowed: 1, "
                "because a node has one cable"
            )
        per_rack: list[tuple[str, float]] = []
        for n, kind in enumerate(group.all("compute_node_group")):
            machine = kind.text_of("machine_type_name")
            rate_bps = _rate(cards.get(machine), machine)
            indices = kind.all("node_index")
            per_rack += [(f"ng{n}_{i}", rate_bps) for i in range(len(indices))]
        number = len(group.all("rack_index"))
        nodes += number * (len(per_rack) + 1)
        demand_size(nodes, nodes)
        for r in range(number):
            names = [f"n_rg{g}_{r}_{name}" for name, _ in per_rack]
            rack = _Rack(f"sw_rg{g}_{r}", names, [rate for _, rate in per_rack])
            racks.append(rack)
    if not any(rack.nodes for rack in racks):
        raise InputError("has no nodes: a rack_group needs rack_index and node_index")
    return racks


def _rate(card: str | None, machine: str) -> float:
    if card is None:
        raise InputError(f"no machine_type with a nic is named {clean(machine, 60)!r}")
    found = _RATE.fullmatch(card)
    rate = float(found[1]) * _UNIT[found[2].upper()] if found else 0.0
    if not 1e3 <= rate <= 1e13:
        raise InputError(f"the card {clean(card, 40)!r} has no rate such as 1Gbps")
    return rate


def _dcell(fabric: Fabric, racks: list[_Rack], uplink_bps: float, delay_s: float) -> Fabric:
    """Return ``fabric`` after the racks were added to it as the cells of a DCell of level 1.

    Each node gets a relay switch that forwards in its place, as in the simulator's topology
    ``dcell``. ``uplink_bps`` is the rate of the cables between cells.
    """
    n = len(racks[0].nodes)
    if any(len(rack.nodes) != n for rack in racks) or len(racks) != n + 1:
        raise InputError(
            f"a DCell of racks with {n} nodes each needs {n + 1} equal racks, but "
            f"there are {len(racks)} racks, or their sizes differ"
        )
    demand_size(len(racks) * (2 * n + 1), len(racks) * 3 * n)
    relay = [[f"relay_{node}" for node in rack.nodes] for rack in racks]
    for rack, relays in zip(racks, relay, strict=True):
        fabric.hosts += rack.nodes
        fabric.switches += [rack.switch, *relays]
        inside = zip(rack.nodes, relays, rack.rates_bps, strict=True)
        for node, forwarding, rate in inside:
            fabric.cables.append(Cable(node, forwarding, rate, 0.0))
            fabric.cables.append(Cable(forwarding, rack.switch, rate, delay_s))
    for i in range(n + 1):
        for j in range(i + 1, n + 1):
            fabric.cables.append(Cable(relay[i][j - 1], relay[j][i], uplink_bps, delay_s))
    return fabric
