"""Selects metrics on the workers of a Dask cluster, from tables larger than one machine's memory.

Candidates are divided into blocks of columns. A worker reads the columns of a block and the target
from the files, which must be under the same paths on every worker, and holds them in memory. The
worker returns the mutual information of these columns with the target and with each chosen metric.
A chosen metric is sent to all workers: as classes, one byte a row, or for nearest neighbours as
numbers, 16 bytes a row. A block is processed as ``select`` processes a whole table, with additions
in the same order, so both give the same selection to the last bit.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eastwest.errors import InputError
from eastwest.observe import mrmr, stability
from eastwest.observe.information import Estimator
from eastwest.observe.metrics import without
from eastwest.observe.parts import Parts
from eastwest.observe.select import (
    Block,
    Selection,
    Told,
    Wanted,
    block_of,
    drawn_rows,
    estimator_of,
    refuse_nothing,
    selection,
    varying,
)
from eastwest.sweep.cluster import ask_builds, connected, disconnect, in_plain_words
from eastwest.units import clean

if TYPE_CHECKING:
    from distributed import Client, Future

#: Maximum number of candidates in a block, which one worker holds; it limits only the default.
MOST_COLUMNS = 64
#: Default number of blocks for each thread of a worker.
_FOR_EACH = 4


@dataclass(frozen=True)
class _Cut:
    """Candidates of a block that vary in the rows in use, and an estimator for them.

    The rows in use are all rows, or the rows of a bootstrap replicate.
    """

    #: Column numbers, within the block, of the candidates that are not constant in the rows in use.
    varied: NDArray[np.int64]
    #: Estimator of mutual information whose columns are the candidates in ``varied`` and then the
    #: target; None if the target is constant in the rows in use.
    estimator: Estimator | None

    def relevance(self) -> list[float]:
        """Return the mutual information of each candidate in ``varied`` with the target, in nats.

        The list is empty if the target is constant.
        """
        if self.estimator is None:
            return []
        last = len(self.varied)
        return [self.estimator.between(place, last) for place in range(last)]


def select(
    parts: Parts,
    target: str,
    wanted: Wanted,
    address: str,
    *,
    columns: int | None = None,
    progress: Callable[[str, float], None] = lambda *_: None,
) -> Selection:
    """Return the result of ``eastwest.observe.select.select``, computed on a Dask cluster.

    ``address`` is the address of the scheduler; ``columns`` is the number of candidates in a block
    (default: four blocks for each thread of the workers, but at most 64 candidates). Raises
    ``InputError`` if no scheduler answers, if workers have another build or cannot read the files,
    and in all cases in which the local selection raises it.
    """
    parts.place(target)
    kept = [parts.names[i] for i in without(parts.names, wanted.exclude, target)]
    candidates = [name for name in kept if name != target]
    client = connected(address, f"eastwest-{secrets.token_hex(6)}")
    try:
        ask_builds(client)
        threads = max(1, sum(client.nthreads().values()))
        if columns is None:
            columns = min(MOST_COLUMNS, -(-len(candidates) // (_FOR_EACH * threads)))
        size = max(1, columns)
        shares = [candidates[at : at + size] for at in range(0, len(candidates), size)] or [[]]
        with in_plain_words(address, "selecting"):
            found = _Spread(client, wanted, progress).selection(parts, target, shares)
        return replace(found, notes=(*parts.notes, *found.notes))
    finally:
        disconnect(client)


class _Spread:
    """Selection of metrics on a cluster: submits the work and gathers the results."""

    def __init__(
        self, client: Client, wanted: Wanted, progress: Callable[[str, float], None]
    ) -> None:
        self._client = client
        self._wanted = wanted
        self._progress = progress

    def selection(self, parts: Parts, target: str, shares: Sequence[Sequence[str]]) -> Selection:
        wanted = self._wanted
        self._progress("reading", 0.0)
        blocks = [
            self._client.submit(_block, parts, target, list(names), wanted, pure=False)
            for names in shares
        ]
        told: list[Told] = []
        for number, block in enumerate(blocks):
            told.append(self._client.submit(_told, block, pure=False).result())
            self._progress("reading", (number + 1) / len(blocks))
        refuse_nothing(told, wanted)
        relevance, picks = self._selected(
            self._cut(blocks, None), lambda share: self._progress("selection", share)
        )
        often, stable = None, None
        if wanted.bootstrap:
            begins = np.cumsum([0, *(len(one.names) for one in told)])

            def again(replicate: int) -> list[int]:
                self._progress("bootstrap", replicate / wanted.bootstrap)
                return self._replicate(blocks, begins, replicate)

            often, stable = stability.frequencies(int(begins[-1]), wanted.bootstrap, again)
        return selection(target, told, relevance, picks, often, stable)

    def _cut(self, blocks: Sequence[Future[Block]], replicate: int | None) -> list[Any]:
        submit: Callable[..., Any] = self._client.submit
        return [submit(_cut_of, block, self._wanted, replicate, pure=False) for block in blocks]

    def _selected(
        self, cut: Sequence[Any], progress: Callable[[float], None] = lambda _: None
    ) -> tuple[list[float], list[mrmr.Pick]]:
        """Return (relevance of each candidate that is not constant, selected candidates).

        The relevance is in nats; ``cut`` has the ``_Cut`` of each block, on the workers.
        """
        submit: Callable[..., Any] = self._client.submit
        found: list[list[float]] = self._client.gather(
            [submit(_Cut.relevance, one, pure=False) for one in cut]
        )
        relevance = [value for one in found for value in one]
        count = min(self._wanted.count, len(relevance))
        begins = np.cumsum([0, *map(len, found)])
        shared: dict[int, list[float]] = {}

        def information(candidate: int, chosen: int) -> float:
            if chosen not in shared:
                block = int(np.searchsorted(begins, chosen, side="right")) - 1
                column = submit(_column, cut[block], chosen - int(begins[block]), pure=False)
                told: list[list[float]] = self._client.gather(
                    [submit(_against, one, column, pure=False) for one in cut]
                )
                shared[chosen] = [value for one in told for value in one]
                progress(len(shared) / max(1, count))
            return shared[chosen][candidate]

        return relevance, mrmr.select(relevance, information, count, self._wanted.scheme)

    def _replicate(
        self, blocks: Sequence[Future[Block]], begins: NDArray[np.int64], replicate: int
    ) -> list[int]:
        """Return the numbers of the candidates that a bootstrap replicate selects.

        Candidates are numbered through all blocks; ``begins`` has the number of the first candidate
        of each block. ``replicate`` is the number of the replicate, from 0.
        """
        cut = self._cut(blocks, replicate)
        varied: list[NDArray[np.int64] | None] = self._client.gather(
            [self._client.submit(_varied, one, pure=False) for one in cut]
        )
        places = [
            begin + one
            for begin, one in zip(begins.tolist(), varied, strict=False)
            if one is not None
        ]
        if len(places) < len(blocks) or not sum(map(len, places)):
            return []  # the target, or every candidate, is constant on these rows
        numbers = np.concatenate(places)
        _, picks = self._selected(cut)
        return [int(numbers[pick.column]) for pick in picks]


# Functions that run on the workers of the Dask cluster.


def _block(parts: Parts, target: str, names: Sequence[str], wanted: Wanted) -> Block:
    """Read and prepare the block with the candidates ``names``; runs on a worker."""
    lost = next((path for path in parts.files if not path.is_file()), None)
    if lost is not None:
        from distributed import get_worker  # noqa: PLC0415  only where Dask is

        raise InputError(
            f"{clean(str(lost), 300)}: this file does not exist on worker "
            f"{get_worker().address}: every worker must find the files under the "
            "same paths"
        )
    return block_of(parts.read([target, *names]), target, wanted)


def _told(block: Block) -> Told:
    return block.told


def _drawn(block: Block, wanted: Wanted, replicate: int | None) -> Any:
    if replicate is None:
        return block.values
    return block.values[drawn_rows(len(block.values), wanted, replicate)]


def _varied(cut: _Cut) -> NDArray[np.int64] | None:
    return None if cut.estimator is None else cut.varied


def _cut_of(block: Block, wanted: Wanted, replicate: int | None) -> _Cut:
    """Return the candidates of a block that are not constant, with an estimator.

    Only the rows of the bootstrap replicate with the number ``replicate`` are used; None: all rows.
    """
    drawn = _drawn(block, wanted, replicate)
    varied = varying(drawn)
    last = drawn.shape[1] - 1
    if not len(varied) or varied[-1] != last:
        return _Cut(np.empty(0, np.int64), None)
    return _Cut(varied[:-1], estimator_of(block, drawn, varied, wanted))


def _column(cut: _Cut, place: int) -> Any:
    assert cut.estimator is not None
    return cut.estimator.column(place)


def _against(cut: _Cut, column: Any) -> list[float]:
    """Return the mutual information of each candidate of a block with ``column``, in nats.

    ``column`` is a result of ``Estimator.column``, perhaps from another block. The list is empty if
    the target is constant.
    """
    if cut.estimator is None:
        return []
    return [cut.estimator.against(place, column) for place in range(len(cut.varied))]
