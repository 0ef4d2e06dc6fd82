"""Command ``eastwest model control loop``: a scenario with and without control of its queues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from eastwest.cli.guard import fail, guarded
from eastwest.cli.numbers import seconds, table_csv
from eastwest.cli.options import JsonObjectOption, SetOption
from eastwest.cli.pictures import draw, pictured
from eastwest.cli.screen import console, headed
from eastwest.cli.simulate import overrides
from eastwest.files import write_whole
from eastwest.folders import check_folder
from eastwest.units import clean, count, percent, span


@guarded
@pictured()
def loop(
    scenario: Annotated[str, typer.Argument(help="A scenario file or a shipped scenario.")],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FOLDER", help="Folder for runs, picture and numbers."),
    ],
    set_point: Annotated[int, typer.Option(help="Set point of the queue in packets.")] = 50,
    interval: Annotated[
        str, typer.Option(metavar="TIME", help="Time between decisions, and between samples.")
    ] = "500 us",
    horizon: Annotated[
        str, typer.Option(metavar="TIME", help="Time until a decision has an effect: a round trip.")
    ] = "4.5 ms",
    proportional: Annotated[
        float, typer.Option(help="Share of marks per packet above the set point.")
    ] = 3e-5,
    integral: Annotated[
        float, typer.Option(help="Share of marks per packet above the set point, per second.")
    ] = 3e-4,
    link: Annotated[
        str | None, typer.Option(help="Link to show; default: the link with the longest queue.")
    ] = None,
    warm_up: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="Length of the warm-up: samples before this time are ignored."
        ),
    ] = "0 s",
    settings: SetOption = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of all runs.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing runs.")] = False,
    as_json: JsonObjectOption = False,
) -> None:
    """Run a scenario unchanged, with a control loop in its queues, and with a predicting loop.

    The loop keeps the queue of each port at a set point by marking a share of packets. FOLDER gets
    loop.png, loop.csv and the three runs, and with --numbers loop-picture.csv.
    docs/guide/control.md has an example.
    """
    from eastwest.models import closed_loop  # noqa: PLC0415  slow to load
    from eastwest.plot.control import loops  # noqa: PLC0415

    check_folder(out)
    interval_s, horizon_s, warm_up_s = (
        seconds(f"--{name}", text)
        for name, text in (("interval", interval), ("horizon", horizon), ("warm-up", warm_up))
    )
    if interval_s != round(interval_s * 1e6) / 1e6 or horizon_s != round(horizon_s * 1e6) / 1e6:
        fail(
            f"--interval {interval}, --horizon {horizon}: both must be whole numbers of "
            "microseconds, such as 500 us"
        )
    wanted = closed_loop.Wanted(set_point, interval_s, horizon_s, proportional, integral)
    cases = closed_loop.compare(
        scenario,
        out,
        wanted,
        settings=dict(overrides("", settings)) if settings else None,
        link=link,
        warm_up_s=warm_up_s,
        seed=seed,
        force=force,
    )
    said = [case.as_json() for case in cases]
    rows = [{**one, **{f"delay_{k}_us": v for k, v in one["delay_us"].items()}} for one in said]
    for row in rows:
        del row["delay_us"]
    write_whole(out / "loop.csv", table_csv(rows).encode())
    draw(lambda: loops(cases, wanted), out / "loop.png", out / "loop-picture.csv")
    if as_json:
        typer.echo(json.dumps({"picture": str(out / "loop.png"), "cases": said}, allow_nan=False))
        return
    _print(said, out)


def _print(said: list[dict[str, Any]], out: Path) -> None:
    screen = console(wide=True)
    table = headed("", "queue", "deviation", "empty", "delay", "p99", "foreseen", "staying",
                   "marks", "drops", left=1)  # fmt: skip
    for one in said:
        delay = one["delay_us"]
        table.add_row(
            one["name"],
            f"{one['queue']:.1f}",
            f"{one['deviation']:.1f}",
            percent(one["empty"]),
            span(delay["mean"] / 1e6),
            span(delay["p99"] / 1e6),
            f"± {one['foreseen_error']:.1f}",
            f"± {one['staying_error']:.1f}",
            count(one["marks"]),
            count(one["drops"]),
        )
    screen.print(f"{clean(said[0]['link'], 80)}", markup=False)
    screen.print(table)
    screen.print(
        "Queues are in packets. foreseen: error of the prediction one horizon ahead; staying: "
        "error of the assumption that the queue does not change."
    )
    screen.print(clean(str(out / "loop.png"), 200), markup=False)
