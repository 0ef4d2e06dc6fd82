"""Growth of a value along an axis of numbers: linearity, and the gap between two values."""

from __future__ import annotations

from statistics import correlation, fmean

from eastwest.claims.measures.base import Data, Measured, MeasureError, Row, measure
from eastwest.stats import mean_interval


def _along(data: Data, value: str, along: str) -> list[tuple[float, dict[int, float]]]:
    """Return the values of runs by seed at each number of the axis, in increasing order."""
    found = []
    for sample in data.samples(value):
        place = sample.settings.get(along)
        if isinstance(place, bool) or not isinstance(place, int | float):
            raise MeasureError(f"{along} is no axis of numbers")
        found.append((float(place), dict(sample.values)))
    if len(found) < 3:
        raise MeasureError(f"{len(found)} points of {along}: a line needs three")
    return sorted(found, key=lambda point: point[0])


def _rows(points: list[tuple[float, dict[int, float]]], value: str, along: str) -> list[Row]:
    rows: list[Row] = []
    for place, values in points:
        interval = mean_interval(list(values.values()))
        rows.append(
            {along: place, value: interval.value, "low": interval.low, "high": interval.high}
        )
    return rows


@measure("straightness")
def straightness(data: Data, value: str, along: str) -> Measured:
    """Return the share of the variance of means that a rising line explains (R²); 0 if it falls."""
    points = _along(data, value, along)
    places = [place for place, _ in points]
    seeds = sorted(set.intersection(*(set(values) for _, values in points)))

    def share(means: list[float]) -> float:
        if len(set(means)) == 1 or len(set(places)) == 1:
            return 0.0
        r = correlation(places, means)
        return r * r if r > 0 else 0.0

    means = [fmean(values.values()) for _, values in points]
    single = [share([values[seed] for _, values in points]) for seed in seeds]
    interval = mean_interval(single) if len(single) > 1 else None
    low, high = (interval.low, interval.high) if interval else (None, None)
    return Measured(share(means), low, high, len(seeds), rows=_rows(points, value, along))


@measure("gap-growth")
def gap_growth(data: Data, value: str, less: str, along: str) -> Measured:
    """Return the gap between two values at the end of the axis over the gap at its beginning."""
    ours, others = _along(data, value, along), _along(data, less, along)
    first, last = (
        {seed: ours[i][1][seed] - others[i][1][seed] for seed in ours[i][1] if seed in others[i][1]}
        for i in (0, -1)
    )
    seeds = [seed for seed in first if seed in last and first[seed] > 0]
    if not seeds:
        raise MeasureError(f"{value} is not above {less} at the beginning of {along}")
    interval = mean_interval([last[seed] / first[seed] for seed in seeds])
    return Measured(interval.value, interval.low, interval.high, interval.n)
