"""Command ``eastwest model eee``: power and waiting time of links that sleep."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich.table import Table

from eastwest.cli.guard import fail, guarded
from eastwest.cli.numbers import CsvOption, put, quantity, seconds
from eastwest.cli.options import JsonArrayOption
from eastwest.cli.pictures import draw, pictured
from eastwest.cli.screen import console, headed
from eastwest.models import eee
from eastwest.units import percent, span

Row: TypeAlias = dict[str, float | str]
_LOADS = "0.05,0.1,0.2,0.3,0.5,0.7,0.9"
_POLICIES = "legacy,standard,12us10,120us100,ideal"
#: Loads (0 to 1) of the points of a plot.
_FINE = [share / 100 for share in range(1, 100)]
#: Frame lengths in bytes for which the energy efficiency of a single frame is printed.
_FRAMES = (1500, 150)


@guarded
@pictured("plot")
def model_eee(
    phy: Annotated[str, typer.Option(help=f"Transceiver: {', '.join(eee.PHYS)}.")] = "10GBASE-T",
    load: Annotated[
        str, typer.Option(metavar="SHARE,...", help="Loads: shares of time in transmission.")
    ] = _LOADS,
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="legacy, standard, ideal, 12us10 (held 12 µs or until 10 frames wait), count:10, "
            "timer:12us, stall:50us.",
        ),
    ] = _POLICIES,
    frame: Annotated[
        str, typer.Option(metavar="SIZE", help="Length of a frame on the link, with framing.")
    ] = "1500 B",
    sleep_power: Annotated[
        float, typer.Option(help="Power asleep as a share of active power.")
    ] = 0.1,
    csv_file: CsvOption = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw power and wait against load: .png, .svg or .pdf.")
    ] = None,
    as_json: JsonArrayOption = False,
) -> None:
    """Compute power and mean wait of Energy-Efficient Ethernet under Poisson arrivals.

    docs/mechanisms/eee.md derives the equations and describes each policy.
    """
    if phy not in eee.PHYS:
        fail(f"--phy {phy!r}: must be one of {', '.join(eee.PHYS)}")
    kind = eee.PHYS[phy]
    names = [name.strip() for name in policy.split(",")]
    policies = {name: _policy(name) for name in names}
    loads = _loads(load)
    try:
        frame_s = eee.frame_time_s(kind, quantity("--frame", frame, "size"))
        rows = _rows(policies, loads, frame_s, kind, sleep_power)
        if plot is not None:
            from eastwest.plot.models import sleeping  # noqa: PLC0415  slow to load

            fine = _rows(policies, _FINE, frame_s, kind, sleep_power)
            draw(lambda: sleeping(fine, phy), plot)
    except ValueError as error:
        fail(str(error))
    put(rows, csv_file, as_json, lambda rows: _print(rows, names, kind))


def _policy(name: str) -> eee.Policy | None:
    """Return the policy of a name such as ``count:10``; None for ``legacy`` and ``ideal``.

    Exits with a message for a wrong name.
    """
    if name in ("legacy", "ideal"):
        return None
    word, _, value = name.partition(":")
    settings: dict[str, Any] = {}
    try:
        known = eee.labelled(name)
    except ValueError as error:
        fail(f"--policy {name!r}: {error}")
    if word == "count" and value.isdecimal():
        settings = {"trigger": int(value)}
    elif word == "timer" and value:
        settings = {"trigger": eee.MOST_FRAMES, "timer_s": _seconds(value)}
    elif word == "stall" and value:
        settings = {"stall_s": _seconds(value)}
    elif known is None:
        fail(
            f"--policy {name!r}: must be legacy, standard, ideal, a holding time and a count such "
            "as 12us10, count:10, timer:12us or stall:50us"
        )
    try:
        return eee.Policy(name, **settings) if settings else known
    except ValueError as error:
        fail(f"--policy {name!r}: {error}")


def _seconds(text: str) -> float:
    return seconds("--policy", re.sub(r"(?<=\d)(?=[a-z])", " ", text))


def _loads(text: str) -> list[float]:
    try:
        loads = [float(part) for part in text.split(",")]
    except ValueError:
        loads = [math.nan]
    if not all(0 < share < 1 for share in loads):
        fail(f"--load {text!r}: must be shares above 0 and below 1, such as 0.1,0.5")
    return loads


def _rows(
    policies: dict[str, eee.Policy | None],
    loads: list[float],
    frame_s: float,
    phy: eee.Phy,
    sleep_share: float,
) -> list[Row]:
    rows: list[Row] = []
    for name, policy in policies.items():
        for share in loads:
            if policy is not None:
                point = eee.under_poisson(policy, share, frame_s, phy, sleep_share)
            elif name == "ideal":
                point = eee.ideal(share, frame_s, sleep_share)
            else:
                point = eee.legacy(share, frame_s)
            values = {"power": point.power, "wait_us": point.wait_s * 1e6, "asleep": point.asleep}
            rows.append({"policy": name, "load": share, **values})
    return rows


def _print(rows: list[Row], names: list[str], phy: eee.Phy) -> None:
    screen = console()
    lone = ", ".join(f"{percent(eee.efficiency(phy, size))} for {size} B" for size in _FRAMES)
    times = f"sleeps in {span(phy.sleep_s)}, wakes in {span(phy.wake_s)}"
    screen.print(f"{phy.name}: {times}; share of energy that sends a single frame: {lone}")
    screen.print(_table("power", rows, names, lambda row: percent(float(row["power"]))))
    screen.print(_table("wait", rows, names, lambda row: span(float(row["wait_us"]) / 1e6)))
    screen.print(
        "By load: power as a share of the power of a link that never sleeps; mean wait of a frame."
    )


def _table(title: str, rows: list[Row], names: list[str], shown: Callable[[Row], str]) -> Table:
    table = headed(title, *names)
    for share in dict.fromkeys(float(row["load"]) for row in rows):
        table.add_row(percent(share), *(shown(row) for row in rows if row["load"] == share))
    return table
