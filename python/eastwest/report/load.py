"""Load of links over time: traffic by tier, queues, drops, and utilisation of each link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from eastwest import units
from eastwest.report.draw import Chart, clock, linear, time
from eastwest.report.heat import Heat
from eastwest.units import tier_words
from eastwest.views.facts import Facts
from eastwest.views.labels import natural, plural, shown
from eastwest.views.links import LinkLoad, longest_queue, sent_title, upward
from eastwest.views.series import Bins, Floats

_BINS = 900
#: Maximum number of rows of the heat map; if there are more links, a row stands for several.
_MOST_ROWS = 72
#: Maximum number of series (tiers, or compared results) in one chart.
_MOST_TIERS = 6


def charts(facts: Facts) -> list[Chart]:
    """Return charts over time of traffic, queues, drops and marks, as far as recorded."""
    drawn = []
    if facts.result.traffic.height:
        drawn.append(traffic(facts))
    if facts.result.queues.height:
        drawn += queues(facts)
    if facts.drops_sampled.height:
        drawn.append(packets(facts, "drops", facts.drops_sampled, "dropped"))
    if facts.marks_sampled.height:
        drawn.append(packets(facts, "marks", facts.marks_sampled, "marked"))
    return drawn


def compared(named: Sequence[tuple[str, Facts]]) -> list[Chart]:
    """Return charts that compare results over time: traffic of hosts, drops and marks."""
    drawn = []
    sent = [
        (name, facts.result.traffic.filter(pl.col("tier") == upward(facts.result.traffic)[0]))
        for name, facts in named
        if facts.result.traffic.height
    ]
    bins = _common(named)
    ends = {name: facts.end for name, facts in named}
    rates = [
        (name, _until(bins, ends[name], t["time_s"].to_numpy(), t["bytes"].to_numpy()))
        for name, t in sent
    ]
    if len(rates) > 1:
        peaks = ", ".join(units.rate(8 * float(np.nanmax(v)) / bins.step) for _, v in rates)
        drawn.append(
            _series(
                "throughput",
                f"Traffic of hosts: {peaks} at the peak",
                "Bits per second on all links from hosts; means over",
                bins,
                [(name, 8 * v / bins.step) for name, v in rates],
                ("rate", "rate"),
            )
        )
    counted = (
        ("drops", "dropped", [facts.drops_sampled for _, facts in named]),
        ("marks", "marked (ECN)", [facts.marks_sampled for _, facts in named]),
    )
    for name, what, tables in counted:
        if len(named) < 2 or not any(table.height for table in tables):
            continue
        values = [
            (label, _until(bins, end, t["time_s"].to_numpy(), t["packets"].to_numpy()))
            for (label, end), t in zip(ends.items(), tables, strict=True)
        ]
        title, note = f"Packets {what} over time", f"Packets {what} on all links in each"
        unit = (f"packets {what}", "count")
        drawn.append(_series(name, title, note, bins, values, unit))
    return drawn


def _until(bins: Bins, end: float, times: Floats, values: npt.NDArray[Any]) -> Floats:
    """Return the sum of the values whose times are in each bin; NaN in bins after the run's end."""
    sums = bins.sums(times, values.astype(np.float64))
    sums[1:][bins.edges[1:-1] >= end] = np.nan
    return sums


def _common(named: Sequence[tuple[str, Facts]]) -> Bins:
    """Return bins of time for several runs: they cover the longest run.

    A bin is at least as long as the longest sampling interval.
    """
    longest = max((facts for _, facts in named), key=lambda facts: facts.end)
    widest = max(facts.interval for _, facts in named)
    bins = longest.bins(_BINS)
    if widest <= bins.step:
        return bins
    return Bins(widest, max(1, -int(-longest.end // widest)))


def _series(
    name: str,
    title: str,
    note: str,
    bins: Bins,
    values: list[tuple[str, Floats]],
    unit: tuple[str, str],
) -> Chart:
    """Return a chart of values over time, with a step curve for each (result, values).

    ``unit`` has the label of the vertical axis and the name of its format; the length of a bin is
    added to ``note``.
    """
    kept = values[:_MOST_TIERS]
    series = [v for _, v in kept]
    chart = Chart(
        name,
        title,
        f"{note} {units.span(bins.step)}.",
        time(bins.step * bins.count),
        linear([np.nanmax(v) for v in series], *unit),
        wide=True,
        legend=[label for label, _ in kept],
        height=150,
    )
    for number, value in enumerate(series):
        chart.steps(bins.edges, value, number)
    chart.over_time(bins, series, chart.legend, digits=6)
    return chart


def traffic(facts: Facts) -> Chart:
    """Return a chart of the total rate of each upward tier over time."""
    table = facts.result.traffic
    tiers = upward(table)[:_MOST_TIERS]
    bins = facts.bins(_BINS)
    values = []
    for tier in tiers:
        part = table.filter(pl.col("tier") == tier)
        carried = bins.sums(part["time_s"].to_numpy(), part["bytes"].to_numpy().astype(float))
        values.append(carried * 8 / bins.step)
    chart = Chart(
        "throughput",
        sent_title(tiers[0], float(values[0].mean()), float(values[0].max())),
        "Bits per second on all links of a tier, from hosts upwards; means over "
        f"{units.span(bins.step)}.",
        time(facts.end),
        linear(values, "rate", "rate"),
        wide=True,
        legend=[tier_words(tier) for tier in tiers],
        height=170,
    )
    for number, value in enumerate(values):
        chart.steps(bins.edges, value, number)
    chart.over_time(bins, values, chart.legend)
    return chart


def queues(facts: Facts) -> list[Chart]:
    """Return charts of the sampled queues over time: those of switches, then those of hosts.

    Hosts have their own chart, because their queues are often much longer than those of switches.
    """
    sampled = facts.result.queues.join(
        facts.links.select("link", "tier"), on="link", how="left"
    ).with_columns(pl.col("tier").fill_null("?"))
    of_host = pl.col("tier") == "host-up"
    parts = (
        ("queues", "switches", facts.links.filter(~of_host), sampled.filter(~of_host)),
        ("host-queues", "hosts", facts.links.filter(of_host), sampled.filter(of_host)),
    )
    return [_queues(facts, *part) for part in parts if part[3].height]


def _queues(
    facts: Facts, name: str, owner: str, links: pl.DataFrame, sampled: pl.DataFrame
) -> Chart:
    """Return a chart of the longest sampled queue of each tier over time, in packets.

    ``owner`` is ``switches`` or ``hosts``; ``links`` and ``sampled`` are their rows.
    """
    tiers = _tiers(facts, sampled)
    bins = facts.bins(_BINS)
    values = []
    for tier in tiers:
        part = sampled.filter(pl.col("tier") == tier)
        longest = np.full(bins.count, np.nan)
        places = bins.of(part["time_s"].to_numpy())
        np.fmax.at(longest, places, part["packets"].to_numpy().astype(float))
        values.append(longest)
    chart = Chart(
        name,
        longest_queue(links, owner) if links.height else f"Queues of {owner}, as sampled",
        "Packets in the longest queue of a tier: each dot is the longest sample "
        f"within {units.span(bins.step)}. Between samples a queue may have been "
        "empty.",
        time(facts.end),
        linear([np.nanmax(v) for v in values], "packets waiting", least=4.0),
        wide=True,
        legend=[tier_words(tier) for tier in tiers],
        key="dot",
        height=150,
    )
    middles = (bins.edges[:-1] + bins.edges[1:]) / 2
    for number, value in enumerate(values):
        some = np.isfinite(value)
        chart.dots(middles[some], value[some], number)
    chart.over_time(bins, values, chart.legend)
    return chart


def _tiers(facts: Facts, table: pl.DataFrame) -> list[str]:
    """Return at most six tiers in the column ``tier`` of a table; ``?`` is an unknown tier."""
    present = set(table["tier"].to_list())
    return [tier for tier in [*facts.tiers, "?"] if tier in present][:_MOST_TIERS]


def packets(facts: Facts, name: str, counted: pl.DataFrame, what: str) -> Chart:
    """Return a chart of dropped or marked packets over time, with a curve for each tier of links.

    ``counted`` has ``time_s``, ``packets`` and ``tier``; ``what`` is ``dropped`` or ``marked``.
    """
    tiers = _tiers(facts, counted)
    bins = facts.bins(_BINS)
    values = []
    for tier in tiers:
        part = counted.filter(pl.col("tier") == tier)
        counts = part["packets"].to_numpy().astype(float)
        values.append(bins.sums(part["time_s"].to_numpy(), counts))
    total = np.sum(values, axis=0)
    worst = int(total.argmax())
    chart = Chart(
        name,
        f"{name.capitalize()} peak about {_about(bins, worst, facts.end)}: "
        f"{plural(float(total[worst]), 'packet')} in {units.span(bins.step)}",
        f"Packets {what} in each {units.span(bins.step)}, by tier of the link.",
        time(facts.end),
        linear(values, f"packets {what}"),
        wide=True,
        legend=[tier_words(tier) for tier in tiers],
        height=120,
    )
    for number, value in enumerate(values):
        chart.steps(bins.edges, value, number)
    chart.over_time(bins, values, chart.legend, digits=6)
    return chart


def _about(bins: Bins, place: int, end: float) -> str:
    """Return the middle of bin number ``place`` as text; in runs of 2 h or more, to the minute."""
    middle = (place + 0.5) * bins.step
    return clock(round(middle / 60) * 60.0 if end >= 7200 and middle > 30 else middle, end)


def heat(load: LinkLoad) -> Chart:
    """Return a heat map of utilisation over time, with a row for each link or group of links.

    A group is several links of a tier; its row shows the busiest of them.
    """
    links, used = load.facts.links, load.used
    interval = units.span(load.bins.step)
    names, rows = [], []
    for tier in load.facts.tiers:
        of_tier = [i for i, t in enumerate(links["tier"].to_list()) if t == tier]
        of_tier.sort(key=lambda i: natural(str(links["name"][i])))
        size = _group(links.height, len(of_tier))
        for first in range(0, len(of_tier), size):
            group = of_tier[first : first + size]
            rows.append(used[group].max(axis=0))
            names.append(_row_name([shown(links["name"][i], 40) for i in group]))
    busiest = int(links["utilisation"].fill_null(0).fill_nan(0).arg_max() or 0)
    row = (
        "A row stands for several links of a tier and shows the busiest of them."
        if len(names) < links.height
        else "Each row is one direction of a cable."
    )
    return Heat(
        "link-heat",
        f"{shown(links['name'][busiest], 40)} is the busiest link: used "
        f"{units.percent(links['utilisation'][busiest])} of the whole time, "
        f"{units.percent(float(used[busiest].max()))} in its busiest {interval}",
        f"Share of a link's rate that is used in each {interval}: a stronger colour "
        f"is a busier link, up to 100 %. {row} A click or Enter shows the drawing "
        "above at that time.",
        names,
        load.bins,
        np.array(rows),
        "utilisation",
        "percent",
        1.0,
    ).chart(load.facts.end)


def _row_name(links: list[str]) -> str:
    """Return the name of a row of links, such as ``h0 … h2->leaf0`` if all end at leaf0."""
    if len(links) == 1:
        return links[0]
    first, last = links[0], links[-1]
    ends = [link.partition("->") for link in links]
    if len({target for _, _, target in ends}) == 1:
        return f"{ends[0][0]} … {last}"
    if len({source for source, _, _ in ends}) == 1:
        return f"{first} … {ends[-1][2]}"
    return f"{first} … {last}"


def _group(total: int, count: int) -> int:
    """Return the number of links of a tier that share a row of the heat map.

    The tier has ``count`` of the ``total`` links. The heat map has about ``_MOST_ROWS`` rows.
    """
    room = max(1, int(_MOST_ROWS * count / max(total, 1))) if total > _MOST_ROWS else count
    return max(1, -(-count // room))
