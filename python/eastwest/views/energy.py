"""Energy of links: power over time, and shares of time awake, asleep and between."""

from __future__ import annotations

import numpy as np
import polars as pl

from eastwest.views.facts import Facts
from eastwest.views.series import Bins, Floats

#: States of a link, in the order in which they are drawn. In the last three, a link cannot send.
STATES = ("sending", "awake, nothing to send", "falling asleep", "waking", "asleep")
#: Columns with the energy of links in J: used, if always awake, and with ideal sleep.
COSTS = ("energy_j", "energy_always_on_j", "energy_ideal_j")
#: Columns with the time in s that links spend in each state.
TIMES = ("awake_s", "falling_asleep_s", "asleep_s", "waking_s")


def power_over_time(facts: Facts, most: int) -> tuple[Bins, list[Floats]] | None:
    """Return at most ``most`` bins of time, and four arrays with the mean power in W in each bin.

    The arrays are: power used by links of hosts, power used by other links, power of all links if
    always awake, and power of all links with ideal sleep. Returns None without samples.
    """
    table = facts.result.power.drop_nulls().with_columns(
        pl.col(*COSTS, *TIMES).clip(lower_bound=0), of_hosts=pl.col("tier").str.starts_with("host")
    )
    bins = facts.bins(most)
    covered = _sums(bins, table, pl.sum_horizontal(TIMES))
    if not np.any(covered > 0):
        return None
    last = int(np.flatnonzero(covered > 0)[-1]) + 1
    bins, covered = Bins(bins.step, last), covered[:last]
    # Sampled time of each bin in s, as a mean over links; the last bin may be shorter than the
    # others.
    seconds = np.maximum(covered, 1e-30) * bins.step / max(float(covered.max()), 1e-30)
    used, *others = (pl.col(column) for column in COSTS)
    of_hosts = pl.col("of_hosts")
    series = [_sums(bins, table.filter(part), used) for part in (of_hosts, ~of_hosts)]
    series += [_sums(bins, table, column) for column in others]
    return bins, [energy / seconds for energy in series]


def _sums(bins: Bins, table: pl.DataFrame, value: pl.Expr) -> Floats:
    values = table.select(value.alias("value"))["value"].to_numpy().astype(float)
    return bins.sums(table["time_s"].to_numpy(), values)


def state_shares(links: pl.DataFrame) -> Floats:
    """Return an array: for each state of ``STATES`` its share (0 to 1) of the time of all links."""
    awake, falling, asleep, waking = (float(links[c].clip(0).sum()) for c in TIMES)
    whole = awake + falling + asleep + waking
    lengths = links.select(pl.sum_horizontal(TIMES).clip(0)).to_series()
    busy = links["utilisation"].fill_nan(0).fill_null(0).clip(0, 1)
    sending = min(awake, float((busy * lengths).sum()))
    parts = np.array([sending, awake - sending, falling, waking, asleep])
    return np.asarray(parts / whole if whole > 0 else parts)
