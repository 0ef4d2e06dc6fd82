"""Command ``eastwest bench``: measures the standard performance scenarios."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from eastwest import bench as standard
from eastwest.cli.guard import errors, guarded
from eastwest.cli.options import JsonArrayOption, SetOption
from eastwest.cli.screen import console, headed
from eastwest.cli.simulate import overrides
from eastwest.units import clean, span


@guarded
def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SCENARIO]...",
            help="Shipped scenarios (S1, S1x10, S2 …) or files; default: S1.",
        ),
    ] = None,
    settings: SetOption = None,
    threads: Annotated[
        int,
        typer.Option(
            min=1,
            max=64,
            help="Compare three runs on this number of threads with three runs on one thread, "
            "alternating; shows the medians.",
        ),
    ] = 1,
    as_json: JsonArrayOption = False,
) -> None:
    """Measure the standard performance scenarios, each in a new process."""
    overrides("", settings)
    rows: list[standard.Measurement] = []
    for name in names or ["S1"]:
        try:
            if threads == 1:
                rows.append(standard.measure(name, settings or []))
            else:
                rows += standard.compare(name, settings or [], threads)
        except standard.BenchError as error:
            lines = [clean(line, 400) for line in str(error).splitlines()[:20]]
            errors().print("\n".join([f"eastwest: {lines[0]}", *lines[1:]]), markup=False)
            raise typer.Exit(error.code) from None
    if as_json:
        typer.echo(json.dumps(rows))
        return
    _show(rows, threads)


def _show(rows: list[standard.Measurement], threads: int) -> None:
    """Print a table of measurements; for several threads, also the speed-up and notes."""
    # For several threads the wall time matters, and the row must fit the width of a terminal.
    last = "threads" if threads > 1 else "hops/CPU-s"
    headings = ("scenario", "packet-hops", "CPU", "wall", last, "memory", "digest")
    table = headed(*headings, left=1, gap=2)
    table.columns[-1].justify = "left"
    for row in rows:
        per_second = f"{row['hops_per_cpu_s'] / 1e6:.2f} M"
        table.add_row(
            clean(row["scenario"], 20),
            f"{row['packet_hops'] / 1e6:,.2f} M",
            span(row["cpu_s"]),
            span(row["wall_s"]),
            str(row["threads"]) if threads > 1 else per_second,
            f"{row['peak_rss_mb']:.0f} MB",
            clean(row["digest"])[:8],
        )
    screen = console()
    screen.print(table)
    if threads == 1:
        return
    for one, several in zip(rows[::2], rows[1::2], strict=True):
        gain = one["wall_s"] / max(several["wall_s"], 1e-9)
        said = [note for note in several["notes"] if note not in one["notes"]]
        line = f"{one['scenario']}: {gain:.2f} × on {threads} threads. {' '.join(said)}"
        screen.print(clean(line, 2000), markup=False)
