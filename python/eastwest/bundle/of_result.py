"""The bundle of one result folder: all its files, a page and a picture."""

from __future__ import annotations

from pathlib import Path

from eastwest import formats
from eastwest.bundle import own_code
from eastwest.bundle.contents import Contents, inputs_in, run_of
from eastwest.errors import InputError
from eastwest.results import Result

#: Folder of the result in the bundle.
FOLDER = "result"
_CAPTURE = "capture.pcapng"
#: Files of a result folder that commands make from the other files.
_PAGES = {"report.html"}


def collect(contents: Contents, result: Result, mechanisms: list[Path], pictures: bool) -> None:
    """Add the files of a result folder and its run to a bundle."""
    summary, folder = result.summary, result.path
    tables = {f"{name}.parquet" for name in formats.TABLES}
    inputs = contents.add_inputs(FOLDER, inputs_in(folder))
    for path in sorted(folder.iterdir()):
        if path.is_symlink() and not path.is_file():
            raise InputError(f"{path} is a link that leads to no file")
        if path.name in tables or path.name == _CAPTURE:
            contents.add(f"{FOLDER}/{path.name}", path, "table")
        elif path.name not in {"scenario.toml", "summary.json", "inputs", *_PAGES}:
            contents.remarks.append(f"left out, because no run writes it: {path.name}")
    scenario, summary_path = f"{FOLDER}/scenario.toml", f"{FOLDER}/summary.json"
    contents.add(scenario, folder / "scenario.toml", "scenario")
    contents.add(summary_path, folder / "summary.json", "summary")
    own_code.add(contents, own_code.wanted([summary]), mechanisms)
    contents.runs.append(
        run_of(
            summary,
            name=contents.name,
            scenario=scenario,
            summary_path=summary_path,
            inputs=inputs,
            mechanisms=contents.mechanisms,
        )
    )
    contents.facts["pictures"] = pictures and (folder / "flows.parquet").is_file()
    if contents.facts["pictures"]:
        _draw(contents, result)


def _draw(contents: Contents, result: Result) -> None:
    """Add the page about a result and its overview picture."""
    from eastwest.plot.charts import overview  # noqa: PLC0415  slow to load
    from eastwest.plot.picture import drawn  # noqa: PLC0415
    from eastwest.plot.style import style  # noqa: PLC0415
    from eastwest.report.single import single  # noqa: PLC0415

    contents.add_text(f"{FOLDER}/report.html", single(result), "picture")
    with style():
        contents.add(f"{FOLDER}/overview.png", drawn(overview(result), ".png"), "picture")
