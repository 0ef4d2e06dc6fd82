"""Energy of links on pages: power over time, shares of time asleep, and energy by class of link."""

from __future__ import annotations

import numpy as np
import polars as pl

from eastwest import units
from eastwest.report.draw import WIDTH, Chart, Scale, linear, rounded, time
from eastwest.results import pick
from eastwest.units import tier_words
from eastwest.views.energy import COSTS, STATES, TIMES, power_over_time, state_shares
from eastwest.views.facts import Facts

_BINS = 600
#: Height of a bar of states and of the gap below it, in CSS pixels.
_BAR, _GAP = 20, 8
#: Classes of links in the summary, and their names on the page.
_CLASSES = (("host_links", "cables of hosts"), ("fabric_links", "between switches"), ("", "all"))


def charts(facts: Facts) -> list[Chart]:
    """Return the charts of a run in which some links slept; none for other runs."""
    links = facts.links.drop_nulls([*COSTS, *TIMES])
    if not links.height or not float(links["asleep_s"].sum()) > 0:
        return []
    drawn = power(facts)
    return [*([drawn] if drawn else []), states(links)]


def power(facts: Facts) -> Chart | None:
    """Return a chart of the power of links over time; None without samples of energy.

    The chart has the power used, the power if links were always awake, and the power with ideal
    sleep.
    """
    found = power_over_time(facts, _BINS)
    if found is None:
        return None
    bins, (hosts, fabric, awake, ideal) = found
    used = hosts + fabric
    apart = bool(np.any(hosts > 0) and np.any(fabric > 0))
    areas = [hosts, fabric] if apart else [used]
    names = [name for _, name in _CLASSES[: len(areas)]] if apart else ["links"]
    chart = Chart(
        "power",
        _power_title(facts),
        f"Power of all links in watts, means over {units.span(bins.step)}: power in "
        "this run, power if all links were always awake, and ideal power, if links "
        "slept whenever they have nothing to send and transitions took no time.",
        time(facts.end),
        linear([used, awake, ideal], "power", "power"),
        wide=True,
        height=190,
        legend=[*names, "awake", "ideal"],
        css="power",
        keys=[*["area"] * len(areas), "line", "line"],
    )
    chart.stack(bins.edges, areas)
    series = [*areas, awake, ideal]
    for number, watts in enumerate(series[len(areas) :], len(areas)):
        chart.steps(bins.edges, watts, number)
    chart.over_time(bins, series, chart.legend, every=True)
    return chart


def _power_title(facts: Facts) -> str:
    links = facts.links
    used, awake, ideal = (float(links[c].fill_nan(0).fill_null(0).sum()) for c in COSTS)
    mean = used / facts.end
    title = f"Links draw {units.watts(mean)} on average"
    if awake > 0 and ideal > 0:
        title += (
            f": {units.percent(used / awake)} of what they would draw always awake, "
            f"{used / ideal:.3g} × the ideal"
        )
    return title


def states(links: pl.DataFrame) -> Chart:
    """Return a chart of the share of time in each state, in a bar for each tier of links.

    With several tiers, one more bar is about all links.
    """
    shares = {
        tier_words(str(tier)): state_shares(part)
        for (tier,), part in links.group_by("tier", maintain_order=True)
    }
    tiers = list(shares)
    whole = state_shares(links)
    if len(tiers) > 1:
        shares["all links"] = whole
    names = list(shares)
    wasted = max(tiers, key=lambda name: float(shares[name][1:4].sum()))
    for_nothing = units.percent(float(shares[wasted][1:4].sum()))
    chart = Chart(
        "link-states",
        f"Links sleep {units.percent(float(whole[4]))} of the time; links from "
        f"{wasted} are awake without sending {for_nothing} of the time",
        "Share of time in each state, by tier of links. Every state except sleep "
        "takes full power. Only sending is useful; ideal sleep would save the power "
        "of the other states.",
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
        ends = np.rint(np.append(0.0, np.cumsum(shares[name])) * WIDTH).tolist()
        chart.bars(row, _BAR, _GAP, ends, "state")
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


def rows(facts: Facts) -> list[list[str]]:
    """Return rows of energy of each class of links, of switches, and of both, as text.

    Columns: class, energy, mean power, energy as a share of links always awake and as a multiple of
    ideal sleep, saved energy as a share of what ideal sleep saves, number of wake-ups.
    """
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
    """Return the saved energy in percent of the energy that ideal sleep saves; ``–`` if unknown."""
    if used is None or awake is None or ideal is None or not awake > ideal:
        return "–"
    return units.percent((awake - used) / (awake - ideal))


def sentence(facts: Facts) -> tuple[str, str] | None:
    """Return (mark, sentence) on the energy that sleep saved; None if sleep saved nothing.

    The mark is ``good`` if sleep saved at least half of the energy that ideal sleep would save,
    otherwise ``look``.
    """
    used, awake, ideal = (
        pick(facts.result.summary, "energy_j", key) for key in ("total", "always_on", "ideal")
    )
    if used is None or awake is None or ideal is None or not ideal <= used < awake:
        return None
    reached = (awake - used) / (awake - ideal)
    text = (
        f"Sleep saved {units.percent(1 - used / awake)} of the energy of links: "
        f"{units.percent(reached)} of what ideal sleep would save."
    )
    whole = pick(facts.result.summary, "energy_j", "with_switches", "of_always_on")
    if whole is not None and pick(facts.result.summary, "energy_j", "switches", "total"):
        text += f" Links and switches together used {units.percent(1 - whole)} less energy."
    return ("good" if reached >= 0.5 else "look", text)
