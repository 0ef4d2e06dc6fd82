"""Points of a sweep, their settings, and estimates of metrics over the seeds."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import polars as pl

from eastwest.sweep import words
from eastwest.sweep.sequential import APART
from eastwest.sweep.tables import SweepResult
from eastwest.sweep.values import Bound, same_kind
from eastwest.views import goals
from eastwest.views.labels import natural, shown
from eastwest.views.metrics import COUNTERS, KNOWN, METRICS, Metric, made, told

#: Maximum number of points that pages draw and list; the tables in the folder have all points.
MOST_POINTS = 120
_MOST_SERIES = 6
#: Ratio of the largest to the smallest value of a setting from which its axis may be logarithmic.
_LEAST_LOG = 20.0


@dataclass(frozen=True)
class Estimate:
    """Mean of a metric over the seeds of a point, with its confidence interval if there is one."""

    mean: float
    low: float | None
    high: float | None

    def times(self, factor: float) -> Estimate:
        """Return the estimate multiplied by ``factor``; interval ends that are not finite: None."""
        low, high = (
            end * factor if end is not None and math.isfinite(end) else None for end in self.ends
        )
        return Estimate(self.mean * factor, low, high)

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """Lower and upper end of the interval; both None if there is no interval."""
        return self.low, self.high

    @property
    def reach(self) -> tuple[float, float]:
        """Lower and upper end of the interval; the mean twice if there is no interval."""
        low, high = (self.mean if end is None else end for end in self.ends)
        return low, high

    @property
    def is_clear(self) -> bool:
        """Whether there is an interval and it does not contain 0."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    def text(self, metric: Metric) -> str:
        """Return the mean and its interval as text: ``1.2 ms ± 3 %``."""
        return f"{metric.write(self.mean)} {self.width(metric)}".strip()

    def width(self, metric: Metric) -> str:
        """Return half the width of the interval in percent of the mean: ``± 3 %``.

        The text is empty without an interval. If the interval of a positive mean reaches to 0 or
        below, the text is its upper end: ``(≤ 3 ms)``.
        """
        if self.low is None or self.high is None or not self.mean:
            return ""
        if self.low <= 0 < self.mean:
            return f"(≤ {metric.write(self.high)})"
        share = 50 * (self.high - self.low) / abs(self.mean)
        return f"± {share:.{0 if share >= 9.5 else 1}f} %"


@dataclass(frozen=True)
class Axis:
    """Horizontal axis of a sweep's charts: its label, and text and place of each column.

    A column is a value of the setting. If all values are numbers, distances of columns are
    proportional to the differences of the numbers, or of their logarithms; otherwise, column *i*
    has the place *i* + 0.5.
    """

    label: str
    texts: list[str]
    places: list[float]
    is_numeric: bool

    @property
    def least_gap(self) -> float:
        """Least distance of two neighbouring columns; 1 if columns are not numbers."""
        ordered = sorted(self.places)
        return min((b - a for a, b in pairwise(ordered)), default=1.0)


def axis_of(name: str, columns: list[str]) -> Axis:
    """Return the axis named ``name`` with the texts ``columns`` as its columns.

    The axis has a scale if all texts are numbers with units of one kind. The scale is logarithmic
    if the largest number is at least 20 times the smallest, and the ratios of neighbours are more
    equal than their differences.
    """
    plain = Axis(name, columns, [i + 0.5 for i in range(len(columns))], is_numeric=False)
    bounds = [_bound(text) for text in columns]
    known = [bound for bound in bounds if bound is not None]
    if len(columns) < 2 or len(known) < len(columns):
        return plain
    values = [float(bound.number) for bound in known]
    if len(set(values)) < len(values) or not all(same_kind(known[0], b) for b in known):
        return plain
    by_ratio = min(values) > 0 and max(values) >= _LEAST_LOG * min(values)
    if by_ratio and _unevenness([math.log(v) for v in values]) < _unevenness(values):
        values, scale = [math.log(v) for v in values], "logarithmic"
    else:
        scale = ""
    unit = known[0].unit if len({bound.unit for bound in known}) == 1 else ""
    texts = [text.removesuffix(unit).strip() for text in columns] if unit else columns
    remark = ", ".join(part for part in (unit, scale) if part)
    low, high = min(values), max(values)
    places = [0.5 + (v - low) / (high - low) * (len(values) - 1) for v in values]
    return Axis(f"{name} ({remark})" if remark else name, texts, places, is_numeric=True)


def _bound(text: str) -> Bound | None:
    """Return the number and unit in the text of a setting; None for a text without a number."""
    try:
        return Bound.read(float(text))
    except ValueError:
        return Bound.read(text)


def _grow_together(rows: Collection[tuple[str, ...]]) -> bool:
    """Whether the first text differs in all rows, and the other texts rise or fall with it.

    Each row has the settings of a point.
    """
    ordered = [[natural(text) for text in row] for row in rows]
    ordered.sort(key=lambda row: row[0])
    columns = list(zip(*ordered, strict=True))
    return len(set(columns[0])) == len(ordered) and all(
        list(column) in (sorted(column), sorted(column, reverse=True)) for column in columns
    )


def _unevenness(values: list[float]) -> float:
    """Return the largest gap between neighbouring values as a multiple of the smallest gap."""
    gaps = [b - a for a, b in pairwise(sorted(values))]
    return max(gaps) / min(gaps)


class Points:
    """Points of a sweep, their settings as text, and estimates of metrics."""

    def __init__(self, sweep: SweepResult) -> None:
        self.sweep = sweep
        self.table = sweep.points
        self.baseline = int(sweep.summary.get("baseline", 0))
        head = self.table.unique("point", maintain_order=True).sort("point")
        self.all = head["point"].to_list()
        self.numbers = self.all[:MOST_POINTS]
        #: Column of the table ``points`` for each axis: a path, or ``case`` for an axis of names.
        self.axes = [
            path if axis is not None or path in head.columns else f"set.{path}"
            for path, axis in sweep.columns
        ]
        self.settings = {
            row["point"]: self._settings(row)
            for row in head.head(MOST_POINTS).iter_rows(named=True)
        }

    def _settings(self, row: Mapping[str, Any]) -> list[str]:
        """Return a text for each axis: the value of the setting, or the name of the case.

        ``row`` is a row of the table ``points``.
        """
        names = self.sweep.names(row["point"])
        labels = self.sweep.labels
        found = []
        for column, (path, axis) in zip(self.axes, self.sweep.columns, strict=True):
            if axis is not None:
                found.append(shown(names[axis], 40))
            elif path in labels:
                found.append(shown(labels[path].get(row[column], row[column]), 100))
            else:
                found.append(shown(row[column], 40))
        return found

    @property
    def is_named(self) -> bool:
        """Whether the horizontal axis of the chart shows names of cases, not values."""
        return self.across == "case"

    @cached_property
    def short(self) -> list[str]:
        """Names of the axes for labels: the last parts of their paths, if these differ."""
        last = [axis.rsplit(".", 1)[-1] for axis in self.axes]
        return [shown(n, 40) for n in (last if len(set(last)) == len(last) else self.axes)]

    def name(self, point: int) -> str:
        """Return the settings of a point as text: ``limit = 5 packets, kind = red``.

        If several settings grow together, the text has only the first of them.
        """
        row = self.settings.get(point, [])
        return self._said(row, self._leading if row else []) or f"point {point}"

    def column_name(self, point: int) -> str:
        """Return the horizontal axis's setting of a point as text: ``limit = 5 packets``."""
        if self._across is None:
            return self.name(point)
        return self._said(self.settings[point], [self._across])

    def _said(self, row: list[str], columns: Iterable[int], sign: str = " = ") -> str:
        """Return some settings of a point as text: ``limit = 5 packets``, or the name of a case.

        ``row`` has all settings of the point, ``columns`` the indices of the settings to return;
        ``sign`` stands between name and value.
        """
        named = [axis is not None for _, axis in self.sweep.columns]
        said = (row[i] if named[i] else f"{self.short[i]}{sign}{row[i]}" for i in columns)
        return ", ".join(said)

    @property
    def names(self) -> goals.Names:
        """Names of the points for sentences on goals, as in the terminal: ``limit 5 packets``."""

        def of(point: int) -> str:
            row = self.settings.get(point, [])
            return self._said(row, range(len(row)), " ") or f"point {point}"

        is_plain = len(self.sweep.columns) == 1 and self.sweep.columns[0][1] is None
        if is_plain or self._across is None or not self.axis.is_numeric:
            return goals.Names(of, self.short[0] if is_plain else "")
        return goals.Names(of, "", self.short[self._across], self._lines(self._across))

    def _lines(self, across: int) -> tuple[goals.Line, ...]:
        """Return lines of points that differ only in the numeric setting with index ``across``.

        Points of a line are in ascending order of this setting.
        """
        _, series, places = self.layout
        found: dict[int, list[tuple[float, str, int]]] = {}
        for point, (column, line) in places.items():
            text = self.settings[point][across]
            found.setdefault(line, []).append((self.axis.places[column], text, point))
        return tuple(
            goals.Line(series[line], tuple((text, point) for _, text, point in sorted(each)))
            for line, each in sorted(found.items())
            if series
        )

    @cached_property
    def wanted(self) -> list[Metric]:
        """Metrics in ``show`` of the sweep; without ``show``, metrics of goals and workloads."""
        there = set(self.table["metric"].unique())
        named = [words.full(name, there) for name in self.sweep.summary.get("show") or []]
        of_goals = goals.measures(self.sweep.summary, there)
        named = named or list(dict.fromkeys([*of_goals, *words.of_workloads(there)]))
        return [made(name) for name in named if name in there]

    @cached_property
    def estimates(self) -> dict[tuple[str, int], Estimate]:
        """Estimates by (metric name, point number), in the unit that ``Metric.write`` needs.

        A point without jobs has no estimates of statistics of jobs; the rule also holds for rounds,
        flows and packets.
        """
        known = KNOWN | {".".join(metric.path): metric for metric in self.wanted}
        rows = self.table.filter(
            pl.col("metric").is_in(list(known)) & pl.col("point").is_in(self.numbers)
        ).select("metric", "point", "mean", "low", "high")
        return {
            (metric, point): Estimate(mean, low, high).times(known[metric].factor)
            for metric, point, mean, low, high in rows.iter_rows()
            if mean is not None
            and math.isfinite(mean)
            and (point, ".".join(known[metric].counter or ())) not in self._empty
        }

    @cached_property
    def least_values(self) -> dict[tuple[str, int], float]:
        """Lower bounds of means by (metric name, point number), where runs were stopped early.

        They are in the unit that ``Metric.write`` needs.
        """
        if "at_least" not in self.table.columns:
            return {}
        known = KNOWN | {".".join(metric.path): metric for metric in self.wanted}
        rows = self.table.drop_nulls("at_least").filter(pl.col("metric").is_in([*known]))
        found = rows.select("metric", "point", "at_least").iter_rows()
        return {(metric, point): value * known[metric].factor for metric, point, value in found}

    @cached_property
    def _empty(self) -> set[tuple[int, str]]:
        """(point number, metric) where the number of jobs, rounds, flows or packets is always 0."""
        zero = self.table.filter(
            (pl.col("mean") == 0) & pl.col("metric").is_in([".".join(c) for c in COUNTERS.values()])
        )
        return set(zero.select("point", "metric").iter_rows())

    @cached_property
    def compared(self) -> dict[tuple[str, int], Estimate]:
        """Relative differences from the baseline (0.1: 10 % more), by (metric name, point number).

        Values with the same seed are paired.
        """
        rows = self.sweep.comparisons.filter(pl.col("point").is_in(self.numbers)).select(
            "metric", "point", "difference", "low", "high", "baseline_mean"
        )
        return {
            (metric, point): Estimate(difference, low, high).times(1 / abs(base))
            for metric, point, difference, low, high, base in rows.iter_rows()
            if base and difference is not None and math.isfinite(difference)
        }

    def difference(self, metric: Metric, point: int) -> Estimate | None:
        """Return the difference of a metric from the baseline, paired by seed, or None.

        The difference is in the unit that ``metric.write`` needs. None means that the point or the
        baseline has no value.
        """
        rows = self.sweep.comparisons.filter(
            (pl.col("metric") == ".".join(metric.path)) & (pl.col("point") == point)
        ).select("difference", "low", "high")
        for difference, low, high in rows.iter_rows():
            if difference is not None and math.isfinite(difference):
                return Estimate(difference, low, high).times(metric.factor)
        return None

    def apart(self) -> list[str]:
        """Return a sentence on the points that differ clearly from the baseline.

        The metric is that of a rule with ``until = "apart"``; without such a rule, the list is
        empty.
        """
        rule = self.sweep.summary.get("adaptive") or {}
        if rule.get("until") != APART:
            return []
        metric = words.full(rule["metric"], self.table["metric"].unique())
        rows = self.sweep.comparisons.filter(
            (pl.col("metric") == metric) & (pl.col("baseline") == self.baseline)
        ).select("point", "difference", "low", "high")
        names: dict[bool, list[str]] = {True: [], False: []}
        for point, *difference in rows.sort("point").iter_rows():
            names[Estimate(*difference).is_clear].append(self.names.of(point))
        said = [
            f"{'clear' if clear else 'not clear'} at {self.names.listed(points)}"
            for clear, points in names.items()
            if points
        ]
        what = f"{made(metric).title}, difference to {self.names.of(self.baseline)}"
        return [f"{what}: {'; '.join(said)}."] if said else []

    def of(self, metric: Metric) -> dict[int, Estimate]:
        """Return the estimates of a metric by point number, for points that have an estimate."""
        name = ".".join(metric.path)
        return {p: self.estimates[name, p] for p in self.numbers if (name, p) in self.estimates}

    @cached_property
    def metrics(self) -> list[Metric]:
        """Metrics that differ from 0 at one point at least; metrics in ``show`` come first.

        Metrics of energy are included only if links slept.
        """
        share = next(m for m in METRICS if m.path == ("energy_j", "of_always_on"))
        worth = told(estimate.mean for estimate in self.of(share).values())
        others = [metric for metric in worth if metric not in self.wanted]
        return [m for m in self.wanted + others if any(e.mean for e in self.of(m).values())]

    @cached_property
    def _leading(self) -> list[int]:
        """Indices of the settings that identify a point; of settings that grow together, the first.

        Settings that a random sample draws are all included.
        """
        kept: list[int] = []
        place = 0
        for axis in self.sweep.summary["axes"]:
            count = 1 if axis.get("names") else len(axis["paths"])
            together = range(place, place + count)
            rows = {tuple(row[i] for i in together) for row in self.settings.values()}
            kept += together[:1] if _grow_together(rows) else together
            place += count
        return kept

    @cached_property
    def layout(self) -> tuple[list[str], list[str], dict[int, tuple[int, int]]]:
        """Texts of columns, names of series, and (column, series) as indices by point number.

        Columns are the values of the setting with the most values; series are the combinations of
        the other settings.
        """
        across = self._across
        if across is None:
            places = {p: (place, 0) for place, p in enumerate(self.numbers)}
            return [str(p) for p in self.numbers], [], places
        columns = list(dict.fromkeys(row[across] for row in self.settings.values()))
        others = self._beside(across)
        series = list(dict.fromkeys(others.values()))
        places = {
            p: (columns.index(row[across]), series.index(others[p]))
            for p, row in self.settings.items()
        }
        return columns, series if len(self._leading) > 1 else [], places

    def _beside(self, across: int) -> dict[int, str]:
        """Return the settings of each point as text, without the setting with index ``across``."""
        columns = [i for i in self._leading if i != across]
        return {p: self._said(row, columns) for p, row in self.settings.items()}

    @cached_property
    def _across(self) -> int | None:
        """Index of the setting on the horizontal axis; None if there were too many series."""
        if not self._leading:
            return None
        rows = self.settings
        across = max(self._leading, key=lambda i: len({row[i] for row in rows.values()}))
        others = self._beside(across)
        told = {(row[across], others[p]) for p, row in rows.items()}
        few = len(set(others.values())) <= _MOST_SERIES
        return across if few and len(told) == len(rows) else None

    @cached_property
    def axis(self) -> Axis:
        """Horizontal axis of the charts."""
        return axis_of(self.across, self.layout[0])

    @cached_property
    def across(self) -> str:
        """Name of the charts' horizontal axis: the path of a setting, ``case``, or ``point``."""
        return "point" if self._across is None else shown(self.axes[self._across], 60)
