"""Commands ``eastwest model control hinf`` and ``horizon``: synthesised controllers of queues."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from eastwest.cli.guard import fail, guarded
from eastwest.cli.numbers import (
    CsvOption,
    FrameOption,
    put,
    quantity,
    several,
    several_seconds,
    table_of,
)
from eastwest.cli.options import JsonArrayOption
from eastwest.cli.pictures import draw, pictured
from eastwest.cli.screen import console
from eastwest.units import span

Row = dict[str, Any]

CapacityOption = Annotated[str, typer.Option(metavar="RATE", help="Rate of the link.")]
SetPointOption = Annotated[float, typer.Option(help="Set point of the queue in packets.")]


@guarded
def hinf(
    flows: Annotated[str, typer.Option(metavar="N,...", help="Numbers of flows.")] = "2,8,32",
    delays: Annotated[
        str, typer.Option(metavar="TIME,...", help="Round-trip times without a queue.")
    ] = "500 us,4 ms",
    capacity: CapacityOption = "1 Gbit/s",
    set_point: SetPointOption = 50,
    bandwidth: Annotated[
        float, typer.Option(help="Bandwidth of the loop times the round-trip time.")
    ] = 0.1,
    effort: Annotated[float, typer.Option(help="Weight of the share of marks.")] = 1.0,
    load: Annotated[float, typer.Option(help="Weight of load at the queue.")] = 1.0,
    drift: Annotated[float, typer.Option(help="Weight of a disturbance of the marks.")] = 1.0,
    noise: Annotated[float, typer.Option(help="Weight of the error of the sensor.")] = 1.0,
    order: Annotated[
        int, typer.Option(min=1, max=8, help="Order of the Padé approximation of a delay.")
    ] = 4,
    frame: FrameOption = "1538 B",
    csv_file: CsvOption = None,
    as_json: JsonArrayOption = False,
) -> None:
    """Compute H-infinity controllers of the share of marks at a queue of TCP flows.

    For each number of flows and each round-trip time: the least γ, and the stability and margins of
    the loop with the exact delay. Needs the extra 'control'. docs/mechanisms/control.md has the
    equations.
    """
    from eastwest.models import hinf as synthesis  # noqa: PLC0415  slow to load
    from eastwest.models.tcp_marked import TcpMarked  # noqa: PLC0415

    weights = synthesis.Weights(bandwidth, effort, load, drift, noise)
    capacity_pps = _capacity(capacity, frame)
    rows: list[Row] = []
    for base_s in several_seconds("--delays", delays):
        for number in several("--flows", flows):
            try:
                plant = TcpMarked(number, capacity_pps, base_s, set_point)
            except ValueError as error:
                fail(str(error))
            found = synthesis.synthesise(plant.linear(), plant.scales(), weights, order)
            rows.append({
                "flows": number,
                "delay_us": base_s * 1e6,
                "window": plant.window,
                "marked": plant.share,
                "gamma": found.gamma,
                "norm": found.norm,
                "order": found.controller.order,
                "stable": found.stable,
                "settles_us": -1e6 / found.rightmost if found.stable else None,
                "sensitivity": found.peak,
                "gain_margin_db": found.gain_db if math.isfinite(found.gain_db) else None,
                "phase_margin_deg": found.phase_deg if math.isfinite(found.phase_deg) else None,
            })  # fmt: skip
    put(rows, csv_file, as_json, _print_syntheses)


def _print_syntheses(rows: list[Row]) -> None:
    console(wide=True).print(table_of(rows))
    typer.echo(
        "γ: the least H-infinity norm; norm: the norm of the loop with this controller. settles:"
    )
    typer.echo("time constant of the slowest root. sensitivity: peak, with the exact delay.")


@guarded
@pictured("plot")
def horizon(
    delays: Annotated[
        str, typer.Option(metavar="TIME,...", help="Delay from each source to the queue.")
    ] = "1 ms,2 ms",
    told: Annotated[
        str, typer.Option(metavar="TIME", help="Delay from a decision to the sources.")
    ] = "1 ms",
    sensed: Annotated[
        str, typer.Option(metavar="TIME", help="Delay from the queue to the decision unit.")
    ] = "500 us",
    capacity: CapacityOption = "1 Gbit/s",
    set_point: SetPointOption = 50,
    room: Annotated[float, typer.Option(help="Maximum number of packets in the queue.")] = 500,
    interval: Annotated[
        str, typer.Option(metavar="TIME", help="Time between decisions.")
    ] = "500 us",
    covers: Annotated[
        float, typer.Option(help="Length of the horizon, as a multiple of the delay of the loop.")
    ] = 4.0,
    changing: Annotated[float, typer.Option(help="Weight of changes of the rates.")] = 1.0,
    load: Annotated[
        float, typer.Option(help="Additional load of the link, as a share of its rate.")
    ] = 0.3,
    begin: Annotated[
        str, typer.Option(metavar="TIME", help="Start of the additional load.")
    ] = "100 ms",
    end: Annotated[
        str, typer.Option(metavar="TIME", help="End of the additional load.")
    ] = "200 ms",
    duration: Annotated[str, typer.Option(metavar="TIME", help="End of the model.")] = "300 ms",
    frame: FrameOption = "1538 B",
    csv_file: CsvOption = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw queue and rates over time: .png, .svg or .pdf.")
    ] = None,
    as_json: JsonArrayOption = False,
) -> None:
    """Compute receding-horizon control of flow rates at a queue, with and without declared load.

    The load begins and ends at known times. The loop runs twice: once these times are declared to
    the controller in advance, once the controller sees only the effect of the load. Needs the extra
    'control'.
    docs/mechanisms/control.md has the equations.
    """
    from eastwest.models.horizon import Costs, RecedingHorizon  # noqa: PLC0415  slow to load
    from eastwest.models.horizon import horizon as length  # noqa: PLC0415
    from eastwest.models.network import Flow, Load, Network, Queue, play  # noqa: PLC0415

    capacity_pps = _capacity(capacity, frame)
    told_s, sensed_s, interval_s, begin_s, end_s, duration_s = (
        several_seconds(f"--{name}", text)[0]
        for name, text in (("told", told), ("sensed", sensed), ("interval", interval),
                           ("begin", begin), ("end", end), ("duration", duration))
    )  # fmt: skip
    if not 0 <= load <= 1:
        fail(f"--load {load:g}: must be from 0 to 1")
    if not (math.isfinite(covers) and covers >= 2):
        fail(f"--covers {covers:g}: must be 2 or more")
    if not begin_s < end_s <= duration_s:
        fail(
            f"--begin {begin}, --end {end}, --duration {duration}: "
            "--begin must be less than --end, and --end at most --duration"
        )
    sources = tuple(
        Flow(f"flow {number}", ("queue",), (delay_s,), told_s)
        for number, delay_s in enumerate(several_seconds("--delays", delays), 1)
    )
    besides = Load("queue", load * capacity_pps, begin_s, end_s, declared=True)
    queue = Queue("queue", capacity_pps, set_point, room, sensed_s)
    network = Network((queue,), sources, interval_s, (besides,))
    steps, late_s = length(network.loop_s(), interval_s, covers)
    played = {
        name: play(
            network,
            RecedingHorizon(network, steps, Costs(changing=changing), declared=declared),
            duration_s,
        )
        for name, declared in (("not declared", False), ("declared", True))
    }
    rows: list[Row] = []
    for name, one in played.items():
        # The queue fills at the beginning: the first horizon is left out of the numbers.
        late = one.times_s >= min(steps * interval_s, begin_s)
        rows.append({
            "load": name,
            "queue": float(one.queues[late].mean()),
            "deviation": float(one.queues[late].std()),
            "highest": float(one.queues[late].max()),
            "idle": float(one.idle[late].mean()),
            "lost": float(one.lost[late].sum()),
        })  # fmt: skip
    if plot is not None:
        from eastwest.plot.control import horizons  # noqa: PLC0415  slow to load

        draw(lambda: horizons(network, played), plot)
    told_of = f"{steps} intervals, {covers:g} times {span(late_s)}"
    put(rows, csv_file, as_json, lambda rows: _print_horizons(rows, told_of))


def _print_horizons(rows: list[Row], length: str) -> None:
    console(wide=True).print(table_of(rows))
    typer.echo(f"Queues are in packets. Horizon: {length}, the delay of the loop.")


def _capacity(capacity: str, frame: str) -> float:
    """Return the link rate in packets per second, from ``--capacity`` and ``--frame``."""
    frame_bytes = quantity("--frame", frame, "size")
    rate_bps = quantity("--capacity", capacity, "rate")
    if not (frame_bytes > 0 and rate_bps > 0):
        fail(
            f"--capacity {capacity}, --frame {frame}: both must be above 0, such as 1 Gbit/s and "
            "1538 B"
        )
    return rate_bps / 8 / frame_bytes
