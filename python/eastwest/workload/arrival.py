"""Arrivals of jobs: rate over time, bursts, periods, self-similarity.

Bursts: the ratio of the busiest interval to the median interval, for several interval lengths
(Chen, Alspaugh and Katz, VLDB 2012, section 5.1).

Periods: the periodogram ``I(f) = |Σ x e^(−2πift)|² / n`` of counts per interval. Bursty arrivals
have most power at low frequencies even without a period. Therefore the power at a frequency f is
compared with two estimates of the expected power, and the larger one counts: a power law
``a·f^−β`` fitted to the logarithms, and the mean power at nearby frequencies (from half to one and
a half times f, at most 50 on each side), estimated by their median. Without a period, the ratio of
``I(f)`` to the expected power is about exponentially distributed with mean 1, and the largest of m
ratios exceeds x with
probability ``1 − (1 − e^−x)^m`` (Vaughan, Astronomy and Astrophysics 2005). A period is reported if
this probability is below 1 %, if the counts also correlate with the counts one period later, and if
the trace is at least three periods long.

Self-similarity: the Hurst parameter (module `hurst`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eastwest.units import span
from eastwest.workload.hurst import LEAST_BLOCKS, LEAST_VALUES, Hurst, hurst
from eastwest.workload.jobs import Floats, Jobs

#: Lengths in seconds of the intervals in which bursts are analysed.
SCALES_S = (10.0, 60.0, 600.0, 3600.0, 86_400.0)
#: Minimum number of intervals in the trace; for longer intervals, bursts are not analysed.
_LEAST_INTERVALS = 8
#: Round lengths in seconds of the intervals in which jobs are counted.
_STEPS_S = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
#: Maximum number of intervals in a series that is analysed for periods or self-similarity.
_MOST_VALUES = 1 << 15
#: Maximum number of intervals in the chart of the rate.
_DRAWN = 288
#: Minimum number of times that a period must fit into the trace.
_LEAST_PERIODS = 3
#: Largest p-value at which a period is significant.
_LEVEL = 0.01
#: Mean of the logarithm of an exponential variable: minus Euler's constant.
_LOG_BIAS = -0.5772156649015329
#: Maximum number of lags of the autocorrelation that are stored.
_MOST_LAGS = 1000
#: Maximum number of frequencies, on each side of a frequency, that give the mean power around it.
_MOST_AROUND = 50


@dataclass(frozen=True)
class Burst:
    """Statistics of the number of jobs per interval, for one length of interval."""

    interval_s: float
    intervals: int
    mean: float
    median: float
    peak: float
    #: ``peak`` divided by ``median``; None if the median is 0.
    ratio: float | None


@dataclass(frozen=True)
class Period:
    """Significant period of the arrivals."""

    period_s: float
    #: Probability of a peak of this height in a trace without periods.
    chance: float
    #: Correlation of the jobs per interval with the jobs one period earlier, from −1 to 1.
    correlation: float


@dataclass(frozen=True)
class Arrival:
    """Analysis of the arrivals of a trace's jobs: rate, bursts, periods, self-similarity."""

    jobs: int
    span_s: float
    mean_gap_s: float
    #: Length in seconds of the intervals of ``counts`` and ``moved_bytes``.
    step_s: float
    #: Number of jobs submitted in each interval.
    counts: Floats
    #: Input, shuffle and output bytes of the jobs submitted in each interval.
    moved_bytes: Floats
    bursts: tuple[Burst, ...]
    #: Lags in seconds, and the autocorrelation of the number of jobs per interval at each lag.
    correlation: tuple[Floats, Floats]
    #: Limit that the absolute autocorrelation of independent counts exceeds at 5 % of the lags.
    correlation_noise: float
    period: Period | None
    #: Sentence on the period that was found, or on the reason for none.
    period_word: str
    hurst: tuple[Hurst, ...]
    hurst_word: str


def arrival(jobs: Jobs, seed: int = 1) -> Arrival:
    """Return the analysis of the arrivals of a trace's jobs.

    ``seed`` is the seed of the bootstrap that gives the 95 % intervals of the Hurst parameter.
    """
    length = max(jobs.span_s, 1e-9)
    step = _drawn_step(length)
    place = np.floor_divide(jobs.submit_s, step).astype(np.int64)
    lags, correlation, noise, period, word = _periods(jobs, length)
    estimates, hurst_word = _self_similar(jobs, length, seed)
    return Arrival(
        len(jobs),
        jobs.span_s,
        float(np.diff(jobs.submit_s).mean()) if len(jobs) > 1 else 0.0,
        step,
        np.bincount(place).astype(np.float64),
        np.bincount(place, weights=jobs.moved_bytes).astype(np.float64),
        bursts(jobs),
        (lags, correlation),
        noise,
        period,
        word,
        estimates,
        hurst_word,
    )


def counts(jobs: Jobs, step_s: float) -> Floats:
    """Return an array: number of jobs in each whole interval of ``step_s`` seconds.

    The array has at least one interval, even if the trace is shorter.
    """
    whole = max(1, int(jobs.span_s // step_s))
    place = np.floor_divide(jobs.submit_s, step_s).astype(np.int64)
    return np.bincount(place[place < whole], minlength=whole).astype(np.float64)


def bursts(jobs: Jobs) -> tuple[Burst, ...]:
    """Return a ``Burst`` for each length in ``SCALES_S`` that fits 8 times into the trace."""
    found = []
    for step in SCALES_S:
        if not _LEAST_INTERVALS <= jobs.span_s / step <= 1e8:
            continue
        series = counts(jobs, step)
        median, peak = float(np.median(series)), float(series.max())
        ratio = peak / median if median else None
        found.append(Burst(step, series.size, float(series.mean()), median, peak, ratio))
    return tuple(found)


def _drawn_step(length: float) -> float:
    """Return the interval length in s for the chart of the rate: at most ``_DRAWN`` intervals.

    ``length`` is the length of the trace in s.
    """
    raw = length / _DRAWN
    round_steps = [s for s in _STEPS_S if s >= raw]
    return round_steps[0] if round_steps else 3600.0 * float(np.ceil(raw / 3600.0))


def _series_step(jobs: Jobs, length: float, least_mean: float) -> float:
    """Return the shortest interval length in s with a mean of at least ``least_mean`` jobs.

    ``length`` is the length of the trace in s. The trace has at most ``_MOST_VALUES`` intervals.
    The length is one of ``_STEPS_S``, unless it must be longer than all of them.
    """
    least = max(least_mean * length / len(jobs), length / _MOST_VALUES)
    return next((s for s in _STEPS_S if s >= least), least)


def _periods(jobs: Jobs, length: float) -> tuple[Floats, Floats, float, Period | None, str]:
    step = _series_step(jobs, length, 1.0)
    series = counts(jobs, step)
    nothing = np.zeros(0)
    if series.size < 4 * _LEAST_PERIODS * 4 or not series.std():
        return nothing, nothing, 0.0, None, "There are too few jobs to look for periods."
    correlation = autocorrelation(series)
    longest = series.size // _LEAST_PERIODS
    lags = np.unique(np.linspace(1, longest, _MOST_LAGS).astype(np.int64))
    noise = 1.96 / float(np.sqrt(series.size))
    period = _strongest(series, correlation, step, noise)
    reach = f"from {span(2 * step)} to {span(longest * step)}, a third of the trace"
    if period is None:
        word = f"No period is significant; periods {reach} were tested."
    else:
        word = (
            f"A period of about {span(period.period_s)} is significant "
            f"(p-value {period.chance:.1g}); periods {reach} were tested."
        )
    if length < 3 * 86_400:
        word += " The trace is too short to show daily periods."
    return np.asarray(lags * step, np.float64), correlation[lags], noise, period, word


def autocorrelation(series: Floats) -> Floats:
    """Return an array: the autocorrelation of a series at lag 0, 1, 2, …."""
    away = series - series.mean()
    size = 1 << (2 * away.size - 1).bit_length()
    power = np.abs(np.fft.rfft(away, size)) ** 2
    covariance = np.fft.irfft(power, size)[: away.size]
    return np.asarray(covariance / covariance[0])


def _strongest(series: Floats, correlation: Floats, step: float, noise: float) -> Period | None:
    """Return the longest of the strong significant periods, or None if there is none.

    A period is strong if its power, as a multiple of the expected power, is at least 0.3 times the
    maximum. ``series`` has the counts per interval of ``step`` s, ``correlation`` their
    autocorrelation by lag; a period with a correlation of at most ``noise`` does not count.
    """
    power = np.abs(np.fft.rfft(series - series.mean()))[1:] ** 2 / series.size
    number = np.arange(1, power.size + 1)
    there = power > 0
    slope, at_one = np.polyfit(np.log(number[there]), np.log(power[there]) - _LOG_BIAS, 1)
    law = np.exp(at_one + slope * np.log(number))
    above = power / np.maximum(law, _around(power))
    allowed = number >= _LEAST_PERIODS
    chances = -np.expm1(power.size * np.log1p(-np.exp(-np.maximum(above, 1e-300))))
    peak = np.r_[True, above[1:] >= above[:-1]] & np.r_[above[:-1] >= above[1:], True]
    clear = allowed & peak & (chances < _LEVEL)
    # A frequency between two bins of the transform loses up to 60 % of its power, so the limit is
    # 0.3.
    clear &= above >= 0.3 * float(above[allowed].max(initial=0.0))
    for place in np.flatnonzero(clear):
        lag, alike = _best_lag(correlation, float(number[place]))
        if alike > noise:
            return Period(lag * step, float(chances[place]), alike)
    return None


def _around(power: Floats) -> Floats:
    """Return an array like ``power``: the estimated mean power around each frequency.

    The estimate is the median over nearby frequencies divided by ln 2, which is the ratio of median
    to mean of an exponential distribution. Peaks hardly change a median.
    """
    found = np.empty(power.size)
    for place in range(power.size):
        reach = min(max(3, (place + 1) // 2), _MOST_AROUND)
        found[place] = np.median(power[max(0, place - reach) : place + reach + 1])
    return np.asarray(found / np.log(2))


def _best_lag(correlation: Floats, number: float) -> tuple[float, float]:
    """Return (lag with the greatest correlation near a period, correlation at this lag).

    ``number`` is how many times the period fits into the trace; ``correlation`` is an array by lag.
    The lag is a number of intervals; it is not whole for short periods.
    """
    size = correlation.size
    lags = np.arange(int(size / (number + 0.6)), int(np.ceil(size / (number - 0.6))) + 1)
    lags = lags[(lags >= 2) & (lags < size)]
    best = int(lags[np.argmax(correlation[lags])])
    fine = lags.size <= 3  # the frequency is then more precise than a whole lag
    return (size / number if fine else float(best)), float(correlation[best])


def _self_similar(jobs: Jobs, length: float, seed: int) -> tuple[tuple[Hurst, ...], str]:
    step = _series_step(jobs, length, 1.0)
    series = counts(jobs, step)
    found = hurst(series, seed)
    if not found:
        return (), (
            f"The trace is too short for an estimate: it has {series.size} intervals "
            f"of {span(step)} (one job each on average), but {LEAST_VALUES} are "
            "needed."
        )
    longest = 2 ** int(np.log2(series.size / LEAST_BLOCKS))
    scales = f"over intervals from {span(step)} to {span(step * longest)}"
    if all(h.low > 0.5 for h in found):
        word = (
            f"Bursts do not average out {scales}; steps or a daily pattern in the "
            "rate have the same effect."
        )
    elif all(h.low <= 0.5 <= h.high for h in found):
        word = f"The jobs arrive as independent arrivals do, {scales}."
    else:
        word = f"The two methods disagree {scales}, so no conclusion is possible."
    return found, word
