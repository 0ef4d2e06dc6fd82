"""Fat trees of htsim (``.topo``) with two or three tiers of switches.

The file has one pair of key and number per line. The lines after ``Tier n`` belong to that tier;
``#`` begins a comment. In tier 0 each switch has ``Radix_Down`` hosts and ``Radix_Up`` ports to the
tier above. A switch of a higher tier is connected to a switch below it by ``Bundle`` parallel
cables (default 1). In a tree of three tiers ``Podsize`` hosts form a pod. The numbers of switches
follow from these values; ``Radix_Down`` of the tiers 1 and 2 must agree with them.

The rate and the latency of a tier are those of the cables below its switches. The latency of a
switch is divided equally between the cables on both sides, so that the delay of a path is the same
as in htsim. ``Oversubscribed`` follows from the radices and is only compared with them.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field

from eastwest.errors import InputError
from eastwest.topologies.fabric import Assumed, Cable, Fabric, demand_size
from eastwest.units import clean

_MOST_LINES = 10_000
_LARGEST = 10**9
_PAIR = ("key", "number")
_TREE = ("nodes", "tiers", "podsize")
_TIER = (
    "downlink_speed_gbps",
    "radix_up",
    "radix_down",
    "queue_up",
    "queue_down",
    "oversubscribed",
    "bundle",
    "switch_latency_ns",
    "downlink_latency_ns",
)
_NEEDED = ("downlink_speed_gbps", "radix_down", "downlink_latency_ns")


@dataclass
class _Described:
    tree: dict[str, int] = field(default_factory=dict)
    tiers: dict[int, dict[str, int]] = field(default_factory=dict)


def looks_like(start: bytes) -> bool:
    """Whether the first line of a file that is not a comment is a key followed by one value."""
    lines = (line.partition(b"#")[0].split() for line in start.split(b"\n"))
    words = next((words for words in lines if words), [])
    return len(words) == len(_PAIR) and re.fullmatch(rb"[A-Za-z_]+", words[0]) is not None


def read(data: bytes, assumed: Assumed) -> Fabric:
    """Return the fat tree of a ``.topo`` file; ``assumed`` is not used.

    Raises ``InputError`` if the file is invalid or its values do not agree.
    """
    del assumed  # the file states all values
    described = _parse(data.decode("utf-8", "replace"))
    count = described.tree.get("tiers", 0)
    if count not in {2, 3}:
        raise InputError(f"Tiers is {count}; allowed: 2 or 3")
    tiers = []
    for number in range(count):
        tier = described.tiers.get(number)
        if tier is None:
            raise InputError(f"Tiers is {count}, but the file has no section Tier {number}")
        lacking = [key for key in _NEEDED if key not in tier]
        lacking += ["radix_up"] if number + 1 < count and "radix_up" not in tier else []
        if lacking:
            raise InputError(f"Tier {number} has no {', '.join(lacking)}")
        tiers.append({"bundle": 1, "switch_latency_ns": 0, **tier})
    return _lay_out(described.tree, tiers)


def _parse(text: str) -> _Described:
    described = _Described()
    current = described.tree
    lines = list(itertools.islice(text.splitlines(), _MOST_LINES + 1))
    if len(lines) > _MOST_LINES:
        raise InputError(f"has more than {_MOST_LINES} lines, which is the maximum")
    for number, line in enumerate(lines, 1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        where = f"line {number}"
        if len(words) != 2:
            raise InputError(f"{where}: {clean(line, 80)!r} is not a key and a number")
        key, value = words[0].lower(), _number(words[1], where)
        if key == "tier":
            current = described.tiers.setdefault(value, {})
            if current:
                raise InputError(f"{where}: Tier {value} is defined twice")
            if value > 2:
                raise InputError(f"{where}: Tier {value} is unknown; allowed: 0 to 2")
            continue
        known = _TREE if current is described.tree else _TIER
        if key not in known:
            raise InputError(
                f"{where}: {clean(words[0], 40)} is not a key of "
                f"{'the tree' if known is _TREE else 'a tier'}; allowed: {', '.join(known)}"
            )
        if key in current:
            raise InputError(f"{where}: {clean(words[0], 40)} is given twice")
        current[key] = value
    return described


def _number(text: str, where: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 10 or int(text) > _LARGEST:
        raise InputError(f"{where}: {clean(text, 40)!r} is not a whole number up to {_LARGEST}")
    return int(text)


def _share(number: int, by: int, what: str) -> int:
    """Return ``number`` divided by ``by``.

    Raises ``InputError`` unless ``number`` is a positive multiple of ``by``. ``what`` describes the
    division in the message.
    """
    if by < 1 or number < 1 or number % by:
        raise InputError(f"{what}: {number} is not a multiple of {by}; both must be above 0")
    return number // by


def _lay_out(tree: dict[str, int], tiers: list[dict[str, int]]) -> Fabric:
    hosts, edge, top = tree.get("nodes", 0), tiers[0], tiers[-1]
    tors = _share(hosts, edge["radix_down"], "Nodes divided by Radix_Down of Tier 0")
    above = _share(
        edge["radix_up"], tiers[1]["bundle"], "Radix_Up of Tier 0 divided by Bundle of Tier 1"
    )
    fabric = Fabric()
    fabric.notes += _over_subscription(tiers)
    if len(tiers) == 2:
        _demand_radix(tiers, 1, tors * top["bundle"])
        demand_size(hosts + tors + above, hosts + tors * edge["radix_up"])
        fabric.switches += [f"tor{i}" for i in range(tors)] + [f"spine{i}" for i in range(above)]
    else:
        pods = _share(hosts, tree.get("podsize", 0), "Nodes divided by Podsize")
        tors_per_pod = _share(tors, pods, "switches of Tier 0 divided by pods")
        _demand_radix(tiers, 1, tors_per_pod * tiers[1]["bundle"])
        cores_per_agg = _share(
            tiers[1]["radix_up"], top["bundle"], "Radix_Up of Tier 1 divided by Bundle of Tier 2"
        )
        _demand_radix(tiers, 2, pods * top["bundle"])
        aggs, cores = pods * above, above * cores_per_agg
        ups = tors * edge["radix_up"] + aggs * tiers[1]["radix_up"]
        demand_size(hosts + tors + aggs + cores, hosts + ups)
        fabric.switches += [f"tor{i}" for i in range(tors)]
        fabric.switches += [f"agg{i}" for i in range(aggs)] + [f"core{i}" for i in range(cores)]
    fabric.hosts = [f"h{i}" for i in range(hosts)]
    _join(fabric, tiers, 0, [(f"h{i}", f"tor{i // edge['radix_down']}") for i in range(hosts)])
    if len(tiers) == 2:
        _join(
            fabric, tiers, 1, [(f"tor{i}", f"spine{j}") for i in range(tors) for j in range(above)]
        )
        return fabric.check()
    pairs = [
        (f"tor{i}", f"agg{i // tors_per_pod * above + j}")
        for i in range(tors)
        for j in range(above)
    ]
    _join(fabric, tiers, 1, pairs)
    reach = range(cores_per_agg)
    pairs = [
        (f"agg{a}", f"core{a % above * cores_per_agg + c}") for a in range(aggs) for c in reach
    ]
    _join(fabric, tiers, 2, pairs)
    return fabric.check()


def _demand_radix(tiers: list[dict[str, int]], level: int, ports: int) -> None:
    """Raise ``InputError`` unless the switches of a tier have exactly ``ports`` ports downwards.

    ``level`` is the number of the tier.
    """
    radix = tiers[level]["radix_down"]
    if radix != ports:
        raise InputError(
            f"Tier {level}: Radix_Down is {radix}, but the tiers below need {ports} ports"
        )


def _join(
    fabric: Fabric, tiers: list[dict[str, int]], level: int, pairs: list[tuple[str, str]]
) -> None:
    """Add to ``fabric`` the cables between tier ``level`` and the tier or hosts below it.

    ``pairs`` are (lower node, switch of the tier); each pair gets a bundle of parallel cables.
    """
    tier = tiers[level]
    ends = [tier["switch_latency_ns"], tiers[level - 1]["switch_latency_ns"] if level else 0]
    delay_s = (tier["downlink_latency_ns"] + sum(ends) / 2) * 1e-9
    if delay_s > 1:
        raise InputError(
            f"Tier {level}: the delay of a cable is {delay_s:g} s; at most 1 s is allowed"
        )
    rate_bps = tier["downlink_speed_gbps"] * 1e9
    if not 1 <= tier["downlink_speed_gbps"] <= 10_000:
        raise InputError(
            f"Tier {level}: Downlink_speed_Gbps is {tier['downlink_speed_gbps']}; "
            "allowed: 1 to 10000"
        )
    bundle = tier["bundle"] if level else 1
    for a, b in pairs:
        fabric.cables += [Cable(a, b, rate_bps, delay_s)] * bundle


def _over_subscription(tiers: list[dict[str, int]]) -> list[str]:
    notes = []
    for number, tier in enumerate(tiers[:-1]):
        said, up = tier.get("oversubscribed"), tier["radix_up"]
        if said is not None and up and said * up != tier["radix_down"]:
            ratio = tier["radix_down"] / up
            notes.append(
                f"Tier {number}: Oversubscribed is {said}, but the radices give "
                f"{ratio:g} ports down for each port up; the radices are used"
            )
    return notes
