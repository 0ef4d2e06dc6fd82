"""Command ``eastwest bench``: measures the standard performance scenarios."""

from __future__ import annotations

import contextlib
import json
import statistics
from collections.abc import Iterator
from typing import Annotated

import typer

from eastwest import bench as standard
from eastwest import peers
from eastwest.cli.guard import errors, fail, guarded
from eastwest.cli.options import SetOption
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
            help="Compare runs on this number of threads with runs on one thread, alternating; "
            "shows the medians.",
        ),
    ] = 1,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PROGRAM",
            help="Compare with another program, which simulates an equal load: its name, and its "
            "command line, which is run without a shell; may be repeated.",
        ),
    ] = None,
    counting: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PROGRAM",
            help="Run this command once before; it prints hops=N, the packet-hops of the program "
            "NAME of --against. For programs that are slower when they count.",
        ),
    ] = None,
    rounds: Annotated[
        int,
        typer.Option(
            min=1,
            max=peers.MOST_ROUNDS,
            help="Rounds of --against or --threads: in each, every program, or every number of "
            "threads, runs once.",
        ),
    ] = 3,
    limit_s: Annotated[
        float,
        typer.Option(
            min=1, max=1e6, help="Wall time in s after which a run of --against is stopped."
        ),
    ] = peers.LIMIT_S,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print one JSON array, or with --against one JSON object, and nothing else.",
        ),
    ] = False,
) -> None:
    """Measure the standard performance scenarios, each in a new process.

    With --against, compare the speed of Eastwest with other simulators.
    """
    overrides("", settings)
    if against or counting:
        if threads > 1 or len(names or []) > 1:
            fail("--against compares one scenario on one thread")
        with _told():
            _compare(
                (names or ["S1"])[0], settings or [], against, counting, rounds, limit_s, as_json
            )
        return
    rows: list[standard.Measurement] = []
    for name in names or ["S1"]:
        with _told():
            if threads == 1:
                rows.append(standard.measure(name, settings or []))
            else:
                rows += standard.compare(name, settings or [], threads, rounds)
    if as_json:
        typer.echo(json.dumps(rows))
        return
    _show(rows, threads)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Print the message of a ``BenchError``, and exit with its code."""
    try:
        yield
    except standard.BenchError as error:
        lines = [clean(line, 400) for line in str(error).splitlines()[:20]]
        errors().print("\n".join([f"eastwest: {lines[0]}", *lines[1:]]), markup=False)
        raise typer.Exit(error.code) from None


def _compare(
    name: str,
    settings: list[str],
    against: list[str] | None,
    counting: list[str] | None,
    rounds: int,
    limit_s: float,
    as_json: bool,
) -> None:
    """Compare Eastwest with other programs, and print the ratios."""
    found = peers.compare(
        name,
        settings,
        [peers.Peer.read(each) for each in against or []],
        counting=[peers.Peer.read(each, "--counting") for each in counting or []],
        rounds=rounds,
        limit_s=limit_s,
        say=lambda line: errors().print(clean(line, 200), markup=False),
    )
    if as_json:
        typer.echo(json.dumps(peers.record(found, settings), ensure_ascii=False))
        return
    headings = ("against", "Eastwest", "the other", "times as fast", "whole process")
    table = headed(*headings, left=1, gap=2)
    for each in found:
        whole = not each.separates
        rates = [statistics.median(each.rates(which, whole)) / 1e6 for which in (0, 1)]
        table.add_row(
            clean(each.peer.name, 24),
            *(f"{rate:.3g} M" for rate in rates),
            "" if whole else _spread(each.ratios(whole)),
            _spread(each.ratios(whole=True)),
        )
    screen = console()
    screen.print(table)
    screen.print(
        "Packet-hops per second of CPU time: medians; ratios: median (least–greatest).",
        markup=False,
    )
    for line in dict.fromkeys(line for each in found for line in peers.sentences(each)):
        screen.print(line, markup=False)


def _spread(ratios: dict[str, float]) -> str:
    """Return median, least and greatest ratio as text."""
    return f"{ratios['median']:.3g} ({ratios['min']:.3g}–{ratios['max']:.3g})"


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
