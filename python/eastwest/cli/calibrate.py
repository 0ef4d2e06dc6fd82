"""Command ``eastwest calibrate``: estimates a machine profile from job histories."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from eastwest.calibrate import Calibration, Containers, calibrate, written
from eastwest.calibrate.profile import toml_text
from eastwest.cli.guard import errors, fail, guarded
from eastwest.cli.options import JsonObjectOption
from eastwest.cli.screen import headed, print_table
from eastwest.files import write_whole
from eastwest.sweep.values import Bound
from eastwest.units import clean, percent

#: Maximum number of jobs in the printed table; the JSON output has all jobs.
_MOST_JOBS = 5


@guarded
def command(
    jhist: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE", help="Job history of Hadoop (.jhist, also .gz); may be repeated."
        ),
    ],
    more: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="More job histories.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE.toml", help="Write the machine profile to a file."
        ),
    ] = None,
    link_rate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RATE",
            help="Rate of a node's link: once for all histories, or once for each; - if unknown.",
        ),
    ] = None,
    heartbeat: Annotated[
        str, typer.Option(metavar="TIME", help="Time between two heartbeats of a node.")
    ] = "1 s",
    containers: Annotated[
        bool,
        typer.Option(
            "--containers",
            help='Estimate for framework = "yarn": costs are core time, because tasks share cores.',
        ),
    ] = False,
    cores: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="With --containers: number of cores of a machine; default: one for each task.",
        ),
    ] = None,
    workers_per_machine: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="With --cores: number of workers per machine; workers are placed by name.",
        ),
    ] = 1,
    details: Annotated[
        bool,
        typer.Option(
            "--details", help="Also show quantities that are not parameters of the model."
        ),
    ] = False,
    as_json: JsonObjectOption = False,
) -> None:
    """Estimate CPU and disk rates and fixed delays from job histories of Hadoop 2 or 3.

    A scenario uses the profile as machine = "machine.toml" of a mapreduce workload. Residuals are
    the relative differences between measured times and times that the estimates predict.
    """
    files = [*jhist, *(more or [])]
    rates = _rates(link_rate or [], len(files))
    heartbeat_s = _quantity("--heartbeat", heartbeat, "time") / 1e12
    if not containers and (cores is not None or workers_per_machine != 1):
        fail("--cores and --workers-per-machine need --containers")
    cluster = Containers(cores, workers_per_machine) if containers else None
    found = calibrate(files, rates, heartbeat_s, cluster)
    if out is not None:
        write_whole(out, toml_text(found).encode())
    if as_json:
        typer.echo(json.dumps(_as_json(found), allow_nan=False))
        return
    _print(found, details)
    for warning in found.warnings:
        errors().print(Text(f"eastwest: {clean(warning, 400)}"))
    if out is not None:
        Console(highlight=False, soft_wrap=True).print(Text(f"profile  {clean(str(out), 400)}"))


def _quantity(option: str, text: str, kind: str) -> float:
    bound = Bound.read(text.strip())
    if bound is None or bound.kind != kind:
        example = {"time": '"1 s"', "rate": '"50 Mbit/s"'}[kind]
        fail(f"{option} {text!r}: must be a {kind}, such as {example}")
    return float(bound.number)


def _rates(texts: list[str], files: int) -> list[float | None]:
    rates = [None if t.strip() == "-" else _quantity("--link-rate", t, "rate") for t in texts]
    if len(rates) == 1:
        return rates * files
    if rates and len(rates) != files:
        fail(
            f"--link-rate: {len(rates)} rates are given for {files} histories: give one rate for "
            "all, or one (or -) for each history"
        )
    return rates


def _as_json(found: Calibration) -> dict[str, Any]:
    return {
        "estimates": [
            {
                "key": e.key,
                "meaning": e.meaning,
                "value": written(e),
                "bytes_per_s" if e.is_rate else "seconds": e.value,
                "samples": e.samples,
                "residual_median": e.residual_median,
                "residual_worst": e.residual_worst,
            }
            for e in found.estimates
        ],
        "observations": [vars(o) for o in found.observations],
        "jobs": [
            {
                "file": str(j.history.path),
                "job": j.history.job,
                "observed_s": j.observed_s,
                "estimated_s": j.estimated_s,
                "residual": j.residual,
            }
            for j in found.jobs
        ],
        "warnings": found.warnings,
    }


def _signed(share: float) -> str:
    return ("+" if share > 0 else "") + percent(share)


def _print(found: Calibration, details: bool) -> None:
    console = Console(highlight=False)
    table = headed("key", "from", "value", "of", "residual", "worst", left=2)
    for e in found.estimates:
        residuals = (percent(e.residual_median), _signed(e.residual_worst))
        table.add_row(e.key.partition(".")[2], e.meaning, written(e), str(e.samples), *residuals)
    print_table(console, table)
    if details:
        _print_observations(console, found)
    _print_jobs(console, found)


def _print_observations(console: Console, found: Calibration) -> None:
    seen = headed("also seen", "", "median", "least", "most", left=2)
    for o in found.observations:
        digits = 3 if o.unit == "s/MB" else 2
        values = (f"{v:.{digits}f}" for v in (o.median, o.least, o.most))
        seen.add_row(o.meaning, o.unit, *values)
    print_table(console, seen)


def _print_jobs(console: Console, found: Calibration) -> None:
    jobs = headed("history", "job", "observed", "estimated", "residual", left=2)
    for j in found.jobs[:_MOST_JOBS]:
        name = clean(j.history.path.name, 34)
        numbers = (f"{j.observed_s:.1f} s", f"{j.estimated_s:.1f} s", _signed(j.residual))
        jobs.add_row(name, clean(j.history.name, 14), *numbers)
    print_table(console, jobs)
    rest = found.jobs[_MOST_JOBS:]
    if rest:
        worst = max((abs(j.residual) for j in rest if math.isfinite(j.residual)), default=0.0)
        console.print(f"and {len(rest)} more jobs, with a residual of at most {percent(worst)}")
