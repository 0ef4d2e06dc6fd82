"""``eastwest fuzz``: cases, the tally of settings, and messages about wrong input."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from eastwest import core, fuzz
from eastwest.cli import app
from eastwest.errors import InputError, MechanismError

pytestmark = pytest.mark.slow


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["fuzz", *map(str, arguments)])


def test_a_tally_adds_up_over_campaigns(tmp_path: Path) -> None:
    file = tmp_path / "tally.json"
    judged = 0
    for first in (0, 6):
        done = run(
            "--cases", 6, "--first", first, "--tally", file, "--out", tmp_path / "f", "--json"
        )
        assert done.exit_code == 0, done.output
        judged += json.loads(done.stdout)["cases"]
    tally = fuzz.load(file)
    assert tally.cases == judged > 6
    assert [each["first"] for each in tally.campaigns] == [0, 6]
    # Each case has some thousand pairs of settings.
    assert sum(tried for tried, _ in tally.pairs.values()) > 1000 * judged


def test_a_compressed_tally_is_read_and_its_size_is_bounded(tmp_path: Path) -> None:
    levels = fuzz.levels()
    plain, packed = tmp_path / "tally.json", tmp_path / "tally.json.gz"
    for path in (plain, packed):
        fuzz.save(fuzz.Tally(cases=3), levels, path)
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert fuzz.load(packed) == fuzz.load(plain)
    whole = packed.read_bytes()
    for content, message in (
        (whole[: len(whole) // 2], "is not a tally"),
        (b"{}", "is not a tally"),
        (gzip.compress(b" " * (fuzz.MOST_BYTES + 1)), "has more than"),
    ):
        packed.write_bytes(content)
        with pytest.raises(InputError, match=message):
            fuzz.load(packed)


@pytest.mark.parametrize("held", ["", "[]", "{}", '{"format": 1}', '{"format": 1, "levels": 3}'])
def test_a_damaged_tally_is_refused(tmp_path: Path, held: str) -> None:
    file = tmp_path / "tally.json"
    file.write_text(held)
    done = run("--cases", 1, "--tally", file)
    assert done.exit_code == 2, done.output
    assert "tally" in done.output
    assert file.read_text() == held


def test_a_setting_that_each_case_is_to_have_must_exist(tmp_path: Path) -> None:
    done = run("--cases", 1, "--have", "fabric.pcf", "--out", tmp_path)
    assert done.exit_code == 2 and "did you mean fabric.pfc?" in done.output
    done = run("--cases", 1, "--have", "fabric.queue.kind=rad", "--out", tmp_path)
    assert done.exit_code == 2 and "adaptive-red" in done.output


def test_each_case_that_may_have_failed_has_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*arguments: Any) -> None:
        raise MechanismError("Faulty failed")

    monkeypatch.setattr(core, "fuzz", failing)
    watchdog = fuzz.Watchdog(lambda done, failed: None, 7, {5: 0.0, 3: 0.0})
    with pytest.raises(MechanismError) as error:
        fuzz._judged(watchdog)
    again = "eastwest fuzz --seed 7 --first {} --cases 1"
    commands = f"{again.format(3)}; {again.format(5)}"
    assert str(error.value) == f"Faulty failed (one of the cases 3, 5: {commands})"
