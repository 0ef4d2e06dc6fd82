"""Load of links over time: traffic by tier, queues, drops, and utilisation of each link."""

from __future__ import annotations

import numpy as np
import polars as pl

from eastwest import units
from eastwest.report.draw import Chart, Floats, clock, linear, rounded, thin_rows, time
from eastwest.report.heat import Heat
from eastwest.report.tables import Bins, Facts, natural, shown
from eastwest.units import tier_words

_BINS = 900
#: Most rows of the heat map; with more links, several share a row.
_MOST_ROWS = 72
_HEAT_BINS = 240


def charts(facts: Facts) -> list[Chart]:
    """Return charts of the traffic of links over time, where it was recorded."""
    drawn = []
    if facts.result.traffic.height:
        drawn.append(traffic(facts))
    if facts.result.queues.height:
        drawn.append(queues(facts))
    if facts.drops_sampled.height:
        drawn.append(drops(facts))
    return drawn


def _table(
    facts: Facts, bins: Bins, series: list[str], values: list[Floats], unit: str
) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of a table with the values of bins that are not zero."""
    write = {"rate": units.rate, "count": units.count}[unit]
    some = np.flatnonzero(np.nansum(values, axis=0) > 0)
    rows = [
        [clock(float(bins.edges[i + 1]), facts.end), *(write(float(v[i])) for v in values)]
        for i in some
    ]
    return ["until", *series], thin_rows(rows)


def traffic(facts: Facts) -> Chart:
    """Return a chart of the rate that each tier carries upwards over time."""
    table = facts.result.traffic
    tiers = [str(t) for t in table["tier"].unique(maintain_order=True).to_list()]
    upward = ([tier for tier in tiers if tier.endswith("-up")] or tiers)[:6]
    bins = facts.bins(_BINS)
    values = []
    for tier in upward:
        part = table.filter(pl.col("tier") == tier)
        carried = bins.sums(part["time_s"].to_numpy(), part["bytes"].to_numpy().astype(float))
        values.append(carried * 8 / bins.step)
    peak = int(np.argmax(values[0]))
    source = "Hosts" if upward[0] == "host-up" else tier_words(upward[0]).capitalize()
    chart = Chart(
        "throughput",
        f"{source} together send {units.rate(float(values[0].mean()))} on average, "
        f"{units.rate(float(values[0][peak]))} at the peak",
        f"Bits per second on all links of a tier, upwards; means over {units.span(bins.step)}.",
        time(facts.end),
        linear(values, "rate", "rate"),
        wide=True,
        legend=[tier_words(tier) for tier in upward],
        height=170,
    )
    for number, value in enumerate(values):
        chart.line(bins.edges, np.append(value, value[-1:]), number, step=True)
    chart.data = {"type": "bins", "step": bins.step, "values": [rounded(v) for v in values]}
    chart.table = _table(facts, bins, chart.legend, values, "rate")
    return chart


def queues(facts: Facts) -> Chart:
    """Return a chart of the longest sampled queue of each tier over time."""
    sampled = facts.result.queues.join(
        facts.links.select("link", "tier"), on="link", how="left"
    ).with_columns(pl.col("tier").fill_null("?"))
    tiers = [t for t in [*facts.tiers, "?"] if t in set(sampled["tier"].to_list())][:6]
    bins = facts.bins(_BINS)
    values = []
    for tier in tiers:
        part = sampled.filter(pl.col("tier") == tier)
        longest = np.full(bins.count, np.nan)
        places = bins.of(part["time_s"].to_numpy())
        np.fmax.at(longest, places, part["packets"].to_numpy().astype(float))
        values.append(longest)
    chart = Chart(
        "queues",
        _queue_title(facts),
        f"Packets in the longest queue of a tier, each dot a sample; the longest in each "
        f"{units.span(bins.step)} is shown. Between samples queues may have been empty.",
        time(facts.end),
        linear([np.nanmax(v) for v in values], "packets waiting"),
        wide=True,
        legend=[tier_words(tier) for tier in tiers],
        key="dot",
        height=150,
    )
    middles = (bins.edges[:-1] + bins.edges[1:]) / 2
    for number, value in enumerate(values):
        some = np.isfinite(value)
        chart.dots(middles[some], value[some], number)
    chart.data = {
        "type": "bins",
        "step": bins.step,
        "values": [rounded(v) for v in values],
    }
    chart.table = _table(facts, bins, chart.legend, [np.nan_to_num(v) for v in values], "count")
    return chart


def _queue_title(facts: Facts) -> str:
    if not facts.links.height:
        return "Queues as they were sampled"
    fullest = facts.links.sort("queue_max_us", descending=True).row(0, named=True)
    return (
        f"The longest queue, at {shown(fullest['name'], 40)}, reaches "
        f"{units.size(fullest['queue_max_bytes'])}: "
        f"{units.span(fullest['queue_max_us'] / 1e6)} to drain"
    )


def drops(facts: Facts) -> Chart:
    """Return a chart of dropped packets over time, by the tier of the link that dropped them."""
    lost = facts.drops_sampled
    tiers = [t for t in [*facts.tiers, "?"] if t in set(lost["tier"].to_list())][:6]
    bins = facts.bins(_BINS)
    values = []
    for tier in tiers:
        part = lost.filter(pl.col("tier") == tier)
        values.append(bins.sums(part["time_s"].to_numpy(), part["drops"].to_numpy().astype(float)))
    total = np.sum(values, axis=0)
    worst = int(total.argmax())
    chart = Chart(
        "drops",
        f"Drops peak about {_about(bins, worst, facts.end)}: {units.count(float(total[worst]))} "
        f"packets in {units.span(bins.step)}",
        f"Packets dropped in each {units.span(bins.step)}, by tier of the link.",
        time(facts.end),
        linear(values, "packets dropped"),
        wide=True,
        legend=[tier_words(tier) for tier in tiers],
        height=120,
    )
    for number, value in enumerate(values):
        chart.line(bins.edges, np.append(value, value[-1:]), number, step=True)
    chart.data = {"type": "bins", "step": bins.step, "values": [rounded(v, 6) for v in values]}
    chart.table = _table(facts, bins, chart.legend, values, "count")
    return chart


def _about(bins: Bins, place: int, end: float) -> str:
    """Return the time of a bin as text, with the precision of the bins."""
    middle = (place + 0.5) * bins.step
    return clock(round(middle / 60) * 60.0 if end >= 7200 and middle > 30 else middle, end)


class LinkLoad:
    """Utilisation of each link in each bin of time, and its drops."""

    def __init__(self, facts: Facts, most_bins: int = _HEAT_BINS) -> None:
        self.facts = facts
        self.bins = facts.bins(most_bins)
        links = facts.links
        rows = {number: row for row, number in enumerate(links["link"].to_list())}
        samples = facts.samples.filter(pl.col("link").is_in(list(rows)))
        shape = (links.height, self.bins.count)
        row = np.array([rows[n] for n in samples["link"].to_list()], dtype=np.int64)
        place = row * self.bins.count + self.bins.of(samples["time_s"].to_numpy())
        carried, lost = (
            np.bincount(
                place, weights=samples[c].to_numpy().astype(float), minlength=shape[0] * shape[1]
            ).reshape(shape)
            for c in ("bytes", "drops")
        )
        rate = np.maximum(links["rate_bps"].to_numpy().astype(float), 1.0)[:, None]
        #: Share of the rate that was used, and packets dropped: both (links, bins).
        self.used = np.minimum(carried * 8 / (rate * self.bins.step), 1.0)
        self.drops = lost

    def heat(self) -> Chart:
        """Return a heat map of every link, or every group of links, over time."""
        links, used = self.facts.links, self.used
        names, rows = [], []
        for tier in self.facts.tiers:
            of_tier = [i for i, t in enumerate(links["tier"].to_list()) if t == tier]
            of_tier.sort(key=lambda i: natural(str(links["name"][i])))
            size = self._group(len(of_tier))
            for first in range(0, len(of_tier), size):
                group = of_tier[first : first + size]
                rows.append(used[group].max(axis=0))
                start, stop = (shown(links["name"][i], 40) for i in (group[0], group[-1]))
                names.append(start if len(group) == 1 else f"{start} … {stop}")
        grouped = len(names) < links.height
        busiest = int(links["utilisation"].fill_null(0).fill_nan(0).arg_max() or 0)
        note = (
            f"Share of a link's rate in each {units.span(self.bins.step)}: stronger is busier, "
            "strongest at 100 %. "
        )
        note += (
            "A row stands for several links of a tier and shows the busiest of them."
            if grouped
            else "A row per direction of each cable."
        )
        note += " A click or Enter shows the drawing above at that time."
        return Heat(
            "link-heat",
            f"{shown(links['name'][busiest], 40)} is the busiest link: used "
            f"{units.percent(links['utilisation'][busiest])} of the whole time, "
            f"{units.percent(float(used[busiest].max()))} in its busiest {self._interval()}",
            note,
            names,
            self.bins,
            np.array(rows),
            "utilisation",
            "percent",
            1.0,
        ).chart(self.facts.end)

    def _interval(self) -> str:
        return units.span(self.bins.step)

    def _group(self, count: int) -> int:
        """Return the links in a row for a tier of ``count`` links, so that all rows fit."""
        total = self.facts.links.height
        room = max(1, int(_MOST_ROWS * count / max(total, 1))) if total > _MOST_ROWS else count
        return max(1, -(-count // room))
