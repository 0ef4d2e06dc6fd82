"""Measures the loss of packets without payload."""

from __future__ import annotations

from eastwest.claims.measures import MeasureError, run_value
from eastwest.results import Result


@run_value("loss-of-acks")
def loss_of_acks(result: Result) -> float:
    """Return the share of packets without payload among lost packets over that among sent ones.

    A value of 1 means that packets without payload are lost as often as others. If ACKs are a third
    of all packets, 3 means that only ACKs are lost.
    """
    acks = sum(
        float(count)
        for kinds in result.summary["drops"].values()
        for kind, count in kinds.items()
        if kind not in {"data", "retransmission", "datagram"}
    )
    latency = result.summary["latency_us"]
    dropped = float(result.summary["packets"]["dropped"])
    if not dropped:
        raise MeasureError(f"{result.path} has lost nothing")
    sent = float(latency["count"]) + dropped
    return acks / dropped / ((float(latency["ack"]["count"]) + acks) / sent)
