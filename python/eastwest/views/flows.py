"""Division of the completion times of flows into parts."""

from __future__ import annotations

import polars as pl

from eastwest.results import Result
from eastwest.units import percent
from eastwest.views.latency import in_size_bins
from eastwest.views.series import percentile

#: Parts of a flow's completion time, in the order in which they are stacked in charts.
PARTS = ("injection", "queueing", "flight", "retransmission", "cores")


def parts_by_size(result: Result) -> pl.DataFrame:
    """Return a table of the parts of flows' completion times: one row for each size of flows.

    Columns: ``size`` (text), ``flows`` (number), ``completion_us`` (median); for each part, such as
    ``injection``, its mean share of the time of a flow (``injection_share``, 0 to 1) and its 99th
    percentile in µs (``injection_us_p99``). Flows that took no time are left out. Without
    ``measure.flow_parts`` there is no row. The part ``cores`` is 0 in runs without ``[hosts]`` and
    in results before format 10.
    """
    rows = []
    parts = result.flow_parts.filter(pl.col("completion_us") > 0)
    for name, inside in in_size_bins(parts.with_columns(pl.col("cores_us").fill_null(0.0))):
        whole = inside["completion_us"]
        row: dict[str, object] = {"size": name, "flows": inside.height}
        row["completion_us"] = percentile(whole.to_numpy(), 0.5)
        for part in PARTS:
            row[f"{part}_share"] = (inside[f"{part}_us"] / whole).mean()
            row[f"{part}_us_p99"] = percentile(inside[f"{part}_us"].to_numpy(), 0.99)
        rows.append(row)
    return pl.DataFrame(rows)


def drawn_parts(table: pl.DataFrame) -> list[str]:
    """Return the parts to draw from a table of :func:`parts_by_size`; ``cores`` only if above 0."""
    return [part for part in PARTS if part != "cores" or table["cores_share"].sum() > 0]


def largest_part(table: pl.DataFrame) -> str:
    """Return a sentence on the largest part of the time of flows, for the size with most flows."""
    row = table.sort("flows", descending=True).row(0, named=True)
    part = max(PARTS, key=lambda each: float(row[f"{each}_share"]))
    return (
        f"Flows of {row['size']} spend {percent(row[f'{part}_share'])} of their time on {part}, "
        "on average"
    )
