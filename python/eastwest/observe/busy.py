"""Core time of the components of replayed transactions, over time.

A call of the replayed table has two computing times: its caller computes ``gap_s`` before it sends
the request, and its component computes ``rest_s`` before it sends the response. Both computations
end when the message is sent, and the run's table ``calls`` has this time, also if a computation had
to wait for a processor.
"""

from __future__ import annotations

import io
import tomllib
from pathlib import Path

import numpy as np
import polars as pl

from eastwest.observe.metrics import Numbers
from eastwest.results import Result

#: Name of the table of calls in a folder that ``eastwest observe workload`` wrote.
_FILE = "transactions.tsv"


def core_seconds(result: Result, times: Numbers) -> dict[tuple[str, str, int], Numbers]:
    """Return the core seconds that components have used up to each of ``times``.

    The key of an array is a tuple: workload, component, number of the host. ``times`` are in
    simulated seconds. Unfinished transactions are not included, because the run records no calls of
    them.
    """
    found = {}
    for workload, file in _tables(result):
        calls = result.table("calls").filter(pl.col("workload") == workload)
        if calls.is_empty():
            continue
        pieces = _apart(_pieces(_recorded(result, workload, file, calls)))
        for (component, host), part in sorted(
            pieces.partition_by("component", "host", as_dict=True).items()
        ):
            begin, end = part["begin_s"].to_numpy(), part["end_s"].to_numpy()
            sums = _passed(begin, times) - _passed(end, times)
            # Rounding can make a later sum smaller than an earlier one, but used core time never
            # decreases.
            grown: Numbers = np.maximum.accumulate(np.maximum(sums, 0.0))
            found[workload, str(component), int(host)] = grown
    return found


def _tables(result: Result) -> list[tuple[str, Path]]:
    """Return pairs of each workload of transactions: its name, and the table that it replays."""
    workloads = tomllib.loads(result.scenario).get("workload", [])
    of_it = [each for each in workloads if each.get("kind") == "transactions"]
    paths = [(each["name"], result.path / each["file"]) for each in of_it]
    return [(name, path / _FILE if path.is_dir() else path) for name, path in paths]


def _recorded(result: Result, workload: str, file: Path, calls: pl.DataFrame) -> pl.DataFrame:
    """Return ``calls`` with the columns ``gap_s`` and ``rest_s`` of the replayed table.

    ``calls`` are the rows of the run's table ``calls`` that belong to ``workload``; ``file`` is the
    table that this workload replays.
    """
    book = pl.read_csv(
        io.BytesIO(file.read_bytes()), separator="\t", quote_char=None, infer_schema=False
    )
    for name in ("gap_s", "rest_s"):
        if name not in book.columns:
            book = book.with_columns(pl.lit(None, pl.String).alias(name))
    book = book.with_columns(
        pl.col("transaction").rle_id(), pl.col("call").cast(pl.UInt32),
        pl.col("start_s", "gap_s", "rest_s").cast(pl.Float64),
    )  # fmt: skip
    # ``recorded`` is the position of a transaction in the order of arrival: the run numbers its
    # transactions in this order, while the table may have another order.
    starts = book.filter(pl.col("call") == 0).sort("start_s", maintain_order=True)
    order = starts.select("transaction").with_row_index("recorded")
    book = book.join(order, on="transaction").select(
        "recorded", "call", pl.col("gap_s", "rest_s").fill_null(0.0)
    )
    replayed = result.table("transactions").filter(pl.col("workload") == workload)
    return calls.join(replayed.select("transaction", "recorded"), on="transaction").join(
        book, on=["recorded", "call"]
    )


def _pieces(calls: pl.DataFrame) -> pl.DataFrame:
    """Return the computing intervals of calls, as a table.

    The columns are transaction, call, component, host, begin_s and end_s, in simulated seconds. A
    call computes before its response, and before each call that it makes.
    """
    callers = calls.select(
        "transaction", pl.col("call").cast(pl.Int64).alias("parent"), "component", "host"
    )
    before = calls.drop("component", "host").join(callers, on=["transaction", "parent"]).select(
        "transaction", pl.col("parent").alias("call"), "component", "host",
        (pl.col("sent_s") - pl.col("gap_s")).alias("begin_s"), pl.col("sent_s").alias("end_s"),
    )  # fmt: skip
    after = calls.select(
        "transaction", pl.col("call").cast(pl.Int64), "component", "host",
        (pl.col("answered_s") - pl.col("rest_s")).alias("begin_s"),
        pl.col("answered_s").alias("end_s"),
    )  # fmt: skip
    return pl.concat([before, after])


def _apart(pieces: pl.DataFrame) -> pl.DataFrame:
    """Return the computing intervals of each call without overlap.

    The computations of a call share one processor. So an interval begins no earlier than the end of
    the interval before it, and an interval that ends before this time is removed.
    """
    over = ["transaction", "call"]
    before = pl.col("end_s").cum_max().shift(1).over(over).fill_null(-np.inf)
    return (
        pieces.sort("begin_s")
        .with_columns(pl.max_horizontal("begin_s", before).alias("begin_s"))
        .filter(pl.col("end_s") > pl.col("begin_s"))
    )


def _passed(at: Numbers, times: Numbers) -> Numbers:
    """Return an array: for each time t of ``times``, the sum of t − a over all a ≤ t in ``at``.

    Both arrays are in simulated seconds.
    """
    order = np.sort(at)
    sums = np.concatenate(([0.0], np.cumsum(order)))
    count = np.searchsorted(order, times, side="right")
    found: Numbers = count * times - sums[count]
    return found
