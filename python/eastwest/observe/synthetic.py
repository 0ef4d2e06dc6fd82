"""Synthesises any number of transactions from the transactions of a recording.

- ``trees``: every transaction is a recorded transaction, drawn at random, so all correlations
  within a transaction remain; only the time to the next arrival is drawn anew.
- ``levels``: every transaction has the structure of a recorded transaction, drawn at random; times
  and sizes of each call are drawn anew from the recorded calls of the same operation. Correlations
  between the calls of a transaction are lost, and combinations appear that the recording does not
  have.

Times between arrivals come from the distribution that fits them, or from the recording itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from eastwest.errors import InputError
from eastwest.observe.book import Book, Call, Tree
from eastwest.observe.levels import Variable, draw

#: Methods of synthesis: whole recorded transactions, or new times and sizes for their calls.
DRAWS = ("trees", "levels")
#: Maximum number of calls in all synthesised transactions together.
MOST_CALLS = 5_000_000


def synthetic(book: Book, gaps: Variable, count: int, how: str, seed: int) -> Book:
    """Return ``count`` synthesised transactions.

    ``gaps`` has the recorded times between arrivals in s; ``how`` is one of ``DRAWS``. Raises
    ``InputError`` for another ``how``, or if the transactions have more than ``MOST_CALLS`` calls.
    """
    if how not in DRAWS:
        raise InputError(
            f"the method of synthesis is {how!r:.40}, but must be one of {', '.join(DRAWS)}"
        )
    random = np.random.default_rng([seed, 2])
    which = random.integers(len(book.trees), size=count)
    calls = sum(len(book.trees[i].calls) for i in which.tolist())
    if calls > MOST_CALLS:
        raise InputError(
            f"{count:,} synthesised transactions have {calls:,} calls; at most {MOST_CALLS:,} "
            "are allowed"
        )
    between = np.maximum(draw(gaps, random, count), 0.0)
    between[0] = 0.0
    starts = np.rint(np.cumsum(between) * 1e9).astype(np.int64).tolist()
    redrawn = _redrawing(book, random) if how == "levels" else None
    trees = []
    for number, (i, start) in enumerate(zip(which.tolist(), starts, strict=True)):
        old = book.trees[i]
        made = old.calls if redrawn is None else [redrawn(call) for call in old.calls]
        trees.append(Tree(f"{number}-{old.name}"[:200], start, made))
    return replace(book, trees=trees)


def _redrawing(book: Book, random: np.random.Generator) -> Callable[[Call], Call]:
    """Return a function that returns a copy of a call with random gap, rest and sizes.

    The values are drawn from the recorded calls of the same service and operation.
    """
    known: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for tree in book.trees:
        for call in tree.calls:
            known[call.service, call.operation].append(call)

    def redrawn(call: Call) -> Call:
        others = known[call.service, call.operation]
        gap, rest, sizes = (others[int(i)] for i in random.integers(len(others), size=3))
        return replace(
            call,
            gap_ns=gap.gap_ns,
            rest_ns=rest.rest_ns,
            request_bytes=sizes.request_bytes,
            response_bytes=sizes.response_bytes,
        )

    return redrawn
