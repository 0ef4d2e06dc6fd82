"""Command ``eastwest model incast``: goodput of synchronized reads by equations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eastwest.cli.guard import fail, guarded
from eastwest.cli.numbers import CsvOption, put, quantity, seconds
from eastwest.cli.options import JsonArrayOption
from eastwest.cli.pictures import draw, pictured
from eastwest.cli.screen import console, headed
from eastwest.models import incast as equations
from eastwest.units import exact_size, rate, span

#: Default numbers of senders for which goodput is computed.
_SENDERS = "1,2,4,7,13,24,48"


@guarded
@pictured("plot")
def incast(
    block: Annotated[
        str, typer.Option(metavar="SIZE,...", help="Payload that each server sends in a round, S.")
    ] = "16 KB,32 KB,64 KB,128 KB",
    senders: Annotated[
        str, typer.Option(metavar="N,...", help="Numbers of servers, such as 1,2,48 or 1-48.")
    ] = _SENDERS,
    buffer: Annotated[
        str, typer.Option(metavar="SIZE", help="Buffer of a switch port.")
    ] = "65536 B",
    rtt: Annotated[
        str, typer.Option(metavar="TIME", help="Round-trip time without a queue.")
    ] = "1 ms",
    rto: Annotated[
        str, typer.Option(metavar="TIME", help="Minimum retransmission timeout.")
    ] = "200 ms",
    link: Annotated[
        str, typer.Option(metavar="RATE", help="Rate of the link, C, for payload.")
    ] = "1 Gbit/s",
    alpha: Annotated[
        float,
        typer.Option(help="Mean number of timeouts per round, α of equation (4); can be above 1."),
    ] = 1.0,
    csv_file: CsvOption = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw goodput against senders: .png, .svg or .pdf.")
    ] = None,
    as_json: JsonArrayOption = False,
) -> None:
    """Compute the goodput of synchronized reads by equations (1) to (4) of the incast study.

    The table has the onset of equation (3), and goodput before it (1), after it (2), and with α
    timeouts (4). docs/mechanisms/incast.md describes them.
    """
    blocks = [quantity("--block", part, "size") for part in block.split(",")]
    numbers = _numbers(senders)
    settings = {
        "rtt_s": seconds("--rtt", rtt),
        "rto_s": seconds("--rto", rto),
        "link_bps": quantity("--link", link, "rate"),
    }
    room = quantity("--buffer", buffer, "size")
    try:
        rows = [_row(n, round(bytes_), room, alpha, settings) for bytes_ in blocks for n in numbers]
    except ValueError as error:
        fail(str(error))
    if plot is not None:
        from eastwest.plot.models import goodput  # noqa: PLC0415  slow to load

        draw(lambda: goodput(rows), plot)
    used = (
        f"RTT {span(settings['rtt_s'])}, minimum timeout {span(settings['rto_s'])}, "
        f"link {rate(settings['link_bps'])}, buffer of a port {exact_size(room)}."
    )

    def show(rows: list[dict[str, float]]) -> None:
        _print(rows)
        console().print(used)

    put(rows, csv_file, as_json, show)


def _numbers(text: str) -> list[int]:
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            fail(f"--senders {text!r}: must be numbers, such as 1,2,48 or 1-48")
        if int(last or first) - int(first) > 100_000:
            fail(f"--senders {text!r}: a range may have at most 100,000 numbers")
        found += range(int(first), int(last or first) + 1)
    return found


def _row(
    senders: int, block_bytes: int, buffer_bytes: float, alpha: float, settings: dict[str, float]
) -> dict[str, float]:
    rtt_s, rto_s, link_bps = settings["rtt_s"], settings["rto_s"], settings["link_bps"]
    windows = equations.slow_start_windows(block_bytes)
    return {
        "block_bytes": block_bytes,
        "senders": senders,
        "largest_window_bytes": max(windows),
        "onset_senders": equations.onset_senders(buffer_bytes, block_bytes),
        "before_bps": equations.goodput_before(senders, block_bytes, rtt_s, link_bps),
        "after_bps": equations.goodput_after(senders, block_bytes, rto_s, rtt_s, link_bps),
        "partial_bps": equations.goodput_partial(
            senders, block_bytes, alpha, rto_s, rtt_s, link_bps
        ),
    }


def _print(rows: list[dict[str, float]]) -> None:
    headings = ["block", "window", "onset (3)", "senders", "before (1)", "after (2)"]
    columns = ["before_bps", "after_bps"]
    if any(row["partial_bps"] != row["after_bps"] for row in rows):
        headings.append("partial (4)")
        columns.append("partial_bps")
    table = headed(*headings)
    before = None
    for row in rows:
        first = row["block_bytes"] != before
        before = row["block_bytes"]
        head = (
            exact_size(before),
            f"{row['largest_window_bytes']:,.0f} B",
            f"{row['onset_senders']:.0f}",
        )
        goodput = (rate(row[name]) for name in columns)
        table.add_row(*(head if first else ("", "", "")), f"{row['senders']:.0f}", *goodput)
    console().print(table)
