"""Stability of a selection: its agreement with selections on resampled rows.

Rows of time series depend on their neighbours, so blocks of consecutive rows are drawn with
replacement (moving block bootstrap: H. Künsch, Ann. Statist. 17(3), 1989), n^(1/3) rows long by
default. The stability of all selections is the estimator of S. Nogueira, K. Sechidis and G. Brown
(*On the Stability of Feature Selection Algorithms*, JMLR 18, 2018): 1 when all selections are
equal, 0 when they agree no more than by chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


def default_block(rows: int) -> int:
    """Return the default length of a bootstrap block in rows, for a table of ``rows`` rows."""
    return max(1, round(math.cbrt(rows)))


def resampled(rows: int, block: int, seed: int, replicate: int) -> Rows:
    """Return the indices of the rows of one bootstrap replicate: an array of ``rows`` numbers.

    ``block`` is the number of consecutive rows that are drawn together; ``replicate`` is the number
    of the replicate, from 0.
    """
    random = np.random.default_rng([seed, replicate])
    starts = random.integers(0, rows - block + 1, size=-(-rows // block))
    return (starts[:, None] + np.arange(block)).ravel()[:rows]


def frequencies(
    candidates: int,
    replicates: int,
    selection: Callable[[int], Sequence[int]],
) -> tuple[list[float], float | None]:
    """Return (share of the replicates that select each candidate, stability of the selections).

    Shares are 0 to 1, the stability is at most 1. ``selection`` returns the candidates that a
    replicate selects, from the number of the replicate. The stability is None for fewer than two
    replicates, and if all replicates select all candidates or none.
    """
    table = np.zeros((replicates, candidates))
    for replicate in range(replicates):
        table[replicate, list(selection(replicate))] = 1
    return [float(p) for p in table.mean(axis=0)], _stability(table)


def _stability(table: NDArray[np.float64]) -> float | None:
    """Return the stability 1 − V / V₀ of the selections, or None if it is not defined.

    ``table`` has a row for each replicate and a column for each candidate: 1 if it is selected,
    else 0. V is the mean variance of the columns, V₀ that of random selections of equal size.
    """
    replicates, candidates = table.shape
    share = float(table.sum()) / (replicates * candidates) if table.size else 0.0
    if replicates < 2 or not 0 < share < 1:
        return None
    variance = float(table.var(axis=0, ddof=1).mean())
    return 1 - variance / (share * (1 - share))
