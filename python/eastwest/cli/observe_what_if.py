"""``eastwest observe what-if``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eastwest import core
from eastwest.cli.guard import fail, guarded
from eastwest.cli.observe_import import print_rows
from eastwest.cli.options import JsonObjectOption
from eastwest.cli.progress import describe
from eastwest.cli.trace_input import Steps
from eastwest.errors import FolderError
from eastwest.units import clean, percent, span

if TYPE_CHECKING:
    from eastwest.report.what_if import Shown


@guarded
def what_if(
    cases: Annotated[
        list[Path],
        typer.Argument(
            metavar="CASES…",
            help="A file of cases or a folder with what-if.toml, to run; or result folders.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FOLDER", help="Folder for the page and the runs."),
    ],
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of all runs.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace runs that are there.")] = False,
    as_json: JsonObjectOption = False,
) -> None:
    """Run the same transactions under several circumstances, and compare them on one page.

    The page, what-if.html in FOLDER, has response times, transactions per second and per watt, and
    where the time goes by service. Files in FOLDER are replaced.
    """
    from eastwest.observe import what_if as work  # noqa: PLC0415  slow to load
    from eastwest.report.page import write_text  # noqa: PLC0415
    from eastwest.report.what_if import Shown, page  # noqa: PLC0415
    from eastwest.results import load  # noqa: PLC0415

    if not out.parent.is_dir():
        raise FolderError(f"{out}: there is no folder {out.parent}")
    if out.exists() and not out.is_dir():
        raise FolderError(f"{out} is in the way: it is not a folder")
    if all((given / "summary.json").is_file() for given in cases):
        if len(cases) < 2:
            fail("CASES: a comparison takes at least two results")
        shown = [Shown(given.resolve().name, load(given)) for given in cases]
        for each in shown:
            work.check(each.result, each.name)
        title = "What if"
    else:
        if len(cases) > 1:
            fail("CASES: name one file of cases, or only result folders")
        listed = work.read_cases(cases[0])
        title = f"What if: {cases[0].resolve().name if cases[0].is_dir() else cases[0].stem}"
        with Steps("what-if") as bar:

            def told(place: int, state: core.Progress) -> None:
                bar(f"{clean(listed[place].name, 30)}: {describe(state)}", place / len(listed))

            results = work.run_cases(listed, out, seed=seed, force=force, told=told)
        shown = [Shown(case.name, result) for case, result in zip(listed, results, strict=True)]
    out.mkdir(exist_ok=True)
    write_text(out / "what-if.html", page(shown, title))
    said = _said(shown, out)
    if as_json:
        typer.echo(json.dumps(said, allow_nan=False))
        return
    print_rows(_rows(said))


def _said(shown: list[Shown], out: Path) -> dict[str, Any]:
    return {
        "page": str(out / "what-if.html"),
        "cases": [
            {
                "name": case.name,
                "result": str(case.result.path),
                "digest": case.result.digest,
                "transactions": case.result.summary["transactions"],
            }
            for case in shown
        ],
    }


def _rows(said: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for case in said["cases"]:
        found = case["transactions"]
        response, network = found["response_us"], found["network_us"]
        share = network["mean"] / response["mean"] if response["mean"] else 0.0
        yield (
            clean(case["name"], 40),
            (
                f"median {span(response['p50'] / 1e6)}, p99 {span(response['p99'] / 1e6)}, "
                f"{percent(share)} the network's; {found['per_second']:.4g} a second, "
                f"{found['per_second_per_watt']:.3g} per watt"
            ),
        )
    yield "page", clean(said["page"], 200)
