"""Self-similarity of a series of counts: the Hurst parameter by two methods, with intervals.

For a self-similar series, the variance of the mean of m neighbours is ``Var(X⁽ᵐ⁾) ∝ m^(2H−2)``
(aggregated variance), and the rescaled range of m neighbours is ``E[R/S](m) ∝ m^H`` (Hurst 1951;
Mandelbrot and Wallis 1969). Both are straight lines in logarithms, fitted by least squares. With
H = 0.5, bursts average out as with independent arrivals; with H towards 1, bursts persist at every
scale. Methods and their biases: Taqqu, Teverovsky and Willinger, *Estimators for long-range
dependence* (Fractals, 1995).

The points of the line depend on each other, so the standard error of the slope is too small. The
interval comes from a parametric bootstrap instead: each method is applied to fractional Gaussian
noise with the length of the series and the estimated H (exact, by circulant embedding: Davies and
Harte 1987). The median of these estimates shows the bias, by which the estimate is corrected; the
spread of these estimates gives the interval. The bootstrap assumes a normal distribution of the
counts, which small counts do not have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from eastwest.workload.jobs import Floats

#: Minimum number of values in a series for an estimate of the Hurst parameter.
LEAST_VALUES = 1024
_REPLICATES = 200
_BATCH = 20
#: Minimum number of blocks of m values for which the variance of the block means is computed.
LEAST_BLOCKS = 32
#: Number of values in the shortest block for which a rescaled range is computed.
_SHORTEST = 16


@dataclass(frozen=True)
class Hurst:
    """Estimate of the Hurst parameter, corrected for bias, with a 95 % interval (low, high)."""

    method: str
    value: float
    low: float
    high: float


def hurst(series: Floats, seed: int = 1) -> tuple[Hurst, ...]:
    """Return the Hurst parameter by aggregated variance and by R/S.

    ``series`` has counts in consecutive intervals of time; ``seed`` is the seed of the bootstrap.
    The result is empty for a constant series, or one of fewer than ``LEAST_VALUES`` values.
    """
    if series.size < LEAST_VALUES or float(series.std()) == 0:
        return ()
    return tuple(
        _estimate(name, method, series, seed)
        for name, method in (("aggregated variance", aggregated_variance), ("R/S", rescaled_range))
    )


def _estimate(name: str, method: Callable[[Floats], Floats], series: Floats, seed: int) -> Hurst:
    value = float(method(series[None, :])[0])
    random = np.random.default_rng([seed, series.size])
    noise_of = min(max(value, 0.01), 0.99)
    found = np.concatenate(
        [
            method(fractional_noise(noise_of, series.size, _BATCH, random))
            for _ in range(_REPLICATES // _BATCH)
        ]
    )
    turned = value + noise_of - np.quantile(found, [0.5, 0.975, 0.025])
    middle, low, high = (float(each) for each in np.clip(turned, 0.0, 1.0))
    return Hurst(name, middle, low, high)


def aggregated_variance(series: Floats) -> Floats:
    """Return an array: H of each row of ``series``, by aggregated variance.

    The variance is that of the means over 1, 2, 4, … neighbouring values.
    """
    length = series.shape[1]
    points, variances = [], []
    block = 1
    while length // block >= LEAST_BLOCKS:
        count = length // block
        means = series[:, : count * block].reshape(-1, count, block).mean(axis=2)
        points.append(np.log2(block))
        variances.append(np.log2(np.maximum(means.var(axis=1), 1e-300)))
        block *= 2
    return 1.0 + _slopes(points, variances) / 2


def rescaled_range(series: Floats) -> Floats:
    """Return an array: H of each row of ``series``, by rescaled range.

    The rescaled ranges are means over blocks of 16, 32, 64, … values.
    """
    rows, length = series.shape
    points, ranges = [], []
    block = _SHORTEST
    while length // block >= 4:
        count = length // block
        blocks = series[:, : count * block].reshape(rows, count, block)
        away = blocks - blocks.mean(axis=2, keepdims=True)
        walk = np.cumsum(away, axis=2)
        spread = blocks.std(axis=2)
        reach = np.maximum(walk.max(axis=2), 0) - np.minimum(walk.min(axis=2), 0)
        moves = spread > 0
        # A constant block has no rescaled range.
        ratio = np.where(moves, reach / np.where(moves, spread, 1.0), 0.0)
        mean = ratio.sum(axis=1) / np.maximum(moves.sum(axis=1), 1)
        points.append(np.log2(block))
        ranges.append(np.log2(np.maximum(mean, 1e-300)))
        block *= 2
    return _slopes(points, ranges)


def _slopes(points: list[float], values: list[Floats]) -> Floats:
    """Return an array: slope of the least-squares line of each row.

    ``points`` has the x values of the line; ``values`` has, for each x value, the y values of all
    rows.
    """
    x = np.asarray(points) - np.mean(points)
    return np.asarray((x[:, None] * np.asarray(values)).sum(axis=0) / (x**2).sum())


def fractional_noise(h: float, length: int, rows: int, random: np.random.Generator) -> Floats:
    """Return an array (rows, length) of fractional Gaussian noise of variance 1.

    ``h`` is the Hurst parameter. The method is exact: circulant embedding (Davies and Harte 1987).
    """
    lag = np.arange(length + 1, dtype=np.float64)
    covariance = (np.abs(lag + 1) ** (2 * h) + np.abs(lag - 1) ** (2 * h)) / 2 - lag ** (2 * h)
    ring = np.concatenate([covariance, covariance[-2:0:-1]])
    power = np.maximum(np.fft.rfft(ring).real, 0.0)
    noise = np.fft.rfft(random.standard_normal((rows, ring.size)), axis=1)
    return np.asarray(np.fft.irfft(noise * np.sqrt(power), n=ring.size, axis=1)[:, :length])
