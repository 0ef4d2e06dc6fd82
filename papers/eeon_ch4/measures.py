"""Measures energy and energy-delay products of sleeping links, and growth along an axis."""

from __future__ import annotations

from statistics import correlation, fmean

from eastwest.claims.measures import Data, Measured, MeasureError, Row, measure, run_value
from eastwest.results import Result, pick
from eastwest.stats import mean_interval


@run_value("switch-ports-energy-j")
def switch_ports_energy_j(result: Result) -> float:
    """Return the energy of all ports of switches in J: of all links that do not leave a host."""
    links = result.links.filter(result.links["tier"] != "host-up")
    return float(links["energy_j"].sum())


def _delay_product(result: Result, links: str) -> float:
    """Return the energy of a class of links times the mean runtime of jobs, in J·s."""
    joules = pick(result.summary, "energy_j", *links.split(), "total")
    runtime_s = pick(result.summary, "jobs", "runtime_s", "mean")
    if joules is None or not runtime_s:
        raise MeasureError(f"{result.path} has no jobs, or no energy")
    return float(joules) * float(runtime_s)


@run_value("energy-delay-js")
def energy_delay_js(result: Result) -> float:
    """Return the energy of all links times the mean runtime of jobs, in J·s.

    The product in the summary uses the simulated time instead of the runtime. That time depends on
    the arrivals of jobs, not on the network.
    """
    return _delay_product(result, "")


@run_value("fabric-energy-delay-js")
def fabric_energy_delay_js(result: Result) -> float:
    """Return the energy of links between switches times the mean runtime of jobs, in J·s."""
    return _delay_product(result, "fabric_links")


@run_value("terasort-runtime-s")
def terasort_runtime_s(result: Result) -> float:
    """Return the mean runtime of the TeraSort jobs of a stream, in s."""
    jobs = result.jobs.filter(result.jobs["kind"] == "terasort")
    mean = jobs["runtime_s"].mean()
    if not isinstance(mean, float):
        raise MeasureError(f"{result.path} has no TeraSort that finished")
    return mean


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
    """Return the gap between two values at the end of the axis, divided by the gap at its start."""
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
