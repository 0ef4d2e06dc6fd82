"""Names of the metrics of runs in tables and pictures of sweeps, and formats of their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from eastwest.units import count, joules, percent, rate, size, span
from eastwest.work_units import UNITS

#: Metric in a table: its path, its short name, and the function that formats its values.
Shown = tuple[str, str, Callable[[float], str]]


def _micros(value_us: float) -> str:
    return span(value_us / 1e6)


#: Metrics that come first in printed tables, if the runs have them.
HEADLINES: tuple[Shown, ...] = (
    ("jobs.makespan_s", "makespan", span),
    ("jobs.runtime_s.mean", "job mean", span),
    ("mpi.runtime_s", "MPI program", span),
    ("rounds.goodput_bps", "goodput", rate),
    ("flows.fct_us.mean", "FCT mean", _micros),
    ("flows.fct_us.p99", "FCT p99", _micros),
    ("latency_us.p99", "latency p99", _micros),
    ("packets.dropped", "drops", count),
)
#: (ending, function): the function formats values of metrics with a path part of this ending.
_WRITTEN: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("_us", _micros),
    ("_s", span),
    ("_bps", rate),
    ("_bytes", size),
    ("_j", joules),
)
#: Functions that format ratios, by the last part of the metric's path. A ratio has no unit, even if
#: an earlier part of its path ends with a unit, such as ``_j``.
RATIOS: dict[str, Callable[[float | None], str]] = {"of_always_on": percent, "of_ideal": count}
#: Last parts of the paths of metrics that are shares or ratios.
_SHARE = re.compile(r"of_\w+|jain|busy_\w+|\w+_typical|\w+_worst")
#: By the ending of a part of a metric's path: the kind of unit that limits may have (values.py),
#: and the metric's unit as a multiple of the smallest unit of this kind.
_UNITS: dict[str, tuple[str, int]] = {
    "_us": ("time", 10**6),
    "_s": ("time", 10**12),
    "_bps": ("rate", 1),
    "_bytes": ("size", 1),
    "_j": ("energy", 10**6),
}
#: Parts of metrics' paths that are omitted in the short names of metrics.
_UNSAID = {"flows", "by_purpose", "classes", "counters"}
#: Spelling of parts of metrics' paths in the short names of metrics.
_WORDS = {"fct": "FCT", "mpi": "MPI", "tcp": "TCP"}
_WORDS |= {"of_always_on": "of always on", "of_ideal": "of ideal", "with_switches": "with switches"}


def shown(metric: str) -> Shown:
    """Return (path, short name, format) of a metric: ``flows.fct_us.max`` becomes ``FCT max``.

    The format is a function that returns a value as text with a unit.
    """
    for headline in HEADLINES:
        if headline[0] == metric:
            return headline
    top, *parts = metric.split(".")
    during = ""
    if top == "while" and len(parts) > 1:
        during = f" while {parts.pop(0)}"
    elif top not in {"workloads", "applications"}:
        parts = [top, *parts]
    words: list[str] = []
    write: Callable[[float], str] = count
    for part in parts:
        end, how = next(((e, h) for e, h in _WRITTEN if part.endswith(e)), ("", write))
        write, word = how, part.removesuffix(end)
        if word not in _UNSAID:
            words.append(_WORDS.get(word, word))
    if parts[-1] == "count":
        write = count
    write = RATIOS.get(parts[-1], write)
    return metric, " ".join(words[-3:]) + during, write


def unit_of(metric: str) -> tuple[str, int]:
    """Return (kind of a metric's unit, the unit as a multiple of the smallest unit of this kind).

    For example, ``latency_us.p99`` has (``time``, 10⁶), because 1 µs is 10⁶ ps. Counts and shares
    have an empty kind and the multiple 1.
    """
    _, end = part_with_unit(metric)
    return _UNITS.get(end, ("", 1))


def part_with_unit(metric: str) -> tuple[str, str]:
    """Return (part of a metric's path with the unit, ending with the unit).

    For example, ``latency_us.p99`` has (``latency_us``, ``_us``). For counts and shares, the part
    is the last part of the path, and the ending is empty.
    """
    *_, last = parts = metric.split(".")
    if last == "count" or last.startswith("of_"):
        return last, ""
    if last == "bytes":
        return last, "_bytes"
    for part in reversed(parts):
        for end in _UNITS:
            if part.endswith(end):
                return part, end
    return last, ""


def is_share(metric: str) -> bool:
    """Whether a metric is a share or a ratio, so that a limit may be in %."""
    return _SHARE.fullmatch(metric.rpartition(".")[2]) is not None


def full(metric: str, there: Collection[str]) -> str:
    """Return the full path of a metric, where the user may have omitted ``workloads.``.

    For example, ``service.exchange_us.p99`` becomes ``workloads.service.exchange_us.p99`` if only
    the longer path is in ``there``, the metrics of the tables.
    """
    of_workload = f"workloads.{metric}"
    return of_workload if metric not in there and of_workload in there else metric


def of_workloads(there: Collection[str]) -> list[str]:
    """Return the metrics of workloads for the first columns of a table, from those in ``there``.

    For each workload, the metric is the 99th percentile of the times of its unit of work (flow,
    query, exchange …), or the mean time for jobs and rounds. There is one metric for the scenario's
    window, and one for the times at which another workload was active, for each other workload. If
    there is only one workload, it has these metrics only if its unit is the exchange or the
    transaction. The 99th percentiles of the measures of applications follow.
    """
    found = []
    # The name of a workload may contain dots.
    paths = [name.split(".") for name in there if name.startswith("workloads.")]
    names = sorted({".".join(path[1:-2]) for path in paths if path[-2] in _MEASURES})
    for name in names:
        for unit in UNITS.values():
            statistic = "mean" if unit.name in ("runtime_s", "round_s") else "p99"
            ends = f"{name}.{unit.name}.{statistic}"
            if f"workloads.{ends}" in there:
                found += sorted(
                    m for m in there if m.startswith("while.") and m.endswith(f".{ends}")
                )
                found.append(f"workloads.{ends}")
                break
    has_own_unit = any(".exchange_us." in name or ".transaction_us." in name for name in found)
    own = [name for name in of_applications(there) if name.endswith(".p99")]
    return [*(found if len(names) > 1 or has_own_unit else []), *own]


def of_applications(there: Collection[str]) -> list[str]:
    """Return the metrics of applications for a table, by workload.

    For each application these are the completed operations, the requests without reply, median and
    99th percentile of each measure, and the counters; only metrics in ``there``.
    """
    found: dict[str, list[str]] = {}
    for name in sorted(name for name in there if name.startswith("applications.")):
        # The name of a workload may have dots in it.
        found.setdefault(".".join(name.split(".")[1:-2]), []).append(name)
    return [
        name
        for names in found.values()
        for wanted in _OF_APPLICATIONS
        for name in names
        if wanted.fullmatch(".".join(name.split(".")[-2:]))
    ]


#: Last two parts of the names of metrics of applications, in the order of tables.
_OF_APPLICATIONS = tuple(
    re.compile(each)
    for each in (
        r"operations\.completed",
        r"requests\.unanswered",
        r"[a-z0-9_]+_us\.(?:p50|p99)",
        r"counters\.[a-z0-9_]+",
    )
)


_MEASURES = {unit.name for unit in UNITS.values()}
