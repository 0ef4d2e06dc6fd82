"""Reads the compared numbers of chapters 5 and 6 from the summary of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: Kinds of packets in the tables, and the kinds of the summary that each includes.
KINDS = {
    "data": ("data", "retransmission"),
    "ack": ("ack",),
    "ece_ack": ("ece_ack",),
    "syn": ("syn", "syn_ack"),
    "fin": ("fin",),
}
#: Causes of drops that a discipline decides before the queue is full.
EARLY = ("early", "sojourn")
LATENCIES = {"": "mean", "_p50": "p50", "_p99": "p99", "_p999": "p999"}


def numbers_of(summary: Mapping[str, Any]) -> dict[str, float]:
    """Return the study's numbers of one run, by name, from its summary."""
    latency = summary["latency_us"]
    tasks_s = float(summary["jobs"]["tasks_s"])
    found = {
        "runtime_s": tasks_s,
        "throughput_bps": summary["throughput_bps"] * summary["simulated_s"] / tasks_s,
        "data_latency_us": latency["data"]["mean"],
        "ack_latency_us": latency["ack"]["mean"],
        "timeouts": summary["tcp"]["timeouts"],
        "cpu_s": summary["cpu_s"],
        **{f"latency{end}_us": latency[name] for end, name in LATENCIES.items()},
    }
    for name, numbers in latency.get("classes", {}).items():
        for end, key in LATENCIES.items():
            found[f"{name}{end}_us"] = numbers[key]
    return {name: float(value) for name, value in found.items()} | losses(summary)


def losses(summary: Mapping[str, Any]) -> dict[str, float]:
    """Return the drops by kind of packet and cause, and the share of packets without payload."""
    drops = summary["drops"]
    early = {kind: _sum(drops, EARLY, names) for kind, names in KINDS.items()}
    others = [cause for cause in drops if cause not in EARLY]
    full = sum(_sum(drops, others, names) for names in KINDS.values())
    total, dropped = sum(early.values()), float(summary["packets"]["dropped"])
    acks = _sum(drops, drops, (*KINDS["ack"], *KINDS["ece_ack"]))
    latency = summary["latency_us"]
    bare = _sum(
        drops, drops, [name for kind in ("ack", "ece_ack", "syn", "fin") for name in KINDS[kind]]
    )
    found = {f"early_{kind}": count for kind, count in early.items()}
    found |= {"early": total, "full": full, "marks": float(sum(summary["marks"].values()))}
    # The share is of all packets that were sent, including lost ones.
    found["acks_of_packets"] = (latency["ack"]["count"] + bare) / (latency["count"] + dropped)
    if total:
        found["acks_of_early"] = (early["ack"] + early["ece_ack"]) / total
        found["bare_of_early"] = (total - early["data"]) / total
    if dropped:
        at_hosts = sum(sum(kinds.values()) for kinds in summary["ports"]["host"]["drops"].values())
        found["acks_of_drops"] = acks / dropped
        found["hosts_of_drops"] = at_hosts / dropped
    return found


def _sum(drops: Mapping[str, Any], causes: Sequence[str] | Any, kinds: Sequence[str]) -> float:
    return float(sum(drops[cause][kind] for cause in causes for kind in kinds))
