"""By how many rows each metric leads the target: the lag with most information about it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eastwest.observe.information import Discretised
from eastwest.observe.metrics import Numbers


def best_lags(values: Numbers, target: Numbers, most: int, bins: int) -> NDArray[np.int64]:
    """Rows by which each column leads the target, from 0 to ``most``.

    That is the lag whose mutual information with the target is greatest, of equal ones the
    shortest. All lags are judged on the same rows of the target, by discretised information
    whatever estimator the selection uses: it is quick, and only lags of one metric are compared.
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
    """Columns as they were ``lags`` rows before; the first ``most`` rows are lost."""
    rows = len(values) - most
    columns = [
        values[most - lag : most - lag + rows, column] for column, lag in enumerate(lags.tolist())
    ]
    return np.column_stack(columns)
