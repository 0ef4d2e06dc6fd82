"""Repairs a set of spans so that it is a set of trees, and counts the repairs.

The rules, in this order, within each trace:

- Two spans of one id, one recorded by the caller and one by the callee (Zipkin's shared spans), are
  both sides of one call: the caller's span gets ``/client`` behind its id and becomes the parent of
  the other span.
- Of other spans with one id the first in the file is kept.
- A span whose parent is missing becomes a root, with the mark ``lost-parent``.
- If parents form a cycle, the span of the cycle that starts first (the first in the file among
  equals) becomes a root, with the mark ``cycle``.
- A span that ends before it starts gets its start as its end.

Gaps of a recording that are no error (a parent outside of the recorded time, a span that was sent
twice) are noted. Contradictions (another span with an id in use, a cycle, an end before the start)
cannot be imported as recorded: they are refused unless the import is lossy.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from eastwest.account import Account
from eastwest.observe.calls import Integers, parent_rows
from eastwest.observe.carried import with_parent

_KEY = ("trace_id", "span_id")


@dataclass
class Mended:
    """Numbers of repaired spans, by kind of repair.

    ``repeated``: duplicates removed; ``differing``: other spans with an id in use, removed;
    ``shared``: pairs of client and server with one id, separated; ``lost``: spans whose parent is
    missing; ``cycles``: cycles of parents cut; ``negative``: spans that ended before their start.
    """

    repeated: int = 0
    differing: int = 0
    shared: int = 0
    lost: int = 0
    cycles: int = 0
    negative: int = 0
    #: ``trace/span`` ids of the first repaired span, by kind of repair.
    first: dict[str, str] = field(default_factory=dict)

    def seen(self, what: str, rows: pl.DataFrame) -> int:
        """Record the first of ``rows`` as the example of a repair; return the number of rows.

        ``what`` is the kind of repair, such as ``lost``.
        """
        if rows.height:
            self.first.setdefault(what, "/".join(rows.select(_KEY).row(0)))
        return rows.height

    def tell(self, problems: Account, file: str) -> None:
        """Add the repairs to the report ``problems``; ``file`` is the name of the source.

        Raises ``InputError`` for repairs that change the meaning, unless ``problems`` is lossy.
        """
        for what, (reason, then) in _NOTED.items():
            if rows := getattr(self, what):
                problems.note(file, 0, reason, self.first.get(what, ""), rows, then)
        for what, (reason, then) in _CHANGED.items():
            if rows := getattr(self, what):
                problems.change(file, 0, reason, then, self.first.get(what, ""), rows)


_NOTED = {
    "repeated": ("duplicate of a span: left out", "it counts once"),
    "shared": ("client and server span with one id: separated", "they are one call"),
    "lost": (
        "its parent is missing: it becomes a root",
        "it begins a transaction of its own: there are more transactions, and shorter ones",
    ),
}
_CHANGED = {
    "differing": (
        "another span of the same id",
        "the first is kept; the others are missing in their transaction",
    ),
    "cycles": (
        "a span that is its own ancestor",
        "the span that starts first becomes the root of a transaction",
    ),
    "negative": (
        "a span that ends before it starts",
        "its end is set to its start: its duration is 0",
    ),
}


def mend(frame: pl.DataFrame) -> tuple[pl.DataFrame, Mended]:
    """Return repaired spans in the normal order, and the repairs; ``frame`` is in file order."""
    found = Mended()
    frame = frame.with_columns(
        pl.lit(0, pl.Int64).alias("shift_ns"), pl.lit(None, pl.String).alias("mended")
    ).with_row_index("row")
    negative = pl.col("end_ns") < pl.col("start_ns")
    found.negative = found.seen("negative", frame.filter(negative))
    if found.negative:
        frame = frame.with_columns(
            pl.when(negative).then("start_ns").otherwise("end_ns").alias("end_ns")
        )
    frame = _repeats(frame, found)
    parents = parent_rows(frame)
    lost = (parents < 0) & frame["parent_id"].is_not_null().to_numpy()
    found.lost = found.seen("lost", frame.filter(lost))
    cut = _cycle_cuts(parents, frame["start_ns"].to_numpy())
    found.cycles = found.seen("cycles", frame[sorted(cut)])
    if found.lost or found.cycles:
        cyclic = np.zeros(frame.height, bool)
        cyclic[cut] = True
        marked = frame.with_columns(
            pl.Series("lost", lost, pl.Boolean), pl.Series("cyclic", cyclic, pl.Boolean)
        )
        mark = pl.when("lost").then(pl.lit("lost-parent")).when("cyclic").then(pl.lit("cycle"))
        cutting = pl.col("lost") | pl.col("cyclic")
        frame = marked.with_columns(
            _extras(marked, lost | cyclic),
            pl.when(~cutting).then("parent_id").alias("parent_id"),
            mark.otherwise("mended").alias("mended"),
        ).drop("lost", "cyclic")
    ordered = frame.sort(pl.col("start_ns").min().over("trace_id"), "trace_id", "start_ns", "row")
    return ordered.drop("row"), found


def _extras(frame: pl.DataFrame, cut: npt.NDArray[np.bool_]) -> pl.Series:
    """Return ``extra`` of all spans; the spans marked in ``cut`` keep their parent's id in it.

    These spans lose their parent.
    """
    rows = np.flatnonzero(cut)
    some = frame[rows].select("extra", "parent_id").rows()
    return frame["extra"].scatter(rows, [with_parent(extra, parent) for extra, parent in some])


def _repeats(frame: pl.DataFrame, found: Mended) -> pl.DataFrame:
    """Return ``frame`` with one span for each id.

    The client span of an id that client and server share is renamed; other spans with a repeated id
    are removed. The repairs are counted in ``found``.
    """
    double = frame.filter(pl.struct(_KEY).is_duplicated())
    if not double.height:
        return frame
    first = {"client": {}, "server": {}}  # type: dict[str, dict[tuple[str, str], int]]
    rows = double.select("row", *_KEY, "kind").iter_rows()
    for row, trace, span, kind in rows:
        if kind in first:
            first[kind].setdefault((trace, span), row)
    pairs = {key: row for key, row in first["client"].items() if key in first["server"]}
    found.shared = len(pairs)
    if pairs:
        found.first.setdefault("shared", "/".join(next(iter(pairs))))
    servers = {first["server"][key] for key in pairs}
    if pairs:
        client = pl.col("row").is_in(list(pairs.values()))
        server = pl.col("row").is_in(list(servers))
        renamed = pl.col("span_id") + "/client"
        frame = frame.with_columns(
            pl.when(server).then(renamed).otherwise("parent_id").alias("parent_id"),
            pl.when(client).then(renamed).otherwise("span_id").alias("span_id"),
            pl.when(client | server).then(pl.lit("shared-id")).otherwise("mended").alias("mended"),
        )
        # If more than two spans have the id, the server's side is the one that keeps it.
        frame = frame.sort(~pl.col("row").is_in(list(servers)), "row")
    again = frame.filter(~pl.struct(_KEY).is_first_distinct())
    kept = frame.filter(pl.struct(_KEY).is_first_distinct()).sort("row")
    columns = [*_KEY, "start_ns", "end_ns", "operation", "parent_id"]
    same = again.join(kept, on=columns, how="semi", nulls_equal=True)
    found.repeated = found.seen("repeated", same)
    other = again.join(kept, on=columns, how="anti", nulls_equal=True)
    found.differing = found.seen("differing", other)
    return kept


def _cycle_cuts(parents: Integers, start: Integers) -> list[int]:
    """Return one row of each cycle: the span that loses its parent.

    Each step doubles the distance towards the root. After more steps than there are spans, only
    spans in or below a cycle have not reached a root, and the rows that they reached are exactly
    the rows of the cycles.
    """
    reached, steps = parents, 1
    while steps < len(parents) and (reached >= 0).any():
        reached = np.where(reached >= 0, reached[reached], -1)
        steps *= 2
    rest = np.unique(reached[reached >= 0])
    cuts: list[int] = []
    seen: set[int] = set()
    for row in rest.tolist():
        if row in seen:
            continue
        ring = [row]
        while (above := int(parents[ring[-1]])) != row:
            ring.append(above)
        seen.update(ring)
        cuts.append(min(ring, key=lambda each: (int(start[each]), each)))
    return cuts
