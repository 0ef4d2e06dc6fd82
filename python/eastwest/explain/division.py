"""Division of the time of a message by its critical path: the parts in the table ``flow_parts``.

The critical path is a chain of packets, in which each packet was sent because the packet before had
arrived (docs/mechanisms/measuring.md). Its parts add up to the time of the message: waiting at
hosts, in the queue before each link, for acknowledgements and for retransmissions, and flight
(transmission, propagation and processing).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import polars as pl

from eastwest.explain.story import Part
from eastwest.views.evidence import Evidence
from eastwest.views.labels import plural

#: Columns of ``flow_parts`` that add up to the time of a flow; ``queueing_us`` is divided by link.
COLUMNS = (
    *("application_us", "earlier_us", "host_queue_us", "pacing_us", "delayed_ack_us"),
    *("queueing_us", "handshake_us", "slow_start_us", "congestion_window_us"),
    *("receiver_window_us", "transmission_us", "propagation_us", "processing_us"),
    "retransmission_us",
    *("send_core_queue_us", "send_core_us", "interrupt_delay_us", "receive_core_queue_us"),
    "receive_core_us",
)
#: Texts for windows that can be full, by the prefix of their columns in ``flow_parts``.
_WINDOWS = {
    "slow_start": "slow start: the window grows",
    "congestion_window": "congestion window full",
    "receiver_window": "receiver's window full (tcp.max_window)",
}
#: First result format whose parts add up to the time of a flow. Format 10 added the columns for
#: cores of hosts; in results of format 9 these are null and count as 0.
_SINCE = 9
#: Maximum number of ports whose waiting times are listed separately.
_MOST_PORTS = 6
#: Half a picosecond, in µs: smaller parts are rounding errors of floating-point numbers.
_ROUNDING_US = 5e-7


@dataclass(frozen=True)
class Division:
    """Parts of the time of one message in µs: by column of ``flow_parts``, and by link."""

    parts_us: dict[str, float]
    #: Number of round trips during which each window was full, by the prefix of its columns.
    round_trips: dict[str, int]
    #: (link, waiting time in its queue in µs), longest first; link −1: all further links together.
    waits_us: list[tuple[int, float]]

    def is_mostly_at_sender(self, links: Collection[int]) -> bool:
        """Whether the longest part of a flow's time is waiting at the sender's network card.

        ``links`` are the numbers of the sender's links; waiting in the queues of these links is
        waiting at the sender, too.
        """
        at_sender = [self.parts_us["host_queue_us"]]
        others = [
            us for name, us in self.parts_us.items() if name not in {"host_queue_us", "queueing_us"}
        ]
        for link, us in self.waits_us:
            (at_sender if link in links else others).append(us)
        return max(at_sender) > max(others)

    def told(self, evidence: Evidence, sender: str, earlier: str, repairs: str) -> list[Part]:
        """Return the parts with their descriptions, longest first.

        ``sender`` is the name of the sending host. ``earlier`` is a text about the messages ahead
        on the connection, ``repairs`` a text about timeouts and fast retransmits; each may be
        empty.
        """
        words = {
            "application_us": "until the application generated the data",
            "earlier_us": f"behind {earlier or 'earlier messages'} on its connection",
            "host_queue_us": "waiting at the network cards of the hosts",
            "pacing_us": "deferred by the pacing of its sender",
            "delayed_ack_us": "acknowledgements deferred by the receiver (delayed ACK)",
            "handshake_us": "handshake: SYN and SYN-ACK on the idle path",
            **{
                f"{window}_us": f"{text}: {plural(self.round_trips[window], 'round trip')}, "
                "without queueing"
                for window, text in _WINDOWS.items()
            },
            "transmission_us": "transmission of the last packet, at each hop",
            "propagation_us": "propagation of the last packet",
            "processing_us": "processing at the receiving host",
            "send_core_queue_us": "waiting for the core of a sending host",
            "send_core_us": "processing by the core of a sending host",
            "interrupt_delay_us": "until the card of a receiving host interrupted its core",
            "receive_core_queue_us": "waiting in the ring for the core of a receiving host",
            "receive_core_us": "processing by the core of a receiving host",
            "retransmission_us": f"until lost data was sent again{repairs}",
        }
        parts = [Part(text, self.parts_us[column]) for column, text in words.items()]
        named = self.waits_us[:_MOST_PORTS]
        for link, wait in named:
            port = evidence.port(link) if link >= 0 else "further ports"
            # Packets towards the message's sender are acknowledgements or SYN-ACKs.
            back = " (acknowledgements)" if port.endswith(f"->{sender}") else ""
            parts.append(Part(f"queueing at {port}{back}", wait))
        rest = self.parts_us["queueing_us"] - sum(wait for _, wait in named)
        if len(self.waits_us) > len(named):
            parts.append(Part(f"queueing at {len(self.waits_us) - len(named)} other ports", rest))
        told = (part for part in parts if part.us > _ROUNDING_US)
        return sorted(told, key=lambda part: -part.us)


def of_flow(evidence: Evidence, flow: int) -> Division | None:
    """Return the parts of the time of a flow; None if the run has not recorded its parts."""
    if evidence.result.format < _SINCE and not evidence.is_replaced("flow_parts"):
        return None
    row = evidence.row("flow_parts", pl.col("flow") == flow)
    if row is None:
        return None
    waits = evidence.table("flow_hops").filter(pl.col("flow") == flow)
    links: list[dict[str, Any]] = waits.sort("queueing_us", descending=True).to_dicts()
    for each in links:
        evidence.sound("flow_hops", each)
    return Division(
        # Results before format 10 have no times of cores; their runs with ``[hosts]`` have no
        # parts.
        {column: float(row[column] or 0) for column in COLUMNS},
        {window: int(row[f"{window}_trips"]) for window in _WINDOWS},
        [(int(each["link"]), float(each["queueing_us"])) for each in links],
    )
