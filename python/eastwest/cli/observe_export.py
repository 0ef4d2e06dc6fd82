"""Commands ``eastwest observe export`` and ``serve``: a run's metrics for monitoring systems."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

from eastwest.cli.guard import errors, fail, guarded
from eastwest.files import write_whole
from eastwest.results import load
from eastwest.units import span


@guarded
def export(
    result: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="A result folder; with --spans also imported spans."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write, such as run.om.")],
    start: Annotated[
        float | None,
        typer.Option(
            help="Start of the run in seconds since 1970; default: 0, with --spans the year 2020."
        ),
    ] = None,
    spans: Annotated[
        bool,
        typer.Option(
            "--spans", help="Write the run's transactions as OTLP in JSON, one document per line."
        ),
    ] = False,
) -> None:
    """Write a run's metrics over time as OpenMetrics text, or its transactions as spans.

    Imported spans are written as their source had them, with links, events and scopes.

    `promtool tsdb create-blocks-from openmetrics FILE DIR` converts the metrics to storage of
    Prometheus; receivers of OpenTelemetry's OTLP can read the spans.
    """
    from eastwest.observe import (  # noqa: PLC0415  slow to load
        openmetrics,
        otlp_spans,
        otlp_write,
        run_metrics,
    )
    from eastwest.observe.form import ABOUT  # noqa: PLC0415
    from eastwest.observe.load import open_spans  # noqa: PLC0415

    if start is not None and not (math.isfinite(start) and abs(start) < 1e11):
        fail(f"--start {start}: must be a time in seconds since 1970, from -1e11 to 1e11")
    if spans and (result / ABOUT).is_file():
        if start is not None:
            fail("--start cannot be used with imported spans: they have recorded times")
        with open_spans(result) as opened:
            write_whole(out, "".join(otlp_spans.lines(opened)).encode())
        return
    run = load(result)
    if spans:
        began = otlp_write.BEGAN_S if start is None else start
        if not otlp_write.EARLIEST_S <= began <= otlp_write.LATEST_S:
            fail(f"--start {start}: must be a time from 1980 to 2090, in seconds since 1970")
        write_whole(out, "".join(otlp_write.lines(run, int(began))).encode())
        return
    times = run_metrics.times_of(run)
    closest = float(min(b - a for a, b in pairwise(times.tolist())))
    if closest < openmetrics.STEP_S:
        errors().print(
            f"eastwest: samples are {span(closest)} apart, but Prometheus stores only one value "
            "per millisecond; set measure.sample_interval to 1 ms or more",
            markup=False,
        )
    lines = openmetrics.series(run_metrics.families(run), times, start or 0.0)
    write_whole(out, "".join(lines).encode())


@guarded
def serve(
    result: Annotated[Path, typer.Argument(help="A result folder.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="TCP port; 0: any free port.")] = 9464,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    speed: Annotated[
        float, typer.Option(help="Simulated seconds per real second; inf: values at the run's end.")
    ] = 1.0,
) -> None:
    """Replay a run for a monitoring system that scrapes /metrics, until interrupted."""
    from eastwest.observe import exporter, run_metrics  # noqa: PLC0415  slow to load

    if not speed > 0:
        fail(f"--speed {speed}: must be above 0 simulated seconds per real second")
    run = load(result)
    families, times = run_metrics.families(run), run_metrics.times_of(run)
    with exporter.server(families, times, host=host, port=port, speed=speed) as server:
        where = f"http://{host}:{server.server_port}/metrics"
        errors().print(f"{where}: {len(times)} samples; Ctrl-C stops the server", markup=False)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            errors().print("the server has ended", markup=False)
