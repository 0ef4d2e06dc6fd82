"""Faults that files of public repositories have shown; the excerpts here are written for the tests.

docs/validation/inventories.md names the files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eastwest import topologies
from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.topologies import Assumed, Fabric, frr, netbox
from eastwest.topologies.inventory import Described, Inventory, Link


def read(folder: Path, name: str, content: Any, assumed: Assumed | None = None) -> Fabric:
    """Return the fabric of one file: a text as it is, anything else as JSON."""
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return topologies.read(path, None, assumed)


def lab(nodes: dict[str, Any], *links: tuple[str, str], **more: Any) -> dict[str, Any]:
    """Return a topology of containerlab."""
    listed = [{"endpoints": list(ends)} for ends in links]
    return {"name": "lab", "topology": {"nodes": nodes, "links": listed, **more}}


CEOS, LINUX = {"kind": "arista_ceos"}, {"kind": "linux", "image": "alpine:3"}


def test_servers_with_links_to_two_leaves_are_hosts(tmp_path: Path) -> None:
    nodes = {"leaf1": CEOS, "leaf2": CEOS, "srv1": LINUX, "srv2": LINUX}
    links = [("leaf1:1", "leaf2:1")]
    links += [(f"leaf{i}:{s + 1}", f"srv{s}:eth{i}") for i in (1, 2) for s in (1, 2)]
    fabric = read(tmp_path, "a.json", lab(nodes, *links))
    assert (fabric.hosts, fabric.switches) == (["srv1", "srv2"], ["leaf1", "leaf2"])
    assert [(c.a, c.b) for c in fabric.cables] == [
        ("srv1", "leaf1"),
        ("srv1", "leaf2"),
        ("srv2", "leaf1"),
        ("srv2", "leaf2"),
        ("leaf1", "leaf2"),
    ]
    # A node between two of unknown purpose remains a switch.
    nodes = dict.fromkeys(("a", "b", "middle"), LINUX)
    fabric = read(tmp_path, "b.json", lab(nodes, ("a:1", "middle:1"), ("b:1", "middle:2")))
    assert (fabric.hosts, fabric.switches) == (["a", "b"], ["middle"])


@pytest.mark.parametrize(
    ("image", "is_switch"),
    [
        ("frrouting/frr:latest", True),
        ("ghcr.io/holo-routing/holo-bundle:latest", True),
        ("ghcr.io/techempt/ovs:latest", True),
        ("ghcr.io/hellt/network-multitool", False),
        ("bngblaster:1", False),
    ],
)
def test_the_image_tells_routers_of_kind_linux(tmp_path: Path, image: str, is_switch: bool) -> None:
    kinds = {"linux": {"image": image}}
    nodes = {"r1": {"kind": "linux"}, "r2": {"kind": "linux"}, "sw": CEOS}
    fabric = read(tmp_path, "a.json", lab(nodes, ("r1:1", "sw:1"), ("r2:1", "sw:2"), kinds=kinds))
    assert ("r1" in fabric.switches) == is_switch


def test_a_line_card_is_a_part_of_its_router(tmp_path: Path) -> None:
    card = {"kind": "nokia_srsim", "network-mode": "container:r1"}
    nodes = {"r1": {"kind": "nokia_srsim"}, "r1-1": card, "r1-2": card, "a": LINUX, "b": LINUX}
    fabric = read(tmp_path, "a.json", lab(nodes, ("r1-1:1/1", "a:eth1"), ("r1-2:2/1", "b:eth1")))
    assert (fabric.hosts, fabric.switches) == (["a", "b"], ["r1"])
    assert "2 × node that is a part of another (network-mode)" in fabric.notes
    nodes["r1"] = {"kind": "nokia_srsim", "network-mode": "container:r1-1"}
    nodes["r1-1"] = {"network-mode": "container:r1"}
    with pytest.raises(InputError, match="network-mode of 'r1' is a loop"):
        read(tmp_path, "a.json", lab(nodes, ("r1-1:1/1", "a:eth1")))


@pytest.mark.parametrize("is_nested", [True, False])
def test_the_export_of_a_running_lab(tmp_path: Path, is_nested: bool) -> None:
    ends = {
        "a": {"node": "h1", "interface": "eth1", "peer": "z"},
        "z": {"node": "sw", "interface": "e1", "peer": "a"},
    }
    other = {"a": {"node": "h2", "interface": "eth1"}, "z": {"node": "sw", "interface": "e2"}}
    alone = {"a": {"node": "sw", "interface": "e3", "peer": "dummy"}}
    links = [{"endpoints": e} if is_nested else e for e in (ends, other, alone)]
    nodes = {"h1": LINUX, "h2": LINUX, "sw": {"kind": "nokia_srlinux"}}
    export = {"name": "x", "type": "clab", "clab": {}, "nodes": nodes, "links": links}
    fabric = read(tmp_path, "topology-data.json", export)
    assert (fabric.hosts, fabric.switches) == (["h1", "h2"], ["sw"])
    assert [(c.a_port, c.b_port) for c in fabric.cables] == [("eth1", "e1"), ("eth1", "e2")]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (lab({"a": LINUX, "b": LINUX}, ("a:1", "b:1")), "no switch is left"),
        (lab({"a": LINUX, "sw": CEOS}, ("a:1", "sw:1")), "only one device is a host: a"),
        (lab({"sw": CEOS}, ("sw:1", "host:x")), "two devices: 1 × link to the host"),
        (lab({"a": CEOS, "b": CEOS, "c": CEOS, "d": CEOS}, ("a:1", "b:1"), ("c:1", "d:1")),
         "it has 2 parts without a path.*--devices"),
        ("topology:\n  nodes:\n{{ if .x }}\n    a: {kind: linux}\n", "is a template"),
        ("name: lab\nmgmt:\n  network: x\n", "the format of the file was not recognised"),
        ("# Devices\nrole,name\nserver,srv1\n", "the format of the file was not recognised"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_fabric_says_why(tmp_path: Path, content: Any, says: str) -> None:
    pytest.importorskip("yaml")
    with pytest.raises(InputError, match=says):
        read(tmp_path, "lab.clab.yml", content)


def test_one_part_of_an_inventory(tmp_path: Path) -> None:
    nodes = dict.fromkeys(("x1", "x2", "y1", "y2"), CEOS)
    content = lab(nodes, ("x1:1", "x2:1"), ("y1:1", "y2:1"))
    fabric = read(tmp_path, "a.json", content, Assumed(device_names=("x*",)))
    assert fabric.switches == ["x1", "x2"]
    assert "2 × device whose name does not match --devices: left out" in fabric.notes
    with pytest.raises(InputError, match=r"no device has a name like z\*"):
        read(tmp_path, "a.json", content, Assumed(device_names=("z*",)))
    command = ["topology", "import", str(tmp_path / "a.json"), "--devices", "y*"]
    done = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "f.toml")])
    assert "2 hosts, 2 switches, 3 cables" in done.output


def row(model: str, key: int, **fields: Any) -> dict[str, Any]:
    return {"model": model, "pk": key, "fields": fields}


def dump(*, terminations: bool = True) -> list[dict[str, Any]]:
    """Return a dump of NetBox: a panel pair, a circuit and a direct cable between two racks.

    sw1 - panel 1 = panel 2 - sw2; sw1 - circuit - sw2; srv - sw1; a power cable.
    """
    kind = ["dcim", "interface"]
    rows = [
        row("dcim.devicerole", 1, name="Leaf", slug="leaf"),
        row("dcim.devicerole", 2, name="Server", slug="server"),
    ]
    for key, name in enumerate(["sw1", "sw2", "panel", "panel", "srv", None], 1):
        rows.append(row("dcim.device", key, name=name, role=2 if name == "srv" else 1))
    for key, (device, name, form) in enumerate(
        [(1, "e1", "10gbase-x-sfpp"), (2, "e1", "10gbase-x-sfpp"), (1, "e2", "100base-tx"),
         (2, "e2", "100base-tx"), (5, "eno1", "25gbase-x-sfp28"), (1, "e3", "25gbase-x-sfp28")], 1
    ):  # fmt: skip
        rows.append(row("dcim.interface", key, device=device, name=name, type=form, speed=None))
    for panel in (3, 4):
        rear = row("dcim.rearport", panel, device=panel, name="r", positions=2)
        rows += [rear, *(
            row("dcim.frontport", panel * 10 + i, device=panel, rear_port=panel,
                rear_port_position=i) for i in (1, 2)
        )]  # fmt: skip
    for key, side in ((1, "A"), (2, "Z")):
        rows.append(row("circuits.circuittermination", key, circuit=7, term_side=side))
    front, back, ring = (
        ["dcim", "frontport"],
        ["dcim", "rearport"],
        ["circuits", "circuittermination"],
    )
    cables: list[tuple[tuple[list[str], int], tuple[list[str], int]]] = [
        ((kind, 1), (front, 32)),
        ((back, 3), (back, 4)),
        ((front, 42), (kind, 2)),
        ((kind, 3), (ring, 1)),
        ((ring, 2), (kind, 4)),
        ((kind, 5), (kind, 6)),
        ((["dcim", "powerport"], 1), (["dcim", "poweroutlet"], 1)),
    ]
    for key, ends in enumerate(cables, 1):
        fields: dict[str, Any] = {"status": "connected", "length": 3 if key == 6 else None}
        fields["length_unit"] = "m"
        for side, (types, number) in zip("AB", ends, strict=True):
            if terminations:
                more = {"cable_end": side, "termination_type": types, "termination_id": number}
                end = row("dcim.cabletermination", 2 * key + (side == "B"), cable=key, **more)
                rows.append(end)
            else:
                low = side.lower()
                fields |= {f"termination_{low}_type": types, f"termination_{low}_id": number}
        rows.append(row("dcim.cable", key, **fields))
    return rows


@pytest.mark.parametrize("terminations", [True, False])
def test_dumps_of_netbox_are_followed_through_panels_and_circuits(
    tmp_path: Path, terminations: bool
) -> None:
    listed = dump(terminations=terminations)
    found = netbox.inventory([Described("dump.json", json.dumps(listed).encode())])
    assert list(found.devices) == ["sw1", "sw2", "panel", "panel-4", "srv", "device-6"]
    assert {(link.a, link.a_port, link.b, link.b_port, link.rate_bps) for link in found.links} == {
        ("sw1", "e1", "sw2", "e1", 10e9),
        ("sw1", "e2", "sw2", "e2", 100e6),
        ("srv", "eno1", "sw1", "e3", 25e9),
    }
    assert [link.length_m for link in found.links if link.a == "srv"] == [3.0]
    assert found.notes["cable that does not join interfaces of two devices", "left out"] == 1
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(listed))
    with pytest.raises(InputError, match="only one device is a host: srv"):
        topologies.read(path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"pk": None}, "no number as its key: dump without --natural-primary"),
        ({"fields": 7}, "has no fields"),
        ({"model": ["x"]}, None),
        ({"fields": {"termination_a_type": 12, "termination_a_id": 1}}, "--natural-foreign"),
        ({"fields": {"termination_a_type": ["dcim", "interface"], "termination_a_id": []}}, None),
    ],
)
def test_damaged_dumps_are_refused_or_read(change: dict[str, Any], says: str | None) -> None:
    listed = [*dump(), row("dcim.cable", 99) | change]
    file = Described("dump.json", json.dumps(listed).encode())
    if says is None:
        assert len(netbox.inventory([file]).links) == 3
    else:
        with pytest.raises(InputError, match=says):
            netbox.inventory([file])


def test_devices_of_one_name_in_two_sites_are_two(tmp_path: Path) -> None:
    def end(number: int, name: str, port: str) -> list[dict[str, Any]]:
        device = {"id": number, "name": name}
        return [{"object_type": "dcim.interface", "object": {"device": device, "name": port}}]

    cables = [
        {"a_terminations": end(1, "leaf", "1"), "b_terminations": end(3, "spine", "1")},
        {"a_terminations": end(2, "leaf", "1"), "b_terminations": end(3, "spine", "2")},
    ]
    content = {"results": [*cables, {"id": 2, "name": "leaf", "role": {"slug": "server"}}]}
    fabric = read(tmp_path, "cables.json", content, Assumed(host_names=("leaf*",)))
    assert (fabric.hosts, fabric.switches) == (["leaf", "leaf-2"], ["spine"])


def test_chassis_and_neighbours_in_one_file(tmp_path: Path) -> None:
    def about(port: str, name: str, capability: str) -> dict[str, Any]:
        chassis = {
            name: {"id": {"type": "mac"}, "capability": {"type": capability, "enabled": True}}
        }
        return {"chassis": chassis, "port": {"id": {"type": "ifname", "value": port}}}

    own = {"sw1": {"capability": [{"type": "Bridge", "enabled": True}]}}
    content = {
        "lldp_loc_chassis": {"local-chassis": {"chassis": own}},
        "lldp": {"interface": [{f"e{i}": about("eth0", f"srv{i}", "Station")} for i in (1, 2)]},
    }
    fabric = read(tmp_path, "sonic.json", content)
    assert (fabric.hosts, fabric.switches) == (["srv1", "srv2"], ["sw1"])


def routes_json(prefix: str, interface: str, **more: Any) -> str:
    hop = {"active": True, "interfaceName": interface, "ip": "10.0.0.9"}
    return json.dumps({prefix: [{"selected": True, "protocol": "bgp", "nexthops": [hop], **more}]})


def test_the_default_table_of_several_vrfs() -> None:
    text = "\n".join(
        (
            routes_json("10.0.0.0/8", "red", vrfId=9),
            routes_json("10.0.0.0/8", "swp1"),
            routes_json("10.0.0.0\\/8", "blue", vrfId=10),
            "{}\n",
        )
    )
    (table,) = frr.tables([Described("leaf.json", text.encode())]).values()
    assert table.routes == {(4, 8): {10: (frr.Hop("swp1", "10.0.0.9"),)}}
    named = routes_json("10.0.0.0\\/8", "swp2", vrfName="default")
    (table,) = frr.tables([Described("leaf.json", named.encode())]).values()
    assert table.routes[4, 8][10][0].interface == "swp2"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (routes_json("0.0.0.0/0", "a", vrfId=9) * 2, "the tables of 2 VRFs, none of them default"),
        ('{"prefix": "10.0.0.0/8", "paths": []}', "is the output of show bgp … json"),
        ('{"default": {"vrfId": 0, "routes": {}}}', "is the output of show bgp … json"),
        ('{"10.0.0.0/8": {"routeType": "N", "nexthops": []}}', "show ip ospf route json"),
        ('{"10.0.0.0/8": {"dev": "r1-eth0"}}', "is the output of another command"),
        ("{}" * 5000, "more than 4096 VRFs"),
        ("{} x", "is not JSON"),
    ],
)
def test_outputs_of_other_commands_are_named(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        frr.tables([Described("leaf.json", text.encode())])


CABLES = "Device A,Termination A,Device B,Termination B,Status,Length,Length Unit\n"


def cables(*rows: str) -> str:
    """Return the CSV of cables from leaf1 (eth1, eth2, …) to srv1, srv2, …; ends of rows differ."""
    lines = [f"leaf1,eth{n},srv{n},eth0,{row}\n" for n, row in enumerate(rows, 1)]
    return CABLES + "".join(lines)


@pytest.mark.parametrize("length", ["-5,m", "abc,m", "nan,m", "5,parsec", "99999999,km", "inf,m"])
def test_lengths_that_are_not_used_are_named(tmp_path: Path, length: str) -> None:
    text = cables("Connected,200,km", f"Connected,{length}", "Connected,,")
    fabric = read(tmp_path, "a.csv", text)
    delays = [round(cable.delay_s * 1e12) for cable in fabric.cables]
    assert delays == [1_005_000_000, 5_000_000, 5_000_000]
    assert any(
        note.startswith("1 × length of a cable that is not from 0 to 1000 km")
        and note.endswith(f"({length.replace(',', ' ')}): not used")
        for note in fabric.notes
    )
    assert "lengths of 1 of 3 cables add 5 ns/m to the delay" in fabric.notes


def test_speeds_and_statuses_that_are_not_used_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(cables("Verbunden,,", "Connected,,", "active,,", "Planned,,"))
    (tmp_path / "b.csv").write_text(
        "Device,Name,Type,Speed (Kbps)\nsrv1,eth0,10gbase-x,-5\nleaf1,eth1,10gbase-x,abc\n"
        "srv2,eth0,25gbase-x,1e30\nsrv3,eth0,25gbase-x,99999999999\nleaf1,eth3,25gbase-x,0\n"
    )
    fabric = topologies.read_all([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert [cable.rate_bps for cable in fabric.cables] == [25e9, 25e9]
    assert fabric.notes[:2] == [
        "4 × speed of an interface that is not from 1 to 10^10 kbit/s (-5, abc, 1e30, …): not "
        "used; the type of the interface gives its rate",
        "2 × cable with a status other than Connected and Active (Verbunden, Planned): left out",
    ]


def neighbours(*ports: tuple[str, str, str]) -> dict[str, Any]:
    """Return the output of lldpctl: own port, name of the neighbour, its port."""

    def about(name: str, port: str) -> dict[str, Any]:
        return {"chassis": {name: {}}, "port": {"id": {"type": "ifname", "value": port}}}

    return {"lldp": {"interface": [{own: about(name, port)} for own, name, port in ports]}}


def test_reports_that_occur_twice_are_one_link(tmp_path: Path) -> None:
    told = neighbours(("e1", "h1", "eth0"), ("e2", "h2", "eth0"), ("e3", "s2", "e1"))
    for name in ("s1.lldp.json", "s1.json"):
        (tmp_path / name).write_text(json.dumps(told))
    paths = [tmp_path / "s1.lldp.json", tmp_path / "s1.lldp.json", tmp_path / "s1.json"]
    assert len(topologies.read_all(paths[:1]).cables) == 3
    fabric = topologies.read_all(paths)
    assert len(fabric.cables) == 3
    again = "6 × report of a neighbour that is listed again (s1 e1, s1 e2, s1 e3): counted once"
    assert again in fabric.notes
    nodes = {"s1": CEOS, "h1": LINUX, "h2": LINUX}
    one, other = ("s1:1", "h1:1"), ("s1:2", "h2:1")
    fabric = read(tmp_path, "a.clab.json", lab(nodes, one, other, (one[1], one[0])))
    assert len(fabric.cables) == 2
    assert "1 × link that is listed again (h1 1 – s1 1): the first value of each kind counts" in (
        fabric.notes
    )


def test_a_link_that_is_listed_again_adds_what_is_missing() -> None:
    found = Inventory()
    found.link(Link("a", "1", "b", "1", length_m=3.0))
    found.link(Link("b", "1", "a", "1", rate_bps=1e9, length_m=7.0))
    assert found.links == [Link("a", "1", "b", "1", rate_bps=1e9, length_m=3.0)]


def test_several_neighbours_under_one_key_are_all_read(tmp_path: Path) -> None:
    about = '{"chassis": {"%s": {}}, "port": {"id": {"type": "ifname", "value": "eth0"}}}'
    keys = ", ".join(f'"e1": {about % name}' for name in ("h1", "h2"))
    fabric = read(tmp_path, "s1.json", '{"lldp": {"interface": {' + keys + "}}}")
    assert fabric.hosts == ["h1", "h2"]
    assert "1 × port with several cables (s1 e1): each cable is a link" in fabric.notes


def test_a_port_with_several_cables_is_noted_by_every_importer(tmp_path: Path) -> None:
    note = "1 × port with several cables (leaf1 eth1): each cable is a link"
    text = cables("Connected,,", "Connected,,", "Connected,,").replace("eth2", "eth1")
    assert note in read(tmp_path, "a.csv", text).notes
    nodes = {"leaf1": CEOS, "h1": LINUX, "h2": LINUX}
    links = [("leaf1:eth1", "h1:1"), ("leaf1:eth1", "h2:1")]
    assert note in read(tmp_path, "a.clab.json", lab(nodes, *links)).notes
    told = neighbours(("eth1", "h1", "1"), ("eth1", "h2", "1"))
    assert note in read(tmp_path, "leaf1.lldp.json", told).notes

    def end(device: str, port: str) -> dict[str, Any]:
        return {"object_type": "dcim.interface", "object": {"device": device, "name": port}}

    def cable(*far: str) -> dict[str, Any]:
        ends = [end(name, "eth0") for name in far]
        return {"a_terminations": [end("leaf1", "eth1")], "b_terminations": ends}

    assert note in read(tmp_path, "n.json", [cable("h1"), cable("h2")]).notes
    breakout = read(tmp_path, "n.json", [cable("h1", "h2")])
    assert len(breakout.cables) == 2
    assert not any("several cables" in each for each in breakout.notes)


def test_nodes_with_one_name_are_refused(tmp_path: Path) -> None:
    links = '"links": [{"endpoints": ["s:1", "h:1"]}]'
    text = '{"topology": {"nodes": {"s": {"kind": "ceos"}, "s": {}, "h": {}}, ' + links + "}}"
    with pytest.raises(InputError, match=r"a\.clab\.json: the key 's' occurs twice in one object"):
        read(tmp_path, "a.clab.json", text)
    pytest.importorskip("yaml")
    text = (
        "topology:\n  nodes:\n    s: {kind: ceos, image: [s, s]}\n    h: {kind: linux}\n"
        '    g: {kind: linux}\n  links:\n    - endpoints: ["s:1", "h:1"]\n'
        '    - endpoints: ["s:2", "g:1"]\n'
    )
    assert read(tmp_path, "a.clab.yml", text).hosts == ["g", "h"]
    for twice in ("    s: {kind: linux}\n", "    h:\n      kind: linux\n"):
        with pytest.raises(InputError, match=r"a.clab.yml:6: the key '[sh]' occurs twice"):
            read(tmp_path, "a.clab.yml", text.replace("  links", f"{twice}  links"))


def test_changed_names_are_listed_in_the_file(tmp_path: Path) -> None:
    devices = [f"srv {n}" for n in range(1, 6)]
    rows = "".join(f"leaf1,eth{n},{name},eth0,,,\n" for n, name in enumerate(devices))
    fabric = read(tmp_path, "a.csv", CABLES + rows)
    assert fabric.notes[-1].startswith("5 × link without a rate")
    assert (
        "5 × name of a device that was changed to be valid ('srv 1' is srv-1, 'srv 2' is srv-2, "
        "'srv 3' is srv-3, …): comments in the file have all of them"
    ) in fabric.notes
    lines = fabric.to_toml("x").splitlines()
    assert [line for line in lines if line.startswith("# srv-")] == [
        f"# srv-{n} is 'srv {n}'" for n in range(1, 6)
    ]


def test_faults_of_ports_and_tables_for_routes_are_noted(tmp_path: Path) -> None:
    ports = tmp_path / "ports.csv"
    rows = ("h1,e0,s1,e1", "h2,e0,s1,e2", "h2,e0,s1,e2", "h3,e0,s1,e1")
    ports.write_text("a,a_port,b,b_port\n" + "\n".join(rows) + "\n")
    tables = {name: routes_json("10.0.0.0/24", "e1") for name in ("s1.json", "s1.routes", "s9")}
    files = [Described(name, text.encode()) for name, text in tables.items()]
    hosts = {"h1": "10.0.0.1", "h2": "10.0.1.2"}
    found = frr.routes(files, frr.read_ports(ports), hosts, [("h2", "h1")])
    assert found.notes[:3] == [
        "1 × port with several cables (s1 e1): the first one in the file of ports counts",
        "1 × switch with tables in several files (s1): their routes are joined; for a prefix in "
        "several, the last file counts",
        "1 × table of a switch that is not in the file of ports (s9): no path leads through it",
    ]
    with pytest.raises(InputError, match=r"the host h 1 has no cable .*; it may be h-1 there"):
        ports.write_text("a,a_port,b,b_port\nh-1,e0,s1,e1\n")
        frr.routes(files, frr.read_ports(ports), {"h 1": "10.0.0.1"})
