"""Traces made larger or smaller: by nodes, by data, or by load.

*Nodes* from A to B, SWIM's rule (Chen, Ganapathi, Griffith and Katz, MASCOTS 2011): every size in
bytes is multiplied by B / A, so that each node has as much work as before. *Data* by a factor:
every size is multiplied by this factor. *Load* by a factor f: every time of submission is divided
by f, so that f times as many jobs arrive in a second.

Sizes are rounded to the nearest byte with halves up, exactly, as the replay rounds them: with
``x = q·A + r`` the result is ``q·B + ⌊(2·r·B + A) / (2·A)⌋``, in which no value exceeds 64 bits
while A and B are below 2³¹ and the result fits. A size whose result does not fit is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import polars as pl

from eastwest.errors import InputError
from eastwest.units import clean
from eastwest.workload.jobs import usable

#: Exclusive upper bound of the numerator and of the denominator of a factor.
_MOST_PART = 2**31
_MOST_BYTES = 2**64 - 1
_SIZES = ("input_bytes", "map_output_bytes", "shuffle_bytes", "output_bytes")
#: Columns that were measured on the recorded cluster. They would be wrong after a scaling of sizes,
#: so they become null.
_MEASURED = ("launch_s", "finish_s", "maps", "reduces", "map_s", "reduce_s")
#: Columns with times of a job; a scaling of the load shifts all times of one job equally.
_TIMES = ("submit_s", "launch_s", "finish_s")

#: Text for the user on the properties that a scaling keeps and changes, by kind of scaling.
KEEPS = {
    "nodes": "keeps every time of submission, the number of jobs, the proportions of input, "
    "shuffle and output of a job, and bytes per node; forgets numbers of tasks and measured times",
    "data": "keeps every time of submission, the number of jobs, and the proportions of input, "
    "shuffle and output of a job; forgets numbers of tasks and measured times",
    "load": "keeps the jobs, their sizes and their order, gaps in proportion, and peak to median; "
    "changes the length, periods, and bytes per second",
}


@dataclass(frozen=True)
class Factor:
    """Exact factor by which sizes or the load of a trace are multiplied: a fraction."""

    value: Fraction

    @classmethod
    def of(cls, text: str, what: str) -> Factor:
        """Return the factor that ``text`` states, such as ``1.5``, ``3/4`` or ``1e-3``.

        Raises ``InputError`` if the text is not a positive number, or if numerator or denominator
        is 2³¹ or more. ``what`` is the name of the option in the message.
        """
        try:
            value = Fraction(text.strip()) if len(text) < 40 and _small(text) else Fraction(0)
        except (ValueError, ZeroDivisionError):
            value = Fraction(0)
        if value <= 0 or max(value.numerator, value.denominator) >= _MOST_PART:
            raise InputError(
                f"{what} {clean(text, 60)!r}: expected a positive number such as 0.5, 2 or "
                "1/30, whose numerator and denominator are below 2^31"
            )
        return cls(value)

    @classmethod
    def of_nodes(cls, text: str) -> Factor:
        """Return the factor for sizes from two numbers of nodes: 20/600 for ``600:20``.

        The first number is that of the recorded cluster, the second that of the wanted cluster.
        Raises ``InputError`` for other texts.
        """
        before, _, after = text.partition(":")
        parts = [part.strip() for part in (before, after)]
        whole = all(p.isascii() and p.isdecimal() and len(p) <= 10 for p in parts)
        if not whole or not all(0 < int(p) < _MOST_PART for p in parts):
            raise InputError(
                f"--nodes {clean(text, 60)!r}: expected two numbers of nodes, recorded and wanted, "
                "such as 600:20, each from 1 to 2^31 - 1"
            )
        return cls(Fraction(int(parts[1]), int(parts[0])))


def _small(text: str) -> bool:
    """Whether the exponent of a number as text (``1e-3``) has at most three characters.

    With a longer exponent, ``Fraction`` would compute a number of very many digits.
    """
    _, _, exponent = text.lower().partition("e")
    return len(exponent) <= 3


def by_size(jobs: pl.DataFrame, factor: Factor) -> pl.DataFrame:
    """Return the table ``jobs`` with all sizes in bytes multiplied by ``factor``.

    Columns that were measured on the recorded cluster, such as ``map_s``, become null. Raises
    ``InputError`` if a scaled size exceeds 64 bits.
    """
    there = [name for name in _SIZES if name in jobs.columns]
    for name in there:
        most = jobs[name].max()
        if isinstance(most, int) and rounded(most, factor) > _MOST_BYTES:
            raise InputError(
                f"{name}: the largest size, {most:,} bytes, would exceed 64 bits after "
                "scaling; use a smaller factor"
            )
    return jobs.with_columns(
        *(scaled(pl.col(name), factor).alias(name) for name in there),
        *(
            pl.lit(None, jobs.schema[name]).alias(name)
            for name in _MEASURED
            if name in jobs.columns
        ),
    )


def sizes_of_files(files: pl.LazyFrame, factor: Factor) -> pl.LazyFrame:
    """Return the table ``files`` with sizes multiplied by ``factor`` and rounded to whole bytes."""
    return files.with_columns(scaled(pl.col("bytes"), factor))


def scaled(size: pl.Expr, factor: Factor) -> pl.Expr:
    """Return a polars expression: ``size`` × ``factor``, rounded to a whole byte, halves up."""
    up = pl.lit(factor.value.numerator, pl.UInt64)
    down = pl.lit(factor.value.denominator, pl.UInt64)
    whole, rest = size.cast(pl.UInt64) // down, size.cast(pl.UInt64) % down
    return whole * up + (rest * up * 2 + down) // (down * 2)


def rounded(size: int, factor: Factor) -> int:
    """Return ``size`` × ``factor``, rounded to a whole number, halves up; exact for any size."""
    up, down = factor.value.numerator, factor.value.denominator
    return (2 * size * up + down) // (2 * down)


def by_load(jobs: pl.DataFrame, factor: Factor) -> pl.DataFrame:
    """Return the table ``jobs`` with ``factor`` times the rate of submissions, sorted by time.

    Submission times are divided by the factor. Launch and end of a job are shifted by as much as
    the submission. Jobs without a submission time are left out.
    """
    jobs = usable(jobs.lazy()).collect()
    moved = (jobs["submit_s"] / float(factor.value)).round(6).alias("moved")
    later = moved - jobs["submit_s"]
    return jobs.with_columns((pl.col(n) + later).round(6) for n in _TIMES if n in jobs.columns)
