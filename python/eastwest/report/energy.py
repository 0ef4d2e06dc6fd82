"""Energy of links, where some of them sleep: power over time, states, and energy by class."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl

from eastwest import units
from eastwest.report.draw import WIDTH, Chart, Floats, Scale, clock, linear, rounded, thin_rows
from eastwest.report.draw import time as time_axis
from eastwest.report.tables import Bins, Facts
from eastwest.results import pick
from eastwest.units import tier_words

_BINS = 600
#: Height of a bar of states and of the gap below it, in CSS pixels.
_BAR, _GAP = 20, 8
#: States of a link, in the order of the bars.
STATES = ("sending", "awake, nothing to send", "falling asleep", "waking", "asleep")
_USED = ("energy_j", "energy_always_on_j", "energy_ideal_j")
_TIMES = ("awake_s", "falling_asleep_s", "asleep_s", "waking_s")
#: Classes of links in the summary, and their names on the page.
_CLASSES = (("host_links", "cables of hosts"), ("fabric_links", "between switches"), ("", "all"))


def charts(facts: Facts) -> list[Chart]:
    """Return the charts of a run in which some links slept; none for other runs."""
    links = facts.links.drop_nulls([*_USED, *_TIMES])
    if not links.height or not float(links["asleep_s"].sum()) > 0:
        return []
    drawn = [power(facts), states(links)]
    return [chart for chart in drawn if chart is not None]


def power(facts: Facts) -> Chart | None:
    """Return a chart of the power of links over time: used, always awake, and ideal sleep."""
    table = facts.result.power.drop_nulls().with_columns(
        pl.col(*_USED, *_TIMES).clip(lower_bound=0), of_hosts=pl.col("tier").str.starts_with("host")
    )
    bins = facts.bins(_BINS)
    covered = _sums(bins, table, pl.sum_horizontal(_TIMES))
    if not np.any(covered > 0):
        return None
    last = int(np.flatnonzero(covered > 0)[-1]) + 1
    bins, covered = Bins(bins.step, last), covered[:last]
    # Sampled time of a bin, per link, in s; the last bin may be shorter.
    seconds = np.maximum(covered, 1e-30) * bins.step / max(float(covered.max()), 1e-30)
    hosts, fabric = (
        _sums(bins, table.filter(of_hosts), pl.col("energy_j")) / seconds
        for of_hosts in (pl.col("of_hosts"), ~pl.col("of_hosts"))
    )
    awake, ideal = (_sums(bins, table, pl.col(c)) / seconds for c in _USED[1:])
    used = hosts + fabric
    apart = bool(np.any(hosts > 0) and np.any(fabric > 0))
    areas = [hosts, fabric] if apart else [used]
    names = [name for _, name in _CLASSES[: len(areas)]] if apart else ["links"]
    chart = Chart(
        "power",
        _power_title(facts),
        f"Watts of all links, means over {units.span(bins.step)}: what they draw, what they would "
        "draw awake, and what they would draw asleep whenever they have nothing to send, with "
        "transitions that take no time.",
        time_axis(facts.end),
        linear([used, awake, ideal], "power", "power"),
        wide=True,
        height=190,
        legend=[*names, "awake", "ideal"],
        css="power",
        keys=[*["area"] * len(areas), "line", "line"],
    )
    below = np.zeros(last)
    for number, watts in enumerate(areas):
        chart.band(bins.edges, below, below + watts, number)
        below = below + watts
    series = [*areas, awake, ideal]
    for number, watts in enumerate(series[len(areas) :], len(areas)):
        chart.line(bins.edges, np.append(watts, watts[-1:]), number, step=True)
    chart.data = {"type": "bins", "step": bins.step, "values": [rounded(v) for v in series]}
    chart.table = (
        ["until", *chart.legend],
        thin_rows(
            [
                [clock(float(bins.edges[i + 1]), facts.end), *(units.watts(v[i]) for v in series)]
                for i in range(last)
            ]
        ),
    )
    return chart


def _sums(bins: Bins, table: pl.DataFrame, value: pl.Expr) -> Floats:
    values = table.select(value.alias("value"))["value"].to_numpy().astype(float)
    return bins.sums(table["time_s"].to_numpy(), values)


def _power_title(facts: Facts) -> str:
    links = facts.links
    used, awake, ideal = (float(links[c].fill_nan(0).fill_null(0).sum()) for c in _USED)
    mean = used / facts.end
    title = f"Links draw {units.watts(mean)} on average"
    if awake > 0 and ideal > 0:
        title += (
            f": {units.percent(used / awake)} of what they would awake, "
            f"{used / ideal:.3g} × the ideal"
        )
    return title


def states(links: pl.DataFrame) -> Chart:
    """Return a chart of the states of links: one bar for each tier."""
    tiers = [str(tier) for tier in links["tier"].unique(maintain_order=True).to_list()]
    shares = {tier_words(tier): _shares(links.filter(pl.col("tier") == tier)) for tier in tiers}
    if len(tiers) > 1:
        shares["all links"] = _shares(links)
    names = list(shares)
    wasted = max(names[: len(tiers)], key=lambda name: float(shares[name][1:4].sum()))
    for_nothing = units.percent(float(shares[wasted][1:4].sum()))
    chart = Chart(
        "link-states",
        f"Links are asleep {units.percent(float(_shares(links)[4]))} of the time; those from "
        f"{wasted} draw full power for nothing {for_nothing} of it",
        "How links spend their time, by tier. All but sleep takes full power; only sending is of "
        "use, the rest is what the ideal would save.",
        Scale("linear", 0.0, 1.0, "share of time", "percent"),
        Scale("linear", 0.0, 1.0, "", "percent"),
        wide=True,
        height=(_BAR + _GAP) * len(names),
        rows=names,
        legend=list(STATES),
        key="state",
        css="states",
    )
    for row, name in enumerate(names):
        ends = np.rint(np.append(0.0, np.cumsum(shares[name])) * WIDTH)
        top = row * (_BAR + _GAP) + _GAP / 2
        for state, (left, right) in enumerate(itertools.pairwise(ends.tolist())):
            if right > left:
                path = f"M{left:.0f} {top:g}H{right:.0f}v{_BAR}H{left:.0f}z"
                chart.add(f"state s{state}", path, state)
    chart.data = {
        "type": "bars",
        "row": _BAR + _GAP,
        "names": names,
        "values": [rounded(shares[name]) for name in names],
    }
    chart.table = (
        ["links", *STATES],
        [[name, *(units.percent(float(share)) for share in shares[name])] for name in names],
    )
    return chart


def _shares(links: pl.DataFrame) -> Floats:
    """Return the shares of the time of links in `STATES`."""
    awake, falling, asleep, waking = (float(links[c].clip(0).sum()) for c in _TIMES)
    whole = awake + falling + asleep + waking
    lengths = links.select(pl.sum_horizontal(_TIMES).clip(0)).to_series()
    busy = links["utilisation"].fill_nan(0).fill_null(0).clip(0, 1)
    sending = min(awake, float((busy * lengths).sum()))
    parts = np.array([sending, awake - sending, falling, waking, asleep])
    return np.asarray(parts / whole if whole > 0 else parts)


def rows(facts: Facts) -> list[list[str]]:
    """Return rows of a table: energy used by links of each class, and by switches."""
    summary = facts.result.summary
    run = pick(summary, "simulated_s") or 0.0
    found = []
    for key, name in _CLASSES:
        path = ("energy_j", *([key] if key else []))
        total = pick(summary, *path, "total")
        if total:
            shares = [pick(summary, *path, share) for share in ("of_always_on", "of_ideal")]
            saved = _saved(*(pick(summary, *path, j) for j in ("total", "always_on", "ideal")))
            wakes = pick(summary, *path, "wakes")
            found.append([name, *_numbers(total, run, *shares), saved, units.count(wakes)])
    switches = pick(summary, "energy_j", "switches", "total")
    if switches:
        found.append(["switches, without links", *_numbers(switches, run, None, None), "–", "–"])
        path = ("energy_j", "with_switches")
        total = pick(summary, *path, "total") or switches
        shares = [pick(summary, *path, share) for share in ("of_always_on", "of_ideal")]
        found.append(["links and switches", *_numbers(total, run, *shares), "–", "–"])
    return found


def _numbers(total: float, run: float, of_awake: float | None, of_ideal: float | None) -> list[str]:
    return [
        units.joules(total),
        units.watts(total / run if run > 0 else None),
        units.percent(of_awake),
        "–" if of_ideal is None else f"{of_ideal:.3g} ×",
    ]


def _saved(used: float | None, awake: float | None, ideal: float | None) -> str:
    """Return the saved energy as a share of what ideal sleep saves, as text."""
    if used is None or awake is None or ideal is None or not awake > ideal:
        return "–"
    return units.percent((awake - used) / (awake - ideal))


def sentence(facts: Facts) -> tuple[str, str] | None:
    """Return a sentence on the energy that sleep saved; None where all links stayed awake."""
    used, awake, ideal = (
        pick(facts.result.summary, "energy_j", key) for key in ("total", "always_on", "ideal")
    )
    if used is None or awake is None or ideal is None or not ideal <= used < awake:
        return None
    reached = (awake - used) / (awake - ideal)
    text = (
        f"Sleeping links saved {units.percent(1 - used / awake)} of their energy, "
        f"{units.percent(reached)} of what is to be had with this traffic."
    )
    whole = pick(facts.result.summary, "energy_j", "with_switches", "of_always_on")
    if whole is not None and pick(facts.result.summary, "energy_j", "switches", "total"):
        text += f" With the switches that is {units.percent(1 - whole)} of the whole."
    return ("good" if reached >= 0.5 else "look", text)
