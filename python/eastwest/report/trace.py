"""Page about a trace of jobs or of an MPI program, and the page that compares two traces."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eastwest import core, units
from eastwest.account import Entry, entries
from eastwest.report import trace_charts as charts
from eastwest.report.draw import Chart
from eastwest.report.page import render
from eastwest.views.labels import agree, as_sentence, plural, shown
from eastwest.workload.access import Access
from eastwest.workload.arrival import Arrival
from eastwest.workload.describe import Description
from eastwest.workload.hurst import Hurst
from eastwest.workload.jobs import WORDS
from eastwest.workload.quality import CONFIDENCE, FEW_WINDOWS, REPLICATES, Quality
from eastwest.workload.shapes import LEAST_GAIN, Shape, Shapes

_MOST_LACKS = 40


@dataclass(frozen=True)
class Table:
    """A table of a page; the first ``words`` columns contain text, the others numbers."""

    title: str
    note: str
    headings: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    words: int = 1


def table_of(
    title: str, note: str, items: Iterable[Any], columns: Mapping[str, Callable[[Any], str]]
) -> Table:
    """Return a table with a row for each item.

    ``columns`` has, by heading, the function that returns the cell of an item.
    """
    rows = [[write(item) for write in columns.values()] for item in items]
    return Table(title, note, list(columns), rows)


@dataclass
class Section:
    """A section of the page about a trace: title, charts, tables, and shell commands."""

    name: str
    title: str
    hint: str = ""
    charts: list[Chart] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    commands: str = ""


def title_of(name: str) -> str:
    """Return the title of a trace, which is the last part of the path ``name``."""
    return shown(Path(name).name.removesuffix(".tsv") or name, 100)


def description_page(
    described: Description, quality: Quality | None = None, made: Mapping[str, Any] | None = None
) -> str:
    """Return the HTML page about one trace of jobs.

    For a synthetic trace, ``quality`` has the distances to the trace from which it was made, and
    ``made`` the settings of the synthesis.
    """
    parts = []
    if quality is not None:
        parts.append(quality_section(quality, _made_words(made or {})))
    parts += [
        _access(described.access),
        _shapes(described.shapes),
        *([_tasks(described)] if described.tasks else []),
        _arrival(described.arrival),
        account_section(described.account),
        _setup(described),
    ]
    said = sentences(described)
    if quality is not None:
        said.insert(0, verdict(quality))
    arrival = described.arrival
    about = f"{plural(arrival.jobs, 'job')} in {units.span(arrival.span_s)}"
    kicker = "Synthetic trace" if made else "Trace"
    return _page(title_of(described.name), kicker, about, said, parts)


def comparison_page(first: Description, second: Description, quality: Quality) -> str:
    """Return the HTML page that compares two traces; ``quality`` has their distances."""
    names = [title_of(first.name), title_of(second.name)]
    if names[0] == names[1]:
        names = [shown(first.name, 60), shown(second.name, 60)]
    pair = list(zip(names, (first, second), strict=True))
    access = Section("access", "Access to data", charts=charts.side_by_side(pair))
    said = [verdict(quality)]
    said += [f"{name}: {sentences(each)[0]}" for name, each in pair]
    parts = [quality_section(quality, ""), access]
    return _page(f"{names[0]} and {names[1]}", "Two traces", "", said, parts)


def _page(
    title: str, kicker: str, about: str, said: Sequence[str], parts: Sequence[Section]
) -> str:
    return render(
        "trace.html.j2",
        [chart for part in parts for chart in part.charts],
        title=title,
        kicker=kicker,
        about=" · ".join(part for part in (about, f"Eastwest {core.version()}") if part),
        sentences=said,
        parts=parts,
        closing="Curves are thinned to what a screen can show.",
    )


def sentences(described: Description) -> list[str]:
    """Return sentences that describe a trace, the most important first."""
    access, arrival, shapes = described.access, described.arrival, described.shapes
    word, ten, two = next(row for row in access.under if row[0] == "1 GB")
    moved = ", ".join(
        f"{units.size(sizes.total)} of {WORDS[name]}" for name, sizes in access.sizes.items()
    )
    said = [
        f"{plural(arrival.jobs, 'job')} in {units.span(arrival.span_s)} "
        f"{agree(arrival.jobs, 'moves', 'move')} "
        f"{moved or 'an unknown number of bytes'}.",
        f"{units.percent(ten)} of the jobs move less than {word} of 10⁹ bytes, "
        f"{units.percent(two)} less than {word} of 2³⁰ bytes.",
    ]
    if access.map_only_share is not None:
        said.append(
            f"{units.percent(access.map_only_share)} of the jobs have no shuffle: they "
            "consist of maps only."
        )
    if access.empty:
        jobs = plural(access.empty, "job has", "jobs have")
        said.append(f"{jobs} neither input, shuffle nor output.")
    if shapes.shapes:
        most = max(shapes.shapes, key=lambda shape: shape.bytes_share)
        said.append(
            f"{len(shapes.shapes)} shapes of jobs; “{most.word}” is {units.percent(most.share)} of "
            f"the jobs and moves {units.percent(most.bytes_share)} of the bytes."
        )
    said += [arrival.period_word, arrival.hurst_word]
    return said


def _access(access: Access) -> Section:
    percentiles = next(iter(access.sizes.values())).percentiles if access.sizes else {}
    tables = [
        Table(
            "Bytes per job",
            "Percentiles over all jobs whose bytes are known, including jobs with 0 bytes.",
            ["", "jobs", "none", *(f"{p} %" for p in percentiles), "most", "mean", "all"],
            [
                [
                    WORDS[name],
                    units.count(sizes.jobs),
                    units.percent(sizes.zero_share),
                    *(units.size(v) for v in sizes.percentiles.values()),
                    *(units.size(v) for v in (sizes.most, sizes.mean, sizes.total)),
                ]
                for name, sizes in access.sizes.items()
            ],
        ),
        Table(
            "Small jobs",
            "Share of jobs whose input, shuffle and output together are smaller, with both "
            "meanings of the unit.",
            ["less than", "powers of ten", "powers of two"],
            [[word, units.percent(ten), units.percent(two)] for word, ten, two in access.under],
        ),
    ]
    if access.files is not None:
        files = table_of(
            "Files",
            "How often files and folders that jobs name are used.",
            [access.files],
            {
                "files": lambda f: units.count(f.files),
                "uses": lambda f: units.count(f.accesses),
                "share of the most used tenth": lambda f: units.percent(f.top_tenth_share),
                "Zipf's exponent": lambda f: "–" if f.zipf is None else f"{f.zipf:.2f}",
                "read before": lambda f: units.percent(f.reread_share),
            },
        )
        tables.append(files)
    return Section("access", "Access to data", "", charts.access_charts(access), tables)


def _shapes(shapes: Shapes) -> Section:
    section = Section(
        "shapes",
        "Shapes of jobs",
        "Groups of jobs alike in "
        + ", ".join(WORDS[name] for name in shapes.dimensions)
        + f" (k-means on standardised logarithms, seed {shapes.seed}); one more group would "
        f"explain less than {units.percent(LEAST_GAIN)} of the variance.",
    )
    if not shapes.shapes:
        section.hint = "Too few jobs have a known quantity by which they could be grouped."
        return section
    table = table_of(
        "Medians of each shape",
        "Variance explained by 1, 2, … groups: "
        f"{', '.join(units.percent(e) for e in shapes.explained)}."
        + (
            f" {plural(shapes.left_out, 'job lacks', 'jobs lack')} a quantity."
            if shapes.left_out
            else ""
        ),
        shapes.shapes,
        {
            "shape": lambda shape: shape.word,
            "jobs": lambda shape: units.count(shape.jobs),
            "share": lambda shape: units.percent(shape.share),
            "of the bytes": lambda shape: share(shape.bytes_share),
            **{WORDS[name]: _median_of(name) for name in shapes.dimensions},
        },
    )
    section.tables.append(table)
    return section


def _median_of(name: str) -> Callable[[Shape], str]:
    """Return the function that returns a shape's median of the quantity ``name`` as text."""
    if name.endswith("bytes"):
        return lambda shape: units.size(shape.median[name])
    write = units.span if name.endswith("_s") else units.count
    return lambda shape: write(shape.median[name])


def share(value: float) -> str:
    """Return a share as a percentage: ``12 %``; ``< 0.01 %`` for shares below 0.0001."""
    return "< 0.01 %" if 0 < value < 1e-4 else units.percent(value)


def _tasks(described: Description) -> Section:
    table = Table(
        "Task attempts",
        "Durations of successful attempts. Slow: longer than twice the median of their job.",
        ["kind", "attempts", "succeeded", "median", "90 %", "99 %", "longest", "slow"],
        [
            [
                shown(kind, 30),
                units.count(each.attempts),
                units.count(each.succeeded),
                *(units.span(v) for v in each.seconds.values()),
                units.percent(each.slow_share),
            ]
            for kind, each in described.tasks.items()
        ],
    )
    return Section("tasks", "Task times", "", [charts.task_times(described.tasks)], [table])


def _arrival(arrival: Arrival) -> Section:
    bursts = table_of(
        "Bursts",
        "Number of jobs per interval, for intervals of several lengths.",
        arrival.bursts,
        {
            "interval": lambda b: units.span(b.interval_s),
            "intervals": lambda b: units.count(b.intervals),
            "mean": lambda b: units.count(b.mean),
            "median": lambda b: units.count(b.median),
            "busiest": lambda b: units.count(b.peak),
            "busiest to median": lambda b: "–" if b.ratio is None else f"{b.ratio:.3g} ×",
        },
    )
    alike = table_of(
        "Self-similarity",
        f"{arrival.hurst_word} Hurst parameter with its 95 % confidence interval; "
        "independent arrivals have 0.5.",
        arrival.hurst,
        {"method": lambda h: h.method, "H": lambda h: f"{h.value:.2f}", "95 % interval": interval},
    )
    return Section("arrival", "Arrivals", "", charts.arrival_charts(arrival), [bursts, alike])


def interval(estimate: Hurst) -> str:
    """Return the 95 % confidence interval of a Hurst parameter as text: ``0.61 to 0.74``."""
    return f"{estimate.low:.2f} to {estimate.high:.2f}"


def verdict(quality: Quality) -> str:
    """Return a sentence on how many distances between a trace and its source are within limits."""
    rows = len(quality.rows)
    if quality.inside:
        text = f"All {rows} distances to the source are within their limits"
    else:
        text = f"{quality.outside} of {rows} distances to the source are above their limits"
    return (
        f"{text}. {units.percent(CONFIDENCE)} of random resamples of the source keep each "
        f"limit; {units.percent(quality.own_share)} of the resamples keep all limits."
    )


def quality_rows(quality: Quality) -> list[list[str]]:
    """Return a row for each quantity in which a trace is compared with its source, as text.

    Columns: quantity, distance measure, distance between trace and source, median and 95th
    percentile of the distances between the source and random resamples of it, and ``inside`` or
    ``outside`` this percentile.
    """
    return [
        [
            row.quantity,
            row.measure,
            f"{row.value:.4f}",
            f"{row.typical:.4f}",
            f"{row.limit:.4f}",
            "inside" if row.inside else "outside",
        ]
        for row in quality.rows
    ]


QUALITY_HEADINGS = ("quantity", "distance", "here", "own median", "own 95 %", "verdict")


def quality_section(quality: Quality, hint: str) -> Section:
    """Return the section with the table of distances between a trace and its source.

    ``hint`` is the text below the title.
    """
    note = (
        f"Own: distances between the source and {REPLICATES:,} resamples of it; a "
        f"resample has {quality.drawn} of its {quality.windows} windows of "
        f"{units.span(quality.window_s)}, drawn with replacement. Inside: the "
        "distance of the trace is not above “own 95 %”, the 95th percentile of own distances."
    )
    if quality.windows < FEW_WINDOWS:
        note += f" {quality.windows} windows tell little about the variation of the source."
    table = Table("Distances", note, QUALITY_HEADINGS, quality_rows(quality), 2)
    return Section("quality", "Distance to the source", hint, tables=[table])


def _made_words(made: Mapping[str, Any]) -> str:
    words = {
        "method": "method {}",
        "seed": "seed {}",
        "draws": "draw {}",
        "source": "source {}",
        "nodes": "then scaled by numbers of nodes {}; distances are those before scaling",
    }
    said = [text.format(shown(made[key], 60)) for key, text in words.items() if made.get(key)]
    return as_sentence(", ".join(said)) if said else ""


def account_section(account: Sequence[Entry]) -> Section:
    """Return the section on records that the import left out, changed, or noted."""
    rows = [
        [
            each.kind,
            units.count(each.count),
            *(shown(text, 400) for text in (each.reason, each.consequence, each.first)),
        ]
        for each in account
    ]
    said = (
        "“Left out”: the trace lacks these records. “Changed”: the trace has them "
        "with another meaning. “Noted”: the trace has them, and the remark applies."
        if rows
        else "Nothing was left out or changed."
    )
    headings = ["", "records", "what", "what follows", "first"]
    table = Table("Records that were left out, changed or noted", said, headings, rows, 5)
    return Section("account", "Account of the import", tables=[table])


def mpi_page(name: str, about: Mapping[str, Any]) -> str:
    """Return the HTML page about the trace of an MPI program.

    ``name`` is the path of the trace, ``about`` the content of its ``trace.json``.
    """
    calls = about.get("calls")
    rows = [
        [shown(call, 40), units.count(number)]
        for call, number in (calls.items() if isinstance(calls, dict) else ())
        if isinstance(number, int)
    ]
    table = Table("Calls of all ranks", "", ["call", "number"], rows)
    ranks = shown(str(about.get("ranks")), 20)
    said = [f"{ranks} ranks, recorded as {shown(str(about.get('source')), 40)}."]
    parts = [Section("calls", "Calls", tables=[table]), account_section(entries(about))]
    return _page(title_of(name), "Trace of an MPI program", f"{ranks} ranks", said, parts)


def _setup(described: Description) -> Section:
    lacks = [shown(name, 60) for name in described.lacks]
    more = f" and {len(lacks) - _MOST_LACKS} more" if len(lacks) > _MOST_LACKS else ""
    source = shown(described.source, 40) or "the normal form"
    said = (
        f"Missing data: {', '.join(lacks[:_MOST_LACKS])}{more}." if lacks else "No data is missing."
    )
    table = Table("Data that the trace does not have", f"Recorded as {source}. {said}")
    command = f"eastwest trace describe {shlex.quote(shown(described.name, 400))} -o page.html"
    return Section("setup", "Set-up", tables=[table], commands=command)
