"""Minimum redundancy, maximum relevance: selection of informative and different metrics.

H. Peng, F. Long and C. Ding, *Feature Selection Based on Mutual Information*, IEEE TPAMI 27(8),
2005; the quotient from C. Ding and H. Peng, *Minimum redundancy feature selection from microarray
gene expression data*, J. Bioinf. Comp. Biol. 3(2), 2005. The first pick has the greatest relevance
I(x; c), its mutual information with the target c. Each further pick is the metric, among those not
chosen, with the greatest

    difference:  I(x; c) − 1/(m − 1) Σ I(x; x_i)
    quotient:    I(x; c) / (1/(m − 1) Σ I(x; x_i)),

where the sum goes over the m − 1 chosen metrics x_i; among equals the first in order is chosen. A
metric without any redundancy has an infinite quotient if it is relevant at all, and 0 if not.

Information is never negative, so a score in which some terms are still missing is an upper bound.
Candidates are ordered by these bounds, and missing terms are computed only for the candidate with
the highest bound (lazy evaluation, as in Minoux 1978 for greedy algorithms): the result is
unchanged, and weak candidates need no computation.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Scheme(StrEnum):
    """Score of a metric: relevance minus redundancy, or relevance divided by redundancy."""

    DIFFERENCE = "difference"
    QUOTIENT = "quotient"


@dataclass(frozen=True)
class Pick:
    """Metric that the selection has chosen, with relevance and redundancy in nats, and score."""

    #: Column number of the chosen metric among the candidates.
    column: int
    relevance: float
    #: Mean mutual information with the metrics chosen before this one, in nats; 0 for the first.
    redundancy: float
    score: float


#: Function: returns the mutual information, in nats, of two candidates by their column numbers.
Information = Callable[[int, int], float]


def select(
    relevance: list[float], information: Information, count: int, scheme: Scheme
) -> list[Pick]:
    """Return the chosen candidates, at most ``count``, in the order of choice.

    ``relevance`` has the mutual information of each candidate with the target, in nats;
    ``information`` returns the mutual information of two candidates.
    """
    # For candidate i: sum of its mutual information with the first ``known[i]`` chosen metrics.
    shared = [0.0] * len(relevance)
    known = [0] * len(relevance)
    chosen: list[Pick] = []
    while len(chosen) < min(count, len(relevance)):
        taken = {pick.column for pick in chosen}
        heap = [
            (-_score(relevance[i], shared[i], len(chosen), scheme), i)
            for i in range(len(relevance))
            if i not in taken
        ]
        heapq.heapify(heap)
        while True:
            bound, column = heap[0]
            if known[column] == len(chosen):
                break
            shared[column] += information(column, chosen[known[column]].column)
            known[column] += 1
            bound = -_score(relevance[column], shared[column], len(chosen), scheme)
            heapq.heapreplace(heap, (bound, column))
        redundancy = shared[column] / len(chosen) if chosen else 0.0
        chosen.append(Pick(column, relevance[column], redundancy, -bound))
    return chosen


def _score(relevance: float, shared: float, chosen: int, scheme: Scheme) -> float:
    """Return the score of a candidate when ``chosen`` metrics are already chosen.

    ``relevance`` is its mutual information with the target, ``shared`` the sum of its mutual
    information with the chosen metrics, both in nats. If terms of this sum are missing, the result
    is an upper bound of the score.
    """
    if chosen == 0:
        return relevance
    redundancy = shared / chosen
    if scheme is Scheme.DIFFERENCE:
        return relevance - redundancy
    if redundancy == 0:
        return math.inf if relevance > 0 else 0.0
    return relevance / redundancy
