"""Notebooks run, and their stored outputs equal those of a new run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import notebooks

pytestmark = pytest.mark.long

#: Maximum size of a notebook with its outputs, in bytes.
MOST_BYTES = 400_000


@pytest.mark.parametrize("path", notebooks.notebooks(), ids=lambda path: path.stem)
def test_outputs_are_stored_and_small(path: Path) -> None:
    stored = notebooks.read(path)
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [*range(1, len(code) + 1)]
    kinds = {kind for outputs in notebooks.texts(stored) for kind, _ in outputs}
    assert {"stdout", "text/plain", "text/html", "image/png"} <= kinds
    assert "stderr" not in kinds
    assert path.stat().st_size < MOST_BYTES
    assert "<script" not in path.read_text(encoding="utf-8")
    assert str(Path.home()) not in json.dumps(stored.cells)


@pytest.mark.filterwarnings("default")  # Warnings of the notebook's own packages are allowed.
@pytest.mark.parametrize("path", notebooks.notebooks(), ids=lambda path: path.stem)
def test_a_run_has_the_outputs_that_are_stored(path: Path, tmp_path: Path) -> None:
    found = notebooks.executed(path, tmp_path)
    assert notebooks.texts(found) == notebooks.texts(notebooks.read(path)), (
        "run python tools/notebooks.py"
    )
    assert (tmp_path / "results" / "first" / "summary.json").is_file()
