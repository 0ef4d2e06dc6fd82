"""Runs the notebooks of the repository and stores their outputs in them.

``python tools/notebooks.py`` runs all notebooks below notebooks/, each in an empty folder with a
store of its own; the arguments are notebooks. tests/project/test_notebook.py compares the outputs
of a new run with the stored outputs.
"""

from __future__ import annotations

import base64
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from eastwest.plot.picture import with_palette

ROOT = Path(__file__).resolve().parents[1]
#: Variables that name folders of IPython and Jupyter; a run sets them to the temporary folder.
_OWN = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR")
_PNG = "image/png"


def notebooks() -> list[Path]:
    """Return the notebooks of the repository."""
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


def read(path: Path) -> Any:
    """Return the notebook of a file; raise an error if the notebook is not valid."""
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    return notebook


def executed(path: Path, folder: Path) -> Any:
    """Return a notebook with the outputs of a run in ``folder``."""
    notebook = read(path)
    for cell in notebook.cells:
        cell.get("metadata", {}).clear()
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    with _environment({name: str(folder / name) for name in (*_OWN, "EASTWEST_STORE")}):
        NotebookClient(
            notebook,
            timeout=300,
            kernel_name="python3",
            record_timing=False,
            resources={"metadata": {"path": str(folder)}},
        ).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [tidy(output) for output in cell.outputs if not _is_empty(output)]
    # Python's version and similar values differ between machines, so they are removed.
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set variables of the environment, which the kernel inherits, within the context."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _is_empty(output: Any) -> bool:
    """Return whether an output is a progress bar, which is removed at the end of its run."""
    is_shown = output.output_type == "display_data"
    return bool(is_shown and output.data.get("text/html") == "")


def tidy(output: Any) -> Any:
    """Return an output with smaller pictures, and without data that change from run to run."""
    if output.output_type in {"display_data", "execute_result"}:
        output.metadata = {}
        if _PNG in output.data:
            small = with_palette(base64.b64decode(output.data[_PNG]))
            output.data[_PNG] = base64.b64encode(small).decode()
    return output


def texts(notebook: Any) -> list[list[tuple[str, str]]]:
    """Return the outputs of each code cell as (type, text), in order; pictures have no text."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            found.append([pair for output in cell.outputs for pair in _texts(output)])
    return found


def _texts(output: Any) -> Iterator[tuple[str, str]]:
    if output.output_type == "stream":
        yield output.name, output.text
    for kind, content in sorted(output.get("data", {}).items()):
        yield kind, "" if kind == _PNG else content


def main() -> None:
    """Run the notebooks named on the command line, or all, and store their outputs."""
    for path in [Path(name) for name in sys.argv[1:]] or notebooks():
        with tempfile.TemporaryDirectory(prefix="eastwest-notebook-") as folder:
            notebook = executed(path.resolve(), Path(folder))
        text = nbformat.writes(notebook)  # type: ignore[no-untyped-call]
        path.write_text(text.rstrip("\n") + "\n", "utf-8")


if __name__ == "__main__":
    main()
