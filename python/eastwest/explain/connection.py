"""Explanation of one connection: its slowest messages, and its events in order of time."""

from __future__ import annotations

import polars as pl

from eastwest.errors import InputError
from eastwest.explain import flow as flows
from eastwest.explain.story import Part, Story
from eastwest.units import size
from eastwest.views.evidence import Evidence
from eastwest.views.labels import plural
from eastwest.views.series import covered

_MOST_LISTED = 10


def story(evidence: Evidence, number: int) -> Story:
    """Return the explanation of the connection with this number in the table ``flows``."""
    table = evidence.flows
    path = evidence.result.path
    messages = table.filter(pl.col("connection") == number).sort("start_s", "flow")
    if messages.height == 0:
        known = "see the column connection of its table flows"
        if not table["connection"].count():
            known = "its table flows has no connection numbers"
        raise InputError(f"{path} has no message on connection {number}; {known}")
    rows = list(messages.iter_rows(named=True))
    for row in rows:
        evidence.sound("flows", row)
    first_s = min(row["start_s"] for row in rows)
    last_s = max(row["finish_s"] for row in rows)
    ends = sorted({evidence.host(row[end]) for row in rows for end in ("src", "dst")})
    total = sum(row["bytes"] for row in rows)
    result = Story(
        "connection",
        str(number),
        f"Connection {number} between {' and '.join(ends)}: {plural(len(rows), 'message')}",
        f"It carried {size(total)} in messages with a row in the flow table, the first written at "
        f"{first_s:.6f} s, the last complete at {last_s:.6f} s.",
        {
            "connection": number,
            "messages": len(rows),
            "bytes": total,
            "first_start_s": first_s,
            "last_finish_s": last_s,
        },
    )
    result.total_us = (last_s - first_s) * 1e6
    busy = covered([(row["start_s"], row["finish_s"]) for row in rows]) * 1e6
    idle = max(0.0, result.total_us - busy)
    both = (Part("with a message in flight", busy), Part("with no message in flight", idle))
    result.parts = [part for part in both if part.us > 0]
    result.moments = flows.whole_connection(evidence, number, first_s, last_s)
    slowest = sorted(rows, key=lambda row: -row["fct_us"])[:_MOST_LISTED]
    result.add(
        "Messages of the connection, the slowest first",
        *(f"{flows.line(evidence, row)}, {plural(row['timeouts'], 'timeout')}" for row in slowest),
    )
    if len(rows) > _MOST_LISTED:
        result.sections[-1].lines.append(f"and {len(rows) - _MOST_LISTED} more")
    result.lacks(
        evidence.events_note(last_s),
        "Control messages on the connection: they have no row in the table of flows.",
    )
    return result
