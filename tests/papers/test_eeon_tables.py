"""papers/eeon_ch6/tables.py: the pages of chapters 5 and 6 have the numbers of stored results."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from eastwest.claims.record import read
from eastwest.claims.spec import load
from eastwest.claims.tables import filled
from project_paths import PAPERS

pytestmark = pytest.mark.long

GRID = """
[all]
scenario = "tiny.toml"
seeds = 1
[plain]
set = { "tcp.initial_window" = 10 }
"""
SCENARIO = """
schema = 1
[fabric]
kind = "star"
hosts = 2
host_rate = "1 Gbit/s"
[[workload]]
name = "one"
kind = "flows"
flow = [{ from = "h0", to = "h1", size = "1 MB", start = "0 s" }]
"""
CLAIM = """
claim = 1
id = "eeon/A1"
source = "x"
statement = "y"
published = "10 | 20"
profile = "plain"
grid = "../grid.toml"
[[open]]
what = "w"
chosen = "c"
because = "b"
[[metric]]
name = "first"
runs = "plain"
measure = "mean"
value = "flows.fct_us.mean"
at = { "tcp.initial_window" = 10 }
low = 1
[[metric]]
name = "second"
runs = "plain"
measure = "mean"
value = "flows.fct_us.mean"
at = { "tcp.initial_window" = 10 }
high = 1
"""


def _module() -> ModuleType:
    path = PAPERS / "eeon_ch6" / "tables.py"
    spec = importlib.util.spec_from_file_location("eeon_tables", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["eeon_tables"] = module
    spec.loader.exec_module(module)
    return module


TABLES = _module()


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Write a study with a claim, no profiles and no results."""
    folder = tmp_path / "papers" / "tiny"
    (folder / "claims").mkdir(parents=True)
    (folder / "tiny.toml").write_text(SCENARIO)
    (folder / "grid.toml").write_text(GRID)
    (folder / "claims" / "A1.toml").write_text(CLAIM)
    return folder


def _keep(study: Path, **changes: Any) -> None:
    """Store a result of the claim for its current file."""
    claim = load(study / "claims" / "A1.toml")
    band: dict[str, Any] = {"low": None, "high": None}
    parts = [
        {"name": "first", "measured": "5 %", "verdict": "holds", "band": band},
        {"name": "second", "measured": "7 %", "verdict": "differs", "band": band},
    ]
    content = {"format": 1, "id": "eeon/A1", "verdict": "differs", "metrics": parts}
    content |= {"claim_sha256": claim.digest, "explained_sha256": claim.explained_digest}
    content |= {"run_seeds": dict.fromkeys(claim.runs, 9), **changes}
    (study / "results").mkdir(exist_ok=True)
    (study / "results" / "A1.json").write_text(json.dumps(content))
    assert read(claim).content is not None


def test_the_pages_are_those_of_the_kept_results() -> None:
    for folder in (TABLES.CHAPTER5, TABLES.HERE):
        text = (folder / "README.md").read_text(encoding="utf-8")
        command = "python papers/eeon_ch6/tables.py"
        assert filled(text, TABLES.tables_of(folder)) == text, f"stale: {command}"


def test_what_lies_outside_its_band_is_marked(study: Path) -> None:
    _keep(study)
    head, rule, row = TABLES.claims(study)
    assert head == "| claim | published | the study's TCP | |"
    assert rule.count("|") == head.count("|") == 5
    assert row == r"| `A1` | 10 \| 20 | first 5 %; second 7 % ✗ | differs |"


def test_a_result_of_a_claim_that_has_changed_is_not_shown(study: Path) -> None:
    _keep(study, claim_sha256="of an older file")
    *_, row = TABLES.claims(study)
    assert row.endswith("|  | not run |")


def test_a_page_without_a_place_for_a_table_is_told_of() -> None:
    text = "a\n<!-- table of x -->\nold\n<!-- end of x -->\nb\n"
    assert filled(text, {"x": ["| new |"]}) == (
        "a\n<!-- table of x -->\n\n| new |\n\n<!-- end of x -->\nb\n"
    )
    with pytest.raises(ValueError, match="0 pairs of marks for the table of y"):
        filled(text, {"y": []})
