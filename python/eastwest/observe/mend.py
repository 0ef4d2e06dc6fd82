"""Repairs a set of spans so that it is a set of trees, and counts the repairs.

The rules, in this order, within each trace:

- A span that ends before it starts gets its start as its end.
- If a client span and a server span have one id (Zipkin's shared spans), they are the sides of one
  call: the client span gets ``/client`` behind its id and becomes the parent of the server span.
- Of other spans with one id, the first in the file is kept.
- A span whose parent is missing becomes a root, with the mark ``lost-parent``.
- If parents form a cycle, the span of the cycle that starts first (if several: the first in the
  file) becomes a root, with the mark ``cycle``.

Incomplete recordings (a parent outside of the recorded time, a span that was sent twice) are noted.
Contradictions (different spans with one id, a cycle, an end before the start) cannot be imported as
recorded: they are refused unless the import is lossy.
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
    """Numbers of repairs of spans, by kind of repair.

    ``repeated``: duplicates removed; ``differing``: different spans with an id in use, removed;
    ``shared``: pairs of client and server span with one id, separated; ``lost``: spans whose parent
    is missing; ``cycles``: cycles of parents cut; ``negative``: spans that ended before their
    start.
    """

    repeated: int = 0
    differing: int = 0
    shared: int = 0
    lost: int = 0
    cycles: int = 0
    negative: int = 0
    #: Ids of the first repaired span, as ``trace/span``, by kind of repair.
    first: dict[str, str] = field(default_factory=dict)

    def seen(self, what: str, rows: pl.DataFrame) -> int:
        """Return the number of ``rows``, and store the first row as the example of a repair.

        ``what`` is the kind of repair, such as ``lost``.
        """
        if rows.height:
            self.first.setdefault(what, "/".join(rows.select(_KEY).row(0)))
        return rows.height

    def tell(self, problems: Account, file: str) -> None:
        """Report the repairs to ``problems``; ``file`` is the name of the source.

        Raises ``InputError`` for repairs that change the meaning of spans, unless the import is
        lossy.
        """
        for what, (reason, then) in _NOTED.items():
            if rows := getattr(self, what):
                problems.note(file, 0, reason, self.first.get(what, ""), rows, then)
        for what, (reason, then) in _CHANGED.items():
            if rows := getattr(self, what):
                problems.change(file, 0, reason, then, self.first.get(what, ""), rows)


_NOTED = {
    "repeated": ("duplicate of a span: left out", "the span counts once"),
    "shared": ("client and server span with one id: separated", "they are one call"),
    "lost": (
        "a span whose parent is missing: it becomes a root",
        "the span begins a transaction of its own: transactions are more and shorter",
    ),
}
_CHANGED = {
    "differing": (
        "a different span with an id that is in use",
        "the first span with the id is kept; the others are missing in their transaction",
    ),
    "cycles": (
        "a span that is its own ancestor",
        "the span of the cycle that starts first becomes the root of a transaction",
    ),
    "negative": (
        "a span that ends before it starts",
        "the end is set to the start: the duration is 0",
    ),
}


def mend(frame: pl.DataFrame) -> tuple[pl.DataFrame, Mended]:
    """Return the repaired spans in the order of the normal form, and the numbers of repairs.

    ``frame`` has the spans in the order of the file.
    """
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
    """Return the column ``extra`` with the parent's id added to the spans marked in ``cut``.

    These are the spans whose parent is removed.
    """
    rows = np.flatnonzero(cut)
    some = frame[rows].select("extra", "parent_id").rows()
    return frame["extra"].scatter(rows, [with_parent(extra, parent) for extra, parent in some])


def _repeats(frame: pl.DataFrame, found: Mended) -> pl.DataFrame:
    """Return the spans of ``frame`` with unique ids.

    If a client and a server span share an id, the client span gets another id; other spans with an
    id in use are removed. The repairs are counted in ``found``.
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
        # If more than two spans have the id, the server span keeps the id.
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
    """Return the rows of the spans that lose their parent: one span of each cycle.

    ``parents`` has the row of each span's parent, or −1; ``start`` its start. Each step doubles the
    distance to the reached ancestor. After more steps than there are spans, only spans in or below
    a cycle have not passed a root, and the reached rows are exactly the rows of the cycles.
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
