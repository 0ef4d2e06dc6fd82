"""Links over time: sampled bytes, drops and marks, and the utilisation of each link."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from eastwest.results import Result
from eastwest.units import rate, size, span, tier_words
from eastwest.views.facts import Facts
from eastwest.views.labels import shown
from eastwest.views.series import Floats


class Samples:
    """Samples of a result's links, summed in at most ``most`` equal bins of simulated time."""

    def __init__(self, result: Result, most: int = 300) -> None:
        self.links = result.links
        self._traffic = result.traffic
        self._most = most
        sound = pl.col("time_s").is_finite() & (pl.col("time_s") > 0) & (pl.col("time_s") < 1e9)
        known = self.links.filter(pl.col("rate_bps") > 0).select("link").unique()
        #: Rows of ``link_samples`` with valid times, for links that have a rate.
        self.rows = result.link_samples.filter(sound).join(known, on="link", how="semi")

    @cached_property
    def end(self) -> float:
        """Time of the last sample of a link, in simulated s."""
        return max(float(self.rows["time_s"].to_numpy().max()), 1e-9)

    @cached_property
    def interval(self) -> float:
        """Time between two samples in s; 0 where it is not known."""
        times = self._traffic["time_s"].to_numpy()
        times = times[np.isfinite(times) & (times > 0)]
        return float(times.min()) if times.size else 0.0

    @cached_property
    def edges(self) -> Floats:
        """Borders of the bins in s, one more than there are bins."""
        bins = self._most
        if self.interval > 0:
            bins = min(bins, max(1, round(self.end / self.interval)))
        return np.linspace(0, self.end, bins + 1)

    @property
    def width(self) -> float:
        """Length of a bin in s."""
        return self.end / (self.edges.size - 1)

    def _bin(self, times: Floats) -> npt.NDArray[np.intp]:
        """Return the number of the bin of each sample; ``times`` are ends of sampling intervals."""
        # Rounding must not move the end of an interval beyond the edge of its bin.
        late = self.edges * (1 + 1e-12)
        return np.clip(np.searchsorted(late, times, side="left") - 1, 0, self.edges.size - 2)

    def by_tier(self, column: str) -> dict[str, npt.NDArray[Any]]:
        """Return for each tier an array (bins): number of dropped or marked packets in each bin.

        ``column`` is ``drops`` or ``marks``. A tier without such packets is left out.
        """
        counted = self.rows.filter(pl.col(column) > 0)
        joined = counted.join(self.links.select("link", "tier"), on="link", how="left")
        found = {}
        for tier in joined["tier"].drop_nulls().unique().sort().to_list():
            part = joined.filter(pl.col("tier") == tier)
            place = self._bin(part["time_s"].to_numpy())
            packets = part[column].to_numpy().astype(np.float64)
            found[str(tier)] = np.bincount(place, packets, minlength=self.edges.size - 1)
        return found

    def by_link(self, column: str, most: int) -> tuple[pl.DataFrame, Floats]:
        """Return the ``most`` links with the largest sums, and an array (links, bins) of sums.

        The links are rows of the table ``links``, ordered by tier. ``column`` is the summed column
        of ``link_samples``: ``bytes``, ``drops`` or ``marks``. The value of a sampling interval is
        spread evenly over the bins that the interval covers.
        """
        samples = self.rows.filter(pl.col(column) > 0)
        total = samples.group_by("link").agg(pl.col(column).sum().alias("_total"))
        kept = self.links.join(total, on="link", how="inner")
        kept = kept.sort(["_total", "link"], descending=[True, False]).head(most)
        kept = kept.sort("tier", "link")
        row = {link: row for row, link in enumerate(kept["link"].to_list())}
        samples = samples.filter(pl.col("link").is_in(list(row)))
        rows = np.array([row[link] for link in samples["link"].to_list()])
        end, width = samples["time_s"].to_numpy(), self.interval
        # The first bin that the sampling interval covers.
        first = self._bin(np.maximum(end - width, 0) + 0.5 * min(width, self.edges[1]))
        last = np.maximum(self._bin(end), first)
        value = samples[column].to_numpy().astype(np.float64) / (last - first + 1)
        sums = np.zeros((kept.height, self.edges.size - 1))
        for shift in range(int((last - first).max(initial=0)) + 1):
            covers = first + shift <= last
            np.add.at(sums, (rows[covers], first[covers] + shift), value[covers])
        return kept, sums


class LinkLoad:
    """Utilisation and dropped packets of each link in each bin of time."""

    def __init__(self, facts: Facts, most_bins: int = 240) -> None:
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
        #: Utilisation of each link from 0 to 1, an array (links, bins).
        self.used = np.minimum(carried * 8 / (rate * self.bins.step), 1.0)
        #: Number of packets dropped at each link, an array (links, bins).
        self.drops = lost


def upward(traffic: pl.DataFrame) -> list[str]:
    """Return the tiers in the table ``traffic`` that lead upwards; all tiers if none does."""
    tiers = [str(tier) for tier in traffic["tier"].unique(maintain_order=True).to_list()]
    return [tier for tier in tiers if tier.endswith("-up")] or tiers


def sent_title(tier: str, mean_bps: float, peak_bps: float) -> str:
    """Return a sentence on the rate (mean, peak) at which all links of a tier send together."""
    source = "Hosts" if tier == "host-up" else tier_words(tier).capitalize()
    return f"{source} together send {rate(mean_bps)} on average, {rate(peak_bps)} at the peak"


def longest_queue(links: pl.DataFrame, owner: str = "") -> str:
    """Return a sentence on the queue with the longest drain time in a run.

    ``links`` are rows of the table ``links``; ``owner`` names the devices to which they belong,
    such as ``switches``, or is empty.
    """
    fullest = links.sort("queue_max_us", descending=True).row(0, named=True)
    whose = f" of {owner}" if owner else ""
    return (
        f"The longest queue{whose}, at {shown(fullest['name'], 40)}, reaches "
        f"{size(fullest['queue_max_bytes'])}, which take "
        f"{span(fullest['queue_max_us'] / 1e6)} to drain"
    )
