"""Measures over many settings: ratios and reductions from a reference, best setting, order.

A *share* is the value at a point divided by the value at the point with which it is compared, seed
by seed: runs with equal seeds have equal blocks and start times. Intervals are Student t intervals
over seeds.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from statistics import correlation

from eastwest.claims.measures.base import (
    Data,
    Measured,
    MeasureError,
    Row,
    Sample,
    Settings,
    measure,
)
from eastwest.stats import mean_interval
from eastwest.sweep.values import Bound

Reading = Callable[[float], float]


@measure("mean-ratio", share=True)
def mean_ratio(data: Data, value: str, at: Settings, against: Settings, of: str = "") -> Measured:
    """Return the mean ratio of a value at points ``at`` to the value at ``against``, seed by seed.

    ``of`` names the value at ``against``, if it is not ``value``.
    """
    return _mean(data, value, at, against, lambda share: share, of)


@measure("mean-reduction", share=True)
def mean_reduction(
    data: Data, value: str, at: Settings, against: Settings, of: str = ""
) -> Measured:
    """Return the mean relative reduction of a value from points ``against`` to points ``at``.

    ``of`` names the value at ``against``, if it is not ``value``.
    """
    return _mean(data, value, at, against, lambda share: 1 - share, of)


@measure("reduction-difference", share=True)
def reduction_difference(
    data: Data, value: str, at: Settings, less: Settings, against: Settings
) -> Measured:
    """Return the mean reduction at points ``at`` minus the mean reduction at points ``less``.

    Both are relative reductions from the points ``against``; runs of equal seeds are compared.
    """
    means = []
    for points in (at, less):
        pairs = _pairs(data, value, points, against)
        each = [_shares(*pair) for pair in pairs]
        seeds = set.intersection(*({*shares} for shares in each))
        means.append({s: 1 - math.fsum(shares[s] for shares in each) / len(each) for s in seeds})
    ours, others = means
    common = sorted(ours.keys() & others.keys())
    if not common:
        raise MeasureError(
            "the points `at` and `less` have no seed in common: a comparison needs one"
        )
    interval = mean_interval([ours[seed] - others[seed] for seed in common])
    return Measured(interval.value, interval.low, interval.high, interval.n)


@measure("saved-share", share=True)
def saved_share(data: Data, value: str, whole: str, at: Settings, against: Settings) -> Measured:
    """Return the reduction of ``value``, divided by the reduction of ``whole``.

    Both are reductions from ``against`` to ``at``, summed over all points.
    """
    parts, wholes = (_saved(_pairs(data, each, at, against)) for each in (value, whole))
    shares = [
        parts[seed] / wholes[seed] for seed in sorted(parts.keys() & wholes.keys()) if wholes[seed]
    ]
    if not shares:
        raise MeasureError(
            f"{whole} is equal at the points `at` and `against`: there is no reduction to share"
        )
    interval = mean_interval(shares)
    return Measured(interval.value, interval.low, interval.high, interval.n)


@measure("best-reduction", share=True)
def best_reduction(
    data: Data,
    value: str,
    at: Settings,
    against: Settings,
    keeping: str = "",
    keeping_against: Settings | None = None,
    loss: float = 0.0,
    of: str = "",
) -> Measured:
    """Return the largest mean reduction of a value at any of the points ``at``.

    ``of`` names the value at the point ``against``, if it is not ``value``. With ``keeping``, only
    points count at which the mean of the value ``keeping`` is at least 1 − ``loss`` times its mean
    at ``keeping_against`` (default: ``against``).
    """
    pairs = _pairs(data, value, at, against, of)
    if keeping:
        base = data.sample(keeping, keeping_against or against).mean
        kept = {_key(s) for s in data.samples(keeping, at) if s.mean >= (1 - loss) * base}
        pairs = [pair for pair in pairs if _key(pair[0]) in kept]
        if not pairs:
            name = re.sub(r"_(bps|s|us|bytes|j)\b|-bps$", "", keeping).replace("-", " ")
            share = f"{100 * (1 - loss):g} %"
            return Measured(
                -math.inf, text=f"no setting has at least {share} of the {name} of the reference"
            )
    return _extreme(pairs, 1)


@measure("least-reduction", share=True)
def least_reduction(
    data: Data, value: str, at: Settings, against: Settings, of: str = ""
) -> Measured:
    """Return the smallest mean reduction at any of the points ``at``; negative for an increase."""
    return _extreme(_pairs(data, value, at, against, of), -1)


@measure("lower-share", share=True)
def lower_share(data: Data, value: str, at: Settings, against: Settings) -> Measured:
    """Return the share of pairs of points with a lower mean at ``at`` than at ``against``.

    The two points of a pair differ only in the settings that ``at`` and ``against`` name.
    """
    apart = {*at, *against}
    theirs = {_key(sample, apart): sample for sample in data.samples(value, against)}
    rows: list[Row] = []
    lower = 0
    for sample in data.samples(value, at):
        other = theirs.get(_key(sample, apart))
        if other is None:
            continue
        lower += sample.mean < other.mean
        rows.append({"setting": _words(sample), value: sample.mean, "against": other.mean})
    if not rows:
        raise MeasureError(
            "no two points differ only in the settings of `at` and `against`: nothing to compare"
        )
    seeds = min(len(sample.values) for sample in theirs.values())
    return Measured(lower / len(rows), seeds=seeds, text=f"{lower} of {len(rows)}", rows=rows)


@measure("best-place")
def best_place(data: Data, value: str, at: Settings, along: str, highest: bool = False) -> Measured:
    """Return the number on the axis ``along`` with the least (``highest``: largest) mean value."""
    places = _along(data, value, at, along)
    best = (max if highest else min)(places, key=lambda place: places[place])
    rows: list[Row] = [{along: place, value: mean} for place, mean in places.items()]
    return Measured(best, seeds=_seeds(data.samples(value, at)), rows=rows)


@measure("trend")
def trend(data: Data, value: str, at: Settings, along: str) -> Measured:
    """Return Spearman's rank correlation between the numbers of an axis and the mean of a value.

    1 means that the mean rises along the whole axis, -1 that it falls. It is 0 for equal means.
    """
    places = _along(data, value, at, along)
    if len(places) < 3:
        raise MeasureError(
            f"the axis {along} has {len(places)} values: a trend needs at least three"
        )
    means = list(places.values())
    ranks = [sum(other < mean for other in means) for mean in means]
    rows: list[Row] = [{along: place, value: mean} for place, mean in places.items()]
    found = correlation(range(len(ranks)), ranks) if len(set(ranks)) > 1 else 0.0
    return Measured(found, seeds=_seeds(data.samples(value, at)), rows=rows)


@measure("reversed-pairs")
def reversed_pairs(
    data: Data, value: str, at: Settings, measured: list[float], spread: list[float]
) -> Measured:
    """Return the number of pairs of points whose means have the opposite order to those measured.

    ``measured`` and ``spread`` are the measured means and standard deviations of the points, in the
    order of the sweep. A pair counts if its measured means differ by more than the sum of the two
    deviations. The interval is not a confidence interval: it begins at the number of reversed pairs
    whose order is certain, and ends at the number of all reversed pairs. An order is certain if the
    simulated means differ by more than the sum of the half-widths of their two 95 % intervals.
    """
    samples = data.samples(value, at)
    if not len(samples) == len(measured) == len(spread):
        raise MeasureError(
            f"the sweep has {len(samples)} points, but `measured` has {len(measured)} and `spread` "
            f"{len(spread)} values: give one for each point"
        )
    told = sure = 0
    rows: list[Row] = []
    ours = [sample.mean for sample in samples]
    halves = [_half_width(sample) for sample in samples]
    for a, b in itertools.combinations(range(len(samples)), 2):
        gap = measured[a] - measured[b]
        if abs(gap) <= spread[a] + spread[b]:
            continue
        told += 1
        if gap * (ours[a] - ours[b]) < 0:
            pair = {"first": _words(samples[a]), "second": _words(samples[b])}
            theirs = {"measured_first": measured[a], "measured_second": measured[b]}
            rows.append({**pair, **theirs, "first_value": ours[a], "second_value": ours[b]})
            sure += abs(ours[a] - ours[b]) > halves[a] + halves[b]
    seeds = min(len(sample.values) for sample in samples)
    count = float(len(rows))
    return Measured(count, float(sure), count, seeds, text=f"{len(rows)} of {told}", rows=rows)


def _half_width(sample: Sample) -> float:
    """Return half the width of the 95 % interval of a mean; 0 if there is only one seed."""
    interval = mean_interval(list(sample.values.values()))
    return 0.0 if interval.low is None else interval.value - interval.low


@measure("best-ratio", share=True)
def best_ratio(data: Data, value: str, at: Settings, against: Settings) -> Measured:
    """Return the ratio of the least mean at points ``at`` to the least mean at ``against``."""
    ours, theirs = data.samples(value, at), data.samples(value, against)
    first, second = (min(group, key=lambda sample: sample.mean) for group in (ours, theirs))
    rows: list[Row] = [{"setting": _words(s), value: s.mean} for s in (*ours, *theirs)]
    text = f"{_words(first)} over {_words(second)}"
    return Measured(first.mean / second.mean, seeds=_seeds([*ours, *theirs]), text=text, rows=rows)


def _mean(
    data: Data, value: str, at: Settings, against: Settings, read: Reading, of: str
) -> Measured:
    pairs = _pairs(data, value, at, against, of)
    seeds = sorted(set.intersection(*({*_shares(*pair)} for pair in pairs)))
    if not seeds:
        raise MeasureError(
            "the points `at` and `against` have no seed in common: a comparison needs one"
        )
    each = [_shares(*pair) for pair in pairs]
    values = [math.fsum(read(shares[seed]) for shares in each) / len(each) for seed in seeds]
    interval = mean_interval(values)
    return Measured(interval.value, interval.low, interval.high, interval.n, rows=_rows(pairs))


def _pairs(
    data: Data, value: str, at: Settings, against: Settings, of: str = ""
) -> list[tuple[Sample, Sample]]:
    """Return pairs: each point ``at``, and the point of ``against`` with which it is compared.

    A single point of ``against`` is compared with all points ``at``. If there are several, the
    chosen point has equal settings on the axes that both points have and ``against`` does not
    name; among several of these, it has the most equal settings. ``of`` names the value at this
    point, if it is not ``value``. Raises ``MeasureError`` where not exactly one point fits.
    """
    theirs = data.samples(of or value, against)
    pairs = []
    for sample in data.samples(value, at):
        alike = [other for other in theirs if _agree(sample, other, against)]
        if len(alike) > 1:  # points of several sweeps agree with this one
            most = max(_agreeing(sample, other) for other in alike)
            alike = [other for other in alike if _agreeing(sample, other) == most]
        alike = theirs if len(theirs) == 1 else alike
        if len(alike) != 1:
            message = (
                f"{len(alike)} points of `against` can be compared with {_words(sample)}; exactly "
                "one is needed"
            )
            raise MeasureError(message)
        pairs.append((sample, alike[0]))
    return pairs


def _agree(sample: Sample, other: Sample, named: Settings) -> bool:
    ours = sample.decided
    free = other.axes_but(named)
    return all(str(ours[path]) == str(setting) for path, setting in free.items() if path in ours)


def _agreeing(sample: Sample, other: Sample) -> int:
    """Return the number of settings that have equal values at both points."""
    theirs = other.decided
    return sum(str(theirs.get(path)) == str(setting) for path, setting in sample.decided.items())


def _shares(sample: Sample, other: Sample) -> dict[int, float]:
    """Return by seed the value of ``sample`` divided by the value of ``other``, unless it is 0."""
    common = [seed for seed in sample.values if other.values.get(seed)]
    return {seed: sample.values[seed] / other.values[seed] for seed in common}


def _saved(pairs: Sequence[tuple[Sample, Sample]]) -> dict[int, float]:
    """Return by seed the sum of (second value − first value) over all pairs of points."""
    seeds = set.intersection(*({*ours.values} & {*theirs.values} for ours, theirs in pairs))
    return {
        seed: math.fsum(theirs.values[seed] - ours.values[seed] for ours, theirs in pairs)
        for seed in seeds
    }


def _extreme(pairs: Sequence[tuple[Sample, Sample]], sign: int) -> Measured:
    """Return the mean reduction of the pair of points where it is largest or smallest.

    ``sign``: 1 for the largest, -1 for the smallest.
    """
    means = {
        place: mean_interval(list(_shares(*pair).values())).value
        for place, pair in enumerate(pairs)
    }
    place = min(means, key=lambda each: sign * means[each])
    interval = mean_interval([1 - share for share in _shares(*pairs[place]).values()])
    return Measured(
        interval.value, interval.low, interval.high, interval.n, _words(pairs[place][0]),
        _rows(pairs),
    )  # fmt: skip


def _rows(pairs: Sequence[tuple[Sample, Sample]]) -> list[Row]:
    return [
        {
            "setting": _words(sample),
            "mean": sample.mean,
            "share": mean_interval(list(_shares(sample, other).values())).value,
            "seeds": len(_shares(sample, other)),
        }
        for sample, other in pairs
    ]


def _along(data: Data, value: str, at: Settings, along: str) -> dict[float, float]:
    """Return for each number of an axis, ascending, the mean of a value at all its points."""
    found: dict[float, list[float]] = {}
    for sample in data.samples(value, at):
        bound = Bound.read(sample.settings.get(along))
        if bound is None:
            raise MeasureError(f"{along} is not an axis whose values are numbers")
        found.setdefault(float(bound.number), []).append(sample.mean)
    return {place: math.fsum(found[place]) / len(found[place]) for place in sorted(found)}


def _key(sample: Sample, without: set[str] | None = None) -> tuple[tuple[str, str], ...]:
    apart = without or set()
    fixed = {path: v for path, v in sample.fixed.items() if path not in apart}
    both = {**fixed, **sample.axes_but(apart)}
    return tuple(sorted((path, str(setting)) for path, setting in both.items()))


def _seeds(samples: Sequence[Sample]) -> int:
    return min(len(sample.values) for sample in samples)


def _words(sample: Sample) -> str:
    """Return the settings of a point as a short text: the values without their paths."""
    return ", ".join(str(value) for value in sample.settings.values())
