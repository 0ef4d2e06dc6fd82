"""Costs of tasks in YARN's containers, in core time, because tasks of a machine share its cores.

A job history states how long a phase took, but not which share of a core it had. If n tasks compute
at one time on a machine of c cores, each gets min(1, c / n) of a core, as in the model
(docs/mechanisms/cores-and-disks.md). The core time of a phase is the integral of this share over
the phase. A cost in core time is also valid for other numbers of tasks on the machine; a cost in
wall time is valid only for the load of the histories.

A map computes from its start to its end. A reduce computes while its virtual machine starts and
after its shuffle; during the shuffle it waits for the network and counts as idle.

====================  =========================================================================
``costs.task_start``  core time of a virtual machine's start: from the start of a reduce to its
                      first byte, minus ``yarn.container_launch``. If the first byte is unknown:
                      the shortest core time from the start of a reduce to the end of its shuffle,
                      minus the time that bytes from other nodes take on the link
``costs.task_start_jitter`` width of the uniform distribution of random extra time of starts: √12
                      times the standard deviation of the maps' core times up to the end of their
                      function, because in the model only starts differ between maps of equal
                      splits. The shortest of n starts has on average 1 / (n + 1) of this width as
                      extra time; this time is subtracted from ``task_start``
``costs.map_rate``    bytes that a map read, divided by its core time up to the end of its function,
                      without start and half of the jitter
``costs.sort_rate``   bytes of a map's output, divided by its core time after its function
``costs.merge_rate``  bytes that a reduce shuffled, divided by the core time of its merge
``costs.reduce_rate`` bytes that a reduce shuffled, divided by its core time after the merge without
                      commit. The model writes while the function runs, so no time of a disk is
                      subtracted
``yarn.am_start``     from the start of the application master to the job's initialisation
``control.job_setup`` from submission to the start of the application master, minus the mean wait
                      for the first heartbeat of a node, minus ``yarn.container_launch``
``control.job_cleanup`` from the end of the last task to the end of the job
====================  =========================================================================
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eastwest.calibrate.jhist import Attempt, History

#: Defaults of the model for ``yarn.container_launch`` and ``costs.task_commit``, in s; the
#: calibration subtracts them from observed times.
CONTAINER_LAUNCH_S = 0.2
TASK_COMMIT_S = 0.1


@dataclass(frozen=True)
class Containers:
    """Properties of a YARN cluster that its job histories do not contain."""

    #: Number of cores of a machine, which its tasks share; ``None``: each task has its own core.
    cores: float | None = None
    #: Number of consecutive workers, in the order of their names, that run on one machine.
    workers_per_machine: int = 1


class Cores:
    """Calculator of core times: it knows when the tasks on each machine of a history compute.

    ``start_s`` is the duration of a task's start in s.
    """

    def __init__(self, history: History, cluster: Containers, start_s: float) -> None:
        self._cores = cluster.cores
        hosts = sorted({a.host for a in history.attempts}, key=_numbered)
        self._machine = {h: i // cluster.workers_per_machine for i, h in enumerate(hosts)}
        self._busy: dict[int, list[tuple[float, float]]] = {}
        for a in history.attempts:
            if a.started_s is None or a.finished_s is None:
                continue
            spans = [(a.started_s, a.finished_s)]
            if a.kind == "reduce":
                shuffled = a.finished_s if a.input_done_s is None else a.input_done_s
                started = min(a.started_s + start_s, shuffled)
                spans = [(a.started_s, started), (shuffled, a.finished_s)]
            self._busy.setdefault(self._machine[a.host], []).extend(spans)

    def time(self, host: str, start: float | None, end: float | None) -> float | None:
        """Return the core time in s of one task on ``host`` from ``start`` to ``end`` (s).

        Returns None if a time is unknown or the interval is empty.
        """
        if start is None or end is None or end <= start:
            return None
        if self._cores is None:
            return end - start
        busy = self._busy.get(self._machine[host], [])
        edges = sorted({start, end, *(t for span in busy for t in span if start < t < end)})
        total = 0.0
        for left, right in itertools.pairwise(edges):
            middle = (left + right) / 2
            running = sum(1 for a, b in busy if a <= middle < b)
            total += (right - left) * min(1.0, self._cores / max(1, running))
        return total


def _numbered(name: str) -> tuple[str, int, str]:
    """Return a sort key that orders names by their last number: ``w2`` comes before ``w10``."""
    digits = name[len(name.rstrip("0123456789")) :]
    return (name.rstrip("0123456789"), int(digits or 0), name)


#: Phase of tasks: (key of its cost, meaning, list of (bytes, core time in s) of task attempts).
Phase = tuple[str, str, list[tuple[float, float]]]


def phases(
    trusted: Sequence[Sequence[Attempt]],
    cores: Sequence[Cores],
    start_core_s: float,
) -> list[Phase]:
    """Return the phases of tasks with the bytes and core times of all attempts (see ``Phase``).

    ``trusted`` has the attempts of each history, ``cores`` the calculator of core times of each
    history, ``start_core_s`` the core time of a task's start in s.
    """

    def pairs(
        kind: str,
        size: Callable[[Attempt], float],
        span: Callable[[Attempt], tuple[float | None, float | None]],
        less: float = 0.0,
    ) -> list[tuple[float, float]]:
        found = []
        for attempts, machine in zip(trusted, cores, strict=True):
            for a in attempts:
                got = machine.time(a.host, *span(a)) if a.kind == kind else None
                if got is not None and got - less > 0 and size(a) > 0:
                    found.append((size(a), got - less))
        return found

    def counter(name: str) -> Callable[[Attempt], float]:
        return lambda a: float(a.counters.get(name, 0))

    read, output = counter("HDFS_BYTES_READ"), counter("MAP_OUTPUT_MATERIALIZED_BYTES")
    shuffled = counter("REDUCE_SHUFFLE_BYTES")

    def launched(a: Attempt) -> float | None:
        return None if a.started_s is None else a.started_s + CONTAINER_LAUNCH_S

    return [
        (
            "costs.map_rate",
            "map function",
            pairs("map", read, lambda a: (launched(a), a.input_done_s), start_core_s),
        ),
        (
            "costs.sort_rate",
            "sort and spill of a map",
            pairs("map", output, lambda a: (a.input_done_s, a.finished_s)),
        ),
        (
            "costs.merge_rate",
            "merge of a reduce",
            pairs("reduce", shuffled, lambda a: (a.input_done_s, a.sorted_s)),
        ),
        (
            "costs.reduce_rate",
            "reduce function and write",
            pairs("reduce", shuffled, _reducing),
        ),
    ]


def _reducing(a: Attempt) -> tuple[float | None, float | None]:
    """Return (start, end) in s of a reduce's function and writing: after merge, before commit."""
    return a.sorted_s, None if a.finished_s is None else a.finished_s - TASK_COMMIT_S


def delays(histories: Sequence[History], heartbeat_s: float) -> dict[str, list[float]]:
    """Return the observed fixed delays of jobs in s: a list for each parameter of the model."""
    setups, starts = [], []
    for h in histories:
        if h.master_s is None:
            continue
        nodes = max(1, len({a.host for a in h.attempts}))
        # With evenly spread heartbeats of n nodes, the first is after 1 / (n + 1) of a period.
        wait = heartbeat_s / (nodes + 1)
        setups.append(max(0.0, h.master_s - wait - CONTAINER_LAUNCH_S))
        if h.inited_s is not None:
            starts.append(max(0.0, h.inited_s - h.master_s))
    return {"control.job_setup": setups, "yarn.am_start": starts}


def jitters(trusted: Sequence[Sequence[Attempt]], cores: Sequence[Cores]) -> list[float]:
    """Return the widths in s of the uniform distribution of random task starts.

    The result has one width for each history with two or more maps: √12 times the standard
    deviation of the core times from the start of a map to the end of the map function. A uniform
    distribution of this width has this deviation.
    """
    found = []
    for attempts, machine in zip(trusted, cores, strict=True):
        times = [
            machine.time(a.host, a.started_s, a.input_done_s) for a in attempts if a.kind == "map"
        ]
        known = [time for time in times if time is not None]
        if len(known) > 1:
            found.append(math.sqrt(12) * statistics.pstdev(known))
    return found


def stretch(a: Attempt, machine: Cores) -> float:
    """Return the slow-down of an attempt by shared cores: wall time / core time; 1 if unknown."""
    got = machine.time(a.host, a.started_s, a.finished_s)
    if not got or a.started_s is None or a.finished_s is None:
        return 1.0
    return (a.finished_s - a.started_s) / got


def median_rate(pairs: Sequence[tuple[float, float]]) -> tuple[float, list[float]] | None:
    """Return (median rate in bytes per s of core time, residual of each pair).

    ``pairs`` are (bytes, core time in s). A residual is the observed core time divided by the core
    time at the median rate, minus 1. Returns None without pairs.
    """
    if not pairs:
        return None
    rate = statistics.median(size / time for size, time in pairs)
    return rate, [time / (size / rate) - 1 for size, time in pairs]
