"""Rules that add seeds: looks, and the share of intervals that contain the true value."""

from __future__ import annotations

import math

import numpy as np
import pytest

from eastwest.goals.form import Limit
from eastwest.goals.judge import MET, judge
from eastwest.stats import mean_interval
from eastwest.sweep.sequential import APART, DECIDED, Adaptive

#: Number of simulated points; the standard error of a share of 95 % is 0.4 %.
POINTS = 3000
LEVEL = 0.95


def narrow(half_width: float, at_least: int, at_most: int) -> Adaptive:
    return Adaptive("m", half_width, at_least, at_most)


def decided(at_least: int, at_most: int) -> Adaptive:
    return Adaptive("", 0.0, at_least, at_most, DECIDED)


@pytest.mark.parametrize(
    ("at_least", "at_most", "looks"),
    [
        (5, 40, (5, 8, 11, 17, 26, 40)),
        (6, 50, (6, 9, 14, 21, 33, 50)),
        (2, 3, (2, 3)),
        (4, 4, (4,)),
        (2, 100_000, None),
    ],
)
def test_looks_grow_from_the_least_to_the_greatest_number_of_seeds(
    at_least: int, at_most: int, looks: tuple[int, ...] | None
) -> None:
    found = narrow(0.1, at_least, at_most).looks
    assert looks is None or found == looks
    assert (found[0], found[-1]) == (at_least, at_most)
    assert list(found) == sorted(set(found))


def test_the_error_is_divided_among_looks() -> None:
    assert narrow(0.1, 4, 4).level(LEVEL) == LEVEL
    assert narrow(0.1, 5, 40).level(LEVEL) == pytest.approx(1 - 0.05 / 2)
    assert narrow(0.1, 3, 40).level(LEVEL) == pytest.approx(1 - 0.05 / 3)
    assert decided(6, 50).level(LEVEL) == pytest.approx(1 - 0.05 / 6)
    assert decided(4, 4).level(LEVEL) == LEVEL


def test_the_next_number_of_seeds_is_always_a_look() -> None:
    rule = narrow(0.05, 5, 40)
    wide = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert rule.next_for_mean(wide, 5, LEVEL) == 11  # at most twice the seeds, then the next look
    assert rule.next_for_mean([1.0, 1.001, 0.999, 1.0, 1.0], 5, LEVEL) is None
    assert rule.next_for_mean(wide * 8, 40, LEVEL) is None
    assert rule.next_for_mean(wide[:2], 5, LEVEL) == 8  # three of five runs have failed


def test_limits_are_examined_until_each_is_decided_or_one_is_missed() -> None:
    rule = decided(4, 20)
    below, above = Limit("m", False, 10.0, False), Limit("m", True, 10.0, False)
    sure, unsure = [1.0, 1.1, 0.9, 1.0], [1.0, 30.0, 2.0, 9.0]
    assert rule.next_for_limits([(below, sure)], 4, LEVEL) is None
    assert rule.next_for_limits([(below, sure), (below, unsure)], 4, LEVEL) == 6
    assert rule.next_for_limits([(above, sure), (below, unsure)], 4, LEVEL) is None
    assert rule.next_for_limits([(below, unsure * 5)], 20, LEVEL) is None


def test_differences_are_examined_until_they_are_clear() -> None:
    rule = Adaptive("m", 0.0, 4, 20, APART)
    base = [1.0, 2.0, 3.0, 4.0]
    assert rule.next_for_difference([b + 5 + b / 100 for b in base], base, 4, LEVEL) is None
    assert rule.next_for_difference([b - 5 + b / 100 for b in base], base, 4, LEVEL) is None
    assert rule.next_for_difference(base[::-1], base, 4, LEVEL) == 6
    assert rule.next_for_difference(base, base, 4, LEVEL) == 6  # no difference is not sure
    assert rule.next_for_difference(base * 5, base * 5, 20, LEVEL) is None
    assert rule.next_for_difference(base[:1], base[:1], 4, LEVEL) == 6


def narrow_share(rule: Adaptive, spread: float, level: float | None) -> float:
    """Return the share of points whose last interval contains the true mean, 1.

    With ``level``, every interval has this confidence and not that of the rule.
    """
    random = np.random.default_rng(20261130)
    covered = 0
    for _ in range(POINTS):
        values = random.normal(1.0, spread, rule.at_most).tolist()
        for look in rule.looks:
            interval = mean_interval(values[:look], level or rule.level(LEVEL))
            if interval.relative_half_width <= rule.half_width:
                break
        assert interval.low is not None and interval.high is not None
        covered += interval.low <= 1.0 <= interval.high
    return covered / POINTS


# The spread at which the share is least: about 1.6 half-widths for few initial seeds.
@pytest.mark.parametrize(("at_least", "spread"), [(3, 0.016), (5, 0.0165), (10, 0.025)])
def test_intervals_that_stop_when_narrow_keep_their_confidence(
    at_least: int, spread: float
) -> None:
    rule = narrow(0.01, at_least, 100)
    assert narrow_share(rule, spread, None) >= LEVEL - 0.008
    # Plain intervals are too narrow after the choice to stop: the reason for the rule.
    assert narrow_share(rule, spread, LEVEL) < LEVEL - 0.008


def test_verdicts_at_several_looks_are_wrong_no_more_often_than_one_verdict() -> None:
    rule = decided(6, 50)
    limit = Limit("m", False, 1.0, False, strict=True)
    random = np.random.default_rng(7)
    wrong, plain, covered = 0, 0, 0
    for _ in range(POINTS):
        # The true mean is on the limit, which it therefore misses: the hardest case.
        values = random.normal(1.0, 0.2, rule.at_most).tolist()
        given = rule.at_least
        while more := rule.next_for_limits([(limit, values[:given])], given, LEVEL):
            given = more
        last, level = values[:given], rule.level(LEVEL)
        interval = mean_interval(last, level)
        assert interval.low is not None and interval.high is not None
        covered += interval.low <= 1.0 <= interval.high
        wrong += judge(limit, interval, last, level).state == MET
        plain += any(
            judge(limit, mean_interval(values[:n]), values[:n]).state == MET for n in rule.looks
        )
    assert covered / POINTS >= LEVEL - 0.008
    assert wrong / POINTS <= 0.025 + 0.006
    assert plain / POINTS > 0.025 + 0.006  # repeated looks at plain intervals err more often


def test_a_rule_is_an_object_of_json_with_its_looks() -> None:
    found = decided(6, 50).as_json(LEVEL)
    assert found["until"] == DECIDED
    assert found["looks"] == [6, 9, 14, 21, 33, 50]
    assert math.isclose(found["level"], 1 - 0.05 / 6)
    (said,) = decided(6, 50).methods(LEVEL).values()
    assert "at 6, 9, 14, 21, 33, 50 seeds; each interval has 99.17 % confidence" in said
