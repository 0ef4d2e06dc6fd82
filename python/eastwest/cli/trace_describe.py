"""Commands ``eastwest trace describe`` and ``trace compare``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from eastwest.cli.guard import guarded
from eastwest.cli.lines import grid
from eastwest.cli.options import JsonObjectOption
from eastwest.cli.pictures import draw, pictured, styled
from eastwest.cli.screen import console, headed
from eastwest.cli.trace_input import (
    SeedOption,
    Steps,
    TraceArgument,
    WindowOption,
    opened,
    seconds,
)
from eastwest.units import clean, count, percent, size, span

if TYPE_CHECKING:
    from eastwest.workload.describe import Description
    from eastwest.workload.quality import Quality

PageOption = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="PAGE.html", help="Also write a self-contained HTML file."),
]

PictureOption = Annotated[
    Path | None, typer.Option(help="Also draw one picture: .png, .svg or .pdf.")
]


@guarded
@pictured("png")
def describe(
    trace: TraceArgument,
    page: PageOption = None,
    png: PictureOption = None,
    seed: SeedOption = 1,
    as_json: JsonObjectOption = False,
) -> None:
    """Describe a trace: use of data, shapes of jobs, task times, arrivals.

    The page has the pictures and tables; --json has every number, curves too. Definitions of all
    numbers: docs/mechanisms/workload-analysis.md.
    """
    from eastwest.plot import picture, workload  # noqa: PLC0415  slow to load
    from eastwest.report.page import write_text  # noqa: PLC0415
    from eastwest.report.trace import description_page  # noqa: PLC0415
    from eastwest.workload import describe as analysis  # noqa: PLC0415
    from eastwest.workload.keep import quality_of  # noqa: PLC0415

    if png is not None:
        picture.check(png)
    with opened(trace) as source, Steps(trace.name) as bar:
        described = analysis.describe(source, seed, bar)
        made = source.about.get("synthesized")
        quality = quality_of(source.about) if isinstance(made, Mapping) else None
    if page is not None:
        made = made if isinstance(made, Mapping) else None
        write_text(page, description_page(described, quality, made))
    if png is not None:
        with styled():
            draw(lambda: workload.overview(described), png)
    if as_json:
        whole = analysis.as_json(described)
        whole["quality"] = analysis.as_json(quality)
        typer.echo(json.dumps(whole, allow_nan=False))
        return
    _print(described, quality)
    _say_written(page, png)


@guarded
@pictured("png")
def compare(
    first: TraceArgument,
    second: Annotated[
        Path, typer.Argument(metavar="OTHER", help="The trace to compare with TRACE.")
    ],
    page: PageOption = None,
    png: PictureOption = None,
    window: WindowOption = None,
    seed: SeedOption = 1,
    as_json: JsonObjectOption = False,
) -> None:
    """Compare OTHER with TRACE by distances, which are shown with those of TRACE's own resamples.

    The distances are Kolmogorov–Smirnov and Wasserstein for every quantity, and the energy distance
    for all quantities jointly.
    """
    from eastwest.plot import picture, workload  # noqa: PLC0415  slow to load
    from eastwest.report.page import write_text  # noqa: PLC0415
    from eastwest.report.trace import comparison_page, title_of  # noqa: PLC0415
    from eastwest.workload import describe as analysis  # noqa: PLC0415
    from eastwest.workload import quality as distances  # noqa: PLC0415
    from eastwest.workload.access import access  # noqa: PLC0415

    if png is not None:
        picture.check(png)
    window_s = None if window is None else seconds("--window", window)
    with opened(first) as one, opened(second) as other, Steps(first.name) as bar:
        bar("distances", 0.0)
        jobs = analysis.jobs_of(one), analysis.jobs_of(other)
        quality = distances.compare(*jobs, window_s, seed)
        if page is not None:
            pair = [analysis.describe(each, seed, bar) for each in (one, other)]
            write_text(page, comparison_page(pair[0], pair[1], quality))
        if png is not None:
            names = [title_of(each.name) for each in (one, other)]
            used = [access(each) for each in jobs]
            with styled():
                draw(lambda: workload.access_cdfs(list(zip(names, used, strict=True))), png)
    if as_json:
        typer.echo(json.dumps(analysis.as_json(quality), allow_nan=False))
        return
    print_quality(quality)
    _say_written(page, png)


def _say_written(*paths: Path | None) -> None:
    for path in paths:
        if path is not None:
            console().print(Text(f"written  {clean(str(path), 400)}", style="bold green"))


def _print(described: Description, quality: Quality | None) -> None:
    """Print the main part of the description of a trace, which fits a screen."""
    screen = console()
    arrival = described.arrival
    title = f"{clean(Path(described.name).name, 60)}: {count(arrival.jobs)} jobs in "
    screen.print(Text(title + span(arrival.span_s), style="bold underline"))
    screen.print(_sizes(described))
    screen.print(_shapes(described))
    rows = [(name, text, "") for name, text in _lines(described, quality)]
    screen.print(grid(rows, screen.width))


def _plain(*headings: str) -> Table:
    return headed(*headings, left=1, show_edge=False, pad_edge=False)


def _sizes(described: Description) -> Table:
    from eastwest.workload.jobs import WORDS  # noqa: PLC0415  slow to load

    shown = ("25", "50", "75", "90", "99")
    table = _plain("bytes per job", "none", *(f"{p} %" for p in shown), "most", "all")
    for name, each in described.access.sizes.items():
        middle = (size(each.percentiles[p]) for p in shown)
        table.add_row(
            WORDS[name], percent(each.zero_share), *middle, size(each.most), size(each.total)
        )
    return table


def _shapes(described: Description) -> Table:
    from eastwest.report.trace import share  # noqa: PLC0415  slow to load
    from eastwest.workload.jobs import BYTES, WORDS  # noqa: PLC0415

    names = [name for name in BYTES if name in described.shapes.dimensions]
    table = _plain("shape (median)", "jobs", "of jobs", "of bytes", *(WORDS[n] for n in names))
    for each in described.shapes.shapes[:7]:
        table.add_row(
            each.word,
            count(each.jobs),
            share(each.share),
            share(each.bytes_share),
            *(size(each.median[name]) for name in names),
        )
    return table


def _lines(described: Description, quality: Quality | None) -> Iterator[tuple[str, str]]:
    from eastwest.report.trace import verdict  # noqa: PLC0415  slow to load

    access, arrival = described.access, described.arrival
    under = [f"{word} {percent(round(ten, 3))}" for word, ten, _ in access.under[:-1]]
    _, _, two = next(row for row in access.under if row[0] == "1 GB")
    yield "smaller than", f"{', '.join(under)} of the jobs (as 2³⁰: 1 GB {percent(round(two, 3))})"
    if access.files is not None:
        yield "files", f"{count(access.files.files)}, used {count(access.files.accesses)} times"
    for kind, each in list(described.tasks.items())[:2]:
        times = f"median {span(each.seconds['p50'])}, 99 % {span(each.seconds['p99'])}"
        yield clean(kind, 12), f"{count(each.attempts)} attempts, {times}"
    ratios = [f"{b.ratio:.3g} in {span(b.interval_s)}" for b in arrival.bursts if b.ratio]
    if ratios:
        yield "peak/median", f"{', '.join(ratios)}"
    yield "period", arrival.period_word
    found = ", ".join(
        f"{h.value:.2f} ({h.low:.2f}–{h.high:.2f}, {h.method})" for h in arrival.hurst
    )
    yield "Hurst", f"{found}. {arrival.hurst_word}" if found else arrival.hurst_word
    if quality is not None:
        yield "quality", verdict(quality)


def print_quality(quality: Quality) -> None:
    """Print a table of the distances between two traces, and the verdict on them."""
    from eastwest.report.trace import (  # noqa: PLC0415  slow to load
        QUALITY_HEADINGS,
        quality_rows,
        verdict,
    )

    table = _plain(*QUALITY_HEADINGS)
    for cells in quality_rows(quality):
        style = "green" if cells[-1] == "inside" else "yellow"
        table.add_row(*cells[:-1], Text(cells[-1], style=style))
    console().print(table)
    console().print(Text(verdict(quality)))


def quality_json(quality: Quality) -> dict[str, Any]:
    """Return distances between two traces as a JSON object.

    ``inside`` is true if no distance exceeds the distances of resamples.
    """
    from eastwest.workload.describe import as_json  # noqa: PLC0415  slow to load

    return {**as_json(quality), "inside": quality.inside}
