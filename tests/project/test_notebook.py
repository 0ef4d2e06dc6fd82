"""The notebook runs, and stands in the repository without what a run leaves in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from project_paths import ROOT

pytestmark = pytest.mark.slow

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def read(path: Path) -> Any:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    return notebook


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stripped(path: Path) -> None:
    for cell in read(path).cells:
        assert not cell.get("outputs"), cell.id
        assert cell.get("execution_count") is None, cell.id


@pytest.mark.filterwarnings("default")  # of the notebook's own machinery
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EASTWEST_STORE", str(tmp_path / "store"))
    for variable in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    notebook = read(path)
    NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()
    shown = {
        kind
        for cell in notebook.cells
        for o in cell.get("outputs", [])
        for kind in o.get("data", {})
    }
    assert {"image/png", "text/html", "text/plain"} <= shown
    assert (tmp_path / "results" / "first" / "summary.json").is_file()
