"""Clock skew between hosts: estimated, corrected and reported.

Each host has a clock; if the host is not known, each instance has a clock, or else each service. A
call for which the caller waits lies within the caller's span. So for a span of clock b whose parent
has the clock a, the true shift x of b's times is bounded::

    start_a − start_b ≤ x ≤ end_a − end_b

The middle of both bounds is the estimate of NTP (RFC 5905, section 8): it is exact if request and
response take equal times. A call that is longer than its caller's span gives no information on
clocks.

A clock counts in steps: its *resolution* is the largest power of ten, from 1 ns to 1 s, of which
all of its times are multiples. Each bound is correct to within the sum of both resolutions, the
*slack*: a truncated start is up to one step too early, an end that is a truncated start plus a
truncated duration up to two steps.

The rule: two clocks disagree if more than half of the calls between them (at least ``LEAST_CALLS``)
are impossible with x = 0, by more than the slack. Their shift is then the median of the middles, if
it is larger than the slack and more calls are possible with it than without. Shifts add up along
the pairs of clocks with most calls (a spanning tree), from the clock on which most traces begin,
which is assumed to be right. Drift within a recording is not corrected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from eastwest.account import Account
from eastwest.units import clean, span

#: Minimum number of calls between two clocks for which a shift is estimated.
LEAST_CALLS = 4
_MOST_LISTED = 200
#: Largest step of a clock that is recognised, in ns.
_COARSEST_NS = 10**9
#: Largest step of a clock without a remark in the report, in ns.
FINE_NS = 1000


@dataclass
class Skew:
    """Estimated shifts of clocks, and numbers of calls that lie outside their callers' spans."""

    #: Shift in ns that is added to the times of a clock, by the clock's name; clocks without a
    #: shift are not listed.
    shift_ns: dict[str, int] = field(default_factory=dict)
    clocks: int = 0
    #: Number of calls between spans of two clocks for which the caller waits.
    calls: int = 0
    #: Step in ns in which a clock counts time, by the clock's name.
    resolution_ns: dict[str, int] = field(default_factory=dict)
    #: Number of calls that lie outside their caller's span by more than the slack (the sum of both
    #: clocks' steps), before the correction.
    outside_before: int = 0
    #: Number of calls that lie outside their caller's span by more than the slack, after the
    #: correction.
    outside_after: int = 0
    #: Number of calls that lie outside their caller's span, but by no more than the slack.
    within_slack: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return shifts, steps and numbers of calls as an object for ``spans.json``."""
        listed = sorted(self.shift_ns.items(), key=lambda item: (-abs(item[1]), item[0]))
        steps = Counter(self.resolution_ns.values())
        return {
            "clocks": self.clocks,
            "calls_between": self.calls,
            "outside_before": self.outside_before,
            "outside_after": self.outside_after,
            "outside_within_resolution": self.within_slack,
            "resolution_ns": [
                {"step_ns": step, "clocks": clocks} for step, clocks in sorted(steps.items())
            ],
            "shifted": len(listed),
            "shift_ns": {clean(name, 120): shift for name, shift in listed[:_MOST_LISTED]},
        }

    def tell(self, problems: Account, file: str) -> None:
        """Report coarse clocks, calls outside their caller within the slack, and shifted clocks.

        The remarks are added to ``problems``; ``file`` is the name of the source.
        """
        for step, clocks in sorted(Counter(self.resolution_ns.values()).items()):
            if step > FINE_NS:
                problems.note(
                    file,
                    0,
                    f"a clock that counts time in steps of {span(step / 1e9)}",
                    next(name for name, own in self.resolution_ns.items() if own == step),
                    clocks,
                    "shorter times cannot be resolved, and a disagreement of clocks "
                    "by up to two steps cannot be detected",
                )
        if self.within_slack:
            problems.note(
                file,
                0,
                "a call that lies outside its caller, but by no more than the steps of both clocks",
                rows=self.within_slack,
                consequence="no clock is shifted because of it",
            )
        for name, shift in sorted(self.shift_ns.items(), key=lambda item: -abs(item[1])):
            sign = "-" if shift < 0 else "+"
            problems.note(
                file,
                0,
                "a clock that contradicts the clocks of its callers: shifted",
                f"{clean(name, 40)}: {sign}{span(abs(shift) / 1e9)}",
                consequence=f"{self.outside_before:,} of {self.calls:,} calls lay outside their "
                f"callers by more than the steps of both clocks, now {self.outside_after:,}",
            )


def _clock() -> pl.Expr:
    return pl.coalesce("host", "instance", "service").fill_null("").alias("clock")


def edges(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a table of the bounds of the shift by each call, and of the root spans by clock.

    A row for a call: clock of the caller (``caller``), clock of the called span (``clock``), bounds
    of the shift of ``clock`` in ns (``low``, ``high``). A row for root spans: ``caller`` is null,
    ``low`` is the number of root spans with this clock.
    """
    spans = frame.select("trace_id", "span_id", "parent_id", "kind", _clock(), "start_ns", "end_ns")
    above = spans.select(
        "trace_id",
        pl.col("span_id").alias("parent_id"),
        pl.col("clock").alias("caller"),
        pl.col("start_ns").alias("from_ns"),
        pl.col("end_ns").alias("to_ns"),
    )
    waited = ~pl.col("kind").is_in(["producer", "consumer"]).fill_null(False)
    below = spans.filter(waited & pl.col("parent_id").is_not_null())
    calls = below.join(above, on=["trace_id", "parent_id"]).filter(
        pl.col("clock") != pl.col("caller")
    )
    bounds = calls.select(
        "caller",
        "clock",
        (pl.col("from_ns") - pl.col("start_ns")).alias("low"),
        (pl.col("to_ns") - pl.col("end_ns")).alias("high"),
    )
    roots = spans.filter(pl.col("parent_id").is_null()).group_by("clock").len("roots")
    roots = roots.select(
        pl.lit(None, pl.String).alias("caller"),
        "clock",
        pl.col("roots").cast(pl.Int64).alias("low"),
        pl.lit(None, pl.Int64).alias("high"),
    )
    return pl.concat([bounds, roots])


def divisors(frame: pl.DataFrame) -> dict[str, int]:
    """Return the greatest common divisor of the times of each clock, in ns, by the clock's name."""
    times = frame.group_by(_clock(), maintain_order=True).agg("start_ns", "end_ns")
    return {
        clock: int(np.gcd.reduce(np.concatenate([start, end])))
        for clock, start, end in (
            (clock, start.to_numpy(), end.to_numpy())
            for clock, start, end in zip(*times.get_columns(), strict=True)
        )
    }


def joined(parts: list[dict[str, int]]) -> dict[str, int]:
    """Return the greatest common divisor of the times of each clock, in ns, for all parts together.

    ``parts`` are results of ``divisors`` for parts of the spans. The result is sorted by the
    clock's name.
    """
    found: dict[str, int] = {}
    for part in parts:
        for clock, divisor in part.items():
            found[clock] = int(np.gcd(found.get(clock, 0), divisor))
    return dict(sorted(found.items()))


def _resolution(divisor: int) -> int:
    """Return the step in ns of a clock whose times have the common divisor ``divisor``.

    The step is the largest power of ten, at most 1 s, that divides ``divisor``.
    """
    step = 1
    while step < _COARSEST_NS and divisor % (10 * step) == 0:
        step *= 10
    return step


def estimate(found: pl.DataFrame, divisors_ns: Mapping[str, int]) -> Skew:
    """Return the estimated shifts of all clocks, and the numbers of calls outside their callers.

    ``found`` is a table of ``edges``; ``divisors_ns`` has the greatest common divisor of the times
    of each clock (see ``divisors``).
    """
    resolution = {name: _resolution(divisor) for name, divisor in divisors_ns.items()}
    calls = _with_slack(found.filter(pl.col("caller").is_not_null()), resolution)
    roots = found.filter(pl.col("caller").is_null()).group_by("clock").agg(pl.col("low").sum())
    roots = roots.sort(pl.col("low"), "clock", descending=[True, False])
    skew = Skew(calls=calls.height, resolution_ns=resolution)
    skew.outside_before = _outside(calls, pl.lit(0), pl.col("slack"))
    skew.within_slack = _outside(calls, pl.lit(0), pl.lit(0)) - skew.outside_before
    tree = _tree(_pairs(calls))
    names = list(dict.fromkeys([*roots["clock"], *tree]))
    skew.clocks = len(names)
    shift = _walk(names, tree)
    skew.shift_ns = {name: by for name, by in shift.items() if by}
    skew.outside_after = skew.outside_before
    if skew.shift_ns:
        by = pl.DataFrame({"clock": list(shift), "by": list(shift.values())})
        moved = calls.join(by, on="clock", how="left").join(
            by.rename({"clock": "caller", "by": "caller_by"}), on="caller", how="left"
        )
        net = pl.col("by").fill_null(0) - pl.col("caller_by").fill_null(0)
        skew.outside_after = _outside(moved, net, pl.col("slack"))
    return skew


def _with_slack(calls: pl.DataFrame, resolution: Mapping[str, int]) -> pl.DataFrame:
    """Return ``calls`` with the column ``slack``: the sum of both clocks' steps in ns."""

    def steps(name: str) -> pl.Expr:
        return pl.col(name).replace_strict(resolution, default=1, return_dtype=pl.Int64)

    if not resolution:
        return calls.with_columns(pl.lit(0, pl.Int64).alias("slack"))
    return calls.with_columns((steps("caller") + steps("clock")).alias("slack"))


def _outside(calls: pl.DataFrame, shift: pl.Expr, slack: pl.Expr) -> int:
    """Return the number of calls that lie outside their callers' spans by more than ``slack``.

    ``shift``, which is added to the times of the called clock, and ``slack`` are expressions in ns
    on the columns of ``calls``.
    """
    late = (pl.col("low") - slack > shift) | (pl.col("high") + slack < shift)
    return int(calls.select(late.sum()).item() or 0)


def _pairs(calls: pl.DataFrame) -> pl.DataFrame:
    """Return a table of the pairs of clocks: caller, clock, calls, shift in ns; most calls first.

    The shift is 0 if the clocks do not disagree. ``calls`` is a table of ``edges`` with the column
    ``slack``.
    """
    # A called span that is longer than its caller gives no information on the shift.
    usable = calls.filter(pl.col("low") <= pl.col("high"))
    key = ["caller", "clock"]
    middle = pl.col("low") + (pl.col("high") - pl.col("low")) // 2

    def possible(shift: pl.Expr) -> pl.Expr:
        return (pl.col("low") - pl.col("slack") <= shift) & (
            shift <= pl.col("high") + pl.col("slack")
        )

    found = (
        usable.with_columns(middle.median().over(key).round().cast(pl.Int64).alias("shift"))
        .group_by(key)
        .agg(
            pl.len().alias("usable"),
            possible(pl.lit(0)).sum().alias("without"),
            possible(pl.col("shift")).sum().alias("with"),
            pl.col("shift", "slack").first(),
        )
    )
    disagree = (
        (pl.col("usable") >= LEAST_CALLS)
        & (2 * pl.col("without") < pl.col("usable"))
        & (pl.col("with") > pl.col("without"))
        & (pl.col("shift").abs() > pl.col("slack"))
    )
    told = found.select(*key, pl.when(disagree).then("shift").otherwise(0).alias("shift"))
    return (
        calls.group_by(key)
        .len("calls")
        .join(told, on=key, how="left")
        .with_columns(pl.col("shift").fill_null(0))
        .sort("calls", "caller", "clock", descending=[True, False, False])
    )


def _tree(pairs: pl.DataFrame) -> dict[str, list[tuple[str, int]]]:
    """Return a spanning tree of the clocks, from the pairs with most calls.

    The result has for each clock a list of (neighbour, shift of the neighbour relative to the
    clock, in ns). ``pairs`` is a table of ``_pairs``.
    """
    tree: dict[str, list[tuple[str, int]]] = {}
    group: dict[str, str] = {}

    def head(name: str) -> str:
        while group.setdefault(name, name) != name:
            group[name] = group[group[name]]
            name = group[name]
        return name

    for caller, clock, by in pairs.select("caller", "clock", "shift").iter_rows():
        one, other = head(caller), head(clock)
        if one == other:
            continue
        group[one] = other
        tree.setdefault(caller, []).append((clock, by))
        tree.setdefault(clock, []).append((caller, -by))
    return tree


def _walk(names: list[str], tree: dict[str, list[tuple[str, int]]]) -> dict[str, int]:
    """Return the shift of each clock in ns: the sum of the shifts along the tree.

    In each connected set of clocks, the clock that is first in ``names`` has the shift 0; ``tree``
    is a result of ``_tree``.
    """
    shift: dict[str, int] = {}
    for name in names:
        if name in shift:
            continue
        shift[name] = 0
        waiting = [name]
        while waiting:
            here = waiting.pop()
            for other, by in tree.get(here, ()):
                if other not in shift:
                    shift[other] = shift[here] + by
                    waiting.append(other)
    return shift


def correct(spans: pl.LazyFrame, skew: Skew) -> pl.LazyFrame:
    """Return the spans with their clock's shift added to their times, and in ``shift_ns``."""
    if not skew.shift_ns:
        return spans
    shift = _clock().replace_strict(skew.shift_ns, default=0, return_dtype=pl.Int64)
    return spans.with_columns(shift.alias("shift_ns")).with_columns(
        pl.col("start_ns") + pl.col("shift_ns"), pl.col("end_ns") + pl.col("shift_ns")
    )
