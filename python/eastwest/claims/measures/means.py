"""Measures of claims: means and maxima over seeds, and reductions between two settings."""

from __future__ import annotations

from eastwest.claims.measures.base import (
    Data,
    Measured,
    MeasureError,
    Sample,
    Settings,
    measure,
)
from eastwest.stats import mean_interval


@measure("mean")
def mean(data: Data, value: str, at: Settings) -> Measured:
    """Return the mean of a value at one point, with its Student t interval over seeds."""
    sample = data.sample(value, at)
    interval = mean_interval(list(sample.values.values()))
    return Measured(interval.value, interval.low, interval.high, interval.n)


@measure("reduction", share=True)
def reduction(data: Data, value: str, at: Settings, against: Settings) -> Measured:
    """Return the mean relative reduction of a value from the point ``against`` to ``at``.

    This is the mean of ``1 − a/b`` over the seeds that both points have, with its 95 % interval;
    ``a`` is the value at the point ``at``, ``b`` the value at ``against``. Runs with equal seeds
    have equal jobs and start times. Seeds for which ``b`` is 0 are left out.
    """
    pairs = _pairs(data.sample(value, at), data.sample(value, against))
    shares = [1 - ours / theirs for ours, theirs in pairs if theirs]
    if not shares:
        raise MeasureError(
            f"{value} is 0 in all runs at the point `against`: no relative reduction is defined"
        )
    interval = mean_interval(shares)
    return Measured(interval.value, interval.low, interval.high, interval.n)


@measure("saved")
def saved(data: Data, value: str, at: Settings, against: Settings) -> Measured:
    """Return the mean absolute reduction of a value from the point ``against`` to ``at``.

    The reduction has the unit of the value. The mean and its 95 % interval are over the seeds that
    both points have.
    """
    pairs = _pairs(data.sample(value, at), data.sample(value, against))
    interval = mean_interval([theirs - ours for ours, theirs in pairs])
    return Measured(interval.value, interval.low, interval.high, interval.n)


def _pairs(ours: Sample, theirs: Sample) -> list[tuple[float, float]]:
    """Return (value of ``ours``, value of ``theirs``) for each seed that both points have.

    Raises ``MeasureError`` if there is no such seed.
    """
    seeds = [seed for seed in ours.values if seed in theirs.values]
    if not seeds:
        raise MeasureError(
            "the points `at` and `against` have no seed in common, but a comparison needs one"
        )
    return [(ours.values[seed], theirs.values[seed]) for seed in seeds]


@measure("largest")
def largest(data: Data, value: str, at: Settings) -> Measured:
    """Return the largest value of all runs at one point, for publications that report maxima.

    A maximum has no interval over seeds.
    """
    values = data.sample(value, at).values
    return Measured(max(values.values()), seeds=len(values))
