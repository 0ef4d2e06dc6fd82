"""Points of a sweep, their settings, and estimates of metrics over the seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from eastwest.sweep import words
from eastwest.sweep.tables import SweepResult
from eastwest.views import goals
from eastwest.views.labels import shown
from eastwest.views.metrics import KNOWN, METRICS, Metric, made, told

#: Maximum number of points that are drawn and listed; the tables in the folder have all.
MOST_POINTS = 120
_MOST_SERIES = 6


@dataclass(frozen=True)
class Estimate:
    """Mean of a metric over the seeds of a point, with its interval where there is one."""

    mean: float
    low: float | None
    high: float | None

    def times(self, factor: float) -> Estimate:
        """Return the estimate times ``factor``, without ends that are no numbers."""
        low, high = (
            end * factor if end is not None and math.isfinite(end) else None for end in self.ends
        )
        return Estimate(self.mean * factor, low, high)

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """Lower and upper end of the interval; None where there is no interval."""
        return self.low, self.high

    @property
    def reach(self) -> tuple[float, float]:
        """Lower and upper end of the interval; the mean twice if there is no interval."""
        low, high = (self.mean if end is None else end for end in self.ends)
        return low, high

    @property
    def is_clear(self) -> bool:
        """Whether 0 lies outside the interval."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    def text(self, metric: Metric) -> str:
        """Return the mean, and half the interval's width as a share of it, as text."""
        said = metric.write(self.mean)
        if self.low is None or self.high is None or not self.mean:
            return said
        share = 50 * (self.high - self.low) / abs(self.mean)
        return f"{said} ± {share:.{0 if share >= 9.5 else 1}f} %"


class Points:
    """Points of a sweep, their settings as text, and estimates of metrics."""

    def __init__(self, sweep: SweepResult) -> None:
        self.sweep = sweep
        self.table = sweep.points
        self.baseline = int(sweep.summary.get("baseline", 0))
        head = self.table.unique("point", maintain_order=True).sort("point")
        self.all = head["point"].to_list()
        self.numbers = self.all[:MOST_POINTS]
        #: Paths as in the tables, and ``case`` for each axis with names.
        self.axes = [
            path if axis is not None or path in head.columns else f"set.{path}"
            for path, axis in sweep.columns
        ]
        self.settings = {
            row["point"]: self._settings(row)
            for row in head.head(MOST_POINTS).iter_rows(named=True)
        }

    def _settings(self, row: Mapping[str, Any]) -> list[str]:
        """Return the value or name of a point along each axis."""
        names = self.sweep.names(row["point"])
        pairs = zip(self.axes, self.sweep.columns, strict=True)
        return [shown(row[c] if axis is None else names[axis], 40) for c, (_, axis) in pairs]

    @property
    def is_named(self) -> bool:
        """Whether the horizontal axis has the names of cases."""
        return self.across == "case"

    @cached_property
    def short(self) -> list[str]:
        """Names of the axes: the last parts of their paths, if these differ."""
        last = [axis.rsplit(".", 1)[-1] for axis in self.axes]
        return [shown(n, 40) for n in (last if len(set(last)) == len(last) else self.axes)]

    def name(self, point: int) -> str:
        """Return the settings of a point as text."""
        plain = [axis is None for _, axis in self.sweep.columns]
        words = zip(self.short, plain, self.settings.get(point, []), strict=False)
        said = [f"{axis} {value}" if own else value for axis, own, value in words]
        return ", ".join(said) or f"point {point}"

    @property
    def names(self) -> goals.Names:
        """Names of the points, for sentences."""
        is_plain = len(self.sweep.columns) == 1 and self.sweep.columns[0][1] is None
        return goals.Names(self.name, self.short[0] if is_plain else "")

    @cached_property
    def wanted(self) -> list[Metric]:
        """Metrics that the sweep's ``show`` names; without it, those of goals and workloads."""
        there = set(self.table["metric"].unique())
        named = [words.full(name, there) for name in self.sweep.summary.get("show") or []]
        of_goals = goals.measures(self.sweep.summary, there)
        named = named or list(dict.fromkeys([*of_goals, *words.of_workloads(there)]))
        return [made(name) for name in named if name in there]

    @cached_property
    def estimates(self) -> dict[tuple[str, int], Estimate]:
        """Estimates by metric and point, in the units in which metrics are shown."""
        known = KNOWN | {".".join(metric.path): metric for metric in self.wanted}
        rows = self.table.filter(
            pl.col("metric").is_in(list(known)) & pl.col("point").is_in(self.numbers)
        ).select("metric", "point", "mean", "low", "high")
        return {
            (metric, point): Estimate(mean, low, high).times(known[metric].factor)
            for metric, point, mean, low, high in rows.iter_rows()
            if mean is not None and math.isfinite(mean)
        }

    @cached_property
    def compared(self) -> dict[tuple[str, int], Estimate]:
        """Relative differences to the baseline, paired by seed, by metric and point."""
        rows = self.sweep.comparisons.filter(pl.col("point").is_in(self.numbers)).select(
            "metric", "point", "difference", "low", "high", "baseline_mean"
        )
        return {
            (metric, point): Estimate(difference, low, high).times(1 / abs(base))
            for metric, point, difference, low, high, base in rows.iter_rows()
            if base and difference is not None and math.isfinite(difference)
        }

    def of(self, metric: Metric) -> dict[int, Estimate]:
        """Return the estimates of a metric by the number of the point."""
        name = ".".join(metric.path)
        return {p: self.estimates[name, p] for p in self.numbers if (name, p) in self.estimates}

    @cached_property
    def metrics(self) -> list[Metric]:
        """Metrics that are not zero everywhere, those that the sweep shows first.

        Those of energy are only there where links slept.
        """
        share = next(m for m in METRICS if m.path == ("energy_j", "of_always_on"))
        worth = told(estimate.mean for estimate in self.of(share).values())
        others = [metric for metric in worth if metric not in self.wanted]
        return [m for m in self.wanted + others if any(e.mean for e in self.of(m).values())]

    @cached_property
    def layout(self) -> tuple[list[str], list[str], dict[int, tuple[int, int]]]:
        """Columns, series, and the place of each point: the axis with most values is horizontal."""
        columns = [list(dict.fromkeys(v)) for v in zip(*self.settings.values(), strict=True)]
        if columns:
            across = max(range(len(columns)), key=lambda i: len(columns[i]))
            others = {
                p: ", ".join(
                    f"{axis} {value}"
                    for i, (axis, value) in enumerate(zip(self.short, row, strict=True))
                    if i != across
                )
                for p, row in self.settings.items()
            }
            series = list(dict.fromkeys(others.values()))
            places = {
                p: (columns[across].index(row[across]), series.index(others[p]))
                for p, row in self.settings.items()
            }
            if len(series) <= _MOST_SERIES and len(set(places.values())) == len(places):
                return columns[across], series if len(columns) > 1 else [], places
        return (
            [str(p) for p in self.numbers],
            [],
            {p: (place, 0) for place, p in enumerate(self.numbers)},
        )

    @cached_property
    def across(self) -> str:
        """Name of the horizontal axis of the charts."""
        columns, _, _ = self.layout
        for place, axis in enumerate(self.axes):
            if {row[place] for row in self.settings.values()} == set(columns):
                return shown(axis, 60)
        return "point"
