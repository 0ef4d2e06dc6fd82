"""Hosts with several network cards, through the Python interface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import eastwest as ew
from eastwest import topologies
from eastwest.topologies import Fabric

BOND = """schema = 1
[fabric]
kind = "star"
hosts = 4
cards = 2
host_rate = "1 Gbit/s"
[[workload]]
name = "all"
kind = "all-to-all"
bytes = "50 KB"
"""


def run(tmp_path: Path, text: str, **sets: Any) -> ew.Result:
    path = tmp_path / "scenario.toml"
    path.write_text(text)
    return ew.run(path, out=tmp_path / "result", set=sets)


def test_links_name_the_cards_of_hosts(tmp_path: Path) -> None:
    result = run(tmp_path, BOND)
    up = result.links.filter(pl.col("tier") == "host-up")
    names = [f"h{host}:eth{card}->switch0" for host in range(4) for card in range(2)]
    assert up["name"].to_list() == names
    assert (up.group_by("src").agg(pl.col("bytes").sum())["bytes"] > 3 * 50_000).all()


def test_round_robin_loads_all_cards_of_a_host_equally(tmp_path: Path) -> None:
    result = run(tmp_path, BOND, **{"fabric.bond_mode": "balance-rr"})
    up = result.links.filter(pl.col("tier") == "host-up")
    packets = up.group_by("src").agg(pl.col("packets").max() - pl.col("packets").min())
    assert packets["packets"].to_list() == [value for value in packets["packets"] if value <= 1]


def test_a_card_fails_by_its_name(tmp_path: Path) -> None:
    fault = '[[fault]]\non = "h0:eth0..h3:eth0"\nkind = "down"\nreroute = "0 s"\n'
    result = run(tmp_path, BOND + fault)
    links = result.links.filter(pl.col("name").str.contains(":eth0"))
    assert links["packets"].sum() == 0
    assert result.flows.height == 12


def test_wrong_settings_say_why(tmp_path: Path) -> None:
    with pytest.raises(ew.ScenarioError, match="only if hosts have several cards"):
        run(tmp_path, BOND, **{"fabric.cards": 1, "fabric.bond_mode": "off"})


def test_an_imported_fabric_with_two_links_for_each_host_runs(tmp_path: Path) -> None:
    lab = """name: lab
topology:
  nodes:
    leaf0: {kind: ceos}
    leaf1: {kind: ceos}
    srv0: {kind: linux}
    srv1: {kind: linux}
  links:
    - endpoints: ["srv0:eth1", "leaf0:eth1"]
    - endpoints: ["srv0:eth2", "leaf1:eth1"]
    - endpoints: ["srv1:eth1", "leaf0:eth2"]
    - endpoints: ["srv1:eth2", "leaf1:eth2"]
    - endpoints: ["leaf0:eth9", "leaf1:eth9"]
"""
    (tmp_path / "lab.clab.yml").write_text(lab)
    assumed = topologies.Assumed(host_names=("srv*",))
    fabric: Fabric = topologies.read(tmp_path / "lab.clab.yml", None, assumed)
    cards = [(c.a, c.b) for c in fabric.cables if c.a in fabric.hosts]
    assert cards == [("srv0", "leaf0"), ("srv0", "leaf1"), ("srv1", "leaf0"), ("srv1", "leaf1")]
    assert any("2 × host with several links" in note for note in fabric.notes)
    (tmp_path / "lab.toml").write_text(fabric.to_toml("a lab"))
    text = (
        'schema = 1\n[fabric]\nkind = "graph"\nfile = "lab.toml"\n'
        '[[workload]]\nname = "all"\nkind = "all-to-all"\nbytes = "50 KB"\n'
    )
    result = run(tmp_path, text)
    assert "srv1:eth1->leaf1" in result.links["name"].to_list()
