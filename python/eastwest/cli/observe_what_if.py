"""Command ``eastwest observe what-if``: compares cases of the same transactions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from eastwest.cli.guard import errors, fail, guarded, interrupted
from eastwest.cli.options import DaskOption, JobsOption, JsonObjectOption, RetryOption, StoreOption
from eastwest.cli.screen import print_rows
from eastwest.cli.trace_input import Steps
from eastwest.folders import check_folder
from eastwest.units import clean, count, percent, span

if TYPE_CHECKING:
    from eastwest.observe.what_if import Runs
    from eastwest.sweep import State
    from eastwest.views.what_if import Shown


@guarded
def what_if(
    cases: Annotated[
        list[Path],
        typer.Argument(
            metavar="CASES…",
            help="A file of cases or a folder with what-if.toml; or result folders to compare.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FOLDER", help="Folder for the page."),
    ],
    seeds: Annotated[
        int, typer.Option(min=1, max=100, metavar="N", help="Number of seeds: runs of each case.")
    ] = 1,
    seed: Annotated[
        int | None, typer.Option(min=0, help="The first seed; default: the scenario's.")
    ] = None,
    jobs: JobsOption = None,
    dask: DaskOption = None,
    store: StoreOption = None,
    retry: RetryOption = False,
    as_json: JsonObjectOption = False,
) -> None:
    """Run the same transactions in several cases, and compare the cases on one page.

    The page, what-if.html in FOLDER, has response times, transactions per second and per watt, and
    the critical time by service; for several seeds, it has means with 95 % intervals. Runs are kept
    in the run store and not repeated. An existing page is replaced.
    """
    from eastwest.observe.what_if import Runs  # noqa: PLC0415  slow to load
    from eastwest.report.page import write_text  # noqa: PLC0415
    from eastwest.report.what_if import page  # noqa: PLC0415

    check_folder(out)
    shown, title = _shown(cases, Runs(seeds, seed, jobs, dask, store, retry))
    out.mkdir(exist_ok=True)
    write_text(out / "what-if.html", page(shown, title))
    said = _said(shown, out)
    if as_json:
        typer.echo(json.dumps(said, allow_nan=False))
        return
    print_rows(_rows(said))


def _shown(cases: list[Path], runs: Runs) -> tuple[list[Shown], str]:
    """Return (cases with their results, title of the page).

    ``cases`` are result folders, which are loaded, or one file of cases, which are run.
    """
    from eastwest.observe import what_if as work  # noqa: PLC0415  slow to load
    from eastwest.results import load  # noqa: PLC0415
    from eastwest.views.what_if import Shown  # noqa: PLC0415

    if all((case / "summary.json").is_file() for case in cases):
        if len(cases) < 2:
            fail("CASES: one result folder is given; a comparison needs at least two")
        shown = [Shown(case.resolve().name, (load(case),)) for case in cases]
        for each in shown:
            work.check(each.results[0], each.name)
        title = "What if"
    else:
        if len(cases) > 1:
            fail("CASES: must be one file of cases, or two or more result folders")
        listed = work.read_cases(cases[0])
        title = f"What if: {cases[0].resolve().name if cases[0].is_dir() else cases[0].stem}"
        with Steps("what-if") as bar:

            def told(place: int, state: State) -> None:
                done = f"{count(state.done)}/{count(state.planned)} runs"
                share = (place + state.done / max(1, state.planned)) / len(listed)
                bar(f"{clean(listed[place].name, 30)}: {done}", share)

            try:
                results = work.run_cases(
                    listed,
                    runs,
                    told=told,
                    say=lambda line: errors().print(Text(line, style="dim")),
                )
            except KeyboardInterrupt:
                interrupted("finished runs are stored; repeat the command to continue")
        shown = [Shown(c.name, tuple(runs)) for c, runs in zip(listed, results, strict=True)]
    return shown, title


def _said(shown: list[Shown], out: Path) -> dict[str, Any]:
    from eastwest.views.what_if import intervals  # noqa: PLC0415  slow to load

    return {
        "page": str(out / "what-if.html"),
        "seeds": [result.summary["seed"] for result in shown[0].results],
        "cases": [
            {
                "name": case.name,
                "result": str(case.results[0].path),
                "digest": case.results[0].digest,
                "results": [str(result.path) for result in case.results],
                "digests": [result.digest for result in case.results],
                "transactions": case.results[0].summary["transactions"],
                "intervals": intervals(case, shown[0]),
            }
            for case in shown
        ],
    }


def _rows(said: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for case in said["cases"]:
        found = case["intervals"]
        response = {key: found[f"transactions.response_us.{key}"] for key in ("mean", "p50", "p99")}
        network = found["transactions.network_us.mean"]["mean"]
        mean = response["mean"]["mean"]
        shares = f"{percent(network / mean if mean else 0.0)} in the network"
        if queued := found["transactions.queued_us.mean"]["mean"]:
            shares += f", {percent(queued / mean)} in queues for processors"
        rate, per_watt = (
            found[f"transactions.{key}"]["mean"] for key in ("per_second", "per_second_per_watt")
        )
        yield (
            clean(case["name"], 40),
            (
                f"median {_with_interval(response['p50'])}, p99 {_with_interval(response['p99'])}, "
                f"{shares}; {rate:.4g} transactions a second, {per_watt:.3g} per watt"
            ),
        )
    if len(said["seeds"]) > 1:
        yield "", f"means of {len(said['seeds'])} seeds, ± half the width of 95 % intervals"
    yield "page", clean(said["page"], 200)


def _with_interval(found: dict[str, Any]) -> str:
    """Return a mean time as text, with ± half the width of the interval, if there is one."""
    text = span(found["mean"] / 1e6)
    if found["low"] is None:
        return text
    return f"{text} ± {span((found['high'] - found['low']) / 2e6)}"
