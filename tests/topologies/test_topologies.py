"""Topology files of other tools: the fabrics made from them, and messages about damaged ones."""

from __future__ import annotations

import contextlib
import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eastwest import topologies
from eastwest.errors import InputError
from eastwest.topologies import Assumed, Fabric

TINY = """# two tiers
Nodes 32
Tiers 2
Podsize 32

Tier 0
Downlink_speed_Gbps 100
Radix_Down 8
Radix_Up 2
Downlink_Latency_ns 1000
Switch_Latency_ns 0
Oversubscribed 4

Tier 1
Downlink_speed_Gbps 200
Radix_Down 4
Downlink_Latency_ns 1000
Switch_Latency_ns 300
"""

THREE = """Nodes 8
Tiers 3
Podsize 4
Tier 0
Downlink_speed_Gbps 200
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Oversubscribed 3
Tier 1
Downlink_speed_Gbps 200
Radix_Down 2
Radix_Up 4
Downlink_Latency_ns 1000
Bundle 1
Tier 2
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 1000
Bundle 2
"""


def cluster(racks: int, nodes: int, more: str) -> str:
    """Return an MRPerf file with racks of nodes."""
    node = "".join(f"<node_index>{i:02}</node_index>" for i in range(nodes))
    rack = "".join(f"<rack_index>{i + 1}</rack_index>" for i in range(racks))
    return (
        '<?xml version="1.0"?>\n<topo><machine_type><name>m</name><nic><type>1Gbps</type>'
        "<num>1</num></nic></machine_type><rack_group><compute_node_group>"
        f"<machine_type_name>m</machine_type_name>{node}<!-- <node_index>99</node_index> -->"
        "</compute_node_group><switch><switch_index>1</switch_index></switch>"
        f"{rack}<name>rg1</name></rack_group>{more}</topo>\n"
    )


ROUTER = "<router><connect_to_group/><name>r1</name></router>"

CITIES = json.dumps(
    {
        "directed": False,
        "graph": {"demands": {"0": {"1": 3.5, "2": 0}, "2": {"0": 1000}}},
        "nodes": [{"name": "Köln", "id": 0}, {"name": "h2", "id": 1}, {"name": "Bonn", "id": 2}],
        "edges": [
            {"dist": 100.0, "source": 0, "target": 1},
            {"dist": 27, "source": 1, "target": 2},
        ],
    }
)


def read(folder: Path, text: str | bytes, **assumed: float) -> Fabric:
    """Read a descriptor from a file."""
    path = folder / "descriptor"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return topologies.read(path, None, Assumed(**assumed))  # type: ignore[arg-type]


def degrees(fabric: Fabric) -> dict[str, int]:
    """Return the number of cables at every node."""
    result = dict.fromkeys([*fabric.hosts, *fabric.switches], 0)
    for cable in fabric.cables:
        result[cable.a] += 1
        result[cable.b] += 1
    return result


def test_htsim_two_tiers(tmp_path: Path) -> None:
    fabric = read(tmp_path, TINY)
    assert (len(fabric.hosts), fabric.switches) == (
        32,
        ["tor0", "tor1", "tor2", "tor3", "spine0", "spine1"],
    )
    at = degrees(fabric)
    assert all(at[host] == 1 for host in fabric.hosts)
    assert [at[s] for s in fabric.switches] == [10, 10, 10, 10, 4, 4]
    up = next(c for c in fabric.cables if c.b == "spine0")
    assert (up.rate_bps, round(up.delay_s * 1e12)) == (200e9, 1_150_000)
    assert not fabric.notes


def test_htsim_three_tiers_with_bundles(tmp_path: Path) -> None:
    fabric = read(tmp_path, THREE)
    assert (len(fabric.hosts), len(fabric.switches)) == (8, 4 + 4 + 4)
    at = degrees(fabric)
    assert [at[f"tor{i}"] for i in range(4)] == [4] * 4
    assert [at[f"agg{i}"] for i in range(4)] == [6] * 4
    assert [at[f"core{i}"] for i in range(4)] == [4] * 4
    cores = {c.b for c in fabric.cables if c.a == "agg3"}
    assert cores == {"core2", "core3"}
    assert "Oversubscribed is 3" in fabric.notes[0]


def test_mrperf_racks_and_router(tmp_path: Path) -> None:
    fabric = read(tmp_path, cluster(2, 36, ROUTER))
    assert (len(fabric.hosts), fabric.switches) == (72, ["sw_rg0_0", "sw_rg0_1", "router"])
    assert "n_rg0_1_ng0_35" in fabric.hosts
    assert "network card" in fabric.notes[0]
    faster = read(tmp_path, cluster(2, 36, ROUTER), rate_bps=10e9)
    assert [c.rate_bps for c in faster.cables if c.b == "router"] == [10e9, 10e9]
    assert not faster.notes
    single = read(tmp_path, cluster(1, 20, ""))
    assert len(single.switches) == 1


def test_mrperf_dcell(tmp_path: Path) -> None:
    fabric = read(tmp_path, cluster(5, 4, "<topology>dcell</topology>"))
    assert (len(fabric.hosts), len(fabric.switches)) == (20, 25)
    at = degrees(fabric)
    assert all(at[s] == (4 if s.startswith("sw") else 3) for s in fabric.switches)


def test_topohub_with_demands(tmp_path: Path) -> None:
    fabric = read(tmp_path, CITIES, hosts_per_node=2)
    assert fabric.hosts == [f"h{i}" for i in range(6)]
    assert fabric.switches == ["K-ln", "s1-h2", "Bonn"]
    assert [round(c.delay_s * 1e6) for c in fabric.cables[-2:]] == [500, 135]
    assert fabric.demands_bps == {("h0", "h2"): 3.5e6, ("h4", "h0"): 1e9}


@pytest.mark.parametrize("text", [TINY, THREE, cluster(3, 2, ROUTER), CITIES])
def test_what_is_written_reads_back_as_the_same_graph(tmp_path: Path, text: str) -> None:
    fabric = read(tmp_path, text)
    written = tomllib.loads(fabric.to_toml("a\nfile"))
    assert (written["hosts"], written["switches"]) == (fabric.hosts, fabric.switches)
    assert [(c["a"], c["b"]) for c in written["cable"]] == [(c.a, c.b) for c in fabric.cables]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        (TINY.replace("Radix_Down 4", "Radix_Down 5"), "need 4 ports"),
        (TINY.replace("Nodes 32", "Nodes 33"), "33 is not a multiple of 8"),
        (TINY.replace("Nodes 32", "Nodez 32"), "line 2: Nodez is not a key"),
        (TINY.replace("Nodes 32", "Nodes 1e9"), "line 2: '1e9' is not a whole number"),
        (TINY.replace("Tier 1\n", "Tier 0\n"), "Tier 0 is defined twice"),
        (
            TINY.replace("Nodes 32", "Nodes 800000000").replace("_Down 4", "_Down 100000000"),
            "at most 200000",
        ),
        (cluster(2, 3, ""), "no router"),
        (cluster(3, 3, "<topology>dcell</topology>"), "needs 4 equal racks"),
        (cluster(3, 3, "<topology>ring</topology>"), "'ring' is unknown"),
        (cluster(2, 3, ROUTER).replace("1Gbps", "fast"), "'fast' has no rate"),
        (cluster(2, 3, ROUTER + ROUTER), "2 routers"),
        ('<!DOCTYPE t [<!ENTITY a "b">]><topo>&a;</topo>', "document type"),
        ("<conf/>", "root element is conf"),
        ("<topo>", "is not XML"),
        (cluster(100_000, 900, ROUTER), "at most 200000"),
        ("<a>" * 60, "more than 1,000,000 elements"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is JSON, but not of an inventory format"),
        ("{" * 100_000, "is not JSON"),
        ("{}", "no list of nodes"),
        (CITIES.replace('"id": 2', '"id": 1'), "two nodes have the id 1"),
        (CITIES.replace("27", "1e999"), "edge 1: dist"),
        (CITIES.replace("3.5", "-1"), "demand from 0 to 1"),
        (CITIES.replace('"target": 2', '"target": 0'), "not connected"),
        (CITIES.replace('"target": 2', '"target": 9'), "ids of two nodes"),
    ],
)
def test_what_makes_no_fabric_is_refused_in_words(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("text", [TINY, THREE, cluster(3, 2, ROUTER), CITIES])
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_damaged_descriptors(tmp_path: Path, text: str, data: st.DataObject) -> None:
    whole = bytearray(text.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        first = data.draw(st.integers(0, len(whole)))
        last = min(len(whole), first + data.draw(st.integers(0, 20)))
        junk = st.one_of(st.binary(max_size=12), st.integers(0, 10**12).map(lambda n: b"%d" % n))
        whole[first:last] = data.draw(junk)
    with contextlib.suppress(InputError):
        fabric = read(tmp_path, bytes(whole))
        at = degrees(fabric)
        assert all(at[host] == 1 for host in fabric.hosts)
        tomllib.loads(fabric.to_toml("damaged"))
