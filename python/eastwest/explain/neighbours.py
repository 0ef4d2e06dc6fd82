"""Sections that compare a flow with earlier flows of its stream, similar and concurrent flows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from eastwest.explain.story import Story
from eastwest.units import percent, size, span
from eastwest.views.evidence import Evidence, number
from eastwest.views.labels import plural
from eastwest.views.series import most_at_once

#: Maximum ratio of the sizes of two flows that count as similar.
_ALIKE = 2
_ENOUGH = 5
#: Share of the interval between samples by which their times may differ by rounding.
_ROUNDING = 1e-6
#: Heading of the section on the flows in progress at the same time.
BESIDE = "At the same time"
#: Keys of the facts that belong to the section on flows in progress at the same time.
FACTS = ("flows_beside_dst", "flows_beside_src", "largest_beside_src")


@dataclass(frozen=True)
class Ahead:
    """Messages before a flow on its TCP stream that were not delivered when it started.

    ``until_s`` is the time in s at which the last of these messages was delivered, at most the end
    of the flow.
    """

    messages: int
    bytes: int
    until_s: float

    @property
    def words(self) -> str:
        """Number and bytes of the earlier messages on the connection, as text."""
        return f"{plural(self.messages, 'earlier message')} ({size(self.bytes)})"


def ahead(evidence: Evidence, row: dict[str, Any]) -> Ahead | None:
    """Return the undelivered messages before a flow on its TCP stream; None if there are none."""
    if row["connection"] is None or row["stream_start"] is None:
        return None
    before = evidence.flows.filter(
        (pl.col("connection") == row["connection"])
        & (pl.col("src") == row["src"])
        & (pl.col("dst") == row["dst"])
        & (pl.col("stream_start") < row["stream_start"])
        & (pl.col("finish_s") > row["start_s"])
    )
    if before.height == 0:
        return None
    until = min(number(before["finish_s"].max()), row["finish_s"])
    return Ahead(before.height, int(before["bytes"].sum()), until)


def compare(evidence: Evidence, story: Story, row: dict[str, Any]) -> None:
    """Add a section on the rank of a flow among flows of its workload, purpose and similar size.

    If these are fewer than ``_ENOUGH``, flows of any size are compared.
    """
    same = evidence.flows.filter(
        (pl.col("workload") == row["workload"]) & (pl.col("purpose") == row["purpose"])
    )
    low, high = row["bytes"] / _ALIKE, row["bytes"] * _ALIKE
    alike = same.filter(pl.col("bytes").is_between(low, high))
    sizes = f"{size(low)} to {size(high)}"
    if alike.height < _ENOUGH:
        alike, sizes = same, "any size"
    others = alike.height - 1
    title = f"Among the flows of its kind ({row['purpose']}, {sizes})"
    if others < 1:
        whose = f"of workload {row['workload']!r} with the purpose {row['purpose']!r}"
        story.add(title, f"There is no other flow {whose}.")
        return
    slower = alike.filter(pl.col("fct_us") > row["fct_us"]).height
    faster = alike.filter(pl.col("fct_us") < row["fct_us"]).height
    median_us = number(alike["fct_us"].median())
    timed_out = alike.filter(pl.col("timeouts") > 0).height
    story.facts["alike"] = {
        "count": alike.height,
        "rank": slower + 1,
        "share_faster": faster / others,
        "fct_us_p50": median_us,
        "with_timeout": timed_out,
    }
    story.add(
        title,
        f"Number {slower + 1:,} of {alike.height:,} from the slowest, slower than "
        f"{percent(faster / others)} of the others; the median takes {span(median_us / 1e6)}.",
        f"{timed_out:,} of the {alike.height:,} had a timeout, "
        f"{alike.filter(pl.col('retransmits') > 0).height:,} retransmitted data.",
    )


def beside(
    evidence: Evidence,
    story: Story,
    row: dict[str, Any],
    waits_at_sender: bool,
    waits_most: int = -1,
) -> None:
    """Add a section on flows in progress at the same time, and on the ports at both ends.

    If the flow mostly ``waits_at_sender``, the section names the largest other flow of its sender.
    ``waits_most`` is the link in whose queue the flow waited longest, or −1 if it is not known; the
    section also has a line on its port if this is not a port at one of the ends.
    """
    flows = evidence.flows
    meanwhile = (
        (pl.col("start_s") < row["finish_s"])
        & (pl.col("finish_s") > row["start_s"])
        & (pl.col("flow") != row["flow"])
    )
    src, dst = evidence.host(row["src"]), evidence.host(row["dst"])
    lines = []
    links = evidence.result.links.filter(pl.col("link") == waits_most)
    for column, words, port in (
        ("dst", f"to {dst}", evidence.ports_to(row["dst"])),
        ("src", f"from {src}", evidence.ports_from(row["src"])),
    ):
        others = flows.filter(meanwhile & (pl.col(column) == row[column]))
        ends = (others[c].clip(row["start_s"], row["finish_s"]) for c in ("start_s", "finish_s"))
        most = most_at_once(*(times.to_numpy() for times in ends))
        story.facts[f"flows_beside_{column}"] = others.height
        if others.height:
            text = f"{plural(others.height, 'other flow')} {words} in progress meanwhile"
            text += f", at most {most} at once." if others.height > 1 else "."
        else:
            text = f"No other flow {words} was in progress."
        lines.append(text)
        if column == "src" and waits_at_sender and others.height:
            order = ["bytes", "flow"]
            most_bytes = others.sort(order, descending=[True, False]).row(0, named=True)
            story.facts["largest_beside_src"] = {
                "flow": most_bytes["flow"],
                "dst": evidence.host(most_bytes["dst"]),
                "bytes": most_bytes["bytes"],
                "purpose": most_bytes["purpose"],
            }
            lines.append(
                f"The largest of them is flow {most_bytes['flow']} to "
                f"{evidence.host(most_bytes['dst'])}, {size(most_bytes['bytes'])} "
                f"({most_bytes['purpose']})."
            )
        lines += _port_lines(evidence, port, row)
        links = links.filter(~pl.col("link").is_in(port["link"].to_list()))
    story.add(BESIDE, *lines, *_port_lines(evidence, links, row))


def _port_lines(evidence: Evidence, ports: pl.DataFrame, row: dict[str, Any]) -> list[str]:
    """Return a line on each of ``ports``, rows of the table ``links``, during the flow ``row``."""
    lines = (
        port_line(evidence, link, row["start_s"], row["finish_s"])
        for link in ports.iter_rows(named=True)
    )
    return [line for line in lines if line]


def port_line(evidence: Evidence, link: dict[str, Any], start_s: float, finish_s: float) -> str:
    """Return a line on queue, utilisation and losses of a port between two times.

    ``link`` is the row of the port in the table ``links``. Without samples, the line is empty.
    """
    result = evidence.result
    interval = evidence.sample_s
    port = pl.col("link") == link["link"]
    queue = result.queues.filter(port & pl.col("time_s").is_between(start_s, finish_s))
    parts = []
    if queue.height:
        most = queue.sort("packets", descending=True).row(0, named=True)
        parts.append(
            f"queue up to {plural(most['packets'], 'packet')} ({size(most['bytes'])}) in samples"
        )
    if interval is not None and finish_s - start_s >= interval:
        inside = pl.col("time_s").is_between(start_s + interval, finish_s)
        sampled = result.table("link_samples").filter(port & inside)
        spans = (result.traffic.filter(inside)["time_s"].n_unique()) * interval
        if sampled.height and spans > 0:
            used = float(sampled["bytes"].sum()) * 8 / (link["rate_bps"] * spans)
            parts.append(f"{percent(min(1.0, used))} of its rate used")
        # A row covers the interval before its time: the first and the last may begin or end outside
        # of the flow, but a loss of the flow itself is in one of these rows.
        last_s = finish_s + (1 - _ROUNDING) * interval
        touches = (pl.col("time_s") > start_s) & (pl.col("time_s") < last_s)
        lost = int(result.table("link_samples").filter(port & touches)["drops"].sum())
        if lost:
            packets = f"{plural(lost, 'packet')} of all flows"
            parts.append(f"{packets} lost in the samples that cover this time")
    return f"Port {link['name']} meanwhile: {', '.join(parts)}." if parts else ""
