"""Confidence intervals, compared with closed forms and with samples of known distribution."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from eastwest.stats import (
    Interval,
    mean_interval,
    paired_interval,
    percentile,
    percentile_interval,
    runs_needed,
    standard_deviation,
    t_quantile,
)


def ends(interval: Interval) -> tuple[float, float]:
    assert interval.low is not None and interval.high is not None
    return interval.low, interval.high


def test_t_quantiles_are_those_of_the_tables() -> None:
    # Student's t at 97.5 %, from printed tables; with one degree of freedom it is tan(0.475 π).
    for degrees, expected in ((2, 4.303), (4, 2.776), (9, 2.262), (29, 2.045), (1000, 1.962)):
        assert t_quantile(0.975, degrees) == pytest.approx(expected, abs=5e-4)
    assert t_quantile(0.975, 1) == pytest.approx(math.tan(0.475 * math.pi), rel=1e-12)


def test_a_mean_has_the_interval_of_the_closed_form() -> None:
    values = [1.0, 2.0, 3.0, 4.0, 5.0]
    found = mean_interval(values)
    half = 2.7764451051977987 * math.sqrt(2.5) / math.sqrt(5)
    assert (found.n, found.value) == (5, 3.0)
    assert ends(found) == pytest.approx((3 - half, 3 + half))
    assert found.relative_half_width == pytest.approx(half / 3)
    low, high = scipy_stats.t.interval(0.9, 4, loc=3, scale=scipy_stats.sem(values))
    assert ends(mean_interval(values, 0.9)) == pytest.approx((low, high))


def test_one_value_has_no_interval_and_equal_values_an_empty_one() -> None:
    assert mean_interval([7.0]) == Interval(1, 7.0, None, None)
    assert mean_interval([7.0]).relative_half_width == math.inf
    assert mean_interval([7.0] * 3) == Interval(3, 7.0, 7.0, 7.0)
    assert mean_interval([0.0] * 3).relative_half_width == 0
    assert standard_deviation([1.0]) is None
    for values, confidence in (([], 0.95), ([1.0], 1.0), ([1.0], 0.0)):
        with pytest.raises(ValueError):
            mean_interval(values, confidence)


def test_pairs_take_out_what_both_settings_share() -> None:
    shared = [10.0, 20.0, 30.0, 40.0]
    better = [v - 1 + d for v, d in zip(shared, (0.1, -0.1, 0.05, -0.05), strict=True)]
    found = paired_interval(better, shared)
    assert found.value == pytest.approx(-1)
    assert found.high is not None and found.high < 0
    theirs = scipy_stats.ttest_rel(better, shared).confidence_interval(0.95)
    assert ends(found) == pytest.approx((theirs.low, theirs.high))
    # Without the pairing by seed, the interval of the one contains the mean of the other.
    wide = mean_interval(shared)
    assert wide.low is not None and wide.low < mean_interval(better).value
    with pytest.raises(ValueError):
        paired_interval([1.0], [1.0, 2.0])


def test_percentiles_are_those_of_the_summary() -> None:
    values = [float(v) for v in range(1, 101)]
    assert [percentile(values, q) for q in (0.5, 0.99, 0.999)] == [50, 99, 100]
    assert percentile([3.0], 0.5) == 3


def test_a_median_lies_between_the_order_statistics_of_the_tables() -> None:
    # Ranks for the median at 95 %: Conover, Practical Nonparametric Statistics, table A3.
    for n, low, high in ((6, 1, 6), (8, 1, 8), (9, 2, 8), (12, 3, 10), (20, 6, 15), (25, 8, 18)):
        found = percentile_interval([float(v) for v in range(1, n + 1)], 0.5)
        assert (found.low, found.high) == (low, high), n
    five = percentile_interval([1.0, 2.0, 3.0, 4.0, 5.0], 0.5)
    assert (five.value, five.low, five.high) == (3.0, None, None)


def test_a_high_percentile_needs_many_runs() -> None:
    few = percentile_interval([float(v) for v in range(100)], 0.99)
    assert few.high is None and few.low is not None
    many = percentile_interval([float(v) for v in range(1000)], 0.99)
    assert many.low is not None and many.high is not None
    assert many.low < many.value < many.high
    with pytest.raises(ValueError):
        percentile_interval([1.0], 1.0)


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    random = np.random.default_rng(1)
    samples = random.lognormal(0, 0.5, (2000, 11)).tolist()
    median = normal = 0
    for sample in samples:
        found = percentile_interval(sample, 0.5)
        assert found.low is not None and found.high is not None
        median += found.low <= 1 <= found.high
        of_logs = mean_interval([math.log(v) for v in sample])
        assert of_logs.low is not None and of_logs.high is not None
        normal += of_logs.low <= 0 <= of_logs.high
    # Order statistics come in steps, so the coverage is at least the nominal one.
    assert 0.95 <= median / 2000 < 0.995
    assert normal / 2000 == pytest.approx(0.95, abs=0.015)


def test_more_runs_are_asked_for_in_steps() -> None:
    wide = Interval(5, 10.0, 8.0, 12.0)  # The interval is ± 20 % of the mean.
    # Half the width would need four times as many runs, but at most twice as many are proposed.
    assert runs_needed(wide, 0.1, 100) == 10
    assert runs_needed(wide, 0.19, 100) == 6
    assert runs_needed(wide, 0.1, 7) == 7
    assert runs_needed(Interval(5, 0.0, -1.0, 1.0), 0.1, 100) == 10
