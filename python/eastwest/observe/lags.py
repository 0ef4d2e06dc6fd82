"""Lags: the number of rows by which each metric leads the target, by mutual information."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eastwest.observe.information import Discretised
from eastwest.observe.metrics import Numbers


def best_lags(values: Numbers, target: Numbers, most: int, bins: int) -> NDArray[np.int64]:
    """Return the number of rows by which each column leads the target, from 0 to ``most``.

    It is the lag with the greatest mutual information about the target; the shortest among equals.
    All lags are compared on equal rows of the target. Metrics are cut into ``bins`` classes,
    whichever estimator the selection uses: this is fast, and only lags of one metric are compared.
    """
    lags = np.zeros(values.shape[1], dtype=np.int64)
    if most == 0:
        return lags
    rows = len(target) - most
    best = np.full(values.shape[1], -np.inf)
    for lag in range(most + 1):
        start = most - lag
        table = np.column_stack((target[most:], values[start : start + rows]))
        estimator = Discretised(table, bins)
        for column in range(values.shape[1]):
            found = estimator.between(0, column + 1)
            if found > best[column]:
                best[column], lags[column] = found, lag
    return lags


def shifted(values: Numbers, lags: NDArray[np.int64], most: int) -> Numbers:
    """Return an array (rows − ``most``, columns): each column delayed by its lag.

    ``lags`` has the lag of each column in rows, at most ``most``.
    """
    rows = len(values) - most
    columns = [
        values[most - lag : most - lag + rows, column] for column, lag in enumerate(lags.tolist())
    ]
    return np.column_stack(columns)
