"""Routes for a traffic matrix: compared with all combinations of paths, and run from files."""

from __future__ import annotations

import csv
import itertools
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

import eastwest as ew
from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.topologies import coloured
from eastwest.topologies.coloured import Network

SCENARIO = """schema = 1
[fabric]
kind = "two-groups"
host_rate = "10 Gbit/s"
uplink_rate = "10 Gbit/s"
routing = "explicit"
routes = "routes.csv"
[[workload]]
name = "all"
kind = "all-to-all"
bytes = "20 KB"
"""
STATIC = SCENARIO.replace('"explicit"', '"modulo"').replace('routes = "routes.csv"\n', "")


def two_stage(near: int, far: int, rates: list[float]) -> Network:
    """Return a network of two hosts per side and two switch stages, with some slower links."""
    switches = ["left", *(f"n{i}" for i in range(near)), *(f"f{i}" for i in range(far)), "right"]
    cables = [("left", f"n{i}") for i in range(near)]
    cables += [(f"n{i}", f"f{j}") for i in range(near) for j in range(far)]
    cables += [(f"f{j}", "right") for j in range(far)]
    hosts = {"a0": "left", "a1": "left", "b0": "right", "b1": "right"}
    net = Network(list(hosts), hosts, dict.fromkeys(hosts, 1e9), {s: [] for s in switches}, {})
    for number, (a, b) in enumerate(cables):
        for link in ((a, b), (b, a)):
            net.rate_bps[link] = rates[number % len(rates)]
            net.neighbours[link[0]].append(link[1])
    return net


@pytest.mark.parametrize("seed", range(12))
def test_no_combination_of_paths_is_better(seed: int) -> None:
    draw = random.Random(seed)
    net = two_stage(draw.choice([1, 2]), draw.choice([2, 3]), [1e9, 2e9, draw.choice([1e9, 5e8])])
    pairs = [(a, b) for a in net.hosts for b in net.hosts if net.edge[a] != net.edge[b]]
    matrix = {p: draw.uniform(1e8, 9e8) for p in draw.sample(pairs, draw.choice([3, 4, 5]))}
    found = coloured.colour(net, matrix)
    options = [list(coloured.shortest_paths(net, net.edge[a], net.edge[b])) for a, b in matrix]
    best = min(
        coloured.loads(net, matrix, dict(zip(matrix, choice, strict=True)))
        for choice in itertools.product(*options)
    )
    assert found.proven
    assert found.largest_load == pytest.approx(best, rel=1e-6)
    assert found.least_possible == pytest.approx(best, rel=1e-3)


def test_the_study_network_gets_three_fifths_and_the_file_runs(tmp_path: Path) -> None:
    (tmp_path / "static.toml").write_text(STATIC)
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    command = ["routes", str(tmp_path / "static.toml"), "-o", str(tmp_path / "routes.csv")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "carries 0.6 of its rate" in done.output
    assert "proven: no other routes have a lower maximum" in done.output
    with (tmp_path / "routes.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 30
    result = ew.run(tmp_path / "scenario.toml")
    links = result.table("links")
    packets = dict(zip(links["name"], links["packets"], strict=True))
    into = [packets[f"far{i}->right"] for i in range(3)]
    assert min(into) > 0.7 * max(into)


def test_a_matrix_is_read_and_refused_in_words(tmp_path: Path) -> None:
    net = two_stage(2, 2, [1e9])
    path = tmp_path / "matrix.csv"
    path.write_text("to,bps,from\nb0, 5e8 ,a0\n")
    assert coloured.read_matrix(path, net) == {("a0", "b0"): 5e8}
    for text, said in [
        ("to,from\n", "no column bps"),
        ("from,to,bps\n", "has no pair of hosts"),
        ("from,to,bps\na0,x9,1\n", "line 2: there is no host 'x9'"),
        ("from,to,bps\na0,a0,1\n", "the source and target are both a0"),
        ("from,to,bps\na0,b0,nan\n", "bps must be"),
        ("from,to,bps\na0,b0,1\na0,b0,1\n", "line 3: the pair a0 to b0 has an earlier line"),
        ("from,to,bps\na0\n", "there is no host ''"),
    ]:
        path.write_text(text)
        with pytest.raises(InputError, match="matrix") as caught:
            coloured.read_matrix(path, net)
        assert said in str(caught.value)


def test_hosts_on_one_switch_need_no_choice() -> None:
    net = two_stage(1, 1, [1e9])
    found = coloured.colour(net, {("a0", "a1"): 1e9})
    assert (found.routes, found.largest_load) == ({("a0", "a1"): ["left"]}, 0.0)
