"""Description of the simulated system, from the result's tables and not from its scenario.

The description is therefore correct for every kind of fabric and workload, and for old results.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from eastwest import units
from eastwest.results import Result, pick
from eastwest.units import tier_words
from eastwest.views.labels import plural, seconds, shown
from eastwest.views.latency import quantile
from eastwest.views.links import upward
from eastwest.views.series import percentile
from eastwest.views.settings import flat, tree
from eastwest.work_units import Unit, first_unit, window_words

#: Kinds of packets for which drops are counted, and their names.
DROP_KINDS = {
    "data": "data",
    "retransmission": "retransmission",
    "ack": "pure ACK",
    "ece_ack": "ACK with ECE",
    "syn": "SYN",
    "syn_ack": "SYN-ACK",
    "fin": "FIN",
    "datagram": "datagram",
}

#: Columns that count drops by cause, and the names of the causes.
DROP_CAUSES = {
    "drops_queue_full": "full queue",
    "lost_random": "random loss",
    "lost_down": "link down",
    "lost_no_route": "no route",
    "drops_early": "early drop",
    "drops_shared_buffer": "shared buffer full",
    "drops_sojourn": "waited too long",
}


def fabric(result: Result) -> list[str]:
    """Return sentences on nodes, rates and over-subscription."""
    links = result.links
    if links.height == 0:
        return ["The fabric has no links."]
    hosts = links.filter(pl.col("tier") == "host-up")
    senders = set(hosts["src"].to_list())
    nodes = set(links["src"].to_list())
    switches = len(nodes - senders)
    said = [
        f"{units.count(len(senders))} hosts and {plural(switches, 'switch', 'switches')}, joined "
        f"by {units.count(links.height / 2)} full-duplex cables."
    ]
    tiers = upward_tiers(links)
    rates = []
    for tier in tiers:
        of_tier = links.filter(pl.col("tier") == tier)["rate_bps"]
        low, high = of_tier.min(), of_tier.max()
        shown = units.rate(_float(low))
        if low != high:
            shown += f" to {units.rate(_float(high))}"
        rates.append(f"{tier_words(tier)} {shown}")
    if rates:
        said.append(f"Link rates: {', '.join(rates)}.")
    said.extend(_oversubscription(links, tiers))
    return said


def upward_tiers(links: pl.DataFrame) -> list[str]:
    """Return the tiers of links that lead upwards, beginning at the hosts."""
    return [tier for tier in upward(links) if tier.endswith("-up")]


def _oversubscription(links: pl.DataFrame, tiers: list[str]) -> Iterator[str]:
    for below, above, ratio in oversubscribed(links, tiers):
        yield f"{oversubscription(below, above, ratio)}."


def oversubscription(below: str, above: str, ratio: float) -> str:
    """Return a sentence, without a full stop, on a tier of links and the tier below it."""
    return (
        f"Links from {tier_words(above)} are over-subscribed {ratio:.3g}:1: links from "
        f"{tier_words(below)} have together {ratio:.3g} times their rate"
    )


def oversubscribed(links: pl.DataFrame, tiers: list[str]) -> Iterator[tuple[str, str, float]]:
    """Yield (lower tier, upper tier, ratio of rates) where the upper tier has the lower rate."""
    for below, above in itertools.pairwise(tiers):
        into = _float(links.filter(pl.col("tier") == below)["rate_bps"].sum())
        out = _float(links.filter(pl.col("tier") == above)["rate_bps"].sum())
        if out and into and into > 1.001 * out:
            yield below, above, into / out


def workload(result: Result) -> list[str]:
    """Return a sentence on each workload."""
    said = []
    jobs, flows = result.jobs, result.flows
    for (name,), part in jobs.group_by("workload", maintain_order=True):
        kinds = ", ".join(sorted(set(part["kind"].to_list())))
        maps, reduces = (_int(part[column].sum()) for column in ("maps", "reduces"))
        read, shuffled, within, written = (
            units.size(_float(part[f"{what}_bytes"].sum()))
            for what in ("input", "shuffle", "shuffle_local", "output")
        )
        said.append(
            f"{units.clean(str(name), 60)}: {plural(part.height, 'job')} ({kinds}) with "
            f"{plural(maps, 'map')} and {plural(reduces, 'reduce')}, reading {read}, shuffling "
            f"{shuffled} ({within} of it within nodes) and writing {written}."
        )
    others = flows.filter(~pl.col("workload").is_in(jobs["workload"].unique().implode()))
    for (name,), part in others.group_by("workload", maintain_order=True):
        said.append(
            f"{units.clean(str(name), 60)}: {plural(part.height, 'flow')} of "
            f"{units.size(_float(part['bytes'].sum()))} in all."
        )
    return said or ["No traffic was sent."]


def headlines(result: Result) -> list[tuple[str, str, str]]:
    """Return name, value and remark of the numbers at the top of the page."""
    s = result.summary

    def number(*path: str) -> str:
        return units.count(pick(s, *path))

    def both(*path: str) -> tuple[str, str]:
        empty = pick(s, *path, "count") == 0
        found = (None if empty else pick(s, *path, q) for q in ("p50", "p99"))
        middle, tail = (units.span(seconds(value)) for value in found)
        return middle, f"median; p99 {tail}"

    cards = []
    if pick(s, "jobs", "count"):
        median = units.span(pick(s, "jobs", "runtime_s", "p50"))
        makespan = units.span(pick(s, "jobs", "makespan_s"))
        cards.append(("jobs", number("jobs", "count"), f"median runtime {median}"))
        cards.append(("makespan", makespan, "first to last job"))
    if pick(s, "rounds", "count"):
        goodput = units.rate(pick(s, "rounds", "goodput_bps"))
        cards.append(("rounds", number("rounds", "count"), "synchronized reads"))
        cards.append(("goodput", goodput, "while a round was running"))
    done, every = number("flows", "completed"), number("flows", "count")
    complete = pick(s, "flows", "completed") == pick(s, "flows", "count")
    packets, drops = carried(result)
    lost = f"{units.percent(drops / packets)} of transmissions" if packets else "no packets"
    hops, cpu = pick(s, "packet_hops"), pick(s, "cpu_s")
    pace = units.count(hops / cpu if hops and cpu else None)
    return [
        *cards,
        ("flows", every, "all complete" if complete else f"{done} complete"),
        ("flow completion", *both("flows", "fct_us")),
        ("packet latency, with ACKs", *both("latency_us")),
        ("packets dropped", units.count(drops), lost),
        (
            "TCP retransmissions",
            number("tcp", "retransmits"),
            f"{number('tcp', 'timeouts')} timeouts",
        ),
        ("packet-hops", units.count(hops), f"{pace} per CPU-second"),
    ]


def carried(result: Result) -> tuple[int, int]:
    """Return the number of packets sent and the number dropped, each over all links."""
    return _int(result.links["packets"].sum()), _int(result.links["drops"].sum())


def latency_rows(result: Result) -> list[list[str]]:
    """Return percentiles of packet latency by class and kind of packet, as rows."""
    rows = []
    for (name, kind), part in result.latency.group_by("class", "kind", maintain_order=True):
        seen = _int(part["count"].sum())
        if seen == 0:
            continue
        shares = [units.span(seconds(quantile(part, q))) for q in (0.5, 0.9, 0.99, 0.999, 1.0)]
        words = {"ack": "pure ACK"}.get(str(kind), str(kind))
        rows.append([units.clean(str(name), 60), words, units.count(seen), *shares])
    return rows


def purpose_rows(result: Result) -> list[list[str]]:
    """Return rows on flows by their purpose.

    A row has the number of flows with retransmissions and with timeouts, not the sum of the flows'
    counters: two messages in flight on one connection both count a retransmission, so that the sum
    is not the number of retransmissions in the summary.
    """
    rows = []
    for (name,), part in result.flows.group_by("purpose", maintain_order=True):
        fct = (percentile(part["fct_us"].to_numpy(), q) for q in (0.5, 0.99, 1.0))
        rows.append(
            [
                str(name),
                units.count(part.height),
                units.size(_float(part["bytes"].sum())),
                *(units.span(seconds(each)) for each in fct),
                *(units.count(_int((part[c] > 0).sum())) for c in ("retransmits", "timeouts")),
            ]
        )
    return rows


def workload_rows(result: Result) -> list[list[str]]:
    """Return rows on each workload in its own unit, also while another workload was active."""
    s = result.summary
    workloads = s.get("workloads", {})
    rows = []
    for name, measures in workloads.items():
        unit = first_unit(measures)
        if unit is None:
            continue
        when = window_words(s.get("window", {})) or "the whole run"
        rows.append(_measure_row(name, when, unit, measures))
        for other, beside in s.get("while", {}).items():
            if unit.name in beside.get(name, {}):
                rows.append(_measure_row(name, f"while {other}", unit, beside[name]))
    return rows


def _measure_row(name: str, when: str, unit: Unit, measures: Mapping[str, Any]) -> list[str]:
    found = measures[unit.name]
    scale = 1e-6 if unit.name.endswith("_us") else 1.0
    times = (found[each] * scale for each in ("mean", "p50", "p99", "p999", "max"))
    counted = plural(found["count"], unit.noun)
    return [shown(name, 40), shown(when, 80), counted, *(units.span(time) for time in times)]


def drop_table(result: Result) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows of a table of drops and marks by tier; no rows without any.

    Kinds of packets of which none was dropped have no column.
    """
    links = result.links
    columns = {f"drops_{kind}": name for kind, name in DROP_KINDS.items()}
    columns |= {"drops": "all dropped", "marks": "marked (ECN)"}
    there = {c: name for c, name in columns.items() if c in links.columns and _int(links[c].sum())}
    if not there:
        return [], []
    rows = [
        [tier_words(str(tier)), *(units.count(_int(part[column].sum())) for column in there)]
        for (tier,), part in links.group_by("tier", maintain_order=True)
    ]
    return ["links", *there.values()], rows


def drop_causes(result: Result) -> str:
    """Return the causes of drops with their counts; an empty text where they were not counted."""
    counts = {
        words: _int(result.links[column].sum())
        for column, words in DROP_CAUSES.items()
        if column in result.links.columns
    }
    return ", ".join(f"{name} {units.count(count)}" for name, count in counts.items() if count)


def marked(result: Result) -> str:
    """Return the number of packets that queues marked (ECN) as text; empty where there is none."""
    if "marks" not in result.links.columns:
        return ""
    marks = _int(result.links["marks"].sum())
    return f"{plural(marks, 'packet was', 'packets were')} marked (ECN)." if marks else ""


def faults(result: Result) -> list[str]:
    """Return a line on each fault of the scenario."""
    listed = tree(result).get("fault", [])
    return [
        units.clean(", ".join(f"{key} {value}" for key, value in flat(fault, "")), 300)
        for fault in (listed if isinstance(listed, list) else [])
        if isinstance(fault, dict)
    ]


def busiest_links(result: Result, most: int = 20) -> list[list[str]]:
    """Return the links with the highest utilisation, as rows."""
    top = result.links.sort(["utilisation", "link"], descending=[True, False]).head(most)
    return [
        [
            units.clean(row["name"], 60),
            tier_words(row["tier"]),
            units.rate(row["rate_bps"]),
            units.percent(row["utilisation"]),
            units.size(row["bytes"]),
            units.count(row["drops"]),
            units.size(row["queue_max_bytes"]),
            units.span(row["queue_max_us"] / 1e6),
        ]
        for row in top.iter_rows(named=True)
    ]


def _float(value: Any) -> float:
    return float(value) if value is not None else float("nan")


def _int(value: Any) -> int:
    return int(value) if value is not None else 0
