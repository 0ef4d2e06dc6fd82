"""Transports whose connections a result has, and their retransmissions and timeouts."""

from __future__ import annotations

from collections.abc import Mapping

from eastwest.results import Result, pick
from eastwest.units import count
from eastwest.views.labels import plural
from eastwest.views.settings import tree

#: Names of the transports with retransmissions, by the key of their counters in the summary.
NAMES = {"tcp": "TCP", "rocev2": "RoCEv2"}


def used(result: Result) -> list[str]:
    """Return the names of the transports that workloads of a result use, such as ``RoCEv2``.

    A transport with a counter above zero counts, too: the scenario may be unreadable. Without any
    sign of a transport, the result has TCP, the default.
    """
    given = tree(result).get("workload")
    workloads = given if isinstance(given, list) else []
    named = {one.get("transport", "tcp") for one in workloads if isinstance(one, Mapping)}
    ran = [name for key, name in NAMES.items() if key in named or _counted(result, key)]
    return ran or ["TCP"]


def _counted(result: Result, key: str) -> bool:
    counters = result.summary.get(key)
    return isinstance(counters, Mapping) and any(
        isinstance(value, (int, float)) and value > 0 for value in counters.values()
    )


def repairs(result: Result) -> list[tuple[str, str, str]]:
    """Return name, number and remark on the retransmissions of each transport that was used.

    The remark has the timeouts, for RoCEv2 also the NAKs and the trimmed packets.
    """
    s = result.summary
    rows = []
    for key, name in NAMES.items():
        if name not in used(result):
            continue
        expired = pick(s, key, "timeouts")
        said = ["– timeouts" if expired is None else plural(expired, "timeout")]
        if key == "rocev2":
            said.append(plural(pick(s, key, "naks") or 0, "NAK"))
            if trimmed := pick(s, key, "trimmed"):
                said.append(f"{plural(trimmed, 'packet')} trimmed")
        rows.append(
            (f"{name} retransmissions", count(pick(s, key, "retransmits")), ", ".join(said))
        )
    return rows
