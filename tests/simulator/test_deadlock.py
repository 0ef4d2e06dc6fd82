"""A run that ended by a deadlock of PFC pauses: the command's message and exit code."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from eastwest.cli import app
from eastwest.report import write_report

HOSTS = [f"h{h}" for h in range(9)]


def ring(folder: Path) -> Path:
    """Write a scenario: three switches in a ring, whose hosts send two switches on, clockwise."""
    cables = [(host, f"s{h // 3}") for h, host in enumerate(HOSTS)]
    cables += [(f"s{s}", f"s{(s + 1) % 3}") for s in range(3)]
    topology = [f"hosts = {json.dumps(HOSTS)}", 'switches = ["s0", "s1", "s2"]']
    for a, b in cables:
        topology.append(f'[[cable]]\na = "{a}"\nb = "{b}"\nrate = "10 Gbit/s"\ndelay = "1 us"')
    (folder / "ring.toml").write_text("\n".join(topology), encoding="utf-8")
    to = [HOSTS[(h + 6) % 9] for h in range(9)]
    text = [
        'schema = 1\n[fabric]\nkind = "graph"\nfile = "ring.toml"\nrouting = "explicit"',
        "[fabric.pfc]\npriorities = [0]",
        '[[workload]]\nname = "frames"\nkind = "ethernet"\npattern = "pairs"\nload = 0.9',
        f"frames = 30000\nsources = {json.dumps(HOSTS)}\ndestinations = {json.dumps(to)}",
    ]
    for h, host in enumerate(HOSTS):
        via = json.dumps([f"s{(h // 3 + step) % 3}" for step in range(3)])
        text.append(f'[[fabric.route]]\nfrom = "{host}"\nto = "{to[h]}"\nvia = {via}')
    path = folder / "stuck.toml"
    path.write_text("\n".join(text), encoding="utf-8")
    return path


def test_a_deadlock_is_named_and_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    scenario = ring(tmp_path)
    run = CliRunner().invoke(app, ["run", str(scenario), "--json", "--out", str(tmp_path / "r")])
    assert run.exit_code == 1
    found = json.loads(run.stdout)["dcb"]["deadlock"]
    assert sorted(found["cycle"]) == ["s0->s1", "s1->s2", "s2->s0"]
    said = " ".join(run.stderr.split())
    assert "ended by a PFC deadlock" in said and "s0->s1" in said
    page = write_report([tmp_path / "r"]).read_text(encoding="utf-8")
    assert "The run was ended by a PFC deadlock at" in page
    assert "PFC paused ports" in page
    shown = CliRunner().invoke(app, ["run", str(scenario), "--out", str(tmp_path / "again")])
    assert shown.exit_code == 1
    assert "these ports wait for each other" in " ".join(shown.stdout.split())
