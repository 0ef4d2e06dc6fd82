"""Text of a SWIM trace for a table of jobs: six columns separated by tabs.

The columns are name, submission, seconds since the previous submission, and bytes of input, shuffle
and output (docs/mechanisms/swim.md). Times are rounded down, because the format has only whole
seconds. Known sizes are exact. Unknown sizes are written as 0, because the format has no mark for
unknown values.
"""

from __future__ import annotations

import math

import polars as pl

from eastwest.errors import InputError
from eastwest.traces.replay import LAST_SUBMIT_S
from eastwest.workload.jobs import BYTES, usable


def text_of(jobs: pl.DataFrame) -> tuple[bytes, int]:
    """Return (text of a SWIM trace with ``jobs``, number of unknown sizes written as 0).

    Raises ``InputError`` if no job has a submission time, or if a job is submitted later than the
    replay accepts.
    """
    jobs = usable(jobs.lazy()).collect()
    if not jobs.height:
        raise InputError("there are no jobs to write: none has a time of submission")
    last = float(jobs["submit_s"][-1])
    if math.floor(last) > LAST_SUBMIT_S:  # the format has whole seconds
        raise InputError(
            f"the last job is submitted at {last:,.0f} s, but a SWIM trace can be replayed up to "
            f"{LAST_SUBMIT_S:,} s only: use a shorter trace"
        )
    there = [name for name in BYTES if name in jobs.columns]
    unknown = sum(jobs[name].null_count() for name in there)
    unknown += (len(BYTES) - len(there)) * jobs.height
    sizes = [
        (pl.col(name).fill_null(0) if name in there else pl.lit(0, pl.UInt64)).alias(name)
        for name in BYTES
    ]
    submit = pl.col("submit_s").floor().cast(pl.Int64)
    # Control characters are replaced: a tab or a line end in a name would be read as a separator.
    name = (
        pl.col("name").str.replace_all(r"[\x00-\x1f\x7f]", " ").str.strip_chars().replace("", None)
    )
    called = name.fill_null(pl.format("job{}", pl.int_range(pl.len()))).str.head(200)
    rows = jobs.select(called.alias("name"), submit, *sizes)
    rows = rows.insert_column(
        2, (rows["submit_s"] - rows["submit_s"].shift(1, fill_value=0)).alias("gap_s")
    )
    text = rows.write_csv(separator="\t", include_header=False, quote_style="never")
    return text.encode(), unknown
