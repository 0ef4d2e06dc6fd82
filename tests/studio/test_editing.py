"""Edited fabrics: the topology file, and the scenario that reads it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from eastwest import shipped
from eastwest.studio.editing import with_graph
from eastwest.studio.refused import RefusedError
from studio_client import Client

WORKLOAD = '\n[[workload]]\nname = "w"\nkind = "permutation"\nbytes = "1 KB"\n'
STAR = f"""# A comment above.
schema = 1

[fabric]  # of the fabric
kind = "star"
hosts = 4            # goes
host_rate = "1 Gbit/s"
host_delay = "0.25 us"
mtu = 9000           # stays
queue = {{ kind = "codel", limit = "64 KB" }}

[fabric.host_queue]
limit = "500 packets"
{WORKLOAD}"""


def shape(client: Client, text: str, path: str | None) -> dict[str, Any]:
    found = client.post("/api/check", text=text, path=path)
    assert found["problems"] == []
    fabric: dict[str, Any] = found["fabric"]
    return fabric


def cables(topology: dict[str, Any]) -> list[tuple[object, ...]]:
    return [(c["a"], c["b"], c["rate_bps"], c["delay_us"]) for c in topology["cables"]]


@pytest.mark.parametrize("path", [None, "star.toml", "deep/er/star.toml"])
def test_an_edited_fabric_is_the_fabric_of_the_next_check(client: Client, path: str | None) -> None:
    if path is not None:
        file = client.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(STAR)
    before = shape(client, STAR, path)
    assert before["editable_file"] is None
    topology = before["topology"]
    topology["switches"].append("s-new")
    topology["hosts"].append("h-new")
    topology["cables"] += [
        {"a": "s-new", "b": "switch0", "rate_bps": 25_000_000_000, "delay_us": 1.5},
        {"a": "h-new", "b": "s-new", "rate_bps": 123_456_000, "delay_us": 0},
    ]
    answer = client.post("/api/topology", path=path, text=STAR, topology=topology)
    stem = "star" if path else "studio"
    assert answer["file"] == f"{stem}-topology.toml"
    after = shape(client, answer["text"], path)
    assert after["topology"]["hosts"] == topology["hosts"]
    assert after["topology"]["switches"] == topology["switches"]
    assert cables(after["topology"]) == cables(topology)
    folder = Path(path).parent if path else Path()
    assert after["editable_file"] == (folder / f"{stem}-topology.toml").as_posix()
    topology["cables"].pop()
    topology["hosts"].pop()
    again = client.post("/api/topology", path=path, text=answer["text"], topology=topology)
    assert (again["file"], again["text"]) == (answer["file"], answer["text"])
    assert "h-new" not in shape(client, again["text"], path)["topology"]["hosts"]


def test_a_file_of_the_user_is_not_replaced(client: Client) -> None:
    own = client.folder / "studio-topology.toml"
    own.write_text("# my own file\n")
    topology = shape(client, STAR, None)["topology"]
    answer = client.post("/api/topology", path=None, text=STAR, topology=topology)
    assert answer["file"] == "studio-topology-2.toml"
    mine = answer["text"].replace(answer["file"], own.name)
    own.write_text((client.folder / answer["file"]).read_text().partition("\n")[2])
    found = shape(client, mine, None)
    assert found["editable_file"] is None
    more = client.post("/api/topology", path=None, text=mine, topology=found["topology"])
    assert more["file"] != own.name


def test_only_lines_of_other_fabrics_change() -> None:
    changed = with_graph(STAR, "t.toml")
    assert tomllib.loads(changed)["fabric"] == {
        "kind": "graph",
        "file": "t.toml",
        "mtu": 9000,
        "queue": {"kind": "codel", "limit": "64 KB"},
        "host_queue": {"limit": "500 packets"},
    }
    for kept in ("# A comment above.", "# of the fabric", "# stays", "[fabric.host_queue]"):
        assert kept in changed
    assert "# goes" not in changed


@pytest.mark.parametrize(
    "fabric",
    [
        'fabric = { kind = "star", hosts = 2, mtu = 9000 }\n',
        'fabric.kind = "star"\nfabric.hosts = 2\nfabric.mtu = 9000\n',
        '[fabric]\nkind = "star"\nhosts = 2\nmtu = 9000',
        '[fabric]\nmtu = 9000\n[fabric.queue]\nkind = "codel"\n',
        "[fabric.queue]\nlimit = 3\n",
        "[fabric]",
        '[fabric]\nsizes = [\n 4,\n 4,\n]\nkind = "torus"\n',
        '[fabric]\r\nkind = "star"\r\nhosts = 2\r\n',
        '"fabric".kind = "star"\n',
        "",
    ],
)
def test_every_way_to_write_a_fabric_can_be_edited(fabric: str) -> None:
    text = f'schema = 1\n{fabric}\n[[workload]]\nname = "w"\n'
    before, after = tomllib.loads(text), tomllib.loads(with_graph(text, 'a "b".toml'))
    wanted = {
        key: value
        for key, value in before.get("fabric", {}).items()
        if key not in {"kind", "hosts", "sizes"}
    }
    assert after == {**before, "fabric": {"kind": "graph", "file": 'a "b".toml', **wanted}}


@pytest.mark.parametrize("name", shipped.names())
def test_shipped_scenarios_can_be_edited(name: str) -> None:
    text = (shipped.SCENARIOS / f"{name}.toml").read_text()
    changed = tomllib.loads(with_graph(text, "t.toml"))
    assert changed["fabric"]["kind"] == "graph"
    assert {**changed, "fabric": None} == {**tomllib.loads(text), "fabric": None}


def test_a_text_that_is_no_toml_is_not_edited() -> None:
    with pytest.raises(RefusedError, match="is not TOML"):
        with_graph("[fabric\n", "t.toml")


NODES: dict[str, Any] = {"hosts": ["a", "b"], "switches": ["s"]}


@pytest.mark.parametrize(
    "topology",
    [
        None,
        [],
        {},
        {**NODES, "cables": {}},
        {**NODES, "cables": [1]},
        {**NODES, "cables": [{"a": "a", "b": "x", "rate_bps": 1e9, "delay_us": 1}]},
        {**NODES, "cables": [{"a": "a", "b": "s", "rate_bps": "1", "delay_us": 1}]},
        {**NODES, "cables": [{"a": "a", "b": "s", "rate_bps": 0, "delay_us": 1}]},
        {**NODES, "cables": [{"a": "a", "b": "s", "rate_bps": 1e9, "delay_us": -1}]},
        {**NODES, "cables": [{"a": ["a"], "b": "s", "rate_bps": 1e9, "delay_us": 1}]},
        {"hosts": ['a"\n[x]'], "switches": [], "cables": []},
        {"hosts": ["<script>"], "switches": [], "cables": []},
        {"hosts": [""], "switches": [], "cables": []},
        {"hosts": [f"h{n}" for n in range(65)], "switches": [], "cables": []},
    ],
)
def test_wrong_topologies_are_refused(client: Client, topology: object) -> None:
    body = {"path": None, "text": STAR, "topology": topology}
    before = sorted(client.folder.iterdir())
    status, message = client.refused("POST", "/api/topology", body)
    assert status == 400 and message
    assert sorted(client.folder.iterdir()) == before
