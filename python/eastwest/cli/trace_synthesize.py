"""Commands ``eastwest trace synthesize`` and ``trace scale``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from eastwest.cli.guard import MISSED, errors, fail, guarded
from eastwest.cli.options import JsonObjectOption, one_of
from eastwest.cli.screen import console
from eastwest.cli.trace_describe import print_quality, quality_json
from eastwest.cli.trace_input import (
    SeedOption,
    Steps,
    TraceArgument,
    WindowOption,
    opened,
    seconds,
)
from eastwest.units import clean, count, size

OutOption = Annotated[
    Path,
    typer.Option("--out", "-o", metavar="OUT", help="Folder of the trace; a file with --as swim."),
]
FormOption = Annotated[
    str,
    typer.Option(
        "--as", metavar="FORM", help="normal: a folder; swim: a file that SWIM can replay."
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace an existing trace at OUT.")]
NodesOption = Annotated[
    str | None,
    typer.Option(
        metavar="A:B",
        help="Scale sizes from a cluster of A nodes to a cluster of B nodes; fb-2009 had 600.",
    ),
]


@guarded
def synthesize(
    trace: TraceArgument,
    out: OutOption,
    length: Annotated[str, typer.Option(metavar="TIME", help="Length of the new trace.")] = "1 day",
    nodes: NodesOption = None,
    seed: SeedOption = 1,
    method: Annotated[
        str,
        typer.Option(
            metavar="METHOD",
            help="windows: join windows of the source, as SWIM does; resample: draw similar jobs.",
        ),
    ] = "windows",
    window: WindowOption = None,
    draws: Annotated[
        int,
        typer.Option(
            min=1,
            max=1000,
            help="Maximum number of random draws; draws end when no distance to TRACE exceeds the "
            "distances of TRACE's resamples.",
        ),
    ] = 20,
    form: FormOption = "normal",
    force: ForceOption = False,
    as_json: JsonObjectOption = False,
) -> None:
    """Make a trace like TRACE: longer, shorter or for a cluster of another size.

    The command prints the distances to TRACE together with those of TRACE's own resamples. Exit
    code 1: a distance exceeds those of the resamples; the trace is written in any case.
    docs/mechanisms/synthesis.md has the method.
    """
    from eastwest.workload import keep, scale, synthesize as making  # noqa: I001, PLC0415  slow

    wanted, kind = one_of(keep.Form, form, "--as"), one_of(making.Method, method, "--method")
    length_s = seconds("--length", length)
    window_s = None if window is None else seconds("--window", window)
    factor = None if nodes is None else scale.Factor.of_nodes(nodes)
    keep.check_free(out, wanted, force, [trace])
    with opened(trace) as source, Steps(trace.name) as bar:
        bar("drawing", 0.0)
        table = source.collect(source.jobs)
        made = making.synthesize(table, length_s, kind, window_s, seed, draws)
        jobs = made.jobs if factor is None else scale.by_size(made.jobs, factor)
        about: dict[str, Any] = {
            "source": "synthetic",
            "synthesized": {
                "source": Path(source.name).name,
                "method": str(kind),
                "length_s": length_s,
                "window_s": made.quality.window_s,
                "seed": seed,
                "draws": made.draws,
                "nodes": nodes,
            },
            "quality": keep.as_kept(made.quality),
        }
        bar("writing", 0.9)
        unknown = keep.keep(jobs, out, wanted, about, force=force)
    if as_json:
        answer = {**about["synthesized"], "jobs": jobs.height, "out": str(out)}
        typer.echo(json.dumps({**answer, "quality": quality_json(made.quality)}, allow_nan=False))
    else:
        print_quality(made.quality)
        console().print(Text(f"draw {made.draws} of at most {draws}, seed {seed}"))
        _say_kept(jobs.height, _moved(jobs), out, unknown)
    if not made.quality.inside:
        raise typer.Exit(MISSED)


@guarded
def scale(
    trace: TraceArgument,
    out: OutOption,
    nodes: NodesOption = None,
    data: Annotated[
        str | None, typer.Option(metavar="X", help="Multiply every size by X, such as 0.5 or 1/30.")
    ] = None,
    load: Annotated[
        str | None, typer.Option(metavar="X", help="Multiply the arrival rate of jobs by X.")
    ] = None,
    form: FormOption = "normal",
    force: ForceOption = False,
    as_json: JsonObjectOption = False,
) -> None:
    """Make a trace larger or smaller by nodes, data or load, and print what this preserves.

    Sizes are rounded to the nearest byte, halves up.
    """
    from eastwest.workload import keep, scale as scaling  # noqa: I001, PLC0415  slow to load

    given = {"nodes": nodes, "data": data, "load": load}
    chosen = [(name, text) for name, text in given.items() if text is not None]
    if len(chosen) != 1:
        fail(
            f"{len(chosen)} of --nodes A:B, --data X and --load X are given; exactly one is needed"
        )
    (name, text), wanted = chosen[0], one_of(keep.Form, form, "--as")
    factor = (
        scaling.Factor.of_nodes(text) if name == "nodes" else scaling.Factor.of(text, f"--{name}")
    )
    keep.check_free(out, wanted, force, [trace])
    with opened(trace) as source, Steps(trace.name) as bar:
        bar("scaling", 0.0)
        jobs = source.collect(source.jobs)
        files = source.table("files") if "files" in source.tables else None
        if name == "load":
            jobs = scaling.by_load(jobs, factor)
        else:
            jobs = scaling.by_size(jobs, factor)
            files = None if files is None else scaling.sizes_of_files(files, factor)
        keeps = scaling.KEEPS[name]
        done = {"source": Path(source.name).name, "by": name, "factor": text, "preserves": keeps}
        about = {"source": "scaled", "scaled": done}
        bar("writing", 0.9)
        unknown = keep.keep(jobs, out, wanted, about, files, force)
    if as_json:
        typer.echo(json.dumps({**done, "jobs": jobs.height, "out": str(out)}, allow_nan=False))
        return
    console().print(Text(f"by {name}: {keeps}"))
    _say_kept(jobs.height, _moved(jobs), out, unknown)


def _moved(jobs: Any) -> str:
    columns = ("input_bytes", "shuffle_bytes", "output_bytes")
    sums = (jobs[name].cast(float).sum() for name in columns)
    return ", ".join(size(total) for total in sums)


def _say_kept(jobs: int, moved: str, out: Path, unknown: int) -> None:
    if unknown:
        text = f"eastwest: {count(unknown)} unknown sizes are written as 0 in the SWIM trace"
        errors().print(Text(text))
    console().print(Text(f"{count(jobs)} jobs; input, shuffle and output: {moved}"))
    console().print(Text(f"written  {clean(str(out), 400)}", style="bold green"))
