"""``eastwest drill``: scripts that pass, fail and cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from eastwest.cli import app
from project_paths import ROOT

pytestmark = pytest.mark.slow

SCRIPTS = ROOT / "crates" / "drill" / "scripts"
GOOD = SCRIPTS / "growth" / "slow-start.pkt"


def drill(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["drill", *map(str, arguments)])


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """Write a script that expects a window one segment too large on line 20."""
    text = GOOD.read_text("utf-8").replace("tcpi_snd_cwnd == 20", "tcpi_snd_cwnd == 21")
    (tmp_path / "bad.pkt").write_text(text, "utf-8")
    return tmp_path / "bad.pkt"


def test_a_script_that_passes() -> None:
    result = drill(GOOD)
    assert result.exit_code == 0
    assert result.stdout == f"passed  {GOOD}\n1 passed, 0 failed\n"


def test_a_script_that_fails_tells_what_happened(bad: Path) -> None:
    result = drill(GOOD, bad)
    assert result.exit_code == 1
    assert result.stdout.endswith("1 passed, 1 failed\n")
    assert f"FAILED  {bad}:20:10: assertion failed: tcpi_snd_cwnd == 21: 20" in result.stdout
    assert "packets and calls until then:\n    0.000000 < S 0:0(0) win 65535" in result.stdout


def test_json_has_an_entry_for_each_script(bad: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing.pkt"
    result = drill("--json", GOOD, bad, missing)
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert [(o["file"], o["passed"]) for o in found] == [
        (str(GOOD), True),
        (str(bad), False),
        (str(missing), False),
    ]
    assert found[0]["message"] == ""
    assert found[2]["message"] == "no such file or directory"


def test_where_nothing_can_be_read_the_input_is_bad(tmp_path: Path) -> None:
    (tmp_path / "a.pkt").write_text("+0 < S 0:0(0) win 1 <mss 1000,wscal 7>\n", "utf-8")
    (tmp_path / "b.pkt").write_bytes(b"\xff\xfe")
    result = drill(tmp_path)
    assert result.exit_code == 2
    assert "a.pkt:1:31: unknown TCP option 'wscal'; did you mean 'wscale'?" in result.stdout
    assert "b.pkt: is not a text in UTF-8" in result.stdout
    assert "0 passed, 2 failed" in result.stdout


def test_commands_are_understood_or_refused_never_run(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    (tmp_path / "a.pkt").write_text(f"`touch {trace}`\n+0 close(3) = 0\n", "utf-8")
    result = drill(tmp_path / "a.pkt")
    assert "a.pkt:1:2: the command 'touch" in result.stdout
    assert not trace.exists()


def test_our_collection_passes_and_notices_alterations() -> None:
    result = drill("--mutate", SCRIPTS)
    assert result.exit_code == 0, result.stdout
    assert "alterations, as expected" in result.stdout


def test_profiles_differ(tmp_path: Path) -> None:
    assert drill("--profile", "linux", GOOD).exit_code == 0
    assert drill("--profile", "classic", GOOD).exit_code == 1
