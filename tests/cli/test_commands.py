"""Commands whose options and printed lines no other test reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eastwest.cli import app


def printed(*words: str, code: int = 0) -> str:
    """Run a command in this process and return its standard output."""
    done = CliRunner().invoke(app, list(words), env={"COLUMNS": "120"})
    assert done.exit_code == code, done.output
    return done.stdout


def test_fuzz_counts_its_cases_and_keeps_a_tally(tmp_path: Path) -> None:
    tally = tmp_path / "tally.json"
    again = ("fuzz", "--cases", "3", "--jobs", "1", "--tally", str(tally), "--out", str(tmp_path))
    text = printed(*again)
    # A scenario that would take too long is not judged.
    judged = int(text.split(" scenarios checked")[0])
    assert 1 <= judged <= 3
    assert "number of tries of the rarest pair of values" in text
    assert text.splitlines()[-1] == f"{judged} passed, 0 failed"
    # A second campaign names the pairs that were tried least.
    assert "pairs of settings were tried less than" in printed(*again)
    found = json.loads(printed(*again, "--json"))
    assert 1 <= found["cases"] <= 3
    assert found["failures"] == []


def test_fuzz_refuses_a_setting_that_no_case_can_have(tmp_path: Path) -> None:
    words = ["fuzz", "--cases", "1", "--have", "fabric.quene.kind=red", "--out", str(tmp_path)]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 2
    assert "fabric.quene.kind=red" in refused.stderr
    assert not list(tmp_path.iterdir())


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    """A topology file of htsim: two switches and four hosts."""
    path = tmp_path / "small.topo"
    path.write_text(
        "Nodes 4\nTiers 2\nPodsize 2\n"
        "Tier 0\nDownlink_speed_Gbps 10\nRadix_Up 2\nRadix_Down 2\nDownlink_Latency_ns 1000\n"
        "Tier 1\nDownlink_speed_Gbps 10\nRadix_Down 2\nDownlink_Latency_ns 1000\n"
    )
    return path


def test_an_imported_topology_is_a_fabric(topology: Path, tmp_path: Path) -> None:
    out = tmp_path / "graph.toml"
    text = printed("topology", "import", str(topology), "--out", str(out), "--format", "htsim")
    assert text.startswith("4 hosts, ")
    assert str(out) in text.replace("\n", "")
    assert out.read_text().startswith("# from small.topo")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--format", "visio"), "must be one of htsim, mrperf, topohub"),
        (("--rate", "5"), "--rate 5: must be"),
        (("--demands", "demands.csv"), "has no traffic matrix"),
    ],
)
def test_wrong_options_of_an_import_are_named(
    topology: Path, tmp_path: Path, options: tuple[str, str], said: str
) -> None:
    words = ["topology", "import", str(topology), "--out", str(tmp_path / "graph.toml"), *options]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 2
    assert said in refused.stderr.replace("\n", " ")
    assert not (tmp_path / "graph.toml").exists()


def test_outputs_of_topologies_replace_no_file(topology: Path, tmp_path: Path) -> None:
    def refused(*words: str) -> str:
        done = CliRunner().invoke(app, ["topology", "import", *words])
        assert done.exit_code == 2
        return done.stderr.replace("\n", " ")

    out, before = tmp_path / "graph.toml", topology.read_text()
    for same in (topology, tmp_path / "." / topology.name):
        assert "is an input of this command" in refused(str(topology), "-o", str(same), "--force")
    named = ("-o", str(out), "--ports", str(out))
    assert "is named for two outputs" in refused(str(topology), *named)
    assert topology.read_text() == before and not out.exists()
    out.write_text("mine")
    assert "already exists: name another file, or replace it with --force" in refused(
        str(topology), "-o", str(out)
    )
    assert out.read_text() == "mine"
    printed("topology", "import", str(topology), "-o", str(out), "--force")
    assert out.read_text().startswith("# from small.topo")
    tables = ["--ports", str(out), "--hosts", str(topology), "-o", str(out)]
    done = CliRunner().invoke(app, ["topology", "routes", str(topology), *tables, "--force"])
    assert done.exit_code == 2 and "is an input of this command" in done.stderr.replace("\n", " ")


def test_a_seed_beyond_the_maximum_is_refused_with_the_maximum() -> None:
    largest = str(2**63 - 1)
    assert largest in printed("run", "first", "--seed", largest, "--json")
    done = CliRunner().invoke(app, ["run", "first", "--seed", str(2**63)])
    assert done.exit_code == 2 and "is not in the range 0<=x<=" in done.stderr.replace("\n", " ")
    done = CliRunner().invoke(app, ["check", "first", "--set", f"seed={2**64 - 1}"])
    assert f"is too large: at most {largest}" in done.stderr


def test_all_goals_of_a_run_are_printed_the_missed_ones_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    goals = "".join(f'"flows.fct_us.{each}" = "> 0"\n' for each in ("mean", "p50", "p99", "max"))
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        'schema = 1\n[fabric]\nkind = "star"\nhosts = 3\nhost_rate = "1 Gbit/s"\n'
        '[[workload]]\nkind = "permutation"\nname = "all"\nbytes = "1 KB"\n'
        f'[goal]\n{goals}"packets.sent" = "minimal"\n"throughput_bps" = "< 1"\n'
    )
    lines = [line.strip() for line in printed("run", str(scenario)).splitlines()]
    first = next(n for n, line in enumerate(lines) if line.startswith("goal"))
    shown = " ".join(lines[first:])
    order = ["throughput_bps < 1: missed", "packets.sent minimal", "flows.fct_us.mean > 0: met"]
    places = [shown.index(each) for each in [*order, "flows.fct_us.max > 0: met"]]
    assert places[0] == len("goal") + shown[4:].index("t") and places[:2] == sorted(places[:2])
    assert all(place > places[1] for place in places[2:])


def test_routes_are_written_with_their_largest_load(tmp_path: Path) -> None:
    out = tmp_path / "routes.csv"
    settings = ("--set", "fabric.leaves=2", "--set", "fabric.hosts_per_leaf=2")
    text = printed("routes", "first", "--out", str(out), *settings)
    lines = out.read_text().splitlines()
    assert lines[0] == "from,to,via"
    assert f"{len(lines) - 1} routes in" in text
    assert "the fullest link between switches carries" in text
    assert "proven: no other routes have a lower maximum" in text


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("trace", "flows", "a.txt", "-o", "b.csv", "--idle", "nan"), "--idle"),
        (("topology", "import", "a.json", "-o", "b.toml", "--delay", "nan"), "--delay"),
        (("topology", "import", "a.json", "-o", "b.toml", "--rate", "inf"), "--rate"),
        (("model", "control", "red", "--weight", "nan"), "--weight"),
        (("observe", "serve", "folder", "--speed", "nan"), "--speed"),
    ],
)
def test_numbers_of_options_are_finite(words: tuple[str, ...], option: str) -> None:
    done = CliRunner().invoke(app, list(words), env={"COLUMNS": "120"})
    said = done.output
    assert done.exit_code == 2
    assert f"Invalid value for '{option}'" in said
    assert "is not a finite number" in said


def test_an_option_may_be_infinite_if_its_help_says_so() -> None:
    done = CliRunner().invoke(app, ["observe", "serve", "no-folder", "--speed", "inf"])
    assert "finite" not in done.output
