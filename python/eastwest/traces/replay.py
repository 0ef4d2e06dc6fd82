"""Writes the jobs of a trace as text for the simulator: ``jobs.tsv`` in the folder of the trace.

Values are separated by tabs; the first line names the columns (docs/mechanisms/traces.md). Unknown
values are empty: the simulator then uses size 0, and derives numbers of tasks from the sizes. The
file is not written if it would be larger than ``MOST_BYTES``, or if no job is submitted within the
range of simulated time, because the simulator would refuse it.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from eastwest.account import Account
from eastwest.units import size

#: Name of the file with the jobs for the simulator, in the folder of a trace.
FILE = "jobs.tsv"
#: Maximum size in bytes of ``jobs.tsv``: the simulator reads no larger file.
MOST_BYTES = 32 << 20
#: Latest submission of a job that the simulator reads, in whole seconds: the limit of its time
#: (crates/workload/src/replay).
LAST_SUBMIT_S = 2_305_843
#: Minimum size in bytes of a row of ``jobs.tsv``; it limits the number of rows in ``MOST_BYTES``.
_LEAST_ROW = 16
_MOST_TASKS = 1_000_000


def write(jobs: Path, out: Path, account: Account) -> bool:
    """Write the jobs in the Parquet file ``jobs`` as ``jobs.tsv`` to ``out``.

    The result is False if the file was not written, because it would be too large or have no jobs.
    Jobs and values that ``jobs.tsv`` cannot have are reported to ``account``.
    """
    table = pl.scan_parquet(jobs)
    inside = pl.col("submit_s").is_between(0.0, LAST_SUBMIT_S)
    many = ((pl.col("maps") > _MOST_TASKS) | (pl.col("reduces") > _MOST_TASKS)).fill_null(False)
    asked = table.select(pl.len(), inside.sum().alias("rows"), (inside & many).sum().alias("many"))
    count, rows, large = asked.collect(engine="streaming").row(0)
    within = table.filter(inside)
    if not 0 < rows <= MOST_BYTES // _LEAST_ROW:
        _none(account)
        return False
    if rows < count:
        reason = f"job submitted before 0 s or after {LAST_SUBMIT_S} s, which a run cannot simulate"
        account.note(FILE, 0, reason, "", count - rows, f"it is not in {FILE}; the tables have it")
    if large:
        reason = f"job of more than {_MOST_TASKS} maps or reduces"
        then = f"{FILE} does not state this number: a run derives it from the bytes of the job"
        account.note(FILE, 0, reason, "", large, then)
    shuffled = pl.col("shuffle_bytes").fill_null(0) > 0
    # A tab or a line end in a name would be read as a separator, so it is replaced.
    name = pl.col("name").str.replace_all(r"[\x00-\x1f\x7f]", " ").str.strip_chars().str.head(200)
    maps, reduces = (
        pl.when(pl.col(column) <= _MOST_TASKS).then(pl.col(column))
        for column in ("maps", "reduces")
    )
    within.select(
        pl.col("submit_s"),
        *("input_bytes", "shuffle_bytes", "output_bytes"),
        maps.alias("maps"),
        pl.when((reduces > 0) | ~shuffled).then(reduces).alias("reduces"),
        name.alias("name"),
    ).sink_csv(out, separator="\t", quote_style="never", float_precision=6, engine="streaming")
    if out.stat().st_size > MOST_BYTES:
        out.unlink()
        _none(account)
        return False
    return True


def _none(account: Account) -> None:
    """Report to ``account`` that ``jobs.tsv`` is not written."""
    reason = f"{FILE} would have no row, or more than {size(MOST_BYTES)}"
    account.note(FILE, 0, reason, consequence="it is left out: a run cannot replay the trace")
