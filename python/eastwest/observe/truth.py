"""Accuracy of an inference: comparison with the parents that the spans state, at several loads.

*Precision* is the share of inferred parents that are right, *recall* the share of true parents that
were found. A request from outside has no parent and counts only if a parent is inferred for it. A
transaction is *whole* if all of its calls have their true parents. To vary the concurrency,
transactions start at shorter or longer intervals; within each transaction, all times remain as
recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from eastwest.observe.calls import Calls, Integers, concurrency


@dataclass(frozen=True)
class Accuracy:
    """Accuracy of inferred parents, compared with the true parents."""

    #: Rate at which transactions start, as a multiple of the rate in the recording.
    speed: float
    #: Mean number of open transactions, over the time in which at least one is open.
    concurrency: float
    #: Number of calls with a true parent.
    calls: int
    #: Number of calls with several possible parents: calls that lie within several other calls in
    #: time.
    ambiguous: int
    precision: float
    recall: float
    #: Share of the transactions in which all calls have their true parents, 0 to 1.
    whole: float

    def as_json(self) -> dict[str, Any]:
        """Return the measures of accuracy by name, rounded to six digits after the point."""
        return {name: round(value, 6) for name, value in asdict(self).items()}


def accuracy(calls: Calls, parents: Integers, ambiguous: int, speed: float = 1.0) -> Accuracy:
    """Return the accuracy of inferred parents, compared with the true parents.

    ``parents`` has the row of each call's inferred parent, or −1. ``ambiguous`` is the number of
    calls with several possible parents, ``speed`` the rate of transactions as a multiple of the
    recorded rate; both are copied to the result.
    """
    inferred, true = parents >= 0, calls.parent >= 0
    right = inferred & (parents == calls.parent)
    wrong = np.unique(calls.transaction[inferred != true])
    wrong = np.union1d(wrong, calls.transaction[true & ~right])
    transactions = np.unique(calls.transaction)
    return Accuracy(
        speed=speed,
        concurrency=concurrency(calls),
        calls=int(true.sum()),
        ambiguous=ambiguous,
        precision=_share(int(right.sum()), int(inferred.sum())),
        recall=_share(int(right.sum()), int(true.sum())),
        whole=_share(len(transactions) - len(wrong), len(transactions)),
    )


def over_speeds(
    calls: Calls, speeds: Sequence[float], infer: Callable[[Calls], Integers]
) -> Iterator[Accuracy]:
    """Yield the accuracy of ``infer`` at each of ``speeds``.

    A speed is the rate of transactions as a multiple of the recorded rate. ``infer`` returns the
    row of each call's inferred parent, or −1.
    """
    from eastwest.observe.nesting import candidates  # noqa: PLC0415  it is no part of a method

    for speed in speeds:
        moved = calls.compressed(speed)
        ambiguous = sum(len(found) > 1 for found in candidates(moved))
        yield accuracy(moved, infer(moved), ambiguous, speed)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
