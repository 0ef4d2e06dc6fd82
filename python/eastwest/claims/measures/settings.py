"""Measures over many points: ratios and reductions from a reference, best setting, order.

A *share* is the value at a point divided by the value at the point with which it is compared, for
each seed: runs with equal seeds have equal blocks and start times. Intervals are 95 % Student t
intervals over seeds.
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
    """Return the mean ratio of a value at points ``at`` to the value at points ``against``.

    Ratios are computed for each seed; the mean is over points and seeds. ``of`` is the name of the
    value at ``against``, if it is not ``value``.
    """
    return _mean(data, value, at, against, lambda share: share, of)


@measure("mean-reduction", share=True)
def mean_reduction(
    data: Data, value: str, at: Settings, against: Settings, of: str = ""
) -> Measured:
    """Return the mean relative reduction of a value from points ``against`` to points ``at``.

    Reductions are computed for each seed; the mean is over points and seeds. ``of`` is the name of
    the value at ``against``, if it is not ``value``.
    """
    return _mean(data, value, at, against, lambda share: 1 - share, of)


@measure("reduction-difference", share=True)
def reduction_difference(
    data: Data, value: str, at: Settings, less: Settings, against: Settings
) -> Measured:
    """Return the mean reduction at points ``at`` minus the mean reduction at points ``less``.

    Both are relative reductions of ``value`` from the points ``against``, between runs with equal
    seeds.
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
            "the points `at` and `less` have no seed in common, but a comparison needs one"
        )
    interval = mean_interval([ours[seed] - others[seed] for seed in common])
    return Measured(interval.value, interval.low, interval.high, interval.n)


@measure("saved-share", share=True)
def saved_share(data: Data, value: str, whole: str, at: Settings, against: Settings) -> Measured:
    """Return the absolute reduction of ``value`` divided by the absolute reduction of ``whole``.

    Both are reductions from points ``against`` to points ``at``, summed over all points; the result
    is the mean of the quotient over the seeds.
    """
    parts, wholes = (_saved(_pairs(data, each, at, against)) for each in (value, whole))
    shares = [
        parts[seed] / wholes[seed] for seed in sorted(parts.keys() & wholes.keys()) if wholes[seed]
    ]
    if not shares:
        raise MeasureError(
            f"{whole} is equal at the points `at` and `against`, so that no share of its reduction "
            "is defined"
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
    """Return the largest mean relative reduction of a value from ``against`` to a point of ``at``.

    ``of`` is the name of the value at ``against``, if it is not ``value``. ``keeping`` names a
    second value: a point is considered only if the mean of this value is at least 1 − ``loss``
    times its mean at ``keeping_against`` (default: ``against``).
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
    """Return the smallest mean relative reduction of a value from ``against`` to a point of ``at``.

    The reduction is negative if the value increases. ``of`` is the name of the value at
    ``against``, if it is not ``value``.
    """
    return _extreme(_pairs(data, value, at, against, of), -1)


@measure("lower-share", share=True)
def lower_share(data: Data, value: str, at: Settings, against: Settings) -> Measured:
    """Return the share of pairs of points whose mean at ``at`` is below the mean at ``against``.

    A pair is a point of ``at`` and a point of ``against`` that differ only in the settings that
    ``at`` and ``against`` name.
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
    """Return the setting (a number) on the axis ``along`` with the least mean of ``value``.

    With ``highest``, it is the setting with the largest mean.
    """
    places = _along(data, value, at, along)
    best = (max if highest else min)(places, key=lambda place: places[place])
    rows: list[Row] = [{along: place, value: mean} for place, mean in places.items()]
    return Measured(best, seeds=_seeds(data.samples(value, at)), rows=rows)


@measure("trend")
def trend(data: Data, value: str, at: Settings, along: str) -> Measured:
    """Return the rank correlation (Spearman) between the settings of an axis and mean values.

    1: the mean rises along the whole axis; -1: the mean falls along the whole axis; 0: no trend,
    for example if all means are equal. The settings of the axis ``along`` are numbers.
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
    """Return the number of reversed pairs: simulated means in the opposite order of measured means.

    ``measured`` and ``spread`` are the means and standard deviations that others have measured at
    the points, in the order of the sweep. Only pairs whose measured means differ by more than the
    sum of the two deviations are considered. The interval is not a confidence interval: it extends
    from the number of certainly reversed pairs to the number of all reversed pairs. A pair is
    certainly reversed if the simulated means differ by more than the sum of the half-widths of
    their two 95 % intervals.
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
    """Return the least mean of a value at points ``at``, divided by the least at ``against``."""
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
            "the points `at` and `against` have no seed in common, but a comparison needs one"
        )
    each = [_shares(*pair) for pair in pairs]
    values = [math.fsum(read(shares[seed]) for shares in each) / len(each) for seed in seeds]
    interval = mean_interval(values)
    return Measured(interval.value, interval.low, interval.high, interval.n, rows=_rows(pairs))


def _pairs(
    data: Data, value: str, at: Settings, against: Settings, of: str = ""
) -> list[tuple[Sample, Sample]]:
    """Return a pair (point, reference) for each point of ``at``: two points that are compared.

    References are points of ``against``. A single point of ``against`` is the reference of all
    points. Otherwise the reference of a point has equal settings on each axis that ``against`` does
    not name, if the point has this axis. If several points of ``against`` fit, the reference is the
    point with the most equal settings. ``of`` is the name of the value at references, if it is not
    ``value``. Raises ``MeasureError`` unless each point has exactly one reference.
    """
    theirs = data.samples(of or value, against)
    pairs = []
    for sample in data.samples(value, at):
        alike = [other for other in theirs if _agree(sample, other, against)]
        if len(alike) > 1:  # several sweeps have a point that can be the reference
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
    """Return the value of ``sample`` divided by the value of ``other``, by seed.

    Seeds that only one point has, and seeds for which the value of ``other`` is 0, are left out.
    """
    common = [seed for seed in sample.values if other.values.get(seed)]
    return {seed: sample.values[seed] / other.values[seed] for seed in common}


def _saved(pairs: Sequence[tuple[Sample, Sample]]) -> dict[int, float]:
    """Return the sum of (value of the second point − value of the first) over pairs, by seed."""
    seeds = set.intersection(*({*ours.values} & {*theirs.values} for ours, theirs in pairs))
    return {
        seed: math.fsum(theirs.values[seed] - ours.values[seed] for ours, theirs in pairs)
        for seed in seeds
    }


def _extreme(pairs: Sequence[tuple[Sample, Sample]], sign: int) -> Measured:
    """Return the largest or the smallest mean relative reduction between the points of a pair.

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
    """Return the mean of a value for each setting on the axis ``along``, by setting.

    Each mean is over all points of ``at`` with this setting. The settings are numbers (with a unit:
    in the smallest unit) in ascending order.
    """
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
    """Return the first setting of each axis at a point as a short text: values without paths."""
    return ", ".join(str(value) for value in sample.settings.values())
