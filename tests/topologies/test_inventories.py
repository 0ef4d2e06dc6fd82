"""Fabrics from inventories, and routes from the tables of switches of a real network."""

from __future__ import annotations

import contextlib
import csv
import json
import random
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import eastwest as ew
import guide_pages
import project_paths
from eastwest import topologies
from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.topologies import Assumed, Fabric, frr, netbox_dump
from eastwest.topologies.inventory import Described, in_order, rate_of_port

LAB = project_paths.DATA / "inventories" / "lab"
NEIGHBOURS = sorted(LAB.glob("*.lldp.json"))
TABLES = sorted(LAB.glob("*.routes.json"))
LAB_PORTS = [
    ("h0", "eth0", "leaf0", "srv0"),
    ("h1", "eth0", "leaf0", "srv1"),
    ("h2", "eth0", "leaf1", "srv2"),
    ("h3", "eth0", "leaf1", "srv3"),
    ("leaf0", "up0", "spine0", "down0"),
    ("leaf0", "up1", "spine1", "down0"),
    ("leaf1", "up0", "spine0", "down1"),
    ("leaf1", "up1", "spine1", "down1"),
]


def ports(fabric: Fabric) -> list[tuple[str, str, str, str]]:
    return [(c.a, c.a_port, c.b, c.b_port) for c in fabric.cables]


def written(folder: Path, **files: Any) -> list[Path]:
    """Write files: text as it is, anything else as JSON; ``_`` in a name stands for a dot."""
    paths = []
    for name, content in files.items():
        path = folder / name.replace("_", ".")
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
        paths.append(path)
    return paths


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["topology", *map(str, arguments)])


def test_neighbours_of_a_real_network() -> None:
    fabric = topologies.read_all(NEIGHBOURS)
    assert (fabric.hosts, fabric.switches) == (
        ["h0", "h1", "h2", "h3"],
        ["leaf0", "leaf1", "spine0", "spine1"],
    )
    assert ports(fabric) == LAB_PORTS
    assert {c.rate_bps for c in fabric.cables} == {10e9}  # The devices report "10GbaseT".
    assert fabric.notes == []
    links = sorted(LAB.glob("*.link.json"))
    assert ports(topologies.read_all([*links, *NEIGHBOURS])) == LAB_PORTS


def test_neighbours_of_some_devices_are_enough() -> None:
    leaves = [p for p in NEIGHBOURS if p.name.startswith("leaf")]
    fabric = topologies.read_all(leaves)
    # The MAC addresses of the other devices are missing, so ports get the names that the leaves
    # report.
    assert ports(fabric) == LAB_PORTS
    assert fabric.notes == [
        "6 × device that only its neighbours report (h0, h1, h2, …)",
        "2 × device of unknown purpose: none has only one neighbour, so that all become switches "
        "(--host names the hosts)",
    ]
    one = topologies.read_all([LAB / "leaf0.lldp.json"])
    other = topologies.read_all([LAB / "leaf0.json0"])
    assert ports(one) == ports(other)
    assert len(one.cables) == 4


def neighbour(name: str, port: str, **more: Any) -> dict[str, Any]:
    """Return a neighbour as in ``lldpctl -f json``."""
    chassis = {name: {"capability": more.pop("capability", [])}}
    about = {"id": {"type": "ifname", "value": port}, **more}
    return {"via": "LLDP", "chassis": chassis, "port": about}


BRIDGE = [{"type": "Bridge", "enabled": True}, {"type": "Router", "enabled": False}]
STATION = [{"type": "Bridge", "enabled": False}, {"type": "Station", "enabled": True}]


def lldp(*interfaces: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"lldp": {"interface": [{port: about} for port, about in interfaces]}}


def test_parallel_links_several_switches_and_rates(tmp_path: Path) -> None:
    s1 = lldp(
        ("swp1", neighbour("srv-a.example.net", "eth0", capability=STATION)),
        ("swp2", neighbour("srv-a.example.net", "eth1", capability=STATION)),
        ("swp3", neighbour("srv-b", "eth0", capability=STATION)),
        ("swp31", neighbour("s2", "swp31", capability=BRIDGE)),
        ("swp32", neighbour("s2", "swp32", capability=BRIDGE)),
        ("swp30", neighbour("s2", "swp30", capability=BRIDGE)),
    )
    s2 = lldp(
        ("swp31", neighbour("s1", "swp31", capability=BRIDGE)),
        ("swp3", neighbour("srv-b", "eth1", capability=STATION)),
        ("swp4", neighbour("srv-c", "eth0", capability=STATION)),
    )
    down = [{"ifname": "swp30", "operstate": "DOWN", "address": "02:00:00:00:00:01"}]
    speeds = [{"ifname": f"swp{n}", "speed": 25_000} for n in (1, 2, 3)]
    speeds += [{"ifname": "swp31", "speed": 100_000}, {"ifname": "swp32", "speed": -1}]
    files = written(
        tmp_path,
        s1_lldp_json=s1,
        s2_lldp_json=s2,
        s1_link_json=down,
        s1_ethtool_json=speeds,
        **{"srv-a_json": lldp(("eth0", neighbour("s1", "swp1", capability=BRIDGE)))},
    )
    fabric = topologies.read_all(files)
    assert (fabric.hosts, fabric.switches) == (["srv-a", "srv-b", "srv-c"], ["s1", "s2"])
    rates = [(c.a, c.b, c.rate_bps) for c in fabric.cables]
    assert rates == [
        ("srv-a", "s1", 25e9),  # One of two links, which srv-a has also reported.
        ("srv-a", "s1", 25e9),
        ("srv-b", "s1", 25e9),
        ("srv-b", "s2", 25e9),
        ("srv-c", "s2", 10e9),
        ("s1", "s2", 100e9),
        ("s1", "s2", 10e9),
    ]
    text = "\n".join(fabric.notes)
    assert "1 × neighbour at a port that is down (s1 swp30): left out" in text
    assert "2 × host with several links: a network card for each" in text
    assert "1 × link of a host without a rate: the rate of the host's other links" in text
    assert "2 × link without a rate: 10 Gbit/s (assumed; set it with --rate)" in text
    faster = topologies.read_all(files, None, Assumed(40e9))
    assert [c.rate_bps for c in faster.cables][4:] == [40e9, 100e9, 40e9]


def test_neighbours_of_networkd(tmp_path: Path) -> None:
    def port(name: str, other: str, theirs: str, bits: int) -> dict[str, Any]:
        known = {"SystemName": other, "PortID": theirs, "EnabledCapabilities": bits}
        return {"InterfaceIndex": 2, "InterfaceName": name, "Neighbors": [known]}

    files = written(
        tmp_path,
        a_json={"Neighbors": [port("eth0", "sw", "Ethernet1", 0x14)]},
        b_json={"Neighbors": [port("eth0", "sw", "Ethernet2", 0x14)]},
    )
    fabric = topologies.read_all(files)
    assert ports(fabric) == [("a", "eth0", "sw", "Ethernet1"), ("b", "eth0", "sw", "Ethernet2")]


CONTAINERLAB = """# a lab
name: clos
topology:
  kinds: {ceos: {image: "ceos:4.32"}}
  nodes:
    leaf1: {kind: ceos}
    leaf2: {kind: ceos}
    spine1: {kind: nokia_srlinux, type: ixrd3}
    client1: {kind: linux, image: alpine}
    client2: {kind: linux}
    frr: {kind: linux, image: "quay.io/frrouting/frr:9.0.2"}
  links:
    - endpoints: ["leaf1:e1-1", "spine1:e1-1"]
    - endpoints: ["leaf2:e1-1", "spine1:e1-2"]
    - {endpoints: ["client1:eth1", "leaf1:e1-2"]}
    - type: veth
      endpoints:
        - {node: client2, interface: eth1}
        - {node: leaf2, interface: e1-2}
    - endpoints: ["frr:eth1", "leaf1:e1-3"]
    - endpoints: ["frr:eth2", "leaf2:e1-3"]
    - endpoints: ["leaf1:e1-9", "host:veth9"]
    - type: mgmt-net
      endpoint: {node: leaf1, interface: eth5}
"""


def test_topologies_of_containerlab(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    (path,) = written(tmp_path, lab_clab_yml=CONTAINERLAB)
    fabric = topologies.read(path)
    assert fabric.hosts == ["client1", "client2"]
    assert fabric.switches == ["frr", "leaf1", "leaf2", "spine1"]
    assert ports(fabric)[0] == ("client1", "eth1", "leaf1", "e1-2")
    assert len(fabric.cables) == 6
    assert "2 × link to the host system (mgmt-net, macvlan, vxlan, …): left out" in fabric.notes
    assert any("2 × device of unknown purpose: all have one neighbour" in n for n in fabric.notes)
    (same,) = written(tmp_path, lab_json=yaml.safe_load(CONTAINERLAB))
    assert ports(topologies.read(same)) == ports(fabric)
    chosen = topologies.read(path, None, Assumed(host_names=("client1", "frr")))
    assert (chosen.hosts, len(chosen.switches)) == (["client1", "frr"], 4)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("leaf1:e1-3", "leaf9:e1-3"), "link 5: there is no node 'leaf9'"),
        (("leaf1:e1-3", "leaf1"), "link 5: an endpoint must be NODE:INTERFACE"),
        (('["frr:eth1", "leaf1:e1-3"]', '["frr:eth1"]'), "link 5: must have two endpoints"),
        (("  nodes:", "  nodes: &all"), "link 1: is not an object"),
        (("name: clos", "name: [clos"), ":3: is not valid YAML"),
        (("  links:", "  cables:"), "has no link between two devices"),
        (("name: clos", "name: " + "[" * 40 + "]" * 40), "nested deeper than 32"),
        (("name: clos", "name: &a x\nother: *a"), ":3: has an alias of YAML"),
    ],
)
def test_topologies_of_containerlab_that_cannot_be_used(
    tmp_path: Path, change: tuple[str, str], expected: str
) -> None:
    pytest.importorskip("yaml")
    text = CONTAINERLAB.replace(*change)
    if "&all" in text:
        text = text.replace('    - endpoints: ["leaf1:e1-1", "spine1:e1-1"]', "    - 7")
    (path,) = written(tmp_path, lab_yml=text)
    with pytest.raises(InputError, match=expected) as error:
        topologies.read(path)
    assert "\n" not in str(error.value)


def cable(a: tuple[str, str], b: tuple[str, str], **more: Any) -> dict[str, Any]:
    """Return a cable as in NetBox's REST interface."""

    def end(device: str, port: str) -> list[dict[str, Any]]:
        about = {"device": {"name": device}, "name": port}
        return [{"object_type": "dcim.interface", "object_id": 1, "object": about}]

    status = {"value": more.pop("status", "connected"), "label": "Connected"}
    return {"id": 1, "a_terminations": end(*a), "b_terminations": end(*b), "status": status, **more}


def exported(*results: dict[str, Any]) -> dict[str, Any]:
    return {"count": len(results), "next": None, "results": list(results)}


def interface(device: str, name: str, kind: str, speed: int | None = None) -> dict[str, Any]:
    about = {"device": {"name": device}, "name": name, "type": {"value": kind}, "speed": speed}
    return {"url": "http://netbox/api/dcim/interfaces/1/", **about}


def test_exports_of_netbox(tmp_path: Path) -> None:
    files = written(
        tmp_path,
        cables_json=exported(
            cable(("srv1", "eno1"), ("leaf1", "Ethernet1"), length=3, length_unit={"value": "m"}),
            cable(("srv2", "eno1"), ("leaf2", "Ethernet1")),
            cable(
                ("leaf1", "Ethernet49"),
                ("spine1", "Ethernet1"),
                length=100,
                length_unit={"value": "ft"},
            ),
            cable(("leaf2", "Ethernet49"), ("spine1", "Ethernet2")),
            cable(("leaf2", "Ethernet50"), ("spine1", "Ethernet3"), status="planned"),
            {
                **cable(("leaf1", "x"), ("panel", "1")),
                "b_terminations": [
                    {"object_type": "dcim.frontport", "object": {"device": {"name": "panel"}}}
                ],
            },
        ),
        interfaces_json=exported(
            interface("srv1", "eno1", "25gbase-x-sfp28"),
            interface("leaf1", "Ethernet1", "25gbase-x-sfp28"),
            interface("leaf1", "Ethernet49", "100gbase-x-qsfp28"),
            interface("spine1", "Ethernet1", "100gbase-x-qsfp28", 40_000_000),
            interface("srv2", "eno1", "2.5gbase-t"),
        ),
        devices_json=exported(
            {"name": "srv1", "role": {"slug": "server"}, "device_type": {}},
            {"name": "srv2", "device_role": {"slug": "compute"}, "device_type": {}},
            *({"name": n, "role": {"slug": "leaf"}, "device_type": {}} for n in ("leaf1", "leaf2")),
            {"name": "spine1", "role": {"slug": "spine"}, "device_type": {}},
            {"name": "pdu1", "role": {"slug": "pdu"}, "device_type": {}},
        ),
    )
    fabric = topologies.read_all(files)
    assert (fabric.hosts, fabric.switches) == (["srv1", "srv2"], ["leaf1", "leaf2", "spine1"])
    assert [c.rate_bps for c in fabric.cables] == [25e9, 2.5e9, 40e9, 10e9]
    assert [round(c.delay_s * 1e12) for c in fabric.cables] == [
        5_015_000,
        5_000_000,
        5_152_400,
        5_000_000,
    ]
    text = "\n".join(fabric.notes)
    for note in (
        "1 × cable with a status other than Connected and Active (planned): left out",
        "1 × cable that does not join interfaces of two devices: left out",
        "1 × link whose ends have different rates: the lower one is used",
        "1 × device without a usable link: left out",
        "1 × link without a rate",
    ):
        assert note in text
    page = {**exported(cable(("a", "1"), ("b", "1"))), "next": "http://netbox/?offset=50"}
    with pytest.raises(InputError, match="is only one of several pages of the export: export with"):
        topologies.read_all(written(tmp_path, page_json=page))


def test_a_breakout_cable_is_several_links(tmp_path: Path) -> None:
    several = cable(("leaf1", "Ethernet1"), ("srv1", "eno1"))
    several["b_terminations"] += cable(("x", "x"), ("srv2", "eno1"))["b_terminations"]
    kinds = [interface(f"srv{i}", "eno1", "25gbase-x-sfp28") for i in (1, 2)]
    kinds.append(interface("leaf1", "Ethernet1", "100gbase-x-qsfp28"))
    files = written(tmp_path, a_json=exported(several), b_json=exported(*kinds))
    fabric = topologies.read_all(files)
    assert [(c.a, c.b, c.rate_bps) for c in fabric.cables] == [
        ("srv1", "leaf1", 25e9),
        ("srv2", "leaf1", 25e9),
    ]


def test_exports_of_netbox_as_csv(tmp_path: Path) -> None:
    bulk = (
        "side_a_device,side_a_type,side_a_name,side_b_device,side_b_type,side_b_name,length,"
        "length_unit\nsrv1,dcim.interface,eno1,leaf1,dcim.interface,Ethernet1,3,m\n"
        "srv2,dcim.interface,eno1,leaf1,dcim.interface,Ethernet2,,\n"
    )
    table = (
        "ID,Label,Device A,Termination A,Device B,Termination B,Status,Length\n"
        "1,,srv1,eno1,leaf1,Ethernet1,Connected,3 Meters\n"
        "2,,srv2,eno1,leaf1,Ethernet2,Connected,\n"
    )
    kinds = "Device,Name,Type,Speed (Kbps)\nsrv1,eno1,SFP28 (25GE),\nsrv2,eno1,1000BASE-T (1GE),\n"
    for text in (bulk, table):
        files = written(tmp_path, cables_csv="\ufeff" + text, interfaces_csv=kinds)
        fabric = topologies.read_all(files)
        assert ports(fabric) == [
            ("srv1", "eno1", "leaf1", "Ethernet1"),
            ("srv2", "eno1", "leaf1", "Ethernet2"),
        ]
        assert [c.rate_bps for c in fabric.cables] == [25e9, 1e9]
        assert round(fabric.cables[0].delay_s * 1e12) == 5_015_000
    short = written(tmp_path, cables_csv=bulk + "srv3,dcim.interface\n")
    with pytest.raises(InputError, match=r"cables.csv:4: has 2 columns"):
        topologies.read_all(short)


def dumped(servers: tuple[str, ...], switch: str) -> list[dict[str, Any]]:
    """A dump of NetBox's database: servers at a switch."""
    kind = ["dcim", "interface"]
    rows: list[tuple[str, int, dict[str, Any]]] = [
        ("dcim.devicerole", 1, {"name": "Server"}),
        ("dcim.device", 1, {"name": switch, "role": None}),
    ]
    for key, name in enumerate(servers, 2):
        rows.append(("dcim.device", key, {"name": name, "role": 1}))
        for end, device in (("A", key), ("B", 1)):
            port = 2 * key + (end == "B")
            rows.append(("dcim.interface", port, {"device": device, "name": f"p{key}"}))
            about = {"cable": key, "cable_end": end, "termination_type": kind}
            rows.append(("dcim.cabletermination", port, about | {"termination_id": port}))
        rows.append(("dcim.cable", key, {"status": "connected"}))
    return [{"model": model, "pk": key, "fields": fields} for model, key, fields in rows]


def test_links_that_netbox_follows_through_panels(tmp_path: Path) -> None:
    def joined(device: str, port: str, other: str, theirs: str) -> dict[str, Any]:
        far = [{"device": {"name": other}, "name": theirs}]
        return {
            **interface(device, port, "100gbase-x-qsfp28"),
            "connected_endpoints": far,
            "connected_endpoints_type": "dcim.interface",
        }

    files = written(
        tmp_path,
        interfaces_json=exported(
            joined("srv1", "eno1", "leaf1", "Ethernet1"),
            joined("leaf1", "Ethernet1", "srv1", "eno1"),
            joined("srv2", "eno1", "leaf1", "Ethernet2"),
            interface("leaf1", "Ethernet3", "100gbase-x-qsfp28"),
        ),
    )
    assert len(topologies.read_all(files).cables) == 2


def test_inventories_of_switches_get_hosts(tmp_path: Path) -> None:
    links = [
        cable((f"leaf{i}", f"up{j}"), (f"spine{j}", f"d{i}")) for i in range(2) for j in range(2)
    ]
    roles = [
        {"name": f"{kind}{i}", "role": {"slug": kind}, "device_type": {}}
        for kind in ("leaf", "spine")
        for i in range(2)
    ]
    files = written(tmp_path, cables_json=exported(*links), devices_json=exported(*roles))
    chosen = Assumed(hosts_per_node=3, hosts_at=("leaf*",))
    fabric = topologies.read_all(files, None, chosen)
    assert len(fabric.hosts) == 6
    assert fabric.hosts[0] == "leaf0-h0"
    assert "the inventory has no hosts: 3 at each of 2 switches are assumed" in fabric.notes[-1]
    with pytest.raises(InputError, match=r"no switch has a name that matches tor\*"):
        topologies.read_all(files, None, Assumed(hosts_at=("tor*",)))


def test_names_of_ports_and_the_order_of_names() -> None:
    rates = {
        "TenGigabitEthernet1/1": 10e9,
        "HundredGigE0/0/0/1": 100e9,
        "xe-0/0/1": 10e9,
        "GigabitEthernet0/1": 1e9,
        "TwentyFiveGigE1/0/1": 25e9,
        "FourHundredGigE0/0": 400e9,
        "ge-0/0/0": 1e9,
        "Ethernet1": None,
        "eth0": None,
        "et-0/0/1": None,
    }
    assert {name: rate_of_port(name) for name in rates} == rates
    assert sorted(["leaf10", "leaf9", "7", "leaf1-2", "leaf1"], key=in_order) == [
        "7",
        "leaf1",
        "leaf1-2",
        "leaf9",
        "leaf10",
    ]


def hosts_of_lab() -> dict[str, str]:
    with (LAB / "hosts.csv").open() as file:
        return {row["host"]: row["address"] for row in csv.DictReader(file)}


def lab_ports(folder: Path) -> frr.Ports:
    (folder / "ports.csv").write_text(
        "a,a_port,b,b_port\n" + "".join(",".join(row) + "\n" for row in LAB_PORTS)
    )
    return frr.read_ports(folder / "ports.csv")


def test_routes_of_a_real_network(tmp_path: Path) -> None:
    found = frr.routes(topologies.load_all(TABLES), lab_ports(tmp_path), hosts_of_lab())
    assert len(found.paths) == 12
    leaf = {"h0": "leaf0", "h1": "leaf0", "h2": "leaf1", "h3": "leaf1"}
    spines = set()
    for (a, b), via in found.paths.items():
        if leaf[a] == leaf[b]:
            assert via == [leaf[a]]
        else:
            assert (via[0], via[2], len(via)) == (leaf[a], leaf[b], 3)
            spines.add(via[1])
    assert spines == {"spine0", "spine1"}
    assert found.notes == [
        "8 × choice of one among several equal next hops, by a hash of sender, receiver and switch"
    ]


def test_next_hops_by_address_without_names_of_ports(tmp_path: Path) -> None:
    known = lab_ports(tmp_path)
    known.at = {}
    found = frr.routes(topologies.load_all(TABLES), known, hosts_of_lab())
    assert len(found.paths) == 12  # Each network of a cable has two switches.


def table(routes: Mapping[str, list[tuple[str, str]] | str]) -> dict[str, Any]:
    """Return a routing table: next hops (interface, address) by prefix.

    A connected route has an interface instead.
    """
    made: dict[str, Any] = {}
    for prefix, hops in routes.items():
        kind = "connected" if isinstance(hops, str) else "bgp"
        nexthops = (
            [{"interfaceName": hops, "active": True}]
            if isinstance(hops, str)
            else [{"interfaceName": i, "ip": a, "active": True, "fib": True} for i, a in hops]
        )
        made[prefix] = [
            {"prefix": prefix, "protocol": kind, "selected": True, "nexthops": nexthops}
        ]
    return made


def test_tables_with_loops_gaps_and_longer_prefixes(tmp_path: Path) -> None:
    known, hosts = lab_ports(tmp_path), hosts_of_lab()
    leaf0 = table({"10.2.0.0/24": "srv0", "0.0.0.0/0": [("up0", "")], "10.2.3.0/24": [("up1", "")]})
    leaf1 = table({"10.2.2.0/24": "srv2", "10.2.0.0/16": [("up0", "")]})
    spine0 = table({"10.2.2.0/24": [("down1", "fe80::1")], "10.2.0.0/16": [("down0", "")]})
    spine1 = table({"10.2.3.2/32": [("down0", "")]})

    def paths(pairs: list[tuple[str, str]]) -> frr.Routes:
        given = {"leaf0": leaf0, "leaf1": leaf1, "spine0": spine0, "spine1": spine1}
        files = [Described(f"{n}.json", json.dumps(t).encode()) for n, t in given.items()]
        return frr.routes(files, known, hosts, pairs)

    found = paths([("h0", "h2"), ("h2", "h0"), ("h0", "h3"), ("h0", "h1")])
    assert found.paths == {
        ("h0", "h2"): ["leaf0", "spine0", "leaf1"],
        ("h2", "h0"): ["leaf1", "spine0", "leaf0"],
    }
    assert any("(h0 to h3): the path has a loop or a host at leaf0" in n for n in found.notes)
    with pytest.raises(InputError, match="no pair has a path: 1 × pair without a path"):
        paths([("h0", "h3")])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("[1]", "is not the output of show ip route json"),
        ("{", "is not JSON: Expecting property name.*line 1 column 2"),
        ('{"10.0.0.0/8": [{"selected": true, "nexthops": 7}]}', "nexthops must be a list"),
        ('{"10.0.0/99": [{"selected": true}]}', "the prefix is not a network"),
        ('{"10.0.0.0/8": 7}', "must be a list of routes"),
        ('{"red": {}, "blue": {}}', "the tables of 2 VRFs"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path: Path, content: str, expected: str) -> None:
    files = [Described("leaf0.json", content.encode())]
    with pytest.raises(InputError, match=expected) as error:
        frr.routes(files, lab_ports(tmp_path), hosts_of_lab())
    assert str(error.value).startswith("leaf0.json: ")


def test_the_commands_make_files_that_run(tmp_path: Path) -> None:
    fabric, cables, paths = (tmp_path / n for n in ("fabric.toml", "ports.csv", "routes.csv"))
    result = run("import", *NEIGHBOURS, "-o", fabric, "--ports", cables)
    assert result.exit_code == 0, result.output
    assert "4 hosts, 4 switches, 8 cables" in result.output
    result = run("routes", *TABLES, "--ports", cables, "--hosts", LAB / "hosts.csv", "-o", paths)
    assert result.exit_code == 0, result.output
    (tmp_path / "pairs.csv").write_text("from,to\nh0,h3\n")
    few = run(
        "routes",
        *TABLES,
        "--ports",
        cables,
        "--hosts",
        LAB / "hosts.csv",
        "--pairs",
        tmp_path / "pairs.csv",
        "-o",
        tmp_path / "few.csv",
    )
    assert "1 route in" in few.output
    (tmp_path / "s.toml").write_text(
        'schema = 1\n[fabric]\nkind = "graph"\nfile = "fabric.toml"\nrouting = "explicit"\n'
        'routes = "routes.csv"\n[[workload]]\nname = "all"\nkind = "all-to-all"\nbytes = "20 KB"\n'
    )
    links = ew.run(tmp_path / "s.toml").table("links")
    packets = dict(zip(links["name"], links["packets"], strict=True))
    with paths.open() as file:
        vias = [row["via"].split() for row in csv.DictReader(file)]
    used = {tuple(via[:2]) for via in vias if len(via) == 3}
    for leaf in ("leaf0", "leaf1"):
        for spine in ("spine0", "spine1"):
            assert (packets[f"{leaf}->{spine}"] > 0) == ((leaf, spine) in used)


def files_of_the_guide(folder: Path) -> None:
    """Write the files that docs/guide/inventories.md names."""
    for path in LAB.iterdir():
        shutil.copy(path, folder)
    nodes = {"leaf1": {"kind": "nokia_srlinux"}, "leaf2": {"kind": "nokia_srlinux"}}
    nodes |= {"spine1": {"kind": "nokia_srlinux"}}
    nodes |= {f"client{i}": {"kind": "linux"} for i in (1, 2)}
    ends = [("leaf1:e1-1", "spine1:e1-1"), ("leaf2:e1-1", "spine1:e1-2")]
    ends += [(f"client{i}:eth1", f"leaf{i}:e1-2") for i in (1, 2)]
    links = [{"endpoints": list(each)} for each in ends]
    (folder / "lab.clab.json").write_text(
        json.dumps({"name": "clos", "topology": {"nodes": nodes, "links": links}})
    )
    (folder / "cables.csv").write_text(
        "Device A,Termination A,Device B,Termination B,Status,Length\n"
        "srv1,eno1,leaf1,Ethernet1,Connected,3 Meters\n"
        "srv1,eno2,leaf2,Ethernet1,Connected,3 Meters\n"
        "srv2,eno1,leaf2,Ethernet2,Connected,2 Meters\n"
        "leaf1,Ethernet49,spine1,Ethernet1,Connected,30 Meters\n"
        "leaf2,Ethernet49,spine1,Ethernet2,Connected,40 Meters\n"
        "leaf2,Ethernet50,spine1,Ethernet3,Planned,40 Meters\n"
    )
    ports = [("srv1", "eno1"), ("srv1", "eno2"), ("srv2", "eno1")]
    ups = [("leaf1", "Ethernet49"), ("leaf2", "Ethernet49")]
    (folder / "interfaces.csv").write_text(
        "Device,Name,Type,Speed (Kbps)\n"
        + "".join(f"{d},{p},SFP28 (25GE),\n" for d, p in ports)
        + "".join(f"{d},{p},QSFP28 (100GE),\n" for d, p in ups)
    )
    (folder / "devices.csv").write_text(
        "Name,Role\nsrv1,Server\nsrv2,Server\nleaf1,Leaf\nleaf2,Leaf\nspine1,Spine\n"
    )


@pytest.mark.slow
def test_commands_of_the_guide_run_and_print_what_it_shows(tmp_path: Path) -> None:
    page = project_paths.ROOT / "docs" / "guide" / "inventories.md"
    files_of_the_guide(tmp_path)
    assert guide_pages.renewed(page, tmp_path) == page.read_text("utf-8")
    for fabric in ("clos", "site"):
        (tmp_path / "s.toml").write_text(
            f'schema = 1\n[fabric]\nkind = "graph"\nfile = "{fabric}.toml"\n'
            '[[workload]]\nname = "all"\nkind = "all-to-all"\nbytes = "20 KB"\n'
        )
        assert ew.check(tmp_path / "s.toml") == []


def test_files_that_are_no_inventories(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"a_json": {"lldp": {}}}, "no file reports a neighbour"),
        (
            {"a_json": {"lldp": {"interface": [7]}}},
            "an interface in the list of interfaces is not an object",
        ),
        ({"a_json": [{"ifname": "eth0"}]}, "no file reports a neighbour"),
        ({"a_json": [{"ifname": "eth0"}, {}]}, "entry 1 has no ifname"),
        (
            {"a_json": lldp(("1", neighbour("b", "1"))), "b_csv": "name,role\na,b\n"},
            "different formats",
        ),
        ({"cables_csv": "name,role\nsrv1,server\n"}, "no cable between interfaces"),
        ({"a_json": exported()}, "has no nodes|no list of nodes|no cable"),
    ]
    for files, expected in cases:
        with pytest.raises(InputError, match=expected):
            topologies.read_all(written(tmp_path, **files))


def damaged(data: bytes, chance: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(chance.randint(1, 5)):
        at, length = chance.randrange(len(found)), chance.choice((1, 3, 30))
        known = (b"null", b"[]", b"{}", b"7", b'"', b"-1e999", b"\n", b"\xff", b"[[[[", b"true")
        found[at : at + length] = chance.choice(
            (b"", chance.choice(known), chance.randbytes(length))
        )
        if not found:
            return b"x"
    return bytes(found)


@pytest.mark.parametrize(
    "kind", ["lldp", "lldp json0", "containerlab", "netbox", "netbox dump", "csv", "frr"]
)
def test_damaged_inventories_are_read_or_refused(tmp_path: Path, kind: str) -> None:
    chance = random.Random(kind)
    netbox = exported(
        cable(("srv1", "eno1"), ("leaf1", "1"), length=3, length_unit={"value": "m"}),
        cable(("srv2", "eno1"), ("leaf1", "2")),
        interface("srv1", "eno1", "25gbase-x-sfp28", 7),
        {"name": "srv1", "role": {"slug": "server"}},
    )
    whole = {
        "lldp": (LAB / "leaf0.lldp.json").read_bytes(),
        "lldp json0": (LAB / "leaf0.json0").read_bytes(),
        "containerlab": CONTAINERLAB.encode(),
        "netbox": json.dumps(netbox).encode(),
        "netbox dump": json.dumps(dumped(tuple(f"srv{i}" for i in range(8)), "leaf1")).encode(),
        "csv": b"Device A,Termination A,Device B,Termination B\n" + b"a,1,s,1\nb,1,s,2\n" * 3,
        "frr": (LAB / "leaf0.routes.json").read_bytes(),
    }[kind]
    known, hosts, read = lab_ports(tmp_path), hosts_of_lab(), 0
    for _ in range(80):
        data = damaged(whole, chance)
        try:
            if kind == "frr":
                given = [("h0", "h1"), ("h0", "h2")]
                assert frr.routes([Described("leaf0.json", data)], known, hosts, given).paths
            else:
                (tmp_path / "x.json").write_bytes(data)
                form = {"csv": "netbox"}.get(kind, kind.partition(" ")[0])
                fabric = topologies.read(
                    tmp_path / "x.json", form if chance.random() < 0.5 else None
                )
                assert len(fabric.hosts) >= 2
            read += 1
        except InputError as error:
            assert str(error).strip()
            assert "\x1b" not in str(error)
    assert read > 0


def test_an_empty_file_and_unknown_json_say_what_they_are(tmp_path: Path) -> None:
    for content, says in (
        (b" \n", "is empty"),
        (b"[1, 2]", "is JSON, but not of an inventory format"),
    ):
        file = tmp_path / "given"
        file.write_bytes(content)
        with pytest.raises(InputError, match=says):
            topologies.read_all([file])


def leaves(tree: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value of a JSON tree, the inner ones too."""
    if not isinstance(tree, dict | list):
        return
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        yield (*at, key)
        yield from leaves(value, (*at, key))


def replaced(tree: Any, at: tuple[Any, ...], value: Any) -> Any:
    """Return a copy of a JSON tree with another value at a path."""
    copy = json.loads(json.dumps(tree))
    inner = copy
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = value
    return copy


PORTS = [
    {"ifname": "eth0", "address": "aa:bb:cc:00:00:01", "operstate": "UP", "speed": 10_000},
    {"ifname": "eth1", "address": "aa:bb:cc:00:00:02", "operstate": "DOWN", "speed": 1_000},
]
ROUTES = {
    "10.0.0.0/24": [
        {
            "prefix": "10.0.0.0/24",
            "protocol": "connected",
            "selected": True,
            "nexthops": [{"active": True, "interfaceName": "srv0", "ip": "10.0.0.1"}],
        }
    ]
}


@pytest.mark.parametrize("kind", ["lldp", "ports", "containerlab", "netbox dump", "routes"])
def test_wrong_types_of_any_value_are_read_or_refused(tmp_path: Path, kind: str) -> None:
    near = lldp(("swp1", neighbour("b", "swp1", descr="up")), ("swp2", neighbour("h", "e")))
    nodes = {"leaf1": {"kind": "ceos"}, "srv1": {"kind": "linux"}, "srv2": {"kind": "linux"}}
    links = [{"endpoints": ["leaf1:1", "srv1:eth1"]}, {"endpoints": ["leaf1:2", "srv2:eth1"]}]
    tree: Any = {
        "lldp": near,
        "ports": PORTS,
        "containerlab": {"name": "lab", "topology": {"nodes": nodes, "links": links}},
        "netbox dump": dumped(("srv1", "srv2"), "leaf1"),
        "routes": ROUTES,
    }[kind]
    known, hosts = lab_ports(tmp_path), hosts_of_lab()
    file, ports_file = tmp_path / "a.lldp.json", tmp_path / "a.json0"
    file.write_text(json.dumps(near))
    others: list[Any] = [[1], {}, None, 10**400, -1, True, ""]
    for at in leaves(tree):
        for value in others:
            content = json.dumps(replaced(tree, at, value)).encode()
            with contextlib.suppress(InputError):
                if kind == "routes":
                    table = Described("leaf0.json", content)
                    frr.routes([table], known, hosts, [("h0", "h1")])
                elif kind == "ports":
                    ports_file.write_bytes(content)
                    topologies.read_all([file, ports_file])
                else:
                    file.write_bytes(content)
                    topologies.read(file, kind.partition(" ")[0])


@pytest.mark.parametrize(
    "scalar", ["!!timestamp x", "!!int ''", "!!float ''", "!!bool foo", "!x y"]
)
def test_tags_of_yaml_are_refused(tmp_path: Path, scalar: str) -> None:
    (tmp_path / "a.clab.yml").write_text(f"name: {scalar}\ntopology: {{nodes: {{a: {{}}}}}}\n")
    with pytest.raises(InputError, match=r"a.clab.yml:1: has a tag of YAML"):
        topologies.read(tmp_path / "a.clab.yml", "containerlab")


def test_panels_with_many_paths_end() -> None:
    """Each of 64 ports of a panel leads to each of the next one, three times in a row."""
    kinds = {"i": ["dcim", "interface"], "f": ["dcim", "frontport"], "r": ["dcim", "rearport"]}
    rows: list[tuple[str, int, dict[str, Any]]] = [("dcim.device", 1, {"name": "a", "role": None})]
    for level in range(3):
        rows.append(("dcim.cable", level, {"status": "connected"}))
        for port in range(64):
            number = 64 * level + port
            rear = {"rear_port": number, "rear_port_position": 1}
            rows.append(("dcim.interface", number, {"device": 1, "name": f"p{number}"}))
            rows.append(("dcim.rearport", number, {"device": 1, "positions": 1}))
            rows.append(("dcim.frontport", number, rear))
            near, before = ("r", number - 64) if level else ("i", port)
            for side, kind, end in (("A", near, before), ("B", "i" if level == 2 else "f", number)):
                about = {"cable": level, "cable_end": side, "termination_type": kinds[kind]}
                rows.append(("dcim.cabletermination", len(rows), about | {"termination_id": end}))
    listed = [{"model": model, "pk": key, "fields": fields} for model, key, fields in rows]
    made = 0
    with contextlib.suppress(InputError):
        for form, _ in netbox_dump.records(Described("a.json", b""), listed):
            made += form == "cables"
    # At most one link for each pair of interfaces, however many paths join them.
    assert made <= 192 * 191 // 2
