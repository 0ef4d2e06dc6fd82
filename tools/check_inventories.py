"""Compares the readers of inventories with second readings of real files of public repositories.

``python tools/check_inventories.py CLONES`` reads the files of ``SOURCES`` from git clones
(CLONES/OWNER/NAME, with the commit that SOURCES names) with Eastwest, and again with a few lines
that know nothing of Eastwest. It compares the names of all devices and all links with their ports,
or for routing tables all next hops of all prefixes. For dumps of NetBox, the second reading takes
the paths that NetBox itself has traced and stored. Where a fabric is made, its numbers of hosts,
switches and cables are computed again from the links. ``--write DATE`` puts the table into
docs/validation/inventories.md. The command exits with 1 where a file differs, or where a reader
fails with another error than that of wrong input. PyYAML is needed.
"""

from __future__ import annotations

import argparse
import csv
import io
import ipaddress
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from eastwest.errors import InputError
from eastwest.topologies import Assumed, containerlab, frr, lldp, netbox
from eastwest.topologies.inventory import Described, Inventory, fabric

PAGE = Path(__file__).resolve().parents[1] / "docs" / "validation" / "inventories.md"
MARK = "<!-- table by tools/check_inventories.py -->"

#: Ends of a link: device and port.
Ends = frozenset[tuple[str, str]]
#: Names of devices, and links with their number.
Found = tuple[set[str], Counter[Ends]]


@dataclass(frozen=True)
class Source:
    """Files of a repository at a commit: each path alone, or all that ``together`` matches."""

    repository: str
    commit: str
    kind: str
    paths: str
    #: Expression whose first group names the files that are read together.
    together: str = ""
    #: Patterns of the names of devices that are used for the fabric.
    devices: tuple[str, ...] = ()


CLAB = r"\.clab\.ya?ml$|-clab\.yml$"
SOURCES = (
    Source(
        "srl-labs/containerlab",
        "39ff2b7ccce2",
        "containerlab",
        r"^(lab-examples|tests)/.*(" + CLAB + ")",
    ),
    Source("srl-labs/srl-telemetry-lab", "d11d00a", "containerlab", CLAB),
    Source("srl-labs/nokia-basic-dci-lab", "66dee42", "containerlab", CLAB),
    Source("srl-labs/multivendor-evpn-lab", "afb02dd", "containerlab", CLAB),
    Source("srl-labs/learn-srlinux", "84c9427", "containerlab", CLAB),
    Source("srl-labs/srl-elk-lab", "ea3a5f8", "containerlab", CLAB),
    Source(
        "srl-labs/clab-io-draw",
        "06d2a22",
        "containerlab",
        r"lab-examples/[^/]*\.clab(\.mod)?\.yml$",
    ),
    Source(
        "sflow-rt/containerlab",
        "b8373e2",
        "containerlab",
        r"^(clos3|clos5|evpn3|rocev2|ddos|srlinux)\.yml$",
    ),
    Source("leofurtadonyc/containerlab", "7964208", "containerlab", CLAB),
    Source("suzuyu/my-containerlab", "1427520", "containerlab", CLAB),
    Source("jmanteau/evpn-frr-containerlab", "5aced2b", "containerlab", r"^evpnlab\.yml$"),
    Source("holo-routing/containerlab-topologies", "9adaf05", "containerlab", r"topology\.yml$"),
    Source("batfish/lab-validation", "dbe21f0", "containerlab", CLAB),
    Source("netreplica/nrx", "95548cc", "containerlab", r"data/[^/]*\.clab\.yaml$"),
    Source(
        "rare-freertr/freeRtr-containerlab",
        "e792cd2589",
        "containerlab",
        r"\.clab\.yml$|topology-data\.json$",
    ),
    Source(
        "Hristijan1998/SDNProject-NetDevOps",
        "0ba1bc2",
        "containerlab",
        r"^topology(\.yml|-data\.json)$",
    ),
    Source("craigbruenderman/ros-l3", "d1dd2fc", "containerlab", r"topology-data\.json$"),
    Source(
        "arista-netdevops-community/avd-quickstart-containerlab",
        "b3b1bf6",
        "containerlab",
        r"clab\.yml$",
    ),
    Source(
        "netreplica/nrx",
        "95548cc",
        "netbox",
        r"import/nb_0[56]_(devices|cables)\.csv$",
        r"tests/(\w+)/import",
    ),
    Source(
        "ltruong0/netbox_cml_labber",
        "ab06c92625",
        "netbox",
        r"^(cables|devices)\.json$",
        "()",
        ("*albany*",),
    ),
    Source("netbox-community/pynetbox", "fc30530", "netbox", r"fixtures/dcim/cables\.json$"),
    Source(
        "netbox-community/netbox-demo-data",
        "1e3a368",
        "netbox dump",
        r"v3\.[1-6]\.json$",
        "",
        ("ncsu*",),
    ),
    Source(
        "nautobot/nautobot-app-netbox-importer",
        "b781560",
        "netbox dump",
        r"4\.2/input\.json$",
        "",
        ("ncsu*",),
    ),
    Source(
        "nautobot/nautobot-app-netbox-importer",
        "b781560",
        "netbox dump",
        r"3\.7\.custom/input\.json$",
    ),
    Source("sonic-net/sonic-dbsyncd", "b0ea01f", "lldp", r"subproc_outputs/.*\.json$"),
    Source("netenglabs/suzieq", "584b22abb1", "lldp", r"parsing/input/lldp\.yml$"),
    Source("CESNET/velia", "1688edb7", "lldp", r"tests/network_lldp\.cpp$"),
    Source(
        "FRRouting/frr", "fbfc8222da", "frr", r"topotests/isis_topo1/r\d/r\d_route(_linux)?\.json$"
    ),
    Source(
        "FRRouting/frr",
        "fbfc8222da",
        "frr",
        r"topotests/isis_tilfa_topo1/rt\d/step1/show_ip_route\.ref$",
    ),
    Source(
        "FRRouting/frr",
        "fbfc8222da",
        "frr",
        r"topotests/isis_sr_topo1/rt\d/step1/show_ip_route\.ref$",
    ),
    Source(
        "FRRouting/frr",
        "fbfc8222da",
        "frr",
        r"topotests/ospf_unnumbered/r\d/(v4|ospf-)route\.json$",
    ),
    Source("FRRouting/frr", "fbfc8222da", "frr", r"topotests/zebra_rib/r1/[^/]*route[^/]*\.json$"),
    Source(
        "FRRouting/frr", "fbfc8222da", "frr", r"topotests/bgp_link_bw_ip/r\d/[^/]*route[^/]*\.json$"
    ),
    Source(
        "FRRouting/frr",
        "fbfc8222da",
        "frr",
        r"topotests/ospf6_ecmp_inter_area/r\d/[^/]*route[^/]*\.json$",
    ),
    Source(
        "batfish/lab-validation",
        "dbe21f0",
        "frr",
        r"vtysh_-c_'show_ip_(route|bgp)_vrf_all_json'\.txt$",
    ),
)


#: Outputs that are a part of a file of tests, by the end of its name.
EXTRACTED: dict[str, Callable[[bytes], bytes]] = {
    "parsing/input/lldp.yml": lambda data: yaml.safe_load(data)["input"]["cumulus"].encode(),
    "network_lldp.cpp": lambda data: re.findall(rb'R"\((.*?)\)"', data, re.S)[2],
}


def git(clone: Path, *arguments: str) -> bytes:
    """Return the output of a command of git in a clone."""
    return subprocess.run(
        ["git", "-C", str(clone), *arguments], capture_output=True, check=True
    ).stdout


def groups(clone: Path, source: Source) -> Iterator[tuple[str, list[Described]]]:
    """Yield the files of a source that are read together, with their common name."""
    names = git(clone, "ls-tree", "-r", "-z", "--name-only", source.commit).decode().split("\0")
    listed: dict[str, list[str]] = defaultdict(list)
    for name in filter(re.compile(source.paths).search, names):
        match = re.search(source.together, name) if source.together else None
        listed[match[1] if match else name].append(name)
    for paths in listed.values():
        common = paths[0] if len(paths) == 1 else " and ".join(paths)
        if len(paths) > len("ab"):
            common = f"{paths[0]} and {len(paths) - 1} more"
        files = []
        for path in paths:
            data = git(clone, "show", f"{source.commit}:{path}")
            part = next((f for end, f in EXTRACTED.items() if path.endswith(end)), bytes)
            files.append(Described(path, part(data)))
        yield common, files


def as_links(inventory: Inventory) -> Found:
    """Return devices and links of an inventory of Eastwest."""
    links = Counter(frozenset(((k.a, k.a_port), (k.b, k.b_port))) for k in inventory.links)
    return set(inventory.devices), links


def of_containerlab(files: list[Described]) -> Found:
    """Return nodes and links of a topology, with parts of a router as the router."""
    tree = yaml.safe_load(files[0].data)
    lab = tree.get("topology", tree)
    modes = {n: str((about or {}).get("network-mode", "")) for n, about in lab["nodes"].items()}
    main = {
        n: m.split(":")[1] if m.split(":")[0] == "container" and m.split(":")[1] in modes else n
        for n, m in modes.items()
    }
    links: Counter[Ends] = Counter()
    for link in lab.get("links") or []:
        ends = link.get("endpoints", link)
        if isinstance(ends, dict):
            ends = [ends[k] for k in "az" if k in ends]
        pairs = [
            (e["node"], e["interface"]) if isinstance(e, dict) else tuple(e.split(":", 1))
            for e in ends
        ]
        if len(pairs) == len("az") and all(n in main for n, _ in pairs):
            joined = [(main[n], p) for n, p in pairs]
            if joined[0][0] != joined[1][0]:
                links[frozenset(joined)] += 1
    return set(main.values()), links


def of_netbox(files: list[Described]) -> Found:
    """Return devices and links between interfaces in CSV or JSON of NetBox."""
    devices: set[str] = set()
    links: Counter[Ends] = Counter()
    for file in files:
        if file.name.endswith(".json"):
            tree = json.loads(file.data)
            rows = tree["results"] if isinstance(tree, dict) else tree
        else:
            rows = list(csv.DictReader(io.StringIO(file.data.decode("utf-8-sig"))))
        for row in rows:
            if "side_a_type" in row:
                ends = [
                    (row[f"side_{s}_type"], row[f"side_{s}_device"], row[f"side_{s}_name"])
                    for s in "ab"
                ]
            elif "termination_a_type" in row:
                ends = [
                    (
                        row[f"termination_{s}_type"],
                        row[f"termination_{s}"].get("device", {}).get("name"),
                        row[f"termination_{s}"].get("name"),
                    )
                    for s in "ab"
                ]
            else:
                if row.get("name"):
                    is_known = isinstance(row.get("id"), int) and row["name"] in devices
                    devices.add(f"{row['name']}-{row['id']}" if is_known else row["name"])
                continue
            if all(kind == "dcim.interface" for kind, _, _ in ends):
                links[frozenset((device, name) for _, device, name in ends)] = 1
    return devices | {d for ends in links for d, _ in ends}, links


def of_dump(files: list[Described]) -> Found:
    """Return devices of a dump, and links between the ends of the paths that NetBox has traced."""
    objects: dict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
    for entry in json.loads(files[0].data):
        objects[entry["model"]][entry.get("pk", len(objects[entry["model"]]))] = entry["fields"]
    named: dict[int, str] = {}
    for key, about in objects["dcim.device"].items():
        name = about["name"] or "device"
        is_known = name == "device" or name in named.values()
        named[key] = f"{name}-{key}" if is_known else name
    port = {k: (named[v["device"]], v["name"]) for k, v in objects["dcim.interface"].items()}
    number = {  # the content type of interfaces: that of the first port of their own paths
        str(objects["dcim.cablepath"][v["_path"]]["path"][0][0]).split(":")[0]
        for v in objects["dcim.interface"].values()
        if v.get("_path") in objects["dcim.cablepath"]
        and "origin_id" not in objects["dcim.cablepath"][v["_path"]]
    }
    links: Counter[Ends] = Counter()
    for path in objects["dcim.cablepath"].values():
        if "origin_id" in path:
            if path["origin_type"] == path["destination_type"] == ["dcim", "interface"]:
                links[frozenset((port[path["origin_id"]], port[path["destination_id"]]))] = 1
        elif path["is_complete"]:
            (first, a), (last, b) = (path["path"][i][0].split(":") for i in (0, -1))
            if {first, last} == number:
                links[frozenset((port[int(a)], port[int(b)]))] = 1
    return set(named.values()), links


def plain(tree: Any) -> Any:
    """Return a tree of json0, in which every object is in a list and every text in an object."""
    if isinstance(tree, list) and len(tree) == 1:
        return plain(tree[0])
    if isinstance(tree, dict):
        return tree["value"] if tree.keys() == {"value"} else {k: plain(v) for k, v in tree.items()}
    return [plain(each) for each in tree] if isinstance(tree, list) else tree


def of_lldp(files: list[Described]) -> Found:
    """Return the device, its neighbours, and a link for each port with a neighbour."""
    tree = json.loads(files[0].data)
    local = tree.get("lldp_loc_chassis", tree).get("local-chassis", {}).get("chassis", {})
    own = next(iter(local), lldp.stem(files[0]))
    links: Counter[Ends] = Counter()
    for port in tree.get("Neighbors", []):
        for other in port["Neighbors"]:
            ends = (own, port["InterfaceName"]), (other["SystemName"], other["PortID"])
            links[frozenset(ends)] += 1
    listed = plain(tree.get("lldp", {})).get("interface", [])
    for entry in [listed] if isinstance(listed, dict) else listed:
        for name, about in {entry["name"]: entry}.items() if "via" in entry else entry.items():
            chassis = about["chassis"]
            named = (
                chassis.get("name", chassis["id"]["value"])
                if "id" in chassis
                else next(iter(chassis))
            )
            links[frozenset(((own, name), (named, about["port"]["id"]["value"])))] += 1
    return {own} | {d for ends in links for d, _ in ends}, links


def of_tables(file: Described) -> dict[str, list[tuple[str, str]]]:
    """Return the next hops of each prefix of the default VRF; none for connected ones."""
    text, at, found = file.data.decode().strip(), 0, {}
    while at < len(text):
        tree, at = json.JSONDecoder().raw_decode(text, at)
        at += len(text[at:]) - len(text[at:].lstrip())
        for prefix, routes in tree.items():
            for route in routes:
                if route.get("vrfId") or not (
                    route.get("selected") or route.get("protocol") == "local"
                ):
                    continue
                hops = [
                    (h.get("interfaceName", ""), h.get("ip", ""))
                    for h in route.get("nexthops", [])
                    if h.get("active")
                    and not {"recursive", "duplicate", "blackhole", "reject"} & h.keys()
                ]
                connected = route.get("protocol") in {"connected", "local"}
                if hops or connected:
                    found[str(ipaddress.ip_network(prefix.replace("\\", ""), strict=False))] = (
                        [] if connected else hops
                    )
    return found


def by_prefix(table: frr.Table) -> dict[str, list[tuple[str, str]]]:
    """Return the next hops of each prefix of a table of Eastwest."""
    found = {}
    for (version, length), networks in table.routes.items():
        bits = 32 if version == 4 else 128
        for high, hops in networks.items():
            address = (
                ipaddress.ip_address(high << (bits - length))
                if version == 4
                else ipaddress.IPv6Address(high << (bits - length))
            )
            found[f"{address}/{length}"] = [(h.interface, h.address) for h in hops]
    return found


def check_routes(files: list[Described]) -> tuple[str, str, str]:
    """Return what Eastwest and the second reading find in tables, and the verdict."""
    try:
        mine = {f.name: by_prefix(next(iter(frr.tables([f]).values()))) for f in files}
    except InputError as error:
        return "", "", f"refused: {without_name(error, files)}"
    theirs = {f.name: of_tables(f) for f in files}
    told = []
    for each in (mine, theirs):
        hops = sum(len(listed) for routes in each.values() for listed in routes.values())
        told.append(f"{sum(map(len, each.values()))} routes, {hops} next hops")
    return told[0], told[1], "equal" if mine == theirs else "different"


INDEPENDENT: dict[str, Callable[[list[Described]], Found]] = {
    "containerlab": of_containerlab,
    "netbox": of_netbox,
    "netbox dump": of_dump,
    "lldp": of_lldp,
}
READERS: dict[str, Callable[[list[Described]], Inventory]] = {
    "containerlab": containerlab.inventory,
    "netbox": netbox.inventory,
    "netbox dump": netbox.inventory,
    "lldp": lldp.inventory,
}


def check(source: Source, files: list[Described]) -> tuple[str, str, str]:
    """Return what Eastwest and the second reading find in files, and the verdict."""
    if source.kind == "frr":
        return check_routes(files)
    try:
        found = READERS[source.kind](files)
    except InputError as error:
        return "", "", f"refused: {without_name(error, files)}"
    mine, theirs = as_links(found), INDEPENDENT[source.kind](files)
    told = [f"{len(devices)} devices, {links.total()} links" for devices, links in (mine, theirs)]
    if mine != theirs:
        more, less = mine[1] - theirs[1], theirs[1] - mine[1]
        return told[0], told[1], f"different: {sorted(mine[0] ^ theirs[0])} {more} {less}"
    return told[0], told[1], f"equal; {of_fabric(found, theirs[1], source.devices)}"


def of_fabric(found: Inventory, links: Counter[Ends], devices: tuple[str, ...]) -> str:
    """Return the sizes of the fabric of an inventory, or the reason why it is none."""
    try:
        made = fabric(found, Assumed(device_names=devices))
    except InputError as error:
        return f"no fabric: {error}"
    real = {valid(n) for n in found.devices} & set(made.hosts)
    switches = set(made.switches)
    switch_links = sum(n for ends, n in links.items() if {valid(d) for d, _ in ends} <= switches)
    if len(made.cables) != switch_links + len(made.hosts):
        wanted = f"{switch_links} between switches and {len(made.hosts)} hosts"
        return f"DIFFERENT: {len(made.cables)} cables, but {wanted}"
    added = f" ({len(made.hosts) - len(real)} added)" if len(made.hosts) > len(real) else ""
    some = f" of {', '.join(devices)}" if devices else ""
    sizes = (
        f"{len(made.hosts)} hosts{added}, {len(made.switches)} switches, {len(made.cables)} cables"
    )
    return f"fabric{some}: {sizes}"


def valid(name: str) -> str:
    """Return a name of a device as a fabric has it."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:64].strip("-")


def without_name(error: InputError, files: list[Described]) -> str:
    """Return a message without the name of the file at its beginning."""
    return re.sub("^(" + "|".join(re.escape(f.name) for f in files) + r"):\s*", "", str(error))


def table(clones: Path) -> tuple[list[str], bool]:
    """Return the lines of the table, and whether all files agree."""
    lines: list[str] = []
    good = True
    tally: Counter[tuple[str, str]] = Counter()
    for source in SOURCES:
        clone = clones / source.repository
        commit = git(clone, "rev-parse", "--short=10", source.commit).decode().strip()
        lines += ["", f"**{source.repository}** at `{commit}`, {source.kind}", ""]
        lines += ["| file | Eastwest | second reading | verdict |", "|---|---|---|---|"]
        for name, files in groups(clone, source):
            mine, theirs, verdict = check(source, files)
            word = verdict.partition(":")[0].partition(";")[0]
            if "DIFFERENT" in verdict or word == "different":
                good = False
            tally[source.kind, "equal, but no fabric" if "no fabric" in verdict else word] += 1
            shown = verdict.replace("|", "/")
            lines.append(f"| `{name}` | {mine} | {theirs} | {shown} |")
    head = ["| kind | verdict | cases |", "|---|---|---|"]
    head += [f"| {kind} | {word} | {number} |" for (kind, word), number in sorted(tally.items())]
    return head + lines, good


def main() -> int:
    """Compare the files of all sources; return 1 where one differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clones", type=Path)
    parser.add_argument("--write", metavar="DATE")
    chosen = parser.parse_args()
    lines, good = table(chosen.clones)
    print("\n".join(lines))
    if chosen.write:
        text = PAGE.read_text("utf-8").partition(MARK)[0]
        text += f"{MARK}\n\nRecorded on {chosen.write}.\n\n" + "\n".join(lines) + "\n"
        PAGE.write_text(text, "utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
