"""Completion by shells, ``--version``, and the JSON schema for editors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

from eastwest import core, shipped
from eastwest.cli import app
from eastwest.cli.completion import scenarios, settings
from eastwest.json_schema import json_schema


def offered(words: str) -> list[str]:
    """Return what the installed command offers fish for the last of these words."""
    asked = os.environ | {
        "_EASTWEST_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_ARGS": words,
    }
    code = "import sys; sys.argv[0] = 'eastwest'; from eastwest.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=asked, check=False
    )
    return [line.partition("\t")[0] for line in done.stdout.splitlines()]


def test_commands_and_options_are_offered() -> None:
    assert offered("eastwest sw") == ["sweep"]
    assert "import" in offered("eastwest trace ")
    assert "--seed" in offered("eastwest run --s")


def test_studies_are_offered_without_the_name_of_the_command() -> None:
    assert offered("eastwest bundle create eeon_ch5") == ["eeon_ch5"]
    assert offered("eastwest bundle eeon_ch5") == ["eeon_ch5"]
    assert offered("eastwest bundle ver") == ["verify"]
    assert "--only" in offered("eastwest bundle eeon_ch5 --on")


def test_values_of_a_choice_are_offered() -> None:
    assert offered("eastwest run --set fabric.queue.kind=r") == ["fabric.queue.kind=red"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_calls_the_command(
    shell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    shown = CliRunner().invoke(app, ["--show-completion", shell], prog_name="eastwest")
    assert shown.exit_code == 0
    assert f"_EASTWEST_COMPLETE=complete_{shell}" in shown.stdout


def test_scenarios_are_shipped_ones_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first-try.toml", "notes.txt", ".first-hidden.toml"):
        (tmp_path / name).touch()
    (tmp_path / "firsts").mkdir()
    monkeypatch.chdir(tmp_path)
    assert scenarios("first") == ["first", "first-try.toml", "firsts/"]
    assert scenarios("nowhere/x") == []
    assert scenarios(f"{tmp_path}/fir") == [f"{tmp_path}/first-try.toml", f"{tmp_path}/firsts/"]


def test_paths_of_settings_name_the_first_entry_of_a_list() -> None:
    names = [name for name, _ in settings("workload.0.k")]
    assert "workload.0.kind=" in names
    assert [name for name, _ in settings("workload.3.kind=mpi-")] == ["workload.3.kind=mpi-cg"]
    assert settings("fabric.queue=") == []


def test_the_version_is_an_option_too() -> None:
    by_option = CliRunner().invoke(app, ["--version"])
    assert by_option.exit_code == 0
    assert by_option.stdout == CliRunner().invoke(app, ["version"]).stdout
    assert by_option.stdout.startswith(f"eastwest {core.version()}")


SCHEMA = jsonschema.Draft7Validator(json_schema())


@pytest.mark.parametrize("name", shipped.names())
def test_shipped_scenarios_fit_the_json_schema(name: str) -> None:
    path = shipped.find(name)
    assert path is not None
    SCHEMA.validate(tomllib.loads(path.read_text()))


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"fabrik": {}}, "fabrik"),
        ({"seed": "seven"}, "seed"),
        ({"fabric": {"host_rate": 10}}, "host_rate"),
        ({"fabric": {"queue": {"kind": "red", "limit": "200 packets", "mimimum": 3}}}, "mimimum"),
        ({"fidelity": "exact"}, "fidelity"),
        ({"workload": {"kind": "poisson"}}, "workload"),
        ({"measure": {"events": -1}}, "events"),
    ],
)
def test_the_json_schema_refuses_what_the_reader_refuses(
    change: dict[str, object], part: str
) -> None:
    path = shipped.find("first")
    assert path is not None
    text = tomllib.loads(path.read_text())
    for key, value in change.items():
        old = text.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            text[key] = old | value
        else:
            text[key] = value
    found = [f"{'/'.join(map(str, e.absolute_path))} {e.message}" for e in SCHEMA.iter_errors(text)]
    assert any(part in line for line in found), found


def test_mechanisms_of_the_user_fit_the_json_schema() -> None:
    path = shipped.find("first")
    assert path is not None
    text = tomllib.loads(path.read_text())
    text["fabric"]["queue"] = {"kind": "my-queue", "limit": "64 KB"}
    SCHEMA.validate(text)


def test_the_command_prints_the_json_schema() -> None:
    printed = CliRunner().invoke(app, ["schema", "--json-schema"])
    assert json.loads(printed.stdout) == json_schema()
    assert json.loads(CliRunner().invoke(app, ["schema"]).stdout) == json.loads(core.schema())
