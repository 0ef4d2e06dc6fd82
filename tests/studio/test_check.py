"""Check of scenarios for the page: problems, drawing, numbers of links, numeric settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import eastwest as ew
from eastwest import core, shipped
from eastwest.studio import checks
from eastwest.studio.files import Folder, Text
from studio_client import Client

RATES = 'host_rate = "1 Gbit/s"\nuplink_rate = "10 Gbit/s"\n'
WORKLOAD = '[[workload]]\nname = "w"\nkind = "permutation"\nbytes = "1 KB"\n'
FABRICS = {
    "leaf-spine": f"leaves = 3\nhosts_per_leaf = 2\nspines = 2\ncables_per_spine = 2\n{RATES}",
    "star": 'hosts = 4\nhost_rate = "1 Gbit/s"\n',
    "fat-tree": f"k = 4\n{RATES}",
    "dcell": f"n = 3\nlevels = 1\n{RATES}",
    "dragonfly": f"switches_per_group = 2\nhosts_per_switch = 1\nglobal_cables = 1\n{RATES}",
    "torus": f"sizes = [3, 3]\n{RATES}",
    "dumbbell": f"hosts_left = 2\nhosts_right = 3\n{RATES}",
    "graph": 'file = "two.toml"\n',
}
TWO = """hosts = ["alpha", "beta", "h.3"]
switches = ["x", "y"]
[[cable]]
a = "y"
b = "x"
rate = "25 Gbit/s"
[[cable]]
a = "alpha"
b = "x"
rate = "1 Gbit/s"
[[cable]]
a = "x"
b = "y"
rate = "25 Gbit/s"
[[cable]]
a = "beta"
b = "y"
rate = "1 Gbit/s"
delay = "0.5 us"
[[cable]]
a = "h.3"
b = "y"
rate = "1 Gbit/s"
"""


def scenario(kind: str) -> str:
    return f'schema = 1\n[fabric]\nkind = "{kind}"\n{FABRICS[kind]}{WORKLOAD}'


def checked(text: str, folder: Path, overrides: core.Overrides | None = None) -> dict[str, Any]:
    return checks.check(Text(text, folder), overrides or [], Folder(folder))


@pytest.mark.parametrize("kind", FABRICS)
def test_links_have_the_numbers_of_a_run(kind: str, tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(TWO)
    (tmp_path / "s.toml").write_text(scenario(kind))
    found = checked(scenario(kind), tmp_path)
    assert found["problems"] == []
    drawn = found["fabric"]
    links = ew.run(tmp_path / "s.toml", out=tmp_path / "out").links
    rows = {row["link"]: row for row in links.iter_rows(named=True)}
    seen = sorted(link for edge in drawn["edges"] for link in edge["links"])
    assert seen == sorted(rows)
    for edge in drawn["edges"]:
        ends = {(rows[link]["src"], rows[link]["dst"]) for link in edge["links"]}
        assert len(ends) == 1
        if len(edge["links"]) == 1:
            assert edge["name"] == rows[edge["links"][0]]["name"]
        first = rows[edge["links"][0]]
        assert (edge["rate_bps"], edge["tier"]) == (first["rate_bps"], first["tier"])
    assert drawn["topology"]["hosts"] == sorted(
        drawn["topology"]["hosts"], key=core_hosts(scenario(kind), tmp_path).index
    )


def core_hosts(text: str, folder: Path) -> list[str]:
    shape = core.topology(text, str(folder), str(shipped.DATA), [])
    names: list[str] = shape["nodes"][: shape["hosts"]]
    return names


def test_the_drawing_has_its_edges_and_nodes_in_order(tmp_path: Path) -> None:
    drawn = checked(scenario("leaf-spine"), tmp_path)["fabric"]
    svg = ElementTree.fromstring(drawn["svg"])
    names = {"s": "http://www.w3.org/2000/svg"}
    titles = [t.text or "" for t in svg.findall(".//s:g[@class='edges']//s:title", names)]
    assert [t.partition(" (")[0] for t in titles] == [e["name"] for e in drawn["edges"]]
    nodes = svg.findall(".//s:g[@class='nodes']/s:g", names)
    assert [n.get("class") for n in nodes] == [n["kind"] for n in drawn["nodes"]]
    assert [t.findtext("s:title", "", names) for t in nodes] == [n["name"] for n in drawn["nodes"]]
    assert (drawn["hosts"], drawn["switches"], drawn["grouped"]) == (6, 5, False)


def test_a_large_fabric_is_drawn_in_groups_and_not_edited(tmp_path: Path) -> None:
    text = scenario("leaf-spine").replace("hosts_per_leaf = 2", "hosts_per_leaf = 200")
    drawn = checked(text, tmp_path)["fabric"]
    assert drawn["grouped"] and drawn["topology"] is None
    assert sum(node["members"] for node in drawn["nodes"]) == 605
    assert len(drawn["edges"]) < 100


def test_problems_have_lines_and_hints(tmp_path: Path) -> None:
    found = checked('schema = 1\n[fabric]\nkind = "leaf-spin"\n', tmp_path)
    assert found["fabric"] is None and found["numbers"] == []
    by_path = {p["path"]: p for p in found["problems"]}
    assert (by_path["fabric.kind"]["line"], by_path["fabric.kind"]["hint"]) == (3, "leaf-spine")
    broken = checked("schema = \n[fabric", tmp_path)
    assert broken["problems"] and broken["problems"][0]["message"]


def test_goals_are_checked(tmp_path: Path) -> None:
    text = scenario("star") + '[goal]\n"flows.fct_us.p99" = "< 1 lightyear"\n'
    (problem,) = checked(text, tmp_path)["problems"]
    assert problem["path"].startswith("goal")


def test_numbers_have_units_limits_and_lines(tmp_path: Path) -> None:
    text = scenario("star").replace(
        "hosts = 4\n", 'hosts = 4\nqueue = { kind = "codel", limit = "64 KB" }\nmtu = 9000\n'
    )
    rows = checked(text, tmp_path)["numbers"]
    by_path = {row["path"]: row for row in rows}
    rate = by_path["fabric.host_rate"]
    assert {key: rate[key] for key in ("line", "value", "number", "unit", "min", "max")} == {
        "line": 7,
        "value": '"1 Gbit/s"',
        "number": 1.0,
        "unit": "Gbit/s",
        "min": 1e-6,
        "max": 10_000.0,
    }
    limit = by_path["fabric.queue.limit"]
    assert (limit["line"], limit["number"], limit["unit"]) == (5, 64.0, "KB")
    hosts = by_path["fabric.hosts"]
    assert (hosts["number"], hosts["unit"], hosts["line"]) == (4.0, None, 4)
    assert by_path["fabric.mtu"]["min"] <= 1500 <= by_path["fabric.mtu"]["max"]
    assert by_path["workload.0.bytes"]["explicit"]
    assert not by_path["tcp.min_rto"]["explicit"] and by_path["tcp.min_rto"]["line"] is None
    explicit = [row["explicit"] for row in rows]
    assert explicit == sorted(explicit, reverse=True)
    assert "schema" not in by_path and not any(row["doc"] == "" for row in rows)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in {"fb2010", "s4", "demo"} else name
        for name in shipped.names()
    ],
)
def test_every_number_of_a_shipped_scenario_can_be_set(name: str, tmp_path: Path) -> None:
    text = (shipped.SCENARIOS / f"{name}.toml").read_text()
    for row in checked(text, tmp_path)["numbers"]:
        number = repr(row["number"]).removesuffix(".0")
        value = number if row["unit"] is None else f'"{number} {row["unit"]}"'
        assert row["min"] is None or row["min"] <= row["number"] * (1 + 1e-12), row
        assert row["max"] is None or row["number"] <= row["max"] * (1 + 1e-12), row
        again = core.check(text, str(tmp_path), str(shipped.DATA), [(row["path"], value)])[
            "problems"
        ]
        assert again == [], row


def test_overrides_are_applied(tmp_path: Path) -> None:
    found = checked(scenario("star"), tmp_path, [("fabric.hosts", "7")])
    assert found["fabric"]["hosts"] == 7
    by_path = {row["path"]: row for row in found["numbers"]}
    assert by_path["fabric.hosts"]["number"] == 7


def test_the_check_is_reached_over_http(client: Client) -> None:
    found = client.post("/api/check", text=scenario("star"), path=None, set=[["fabric.hosts", 5]])
    assert found["fabric"]["hosts"] == 5 and found["memory_bytes"] > 1_000_000
