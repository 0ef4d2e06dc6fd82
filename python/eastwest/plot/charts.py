"""Pictures of results by name: one picture, or several pictures on one sheet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eastwest.plot import jobs, latency, network, programs
from eastwest.plot.sheet import mosaic, sheet
from eastwest.results import Result
from eastwest.views.latency import by_size

#: Results that are drawn in one picture, each with its name in the legend.
Labelled = Sequence[tuple[str, Result]]


@dataclass(frozen=True)
class Chart:
    """A kind of picture: its name, how it is drawn, and for which results."""

    name: str
    #: Function that draws results into matplotlib axes, and returns a sentence as the title.
    draw: Callable[[Axes, Labelled], str]
    #: Function that returns whether a result has the data for this picture.
    applies: Callable[[Result], bool]
    #: Whether the picture needs the full width of a page.
    wide: bool = False
    #: Whether the picture can show several results together; otherwise it shows the first.
    compares: bool = False


@dataclass(frozen=True)
class Drawing:
    """A finished picture, and its title: the sentence above it."""

    name: str
    figure: Figure
    title: str
    wide: bool


_CHARTS = (
    Chart("job-runtimes", jobs.runtimes, lambda r: r.jobs.height > 1, compares=True),
    Chart(
        "packet-latency",
        latency.percentiles,
        lambda r: int(r.latency["count"].sum()) > 0,
        compares=True,
    ),
    Chart("running-tasks", jobs.running_tasks, lambda r: r.tasks.height > 0, wide=True),
    Chart("task-timeline", jobs.timeline, lambda r: r.tasks.height > 0, wide=True),
    Chart("throughput", network.throughput, lambda r: r.traffic.height > 0, wide=True),
    Chart("link-utilisation", network.utilisation, lambda r: r.links.height > 0),
    Chart(
        "slowdown-by-size",
        latency.slowdown_by_size,
        lambda r: by_size(r).height > 1,
        compares=True,
    ),
    Chart("flow-completion", latency.completion, lambda r: by_size(r).height == 1, compares=True),
    Chart("queues", network.queues, lambda r: r.queues.height > 0, wide=True),
    Chart("rounds", network.rounds, lambda r: r.rounds.height > 0),
    Chart("iterations", programs.iterations, lambda r: r.mpi_iterations.height > 0, wide=True),
)
CHARTS = {chart.name: chart for chart in _CHARTS}

_NARROW, _WIDE = (5.3, 3.1), (10.9, 2.7)


def draw(
    name: str, results: Labelled, *, titled: bool = False, wide: bool | None = None
) -> Drawing:
    """Return the picture ``name`` (a key of ``CHARTS``) of one or several results.

    ``titled`` writes the title above the picture. ``wide`` makes the picture as wide as a page
    (None: if this kind of picture needs it).
    """
    chart = CHARTS[name]
    wide = chart.wide if wide is None else wide
    with sheet(_WIDE if wide else _NARROW) as (figure, axes):
        title = chart.draw(axes, results)
        if titled:
            axes.set_title(title)
    return Drawing(name, figure, title, wide)


def figure(name: str, result: Result) -> Figure:
    """Return the picture ``name`` (a key of ``CHARTS``) of one result, with its title."""
    return draw(name, [("", result)], titled=True).figure


def overview(result: Result) -> Figure:
    """Return up to four pictures of a result on one sheet, those over time first."""
    wide = [c for c in _CHARTS if c.name in {"running-tasks", "throughput"} and c.applies(result)]
    narrow = [c for c in _CHARTS if not c.wide and c.applies(result)][: 4 if not wide else 2]
    # A panel without a neighbour leaves the place beside it empty.
    places = [[chart.name] * 2 for chart in wide]
    names = [chart.name for chart in narrow] + ["."] * (len(narrow) % 2)
    places += [names[place : place + 2] for place in range(0, len(names), 2)]
    with mosaic((10.0, 2.7 * max(1, len(places))), places or [[".", "."]]) as (figure, panels):
        for chart in (*wide, *narrow):
            axes = panels[chart.name]
            axes.set_title(chart.draw(axes, [("", result)]))
    return figure
