"""Accuracy of an inference: comparison with the parents that the spans state, at several loads.

*Precision* is the share of inferred parents that are right, *recall* the share of true parents that
were found. Requests from outside have no parent and count only if one is inferred for them. A
transaction is *whole* if all of its calls have their true parents. To vary the concurrency,
transactions start at shorter or longer intervals; within each, all times remain as recorded.
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
    #: Mean number of open transactions, over the time in which any is open.
    concurrency: float
    #: Number of calls with a true parent.
    calls: int
    #: Number of calls with several possible parents: calls that lie within several others in time.
    ambiguous: int
    precision: float
    recall: float
    #: Share of the transactions in which the parents of all calls are right.
    whole: float

    def as_json(self) -> dict[str, Any]:
        """Return the measures of accuracy by name."""
        return {name: round(value, 6) for name, value in asdict(self).items()}


def accuracy(calls: Calls, parents: Integers, ambiguous: int, speed: float = 1.0) -> Accuracy:
    """Return the accuracy of inferred parents, compared with the true parents.

    ``parents`` has the row of each call's inferred parent, or −1; ``ambiguous`` is the number of
    calls with more than one possible parent; ``speed`` the rate of transactions relative to the
    recording.
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
    """Yield the accuracy at each speed: factor by which transactions start faster than recorded.

    ``infer`` returns the row of each call's inferred parent, or −1.
    """
    from eastwest.observe.nesting import candidates  # noqa: PLC0415  it is no part of a method

    for speed in speeds:
        moved = calls.compressed(speed)
        ambiguous = sum(len(found) > 1 for found in candidates(moved))
        yield accuracy(moved, infer(moved), ambiguous, speed)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
