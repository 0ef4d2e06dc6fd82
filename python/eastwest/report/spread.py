"""Charts of distributions: times of jobs, flows and packets, and utilisation of links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from eastwest import units
from eastwest.report import applications
from eastwest.report.draw import Chart, Scale, linear, logarithmic, rounded, thin_curve
from eastwest.views.facts import Facts
from eastwest.views.labels import seconds, shown
from eastwest.views.latency import SIZE_BINS, by_size, classes, curve, finished, tail_s
from eastwest.views.series import Floats, cumulative, percentile
from eastwest.work_units import UNITS

_SHARES = (0.5, 0.9, 0.99, 0.999, 1.0)
#: Shortest wait in s on the logarithmic axis, at which packets that did not wait are drawn.
_SHORTEST_WAIT_S = 1e-7
#: Maximum number of curves in one chart.
MOST_CURVES = 6
#: Tables from which a curve is drawn for each workload, and maximum number of these charts.
_OWN_UNITS = ("exchanges", "transactions")
_MOST_WORKLOADS = 4
#: Results of a comparison, each with its name; one result has an empty name.
Named = Sequence[tuple[str, Facts]]


def charts(named: Named) -> list[Chart]:
    """Return the charts of distributions of one result, or of several results together."""
    drawn = (draw(named) for draw in (runtimes, completion, latency, slowdown))
    own = [*workloads(named), *applications.charts(named)]
    return [*own, *(chart for chart in drawn if chart is not None)]


def curves_of(name: str, curves: list[tuple[str, Floats]], label: str, what: str) -> Chart | None:
    """Return a chart of cumulative distributions of times, without title; None without values.

    ``curves`` has (name, times in s); ``label`` is the label of the axis of times, ``what`` that of
    the axis of shares, such as ``jobs finished``. The caller sets title and note.
    """
    curves = [(key, cumulative(v[v >= 0])[0]) for key, v in curves]
    curves = [(key, v) for key, v in curves if v.size][:MOST_CURVES]
    if not curves:
        return None
    values = np.concatenate([v for _, v in curves])
    positive = values[values > 0]
    low = float(positive.min()) if positive.size else 1e-6
    chart = Chart(
        name,
        "",
        "",
        logarithmic(low, float(values.max()), label),
        Scale("linear", 0.0, 1.02, what, "percent"),
        legend=[key for key, _ in curves] if len(curves) > 1 or curves[0][0] else [],
    )
    chart.shares([thin_curve(*cumulative(v)) for _, v in curves])
    noun = what.split(" ", maxsplit=1)[0]
    chart.table = (
        ["", noun, *(units.percent(s) for s in _SHARES[:-1]), "all"],
        [
            [
                key or noun,
                units.count(v.size),
                *(units.span(percentile(v, s)) for s in _SHARES),
            ]
            for key, v in curves
        ],
    )
    return chart


def workloads(named: Named) -> list[Chart]:
    """Return up to four charts of durations: exchanges or transactions of one workload each."""
    found: dict[tuple[str, str], list[tuple[str, Floats]]] = {}
    for name, facts in named:
        for table in _OWN_UNITS:
            for (workload,), rows in facts.units[table].group_by("workload", maintain_order=True):
                times = rows["took"].to_numpy().astype(float) / 1e6
                found.setdefault((str(workload), table), []).append((name, times))
    drawn = []
    for number, ((workload, table), curves) in enumerate(found.items()):
        if number >= _MOST_WORKLOADS:
            break
        noun = f"{UNITS[table].noun}s"
        chart = curves_of(f"workload-{number}", curves, "time", f"{noun} finished")
        if chart is None:
            continue
        owner = shown(workload, 40)
        chart.title = f"How long {noun} of {owner} take"
        warm_up_s = named[0][1].result.warm_up_s
        period = "after the warm-up" if warm_up_s else "over the whole run"
        chart.note = f"Share of {noun} of {owner} that take at most this time, {period}."
        windowed = any(facts.result.summary.get("window") for _, facts in named)
        if len(named) == 1 and not windowed:
            half, most = (units.span(percentile(curves[0][1], q)) for q in (0.5, 0.99))
            chart.title = f"Half of the {noun} of {owner} take up to {half}, 99 % up to {most}"
        drawn.append(chart)
    return drawn


def runtimes(named: Named) -> Chart | None:
    """Return a chart of the runtimes of jobs; None for fewer than two jobs."""
    curves = [(name, facts.jobs["runtime_s"].to_numpy().astype(float)) for name, facts in named]
    if max((v.size for _, v in curves), default=0) < 2:
        return None
    chart = curves_of("job-runtimes", curves, "time since submission", "jobs finished")
    if chart is not None:
        chart.title = "How long jobs take"
        chart.note = "Share of jobs that take at most this time."
        if len(named) == 1:
            half, most = (units.span(percentile(curves[0][1], q)) for q in (0.5, 0.95))
            chart.title = f"Half of the jobs finish within {half}, 95 % within {most}"
    return chart


def completion(named: Named) -> Chart | None:
    """Return a chart of completion times of flows; None without complete flows.

    One result has a curve for each purpose of flows; several results have a curve each.
    """
    curves = []
    for name, facts in named:
        done = finished(facts.result)
        if len(named) > 1:
            curves.append((name, done["fct_us"].to_numpy() / 1e6))
            continue
        purposes = done.group_by("purpose").len().sort(["len", "purpose"], descending=True)
        several = purposes.height > 1
        for purpose in purposes["purpose"].to_list()[:MOST_CURVES]:
            part = done.filter(pl.col("purpose") == purpose)["fct_us"].to_numpy() / 1e6
            curves.append((shown(purpose, 30) if several else "", part))
    chart = curves_of("flow-completion", curves, "completion time", "flows complete")
    if chart is not None:
        chart.title = "How long flows take"
        of_each = " of each purpose" if len(named) == 1 and chart.legend else ""
        chart.note = f"Share of flows (messages){of_each} that take at most this time."
        if len(named) == 1:
            every = finished(named[0][1].result)["fct_us"].to_numpy()
            half, most = (units.span(seconds(percentile(every, q))) for q in (0.5, 0.99))
            chart.title = f"Half of the flows take up to {half}, 99 % up to {most}"
    return chart


def latency(named: Named) -> Chart | None:
    """Return a chart of packet latency against the share of packets; None without data packets.

    One result has a curve for each traffic class; several results have one curve each, for the
    class with the most packets.
    """
    curves: list[tuple[str, Floats, Floats]] = []
    title = ""
    for name, facts in named:
        for group, one in classes(facts.result)[: MOST_CURVES if len(named) == 1 else 1]:
            curves.append((name or shown(group, 30), *curve(one)))
            tail = units.span(tail_s(one))
            title = title or f"99 % of {shown(group, 30)} data packets arrive within {tail}"
    return _rare(
        "packet-latency",
        title if len(named) == 1 else "How long data packets take",
        "End-to-end latency that a share of the data packets does not exceed"
        + (", by traffic class." if len(named) == 1 else ", of the class with most packets."),
        curves,
        "latency",
    )


def waits(facts: Facts) -> Chart | None:
    """Return a chart of the waiting times of packets at the busiest of the ports in measure.ports.

    Returns None if no port was measured.
    """
    waited = facts.result.sojourn.filter(pl.col("count") > 0)
    busiest = facts.links.filter(pl.col("link").is_in(waited["link"].unique().to_list()))
    busiest = busiest.sort(["utilisation", "link"], descending=[True, False]).head(MOST_CURVES)
    curves: list[tuple[str, Floats, Floats]] = []
    title = ""
    for link, name in busiest.select("link", "name").iter_rows():
        one = waited.filter(pl.col("link") == link)
        one = one.group_by("upper_us").agg(pl.col("count").sum())
        share, seconds = curve(one)
        curves.append((shown(name, 30), share, np.maximum(seconds, _SHORTEST_WAIT_S)))
        tail = units.span(tail_s(one))
        title = title or f"99 % of the packets at {shown(name, 40)} wait at most {tail}"
    return _rare(
        "queue-wait",
        title,
        "Time from a packet's arrival at a port until its first bit is sent, which a share of the "
        "packets does not exceed. Ports are the busiest of those in measure.ports.",
        curves,
        "waiting time",
    )


def _rare(
    name: str, title: str, note: str, curves: list[tuple[str, Floats, Floats]], what: str
) -> Chart | None:
    """Return a chart of times against the share of packets; None without curves.

    ``curves`` has (name, shares, times in s). The axis of shares stretches the tail: 90 %, 99 % and
    99.9 % are at equal distances. ``what`` is the label of the axis of times.
    """
    curves = curves[:MOST_CURVES]
    if not curves:
        return None
    longest = max(float(y[-1]) for _, _, y in curves)
    most = max(float(x[-1]) for _, x, _ in curves)
    chart = Chart(
        name,
        title,
        note,
        Scale("nines", 0.0, min(max(most, 0.999), 0.999999), "share of packets", "nines"),
        logarithmic(min(float(y[0]) for _, _, y in curves), longest, what),
        legend=[key for key, _, _ in curves],
    )
    points = []
    for number, (_, share, times) in enumerate(curves):
        x = np.insert(share, 0, 0.0)
        y = np.insert(times, 0, times[0])
        keep = _spaced(chart.x.place(x))
        chart.line(x[keep], y[keep], number)
        points.append([rounded(x[keep], 8), rounded(y[keep], 3)])
    chart.data = {"type": "curve", "curves": points}
    return chart


def _spaced(places: Floats, least: float = 1 / 500) -> list[int]:
    """Return the indices of points of a curve that are at least ``least`` apart, and of the last.

    ``places`` are positions on the horizontal axis, 0 to 1.
    """
    kept = [0]
    for number, place in enumerate(places):
        if place - places[kept[-1]] >= least:
            kept.append(number)
    if kept[-1] != places.size - 1:
        kept.append(places.size - 1)
    return kept


def slowdown(named: Named) -> Chart | None:
    """Return a chart of median and 99th percentile of slowdown by size of flows.

    Returns None without complete flows. Slowdown is completion time divided by the time on an idle
    path.
    """
    tables = [(name, by_size(facts.result)) for name, facts in named][:MOST_CURVES]
    tables = [(name, table) for name, table in tables if table.height]
    if not tables:
        return None
    present = {size for _, table in tables for size in table["size"].to_list()}
    names = [name for name in SIZE_BINS if name in present]
    high = max(float(table["slowdown_p99"].max()) for _, table in tables)  # type: ignore[arg-type]
    worst = tables[0][1].sort("slowdown_p99", descending=True).row(0, named=True)
    chart = Chart(
        "slowdown-by-size",
        f"Flows of {worst['size']} are slowed down most: p99 "
        f"{units.count(worst['slowdown_p99'])} × the time on an idle path"
        if len(named) == 1
        else "How much longer flows take than on an idle path",
        "Completion time divided by the time at the full rate of the idle path: dot "
        "at the median, bar up to the 99th percentile.",
        Scale("linear", 0.0, len(names), "size of the flow"),
        logarithmic(1.0, max(high, 4.0), "slowdown", "times"),
        legend=[name for name, _ in tables] if len(tables) > 1 else [],
        key="dot",
        css="sizes",
    )
    rows = []
    cells: list[list[list[Any]]] = [[] for _ in names]
    for number, (name, table) in enumerate(tables):
        shift = (number - (len(tables) - 1) / 2) * min(0.16, 0.7 / len(tables))
        for row in table.iter_rows(named=True):
            place = names.index(row["size"])
            middle, tail = row["slowdown_p50"], row["slowdown_p99"]
            chart.interval(place + 0.5 + shift, middle, middle, tail, number, tip=True)
            both = [chart.y.write(value) for value in (middle, tail)]
            cells[place] += [
                [f"{name} {what}".strip(), text, number]
                for what, text in zip(("median", "p99"), both, strict=True)
            ]
            rows.append([name, row["size"], units.count(row["flows"]), *both])
    chart.cells(names, names, cells)
    # With a single result, which has no name, the column of names is left out.
    first = 1 if len(tables) == 1 else 0
    heads = ["", "size", "flows", "median", "p99"]
    chart.table = (heads[first:], [row[first:] for row in rows])
    return chart


def busy_links(facts: Facts) -> Chart | None:
    """Return a chart of the cumulative distribution of the utilisation of links, by tier.

    Returns None without links.
    """
    curves = []
    for tier in facts.tiers[:MOST_CURVES]:
        column = facts.links.filter(pl.col("tier") == tier)["utilisation"]
        curves.append((units.tier_words(tier), column.fill_nan(0.0).fill_null(0.0).to_numpy()))
    if not curves:
        return None
    chart = Chart(
        "link-utilisation",
        "How evenly the links of a tier are used",
        "Share of the links of each tier with at most this utilisation over the whole run.",
        linear([v.max() for _, v in curves], "utilisation", "percent"),
        Scale("linear", 0.0, 1.02, "links", "percent"),
        legend=[name for name, _ in curves],
    )
    chart.shares([thin_curve(*cumulative(used), 300) for _, used in curves])
    return chart
