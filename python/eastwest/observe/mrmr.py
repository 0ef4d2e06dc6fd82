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
Candidates are kept by their bounds and completed only while they lead (lazy evaluation, as in
Minoux 1978 for greedy algorithms): the result is unchanged, and weak candidates cost nothing.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Scheme(StrEnum):
    """Combination of relevance and redundancy into a score."""

    DIFFERENCE = "difference"
    QUOTIENT = "quotient"


@dataclass(frozen=True)
class Pick:
    """Metric that the selection has chosen; its relevance and redundancy are in nats."""

    #: Column number of the chosen metric among the candidates.
    column: int
    relevance: float
    #: Mean mutual information with the metrics chosen before, in nats.
    redundancy: float
    score: float


#: Function of two candidates' column numbers; returns their mutual information in nats.
Information = Callable[[int, int], float]


def select(
    relevance: list[float], information: Information, count: int, scheme: Scheme
) -> list[Pick]:
    """Return up to ``count`` chosen candidates, in the order of their choice.

    ``relevance`` has each candidate's mutual information with the target, in nats; ``information``
    returns the mutual information of two candidates.
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
    """Return the score of a candidate after ``chosen`` picks.

    ``shared`` is the sum of its mutual information with each pick. If terms of the sum are missing,
    the result is an upper bound of the score.
    """
    if chosen == 0:
        return relevance
    redundancy = shared / chosen
    if scheme is Scheme.DIFFERENCE:
        return relevance - redundancy
    if redundancy == 0:
        return math.inf if relevance > 0 else 0.0
    return relevance / redundancy
