"""Units of work that the measures of a workload count, such as exchanges, jobs and flows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eastwest.units import clean, span


@dataclass(frozen=True)
class Unit:
    """Unit of work, such as a job: the name of its measure, its noun, and its columns of times."""

    #: Name of the measure of the duration, with the unit of time, such as ``exchange_us``.
    name: str
    #: Singular noun of the unit, for texts, such as ``exchange``.
    noun: str
    #: Names of the columns with the start, the end and the duration of a unit of work.
    start: str
    finish: str
    took: str


#: Units of work by their plural noun, in the order in which texts show them.
UNITS: dict[str, Unit] = {
    "exchanges": Unit("exchange_us", "exchange", "start_s", "finish_s", "exchange_us"),
    "transactions": Unit("transaction_us", "transaction", "arrived_s", "finished_s", "response_us"),
    "rounds": Unit("round_s", "round", "started_s", "finished_s", "took_s"),
    "jobs": Unit("runtime_s", "job", "submitted_s", "finished_s", "runtime_s"),
    "ranks": Unit("rank_s", "rank", "start_s", "finished_s", "took_s"),
    "flows": Unit("fct_us", "flow", "start_s", "finish_s", "fct_us"),
}


#: Unit of work of each kind of workload, by its name in ``UNITS``; other kinds count flows.
_OF_KIND = {
    "service": "exchanges",
    "fan-out": "exchanges",
    "hedged": "exchanges",
    "key-value": "exchanges",
    "parameter-server": "exchanges",
    "quorum": "exchanges",
    "transactions": "transactions",
    "incast": "rounds",
    "mapreduce": "jobs",
    "mpi": "ranks",
    "mpi-cg": "ranks",
    "training": "ranks",
}
#: Names of the purposes of flows in results (crates/types/src/record.rs).
PURPOSES = (
    "flow", "incast", "request", "response", "shuffle", "map-input", "replica", "control",
    "re-replication", "message",
)  # fmt: skip
#: Names of the statistics of each measure in a summary.
STATISTICS = ("count", "mean", "p50", "p99", "p999", "max")


def unit_of_kind(kind: str) -> Unit:
    """Return the unit of work of a kind of workload, such as jobs for ``mapreduce``."""
    return UNITS[_OF_KIND.get(kind, "flows")]


def first_unit(measures: Mapping[str, Any]) -> Unit | None:
    """Return the first unit of work in ``UNITS`` whose measure is in ``measures``, or None."""
    return next((unit for unit in UNITS.values() if unit.name in measures), None)


def window_words(window: Mapping[str, Any]) -> str:
    """Return ``[measure.window]`` in words, such as ``from 1 s, while hadoop (shuffle)``."""
    parts = []
    if "from_s" in window:
        parts.append(f"from {span(window['from_s'])}")
    if "until_s" in window:
        parts.append(f"until {span(window['until_s'])}")
    if "cool_down_s" in window:
        parts.append(f"without the last {span(window['cool_down_s'])}")
    if "while" in window:
        purpose = f" ({window['purpose']})" if "purpose" in window else ""
        parts.append(f"while {clean(str(window['while']), 40)}{purpose}")
    return ", ".join(parts)
