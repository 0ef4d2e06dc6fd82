"""Command ``eastwest observe select``: selects the metrics that best explain a target metric."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from eastwest.cli.guard import errors, fail, guarded
from eastwest.cli.numbers import seconds, table_csv
from eastwest.cli.options import JsonObjectOption, one_of
from eastwest.cli.pictures import draw, pictured
from eastwest.cli.progress import Bar
from eastwest.cli.screen import console, headed
from eastwest.files import write_whole
from eastwest.observe import actuation, prometheus
from eastwest.observe.metrics import Metrics, read
from eastwest.observe.mrmr import Scheme
from eastwest.observe.select import Method, Selection, Wanted
from eastwest.observe.select import select as select_metrics
from eastwest.units import clean, count, percent

#: Maximum number of metrics that a printed remark names one by one.
_NAMES_SHOWN = 3


@guarded
@pictured("plot")
def select(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A CSV or Parquet file, a folder or a glob of them, a result folder, or the "
            "address of a Prometheus server such as http://localhost:9090.",
        ),
    ],
    target: Annotated[
        str, typer.Option(help="Target: the metric that the selected metrics explain.")
    ],
    number: Annotated[int, typer.Option("--count", help="Number of metrics to select.")] = 10,
    scheme: Annotated[
        str,
        typer.Option(
            help="Score of a metric: difference or quotient of its relevance and its redundancy."
        ),
    ] = "difference",
    method: Annotated[
        str, typer.Option(help="Estimator of information: discretised or neighbours.")
    ] = "discretised",
    bins: Annotated[
        int | None,
        typer.Option(
            help="Maximum number of classes of a metric; default: 10, fewer for few rows."
        ),
    ] = None,
    neighbours: Annotated[
        int, typer.Option(help="Only for --method neighbours: number of nearest neighbours.")
    ] = 3,
    lags: Annotated[
        int, typer.Option(help="Maximum number of rows by which a metric may lead the target.")
    ] = 0,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Metrics that are left out; may be repeated."),
    ] = None,
    most_missing: Annotated[
        float,
        typer.Option(
            help="Leave out metrics with a greater share (0 to 1) of missing values than this."
        ),
    ] = 0.2,
    bootstrap: Annotated[
        int, typer.Option(help="Number of resampled tables on which the selection is repeated.")
    ] = 0,
    seed: Annotated[
        int,
        typer.Option(
            help="Seed of the bootstrap, and of the noise against ties of --method neighbours."
        ),
    ] = 1,
    time_column: Annotated[
        str | None,
        typer.Option(
            "--time",
            metavar="COLUMN",
            help="Column of times in a file; default: found by names such as time.",
        ),
    ] = None,
    query: Annotated[
        str,
        typer.Option(
            metavar="PROMQL", help="Series to query from a Prometheus server; default: all."
        ),
    ] = '{__name__!=""}',
    last: Annotated[
        str, typer.Option(metavar="TIME", help="Length of the queried interval.")
    ] = "60 min",
    until: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN",
            help="End of the queried interval, as 2026-01-31T12:00 (UTC), "
            "2026-01-31T12:00+01:00 or seconds since 1970; default: now.",
        ),
    ] = None,
    step: Annotated[
        str, typer.Option(metavar="TIME", help="Time between rows of the queried series.")
    ] = "15 s",
    actuations: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Show for each selected metric whether and how it can be controlled: built-in, or "
            "a TOML file of rules that have precedence over the built-in rules.",
        ),
    ] = None,
    csv_file: Annotated[
        Path | None, typer.Option("--csv", help="Write the selection as CSV.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the selection: .png, .svg or .pdf.")
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Select on the workers of this Dask scheduler; they open the files by path.",
        ),
    ] = None,
    as_json: JsonObjectOption = False,
) -> None:
    """Select metrics with most information about a target and least redundancy (mRMR).

    docs/guide/metrics.md has an example, docs/mechanisms/metric-selection.md the equations.
    """
    wanted = Wanted(
        count=number,
        scheme=one_of(Scheme, scheme, "--scheme"),
        method=one_of(Method, method, "--method"),
        bins=bins,
        neighbours=neighbours,
        lags=lags,
        exclude=tuple(exclude or ()),
        most_missing=most_missing,
        bootstrap=bootstrap,
        seed=seed,
    )
    if plot is not None:
        from eastwest.plot.picture import check  # noqa: PLC0415  slow to load

        check(plot)
    rules = _rules(actuations)
    series = Series(query, _until(until), seconds("--last", last), seconds("--step", step))
    if dask is not None:
        found = _on_cluster(source, time_column, target, wanted, dask)
    else:
        table = _read(source, time_column, series)
        with Bar(errors(), "selecting") as bar:
            found = select_metrics(table, target, wanted, progress=bar.show)
    shown = _as_json(found, rules)
    _write(found, shown["chosen"], csv_file, plot)
    if as_json:
        typer.echo(json.dumps(shown, allow_nan=False, ensure_ascii=False))
    else:
        _print(found, wanted, rules)


def _rules(actuations: str | None) -> tuple[actuation.Rule, ...] | None:
    """Return the rules that ``--actuations`` names (built-in or a file), or None without it."""
    if actuations is None:
        return None
    return actuation.BUILT_IN if actuations == "built-in" else actuation.read(Path(actuations))


def _as_json(found: Selection, rules: tuple[actuation.Rule, ...] | None) -> dict[str, Any]:
    """Return a selection as a JSON object; with ``rules``, also how each metric is controlled."""
    shown = found.as_json()
    if rules is not None:
        for each in shown["chosen"]:
            rule = actuation.rule_for(each["metric"], rules)
            each |= {"class": str(rule.control), "actuation": rule.actuation}
    return shown


@dataclass(frozen=True)
class Series:
    """Query of a Prometheus server: PromQL text, end, length and step of the times in s."""

    query: str
    until_s: float
    length_s: float
    step_s: float

    def fetch(self, address: str) -> Metrics:
        """Return the metrics with which the Prometheus server at ``address`` answers the query."""
        began_s = self.until_s - self.length_s
        return prometheus.fetch(address, self.query, began_s, self.until_s, self.step_s)


def _read(source: str, time_column: str | None, series: Series) -> Metrics:
    """Return the metrics of ``source``: a server, a result folder, a file, or several files."""
    if source.startswith(("http://", "https://")):
        return series.fetch(source)
    path = Path(source)
    if (path / "summary.json").is_file():
        from eastwest.observe.run_metrics import metrics  # noqa: PLC0415  slow to load
        from eastwest.results import load  # noqa: PLC0415

        return metrics(load(path))
    if path.is_file():
        return read(path, time_column)
    from eastwest.observe import parts  # noqa: PLC0415  slow to load

    return parts.look(parts.find(source), time_column).read()


def _on_cluster(
    source: str, time_column: str | None, target: str, wanted: Wanted, address: str
) -> Selection:
    from eastwest.observe import parts, spread  # noqa: PLC0415  slow to load

    if source.startswith(("http://", "https://")) or (Path(source) / "summary.json").is_file():
        fail("--dask is only for files of metrics; leave it out for metrics of a server or a run")
    table = parts.look(parts.find(source), time_column)
    with Bar(errors(), "selecting") as bar:
        return spread.select(table, target, wanted, address, progress=bar.show)


def _until(text: str | None) -> float:
    if text is None:
        return time.time()
    try:
        if math.isfinite(seconds := float(text)):
            return seconds
    except ValueError:
        pass
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        fail(
            f"--until {text!r:.60}: must be a time such as 2026-01-31T12:00, or seconds since 1970"
        )
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def _write(
    found: Selection, chosen: list[dict[str, Any]], csv_file: Path | None, plot: Path | None
) -> None:
    if csv_file is not None:
        write_whole(csv_file, table_csv(chosen).encode())
    if plot is not None:
        from eastwest.plot.metrics import selection  # noqa: PLC0415  slow to load

        draw(lambda: selection(found), plot)


def _print(found: Selection, wanted: Wanted, rules: tuple[actuation.Rule, ...] | None) -> None:
    screen = console(wide=True)  # for long names of metrics
    how = "nearest neighbours" if wanted.method is Method.NEIGHBOURS else f"{found.bins} classes"
    screen.print(
        f"{clean(found.target)}: {len(found.chosen)} of {count(found.candidates)} metrics over "
        f"{count(found.rows)} rows, by {wanted.scheme} ({how})",
        markup=False,
    )
    table = headed("")
    table.add_column("metric", overflow="fold")
    headings = ["relevance", "redundancy", "score"]
    headings += ["lag"] * bool(wanted.lags) + ["selected again"] * bool(wanted.bootstrap)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    if rules is not None:
        table.add_column("class")
        table.add_column("actuation", overflow="fold")
    for place, each in enumerate(found.chosen, 1):
        cells = [f"{value:.3f}" for value in (each.relevance, each.redundancy, each.score)]
        cells += [str(each.lag)] * bool(wanted.lags)
        cells += [percent(each.frequency)] * bool(wanted.bootstrap)
        if rules is not None:
            rule = actuation.rule_for(each.metric, rules)
            cells += [str(rule.control), clean(rule.actuation).replace("[", "\\[") or "–"]
        name = clean(each.metric).replace("[", "\\[")
        table.add_row(str(place), name, *cells)
    screen.print(table)
    for line in _remarks(found):
        screen.print(line, markup=False)


def _remarks(found: Selection) -> list[str]:
    lines = ["Relevance and redundancy are in nats."]
    if found.stability is not None:
        lines.append(f"Stability of the selection on resampled rows: {found.stability:.2f} of 1.")
    for names, what in (
        (found.constant, "constant"),
        (found.missing, "of too many missing values"),
    ):
        if names:
            some = ", ".join(clean(name, 60) for name in names[:_NAMES_SHOWN])
            more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
            lines.append(f"Left out because {what}: {some}{more}.")
    if found.merged:
        some = ", ".join(
            f"{clean(each.metric, 60)}: {count(each.values)} values in {each.classes} classes"
            for each in found.merged[:_NAMES_SHOWN]
        )
        others = len(found.merged) - _NAMES_SHOWN
        lines.append(
            f"Different values share a class because of ties in {len(found.merged)} metrics "
            f"({some}{f' and {others} more' if others > 0 else ''})."
        )
    if found.filled:
        lines.append(f"Gaps were filled with the previous value in {found.filled} metrics.")
    return lines + [f"Note: {note}." for note in found.notes]
