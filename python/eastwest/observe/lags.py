"""Lags: the number of rows by which each metric leads the target, by mutual information."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eastwest.observe.information import Discretised
from eastwest.observe.metrics import Numbers


def best_lags(values: Numbers, target: Numbers, most: int, bins: int) -> NDArray[np.int64]:
    """Return for each column the number of rows by which it leads the target, 0 to ``most``.

    This lag gives the most mutual information between the delayed column and the target; of lags
    with equal information, the shortest is used. All lags are compared on the same rows of the
    target. Columns are cut into ``bins`` classes, whichever estimator the selection uses, because
    classes are fast.
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
    """Return an array (rows − ``most``, columns): each column of ``values`` delayed by its lag.

    ``lags`` has the lag of each column in rows, from 0 to ``most``.
    """
    rows = len(values) - most
    columns = [
        values[most - lag : most - lag + rows, column] for column, lag in enumerate(lags.tolist())
    ]
    return np.column_stack(columns)
