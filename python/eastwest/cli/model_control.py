"""Commands ``eastwest model control``: equilibria and stability of control loops of networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from eastwest.models import delay
from eastwest.models.qcn import Qcn
from eastwest.models.tcp_dctcp import Dctcp
from eastwest.models.tcp_red import Red, TcpRed

Row = dict[str, Any]
_MOST_POINTS = 5000
_ROUND_TRIP = ("delay: round-trip time without a queue.",)
_FEEDBACK = ("delay: time from the queue to the sources, and back to the queue.",)
_MARGINS = (
    "gain margin, phase margin: distance from oscillation, negative for an unstable loop; –: none.",
    "period: period of the oscillation at the limit of stability, with a gain margin of 0 dB.",
)
_CYCLE = (
    "empty: share of the cycle in which the queue is empty.",
    "period: period of the limit cycle, which exists with any step marking.",
)

FlowsOption = Annotated[str, typer.Option(metavar="N,...", help="Numbers of flows, such as 2,8.")]
DelayOption = Annotated[
    str, typer.Option(metavar="TIME,...", help="Round-trip times without a queue.")
]
FeedbackOption = Annotated[
    str, typer.Option(metavar="TIME,...", help="Delays until feedback has an effect at the queue.")
]
CapacityOption = Annotated[str, typer.Option(metavar="RATE,...", help="Rates of the link.")]
PlotOption = Annotated[
    Path | None, typer.Option(help="Draw margins, or cycles, over the points: .png, .svg or .pdf.")
]
ResponseOption = Annotated[
    Path | None, typer.Option(help="Draw the queue over time at the first point.")
]


@guarded
@pictured("plot", "response")
def red(
    flows: FlowsOption = "8,16,32",
    delays: DelayOption = "500 us,1 ms,2 ms,4 ms",
    capacity: CapacityOption = "1 Gbit/s",
    least: Annotated[float, typer.Option("--min", help="RED's min in packets.")] = 30,
    most: Annotated[float, typer.Option("--max", help="RED's max in packets.")] = 330,
    probability: Annotated[
        float, typer.Option("--max-probability", help="RED's max_probability.")
    ] = 0.1,
    weight: Annotated[float, typer.Option(help="Weight of RED's moving average.")] = 0.002,
    even: Annotated[
        bool,
        typer.Option(help="Uniform gaps between marks, as in scenarios: twice as many marks."),
    ] = False,
    frame: FrameOption = "1538 B",
    csv_file: CsvOption = None,
    plot: PlotOption = None,
    response: ResponseOption = None,
    as_json: JsonArrayOption = False,
) -> None:
    """Compute the equilibrium and stability of TCP at a RED queue (Misra 2000; Hollot 2001).

    docs/mechanisms/control.md has the equations.
    """

    def model(n: float, capacity_pps: float, base_s: float) -> TcpRed:
        return TcpRed(n, capacity_pps, base_s, Red(least, most, probability, weight, True, even))

    def row(n: float, capacity_pps: float, base_s: float) -> Row:
        one = model(n, capacity_pps, base_s)
        queue, window, mark, rtt_s = one.equilibrium()
        found = {"queue": queue, "window": window, "marked": mark, "rtt_us": rtt_s * 1e6}
        return found | _margins(one.linear())

    def over_time(n: float, capacity_pps: float, base_s: float) -> Any:
        from eastwest.plot.control import loop_response  # noqa: PLC0415  slow to load

        one = model(n, capacity_pps, base_s)
        _, _, _, rtt_s = one.equilibrium()
        return loop_response("TCP at RED", one.linear(), one.play(min(300 * rtt_s, 60.0)))

    points = _points(flows, delays, capacity, frame)
    Loop("TCP at RED", points, row, over_time, _ROUND_TRIP + _MARGINS).put(
        csv_file, plot, response, as_json
    )


@guarded
@pictured("plot", "response")
def dctcp(
    flows: FlowsOption = "2,8,32",
    delays: DelayOption = "100 us",
    capacity: CapacityOption = "10 Gbit/s",
    threshold: Annotated[
        float, typer.Option(help="Queue length in packets above which all packets are marked.")
    ] = 65,
    gain: Annotated[
        float, typer.Option(help="Gain g of the moving average of the share of marks.")
    ] = 1 / 16,
    frame: FrameOption = "1538 B",
    csv_file: CsvOption = None,
    plot: PlotOption = None,
    response: ResponseOption = None,
    as_json: JsonArrayOption = False,
) -> None:
    """Compute the limit cycle of DCTCP with step marking (Alizadeh et al. 2011).

    docs/mechanisms/control.md has the equations.
    """

    def row(n: float, capacity_pps: float, base_s: float) -> Row:
        model = Dctcp(n, capacity_pps, base_s, threshold, gain)
        window, mark = model.equilibrium()
        cycle, (amplitude, _) = model.cycle(), model.described()
        return {
            "queue": cycle.mean,
            "window": window,
            "marked": mark,
            "lowest": cycle.least,
            "highest": cycle.most,
            "amplitude": cycle.amplitude,
            "amplitude_described": amplitude,
            "period_us": cycle.period_s * 1e6,
            "empty": cycle.empty,
        }

    def over_time(n: float, capacity_pps: float, base_s: float) -> Any:
        from eastwest.plot.control import cycle_over_time  # noqa: PLC0415  slow to load

        one = Dctcp(n, capacity_pps, base_s, threshold, gain)
        return cycle_over_time(one.play(300 * one.rtt_s), threshold, one.rtt_s)

    points = _points(flows, delays, capacity, frame)
    Loop("DCTCP", points, row, over_time, _ROUND_TRIP + _CYCLE).put(
        csv_file, plot, response, as_json
    )


@guarded
@pictured("plot", "response")
def qcn(
    flows: FlowsOption = "2,10,50",
    delays: FeedbackOption = "50 us,100 us,200 us,400 us",
    capacity: CapacityOption = "10 Gbit/s",
    set_point: Annotated[float, typer.Option(help="Q_eq in packets.")] = 22,
    weight: Annotated[float, typer.Option(help="Weight W_d of the queue's change.")] = 2,
    gain: Annotated[float, typer.Option(help="Gain G_d of each of the 64 levels.")] = 1 / 128,
    frame: FrameOption = "1500 B",
    csv_file: CsvOption = None,
    plot: PlotOption = None,
    response: ResponseOption = None,
    as_json: JsonArrayOption = False,
) -> None:
    """Compute equilibrium and stability of QCN (802.1Qau; Alizadeh 2008) in state-space form.

    docs/mechanisms/control.md has the equations.
    """

    def row(n: float, capacity_pps: float, delay_s: float) -> Row:
        model = Qcn(n, capacity_pps, delay_s, set_point, weight, gain)
        queue, current, target = model.equilibrium()
        return {
            "queue": queue,
            "rate_pps": current,
            "target_pps": target,
            **_margins(model.linear()),
        }

    def over_time(n: float, capacity_pps: float, delay_s: float) -> Any:
        from eastwest.plot.control import loop_response  # noqa: PLC0415  slow to load

        one = Qcn(n, capacity_pps, delay_s, set_point, weight, gain)
        return loop_response("QCN", one.linear(), one.play(0.05))

    points = _points(flows, delays, capacity, frame)
    Loop("QCN", points, row, over_time, _FEEDBACK + _MARGINS).put(csv_file, plot, response, as_json)


def _margins(loop: delay.Linear) -> Row:
    found = delay.margins(loop)
    period_us = 2e6 * math.pi / found.critical if found.critical > 0 else None
    return {
        "stable": found.stable,
        "gain_margin_db": found.gain_db if math.isfinite(found.gain_db) else None,
        "phase_margin_deg": found.phase_deg if math.isfinite(found.phase_deg) else None,
        "period_us": period_us,
    }


Point = tuple[float, float, float]


def _points(flows: str, delays: str, capacity: str, frame: str) -> list[Point]:
    """Return (flows, link rate in packets/s, delay in s) for all combinations of the options."""
    frame_bytes = quantity("--frame", frame, "size")
    numbers, times = several("--flows", flows), several_seconds("--delays", delays)
    rates = [quantity("--capacity", part, "rate") for part in capacity.split(",")]
    if not frame_bytes > 0:
        fail(f"--frame {frame!r:.60}: must be a size above 0, such as 1500 B")
    found = [(n, c / 8 / frame_bytes, t) for c in rates for t in times for n in numbers]
    if len(found) > _MOST_POINTS:
        fail(
            f"--flows, --delays and --capacity have {len(found):,} combinations; at most "
            f"{_MOST_POINTS:,} are allowed"
        )
    return found


def _rows(points: Sequence[Point], row: Callable[[float, float, float], Row]) -> list[Row]:
    """Return the rows of all points; print a message for each point without an equilibrium.

    ``row`` computes the row of a point. Exits with a message if no point has an equilibrium.
    """
    rows = []
    refused = []
    for n, capacity_pps, seconds in points:
        head = {"flows": n, "capacity_pps": capacity_pps, "delay_us": seconds * 1e6}
        try:
            rows.append(head | row(n, capacity_pps, seconds))
        except ValueError as error:
            refused.append(str(error))
    if not rows:
        fail(refused[0])
    for line in dict.fromkeys(refused):
        typer.echo(f"points left out: {line}", err=True)
    return rows


@dataclass(frozen=True)
class Loop:
    """Model of a control loop at all points of a ``model control`` command.

    A point is (flows, link rate in packets/s, delay in s); ``row`` computes the numbers of a point.
    """

    title: str
    points: list[Point]
    row: Callable[[float, float, float], Row]
    #: Function that returns the figure of the queue over time at a point.
    over_time: Callable[[float, float, float], Any]
    #: Lines below the printed table, which explain its columns.
    legend: Sequence[str]

    def put(
        self, csv_file: Path | None, plot: Path | None, response: Path | None, as_json: bool
    ) -> None:
        """Print the numbers of all points, and write the files that the options name.

        ``plot`` is the file for the figure over all points, ``response`` the file for the figure of
        the queue over time at the first point.
        """
        rows = _rows(self.points, self.row)
        if plot is not None:
            from eastwest.plot.control import over_points  # noqa: PLC0415  slow to load

            draw(lambda: over_points(self.title, rows), plot)
        put(rows, csv_file, as_json, self._print)
        if response is not None:
            draw(lambda: self.over_time(*self.points[0]), response)

    def _print(self, rows: list[Row]) -> None:
        screen = console(wide=True)
        screen.print(table_of(rows))
        for line in ("Queues and windows are in packets.", *self.legend):
            screen.print(line)
