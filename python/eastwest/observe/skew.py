"""Clocks of different hosts that do not agree: found, corrected, told.

A clock is a host, or where that is not known an instance, or else a service. A call that is waited
for lies within its caller's span, so that for a span of clock b below one of clock a the shift x of
b's times that is true is bounded::

    start_a − start_b ≤ x ≤ end_a − end_b

The middle of both bounds is the estimate of NTP (RFC 5905, section 8): right where the way there
takes as long as the way back. The rule: two clocks disagree if more than half of their calls cannot
be with x = 0; then the median of the middles is their shift. Shifts add up along the pairs of
clocks with most calls (a spanning tree), from the clock on which most traces begin, which is taken
for right. Drift within a recording is not seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from eastwest.units import clean

#: Fewest calls between two clocks from which their shift is told.
LEAST_CALLS = 4
_MOST_LISTED = 200


@dataclass
class Skew:
    """Clocks that were shifted, and how well it fits."""

    #: Nanoseconds that are added to the times of a clock; clocks that are right are not here.
    shift_ns: dict[str, int] = field(default_factory=dict)
    clocks: int = 0
    calls: int = 0
    #: Calls between clocks outside their callers before and after the correction.
    outside_before: int = 0
    outside_after: int = 0

    def as_json(self) -> dict[str, Any]:
        """What is kept in ``spans.json``."""
        listed = sorted(self.shift_ns.items(), key=lambda item: (-abs(item[1]), item[0]))
        return {
            "clocks": self.clocks,
            "calls_between": self.calls,
            "outside_before": self.outside_before,
            "outside_after": self.outside_after,
            "shifted": len(listed),
            "shift_ns": {clean(name, 120): shift for name, shift in listed[:_MOST_LISTED]},
        }


def _clock() -> pl.Expr:
    return pl.coalesce("host", "instance", "service").fill_null("").alias("clock")


def edges(frame: pl.DataFrame) -> pl.DataFrame:
    """Bounds of the shift for every call between two clocks, and roots with their clock."""
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


def estimate(found: pl.DataFrame) -> Skew:
    """Tell shifts from the bounds of all calls."""
    calls = found.filter(pl.col("caller").is_not_null())
    roots = found.filter(pl.col("caller").is_null()).group_by("clock").agg(pl.col("low").sum())
    roots = roots.sort(pl.col("low"), "clock", descending=[True, False])
    outside = (pl.col("low") > 0) | (pl.col("high") < 0)
    # a span longer than its caller says nothing of the clocks
    middle = pl.when(pl.col("low") <= pl.col("high")).then(
        pl.col("low") + (pl.col("high") - pl.col("low")) // 2
    )
    pairs = (
        calls.group_by("caller", "clock")
        .agg(
            pl.len().alias("calls"),
            outside.sum().alias("outside"),
            middle.median().alias("middle"),
            middle.count().alias("usable"),
        )
        .sort("calls", "caller", "clock", descending=[True, False, False])
    )
    skew = Skew(calls=calls.height, outside_before=int(calls.select(outside.sum()).item() or 0))
    tree = _tree(pairs)
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
        late = (pl.col("low") > net) | (pl.col("high") < net)
        skew.outside_after = int(moved.select(late.sum()).item())
    return skew


def _tree(pairs: pl.DataFrame) -> dict[str, list[tuple[str, int]]]:
    """Join clocks by the pairs with most calls; neighbours with their shift against each other."""
    tree: dict[str, list[tuple[str, int]]] = {}
    group: dict[str, str] = {}

    def head(name: str) -> str:
        while group.setdefault(name, name) != name:
            group[name] = group[group[name]]
            name = group[name]
        return name

    for caller, clock, calls, outside, middle, usable in pairs.iter_rows():
        one, other = head(caller), head(clock)
        if one == other:
            continue
        group[one] = other
        disagree = usable >= LEAST_CALLS and 2 * outside > calls
        by = round(middle) if disagree else 0
        tree.setdefault(caller, []).append((clock, by))
        tree.setdefault(clock, []).append((caller, -by))
    return tree


def _walk(names: list[str], tree: dict[str, list[tuple[str, int]]]) -> dict[str, int]:
    """Add shifts up from the first of each set of clocks that call each other."""
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
    """Add the shifts to the times of spans."""
    if not skew.shift_ns:
        return spans
    shift = _clock().replace_strict(skew.shift_ns, default=0, return_dtype=pl.Int64)
    return spans.with_columns(shift.alias("shift_ns")).with_columns(
        pl.col("start_ns") + pl.col("shift_ns"), pl.col("end_ns") + pl.col("shift_ns")
    )
