"""Rules that add seeds to the points of a sweep, with intervals that stay valid when they stop.

Whoever looks at an interval after each new run, and stops as soon as the interval looks good, stops
too often by chance: fewer intervals than claimed then contain the true value. Here a point is
examined only at fixed numbers of seeds, its *looks*: from ``at_least`` to ``at_most``, each about
1.5 times the one before. The error probability α = 1 − confidence of the sweep is divided among the
looks, so that each interval has a higher confidence (``Adaptive.level``):

* A rule with ``until`` stops on the means, or on differences of means. At each of K looks, its
  intervals have the confidence 1 − α/K. The probability that any of the K intervals misses the true
  value is at most α (Bonferroni's inequality), so the interval of the look at which a point stops
  contains the true value with at least the confidence of the sweep, whatever the reason to stop.
  These are repeated confidence intervals (C. Jennison and B. W. Turnbull, Interim analyses: the
  repeated confidence interval approach, J. R. Statist. Soc. B 51, 1989; Group Sequential Methods
  with Applications to Clinical Trials, 2000, chapter 9).
* A rule with ``half_width`` stops on the spread, which for normal values is independent of the mean
  (the fixed-width intervals of Y. S. Chow and H. Robbins, Ann. Math. Statist. 36, 1965). It errs
  only because a spread that is small by chance stops it early. α/2, or α/3 for fewer than five
  initial seeds, is enough; the divisors were found by simulation, which a test repeats.

The level holds for the intervals of all metrics, differences and medians of the point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from eastwest import stats
from eastwest.goals import judge
from eastwest.goals.form import Limit

#: Value of ``until`` for a rule that stops when each limit of the goals is met or missed.
DECIDED = "decided"
#: Value of ``until`` for a rule that stops when a point clearly differs from the baseline.
APART = "apart"
#: Approximate factor from one look to the next. More looks would make intervals wider, fewer looks
#: would run more seeds than needed.
_GROWTH = 1.5

#: Number of initial seeds from which a rule with ``half_width`` needs only the error α/2.
_ENOUGH = 5


@dataclass(frozen=True)
class Adaptive:
    """Rule that adds seeds to a point until its result is known well enough.

    The rule stops when the interval of the mean of ``metric`` is narrow enough; with ``until``
    ``DECIDED``, when each limit of the goals is met or missed, or one is missed; with ``APART``,
    when the interval of the difference of ``metric`` to the baseline is without 0.
    """

    #: Path of the metric; empty for ``DECIDED``.
    metric: str
    #: Wanted half-width of the confidence interval, as a share of the mean.
    half_width: float
    #: Number of seeds with which every point starts, and maximum number of seeds.
    at_least: int
    at_most: int
    #: ``DECIDED`` or ``APART``; empty for a rule with ``half_width``.
    until: str = ""

    @cached_property
    def looks(self) -> tuple[int, ...]:
        """Numbers of seeds at which a point is examined."""
        whole = self.at_most / self.at_least
        steps = max(1, round(math.log(whole) / math.log(_GROWTH)))
        found = (round(self.at_least * whole ** (step / steps)) for step in range(steps + 1))
        return tuple(dict.fromkeys(found))

    def level(self, confidence: float) -> float:
        """Return the confidence of one interval; ``confidence`` is that of the rule as a whole."""
        divisor = len(self.looks)
        if not self.until:
            divisor = min(divisor, 2 if self.at_least >= _ENOUGH else 3)
        return 1 - (1 - confidence) / divisor

    def next_for_mean(self, values: Sequence[float], given: int, confidence: float) -> int | None:
        """Return the number of seeds of the next look; None if the interval is narrow enough.

        ``values`` has the metric for each finished run of the ``given`` seeds.
        """
        interval = stats.mean_interval(values, self.level(confidence))
        if interval.relative_half_width <= self.half_width:
            return None
        # Looks at which the interval would hardly be narrow enough are left out, so that more runs
        # can be executed at one time.
        missing = stats.runs_needed(interval, self.half_width, self.at_most) - interval.n
        return self._look_from(given + max(1, missing), given)

    def next_for_limits(
        self,
        limits: Sequence[tuple[Limit, Sequence[float]]],
        given: int,
        confidence: float,
        stopped: int = 0,
    ) -> int | None:
        """Return the number of seeds of the next look; None if the limits are decided.

        ``limits`` has each limit and the values of its metric, one for each finished run of the
        ``given`` seeds; for a run that was stopped early (``stopped`` is the number of such runs),
        it is the least value. A point that surely misses one limit is decided.
        """
        level = self.level(confidence)
        states = {
            judge.judge(limit, judge.mean(values, stopped, level), values, level).state
            for limit, values in limits
        }
        if judge.MISSED in states or judge.UNDECIDED not in states:
            return None
        return self._look_from(given + 1, given)

    def next_for_difference(
        self, values: Sequence[float], baseline: Sequence[float], given: int, confidence: float
    ) -> int | None:
        """Return the number of seeds of the next look; None if a point and the baseline differ.

        ``values`` and ``baseline`` have the metric for each seed that both have, in one order.
        """
        interval = stats.paired_interval(values, baseline, self.level(confidence))
        low, high = interval.low, interval.high
        if low is not None and high is not None and (low > 0 or high < 0):
            return None
        return self._look_from(given + 1, given)

    def as_json(self, confidence: float) -> dict[str, Any]:
        """Return the rule, its looks and the confidence of one interval as a JSON object."""
        return {**asdict(self), "looks": list(self.looks), "level": self.level(confidence)}

    def methods(self, confidence: float) -> dict[str, str]:
        """Return the method of the rule for the list of methods of a sweep."""
        looks = ", ".join(map(str, self.looks))
        said = (
            f"seeds are added until the result is known, at {looks} seeds; each interval has "
            f"{100 * self.level(confidence):.4g} % confidence, so that at least "
            f"{100 * confidence:.4g} % of the intervals contain the true value although the rule "
            "chooses when to stop, if values are about normal"
        )
        return {"seeds": said}

    def _look_from(self, wanted: int, given: int) -> int | None:
        """Return the first look with at least ``wanted`` seeds, or the last; None after it."""
        if given >= self.at_most:
            return None
        return next((look for look in self.looks if look >= wanted), self.at_most)
